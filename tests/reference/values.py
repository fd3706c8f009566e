"""The values of an Arrow array as plain Python ones that compare exactly, whichever reader made the array.

What differs between readers and means nothing is left out: offset widths, views, dictionaries, the unit of a
timestamp, the width of a decimal's storage, text given as bytes, struct names that a reader makes up. What means
something stays: nulls, the bits of floating-point numbers (all NaNs are one), the order of fields and entries.
"""

from __future__ import annotations

import struct
from decimal import Context
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

EXACT = Context(prec=200)
NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def plain(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values: None, bool, int, bytes, (for numbers with a fraction) text or bits, tuples of those."""
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in plain(chunk)]
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(array.storage)
    if is_.is_dictionary(kind):
        # Below a null struct Arrow itself leaves indices into a dictionary that is empty.
        entries = plain(array.dictionary)
        return [entries[at] if at is not None and entries else None for at in array.indices.to_pylist()]
    if is_.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(array))
    if is_.is_nested(kind):
        return _nested(array, kind)
    if is_.is_floating(kind):
        return [None if value is None else _bits(value) for value in _floats(array)]
    if is_.is_date(kind):
        unit = 86_400_000 if is_.is_date64(kind) else 1
        return [None if v is None else v // unit for v in _integers(array)]
    if is_.is_timestamp(kind) or is_.is_time(kind) or is_.is_duration(kind):
        factor = NANOSECONDS[kind.unit]
        return [None if v is None else v * factor for v in _integers(array)]
    if is_.is_decimal(kind):
        return [None if v is None else (int(v.scaleb(kind.scale, EXACT)), kind.scale) for v in _decimals(array)]
    if is_.is_interval(kind):
        return [None if v is None else tuple(v) for v in array.to_pylist()]
    values = array.to_pylist()
    return [value.encode() if isinstance(value, str) else value for value in values]


def columns(table: pa.Table) -> list[tuple[str, list[Any]]]:
    """Name and plain values of each column."""
    return [(name, plain(table.column(at))) for at, name in enumerate(table.schema.names)]


def _nested(array: pa.Array, kind: pa.DataType) -> list[Any]:
    valid = array.is_valid().to_pylist()
    elements: list[Any]
    if is_.is_struct(kind):
        children = [plain(array.field(at)) for at in range(kind.num_fields)]
        return [tuple(child[at] for child in children) if ok else None for at, ok in enumerate(valid)]
    if is_.is_fixed_size_list(kind):
        elements, size, first = plain(array.values), kind.list_size, array.offset
        starts = [(first + at) * size for at in range(len(array))]
        return [elements[start : start + size] if ok else None for start, ok in zip(starts, valid, strict=True)]
    if is_.is_list_view(kind) or is_.is_large_list_view(kind):
        # Read by offset and size: Arrow's cast of views to lists makes arrays that are not valid.
        elements = plain(array.values)
        places = zip(array.offsets.to_pylist(), array.sizes.to_pylist(), valid, strict=True)
        return [elements[start : start + size] if ok else None for start, size, ok in places]
    if is_.is_map(kind):
        keys, items = plain(array.keys), plain(array.items)
        elements = list(zip(keys, items, strict=True))
    else:
        elements = plain(array.values)
    offsets = array.offsets.to_pylist()
    return [elements[offsets[at] : offsets[at + 1]] if ok else None for at, ok in enumerate(valid)]


def _integers(array: pa.Array) -> list[Any]:
    narrow = is_.is_time32(array.type) or is_.is_date32(array.type)
    return array.cast(pa.int32() if narrow else pa.int64()).to_pylist()  # type: ignore[no-any-return]


def _floats(array: pa.Array) -> list[Any]:
    return array.cast(pa.float64()).to_pylist()  # type: ignore[no-any-return]


def _decimals(array: pa.Array) -> list[Any]:
    return pc.cast(array, pa.decimal256(76, array.type.scale)).to_pylist()  # type: ignore[no-any-return]


def _bits(value: float) -> str:
    return "nan" if value != value else struct.pack(">d", value).hex()
