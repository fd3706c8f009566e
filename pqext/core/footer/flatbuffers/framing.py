"""The two locations of a FlatBuffers footer: in the extension of the Thrift footer, or alone at the end of the file.

In a Thrift footer it is the payload of a frame (:mod:`pqext.core.format.extension.framed`):

    1 byte    codec of the tables, 0 or 7 (LZ4_RAW)
    4 bytes   their size before compression
    4 bytes   bytes of the Thrift fields before the extension
    4 bytes   CRC-32 of these
    the tables

Alone, the file ends in the tables, their CRC-32, their size, the CRC-32 of that, and ``PAR3``. All numbers are
little-endian. Spec: "Binary Protocol Extensions"; the rules are in ``specs/binary-protocol-extensions.md``.

Metadata that the public schema lacks is in the footer's own extension, slot 99 of its root table, as a frame or, next
to other entries, in a container: see :mod:`pqext.core.kernels.flatbuffers.thrift_fields`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from uuid import UUID

from isal.isal_zlib import crc32

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError
from pqext.core.base.limits import Limits
from pqext.core.format.compression import compress, decompress
from pqext.core.format.enums import CompressionCodec
from pqext.core.format.extension.framed import FRAME_BYTES, frame
from pqext.core.format.extension.structure import append_readable, extensions
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import encode
from pqext.core.kernels.flatbuffers.from_thrift import convert

FLATBUFFERS = UUID("6d9c1b52-5a4c-4b0e-8f0b-2f4f6a3a9d10")
"""Identifies the frame."""
FLAT_MAGIC = b"PAR3"
TAIL_BYTES = 16
"""Bytes after the tables of a footer that is alone."""
_ABOUT = struct.Struct("<BIII")
_LEAST_RATIO = 1.2
"""Tables that compress less are stored uncompressed."""
_MOST_RATIO = 64
"""Tables that compress more, far more than real ones, are stored uncompressed: readers need no large limit."""
_CODECS = (CompressionCodec.UNCOMPRESSED, CompressionCodec.LZ4_RAW)
BESIDE = UUID("a1c6f0de-6f0f-4c1e-9a43-0f6a6f6f7b52")
"""Identifies our extension of the tables."""
_MOST_BYTES = (1 << 31) - 1
_DEPTH = 1000
"""Maximum depth of a schema that is written."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A FlatBuffers footer in a Thrift footer: tables, possibly compressed, and a checksum of the Thrift fields."""

    codec: int
    size: int
    thrift_bytes: int
    thrift_crc: int
    body: Bytes

    def agrees(self, footer: Bytes) -> bool:
        """Whether it was made from the fields of this serialised Thrift footer."""
        return self.thrift_bytes <= len(footer) and crc32(footer[: self.thrift_bytes].data) == self.thrift_crc

    def tables(self, limits: Limits) -> bytes:
        """Return the tables.

        Raises ``LimitError`` for more than ``footer_bytes``, ``UnsupportedError`` for another codec, and
        ``CorruptFileError`` for tables that would unpack to far more than tables do.
        """
        if self.codec not in _CODECS:
            raise UnsupportedError(f"a FlatBuffers footer compressed by codec {self.codec}", feature="footer codec")
        check_limit(self.size, limits)
        if self.size > _MOST_RATIO * len(self.body):
            raise CorruptFileError(f"{len(self.body)} bytes of a FlatBuffers footer claim to unpack to {self.size}")
        return decompress(self.codec, self.body, self.size).tobytes()


def framed(tables: bytes, thrift: bytes) -> bytes:
    """Return the extension of a Thrift footer with these serialised fields, without their stop byte."""
    codec, body = CompressionCodec.UNCOMPRESSED, tables
    packed = compress(CompressionCodec.LZ4_RAW, tables)
    if len(packed) * _LEAST_RATIO <= len(tables) <= len(packed) * _MOST_RATIO:
        codec, body = CompressionCodec.LZ4_RAW, packed.tobytes()
    return frame(_ABOUT.pack(codec, len(tables), len(thrift), crc32(thrift)) + body, FLATBUFFERS)


