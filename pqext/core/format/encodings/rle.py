"""RLE: hybrid of run-length encoding and bit-packing, for levels and booleans (Encodings, Run Length Encoding)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import EMPTY, Bytes, allocate, view
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.encodings.decoding import Counts, Dictionary, split_output
from pqext.core.format.metadata import Type
from pqext.core.kernels.encodings import rle, rle_encode
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder
from pqext.core.kernels.encodings.page_run import PageRun


def decode_fixed_width(
    run: PageRun, physical_type: Type, width: int, dictionary: Dictionary | None, out: Bytes
) -> None:
    """Decode booleans, which have a 4-byte length prefix in V1 and V2 data pages."""
    if physical_type != Type.BOOLEAN:
        raise CorruptFileError(f"encoding RLE is invalid for {physical_type.name} columns")
    for page, count, part in split_output(run, 1, out):
        if not count:
            continue
        length = int.from_bytes(page[:4], "little")
        if len(page) < 4 or length > len(page) - 4:
            raise CorruptFileError(f"run-length data of {length} bytes exceeds its page of {len(page)} bytes")
        rle.decode_into(page[4 : 4 + length], 1, 2, part)


def decode_byte_arrays(
    run: PageRun, builder: ByteArrayBuilder, present: Bytes, slot_counts: Counts, dictionary: Dictionary | None
) -> None:
    """Raise ``CorruptFileError``, since RLE does not encode byte arrays."""
    raise CorruptFileError("encoding RLE is invalid for BYTE_ARRAY columns")


def encode(values: pa.Array) -> Bytes:
    """Encode a dense boolean array with bit width 1 after a 4-byte length, for V1 and V2 data pages."""
    held = np.asarray(values.to_numpy(zero_copy_only=False)).view(np.uint8)
    runs = rle_encode.encode(np.ascontiguousarray(held), 1)
    return view(len(runs).to_bytes(4, "little") + runs)


def decode_levels(run: PageRun, max_level: int, out: NDArray[np.int16]) -> None:
    """Decode the levels of consecutive pages into ``out``. Raises ``CorruptFileError`` if a level exceeds
    ``max_level``.
    """
    rle.decode_run(run, max_level.bit_length(), max_level + 1, out)


def decode_flags(run: PageRun) -> tuple[Bytes, Counts]:
    """Decode levels of 0 or 1, and count the 1s in each page. The array of levels is empty if all levels are 1."""
    if rle.holds_ones_only(run):
        return EMPTY, np.array(run.counts, np.int64)
    flags, ones = allocate(run.total), np.empty(run.size, np.int64)
    rle.decode_flags(run, flags, ones)
    return flags, ones


def encode_levels(levels: NDArray[np.int16], max_level: int) -> bytes:
    """Encode levels without a length prefix."""
    return rle_encode.encode(levels, max_level.bit_length())
