"""Validate Arrow arrays, so that inconsistent arrays are rejected before their buffers are accessed.

Arrow validates arrays only on request. Arrays from the C data interface, from files or from other libraries may contain
offsets, views, indices or run ends outside their buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from pqext.core.base.buffers import numbers
from pqext.core.schema.types.arrow_compute import map_types

Column = TypeVar("Column", pa.Array, pa.ChunkedArray)


def check_table(table: pa.Table) -> None:
    """Raise a ``ValueError`` that names the column if a buffer, offset, view, index or child of ``table`` is invalid.

    Values are not checked, such as invalid UTF-8, decimals with too many digits and times beyond the day. The code that
    stores them checks them.
    """
    layouts: dict[pa.DataType, pa.DataType] = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        _check_chunks(column.chunks, column.type, f"column {field.name!r}", layouts)


def check_array(array: Column) -> Column:
    """Return ``array`` if its buffers, offsets, views, indices and children are valid. Values are not checked.

    Every public function that accepts Arrow arrays calls this function before it accesses them, also with Arrow's
    functions, which do not check arrays.

    Raises:
        ValueError: If the array is invalid.
    """
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    _check_chunks(chunks, array.type, "the argument", {})
    return array


def _check_chunks(
    chunks: Sequence[pa.Array], type_: pa.DataType, name: str, layouts: dict[pa.DataType, pa.DataType]
) -> None:
    try:
        if type_.id in _FLAT:
            for chunk in chunks:
                chunk.validate(full=chunk.buffers()[0] is not None)  # no buffer to check, but nulls to count
            return
        if type_.id in _BINARY:
            for chunk in chunks:
                _check_binary(chunk)
            return
        # Extension types defined in Python have no hash.
        known = not isinstance(type_, pa.BaseExtensionType)
        layout = layouts.get(type_) if known else None
        if layout is None:
            layout = _layout(type_)
            if known:
                layouts[type_] = layout
        for chunk in chunks:
            _check(chunk, layout)
    except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
        raise ValueError(f"{name} is not a valid Arrow array: {error}") from None


_FLAT = frozenset(
    kind.id
    for kind in (
        pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        pa.float16(), pa.float32(), pa.float64(),
    )
)
_INLINE = 12
"""Maximum length of values that are stored in the view itself."""
_BLOCK = 1 << 14
"""Number of offsets that are compared at a time, so that they fit into the processor's cache."""
_BINARY = {
    pa.string().id: pa.binary(), pa.binary().id: pa.binary(), pa.large_string().id: pa.large_binary(),
    pa.large_binary().id: pa.large_binary(),
}


def _check_binary(array: pa.Array) -> None:
    """Validate a string or binary array, except for UTF-8. This takes half as long as Arrow's full validation."""
    array.validate()  # checks only the first and the last offset
    _check_nulls(array)
    if not len(array):
        return
    bare, offsets = _BINARY[array.type.id], array.buffers()[1]
    width = np.int64 if bare == pa.large_binary() else np.int32
    ends = numbers(offsets, width, array.offset, len(array) + 1)
    for start in range(0, len(array), _BLOCK):
        block = ends[start : start + _BLOCK + 1]
        if np.less(block[1:], block[:-1]).any():
            array.view(bare).validate(full=True)  # the error names the row


def _check_nulls(array: pa.Array) -> None:
    """Raise ``ArrowInvalid`` unless the array has the number of nulls that it declares."""
    validity = array.buffers()[0]
    if validity is not None:
        # Arrow counts the nulls. The validity bits also serve as values.
        bits = [validity, validity]
        pa.Array.from_buffers(pa.bool_(), len(array), bits, array.null_count, array.offset).validate(full=True)


def _check(array: pa.Array, layout: pa.DataType) -> None:
    array.validate()
    _check_fixed_size_lists(array)
    held = array.storage if isinstance(array, pa.ExtensionArray) else array
    try:
        _check_all(held, layout)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Not every layout can be viewed, and views of sliced run ends are wrong.
        _check_visible(held)
    _check_null_views(held)


