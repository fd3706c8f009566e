"""ALP: lossless encoding of decimal-like floating-point numbers as bit-packed integers (AlpEncoding).

The encoding is in preview and few readers support it, so it is written only if it is requested by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pqext.core.base.buffers import Bytes, numbers, view
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.encodings.decoding import Counts, Dictionary, split_output
from pqext.core.format.metadata import Type
from pqext.core.kernels.encodings import alp
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder
from pqext.core.kernels.encodings.page_run import PageRun

_OUTPUT = {Type.FLOAT: np.float32, Type.DOUBLE: np.float64}


def decode_fixed_width(
    run: PageRun, physical_type: Type, width: int, dictionary: Dictionary | None, out: Bytes
) -> None:
    """Decode FLOAT and DOUBLE values into ``out``."""
    kind = _OUTPUT.get(physical_type)
    if kind is None:
        raise CorruptFileError(f"encoding ALP is invalid for {physical_type.name} columns")
    for page, _, part in split_output(run, width, out):
        alp.decode_into(page, part.view(kind))


def decode_byte_arrays(
    run: PageRun, builder: ByteArrayBuilder, present: Bytes, slot_counts: Counts, dictionary: Dictionary | None
) -> None:
    """Raise ``CorruptFileError``, since ALP does not encode byte arrays."""
    raise CorruptFileError("encoding ALP is invalid for BYTE_ARRAY columns")


def encode(values: pa.Array) -> Bytes:
    """Encode a dense float or double array."""
    kind: Any = np.float32 if values.type == pa.float32() else np.float64
    if not len(values):
        return view(alp.encode(np.empty(0, kind)))
    return view(alp.encode(numbers(values.buffers()[1], kind, values.offset, len(values))))
