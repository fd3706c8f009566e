"""The end of a file: FileMetaData, its length and the magic number.

Spec: "File format" (layout) and "Metadata". Files whose footer is encrypted end in ``PARE``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pqext.core.buffers import Bytes
from pqext.core.encryption.footer import check_plaintext, open_encrypted
from pqext.core.encryption.properties import FileDecryption
from pqext.core.encryption.reading import FileDecryptor
from pqext.core.errors import CorruptFileError, LimitError
from pqext.core.footer_choice import FooterForm
from pqext.core.limits import DEFAULT_LIMITS, Limits
from pqext.core.metadata import FileMetaData
from pqext.core.other_formats import looks_like
from pqext.core.schema import Schema
from pqext.core.schema_tree import from_elements
from pqext.core.source import Source
from pqext.core.thrift import decode, encode

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
_FLAT_MAGIC = b"PAR3"
_FLAT_FRAME = bytes.fromhex("6d9c1b525a4c4b0e8f0b2f4f6a3a9d10")
"""Marks a FlatBuffers footer in the extension (:mod:`pqext.core.flat.framing`)."""
TRAILER_BYTES = 8
"""The footer's length, four bytes little-endian, and the magic number."""

LEAST_INDEXED = 64 << 10
"""Bytes of a footer, less than which are read whole even if it has a jump table."""


@dataclass(frozen=True, slots=True)
class Footer:
    """A file's metadata, where it stands in the file, and its ``length`` bytes as they were read.

    ``raw`` holds more than the structure when the footer is signed (28 bytes behind it), and not the structure but
    what it is encrypted in when the file ends in ``PARE``. ``decryptor`` is set for files with anything encrypted.
    """

    metadata: FileMetaData
    offset: int
    length: int
    raw: Bytes
    decryptor: FileDecryptor | None = None
    known_crc: int | None = None
    """CRC-32 of these bytes, where they were not read."""

    @property
    def form(self) -> FooterForm:
        """``"flatbuffers"`` for a footer that is no Thrift footer."""
        return "thrift"

    @property
    def whole(self) -> FileMetaData:
        """The metadata with all that stands in it."""
        return self.metadata

    def schema(self, limits: Limits, path: str | None) -> Schema:
        """The schema; ``path`` names the file in errors. Raises ``CorruptFileError`` and ``LimitError``."""
        return from_elements(self.metadata.schema, limits, path)


class FootedSource(Source):
    """A source whose ``footer`` is known from elsewhere."""

    footer: Footer


