"""DELTA_BYTE_ARRAY: for each value, the length of the prefix shared with the preceding value, and the suffix
(Encodings, Delta Strings).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import EMPTY, Bytes, view
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.encodings.decoding import Counts, Dictionary, split_output, split_slots
from pqext.core.format.encodings.delta_binary_packed import decode_lengths, encode_lengths
from pqext.core.format.encodings.delta_length_byte_array import spans
from pqext.core.format.metadata import Type
from pqext.core.kernels.encodings import prefix
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder
from pqext.core.kernels.encodings.page_run import PageRun


def decode_fixed_width(
    run: PageRun, physical_type: Type, width: int, dictionary: Dictionary | None, out: Bytes
) -> None:
    """Decode FIXED_LEN_BYTE_ARRAY values into ``out``. The encoding stores their lengths too."""
    if physical_type != Type.FIXED_LEN_BYTE_ARRAY:
        raise CorruptFileError(f"encoding DELTA_BYTE_ARRAY is invalid for {physical_type.name} columns")
    for page, count, part in split_output(run, width, out):
        part[:] = _join(page, count, count * width, width)[0]


def decode_byte_arrays(
    run: PageRun, builder: ByteArrayBuilder, present: Bytes, slot_counts: Counts, dictionary: Dictionary | None
) -> None:
    """Decode byte arrays. A long prefix may be repeated any number of times, so the builder limits the total size."""
    for page, count, flags, number in split_slots(run, present, slot_counts):
        data, lengths = _join(page, count, builder.room, -1, builder.claim)
        builder.append_run(data, lengths, flags, number)


def _join(
    page: Bytes, count: int, limit: int, width: int, claim: Callable[[int], None] | None = None
) -> tuple[Bytes, NDArray[np.int32]]:
    if count == 0:
        return EMPTY, np.empty(0, np.int32)
    prefixes, rest = decode_lengths(page, count)
    suffixes, rest = decode_lengths(rest, count)
    lengths = np.empty(count, np.int32)
    return view(prefix.join_prefixes(prefixes, suffixes, rest, lengths, limit, width, claim)), lengths


def encode(values: pa.Array) -> Bytes:
    """Encode a dense binary or fixed-size binary array."""
    data, offsets = spans(values)
    prefixes, suffixes = np.empty(len(values), np.int32), np.empty(len(values), np.int32)
    rest = prefix.split_prefixes(data, offsets, prefixes, suffixes)
    return np.concatenate([encode_lengths(prefixes), encode_lengths(suffixes), view(rest)])
