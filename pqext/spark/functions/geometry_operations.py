"""Geometries made of others: envelopes, centroids, buffers, simpler, valid and projected ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from pqext.spark.base.types import crs_of_srid, srid_of_crs
from pqext.spark.functions.geometry_arrays import GEOMETRY, Geometries, from_shapes, geometries, of_shapes
from pqext.spark.functions.udf import (
    ANYTHING,
    FLAT,
    GEOMETRIES,
    NUMBER,
    ArrowFunction,
    ColumnOrName,
    named,
    number,
    text_of,
)

_TYPED = (0, 3857, 4326)
"""SRIDs that PySpark has types of."""


def st_envelope(geometry: ColumnOrName) -> Column:
    """The smallest rectangle around each geometry, a point or line where it has no area. Null on null.

    Like all functions that make geometries, GEOMETRY(ANY) in which each row keeps its SRID, 0 for WKB:
    ``F.st_setsrid(..., F.lit(4326))`` makes it GEOMETRY(4326), which can be written.
    """
    return ENVELOPE(geometry)


def st_centroid(geometry: ColumnOrName) -> Column:
    """The centroid in the plane, a point; an empty one of empty geometries. Null on null."""
    return CENTROID(geometry)


def st_buffer(geometry: ColumnOrName, distance: float | ColumnOrName, quad_segs: int = 8) -> Column:
    """All that lies at most ``distance`` away, in units of the CRS; a negative one shrinks areas. Null on null.

    ``quad_segs`` segments make up a quarter of a circle. On degrees, project with :func:`st_transform` first.
    """
    return BUFFER(geometry, number(distance, "distance"), quad_segs=_count(quad_segs))


def st_simplify(geometry: ColumnOrName, tolerance: float | ColumnOrName, preserve_topology: bool = True) -> Column:
    """With fewer vertices, none farther than ``tolerance`` (in units of the CRS) from where it was. Null on null.

    ``preserve_topology=False`` is quicker and may make invalid polygons.
    """
    return SIMPLIFY(geometry, number(tolerance, "tolerance"), preserve_topology=preserve_topology)


def st_makevalid(geometry: ColumnOrName) -> Column:
    """A valid geometry that covers the same points, the same one where it is valid. Null on null."""
    return MAKEVALID(geometry)


def st_transform(
    geometry: ColumnOrName, target: int | str | Column, source: int | str | Column | None = None
) -> Column:
    """In another coordinate reference system, as :func:`pqext.geo.transform` projects it by PROJ. Null on null.

    ``target`` and ``source`` are an EPSG code or any string that names a CRS. ``source`` is by default that of the
    column's type, of ANY that of all rows, and must be given for BINARY. Coordinates are x, y (longitude, latitude)
    throughout. The result is GEOMETRY(``target``) for 4326, 3857 and 0, and ANY with the code of ``target`` otherwise.
    A point without a result in PROJ fails the query, with the row in its batch. If one of them is a column, of INT or
    STRING, each row has its own; the result is ANY then, and null where the CRS is.

    Raises GeometryError for a CRS that is not known.
    """
    from pqext.geo import crs

    if isinstance(target, Column) or isinstance(source, Column):
        columns = [F.lit(one) for one in (target, source) if one is not None]
        return TRANSFORM_ROWS(geometry, *columns)
    for one in (target, source):
        if one is not None:
            crs.parse(crs.normalize(one))
    found = TRANSFORM(geometry, target=target, source=source)
    srid = _srid(target)
    if srid not in _TYPED:
        return found
    return named(
        F.st_setsrid(found, F.lit(srid)), "st_transform", [text_of(geometry), str(target)], f"geometry({srid})"
    )


def _count(quad_segs: Any) -> int:
    if isinstance(quad_segs, bool) or not isinstance(quad_segs, int) or not 1 <= quad_segs <= 1000:
        raise ValueError(f"quad_segs is a number from 1 to 1000, not {quad_segs!r}")
    return quad_segs


def _srid(crs: int | str) -> int:
    return crs if isinstance(crs, int) else srid_of_crs(crs) or 0


def _envelope(array: pa.Array) -> pa.Array:
    import shapely

    of = Geometries.of(array).flat("st_envelope")
    return from_shapes(of_shapes(shapely.envelope, of.shapes()), of.srid)


def _centroid(array: pa.Array) -> pa.Array:
    import shapely

    of = Geometries.of(array).flat("st_centroid")
    return from_shapes(of_shapes(shapely.centroid, of.shapes()), of.srid)


def _numbers(array: pa.Array) -> Any:
    return array.fill_null(np.nan).to_numpy(zero_copy_only=False)


def _known(shapes: Any, numbers: Any) -> Any:
    """The geometries, None where the number beside is none."""
    return np.where(np.isnan(numbers), None, shapes)


def _buffer(array: pa.Array, distances: pa.Array, quad_segs: int = 8) -> pa.Array:
    import shapely

    of, by = Geometries.of(array).flat("st_buffer"), _numbers(distances)
    made = of_shapes(shapely.buffer, _known(of.shapes(), by), np.nan_to_num(by), quad_segs=quad_segs)
    return from_shapes(made, of.srid)


def _simplify(array: pa.Array, tolerances: pa.Array, preserve_topology: bool = True) -> pa.Array:
    import shapely

    of, by = Geometries.of(array).flat("st_simplify"), _numbers(tolerances)
    shapes = _known(of.shapes(), by)
    made = of_shapes(shapely.simplify, shapes, np.nan_to_num(by), preserve_topology=preserve_topology)
    return from_shapes(made, of.srid)


def _makevalid(array: pa.Array) -> pa.Array:
    import shapely

    of = Geometries.of(array).flat("st_makevalid")
    return from_shapes(of_shapes(shapely.make_valid, of.shapes()), of.srid)


def _transform(array: pa.Array, target: int | str, source: int | str | None = None) -> pa.Array:
    from pqext import geo

    of = Geometries.of(array)
    crs = source if source is not None else _crs(array, of)
    made = geo.transform(of.wkb, crs, target)
    return geometries(made, _srid(target))


def transform_rows(array: pa.Array, targets: pa.Array, sources: pa.Array | None = None) -> pa.Array:
    """Geometries projected into the CRS of each row, from that of ``sources`` or their own."""
    of = Geometries.of(array)
    if sources is None:
        if of.srid is None:
            raise TypeError("st_transform needs the CRS that BINARY is in: source=4326")
        sources = of.srid
    pairs = list(zip(targets.to_pylist(), sources.to_pylist(), of.missing.tolist(), strict=True))
    rows: dict[Any, list[int]] = {}
    for row, (target, source, is_missing) in enumerate(pairs):
        known = target is not None and source is not None and not is_missing
        rows.setdefault((target, source) if known else None, []).append(row)
    parts, order = [], []
    for pair, places in rows.items():
        order += places
        if pair is None:
            parts.append(geometries(pa.nulls(len(places), pa.binary()), 0))
        else:
            source = crs_of_srid(pair[1]) if isinstance(pair[1], int) else pair[1]
            parts.append(_transform(array.take(pa.array(places, pa.int64())), pair[0], source or "OGC:CRS84"))
    if not parts:
        return geometries(of.wkb, 0)
    return pa.concat_arrays(parts).take(pa.array(np.argsort(order)))


def _crs(array: pa.Array, of: Geometries) -> str | None:
    """The CRS that the column's type names, or that all of its rows have. Raises TypeError where there is none."""
    if of.srid is None:
        raise TypeError("st_transform needs the CRS that BINARY is in: source=4326")
    if int((array.type.field("wkb").metadata or {}).get(b"srid", b"-1")) >= 0:
        return of.type.crs
    srids = of.srid.drop_null().unique().to_pylist()
    if len(srids) > 1:
        raise TypeError(f"st_transform is from one CRS, but rows are in {srids}: source=4326 takes all for that")
    return crs_of_srid(srids[0]) if srids else None


ENVELOPE = ArrowFunction("st_envelope", (FLAT,), GEOMETRY, _envelope)
CENTROID = ArrowFunction("st_centroid", (FLAT,), GEOMETRY, _centroid)
BUFFER = ArrowFunction("st_buffer", (FLAT, NUMBER), GEOMETRY, _buffer)
SIMPLIFY = ArrowFunction("st_simplify", (FLAT, NUMBER), GEOMETRY, _simplify)
MAKEVALID = ArrowFunction("st_makevalid", (FLAT,), GEOMETRY, _makevalid)
TRANSFORM_ROWS = ArrowFunction("st_transform", (GEOMETRIES, ANYTHING, ANYTHING), GEOMETRY, transform_rows)
TRANSFORM = ArrowFunction("st_transform", (GEOMETRIES,), GEOMETRY, _transform)
