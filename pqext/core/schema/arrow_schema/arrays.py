"""Convert arrays of the types that Parquet determines to the types in the stored Arrow schema."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import allocate, view
from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.kernels.decode import selected_values
from pqext.core.schema.arrow_schema.types import type_of
from pqext.core.schema.types.arrow_compute import select_flagged

_MOST_FILLED = 1 << 30
"""Maximum number of fixed-size list elements that fill null lists. Their memory is counted in advance."""
_MAX_TAKEN_ELEMENTS = 1 << 22
"""Maximum number of elements that are looked up individually. More elements are copied run by run."""
_ADVICE = "; the file's ARROW:schema is wrong for this column, so read it with arrow_schema=False"


def restore_type(array: pa.Array, original: pa.DataType) -> pa.Array:
    """Convert ``array`` to its ``original`` Arrow type, or to the nearest type that its Parquet type allows.

    :func:`type_of` chooses the type. Raises ``CorruptFileError`` if this type cannot represent a value.
    """
    requested = type_of(_value_type(array.type), original)
    return array if array.type == requested else _convert_array(array, requested)


def plain_container(target: pa.DataType) -> pa.DataType:
    """Return the struct, list or map type from which :func:`restore_type` converts arrays to type ``target``."""
    types = pa.types
    while isinstance(target, pa.BaseExtensionType):
        target = target.storage_type
    if types.is_map(target):
        return pa.map_(target.key_field, target.item_field) if target.keys_sorted else target
    is_other = (types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)
    return pa.list_(target.value_field) if any(is_kind(target) for is_kind in is_other) else target


def null_list_length(original: pa.DataType) -> int:
    """Return the number of child elements of a null list: the list size for fixed-size lists, otherwise 0.
    """
    while isinstance(original, pa.BaseExtensionType):
        original = original.storage_type
    return int(original.list_size) if pa.types.is_fixed_size_list(original) else 0


def _value_type(arrow_type: pa.DataType) -> pa.DataType:
    return arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type


def _convert_array(array: pa.Array, target: pa.DataType) -> pa.Array:
    types = pa.types
    if isinstance(target, pa.BaseExtensionType):
        storage = target.storage_type
        return target.wrap_array(array if array.type == storage else _convert_array(array, storage))
    if types.is_dictionary(target):
        return _to_dictionary(array, target)
    if types.is_timestamp(target) or types.is_duration(target):
        return array.view(target)
    if types.is_map(target):
        keys, items = array.keys, array.items
        pair = pa.struct([target.key_field, target.item_field])
        entries = pa.Array.from_buffers(pair, len(keys), [None], children=[keys, items])
        return pa.Array.from_buffers(target, len(array), array.buffers()[:2], offset=array.offset, children=[entries])
    if types.is_fixed_size_list(target):
        return _to_fixed_size_list(array, target)
    if types.is_list_view(target) or types.is_large_list_view(target) or types.is_large_list(target):
        return _to_list(array, target)
    try:
        return array.cast(target)
    except pa.ArrowInvalid as error:
        raise CorruptFileError(f"{error}{_ADVICE}") from None


def _to_dictionary(array: pa.Array, target: pa.DataType) -> pa.Array:
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    indices = array.indices
    if indices.type != target.index_type:
        try:
            indices = indices.cast(target.index_type)
        except pa.ArrowInvalid:
            raise CorruptFileError(
                "a row group has more distinct values than dictionary indices of type "
                f"{target.index_type} can represent{_ADVICE}"
            ) from None
    return pa.DictionaryArray.from_arrays(indices, array.dictionary, ordered=target.ordered, safe=False)


def _to_list(array: pa.Array, target: pa.DataType) -> pa.Array:
    types = pa.types
    width = np.int32 if types.is_list_view(target) else np.int64
    offsets = array.offsets.to_numpy().astype(width)
    validity = array.is_valid().buffers()[1] if array.null_count else None
    if types.is_large_list(target):
        buffers = [validity, pa.py_buffer(offsets)]
    else:
        buffers = [validity, pa.py_buffer(offsets[:-1].copy()), pa.py_buffer(np.diff(offsets))]
    return pa.Array.from_buffers(target, len(array), buffers, children=[array.values])


def _to_fixed_size_list(array: pa.Array, target: pa.DataType) -> pa.Array:
    size, count = target.list_size, len(array)
    offsets = array.offsets.to_numpy()
    present = array.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.diff(offsets)
    if (lengths[present] != size).any():
        result = lengths[present]
        actual = result[result != size][0]
        raise CorruptFileError(f"a list has {actual} elements, but the column type is {target}{_ADVICE}")
    validity = array.is_valid().buffers()[1] if array.null_count else None
    values = array.values
    if validity is not None or lengths[~present].any():
        if (count - int(present.sum())) * size > _MOST_FILLED:
            raise LimitError(f"null lists of {size} elements need too much memory{_ADVICE}")
        values = _fill_lists(values, offsets, present, size)
    else:
        first, last = (int(offsets[0]), int(offsets[-1])) if count else (0, 0)
        values = values.slice(first, last - first)
    return pa.Array.from_buffers(target, count, [validity], children=[values])


_NEARLY_ALL = 0.9
"""Minimum fraction of rows from which filtering each column by the mask is faster than by positions."""


def filter_batch(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows of ``batch`` where ``mask`` is true. Types that Arrow cannot filter are supported too."""
    columns = [_filter_fixed_width(column, mask) for column in batch.columns]
    others = [index for index, column in enumerate(columns) if column is None]
    if len(others) == len(columns):
        return _filter_columns(batch, mask)
    if others:
        rest = _filter_columns(batch.select(others), mask)
        for index, column in zip(others, rest.columns, strict=True):
            columns[index] = column
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _filter_fixed_width(array: pa.Array, mask: pa.BooleanArray) -> pa.Array | None:
    """Return the values where ``mask`` is true; None if the values have nulls or no fixed width in bytes."""
    type = array.type
    if not len(array):
        return array
    if array.null_count or mask.null_count or not (pa.types.is_primitive(type) or pa.types.is_decimal(type)):
        return None
    width, bits = divmod(type.bit_width, 8)
    if bits:
        return None
    count, start = mask.true_count, array.offset * width
    result = allocate(count * width)
    values = view(array.buffers()[1])[start : start + len(array) * width]
    selected_values.filter_fixed(values, width, view(mask.buffers()[1]), mask.offset, result)
    return pa.Array.from_buffers(type, count, [None, pa.py_buffer(result)])


