"""Operations on Arrow arrays and types that pyarrow lacks or implements incorrectly: decode, take, cast, map."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.buffers import numbers
from pqext.core.schema.types.physical_types import canonical_type

_MOST_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}
"""Number of digits that every decimal of a width in bits can represent."""
_LISTS = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
    (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)


def decode_dictionary(array: pa.DictionaryArray) -> pa.Array:
    """Decode a dictionary array. Indices out of range, which :func:`check_array` allows below a null, become null."""
    values = array.dictionary
    if not len(values):  # Arrow itself creates these below a null struct, with indices into them
        return pa.nulls(len(array), values.type)
    if is_view(values.type):
        array = pa.DictionaryArray.from_arrays(array.indices, values.cast(canonical_type(values.type)), safe=False)
    try:
        return array.dictionary_decode()
    except pa.ArrowIndexError:
        indices = array.indices
        in_range = pc.and_(pc.greater_equal(indices, 0), pc.less(indices, len(values)))
        return array.dictionary.take(pc.if_else(in_range, indices, None))


def to_variable_width(array: pa.Array, plain: pa.DataType, large: pa.DataType) -> pa.Array:
    """Return text or bytes as an array of type ``plain`` or ``large``, without extension types, dictionaries and views.

    Arrays of the null type become ``plain``.
    """
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        return to_variable_width(decode_dictionary(array), plain, large)
    if array.type in (plain, large):
        return array
    return array.cast(plain if pa.types.is_null(array.type) else large)


def decode_run_ends(array: pa.RunEndEncodedArray) -> pa.Array:
    """Decode a run-end encoded array. Views become plain strings or binary.

    Arrow's kernel supports only flat values. Raises ``ValueError`` if the runs end before the last row.
    """
    values = array.values
    if is_view(values.type):
        values = values.cast(canonical_type(values.type))
    rows = np.arange(array.offset, array.offset + len(array))
    runs = np.searchsorted(array.run_ends.to_numpy(), rows, side="right")
    if len(runs) and int(runs[-1]) >= len(values):
        raise ValueError(f"the runs of a run-end encoded array end before its {len(array)} rows")
    return values.take(pa.array(runs))


def is_view(arrow_type: pa.DataType) -> bool:
    """Return whether ``arrow_type`` is a string or binary view type."""
    return bool(pa.types.is_string_view(arrow_type) or pa.types.is_binary_view(arrow_type))


def take_positions(array: pa.Array, positions: NDArray[np.int64]) -> pa.Array:
    """Return the elements at ``positions``, which must be within the array."""
    if is_view(array.type):
        return _take_views(array, positions)
    with suppress(pa.ArrowNotImplementedError):
        return array.take(pa.array(positions))
    return _take_runs(array, positions)


def take_rows(batch: pa.RecordBatch, rows: NDArray[np.int64]) -> pa.RecordBatch:
    """Return the rows of ``batch`` with the numbers ``rows``, which must be less than its row count."""
    return pa.RecordBatch.from_arrays([take_positions(column, rows) for column in batch.columns], schema=batch.schema)


def select_flagged(array: pa.Array, flags: NDArray[np.bool_]) -> pa.Array:
    """Return the elements whose flag is set."""
    if not is_view(array.type):
        with suppress(pa.ArrowNotImplementedError):
            return array.filter(pa.array(flags))
    return take_positions(array, np.flatnonzero(flags))


def _take_views(array: pa.Array, positions: NDArray[np.int64]) -> pa.Array:
    """Return the views at ``positions``. The bytes that they refer to are not copied."""
    validity, views, *data = array.buffers()
    start = array.offset
    result = numbers(views, "V16", start, len(array))[positions]
    if validity is not None and array.null_count:
        bits = np.unpackbits(np.frombuffer(validity, np.uint8), count=start + len(array), bitorder="little")
        validity = pa.py_buffer(np.packbits(bits[start:][positions], bitorder="little"))
    else:
        validity = None
    return pa.Array.from_buffers(array.type, len(positions), [validity, pa.py_buffer(result), *data])


def _take_runs(array: pa.Array, positions: NDArray[np.int64]) -> pa.Array:
    """Return the elements at ``positions``. Adjacent elements are copied together."""
    edges = [0, *(np.flatnonzero(np.diff(positions) != 1) + 1).tolist(), len(positions)]
    runs = ((start, stop) for start, stop in pairwise(edges) if start < stop)
    parts = [array[int(positions[start]) : int(positions[stop - 1]) + 1] for start, stop in runs]
    return pa.concat_arrays(parts) if parts else array[:0]


def cast_exactly(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Cast like ``pyarrow.compute.cast``, but raise an error for text with too many digits for a decimal.

    pyarrow casts "340282366920938463463374607431768211461", which is 2**128 + 5, to the decimal 5.

    Raises:
        pa.ArrowInvalid: If a value cannot be cast to ``type``, or has more digits than the decimal type can represent.
    """
    types = pa.types
    if types.is_decimal(type) and (
        types.is_string(array.type) or types.is_large_string(array.type) or types.is_string_view(array.type)
    ):
        most = _MOST_DIGITS[type.bit_width]
        texts = array.cast(pa.large_string())
        texts = texts.filter(pc.fill_null(pc.greater(pc.binary_length(texts), most), False))
        if len(texts):
            digits = pc.utf8_ltrim(pc.replace_substring_regex(texts, r"^[+-]|\.|[eE].*", ""), "0")
            row = pc.index(pc.greater(pc.utf8_length(digits), most), True).as_py()
            if row >= 0:
                raise pa.ArrowInvalid(f"{texts[row].as_py()[:100]!r} has more than {most} digits")
    return pc.cast(array, type)


def map_types(arrow_type: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Apply ``change`` to all types in ``arrow_type`` except structs, lists and maps.

    Extension types become their storage types.
    """

    def map_field(field: pa.Field) -> pa.Field:
        return field.with_type(map_types(field.type, change))

    types = pa.types
    if isinstance(arrow_type, pa.BaseExtensionType):
        return map_types(arrow_type.storage_type, change)
    if types.is_struct(arrow_type):
        return pa.struct([map_field(field) for field in arrow_type])
    if types.is_map(arrow_type):
        return pa.map_(map_field(arrow_type.key_field), map_field(arrow_type.item_field), arrow_type.keys_sorted)
    if types.is_fixed_size_list(arrow_type):
        return pa.list_(map_field(arrow_type.value_field), arrow_type.list_size)
    for is_kind, make in _LISTS:
        if is_kind(arrow_type):
            return make(map_field(arrow_type.value_field))
    return change(arrow_type)
