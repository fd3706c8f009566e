"""DELTA_BINARY_PACKED: differences of consecutive values, bit-packed in blocks (Encodings, Delta Encoding).

A page is rejected if its header declares fewer values than expected. If it declares more, the excess is ignored.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import Bytes, numbers, view
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.encodings.decoding import Counts, Dictionary, split_output
from pqext.core.format.metadata import Type
from pqext.core.kernels.encodings import delta
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder
from pqext.core.kernels.encodings.page_run import PageRun

_OUTPUT = {Type.INT32: np.int32, Type.INT64: np.int64}


def decode_fixed_width(
    run: PageRun, physical_type: Type, width: int, dictionary: Dictionary | None, out: Bytes
) -> None:
    """Decode INT32 and INT64 values into ``out``."""
    kind = _OUTPUT.get(physical_type)
    if kind is None:
        raise CorruptFileError(f"encoding DELTA_BINARY_PACKED is invalid for {physical_type.name} columns")
    for page, _, part in split_output(run, width, out):
        delta.decode_into(page, part.view(kind))


def decode_byte_arrays(
    run: PageRun, builder: ByteArrayBuilder, present: Bytes, slot_counts: Counts, dictionary: Dictionary | None
) -> None:
    """Raise ``CorruptFileError``, since DELTA_BINARY_PACKED does not encode byte arrays."""
    raise CorruptFileError("encoding DELTA_BINARY_PACKED is invalid for BYTE_ARRAY columns")


def encode(values: pa.Array) -> Bytes:
    """Encode a dense int32 or int64 array."""
    kind = values.type.to_pandas_dtype()
    if not len(values):
        return view(delta.encode(np.empty(0, kind)))
    return view(delta.encode(numbers(values.buffers()[1], kind, values.offset, len(values))))


def decode_lengths(page: Bytes, count: int) -> tuple[NDArray[np.int32], Bytes]:
    """Decode exactly ``count`` lengths; return the lengths and the bytes that follow."""
    out = np.empty(count, np.int32)
    return out, page[delta.decode_into(page, out, exact=True) :]


def encode_lengths(lengths: NDArray[np.int32]) -> Bytes:
    """Encode lengths, or any other int32 values."""
    return view(delta.encode(lengths))
