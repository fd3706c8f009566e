"""ALP: numbers that are decimal at heart as bit-packed integers, exact to the bit (AlpEncoding).

The encoding is in preview: readers that know it are few, so it is written only where it is asked for by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pqext.core.base.buffers import Bytes, numbers, view
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.encodings.decoding import Counts, Dictionary, parts
from pqext.core.format.metadata import Type
from pqext.core.kernels.encodings import alp
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder
from pqext.core.kernels.encodings.page_run import PageRun

_OUTPUT = {Type.FLOAT: np.float32, Type.DOUBLE: np.float64}


def decode_fixed_width(run: PageRun, physical: Type, width: int, dictionary: Dictionary | None, out: Bytes) -> None:
    """FLOAT and DOUBLE values."""
    kind = _OUTPUT.get(physical)
    if kind is None:
        raise CorruptFileError(f"ALP values in a column of {physical.name}")
    for page, _, part in parts(run, width, out):
        alp.decode_into(page, part.view(kind))


def byte_arrays(
    run: PageRun, builder: ByteArrayBuilder, present: Bytes, slot_counts: Counts, dictionary: Dictionary | None
) -> None:
    """No byte array is encoded so."""
    raise CorruptFileError("ALP values in a column of BYTE_ARRAY")


def encode(values: pa.Array) -> Bytes:
    """The encoded bytes of a dense float or double array."""
    kind: Any = np.float32 if values.type == pa.float32() else np.float64
    if not len(values):
        return view(alp.encode(np.empty(0, kind)))
    return view(alp.encode(numbers(values.buffers()[1], kind, values.offset, len(values))))