def _check_null_views(array: pa.Array) -> None:
    """Raise ``ArrowInvalid`` if the view in a null slot is invalid: its length, buffer index or offset.

    Arrow's casts read these views too.
    """
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_struct(array.type):
        for index in range(array.type.num_fields):
            _check_null_views(array.field(index))
    if not (pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type)) or not array.null_count:
        return
    _, views, *data = array.buffers()
    entries = numbers(views, np.int32, 4 * array.offset, 4 * len(array)).reshape(-1, 4).astype(np.int64)
    length, _, number, start = entries[array.is_null().to_numpy(zero_copy_only=False)].T
    sizes = np.array([0 if buffer is None else buffer.size for buffer in data] + [0], np.int64)
    is_outside = (number < 0) | (number >= len(data))
    stop = sizes[np.where(is_outside, len(data), number)]
    if ((length < 0) | ((length > _INLINE) & (is_outside | (start < 0) | (start + length > stop)))).any():
        raise pa.ArrowInvalid("the view in a null slot has an invalid length, buffer index or offset")


def _check_fixed_size_lists(array: pa.Array) -> None:
    """Raise ``ArrowInvalid`` if fixed-size lists extend beyond the child array. Arrow's validation ignores the offset.
    """
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_struct(kind) or pa.types.is_union(kind):
        children = [array.field(index) for index in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        children = [array.keys, array.items]
    elif pa.types.is_dictionary(kind):
        children = [array.dictionary]
    elif pa.types.is_run_end_encoded(kind) or _null_list_type(kind) is not None:
        children = [array.values]
    else:
        return
    if pa.types.is_fixed_size_list(kind) and (array.offset + len(array)) * kind.list_size > len(array.values):
        raise pa.ArrowInvalid(
            f"{len(array)} lists of {kind.list_size} elements at offset {array.offset} exceed the {len(array.values)} "
            "elements of their child"
        )
    for child in children:
        _check_fixed_size_lists(child)


def _check_all(array: pa.Array, layout: pa.DataType) -> None:
    """Validate an array completely. It is viewed as type ``layout``, which Arrow validates faster."""
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.type.id in _BINARY:
        _check_binary(array)
    elif pa.types.is_struct(array.type):
        _check_nulls(array)
        for index in range(array.type.num_fields):
            _check_all(array.field(index), layout.field(index).type)
    else:
        (array if array.type == layout else array.view(layout)).validate(full=True)


def _check_visible(array: pa.Array) -> None:
    """Validate an array completely, except for values below null structs.

    pyarrow itself stores indices into empty dictionaries there.
    """
    kind = array.type
    if pa.types.is_struct(kind):
        for child in array.flatten():
            _check_visible(child)
    elif (list_type := _null_list_type(kind)) is not None:
        buffers = array.buffers()[: list_type.num_buffers]
        nulls = [pa.nulls(len(array.values))]
        pa.Array.from_buffers(list_type, len(array), buffers, array.null_count, array.offset, nulls).validate(full=True)
        _check_visible(array.values)
    elif isinstance(array, pa.ExtensionArray):
        _check_visible(array.storage)
    else:
        array.validate(full=True)


def _null_list_type(type_: pa.DataType) -> pa.DataType | None:
    """Return the corresponding list type with elements of the null type; None if ``type_`` is not a list type."""
    if pa.types.is_list(type_) or pa.types.is_map(type_):
        return pa.list_(pa.null())
    if pa.types.is_large_list(type_):
        return pa.large_list(pa.null())
    if pa.types.is_list_view(type_):
        return pa.list_view(pa.null())
    if pa.types.is_large_list_view(type_):
        return pa.large_list_view(pa.null())
    return pa.list_(pa.null(), type_.list_size) if pa.types.is_fixed_size_list(type_) else None


def _layout(type_: pa.DataType) -> pa.DataType:
    """Return a type that has the same buffers as ``type_`` and that Arrow validates faster."""
    leaves: list[pa.DataType] = []

    def collect(leaf: pa.DataType) -> pa.DataType:
        leaves.append(leaf)
        return leaf

    same = map_types(type_, collect)
    # Views of null arrays within others have wrong lengths, and abort the process if they are keys of maps.
    return same if any(map(pa.types.is_null, leaves)) else map_types(type_, _simplify_type)


def _simplify_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return a type that has the same buffers and that Arrow validates faster."""
    for is_kind, bare in _BARE:
        if is_kind(arrow_type):
            return bare
    return pa.binary(arrow_type.byte_width) if pa.types.is_decimal(arrow_type) else arrow_type


_BARE = (
    (pa.types.is_string, pa.binary()),
    (pa.types.is_large_string, pa.large_binary()),
    (pa.types.is_string_view, pa.binary_view()),
    (pa.types.is_time32, pa.int32()),
    (pa.types.is_time64, pa.int64()),
    (pa.types.is_date64, pa.int64()),
)