def _filter_columns(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    is_dense = batch.num_columns == 1 and not batch.column(0).null_count
    try:
        if not batch.num_columns or (not is_dense and mask.true_count <= _NEARLY_ALL * len(mask)):
            return batch.filter(mask)  # Arrow converts the mask to positions, which all columns share
        return pa.RecordBatch.from_arrays([column.filter(mask) for column in batch.columns], schema=batch.schema)
    except pa.ArrowNotImplementedError:
        flags = mask.fill_null(False).to_numpy(zero_copy_only=False)
        return pa.RecordBatch.from_arrays(
            [select_flagged(column, flags) for column in batch.columns], schema=batch.schema
        )


def _fill_lists(values: pa.Array, offsets: NDArray[np.int32], present: NDArray[np.bool_], size: int) -> pa.Array:
    """Return ``size`` elements for each list. The elements are null for lists that are not ``present``."""
    if isinstance(values, pa.ExtensionArray):
        return values.type.wrap_array(_fill_lists(values.storage, offsets, present, size))
    if len(present) * size <= _MAX_TAKEN_ELEMENTS:
        places = (offsets[:-1, None].astype(np.int64) + np.arange(size)).reshape(-1)
        with suppress(pa.ArrowNotImplementedError):  # Arrow does not implement this for views
            return values.take(pa.array(places, mask=~np.repeat(present, size)))
    runs = [values[:0]]
    edges = [0, *(np.flatnonzero(np.diff(present)) + 1).tolist(), len(present)]
    for start, stop in pairwise(edges):
        if start < stop and present[start]:  # the elements between two null lists are contiguous
            runs.append(values[int(offsets[start]) : int(offsets[stop])])
        elif start < stop:
            runs.append(pa.nulls((stop - start) * size, values.type))
    return pa.concat_arrays(runs)
