"""Format rows as lines of JSON and CSV, and values as text, like DuckDB's casts.

Numbers have the fewest digits that identify the value in its type, and decimals all digits of their scale. Instants are
in UTC, binary values are escaped as in DuckDB, and nested values are JSON. Nested values without a JSON type are
strings that contain this text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.schema.types.marks import logical_name
from pqext.dataset.kernels.row_text import RowText, TextKind
from pqext.dataset.presentation.columns import SHOWN, Formats, is_geometry, is_variant, plain_layout
from pqext.variant.types import plain_binary

_CHUNK_BYTES = 1 << 20
"""Bytes of text written together."""
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def json_lines(batch: pa.RecordBatch, schema: pa.Schema, formats: Formats = SHOWN) -> Iterator[memoryview]:
    """Yield the rows of a batch as JSON objects, one per line, in chunks of text."""
    text = _Columns(batch.columns, schema, batch.num_rows, formats)
    return text.parts(text.rows.json)


def csv_lines(batch: pa.RecordBatch, schema: pa.Schema, formats: Formats = SHOWN) -> Iterator[memoryview]:
    """Yield the rows of a batch as CSV lines, in chunks of text. Nulls are empty, and empty text is ``""``."""
    text = _Columns(batch.columns, schema, batch.num_rows, formats)
    return text.parts(text.rows.csv)


def csv_heading(schema: pa.Schema) -> bytes:
    """Return the header line of a CSV file."""
    names = pa.schema([pa.field(str(i), pa.string()) for i in range(len(schema))])
    row = pa.RecordBatch.from_arrays([pa.array([name], pa.string()) for name in schema.names], schema=names)
    return b"".join(csv_lines(row, names)) if schema.names else b"\n"


def texts(array: pa.Array, field: pa.Field, formats: Formats = SHOWN) -> pa.StringArray:
    """Format each value of a column as text, null for nulls."""
    columns = _Columns([array], pa.schema([field]), len(array), formats)
    rows, validity, offsets, text, fault = columns.rows.texts(0)
    if fault:
        raise columns.error(fault, rows, 0)
    buffers = [pa.py_buffer(validity), pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.StringArray.from_buffers(rows, buffers[1], buffers[2], buffers[0])


class _Columns:
    """Description of the columns of a batch for the kernel."""

    def __init__(self, columns: list[pa.Array], schema: pa.Schema, rows: int, formats: Formats) -> None:
        self._formats = formats
        self._nodes: list[tuple[Any, ...]] = [()] * len(schema)
        self._names: list[bytes] = [_key(field.name) for field in schema]
        self._schema = schema
        for place, (array, field) in enumerate(zip(columns, schema, strict=True)):
            self._nodes[place] = self._node(array, field)
        self.rows = RowText(self._nodes, self._names, len(schema), rows)

    def parts(self, write: Callable[[int, int], tuple[int, Any, int, int]]) -> Iterator[memoryview]:
        """Yield the text of all rows in chunks produced by ``write``."""
        start = 0
        while start < self.rows.rows:
            rows, text, fault, column = write(start, _CHUNK_BYTES)
            start += rows
            if rows:
                yield memoryview(text)
            if fault:
                raise self.error(fault, start, column)

    def error(self, fault: int, row: int, column: int) -> Exception:
        """Return the exception for an error code that the kernel returned at ``row`` and ``column``."""
        from pqext.variant.kernels.binary import Fault

        name = self._schema.field(column).name
        if fault == Fault.FAULT_STRING_UTF8:
            return CorruptFileError(f"column {name!r}, row {row} of the batch: the text is not UTF-8")
        if fault in (Fault.FAULT_MEMORY, -1):
            return MemoryError("the text of the rows does not fit into memory; read fewer rows at a time")
        if fault == Fault.FAULT_TIME:
            return CorruptFileError(f"column {name!r}, row {row} of the batch: a time is negative")
        if fault == Fault.FAULT_ARROW:
            return CorruptFileError(f"column {name!r}, row {row} of the batch: offsets point outside the values")
        return LimitError(f"column {name!r}: the text is longer than 2 GiB; read fewer rows at a time")

    def _node(self, array: pa.Array, field: pa.Field) -> tuple[Any, ...]:
        """Describe a column or a nested array for the kernel, after adding the descriptions of its children."""
        kinds = TextKind
        if self._formats.geometry != "wkb" and is_geometry(field):
            from pqext.geo.text.wkt import to_wkt

            return _bytes_node(kinds.KIND_STRING, to_wkt(array))
        if self._formats.variants != "binary" and is_variant(field):
            from pqext.variant.json.text import to_display

            return _bytes_node(kinds.KIND_JSON, to_display(array))
        is_uuid = isinstance(field.type, pa.UuidType) or _marks_uuid(field)
        array = plain_layout(array)
        text_type = array.type
        if pa.types.is_run_end_encoded(text_type):
            return self._node(pc.run_end_decode(array), pa.field(field.name, text_type.value_type))
        if pa.types.is_nested(text_type):
            return self._nested_node(array)
        if pa.types.is_null(text_type):
            return _node(kinds.KIND_NULL, array, 1, values=None)
        if pa.types.is_fixed_size_binary(text_type):
            if is_uuid and text_type.byte_width == 16:
                return _node(kinds.KIND_UUID, array, 16)
            return _node(kinds.KIND_BINARY, array, text_type.byte_width)
        if _is_text(text_type):
            return _bytes_node(kinds.KIND_STRING, array)
        if pa.types.is_binary(text_type) or pa.types.is_large_binary(text_type) or pa.types.is_binary_view(text_type):
            return _bytes_node(kinds.KIND_BINARY, array)
        if pa.types.is_decimal(text_type):
            return _decimal_node(array)
        if pa.types.is_float16(text_type):
            array = array.cast(pa.float32())
        return _fixed_node(array)

    def _nested_node(self, array: pa.Array) -> tuple[Any, ...]:
        kinds, kind = TextKind, array.type
        if pa.types.is_struct(kind):
            fields = list(kind)
            children = [array.field(i) for i in range(len(fields))]
            return _node(
                kinds.KIND_STRUCT, array, 0, values=None, children=self._add_children(children, fields, is_named=True)
            )
        if pa.types.is_fixed_size_list(kind):
            size = kind.list_size
            values = array.values.slice(array.offset * size, len(array) * size)
            below = self._add_children([values], [kind.value_field])
            return _node(kinds.KIND_FIXED_LIST, array, size, values=None, children=below)
        wide = pa.types.is_large_list(kind)
        base, stop = (array.offsets[0].as_py(), array.offsets[-1].as_py()) if len(array) else (0, 0)
        if pa.types.is_map(kind):
            children = [part.slice(base, stop - base) for part in (array.keys, array.items)]
            below = self._add_children(children, [kind.key_field, kind.item_field])
            is_named = not pa.types.is_nested(kind.key_type) and not is_variant(kind.key_field)
            chosen = kinds.KIND_MAP if is_named else kinds.KIND_PAIRS
        else:
            below = self._add_children([array.values.slice(base, stop - base)], [kind.value_field])
            chosen = kinds.KIND_LIST
        offsets = array.buffers()[1] if len(array) else None
        return _node(chosen, array, 8 if wide else 4, values=None, offsets=offsets, base=base, children=below)

    def _add_children(self, arrays: list[pa.Array], fields: list[pa.Field], is_named: bool = False) -> tuple[int, int]:
        """Add the nodes of children; return the position of the first node and the number of nodes."""
        first = len(self._nodes)
        self._nodes += [()] * len(arrays)
        self._names += [_key(field.name) if is_named else b"" for field in fields]
        for place, (array, field) in enumerate(zip(arrays, fields, strict=True), first):
            self._nodes[place] = self._node(array, field)
        return first, len(arrays)


def _node(
    text_type: TextKind, array: pa.Array, width: int, *, scale: int = 0, values: int | None = 1,
    offsets: pa.Buffer | None = None, base: int = 0, children: tuple[int, int] = (0, 0),
) -> tuple[Any, ...]:
    """Describe an array for the kernel. ``values`` is the index of the array's value buffer."""
    buffers = array.buffers()
    validity = buffers[0] if array.null_count and text_type is not TextKind.KIND_NULL else None
    data = None if values is None else buffers[values]
    return (int(text_type), width, scale, len(array), array.offset, base, validity, data, offsets, *children)


