"""Properties of GeoJSON features as columns: types, exact integers, and a bound for features with few of many names."""

from __future__ import annotations

import json
from io import BytesIO
from secrets import randbits
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pajson

from pqext.core.base.errors import GeometryError, LimitError
from pqext.geo.kernels.property_paths import measure

_LEAST_CELLS = 1 << 24
_CELLS_PER_BYTE = 8
"""Cells of a table for each byte of text: where features have few of very many names, the table is mostly nulls."""
_MAX_PATHS = 1 << 22
_DECIMAL = pa.decimal128(38, 0)
_INT64 = 1 << 63


def objects(lines: Any, rows: int, longest: int) -> pa.Table:
    """A table of JSON objects, one a line.

    Integers beyond INT64 make a DECIMAL(38,0), or text if they have more digits. Raises ``LimitError`` if the table
    would be far larger than the text.
    """
    cells, names, big = measure(lines, randbits(64), _MAX_PATHS) if rows else (0, 0, [])
    if names >= _MAX_PATHS or cells > max(_LEAST_CELLS, _CELLS_PER_BYTE * len(memoryview(lines))):
        raise LimitError(
            f"features have {names:,} names of properties, which would make {cells:,.0f} cells, mostly nulls; pass "
            "properties= with the name of one column for all of them"
        )
    options = pajson.ReadOptions(use_threads=True, block_size=max(1 << 20, 2 * longest))
    try:
        table = pajson.read_json(BytesIO(lines), options) if rows else pa.table({})
        if big and (exact := _exact_fields(table.schema, big)):
            parsing = pajson.ParseOptions(explicit_schema=pa.schema(exact), unexpected_field_behavior="infer")
            table = pajson.read_json(BytesIO(lines), options, parsing).select(table.column_names)
    except pa.ArrowInvalid:  # a column of several kinds, or an integer of more than 38 digits
        try:
            table = _mixed([json.loads(line) for line in bytes(lines).splitlines()])
        except (RecursionError, ValueError) as error:  # half a surrogate pair, or more digits than Python takes
            raise GeometryError(f"the properties cannot be held: {error}", rule="geo.geojson.features") from None
    if not table.num_columns:
        return pa.Table.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return table


def as_text(lines: Any, rows: int) -> pa.Array:
    """JSON objects, one a line, as an array of text."""
    data = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(data == ord("\n")) + 1
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    texts = pa.LargeStringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(lines))
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        raise GeometryError(f"the properties are not UTF-8: {error}", rule="geo.geojson.features") from None
    return pa.compute.utf8_rtrim(texts, "\n")


def _exact_fields(schema: pa.Schema, big: list[tuple[bytes | None, ...]]) -> list[pa.Field]:
    """The fields of ``schema`` that hold integers beyond INT64, with decimals in the place of doubles."""
    exact: dict[str, pa.Field] = {}
    for path in big:
        top, *below = [None if name is None else json.loads(b'"' + name + b'"') for name in path]
        field = exact.get(str(top)) or schema.field(top)
        exact[str(top)] = field.with_type(_with_decimal(field.type, below))
    return list(exact.values())


def _with_decimal(type: pa.DataType, path: list[str | None]) -> pa.DataType:
    if not path:
        return _DECIMAL if pa.types.is_float64(type) else type
    if path[0] is None:
        return pa.list_(_with_decimal(type.value_type, path[1:]))
    fields = [one if one.name != path[0] else one.with_type(_with_decimal(one.type, path[1:])) for one in type]
    return pa.struct(fields)


def _mixed(objects: list[dict[str, Any]]) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name in dict.fromkeys(name for one in objects for name in one):
        columns[name] = _column([one.get(name) for one in objects])
    return pa.table(columns)


def _column(values: list[Any]) -> pa.Array:
    integers = [value for value in values if value is not None]
    if integers and all(type(value) is int for value in integers):
        if -_INT64 <= min(integers) <= max(integers) < _INT64:
            return pa.array(values, pa.int64())
        try:
            return pa.array(values, _DECIMAL)
        except (pa.ArrowInvalid, OverflowError):
            return pa.array([None if value is None else str(value) for value in values], pa.string())
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else json.dumps(value) for value in values], pa.string())
