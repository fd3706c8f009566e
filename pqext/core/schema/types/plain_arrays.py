"""Arrow arrays outside of dictionaries and run ends."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pqext.core.schema.types.physical_types import normal


def dictionary_decoded(array: pa.DictionaryArray) -> pa.Array:
    """The values of a dictionary array, one a row."""
    values = array.dictionary
    if not len(values):  # which Arrow itself leaves below a null struct, with indices into it
        return pa.nulls(len(array), values.type)
    if is_view(values.type):
        array = pa.DictionaryArray.from_arrays(array.indices, values.cast(normal(values.type)), safe=False)
    return array.dictionary_decode()


def run_ends_decoded(array: pa.RunEndEncodedArray) -> pa.Array:
    """The values of a run-end encoded array, one a row; views become plain strings or binary.

    Arrow's own kernel takes flat values only. Raises ``ValueError`` when the runs end before the rows.
    """
    values = array.values
    if is_view(values.type):
        values = values.cast(normal(values.type))
    rows = np.arange(array.offset, array.offset + len(array))
    runs = np.searchsorted(array.run_ends.to_numpy(), rows, side="right")
    if len(runs) and int(runs[-1]) >= len(values):
        raise ValueError(f"the runs of a run-end encoded array end before its {len(array)} rows")
    return values.take(pa.array(runs))


def is_view(arrow: pa.DataType) -> bool:
    """Is it a type of string or binary views?"""
    return bool(pa.types.is_string_view(arrow) or pa.types.is_binary_view(arrow))
