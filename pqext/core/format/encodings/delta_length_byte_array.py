"""DELTA_LENGTH_BYTE_ARRAY: all lengths, delta-encoded, then all bytes (Encodings, Delta-length byte array)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import EMPTY, Bytes, numbers, view
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.encodings.decoding import Counts, Dictionary, split_slots
from pqext.core.format.encodings.delta_binary_packed import decode_lengths, encode_lengths
from pqext.core.format.metadata import Type
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder
from pqext.core.kernels.encodings.page_run import PageRun


def decode_fixed_width(
    run: PageRun, physical_type: Type, width: int, dictionary: Dictionary | None, out: Bytes
) -> None:
    """Raise ``CorruptFileError``, since DELTA_LENGTH_BYTE_ARRAY encodes only byte arrays."""
    raise CorruptFileError(f"encoding DELTA_LENGTH_BYTE_ARRAY is invalid for {physical_type.name} columns")


def decode_byte_arrays(
    run: PageRun, builder: ByteArrayBuilder, present: Bytes, slot_counts: Counts, dictionary: Dictionary | None
) -> None:
    """Decode byte arrays, which are stored after all their lengths."""
    for page, count, flags, number in split_slots(run, present, slot_counts):
        lengths, data = decode_lengths(page, count)
        builder.append_run(data, lengths, flags, number)


def encode(values: pa.Array) -> Bytes:
    """Encode a dense binary array."""
    data, offsets = spans(values)
    return np.concatenate([encode_lengths(np.diff(offsets)), data[offsets[0] : offsets[-1]]])


def spans(values: pa.Array) -> tuple[Bytes, NDArray[np.int32]]:
    """Return the bytes of a binary or fixed-size binary array, and the offsets of the values in these bytes."""
    start, stop = values.offset, values.offset + len(values)
    buffers = values.buffers()
    data = view(buffers[-1]) if buffers[-1] is not None else EMPTY
    if pa.types.is_binary(values.type):
        return data, numbers(buffers[1], np.int32, start, len(values) + 1) if len(values) else np.zeros(1, np.int32)
    width = values.type.byte_width
    if len(values) * width > 0x7FFFFFFF:
        raise ValueError("a page exceeds 2 GiB; write smaller pages (page_rows, page_bytes)")
    return data[start * width : stop * width], np.arange(len(values) + 1, dtype=np.int32) * np.int32(width)