def _bytes_node(text_type: TextKind, array: pa.Array) -> tuple[Any, ...]:
    array = plain_binary(array)
    wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    return _node(text_type, array, 8 if wide else 4, values=2, offsets=array.buffers()[1] if len(array) else None)


def _decimal_node(array: pa.Array) -> tuple[Any, ...]:
    kind = array.type
    if 0 <= kind.scale <= 38:
        if kind.byte_width < 16:
            array = array.cast(pa.decimal128(kind.precision, kind.scale))
        if pa.types.is_decimal128(array.type):
            return _node(TextKind.KIND_DECIMAL, array, 16, scale=kind.scale)
    return _bytes_node(TextKind.KIND_JSON, array.cast(pa.string()))  # digits and a point, a number of JSON


def _fixed_node(array: pa.Array) -> tuple[Any, ...]:
    kinds, kind = TextKind, array.type
    width = kind.bit_width // 8
    if pa.types.is_boolean(kind):
        return _node(kinds.KIND_BOOL, array, 0)
    if pa.types.is_signed_integer(kind) or pa.types.is_unsigned_integer(kind):
        return _node(kinds.KIND_INT if pa.types.is_signed_integer(kind) else kinds.KIND_UINT, array, width)
    if pa.types.is_floating(kind):
        return _node(kinds.KIND_FLOAT, array, width)
    if pa.types.is_date(kind):
        return _node(kinds.KIND_DATE, array, width)
    if pa.types.is_timestamp(kind):
        chosen = kinds.KIND_TIMESTAMP if kind.tz is None else kinds.KIND_INSTANT
        return _node(chosen, array, width, scale=_DIGITS[kind.unit])
    if pa.types.is_time(kind):
        return _node(kinds.KIND_TIME, array, width, scale=_DIGITS[kind.unit])
    if pa.types.is_duration(kind):
        return _node(kinds.KIND_DURATION, array, width, scale=_DIGITS[kind.unit])
    if pa.types.is_interval(kind):
        return _node(kinds.KIND_INTERVAL, array, width)
    return _bytes_node(kinds.KIND_STRING, array.cast(pa.string()))


def _key(name: str) -> bytes:
    return json.dumps(name, ensure_ascii=False).encode() + b": "


def _marks_uuid(field: pa.Field) -> bool:
    try:
        return logical_name(field.metadata or {}) == "UUID"
    except ValueError:
        return False


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))
