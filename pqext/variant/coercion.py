"""Convert array arguments (pandas, polars, lists, C data interface) to Arrow, and replace view layouts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.schema.arrow_check import check_array
from pqext.core.schema.data_frames import to_arrow_types
from pqext.variant.binary_value import BinaryVariant
from pqext.variant.types import VariantLike, variant_type

_LARGE = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}

Column = TypeVar("Column", pa.Array, pa.ChunkedArray)


def as_arrow(values: Any, name: str = "an array") -> VariantLike:
    """Convert ``values`` to an Arrow array or chunked array.

    ``values`` is an Arrow array, a list or tuple, a numpy array, a pandas or polars Series, or any object that has
    ``__arrow_c_array__`` or ``__arrow_c_stream__`` (a stream becomes a chunked array). ``name`` is the name of the
    argument in errors. Raises ``TypeError`` for other objects, and ``ValueError`` for a list whose items have no common
    Arrow type and for an invalid array.
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return check_array(values)
    if isinstance(values, str | bytes | bytearray | memoryview):
        hint = "; pqext.variant.read_json reads files" if _is_file_name(values) else ""
        raise TypeError(f"expected {name}, not a single {type(values).__name__}; pass a list{hint}")
    values = to_arrow_types(values)
    try:
        if hasattr(values, "__arrow_c_stream__") and not hasattr(values, "__arrow_c_array__"):
            return check_array(pa.chunked_array(values))
        if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_array__") or hasattr(values, "__array__"):
            return check_array(pa.array(values, from_pandas=True if hasattr(values, "__array__") else None))
        if isinstance(values, list | tuple):
            return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"{type(values).__name__} cannot be converted to {name}: {error}") from None
    if isinstance(values, PurePath):
        raise TypeError(f"expected {name}, not a path; pqext.variant.read_json reads files")
    hint = "; pass a slice, array[i:i + 1]" if isinstance(values, pa.Scalar) else ""
    raise TypeError(f"expected {name}, not {type(values).__name__}{hint}")


def _is_file_name(text: Any) -> bool:
    """Return whether ``text`` is a string that ends like the name of a JSON file."""
    ends = (".json", ".jsonl", ".ndjson", ".gz", ".bz2", ".zst")
    return isinstance(text, str) and text.lower().endswith(ends)


def as_texts(values: Any) -> VariantLike:
    """Convert ``values`` to an array of strings or binary values; see :func:`as_arrow`.

    A list may mix strings and bytes. Raises ``TypeError`` for a list with other items.
    """
    what = "an array of JSON strings"
    if isinstance(values, list | tuple):
        values = pa.array(_encode_texts(values), pa.binary())
    array = as_arrow(values, what)
    if pa.types.is_null(array.type):
        return array.cast(pa.string())
    return array


def _encode_texts(values: Sequence[Any]) -> list[bytes | None]:
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, str | bytes):
            raise TypeError(f"expected an array of JSON strings, but item {row} has type {type(value).__name__}")
    return [value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value for value in values]


def as_variants(values: Any) -> VariantLike:
    """Convert ``values`` to a variant array like :func:`as_arrow`; a list must contain ``Variant`` objects or None."""
    if isinstance(values, list | tuple):
        rows = []
        for row, value in enumerate(values):
            if value is not None and not isinstance(value, BinaryVariant):
                result = type(value).__name__
                raise TypeError(
                    f"expected a variant array, but item {row} has type {result}; use variant.from_python"
                )
            rows.append(None if value is None else {"metadata": value.metadata, "value": value.value})
        return pa.array(rows, variant_type())
    return as_arrow(values, "a variant array")


def replace_views(type: pa.DataType) -> pa.DataType:
    """Return ``type`` with large layouts instead of views, and with decimal128 for the values of decimal dictionaries.
    """
    types = pa.types
    if type in _LARGE:
        return _LARGE[type]
    if types.is_struct(type):
        return pa.struct([_replace_views_in_field(member) for member in type])
    if types.is_map(type):
        key, item = _replace_views_in_field(type.key_field), _replace_views_in_field(type.item_field)
        return pa.map_(key, item, type.keys_sorted)
    if types.is_fixed_size_list(type):
        return pa.list_(_replace_views_in_field(type.value_field), type.list_size)
    if types.is_list(type):
        return pa.list_(_replace_views_in_field(type.value_field))
    if types.is_large_list(type) or types.is_list_view(type) or types.is_large_list_view(type):
        return pa.large_list(_replace_views_in_field(type.value_field))
    if types.is_dictionary(type):
        values = replace_views(type.value_type)
        if types.is_decimal32(values) or types.is_decimal64(values):
            values = pa.decimal128(values.precision, values.scale)
        return pa.dictionary(type.index_type, values, type.ordered)
    return type


def _replace_views_in_field(field: pa.Field) -> pa.Field:
    return field.with_type(replace_views(field.type))


def take_without_views(array: Column, indices: pa.Array) -> Column:
    """Return ``array.take(indices)``. View layouts are replaced, because Arrow cannot take from all of them."""
    plain = replace_views(array.type)
    return (array if plain == array.type else array.cast(plain)).take(indices)


def restore_views(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Convert an array of type ``replace_views(type)`` to ``type``."""
    types = pa.types
    if array.type == type:
        return array
    if types.is_list_view(type) or types.is_large_list_view(type):
        make = pa.LargeListViewArray if types.is_large_list_view(type) else pa.ListViewArray
        width = pa.int64() if types.is_large_list_view(type) else pa.int32()
        sizes = pc.add(array.value_lengths().fill_null(0), 0).cast(width)
        starts = pc.add(array.offsets.slice(0, len(array)), 0).cast(width)
        mask = array.is_null() if array.null_count else None
        return make.from_arrays(starts, sizes, restore_views(array.values, type.value_type), type=type, mask=mask)
    if types.is_struct(type):
        members = [restore_views(member, field.type) for member, field in zip(array.flatten(), type, strict=True)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(members, fields=list(type), mask=mask)
    if types.is_map(type) or types.is_fixed_size_list(type) or types.is_list(type) or types.is_large_list(type):
        if types.is_map(type):
            entry = pa.struct([type.key_field, type.item_field])
            parts = [restore_views(array.keys, type.key_type), restore_views(array.items, type.item_type)]
            values = pa.StructArray.from_arrays(parts, fields=list(entry))
        else:
            values = restore_views(array.values, type.value_type)
        buffers = array.buffers()[: 1 if types.is_fixed_size_list(type) else 2]
        return pa.Array.from_buffers(type, len(array), buffers, array.null_count, array.offset, children=[values])
    return array.cast(type)
