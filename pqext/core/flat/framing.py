"""Where a FlatBuffers footer stands: in the extension of the Thrift footer, or alone at the end of the file.

Beside a Thrift footer it is the payload of a frame (:mod:`pqext.core.extension.framed`):

    1 byte    codec of the tables, 0 or 7 (LZ4_RAW)
    4 bytes   their size before compression
    4 bytes   bytes of the Thrift fields before the extension
    4 bytes   CRC-32 of these
    the tables

Alone, the file ends in the tables, their CRC-32, their size, the CRC-32 of that, and ``PAR3``. All numbers are
little-endian. Spec: "Binary Protocol Extensions"; the rules are in ``specs/binary-protocol-extensions.md``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from uuid import UUID

from isal.isal_zlib import crc32

from pqext.core.buffers import Bytes, view
from pqext.core.compression import compress, decompress
from pqext.core.enums import CompressionCodec
from pqext.core.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError
from pqext.core.extension.framed import FRAME_BYTES, frame, unframe
from pqext.core.limits import Limits

FLATBUFFERS = UUID("6d9c1b52-5a4c-4b0e-8f0b-2f4f6a3a9d10")
"""Marks the frame."""
FLAT_MAGIC = b"PAR3"
TAIL_BYTES = 16
"""Behind the tables of a footer that stands alone."""
_ABOUT = struct.Struct("<BIII")
_LEAST_RATIO = 1.2
"""Tables that shrink less are stored as they are."""
_CODECS = (CompressionCodec.UNCOMPRESSED, CompressionCodec.LZ4_RAW)


@dataclass(frozen=True, slots=True)
class Beside:
    """A FlatBuffers footer in a Thrift one: its tables, perhaps compressed, and the Thrift fields it was made from."""

    codec: int
    size: int
    thrift_bytes: int
    thrift_crc: int
    body: bytes

    def agrees(self, footer: Bytes) -> bool:
        """Was it made from the fields of this serialised Thrift footer?"""
        return self.thrift_bytes <= len(footer) and crc32(footer[: self.thrift_bytes].data) == self.thrift_crc

    def tables(self, limits: Limits) -> bytes:
        """The tables. Raises ``LimitError`` beyond ``footer_bytes``, ``UnsupportedError`` for another codec."""
        if self.codec not in _CODECS:
            raise UnsupportedError(f"a FlatBuffers footer compressed by codec {self.codec}", feature="footer codec")
        if self.size > limits.footer_bytes:
            raise LimitError(
                f"the FlatBuffers footer has {self.size} bytes, more than footer_bytes={limits.footer_bytes}"
            )
        return decompress(self.codec, view(self.body), self.size).tobytes()


def framed(tables: bytes, thrift: bytes) -> bytes:
    """The extension of a Thrift footer with these serialised fields, without their stop byte."""
    codec, body = CompressionCodec.UNCOMPRESSED, tables
    packed = compress(CompressionCodec.LZ4_RAW, tables)
    if len(packed) * _LEAST_RATIO <= len(tables):
        codec, body = CompressionCodec.LZ4_RAW, packed.tobytes()
    return frame(_ABOUT.pack(codec, len(tables), len(thrift), crc32(thrift)) + body, FLATBUFFERS)


def is_beside(footer: Bytes) -> bool:
    """Does a serialised Thrift footer end in the frame of a FlatBuffers one?"""
    return len(footer) > FRAME_BYTES and footer[-1] == 0 and footer[-17:-1].tobytes() == FLATBUFFERS.bytes


def beside(footer: Bytes) -> Beside:
    """What the frame holds in which a serialised Thrift footer ends. Raises ``CorruptFileError`` for a damaged one."""
    size = int.from_bytes(footer[-25:-21].tobytes(), "little") + FRAME_BYTES
    payload = unframe(footer[-1 - min(size, len(footer) - 1) : -1].tobytes(), FLATBUFFERS)
    if payload is None:
        raise CorruptFileError("the footer ends in no FlatBuffers footer")
    return parse(payload)


def parse(payload: bytes) -> Beside:
    """What the payload of the frame holds. Raises ``CorruptFileError`` for one that is too short."""
    if len(payload) < _ABOUT.size:
        raise CorruptFileError("the frame of the FlatBuffers footer is too short")
    codec, size, thrift_bytes, thrift_crc = _ABOUT.unpack_from(payload)
    return Beside(codec, size, thrift_bytes, thrift_crc, payload[_ABOUT.size :])


def agrees(footer: Bytes) -> bool:
    """Is the FlatBuffers footer in which a serialised Thrift one ends whole, and made from it?"""
    try:
        return beside(footer).agrees(footer)
    except ParquetError:
        return False


def alone(tables: bytes) -> bytes:
    """The end of a file whose only footer this is."""
    size = len(tables).to_bytes(4, "little")
    return b"".join([tables, crc32(tables).to_bytes(4, "little"), size, crc32(size).to_bytes(4, "little"), FLAT_MAGIC])


def size_alone(tail: bytes, room: int, limits: Limits) -> int:
    """The size of the tables before the last 16 bytes of a file, where there are ``room`` bytes.

    Raises ``CorruptFileError`` for one that is damaged, ``LimitError`` beyond ``footer_bytes``.
    """
    size = int.from_bytes(tail[4:8], "little")
    if crc32(tail[4:8]) != int.from_bytes(tail[8:12], "little"):
        raise CorruptFileError("the length of the FlatBuffers footer does not match its checksum")
    if size > room:
        raise CorruptFileError(f"a FlatBuffers footer of {size} bytes is announced where there are {room}")
    if size > limits.footer_bytes:
        raise LimitError(f"the FlatBuffers footer has {size} bytes, more than footer_bytes={limits.footer_bytes}")
    return size


def check_alone(tables: Bytes, tail: bytes) -> None:
    """Raise ``CorruptFileError`` where the tables do not match the checksum behind them."""
    if crc32(tables.data) != int.from_bytes(tail[:4], "little"):
        raise CorruptFileError("the FlatBuffers footer does not match its checksum")
