"""Invalid Arrow arrays for every public function that takes arrays; run as a script, since a fault may end the process.

Prints a line of JSON before each call and one after it, with the error that the call raised.
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

import pqext
from pqext import geo, variant

LONG = b"abcdefghijklmnopqrstuvwxyz"
FAR = 1 << 30


def buffer(values: Any, kind: str) -> pa.Buffer:
    return pa.py_buffer(np.array(values, kind).tobytes())


def views(kind: pa.DataType, length: int, index: int, offset: int) -> pa.Array:
    entries = struct.pack("<i12s", 1, b"a") + struct.pack("<i4sii", length, LONG[:4], index, offset)
    return pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(entries), pa.py_buffer(LONG)])


def invalid_bytes(text: bool) -> dict[str, pa.Array]:
    """Arrays of two strings, or of two binary values."""
    kind, view = (pa.string(), pa.string_view()) if text else (pa.binary(), pa.binary_view())
    large = pa.large_string() if text else pa.large_binary()
    data = pa.py_buffer(b"abc")

    def offsets(*ends: int) -> pa.Array:
        return pa.Array.from_buffers(kind, 2, [None, buffer(ends, "i4"), data])

    good = pa.array([b"a", b"b"], pa.binary()).cast(kind)
    broken = offsets(0, FAR, 3)
    return {
        "offsets that descend": offsets(0, 3, 1),
        "an offset far beyond the data": broken,
        "large offsets far beyond the data": pa.Array.from_buffers(large, 2, [None, buffer([0, FAR, 3], "i8"), data]),
        "a negative offset": offsets(0, -9, 3),
        "fewer nulls than claimed": pa.Array.from_buffers(
            kind, 2, [pa.py_buffer(b"\x03"), buffer([0, 1, 3], "i4"), data], null_count=1
        ),
        "a view beyond its buffer": views(view, 20, 0, 99_999_999),
        "a view longer than its buffer": views(view, FAR, 0, 0),
        "a view into no buffer": views(view, 20, 7, 0),
        "a view of negative length": views(view, -20, 0, 0),
        "an index beyond the dictionary": pa.DictionaryArray.from_arrays(
            pa.array([0, 99_999_999], pa.int32()), good, safe=False
        ),
        "an index before the dictionary": pa.DictionaryArray.from_arrays(
            pa.array([0, -99_999_999], pa.int32()), good, safe=False
        ),
        "a dictionary of invalid values": pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), broken),
    }  # fmt: skip


class _ArrowArray(ctypes.Structure):
    """The struct of Arrow's C data interface."""


_ArrowArray._fields_ = [
    *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.c_void_p), ("children", ctypes.POINTER(ctypes.POINTER(_ArrowArray))),
    *((name, ctypes.c_void_p) for name in ("dictionary", "release", "private_data")),
]  # fmt: skip


def shortened(array: pa.Array, path: tuple[int, ...], length: int) -> pa.Array:
    """``array`` as the C data interface returns it if the child at ``path`` claims another length."""
    exported, schema = _ArrowArray(), ctypes.create_string_buffer(256)
    array._export_to_c(ctypes.addressof(exported), ctypes.addressof(schema))
    child = exported
    for step in path:
        child = child.children[step].contents
    child.length = length
    return pa.Array._import_from_c(ctypes.addressof(exported), ctypes.addressof(schema))


def group(**children: pa.Array) -> pa.Array:
    kind = pa.struct([(name, child.type) for name, child in children.items()])
    return pa.Array.from_buffers(kind, 2, [None], children=list(children.values()))


def invalid_lists() -> dict[str, pa.Array]:
    """Arrays of two lists of integers."""
    values = pa.array([1, 2, 3], pa.int64())
    ends, sizes = buffer([0, FAR, 3], "i4"), buffer([1, FAR], "i4")
    return {
        "list offsets beyond the elements": pa.Array.from_buffers(
            pa.list_(pa.int64()), 2, [None, ends], children=[values]
        ),
        "a list view beyond the elements": pa.Array.from_buffers(
            pa.list_view(pa.int64()), 2, [None, buffer([0, 1], "i4"), sizes], children=[values]
        ),
        "fewer elements than fixed-size lists": shortened(
            pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)), (0,), 3
        ),
    }


