"""Operations on geometries: envelopes, centroids, buffers, simplification, repair, projection and aggregates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.geo.functions.table import FUNCTIONS
from pqext.geo.joins.geometry_column import call_shapely
from pqext.spark.base.types import crs_of_srid, srid_of_crs
from pqext.spark.functions.geometry_arrays import GEOMETRY, Geometries, create_function, from_shapes, geometry_array
from pqext.spark.functions.udf import (
    ANYTHING,
    FLAT,
    GEOMETRIES,
    ArrowFunction,
    ColumnOrName,
    arrow_udf,
    check_argument,
    display_name,
    name_column,
    to_number_column,
    wrap_evaluation,
)

_TYPED = (0, 3857, 4326)
"""SRIDs that have types in PySpark."""
_QUAD_SEGS = FUNCTIONS["st_buffer"].parameters[2]
_SIDES = ("xmin", "ymin", "xmax", "ymax")
_BOX = T.StructType([*(T.StructField(name, T.DoubleType()) for name in _SIDES), T.StructField("srid", T.IntegerType())])


def st_envelope(geometry: ColumnOrName) -> Column:
    """Return the smallest rectangle around each geometry, or a point or line if it has no area. Return null for null.

    Like all functions that compute geometries, it returns GEOMETRY(ANY), where each row has the SRID of its
    argument, or 0 for WKB. Convert it with ``F.st_setsrid(..., F.lit(4326))`` to GEOMETRY(4326), which can be written.

    Example:
        >>> df.withColumn("box", F.st_setsrid(st_envelope("geom"), F.lit(4326)))  # doctest: +SKIP
    """
    return ENVELOPE(geometry)


def st_centroid(geometry: ColumnOrName) -> Column:
    """Return the planar centroid, or an empty point for empty geometries. Return null for null.

    Example:
        >>> df.select(st_x(st_centroid("geom")), st_y(st_centroid("geom")))  # doctest: +SKIP
    """
    return CENTROID(geometry)


def st_pointonsurface(geometry: ColumnOrName) -> Column:
    """Return a point that lies on each planar geometry, or an empty point for empty geometries. Return null for null.

    Example:
        >>> df.select("name", st_pointonsurface("geom"))  # doctest: +SKIP
    """
    return POINTONSURFACE(geometry)


def st_convexhull(geometry: ColumnOrName) -> Column:
    """Return the smallest convex geometry around each planar geometry. Return null for null.

    Example:
        >>> df.select(st_area(st_convexhull("geom")))  # doctest: +SKIP
    """
    return CONVEXHULL(geometry)


def st_boundary(geometry: ColumnOrName) -> Column:
    """Return the rings of planar polygons and the end points of lines. Return null for null and for collections.

    Example:
        >>> df.select(st_length(st_boundary("geom")))  # doctest: +SKIP
    """
    return BOUNDARY(geometry)


def st_buffer(geometry: ColumnOrName, distance: float | ColumnOrName, quad_segs: int = 8) -> Column:
    """Return the area within ``distance`` of each geometry, in units of the CRS. Return null for null.

    A negative distance shrinks polygons. ``quad_segs`` segments approximate a quarter of a circle. Project coordinates
    in degrees with :func:`st_transform` first.

    Example:
        >>> df.select(st_buffer(st_transform("geom", 3857), 100))  # doctest: +SKIP
    """
    return BUFFER(geometry, to_number_column(distance, "distance"), quad_segs=_QUAD_SEGS.check(quad_segs))


def st_simplify(geometry: ColumnOrName, tolerance: float | ColumnOrName, preserve_topology: bool = True) -> Column:
    """Simplify geometries with a maximum displacement of ``tolerance``, in units of the CRS. Return null for null.

    ``preserve_topology=False`` is faster and may create invalid polygons.

    Example:
        >>> df.select(st_simplify("geom", 0.001))  # doctest: +SKIP
    """
    return SIMPLIFY(geometry, to_number_column(tolerance, "tolerance"), preserve_topology=preserve_topology)


def st_makevalid(geometry: ColumnOrName) -> Column:
    """Repair invalid geometries without changing the covered points. Return null for null.

    Example:
        >>> df.where(~st_isvalid("geom")).select(st_makevalid("geom"))  # doctest: +SKIP
    """
    return MAKEVALID(geometry)


def st_snaptogrid(geometry: ColumnOrName, size: float | ColumnOrName) -> Column:
    """Round coordinates to multiples of ``size``, in units of the CRS, and keep geometries valid. Return null for null.

    Lines and rings that collapse are removed. Invalid polygons and a size of 0 or less fail the query.

    Example:
        >>> df.select(st_snaptogrid("geom", 0.01))  # doctest: +SKIP
    """
    return SNAPTOGRID(geometry, to_number_column(size, "size"))


def st_forcepolygonccw(geometry: ColumnOrName) -> Column:
    """Orient the shells of polygons counterclockwise and their holes clockwise. Return null for null.

    For GEOGRAPHY, the interior of a ring is its smaller side. The result is GEOMETRY(ANY).

    Example:
        >>> df.select(st_asgeojson(st_forcepolygonccw("geom")))  # doctest: +SKIP
    """
    return FORCEPOLYGONCCW(geometry)


def st_forcepolygoncw(geometry: ColumnOrName) -> Column:
    """Orient the shells of planar polygons clockwise and their holes counterclockwise. Return null for null.

    Example:
        >>> df.select(st_forcepolygoncw("geom"))  # doctest: +SKIP
    """
    return FORCEPOLYGONCW(geometry)


def st_union(geometry: ColumnOrName, other: ColumnOrName) -> Column:
    """Return the union of two planar columns, with the SRID of the first. Null if either is null.

    Pass a constant geometry as a column of WKB: ``F.lit(shapely.to_wkb(area))``. :func:`st_union_agg` unites the rows
    of a group.

    Example:
        >>> df.select(st_union("parcel", "flood_zone"))  # doctest: +SKIP
    """
    return UNION(geometry, other)


def st_intersection(geometry: ColumnOrName, other: ColumnOrName) -> Column:
    """Return the intersection of two planar columns, with the SRID of the first. Null if either is null.

    Pass a constant geometry as a column of WKB, as in :func:`st_union`.

    Example:
        >>> df.select(st_area(st_intersection("parcel", "flood_zone")))  # doctest: +SKIP
    """
    return INTERSECTION(geometry, other)


def st_transform(
    geometry: ColumnOrName, target: int | str | Column, source: int | str | Column | None = None
) -> Column:
    """Transform geometries to another coordinate reference system with PROJ, as :func:`pqext.geo.transform` does.

    Coordinates are x, y (longitude, latitude). A point that PROJ cannot transform fails the query; the error states the
    row in its batch.

    Args:
        geometry: A column or its name.
        target: An EPSG code, the name of a CRS, or a column of INT or STRING with the CRS of each row.
        source: Like ``target``. By default the CRS of the column's type, or of all rows for GEOMETRY(ANY); required
            for BINARY.

    Returns:
        GEOMETRY(``target``) for 4326, 3857 and 0, otherwise GEOMETRY(ANY) with the SRID of ``target``. Null for null
        and for a null CRS.

    Raises:
        GeometryError: If a CRS is unknown.

    Example:
        >>> df.select(st_area(st_transform("geom", 28992)))  # doctest: +SKIP
    """
    from pqext.geo import crs

    if isinstance(target, Column) or isinstance(source, Column):
        columns = [F.lit(value) for value in (target, source) if value is not None]
        return TRANSFORM_ROWS(geometry, *columns)
    for value in (target, source):
        if value is not None:
            crs.parse(crs.normalize(value))
    transformed = TRANSFORM(geometry, target=target, source=source)
    srid = _srid(target)
    if srid not in _TYPED:
        return transformed
    return name_column(
        F.st_setsrid(transformed, F.lit(srid)), "st_transform", [display_name(geometry), str(target)],
        f"geometry({srid})"
    )


def _srid(crs: int | str) -> int:
    return crs if isinstance(crs, int) else srid_of_crs(crs) or 0


def _transform(array: pa.Array, target: int | str, source: int | str | None = None) -> pa.Array:
    from pqext import geo

    column = Geometries.from_arrow(array)
    crs = source if source is not None else _crs(array, column)
    return geometry_array(geo.transform(column.wkb, crs, target), _srid(target))


def transform_rows(array: pa.Array, targets: pa.Array, sources: pa.Array | None = None) -> pa.Array:
    """Transform each geometry from the CRS in ``sources``, by default the CRS of its SRID, to the CRS in ``targets``.

    Rows without a geometry or a CRS become null. Raises ``TypeError`` for BINARY without ``sources``.
    """
    column = Geometries.from_arrow(array)
    if sources is None:
        if column.srid is None:
            raise TypeError("the CRS of BINARY is unknown: pass source=4326, which is the third argument in SQL")
        sources = column.srid
    pairs = list(zip(targets.to_pylist(), sources.to_pylist(), column.missing.tolist(), strict=True))
    rows: dict[Any, list[int]] = {}
    for row, (target, source, is_missing) in enumerate(pairs):
        is_valid = target is not None and source is not None and not is_missing
        rows.setdefault((target, source) if is_valid else None, []).append(row)
    parts, order = [], []
    for pair, indices in rows.items():
        order += indices
        if pair is None:
            parts.append(geometry_array(pa.nulls(len(indices), pa.binary()), 0))
        else:
            source = crs_of_srid(pair[1]) if isinstance(pair[1], int) else pair[1]
            parts.append(_transform(array.take(pa.array(indices, pa.int64())), pair[0], source or "OGC:CRS84"))
    if not parts:
        return geometry_array(column.wkb, 0)
    return pa.concat_arrays(parts).take(pa.array(np.argsort(order)))


def _crs(array: pa.Array, column: Geometries) -> str | None:
    """Return the common CRS of all rows. Raises ``TypeError`` if it is unknown or differs between rows."""
    if column.srid is None:
        raise TypeError("the CRS of BINARY is unknown: pass source=4326, which is the third argument in SQL")
    if int((array.type.field("wkb").metadata or {}).get(b"srid", b"-1")) >= 0:
        return column.type.crs
    srids = column.srid.drop_null().unique().to_pylist()
    if len(srids) > 1:
        raise TypeError(f"expected one CRS, but the SRIDs of the rows are {srids}: pass source=4326")
    return crs_of_srid(srids[0]) if srids else None


def st_envelope_agg(geometry: ColumnOrName) -> Column:
    """Return the smallest rectangle around all geometries of a group, as GEOMETRY(ANY).

    Null if all geometries are null or empty. Boxes are computed in Python and aggregated by Spark, so groups may have
    any size. The SRID is the maximum of the group.

    Example:
        >>> df.groupBy("country").agg(st_envelope_agg("geom"))  # doctest: +SKIP
    """
    box = BOX(geometry)
    sides = [F.min(box["xmin"]), F.min(box["ymin"]), F.max(box["xmax"]), F.max(box["ymax"]), F.max(box["srid"])]
    return name_column(RECTANGLE(*sides), "st_envelope_agg", [display_name(geometry)], "geometry(any)")


def st_union_agg(geometry: ColumnOrName) -> Column:
    """Return the union of all geometries of a group in X and Y, as GEOMETRY(ANY); null if all are null.

    All geometries of a group are in the memory of one Python worker. The SRID is the first of the group.

    Example:
        >>> df.groupBy("country").agg(st_union_agg("geom"))  # doctest: +SKIP
    """
    aggregate = arrow_udf(wrap_evaluation(union_all, "st_union_agg"), GEOMETRY, "st_union_agg", return_annotation=dict)
    result = aggregate(check_argument("st_union_agg", FLAT, geometry))
    return name_column(result, "st_union_agg", [display_name(geometry)], "geometry(any)")


st_envelope_aggr = st_envelope_agg
st_union_aggr = st_union_agg


def _boxes(array: pa.Array) -> pa.Array:
    from pqext import geo

    column = Geometries.from_arrow(array).require_planar()
    bounds = geo.bounds(column.wkb)
    sides = [bounds.field(name) for name in _SIDES]
    srid = column.srid if column.srid is not None else pa.repeat(pa.scalar(0, pa.int32()), len(column.wkb))
    empty = column.missing | sides[0].is_null().to_numpy(zero_copy_only=False)
    return pa.StructArray.from_arrays([*sides, srid], names=[*_SIDES, "srid"], mask=pa.array(empty))


def _rectangles(*columns: pa.Array) -> pa.Array:
    import shapely

    *sides, srid = columns
    boxes = shapely.box(*(side.fill_null(np.nan).to_numpy(zero_copy_only=False) for side in sides))
    missing = sides[0].is_null().to_numpy(zero_copy_only=False)
    return from_shapes(shapely.envelope(np.where(missing, None, boxes)), srid)


def union_all(array: pa.Array) -> Any:
    """Return the union of all geometries of an array as Spark's struct; None if all are null."""
    import shapely

    column = Geometries.from_arrow(array).require_planar()
    shapes = column.shapes()
    if column.missing.all():
        return None
    srid = 0 if column.srid is None else column.srid.drop_null()[0].as_py()
    return from_shapes([call_shapely(shapely.union_all, shapely.force_2d(shapes))], srid)[0].as_py()


ENVELOPE = create_function("st_envelope")
CENTROID = create_function("st_centroid")
POINTONSURFACE = create_function("st_pointonsurface")
CONVEXHULL = create_function("st_convexhull")
BOUNDARY = create_function("st_boundary")
BUFFER = create_function("st_buffer")
SIMPLIFY = create_function("st_simplify")
SNAPTOGRID = create_function("st_snaptogrid")
MAKEVALID = create_function("st_makevalid")
FORCEPOLYGONCCW = create_function("st_forcepolygonccw")
FORCEPOLYGONCW = create_function("st_forcepolygoncw")
UNION = create_function("st_union")
INTERSECTION = create_function("st_intersection")
TRANSFORM_ROWS = ArrowFunction("st_transform", (GEOMETRIES, ANYTHING, ANYTHING), GEOMETRY, transform_rows)
TRANSFORM = ArrowFunction("st_transform", (GEOMETRIES,), GEOMETRY, _transform)
BOX = ArrowFunction("st_envelope_agg", (FLAT,), _BOX, _boxes)
RECTANGLE = ArrowFunction("st_envelope_agg", (ANYTHING,) * 5, GEOMETRY, _rectangles)
