"""RLE_DICTIONARY (and PLAIN_DICTIONARY on read): indices into the chunk's dictionary page (Encodings, Dictionary)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pqext.core.buffers import Bytes
from pqext.core.encodings import Dictionary
from pqext.core.errors import CorruptFileError
from pqext.core.kernels import rle
from pqext.core.kernels.byte_array import ByteArrayBuilder
from pqext.core.metadata import Type


def fixed(
    page: Bytes, count: int, physical: Type, width: int, dictionary: Dictionary | None, out: Bytes
) -> None:
    """Values of a fixed width, looked up."""
    found = _present(dictionary)
    if count:
        rle.look_up_into(page[1:], _bit_width(page), found.data, width, found.count, out)


def byte_arrays(
    page: Bytes, count: int, builder: ByteArrayBuilder, present: Bytes, slots: int, dictionary: Dictionary | None
) -> None:
    """Byte arrays, looked up."""
    found = _present(dictionary)
    builder.append_lookup(found.data, found.offsets, _indices(page, count, found), present, slots)


def _present(dictionary: Dictionary | None) -> Dictionary:
    if dictionary is None:
        raise CorruptFileError("a page refers to a dictionary, but the column chunk has none")
    return dictionary


def _indices(page: Bytes, count: int, dictionary: Dictionary) -> NDArray[np.int32]:
    out = np.empty(count, np.int32)
    if count == 0:
        return out
    if not dictionary.count:
        raise CorruptFileError("a page refers to a dictionary that is empty")
    rle.decode_into(page[1:], _bit_width(page), dictionary.count, out)
    return out


def _bit_width(page: Bytes) -> int:
    if not len(page):
        raise CorruptFileError("a dictionary-encoded page without a bit width")
    return int(page[0])


def encode(indices: NDArray[np.int32], entries: int) -> bytes:
    """The bit width and the indices of one data page."""
    width = max(entries - 1, 0).bit_length()
    return bytes([width]) + rle.encode(indices, width)
