"""The encodings of values, one module each, by their number in the format.

A decoder offers ``fixed`` (values of a fixed width, as dense bytes) and ``byte_arrays`` (slots appended to a
builder); :data:`DECODERS` holds them. To add an encoding, write its module and enter it here.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pqext.core.buffers import Bytes
from pqext.core.kernels.byte_array import ByteArrayBuilder
from pqext.core.metadata import Encoding, Type


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The values of a dictionary page.

    Of a fixed width: ``data`` holds ``count`` values. Byte arrays: ``offsets`` delimits them in ``data``.
    """

    count: int
    data: Bytes
    offsets: NDArray[np.int32] | None = None


class Decoder(Protocol):
    """One encoding of values. Both functions raise ``CorruptFileError`` when the page does not hold them."""

    def fixed(
        self, page: Bytes, count: int, physical: Type, width: int, dictionary: Dictionary | None
    ) -> Bytes:
        """``count`` values of ``width`` bytes each, back to back; booleans as one byte each."""

    def byte_arrays(
        self, page: Bytes, count: int, builder: ByteArrayBuilder, present: Bytes, slots: int,
        dictionary: Dictionary | None,
    ) -> None:
        """Append ``slots`` slots, ``count`` of them with a value as ``present`` flags (empty: all)."""


def _decoders() -> MappingProxyType[int, Any]:
    from pqext.core.encodings import dictionary, plain, rle

    return MappingProxyType(
        {
            Encoding.PLAIN: plain,
            Encoding.PLAIN_DICTIONARY: dictionary,
            Encoding.RLE_DICTIONARY: dictionary,
            Encoding.RLE: rle,
        }
    )


def decoder(encoding: int) -> Decoder | None:
    """The decoder of an encoding, ``None`` when it is not known."""
    found: Decoder | None = _decoders().get(encoding)
    return found