def invalid_variants() -> dict[str, pa.Array]:
    """Variant arrays of two rows, shredded ones among them."""
    metadata, value = pa.array([b"\x01\0\0"] * 2, pa.binary()), pa.array([b"\x0c\x05"] * 2, pa.binary())
    good = group(metadata=metadata, value=value)
    arrays = {
        "fewer values than rows": shortened(good, (1,), 1),
        "fewer metadata than rows": shortened(good, (0,), 1),
        "fewer typed values than rows": shortened(
            group(metadata=metadata, value=value, typed_value=pa.array([1, 2])), (2,), 1
        ),
    }
    for name, array in invalid_bytes(text=False).items():
        arrays[f"value: {name}"] = group(metadata=metadata, value=array)
        arrays[f"metadata: {name}"] = group(metadata=array, value=value)
        arrays[f"typed_value: {name}"] = group(metadata=metadata, value=pa.nulls(2, pa.binary()), typed_value=array)
    return arrays


def invalid_numbers() -> dict[str, pa.Array]:
    """Arrays of two doubles."""
    values = buffer([1.0, 2.0], "f8")
    return {
        "fewer nulls than claimed": pa.Array.from_buffers(
            pa.float64(), 2, [pa.py_buffer(b"\x03"), values], null_count=1
        ),
    }


def tables(arrays: dict[str, pa.Array], field: pa.Field | None = None) -> dict[str, pa.Table]:
    """Tables of a geometry column and of the array in column ``x``, or of the array in ``field``."""
    points = geo.from_points([1.0, 2.0], [3.0, 4.0])
    made = {}
    for name, array in arrays.items():
        if name == "fewer elements than fixed-size lists":
            continue  # pyarrow makes no table of it
        fields = [geo.geometry_field("g"), pa.field("x", array.type)]
        columns = [points, array]
        if field is not None:
            fields, columns = [field.with_type(array.type)], [array]
        made[name] = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    return made


def chunked(arrays: dict[str, pa.Array]) -> dict[str, Any]:
    """The arrays, and each as a later chunk of an array."""
    return arrays | {
        f"{name}, in a chunk": pa.chunked_array([array.slice(0, 0), array]) for name, array in arrays.items()
    }


TEXT, WKB = chunked(invalid_bytes(text=True)), chunked(invalid_bytes(text=False))
VARIANTS = chunked(invalid_variants())
ANY = TEXT | invalid_lists()
TABLES = tables(invalid_bytes(text=True) | invalid_lists())
GEOMETRY_TABLES = TABLES | tables(invalid_bytes(text=False), geo.geometry_field("g"))
NUMBERS = invalid_numbers()
BOX = (0, 0, 1, 1)
UNIT = geo.BoundingBox(0, 1, 0, 1)
GOOD = variant.parse_json(["1", "2"])


def write(table: pa.Table) -> None:
    with pqext.ParquetWriter(BytesIO(), table.schema) as writer:
        writer.write_table(table)


def save(table: pa.Table, partition_by: str) -> None:
    with TemporaryDirectory() as folder:
        pqext.write_dataset(table, f"{folder}/saved", partition_by)


def against_box(predicate: Callable[[Any, Any], Any], array: Any) -> Any:
    return predicate(array, BOX)