def read_footer(
    source: Source, limits: Limits = DEFAULT_LIMITS, decryption: FileDecryption | None = None,
    by_table: Callable[[Source, int, int, Limits, Bytes], Footer | None] | None = None,
) -> Footer:
    """Read and index the footer of ``source``; row groups and columns are decoded when asked for.

    A long one is read ``by_table``, as far as it is asked for, if it has a jump table, which it then does not show.

    Raises ``CorruptFileError`` for anything that is not a whole Parquet file, ``EncryptionError`` for an
    encrypted footer that ``decryption`` does not open and ``LimitError`` beyond ``limits``.
    """
    if isinstance(source, FootedSource):
        return source.footer
    size = source.size
    if size < len(MAGIC) + TRAILER_BYTES:
        head = bytes(source.read(0, len(MAGIC))) if size >= len(MAGIC) else b""
        told = "" if head in (MAGIC, ENCRYPTED_MAGIC) else looks_like(head)
        raise CorruptFileError(f"not a Parquet file: it has {size} bytes{told}", path=source.path)
    tail_bytes = min(size, max(source.tail_bytes, TRAILER_BYTES))
    if size - tail_bytes - len(MAGIC) <= source.merge_gap and not source.is_remote:
        tail_bytes = size
    if tail_bytes == size:
        tail = source.read(0, size, keep=True)
        head = tail[: len(MAGIC)].tobytes()
    elif source.is_remote:  # its first bytes are not worth a request
        tail = source.read(size - tail_bytes, tail_bytes, keep=True)
        head = tail[-len(MAGIC) :].tobytes()
    else:
        head = source.read(0, len(MAGIC), keep=True).tobytes()
        tail = source.read(size - tail_bytes, tail_bytes, keep=True)
    trailer = tail[-TRAILER_BYTES:].tobytes()
    if trailer[4:] == _FLAT_MAGIC and (head == MAGIC or (source.is_remote and tail_bytes < size)):
        from pqext.core.flat.opening import read_alone  # it knows this module

        return read_alone(source, limits)
    if head != MAGIC or trailer[4:] != MAGIC:
        _check_magic(head, trailer[4:], source, source.is_remote and tail_bytes < size)
    length = int.from_bytes(trailer[:4], "little")
    offset = size - TRAILER_BYTES - length
    if length == 0 or offset < len(MAGIC):
        raise CorruptFileError(
            f"a footer of {length} bytes is announced in a file of {size} bytes: "
            "the end of the file is damaged, or parts of the file are missing",
            path=source.path,
            offset=size - TRAILER_BYTES,
        )
    if length > limits.footer_bytes:
        raise LimitError(
            f"the footer has {length} bytes, more than footer_bytes={limits.footer_bytes}",
            path=source.path,
            offset=size - TRAILER_BYTES,
        )
    source.learn(offset)
    is_plain = trailer[4:] == MAGIC and decryption is None
    if by_table is not None and is_plain and length >= LEAST_INDEXED and length + TRAILER_BYTES > tail_bytes:
        found = by_table(source, offset, length, limits, tail)
        if found is not None:
            return found
    if length + TRAILER_BYTES <= tail_bytes:
        raw = tail[-TRAILER_BYTES - length : -TRAILER_BYTES]
    else:
        raw = source.read(offset, length, keep=True)
    if trailer[4:] == ENCRYPTED_MAGIC:
        plaintext, decryptor = open_encrypted(raw, decryption, limits, offset, source.path)
        metadata, _ = decode(FileMetaData, plaintext, limits=limits, path=source.path)
        return Footer(metadata, offset, length, raw, decryptor)
    if raw[-17:-1].tobytes() == _FLAT_FRAME:
        from pqext.core.flat.opening import open_instead

        opened = open_instead(raw, offset, limits, source.path)
        if opened is not None:
            return opened
    metadata, end = decode(FileMetaData, raw, limits=limits, base=offset, path=source.path)
    return Footer(metadata, offset, length, raw, check_plaintext(metadata, raw, end, decryption, offset, source.path))


def _check_magic(head: bytes, tail: bytes, source: Source, headless: bool) -> None:
    """Raise ``CorruptFileError`` for other first and last bytes than Parquet's; ``headless``: the first are unknown."""
    if head == tail == ENCRYPTED_MAGIC:
        return
    if tail != MAGIC:
        told = "" if headless else looks_like(head)
        advice = "it is truncated or still being written" if head == MAGIC else f"it is not a Parquet file{told}"
        raise CorruptFileError(
            f"the file ends in {tail!r} instead of {MAGIC!r}: {advice}", path=source.path, offset=source.size - 4
        )
    if head != MAGIC:
        raise CorruptFileError(
            f"the file starts with {head!r} instead of {MAGIC!r}: its beginning is damaged or missing",
            path=source.path,
            offset=0,
        )


def serialise_footer(metadata: FileMetaData | bytes, magic: bytes = MAGIC) -> bytes:
    """The bytes that end a file: ``metadata``, serialised already or not, its length and the ``magic`` number."""
    serialised = metadata if isinstance(metadata, bytes) else encode(metadata)
    if len(serialised) >= 1 << 32:
        raise ValueError(f"a footer of {len(serialised)} bytes does not fit its 32-bit length")
    return serialised + len(serialised).to_bytes(4, "little") + magic
