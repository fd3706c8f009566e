"""Extract selected values of a run of pages into a separate page, without decoding other values.

Fixed-width values are located by offset, dictionary indices by the runs that contain them, and byte arrays by the
lengths of the preceding values. If a value depends on all preceding values, the page is decoded and then filtered.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.buffers import EMPTY, allocate, view
from pqext.core.base.errors import UnsupportedError
from pqext.core.format.encodings.decoding import Dictionary
from pqext.core.format.encodings.table import decoder as find_decoder
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import Encoding, Type
from pqext.core.format.thrift import uleb
from pqext.core.kernels.decode import selected_values
from pqext.core.kernels.encodings import rle
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder, encode_plain
from pqext.core.kernels.encodings.page_run import PageRun
from pqext.core.schema.types.logical import LeafType


def select(
    encoding: int, run: PageRun, positions: NDArray[np.int64], leaf_type: LeafType, dictionary: Dictionary | None
) -> tuple[int, PageRun]:
    """Return the values at ascending ``positions`` of a run of pages, as an encoding and one page in this encoding.

    Raises ``CorruptFileError`` if the decoder detects that values are missing from the pages.
    """
    count, width = len(positions), leaf_type.width
    if count == run.total and run.size == 1:
        return encoding, run
    if encoding in DICTIONARY_ENCODINGS and dictionary is not None:
        indices = np.zeros((count + 7) // 8 * 8, np.int32)
        rle.indices_at(run, dictionary.count, positions, indices[:count])
        packed = bytes([32]) + uleb(len(indices) // 8 << 1 | 1) + indices.astype("<i4", copy=False).tobytes()
        return encoding, PageRun([view(packed)], [count])
    if width is None:
        return Encoding.PLAIN, PageRun([view(_byte_arrays(encoding, run, positions, dictionary))], [count])
    if leaf_type.physical == Type.BOOLEAN:
        values = _decode_values(encoding, run, leaf_type, dictionary, 1)[positions]
        return Encoding.PLAIN, PageRun([np.packbits(values, bitorder="little")], [count])
    if encoding in (Encoding.PLAIN, Encoding.BYTE_STREAM_SPLIT):
        out = allocate(count * width)
        selected_values.select_fixed(run, width, encoding == Encoding.BYTE_STREAM_SPLIT, positions, out)
    else:
        out = _decode_values(encoding, run, leaf_type, dictionary, width).reshape(-1, width)[positions].reshape(-1)
    return Encoding.PLAIN, PageRun([out], [count])


def _decode_values(
    encoding: int, run: PageRun, leaf_type: LeafType, dictionary: Dictionary | None, width: int
) -> NDArray[np.uint8]:
    decoder = find_decoder(encoding)
    if decoder is None:
        raise UnsupportedError(f"encoding {encoding!r} is not supported", feature=f"encoding {encoding}")
    out = allocate(run.total * width)
    decoder.decode_fixed_width(run, leaf_type.physical, width, dictionary, out)
    return out


def _byte_arrays(encoding: int, run: PageRun, positions: NDArray[np.int64], dictionary: Dictionary | None) -> object:
    """Return the byte arrays at ``positions`` in PLAIN encoding."""
    if encoding == Encoding.PLAIN:
        return selected_values.select_byte_arrays(run, positions)
    decoder = find_decoder(encoding)
    if decoder is None:
        raise UnsupportedError(f"encoding {encoding!r} is not supported", feature=f"encoding {encoding}")
    builder, chosen = ByteArrayBuilder(), ByteArrayBuilder()
    decoder.decode_byte_arrays(run, builder, EMPTY, np.array(run.counts, np.int64), dictionary)
    offsets, data, _ = builder.finish()
    ends = np.frombuffer(offsets, np.int32)
    chosen.append_lookup(view(data), ends, positions.astype(np.int32), EMPTY, len(positions))
    offsets, data, _ = chosen.finish()
    return encode_plain(view(data), np.frombuffer(offsets, np.int32))
