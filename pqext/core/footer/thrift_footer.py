"""Thrift footers: FileMetaData, its length and the magic number, at the end of a file.

Spec: "File format" (layout) and "Metadata". Files whose footer is encrypted end in ``PARE``. A framed extension at the
end of FileMetaData can be read without parsing it (:func:`find_framed`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.encryption.reading import FileDecryptor
from pqext.core.format.extension.framing import FRAME_BYTES, check_payload, payload_size
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import encode
from pqext.core.io.source import Source
from pqext.core.io.sources.locations import open_source
from pqext.core.options.layout import FooterFormat
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import Schema

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
FLAT_MAGIC = b"PAR3"
FLATBUFFERS = UUID("6d9c1b52-5a4c-4b0e-8f0b-2f4f6a3a9d10")
"""UUID of the frame with a FlatBuffers footer in a Thrift footer."""
TRAILER_BYTES = 8
"""Size of the trailer: the footer's length in four bytes, little-endian, and the magic number."""


@dataclass(frozen=True, slots=True)
class Footer:
    """Footer of a file: metadata, offset and length in the file, and the bytes ``raw`` as they were read.

    If the footer is signed, ``raw`` includes the 28 bytes of the signature. ``raw`` is encrypted if the file ends in
    ``PARE``. ``decryptor`` is set if any part of the file is encrypted.
    """

    metadata: FileMetaData
    offset: int
    length: int
    raw: Bytes
    decryptor: FileDecryptor | None = None
    known_crc: int | None = None
    """CRC-32 of the stored footer if it is known although the bytes were not read; otherwise None."""

    @property
    def format(self) -> FooterFormat:
        """Footer format; ``"flatbuffers"`` if the file has no Thrift footer."""
        return "thrift"

    @property
    def complete(self) -> FileMetaData:
        """Complete metadata of the file."""
        return self.metadata

    def schema(self, limits: Limits, path: str | None, *, strict: bool = False) -> Schema:
        """Return the schema. ``path`` names the file in errors.

        Unless ``strict``, columns of the root without a repetition type are required, as in other readers, and groups
        without columns are omitted. Raises ``CorruptFileError`` if the schema is invalid, and ``LimitError`` if it
        exceeds ``limits``.
        """
        for element in self.metadata.schema[1:] if strict else ():
            if element.repetition_type is None:
                message = f"the schema element {element.name!r} has no repetition type"
                raise CorruptFileError(message, path=path, column=element.name)
        return from_elements(self.metadata.schema, limits, path, strict=strict)


class SourceWithFooter(Source):
    """Source with a ``footer`` that was read before."""

    footer: Footer


def serialise_footer(metadata: FileMetaData | bytes, magic: bytes = MAGIC) -> bytes:
    """Return the trailing bytes of a file: the serialised ``metadata``, its length and the ``magic`` number.

    ``metadata`` may already be serialised.
    """
    serialised = metadata if isinstance(metadata, bytes) else encode(metadata)
    if len(serialised) >= 1 << 32:
        raise ValueError(f"a footer of {len(serialised)} bytes exceeds the 32-bit footer length")
    return serialised + len(serialised).to_bytes(4, "little") + magic


def find_framed(source: Any, uuid: UUID, limits: Limits = DEFAULT_LIMITS) -> bytes | None:
    """Return the payload of the framed extension at the end of a file's footer, reading backwards from the end.

    ``source`` is any input of :func:`pqext.open`. No Thrift is parsed. If the footer does not end in a frame of
    ``uuid``, only 37 bytes are read and None is returned. Raises ``CorruptFileError`` if the file is not a Parquet file
    or the frame is corrupt, and ``LimitError`` if the frame exceeds ``footer_bytes``.
    """
    opened = open_source(source)
    try:
        tail_bytes = min(opened.size, FRAME_BYTES + 1 + TRAILER_BYTES)
        tail = opened.read(opened.size - tail_bytes, tail_bytes).tobytes()
        if tail[-4:] != MAGIC:
            raise CorruptFileError(f"the file ends in {tail[-4:]!r} instead of {MAGIC!r}", path=opened.path)
        footer_bytes = int.from_bytes(tail[-TRAILER_BYTES:-4], "little")
        # The stop byte of FileMetaData is between the extension and the trailer.
        result = tail[: -TRAILER_BYTES - 1]
        whole = min(footer_bytes, opened.size - len(MAGIC) - TRAILER_BYTES) - 1
        if len(result) < FRAME_BYTES or whole < FRAME_BYTES or tail[-TRAILER_BYTES - 1] or result[-16:] != uuid.bytes:
            return None
        size = payload_size(result, whole, uuid)
        if size > limits.footer_bytes:
            raise LimitError(
                f"extension {uuid} has {size} bytes, more than footer_bytes={limits.footer_bytes}; "
                "raise the limit with limits=Limits(footer_bytes=...)"
            )
        start = opened.size - tail_bytes - size
        return check_payload(opened.read(start, size).tobytes(), result[:4], uuid)
    except (CorruptFileError, LimitError) as error:
        error.locate(path=opened.path)
        raise
    finally:
        if opened is not source:
            opened.close()


def ends_in_flat_footer(footer: Bytes) -> bool:
    """Return whether a serialised Thrift footer ends in the frame of a FlatBuffers footer."""
    return len(footer) > FRAME_BYTES and footer[-17:-1].tobytes() == FLATBUFFERS.bytes
