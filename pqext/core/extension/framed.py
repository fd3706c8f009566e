"""Extension bytes that can be recognised and checked from their end, without reading the Thrift before them.

As the first example of the format's text lays them out:

    K bytes   payload
    4 bytes   little-endian CRC-32 of the payload
    4 bytes   little-endian K
    4 bytes   little-endian CRC-32 of those four bytes
    16 bytes  UUID that says whose extension it is

Spec: "Binary Protocol Extensions"; the rules are in ``specs/binary-protocol-extensions.md``.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from isal.isal_zlib import crc32

from pqext.core.errors import CorruptFileError, LimitError
from pqext.core.footer import MAGIC, TRAILER_BYTES
from pqext.core.limits import DEFAULT_LIMITS, Limits
from pqext.core.sources.opening import open_source

FRAME_BYTES = 28
"""What a frame adds to its payload."""


def frame(payload: bytes, uuid: UUID) -> bytes:
    """The extension bytes that carry ``payload`` for the owner of ``uuid``."""
    if len(payload) + FRAME_BYTES >= 1 << 31:
        raise ValueError(f"a payload of {len(payload)} bytes does not fit an extension")
    size = _uint32(len(payload))
    return b"".join([payload, _uint32(crc32(payload)), size, _uint32(crc32(size)), uuid.bytes])


def owner(extension: bytes) -> UUID | None:
    """The UUID of the frame whose lengths and checksums fit ``extension``; None when it is no frame."""
    if len(extension) < FRAME_BYTES:
        return None
    uuid = UUID(bytes=extension[-16:])
    try:
        unframe(extension, uuid)
    except CorruptFileError:
        return None
    return uuid


def unframe(extension: bytes, uuid: UUID) -> bytes | None:
    """The payload for the owner of ``uuid``; None when the extension ends in another UUID or none.

    Raises ``CorruptFileError`` when the UUID is there but a length or checksum contradicts it.
    """
    if extension[-16:] != uuid.bytes:
        return None
    size = _payload_size(extension[-FRAME_BYTES:], len(extension), uuid)
    if size != len(extension) - FRAME_BYTES:
        raise CorruptFileError(
            f"extension {uuid} has {len(extension) - FRAME_BYTES} bytes of payload and says {size}"
        )
    return _checked(extension[:size], extension[size : size + 4], uuid)


def find_framed(source: Any, uuid: UUID, limits: Limits = DEFAULT_LIMITS) -> bytes | None:
    """The payload of the framed extension at the end of a file's footer, read from the end backwards.

    ``source`` is whatever :func:`pqext.open` takes. No Thrift is parsed, and 37 bytes are read when the
    footer ends in no frame of ``uuid``; the result is then None. Raises ``CorruptFileError`` when the file is
    no Parquet file or the frame is damaged, and ``LimitError`` for one beyond ``footer_bytes``.
    """
    opened = open_source(source)
    try:
        tail_bytes = min(opened.size, FRAME_BYTES + 1 + TRAILER_BYTES)
        tail = opened.read(opened.size - tail_bytes, tail_bytes).tobytes()
        if tail[-4:] != MAGIC:
            raise CorruptFileError(f"the file ends in {tail[-4:]!r} instead of {MAGIC!r}", path=opened.path)
        footer_bytes = int.from_bytes(tail[-TRAILER_BYTES:-4], "little")
        # The stop byte of FileMetaData stands between the extension and the trailer.
        found = tail[: -TRAILER_BYTES - 1]
        whole = min(footer_bytes, opened.size - len(MAGIC) - TRAILER_BYTES) - 1
        if len(found) < FRAME_BYTES or whole < FRAME_BYTES or tail[-TRAILER_BYTES - 1] or found[-16:] != uuid.bytes:
            return None
        size = _payload_size(found, whole, uuid)
        if size > limits.footer_bytes:
            raise LimitError(f"extension {uuid} has {size} bytes, more than footer_bytes={limits.footer_bytes}")
        start = opened.size - tail_bytes - size
        return _checked(opened.read(start, size).tobytes(), found[:4], uuid)
    except (CorruptFileError, LimitError) as error:
        error.locate(path=opened.path)
        raise
    finally:
        if opened is not source:
            opened.close()


def _uint32(value: int) -> bytes:
    return value.to_bytes(4, "little")


def _payload_size(end: bytes, whole: int, uuid: UUID) -> int:
    """The size that the last 28 bytes of a frame give, checked before anything is read by it."""
    if _uint32(crc32(end[4:8])) != end[8:12]:
        raise CorruptFileError(f"the length of extension {uuid} does not match its checksum")
    size = int.from_bytes(end[4:8], "little")
    if size > whole - FRAME_BYTES:
        raise CorruptFileError(f"extension {uuid} says {size} bytes of payload where {whole - FRAME_BYTES} exist")
    return size


def _checked(payload: bytes, crc: bytes, uuid: UUID) -> bytes:
    if _uint32(crc32(payload)) != crc:
        raise CorruptFileError(f"the payload of extension {uuid} does not match its checksum")
    return payload
