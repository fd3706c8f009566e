"""Functions on VARIANT and GEOMETRY columns, evaluated by pqext in Arrow batches.

What Spark can push down needs a data frame's schema and is built by :func:`pqext.spark.variant` and
:func:`pqext.spark.where`; these functions work on any column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas import functions as pandas_functions

from pqext.spark.arrays import conform
from pqext.spark.types import exchange_type, parse_type, variant_target, without_metadata
from pqext.variant.access.path import as_many_path, as_path, format_path
from pqext.variant.access.targets import target_type
from pqext.variant.shredding.schema import schema_of_storage, storage_struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pqext.geo.predicates.boxes import Operation
    from pqext.geo.types import Edges

ColumnOrName: TypeAlias = "Column | str"
WORLD = (-180.0, -90.0, 180.0, 90.0)


def variant_get(column: ColumnOrName, path: str | Sequence[str | int], type: str | T.DataType = "variant") -> Column:
    """The value at ``path`` (``$.a.b[0]``) of a VARIANT or of a shredded struct, cast to ``type``.

    Null where the path leads nowhere or to JSON null; a value that does not cast fails the query, as in Spark's own
    function of this name. ``type`` is a Spark type or its name, nested ones (``ARRAY<STRUCT<a: INT>>``,
    ``MAP<STRING, DOUBLE>``) among them, ``variant`` for the value as it is. Raises ``ValueError`` for a path or
    an unknown type.
    """
    return _variant_get(column, path, type, True)


def try_variant_get(
    column: ColumnOrName, path: str | Sequence[str | int], type: str | T.DataType = "variant"
) -> Column:
    """As :func:`variant_get`, but null where a value does not cast, as in Spark's ``try_variant_get``."""
    return _variant_get(column, path, type, False)


def variant_explode(column: ColumnOrName, path: str = "$", type: str | T.DataType = "variant") -> Column:
    """The elements of the array, or the fields of the object, at ``path``: the columns ``pos``, ``key``, ``value``.

    To be selected, as ``F.inline`` is: ``df.select("id", functions.variant_explode("v", "$.items"))``. Paths may
    have wildcards, and values that do not cast to ``type`` are null, as in :func:`pqext.variant.explode`.
    """
    return F.inline(_entries(column, path, type))


def variant_explode_outer(column: ColumnOrName, path: str = "$", type: str | T.DataType = "variant") -> Column:
    """As :func:`variant_explode`, with a row of nulls where there is nothing to explode."""
    return F.inline_outer(_entries(column, path, type))


def _variant_get(column: ColumnOrName, path: str | Sequence[str | int], type: str | T.DataType, strict: bool) -> Column:
    spark_type = parse_type(type) if isinstance(type, str) else type
    text = format_path(as_path(path))
    wanted = target_type(variant_target(spark_type))

    def get(values: pa.Array) -> pa.Array:
        return _get(values, text, wanted, exchange_type(spark_type), strict)

    return arrow_udf(get, spark_type, "variant_get" if strict else "try_variant_get")(column)


def _entries(column: ColumnOrName, path: str, type: str | T.DataType) -> Column:
    spark_type = parse_type(type) if isinstance(type, str) else type
    text = format_path(as_many_path(path))
    wanted = target_type(variant_target(spark_type))
    fields = {"pos": T.IntegerType(), "key": T.StringType(), "value": spark_type}
    entries = T.ArrayType(T.StructType([T.StructField(name, type) for name, type in fields.items()]))

    def explode(values: pa.Array) -> pa.Array:
        from pqext import variant

        table = variant.explode(normal_variant(values), text, wanted)
        counts = np.bincount(table.column("row").to_numpy(), minlength=len(values))
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
        members = [table.column(name).combine_chunks() for name in fields]
        structs = pa.StructArray.from_arrays(members, names=list(fields))
        return conform(pa.ListArray.from_arrays(offsets, structs), exchange_type(entries))

    return arrow_udf(explode, entries, "variant_explode")(column)


def group_get(
    metadata: Column, value: Column | None, typed_value: Column | None, path: str, type: T.DataType
) -> Column:
    """:func:`try_variant_get` on one group of a shredded struct, so that Spark reads that group's columns only."""
    members = {"metadata": metadata, "value": value, "typed_value": typed_value}
    names = tuple(name for name, column in members.items() if column is not None)
    exchange = exchange_type(type)
    wanted = target_type(variant_target(type))

    def get(arrays: tuple[pa.Array, ...]) -> pa.Array:
        struct = pa.StructArray.from_arrays(list(arrays), names=list(names), mask=arrays[0].is_null())
        return _get(struct, path, wanted, exchange)

    def of_two(metadata: pa.Array, other: pa.Array) -> pa.Array:
        return get((metadata, other))

    def of_three(metadata: pa.Array, value: pa.Array, typed_value: pa.Array) -> pa.Array:
        return get((metadata, value, typed_value))

    present = [column for column in members.values() if column is not None]
    return arrow_udf(of_two if len(present) == 2 else of_three, type, "try_variant_get")(*present)