def is_beside(footer: Bytes) -> bool:
    """Whether a serialised Thrift footer ends in the frame of a FlatBuffers footer."""
    return len(footer) > FRAME_BYTES and footer[-17:-1].tobytes() == FLATBUFFERS.bytes


def beside(footer: Bytes) -> Beside:
    """Parse the frame at the end of a serialised Thrift footer. Raises ``CorruptFileError`` if it is corrupt."""
    stop = len(footer) - 1 - FRAME_BYTES  # before the stop byte
    end = footer[stop:-1].tobytes()
    if end[12:] != FLATBUFFERS.bytes:
        raise CorruptFileError("the footer ends in no FlatBuffers footer")
    size = size_of(end, stop)
    payload = footer[stop - size : stop]
    check(payload, end)
    return parse(payload)


def parse(payload: Bytes) -> Beside:
    """Parse the payload of the frame. Raises ``CorruptFileError`` if it is too short."""
    if len(payload) < _ABOUT.size:
        raise CorruptFileError("the frame of the FlatBuffers footer is too short")
    codec, size, thrift_bytes, thrift_crc = _ABOUT.unpack_from(payload.data)
    return Beside(codec, size, thrift_bytes, thrift_crc, payload[_ABOUT.size :])


def agrees(footer: Bytes) -> bool:
    """Whether a serialised Thrift footer ends in a valid FlatBuffers footer that was made from it."""
    try:
        return beside(footer).agrees(footer)
    except ParquetError:
        return False


def alone(tables: bytes) -> bytes:
    """Return the end of a file whose only footer this is."""
    size = len(tables).to_bytes(4, "little")
    return b"".join([tables, crc32(tables).to_bytes(4, "little"), size, crc32(size).to_bytes(4, "little"), FLAT_MAGIC])


def size_of(numbers: bytes, room: int) -> int:
    """Return the size of the preceding tables, from their trailer; there are ``room`` bytes before it.

    The trailer is their CRC-32, their size, and the CRC-32 of that. Raises ``CorruptFileError`` if it is corrupt.
    """
    size = int.from_bytes(numbers[4:8], "little")
    if crc32(numbers[4:8]) != int.from_bytes(numbers[8:12], "little"):
        raise CorruptFileError("the length of the FlatBuffers footer does not match its checksum")
    if size > room:
        raise CorruptFileError(f"a FlatBuffers footer of {size} bytes is announced where there are {room}")
    return size


def check_limit(size: int, limits: Limits) -> None:
    """Raise ``LimitError`` for tables of more than ``footer_bytes``."""
    if size > limits.footer_bytes:
        raise LimitError(f"the FlatBuffers footer has {size} bytes, more than footer_bytes={limits.footer_bytes}")


def check(stored: Bytes, numbers: bytes) -> None:
    """Raise ``CorruptFileError`` if bytes do not match the checksum after them."""
    if crc32(stored.data) != int.from_bytes(numbers[:4], "little"):
        raise CorruptFileError("the FlatBuffers footer does not match its checksum")


def tables_of(serialised: bytes) -> bytes:
    """Convert a serialised FileMetaData to a FlatBuffers footer.

    Raises ``ValueError`` if it cannot be represented (:func:`pqext.core.kernels.flatbuffers.from_thrift.convert`).
    """
    tables, about, at = convert(serialised, _DEPTH)
    extension = frame(about, BESIDE)
    if len(tables) + 4 + len(extension) > _MOST_BYTES:
        raise ValueError("the footer cannot be written as FlatBuffers: it would take more than 2 GiB")
    distance, size = (number.to_bytes(4, "little") for number in (len(tables) - at, len(extension)))
    return b"".join([tables[:at], distance, tables[at + 4 :], size, extension])


def with_flat_footer(metadata: FileMetaData) -> tuple[bytes, str | None]:
    """Serialise the footer with a FlatBuffers footer in its extension; if that is too long, without it and with a
    reason.

    Raises ``ValueError`` if it has another extension, or cannot be represented in FlatBuffers.
    """
    if extensions(metadata) is not None:
        raise ValueError('footer="thrift+flatbuffers" takes the place of another extension of the footer')
    serialised = encode(metadata)
    extension = framed(tables_of(serialised), serialised[:-1])
    return append_readable(serialised, extension, "a FlatBuffers footer")
