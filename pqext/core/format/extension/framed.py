"""Frames: extensions that can be recognised and checked from their end, without reading the preceding Thrift.

The layout is that of the first example in the specification:

K bytes   payload
    4 bytes   little-endian CRC-32 of the payload
    4 bytes   little-endian K
    4 bytes   little-endian CRC-32 of those four bytes
    16 bytes  UUID of the extension

Spec: "Binary Protocol Extensions"; the rules are in ``specs/binary-protocol-extensions.md``.
"""

from __future__ import annotations

from uuid import UUID

from isal.isal_zlib import crc32

from pqext.core.base.errors import CorruptFileError

FRAME_BYTES = 28
"""Number of bytes that a frame adds to its payload."""


def frame(payload: bytes, uuid: UUID) -> bytes:
    """Return the extension bytes that contain ``payload`` under ``uuid``."""
    if len(payload) + FRAME_BYTES >= 1 << 31:
        raise ValueError(f"a payload of {len(payload)} bytes is too large for an extension")
    size = _uint32(len(payload))
    return b"".join([payload, _uint32(crc32(payload)), size, _uint32(crc32(size)), uuid.bytes])


def owner(extension: bytes) -> UUID | None:
    """Return the UUID of the frame that ``extension`` consists of; None if its length or a checksum is wrong."""
    if len(extension) < FRAME_BYTES:
        return None
    uuid = UUID(bytes=extension[-16:])
    try:
        unframe(extension, uuid)
    except CorruptFileError:
        return None
    return uuid


def unframe(extension: bytes, uuid: UUID) -> bytes | None:
    """Return the payload under ``uuid``; None if the extension does not end in ``uuid``.

    Raises ``CorruptFileError`` if the UUID matches but a length or checksum is wrong.
    """
    if extension[-16:] != uuid.bytes:
        return None
    size = payload_size(extension[-FRAME_BYTES:], len(extension), uuid)
    if size != len(extension) - FRAME_BYTES:
        raise CorruptFileError(
            f"extension {uuid} has {len(extension) - FRAME_BYTES} bytes of payload, but declares {size}"
        )
    return checked_payload(extension[:size], extension[size : size + 4], uuid)


def _uint32(value: int) -> bytes:
    return value.to_bytes(4, "little")


def payload_size(end: bytes, available: int, uuid: UUID) -> int:
    """Return the payload size from the last 28 bytes of a frame.

    Raises ``CorruptFileError`` if its checksum is wrong or the frame exceeds the ``available`` bytes.
    """
    if _uint32(crc32(end[4:8])) != end[8:12]:
        raise CorruptFileError(f"the length of extension {uuid} does not match its checksum")
    size = int.from_bytes(end[4:8], "little")
    if size > available - FRAME_BYTES:
        raise CorruptFileError(f"extension {uuid} declares {size} bytes of payload, but has {available - FRAME_BYTES}")
    return size


def checked_payload(payload: bytes, crc: bytes, uuid: UUID) -> bytes:
    if _uint32(crc32(payload)) != crc:
        raise CorruptFileError(f"the payload of extension {uuid} does not match its checksum")
    return payload
