"""DELTA_BINARY_PACKED: differences of neighbours, bit-packed in blocks (Encodings, Delta Encoding).

A page whose header counts fewer values than expected is rejected. If it counts more, the excess is ignored.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import Bytes, numbers, view
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.encodings.decoding import Counts, Dictionary, parts
from pqext.core.format.metadata import Type
from pqext.core.kernels.encodings import delta
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder
from pqext.core.kernels.encodings.page_run import PageRun

_OUTPUT = {Type.INT32: np.int32, Type.INT64: np.int64}


def decode_fixed_width(run: PageRun, physical: Type, width: int, dictionary: Dictionary | None, out: Bytes) -> None:
    """INT32 and INT64 values."""
    kind = _OUTPUT.get(physical)
    if kind is None:
        raise CorruptFileError(f"DELTA_BINARY_PACKED values in a column of {physical.name}")
    for page, _, part in parts(run, width, out):
        delta.decode_into(page, part.view(kind))


def byte_arrays(
    run: PageRun, builder: ByteArrayBuilder, present: Bytes, slot_counts: Counts, dictionary: Dictionary | None
) -> None:
    """No byte array is encoded so."""
    raise CorruptFileError("DELTA_BINARY_PACKED values in a column of BYTE_ARRAY")


def encode(values: pa.Array) -> Bytes:
    """The encoded bytes of a dense int32 or int64 array."""
    kind = values.type.to_pandas_dtype()
    if not len(values):
        return view(delta.encode(np.empty(0, kind)))
    return view(delta.encode(numbers(values.buffers()[1], kind, values.offset, len(values))))


def decode_lengths(page: Bytes, count: int) -> tuple[NDArray[np.int32], Bytes]:
    """Decode exactly ``count`` lengths; return them and the bytes after them."""
    out = np.empty(count, np.int32)
    return out, page[delta.decode_into(page, out, exact=True) :]


def encode_lengths(lengths: NDArray[np.int32]) -> Bytes:
    """Encode lengths, or any other int32 values."""
    return view(delta.encode(lengths))
