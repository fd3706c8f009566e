"""RLE_DICTIONARY (and PLAIN_DICTIONARY on read): indices into the chunk's dictionary page (Encodings, Dictionary)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.buffers import Bytes, allocate
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.encodings.decoding import Counts, Dictionary
from pqext.core.format.metadata import Type
from pqext.core.kernels.encodings import rle, rle_encode
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder
from pqext.core.kernels.encodings.page_run import PageRun


def decode_fixed_width(
    run: PageRun, physical_type: Type, width: int, dictionary: Dictionary | None, out: Bytes
) -> None:
    """Decode values of a fixed width by dictionary look-up."""
    result = _require_dictionary(dictionary)
    rle.look_up_run(run, result.data, width, result.count, out)


def decode_byte_arrays(
    run: PageRun, builder: ByteArrayBuilder, present: Bytes, slot_counts: Counts, dictionary: Dictionary | None
) -> None:
    """Decode byte arrays by dictionary look-up."""
    result = _require_dictionary(dictionary)
    indices = allocate(run.total * 4).view(np.int32)
    rle.decode_run(run, -1, result.count, indices)
    builder.append_lookup(result.data, result.offsets, indices, present, sum(slot_counts.tolist()))


def _require_dictionary(dictionary: Dictionary | None) -> Dictionary:
    if dictionary is None:
        raise CorruptFileError("a page refers to a dictionary, but the column chunk has no dictionary")
    return dictionary


def encode(indices: NDArray[np.int32], entries: int) -> bytes:
    """Encode one data page: the bit width for a dictionary with ``entries`` entries, and then the indices."""
    width = max(entries - 1, 0).bit_length()
    return bytes([width]) + rle_encode.encode(indices, width)