def st_point(x: ColumnOrName, y: ColumnOrName, z: ColumnOrName | None = None, srid: int = 4326) -> Column:
    """GEOMETRY(``srid``) points, POINT or POINT Z, from numeric columns; null where ``x`` or ``y`` is.

    A null ``z`` gives a point whose Z is NaN, which has no value in that dimension.
    """

    def xy(x: pa.Array, y: pa.Array) -> pa.Array:
        return _points(x, y, None)

    def xyz(x: pa.Array, y: pa.Array, z: pa.Array) -> pa.Array:
        return _points(x, y, z)

    columns = [_column(column).cast("double") for column in (x, y, z) if column is not None]
    wkb = arrow_udf(xy if z is None else xyz, T.BinaryType(), "st_point")(*columns)
    return F.st_geomfromwkb(wkb, F.lit(srid))


def st_intersects_box(geometry: ColumnOrName, xmin: float, ymin: float, xmax: float, ymax: float) -> Column:
    """Does a GEOMETRY, or a BINARY column of WKB, share a point with a box? Null on null.

    Exact, borders included. A box with ``xmin > xmax`` crosses the antimeridian.
    """
    box = (float(xmin), float(ymin), float(xmax), float(ymax))

    def intersects(geometries: pa.Array) -> pa.Array:
        from pqext import geo

        return geo.intersects_box(_wkb(geometries), box)

    return arrow_udf(intersects, T.BooleanType(), "st_intersects_box")(geometry)


def st_relates(
    geometry: ColumnOrName,
    operation: Operation,
    query: Any,
    distance: float | None = None,
    edges: Edges = "planar",
    crs: str | None = None,
) -> Column:
    """Does a GEOMETRY, a GEOGRAPHY (``edges="spherical"``) or WKB stand so to ``query``? Null on null.

    ``operation`` is one of ``pqext.geo``'s, such as ``touches``, or ``dwithin`` with its ``distance``; ``query`` a box
    ``(xmin, ymin, xmax, ymax)``, WKB or a shapely geometry. Exact; :func:`pqext.spark.where` takes edges and CRS from
    the column's type. Raises ``ValueError`` or ``TypeError`` for anything else.
    """
    from pqext.dataset.expressions.spatial import canonical_distance, canonical_geometry

    shape, metres = canonical_geometry(operation, query), canonical_distance(operation, distance)

    def relates(geometries: pa.Array) -> pa.Array:
        from pqext.dataset.expressions.spatial import predicate

        return predicate(operation, shape, metres).evaluate(_wkb(geometries), edges, crs)

    return arrow_udf(relates, T.BooleanType(), f"st_{operation}")(geometry)


def st_hilbert(geometry: ColumnOrName, bounds: tuple[float, float, float, float] = WORLD) -> Column:
    """The place of each geometry's centre on a Hilbert curve through ``bounds``, a BIGINT to order rows by.

    Neighbours on the curve are neighbours on the map, so that row groups of sorted rows have small boxes. To lay a
    whole data frame out so, ``df.repartitionByRange(n, st_hilbert("g")).sortWithinPartitions(st_hilbert("g"))``; the
    writer's ``geometry={"g": {"order": "hilbert"}}`` orders the rows of each task, in place of the second step.
    Centres outside ``bounds`` count as on their border. Null on null and on empty geometries.
    """

    def hilbert(geometries: pa.Array) -> pa.Array:
        return _hilbert(_wkb(geometries), bounds)

    return arrow_udf(hilbert, T.LongType(), "st_hilbert")(geometry)


def _hilbert(wkb: pa.Array, bounds: tuple[float, float, float, float]) -> pa.Array:
    from pqext import geo

    xmin, ymin, xmax, ymax = bounds
    boxes = geo.bounds(wkb)
    x, y = (
        (boxes.field(low).to_numpy(zero_copy_only=False) + boxes.field(high).to_numpy(zero_copy_only=False)) / 2
        for low, high in (("xmin", "xmax"), ("ymin", "ymax"))
    )
    placed = np.isfinite(x) & np.isfinite(y)
    at = geo.hilbert_index(
        np.where(placed, x, xmin), np.where(placed, y, ymin), geo.BoundingBox(xmin, xmax, ymin, ymax)
    )
    # 63 of its 64 bits, so that the order is that of signed integers.
    return pa.array((at >> np.uint64(1)).astype(np.int64), mask=~placed)


def _get(values: pa.Array, path: str, wanted: pa.DataType, exchange: pa.DataType, strict: bool = False) -> pa.Array:
    from pqext import variant

    found = variant.get(normal_variant(values), path, wanted, strict)
    return conform(found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found, exchange)


def normal_variant(values: pa.Array) -> pa.Array:
    """A variant as Spark passes it, unshredded or shredded, in the storage struct's own Arrow type."""
    return conform(values, storage_struct(schema_of_storage(values.type)))


def _wkb(geometries: pa.Array) -> pa.Array:
    return pc.struct_field(geometries, "wkb") if pa.types.is_struct(geometries.type) else geometries


def _points(x: pa.Array, y: pa.Array, z: pa.Array | None) -> pa.Array:
    from pqext import geo

    return geo.from_points(x, y, z)


def _column(column: ColumnOrName) -> Column:
    return F.col(column) if isinstance(column, str) else column


def quoted(name: str) -> str:
    """A column's name as Spark reads it whatever it holds."""
    return "`" + name.replace("`", "``") + "`"


def arrow_udf(function: Callable[..., Any], type: T.DataType, name: str) -> Callable[..., Column]:
    """An Arrow UDF; ``function``'s annotations are made types, which is how Spark recognises its kind."""
    function.__annotations__ = dict.fromkeys(function.__annotations__, pa.Array)
    function.__name__ = name
    make: Callable[..., Callable[..., Column]] = pandas_functions.arrow_udf
    return make(function, without_metadata(type))