CALLS: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "pqext.write_table": (TABLES, lambda table: pqext.write_table(table, BytesIO())),
    "pqext.ParquetWriter": (TABLES, write),
    "pqext.write_dataset": (TABLES, lambda table: save(table.append_column("day", pa.array([1, 2])), "day")),
    "pqext.write_dataset, of folders": (tables(invalid_bytes(text=True)), lambda table: save(table, "x")),
    "pqext.filters.Column.isin": (TEXT | NUMBERS, lambda array: pqext.col("a").isin(array)),
    "pqext.variant.canonical": (VARIANTS, variant.canonical),
    "pqext.variant.delete": (VARIANTS, lambda array: variant.delete(array, "$.a")),
    "pqext.variant.equals": (VARIANTS, lambda array: variant.equals(array, GOOD)),
    "pqext.variant.equals, on the right": (VARIANTS, lambda array: variant.equals(GOOD, array)),
    "pqext.variant.explode": (VARIANTS, variant.explode),
    "pqext.variant.find_faults": (VARIANTS, variant.find_faults),
    "pqext.variant.from_arrow": (ANY | NUMBERS | VARIANTS, variant.from_arrow),
    "pqext.variant.from_arrow, of tables": (TABLES, variant.from_arrow),
    "pqext.variant.from_table": (TABLES, variant.from_table),
    "pqext.variant.get": (VARIANTS, lambda array: variant.get(array, "$.a", "string")),
    "pqext.variant.hash": (VARIANTS, variant.hash),
    "pqext.variant.infer_schema": (VARIANTS, variant.infer_schema),
    "pqext.variant.merge": (VARIANTS, lambda array: variant.merge(array, {"a": 1})),
    "pqext.variant.merge, with an array": (VARIANTS | ANY, lambda array: variant.merge(GOOD, array)),
    "pqext.variant.parse_json": (TEXT | WKB, variant.parse_json),
    "pqext.variant.parse_json, shredded": (TEXT | WKB, lambda array: variant.parse_json(array, shredding="infer")),
    "pqext.variant.set": (VARIANTS, lambda array: variant.set(array, "$.a", 1)),
    "pqext.variant.set, with an array": (VARIANTS | ANY, lambda array: variant.set(GOOD, "$.a", array)),
    "pqext.variant.shred": (VARIANTS, lambda array: variant.shred(array, "BIGINT")),
    "pqext.variant.strip_nulls": (VARIANTS, variant.strip_nulls),
    "pqext.variant.to_json": (VARIANTS, variant.to_json),
    "pqext.variant.to_python": (VARIANTS, variant.to_python),
    "pqext.variant.to_table": (VARIANTS, variant.to_table),
    "pqext.variant.unshred": (VARIANTS, variant.unshred),
    "pqext.variant.validate": (VARIANTS, variant.validate),
    "pqext.geo.as_extension": (GEOMETRY_TABLES, geo.as_extension),
    "pqext.geo.buffer": (WKB, lambda array: geo.buffer(array, 1.0)),
    "pqext.geo.densify": (WKB, geo.densify),
    "pqext.geo.dwithin": (WKB, lambda array: geo.dwithin(array, BOX, 1.0)),
    "pqext.geo.from_geoarrow": (TEXT, lambda array: geo.from_geoarrow(array, "geoarrow.wkt")),
    "pqext.geo.from_geoarrow, of lists": (
        invalid_lists(), lambda array: geo.from_geoarrow(array, "geoarrow.linestring")
    ),
    "pqext.geo.from_geojson": (TEXT, geo.from_geojson),
    "pqext.geo.from_points": (NUMBERS, lambda array: geo.from_points(array, array)),
    "pqext.geo.cells": (WKB, lambda array: geo.cells(array, "quadkey", 3)),
    "pqext.geo.from_wkt": (TEXT, geo.from_wkt),
    "pqext.geo.hilbert_index": (NUMBERS, lambda array: geo.hilbert_index(array, array, UNIT)),
    "pqext.geo.zorder_index": (NUMBERS, lambda array: geo.zorder_index(array, array, UNIT)),
    "pqext.geo.simplify": (WKB, lambda array: geo.simplify(array, 1.0)),
    "pqext.geo.snap_to_grid": (WKB, lambda array: geo.snap_to_grid(array, 1.0)),
    "pqext.geo.sort": (GEOMETRY_TABLES, lambda table: geo.sort(table, "g")),
    "pqext.geo.to_geopandas": (GEOMETRY_TABLES, geo.to_geopandas),
    "pqext.geo.transform": (WKB, lambda array: geo.transform(array, "EPSG:4326", "EPSG:3857")),
    "pqext.geo.write_geojson": (GEOMETRY_TABLES, lambda table: geo.write_geojson(table, BytesIO())),
}  # fmt: skip
for name in ("contains", "covered_by", "covers", "crosses", "disjoint", "equals", "intersects", "intersects_box",
             "overlaps", "touches", "within"):  # fmt: skip
    CALLS[f"pqext.geo.{name}"] = (WKB, partial(against_box, getattr(geo, name)))
for name in ("azimuth", "distance", "intersection", "union"):
    CALLS[f"pqext.geo.{name}"] = (WKB, partial(against_box, getattr(geo, name)))
for name in ("area", "boundary", "bounds", "centroid", "clamp", "convex_hull", "envelope", "find_faults",
             "geometry_type", "is_empty", "is_valid", "length", "linearize", "m", "make_valid", "num_points", "orient",
             "perimeter", "point_on_surface", "sort_indices", "statistics", "to_geojson", "to_iso_wkb", "to_shapely",
             "to_wkt", "validate", "x", "y", "z"):  # fmt: skip
    CALLS[f"pqext.geo.{name}"] = (WKB, getattr(geo, name))


def outcomes() -> Iterator[dict[str, str]]:
    for function, (arrays, call) in CALLS.items():
        for fault, array in arrays.items():
            yield {"function": function, "fault": fault}
            try:
                call(array)
                outcome = "nothing raised"
            except Exception as error:
                outcome = f"{type(error).__module__}.{type(error).__name__}: {error}"
            yield {"function": function, "fault": fault, "outcome": outcome}


if __name__ == "__main__":
    for line in outcomes():
        print(json.dumps(line), flush=True)
    sys.exit(0)
