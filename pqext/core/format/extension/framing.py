"""Layouts of extension bytes: a frame for one extension, and a container for several extensions of one structure.

A frame can be recognised and checked from its end, without reading the preceding Thrift. It has the layout of the
first example in the specification:

K bytes   payload
    4 bytes   little-endian CRC-32 of the payload
    4 bytes   little-endian K
    4 bytes   little-endian CRC-32 of those four bytes
    16 bytes  UUID of the extension

A container is a frame under a UUID of its own, with the payload

    1 byte     version, 1
    ULEB128    number of entries
    then each  16 bytes UUID, ULEB128 length, that many bytes

The order of entries and entries with unknown UUIDs are preserved. Spec: "Binary Protocol Extensions"; the rules are in
``specs/binary-protocol-extensions.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import UUID

from isal.isal_zlib import crc32

from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.format.extension.structure import extensions, set_extension
from pqext.core.format.thrift import Struct, read_uleb, uleb

FRAME_BYTES = 28
"""Number of bytes that a frame adds to its payload."""
CONTAINER = UUID("10db0b02-31cc-4724-b76c-0d7a0d14c508")
"""UUID of a container."""
VERSION = 1


def frame(payload: bytes, uuid: UUID) -> bytes:
    """Return the extension bytes that contain ``payload`` under ``uuid``."""
    if len(payload) + FRAME_BYTES >= 1 << 31:
        raise ValueError(f"a payload of {len(payload)} bytes is too large for an extension")
    size = _uint32(len(payload))
    return b"".join([payload, _uint32(crc32(payload)), size, _uint32(crc32(size)), uuid.bytes])


def frame_uuid(extension: bytes) -> UUID | None:
    """Return the UUID of the frame that fills ``extension``; None if ``extension`` is not a valid frame."""
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
    return check_payload(extension[:size], extension[size : size + 4], uuid)


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


def check_payload(payload: bytes, crc: bytes, uuid: UUID) -> bytes:
    if _uint32(crc32(payload)) != crc:
        raise CorruptFileError(f"the payload of extension {uuid} does not match its checksum")
    return payload


class ExtensionContainer(Mapping[UUID, bytes]):
    """Immutable mapping from the UUIDs of extensions to their bytes, in the order of the file."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[UUID, bytes] | None = None) -> None:
        # Keys are bytes: a malicious file can use UUIDs with equal hashes, but not bytes with equal hashes.
        self._entries: dict[bytes, bytes] = {}
        for uuid, payload in (entries or {}).items():
            if not isinstance(uuid, UUID) or not isinstance(payload, bytes):
                types = f"{type(uuid).__name__} to {type(payload).__name__}"
                raise TypeError(f"an extension container must map uuid.UUID to bytes, not {types}")
            self._entries[uuid.bytes] = payload

    def __getitem__(self, uuid: UUID) -> bytes:
        if not isinstance(uuid, UUID) or uuid.bytes not in self._entries:
            raise KeyError(uuid)
        return self._entries[uuid.bytes]

    def __iter__(self) -> Iterator[UUID]:
        return (UUID(bytes=uuid) for uuid in self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        inside = ", ".join(f"{uuid}: {len(payload)} bytes" for uuid, payload in self.items())
        return f"ExtensionContainer({inside})"

    def with_payload(self, uuid: UUID, payload: bytes | None) -> ExtensionContainer:
        """Return a container with ``payload`` for ``uuid``, or without ``uuid`` if ``payload`` is None."""
        entries = dict(self._entries)
        if payload is None:
            entries.pop(uuid.bytes, None)
        else:
            entries |= ExtensionContainer({uuid: payload})._entries
        return self._from_entries(entries)

    @classmethod
    def _from_entries(cls, entries: dict[bytes, bytes]) -> ExtensionContainer:
        container = cls()
        container._entries = entries
        return container

    def encode(self) -> bytes:
        """Return the bytes of the container as the extension of a structure."""
        parts = [bytes([VERSION]), uleb(len(self._entries))]
        for uuid, payload in self._entries.items():
            parts += (uuid, uleb(len(payload)), payload)
        return frame(b"".join(parts), CONTAINER)

    @classmethod
    def decode(cls, extension: bytes) -> ExtensionContainer | None:
        """Decode the container in a structure's extension; return None if the extension is not a container.

        Raises ``CorruptFileError`` if the container is corrupt, and ``UnsupportedError`` if it has a later version.
        """
        payload = unframe(extension, CONTAINER)
        return None if payload is None else cls.parse(payload)

    @classmethod
    def parse(cls, payload: bytes) -> ExtensionContainer:
        """Parse the container in the payload of its frame. Raises the errors of :meth:`decode`."""
        if payload[:1] != bytes([VERSION]):
            if not payload:
                raise CorruptFileError("an extension container has no version")
            message = f"version {payload[0]} of an extension container is unknown; only version {VERSION} is supported"
            raise UnsupportedError(message, feature="extension container")
        entries: dict[bytes, bytes] = {}
        count, at = read_uleb(payload, 1)
        for _ in range(count):  # an entry takes at least 17 bytes, so a wrong count reaches the end of the bytes first
            uuid = payload[at : at + 16]
            if len(uuid) < 16:
                raise CorruptFileError("an extension container ends within an entry")
            size, at = read_uleb(payload, at + 16)
            if size > len(payload) - at:
                raise CorruptFileError(f"an entry of {size} bytes extends beyond its extension container")
            if uuid in entries:
                raise CorruptFileError(f"an extension container contains UUID {UUID(bytes=uuid)} twice")
            entries[uuid] = payload[at : at + size]
            at += size
        if at != len(payload):
            raise CorruptFileError(f"{len(payload) - at} bytes follow the entries of an extension container")
        return cls._from_entries(entries)


def entry(struct: Struct, uuid: UUID) -> bytes | None:
    """Return the payload of extension ``uuid`` of ``struct``, framed or in a container; None if it is missing.

    Raises ``CorruptFileError`` if the frame or the container is corrupt, and ``UnsupportedError`` for a later version.
    """
    stored = extensions(struct)
    if stored is None:
        return None
    container = ExtensionContainer.decode(stored)
    return unframe(stored, uuid) if container is None else container.get(uuid)


def add_entries(struct: Struct, entries: Mapping[UUID, bytes]) -> None:
    """Add extensions to ``struct``. A single extension is framed; several extensions share a container.

    If the structure has an extension that is neither framed nor a container, it is preserved and nothing is added.
    """
    stored = extensions(struct)
    container = ExtensionContainer() if stored is None else ExtensionContainer.decode(stored)
    if container is None or not entries:
        return
    if stored is None and len(entries) == 1:
        ((uuid, payload),) = entries.items()
        set_extension(struct, frame(payload, uuid))
        return
    for uuid, payload in entries.items():
        container = container.with_payload(uuid, payload)
    set_extension(struct, container.encode(), replace=True)


def payloads_by_uuid(extension: bytes) -> dict[UUID, bytes] | None:
    """Return the payloads in a structure's extension by UUID; None unless the extension is a frame or a container.

    Raises the same errors as :meth:`ExtensionContainer.decode`.
    """
    container = ExtensionContainer.decode(extension)
    if container is not None:
        return dict(container)
    uuid = frame_uuid(extension)
    return None if uuid is None else {uuid: extension[: -FRAME_BYTES]}
