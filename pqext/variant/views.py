"""Convert view layouts of text, bytes and lists, which few Arrow kernels support."""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

_LARGE = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}

Column = TypeVar("Column", pa.Array, pa.ChunkedArray)


def without_views(type: pa.DataType) -> pa.DataType:
    """Return ``type`` with large layouts instead of views, and with supported dictionaries of decimals."""
    types = pa.types
    if type in _LARGE:
        return _LARGE[type]
    if types.is_struct(type):
        return pa.struct([_plain_field(member) for member in type])
    if types.is_map(type):
        return pa.map_(_plain_field(type.key_field), _plain_field(type.item_field), type.keys_sorted)
    if types.is_fixed_size_list(type):
        return pa.list_(_plain_field(type.value_field), type.list_size)
    if types.is_list(type):
        return pa.list_(_plain_field(type.value_field))
    if types.is_large_list(type) or types.is_list_view(type) or types.is_large_list_view(type):
        return pa.large_list(_plain_field(type.value_field))
    if types.is_dictionary(type):
        values = without_views(type.value_type)
        if types.is_decimal32(values) or types.is_decimal64(values):
            values = pa.decimal128(values.precision, values.scale)
        return pa.dictionary(type.index_type, values, type.ordered)
    return type


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(without_views(field.type))


def take(array: Column, indices: pa.Array) -> Column:
    """Return ``array.take(indices)`` for any type, in layouts without views."""
    plain = without_views(array.type)
    return (array if plain == array.type else array.cast(plain)).take(indices)


def with_views(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Convert an array of ``without_views(type)`` to ``type``."""
    types = pa.types
    if array.type == type:
        return array
    if types.is_list_view(type) or types.is_large_list_view(type):
        make = pa.LargeListViewArray if types.is_large_list_view(type) else pa.ListViewArray
        width = pa.int64() if types.is_large_list_view(type) else pa.int32()
        sizes = pc.add(array.value_lengths().fill_null(0), 0).cast(width)
        starts = pc.add(array.offsets.slice(0, len(array)), 0).cast(width)
        mask = array.is_null() if array.null_count else None
        return make.from_arrays(starts, sizes, with_views(array.values, type.value_type), type=type, mask=mask)
    if types.is_struct(type):
        members = [with_views(member, field.type) for member, field in zip(array.flatten(), type, strict=True)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(members, fields=list(type), mask=mask)
    if types.is_map(type) or types.is_fixed_size_list(type) or types.is_list(type) or types.is_large_list(type):
        if types.is_map(type):
            entry = pa.struct([type.key_field, type.item_field])
            parts = [with_views(array.keys, type.key_type), with_views(array.items, type.item_type)]
            values = pa.StructArray.from_arrays(parts, fields=list(entry))
        else:
            values = with_views(array.values, type.value_type)
        buffers = array.buffers()[: 1 if types.is_fixed_size_list(type) else 2]
        return pa.Array.from_buffers(type, len(array), buffers, array.null_count, array.offset, children=[values])
    return array.cast(type)
