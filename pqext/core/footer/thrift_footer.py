"""Thrift footers: FileMetaData, its length and the magic number, at the end of a file.

Spec: "File format" (layout) and "Metadata". Files whose footer is encrypted end in ``PARE``.
"""

from __future__ import annotations

from dataclasses import dataclass

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import CorruptFileError
from pqext.core.base.limits import Limits
from pqext.core.encryption.reading import FileDecryptor
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import encode
from pqext.core.io.source import Source
from pqext.core.options.footer import FooterFormat
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import Schema

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
TRAILER_BYTES = 8
"""Size of the trailer: the footer's length in four bytes, little-endian, and the magic number."""


@dataclass(frozen=True, slots=True)
class Footer:
    """Metadata of a file, its offset and length in the file, and its bytes ``raw`` as they were read.

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
        """Complete metadata."""
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


class FootedSource(Source):
    """Source whose ``footer`` is already known."""

    footer: Footer


def serialise_footer(metadata: FileMetaData | bytes, magic: bytes = MAGIC) -> bytes:
    """Return the trailing bytes of a file: the serialised ``metadata``, its length and the ``magic`` number.

    ``metadata`` may already be serialised.
    """
    serialised = metadata if isinstance(metadata, bytes) else encode(metadata)
    if len(serialised) >= 1 << 32:
        raise ValueError(f"a footer of {len(serialised)} bytes exceeds the 32-bit footer length")
    return serialised + len(serialised).to_bytes(4, "little") + magic
