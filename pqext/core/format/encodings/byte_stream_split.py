"""BYTE_STREAM_SPLIT: the bytes of all values, grouped by position in the value (Encodings, Byte Stream Split)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.encodings import plain
from pqext.core.format.encodings.decoding import Counts, Dictionary, split_output
from pqext.core.format.metadata import Type
from pqext.core.kernels.encodings import byte_stream_split
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder
from pqext.core.kernels.encodings.page_run import PageRun

_SPLIT = (Type.FLOAT, Type.DOUBLE, Type.INT32, Type.INT64, Type.FIXED_LEN_BYTE_ARRAY)


def decode_fixed_width(
    run: PageRun, physical_type: Type, width: int, dictionary: Dictionary | None, out: Bytes
) -> None:
    """Decode values of a fixed width into ``out``. The streams must end where the page ends."""
    if physical_type not in _SPLIT:
        raise CorruptFileError(f"encoding BYTE_STREAM_SPLIT is invalid for {physical_type.name} columns")
    for page, count, part in split_output(run, width, out):
        if len(page) != count * width:
            raise CorruptFileError(
                f"a BYTE_STREAM_SPLIT page of {len(page)} bytes does not contain {count} values of {width} bytes"
            )
        byte_stream_split.join_streams(page, width, part)


def decode_byte_arrays(
    run: PageRun, builder: ByteArrayBuilder, present: Bytes, slot_counts: Counts, dictionary: Dictionary | None
) -> None:
    """Raise ``CorruptFileError``, since BYTE_STREAM_SPLIT does not encode byte arrays."""
    raise CorruptFileError("encoding BYTE_STREAM_SPLIT is invalid for BYTE_ARRAY columns")


def encode(values: pa.Array) -> Bytes:
    """Encode a dense array of a fixed width."""
    stored = plain.encode(values)
    out = np.empty(len(stored), np.uint8)
    if len(stored):
        byte_stream_split.split_streams(stored, values.type.byte_width, out)
    return out
