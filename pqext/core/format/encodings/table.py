"""Table of the supported encodings, by their number in the format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pqext.core.format.encodings import (
    alp,
    byte_stream_split,
    delta_binary_packed,
    delta_byte_array,
    delta_length_byte_array,
    dictionary,
    plain,
    rle,
)
from pqext.core.format.encodings.decoding import Decoder, Encoder
from pqext.core.format.metadata import Encoding

_MODULES: Mapping[int, Any] = {
    Encoding.PLAIN: plain,
    Encoding.PLAIN_DICTIONARY: dictionary,
    Encoding.RLE_DICTIONARY: dictionary,
    Encoding.RLE: rle,
    Encoding.DELTA_BINARY_PACKED: delta_binary_packed,
    Encoding.DELTA_LENGTH_BYTE_ARRAY: delta_length_byte_array,
    Encoding.DELTA_BYTE_ARRAY: delta_byte_array,
    Encoding.BYTE_STREAM_SPLIT: byte_stream_split,
    Encoding.ALP: alp,
}


def decoder(encoding: int) -> Decoder | None:
    """Return the decoder of an encoding; None if the encoding is unknown."""
    return cast("Decoder | None", _MODULES.get(encoding))


def encoder(encoding: Encoding) -> Encoder:
    """Return the encoder of an encoding that does not use a dictionary."""
    return cast(Encoder, _MODULES[encoding])
