"""Read a file from its FlatBuffers footer if it has no Thrift footer, or if its Thrift footer is corrupt.

If a file has both footers and they differ, the Thrift footer takes precedence and a warning is issued.

The FlatBuffers footer has two possible locations. In a Thrift footer it is the payload of a frame
(:mod:`pqext.core.format.extension.framing`):

    1 byte    codec of the tables, 0 or 7 (LZ4_RAW)
    4 bytes   their size before compression
    4 bytes   bytes of the Thrift fields before the extension
    4 bytes   CRC-32 of these
    the tables

Without a Thrift footer, the file ends in the tables, their CRC-32, their size, the CRC-32 of the size, and ``PAR3``.
All numbers are little-endian. Spec: "Binary Protocol Extensions"; the rules are in
``specs/binary-protocol-extensions.md``.

Metadata that the public schema lacks is in an extension of the FlatBuffers footer, slot 99 of its root table. It is a
frame, or an entry of a container if there are other entries: see :mod:`pqext.core.kernels.flatbuffers.thrift_fields`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import partial

import numpy as np
from isal.isal_zlib import crc32

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError, warn_about_file
from pqext.core.base.limits import Limits
from pqext.core.footer.chunk_offsets import start_of
from pqext.core.footer.flatbuffers.lookup import BESIDE, FlatFooter, FlatLookup
from pqext.core.footer.structure_lookup import peek
from pqext.core.footer.thrift_footer import FLAT_MAGIC, FLATBUFFERS, MAGIC
from pqext.core.format.compression import compress, decompress
from pqext.core.format.enums import CompressionCodec
from pqext.core.format.extension.framing import FRAME_BYTES, frame
from pqext.core.format.extension.structure import append_readable, extensions
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import decode, encode
from pqext.core.io.source import Source
from pqext.core.kernels.flatbuffers.from_thrift import convert
from pqext.core.options.layout import FooterFormat
from pqext.core.schema.lazy_tree import from_elements

TAIL_BYTES = 16
"""Number of bytes after the tables of a FlatBuffers footer without a Thrift footer."""
_ABOUT = struct.Struct("<BIII")
_LEAST_RATIO = 1.2
"""Minimum compression ratio; tables that compress less are stored uncompressed."""
_MOST_RATIO = 64
"""Maximum compression ratio. It is far above the ratio of real footers, so that readers can limit it.

Tables that compress more are stored uncompressed.
"""
_CODECS = (CompressionCodec.UNCOMPRESSED, CompressionCodec.LZ4_RAW)
_MOST_BYTES = (1 << 31) - 1
_DEPTH = 1000
"""Maximum depth of a schema that can be written."""


@dataclass(frozen=True, slots=True)
class EmbeddedFooter:
    """FlatBuffers footer in a Thrift footer: tables, possibly compressed, and a checksum of the Thrift fields."""

    codec: int
    size: int
    thrift_bytes: int
    thrift_crc: int
    body: Bytes

    def matches(self, footer: Bytes) -> bool:
        """Return whether this FlatBuffers footer was built from the serialised Thrift footer ``footer``."""
        return self.thrift_bytes <= len(footer) and crc32(footer[: self.thrift_bytes].data) == self.thrift_crc

    def tables(self, limits: Limits) -> bytes:
        """Return the decompressed tables.

        Raises ``LimitError`` if they exceed ``footer_bytes``, ``UnsupportedError`` for an unknown codec, and
        ``CorruptFileError`` if the declared size is too large for the compressed bytes, or decompression fails.
        """
        if self.codec not in _CODECS:
            message = f"the FlatBuffers footer is compressed with unknown codec {self.codec}"
            raise UnsupportedError(message, feature="footer codec")
        check_limit(self.size, limits)
        if self.size > _MOST_RATIO * len(self.body):
            raise CorruptFileError(
                f"{len(self.body)} bytes of a FlatBuffers footer cannot decompress to {self.size} bytes"
            )
        return decompress(self.codec, self.body, self.size).tobytes()


def build_extension(tables: bytes, thrift: bytes) -> bytes:
    """Return the extension for a Thrift footer. ``thrift`` contains the serialised fields of that footer without the
    stop byte.
    """
    codec, body = CompressionCodec.UNCOMPRESSED, tables
    packed = compress(CompressionCodec.LZ4_RAW, tables)
    if len(packed) * _LEAST_RATIO <= len(tables) <= len(packed) * _MOST_RATIO:
        codec, body = CompressionCodec.LZ4_RAW, packed.tobytes()
    return frame(_ABOUT.pack(codec, len(tables), len(thrift), crc32(thrift)) + body, FLATBUFFERS)


def parse_frame(footer: Bytes) -> EmbeddedFooter:
    """Parse the frame at the end of a serialised Thrift footer.

    Raises ``CorruptFileError`` if it is missing or corrupt.
    """
    stop = len(footer) - 1 - FRAME_BYTES  # before the stop byte
    end = footer[stop:-1].tobytes()
    if end[12:] != FLATBUFFERS.bytes:
        raise CorruptFileError("the file does not end with a FlatBuffers footer")
    size = tables_size(end, stop)
    payload = footer[stop - size : stop]
    verify_checksum(payload, end)
    return parse(payload)


def parse(payload: Bytes) -> EmbeddedFooter:
    """Parse the payload of a frame. Raises ``CorruptFileError`` if it is too short."""
    if len(payload) < _ABOUT.size:
        raise CorruptFileError(
            f"the frame of the FlatBuffers footer has {len(payload)} bytes, fewer than {_ABOUT.size}"
        )
    codec, size, thrift_bytes, thrift_crc = _ABOUT.unpack_from(payload.data)
    return EmbeddedFooter(codec, size, thrift_bytes, thrift_crc, payload[_ABOUT.size :])


def has_matching_footer(footer: Bytes) -> bool:
    """Return whether a serialised Thrift footer ends in a valid FlatBuffers footer with the same content."""
    try:
        return parse_frame(footer).matches(footer)
    except ParquetError:
        return False


def build_file_end(tables: bytes) -> bytes:
    """Return the end of a file whose only footer is the FlatBuffers footer ``tables``."""
    size = len(tables).to_bytes(4, "little")
    return b"".join([tables, crc32(tables).to_bytes(4, "little"), size, crc32(size).to_bytes(4, "little"), FLAT_MAGIC])


def tables_size(trailer: bytes, available: int) -> int:
    """Return the size of the tables from the ``trailer`` that follows them.

    The trailer consists of the CRC-32 of the tables, their size, and the CRC-32 of the size. Raises
    ``CorruptFileError`` if it is corrupt, or if the size exceeds the ``available`` bytes before it.
    """
    size = int.from_bytes(trailer[4:8], "little")
    if crc32(trailer[4:8]) != int.from_bytes(trailer[8:12], "little"):
        raise CorruptFileError("the length of the FlatBuffers footer does not match its checksum")
    if size > available:
        raise CorruptFileError(f"a FlatBuffers footer of {size} bytes is declared, but the file has only {available}")
    return size


def check_limit(size: int, limits: Limits) -> None:
    """Raise ``LimitError`` if the tables have more than ``footer_bytes`` bytes."""
    if size > limits.footer_bytes:
        raise LimitError(
            f"the FlatBuffers footer has {size} bytes, more than footer_bytes={limits.footer_bytes}; "
            "raise the limit with limits=Limits(footer_bytes=...)"
        )


def verify_checksum(footer: Bytes, trailer: bytes) -> None:
    """Raise ``CorruptFileError`` if ``footer`` does not match the checksum at the start of ``trailer``."""
    if crc32(footer.data) != int.from_bytes(trailer[:4], "little"):
        raise CorruptFileError("the FlatBuffers footer does not match its checksum")


def encode_tables(serialised_footer: bytes) -> bytes:
    """Convert a serialised FileMetaData to a FlatBuffers footer.

    Raises ``ValueError`` if it cannot be represented (:func:`pqext.core.kernels.flatbuffers.from_thrift.convert`).
    """
    tables, about, at = convert(serialised_footer, _DEPTH)
    extension = frame(about, BESIDE)
    if len(tables) + 4 + len(extension) > _MOST_BYTES:
        raise ValueError("the footer cannot be written as FlatBuffers: it would exceed 2 GiB; choose another footer")
    distance, size = (number.to_bytes(4, "little") for number in (len(tables) - at, len(extension)))
    return b"".join([tables[:at], distance, tables[at + 4 :], size, extension])


def encode_with_flat_footer(metadata: FileMetaData) -> tuple[bytes, str | None]:
    """Serialise the footer with an embedded FlatBuffers footer.

    Returns the bytes and None or, if the FlatBuffers footer is too long, the bytes without it and the reason. Raises
    ``ValueError`` if the footer has another extension, or cannot be represented in FlatBuffers.
    """
    if extensions(metadata) is not None:
        raise ValueError(
            "footer='thrift+flatbuffers' uses the same extension as extensions['file']; omit the extension, or choose "
            "another footer"
        )
    serialised = encode(metadata)
    extension = build_extension(encode_tables(serialised), serialised[:-1])
    return append_readable(serialised, extension, "a FlatBuffers footer")


_ONE_PLACE = 16
"""Maximum span of changed bytes that counts as corruption: a disk or memory fault changes few bytes, an edit more."""


def read_standalone(source: Source, limits: Limits, end: int | None = None) -> FlatFooter:
    """Read the footer of a file that ends in ``PAR3``, or ended in ``PAR3`` at byte ``end`` before an append.

    Raises ``CorruptFileError`` for a corrupt footer, ``LimitError`` if it exceeds ``limits``, and ``UnsupportedError``
    if it is encrypted.
    """
    about = (source.size if end is None else end) - TAIL_BYTES
    if about < len(MAGIC):
        raise CorruptFileError(f"not a Parquet file: it has {source.size} bytes", path=source.path)
    try:
        tail = source.read(about, TAIL_BYTES, is_metadata=True).tobytes()
        size = tables_size(tail, about - len(MAGIC))
        check_limit(size, limits)
        tables = source.read(about - size, size, is_metadata=True)
        verify_checksum(tables, tail)
        source.add_metadata(about - size)
        return _open_footer(tables.tobytes(), about - size, size, limits, source.path, "flatbuffers")
    except ParquetError as error:
        error.locate(path=source.path)
        if error.offset is None and isinstance(error, (CorruptFileError, LimitError)):
            error.offset = about
        raise


def open_embedded(footer: Bytes, offset: int, limits: Limits, path: str | None) -> FlatFooter:
    """Read the FlatBuffers footer in the extension of a serialised Thrift footer."""
    tables = parse_frame(footer).tables(limits)
    return _open_footer(tables, offset, len(footer), limits, path, "thrift+flatbuffers")


def choose_footer(footer: Bytes, offset: int, limits: Limits, path: str | None) -> FlatFooter | None:
    """Return the embedded FlatBuffers footer if the Thrift footer is corrupt; None if the Thrift footer can be used.

    The Thrift footer is considered corrupt if it contradicts itself, or if only a few adjacent bytes differ from the
    Thrift footer that the FlatBuffers footer was created from. Issue a warning if the footers differ.
    """
    try:
        held = parse_frame(footer)
        if held.matches(footer):
            return None
        opened = open_embedded(footer, offset, limits, path)
    except ParquetError as error:
        _warn(path, f"ignored the footer's FlatBuffers copy: {error.message}")
        return None
    fault = _describe_contradiction(footer, offset, limits, path) or _describe_changed_bytes(footer, held, opened.raw)
    if fault is None:
        _warn(path, "the Thrift footer and its FlatBuffers copy differ; the Thrift footer is used")
        return None
    _warn(path, f"the Thrift footer is damaged: {fault}; the FlatBuffers footer is used")
    return opened


def open_fallback(
    error: CorruptFileError, footer: Bytes, offset: int, limits: Limits, path: str | None
) -> FlatFooter | None:
    """Return the FlatBuffers footer in an unreadable Thrift footer, and issue a warning. None if both footers are
    invalid.
    """
    try:
        opened = open_embedded(footer, offset, limits, path)
    except ParquetError:
        return None
    _warn(path, f"the Thrift footer is damaged: {error.message}; the FlatBuffers footer is used")
    return opened


def _describe_contradiction(footer: Bytes, offset: int, limits: Limits, path: str | None) -> str | None:
    """Describe a contradiction within a serialised Thrift footer, or between the footer and the size of the preceding
    data.

    Return None if there is no contradiction.
    """
    try:
        metadata, _ = decode(FileMetaData, footer, limits=limits, base=offset, path=path)
        leaves = from_elements(metadata.schema, limits, path).leaves
        rows = 0
        for group in map(partial(peek, metadata.row_groups), range(len(metadata.row_groups))):
            rows += group.num_rows
            if len(group.columns) != len(leaves) or group.num_rows < 0:
                return "a row group does not match the schema"
            for at, leaf in enumerate(leaves):
                chunk = peek(group.columns, at)
                about = chunk.meta_data
                if about is None or tuple(about.path_in_schema) != leaf.path or about.type != leaf.physical_type:
                    return "a column chunk does not match its column"
                start = start_of(about)
                if chunk.file_path is None and not 0 <= start <= offset - about.total_compressed_size <= offset:
                    return "a column chunk is outside the file"
        return "row groups are missing" if metadata.num_rows > rows else None
    except (CorruptFileError, UnsupportedError) as error:
        return error.message


def _describe_changed_bytes(footer: Bytes, embedded_footer: EmbeddedFooter, raw: Bytes) -> str | None:
    """Describe the changed bytes if the Thrift footer differs from the original in one short byte range.

    Return None otherwise.
    """
    fields = raw[:-1]  # without the stop byte
    has_thrift = len(fields) == embedded_footer.thrift_bytes and crc32(fields.data) == embedded_footer.thrift_crc
    if not has_thrift or len(fields) > len(footer):
        return None
    others = np.flatnonzero(fields != footer[: len(fields)])
    if not len(others) or others[-1] - others[0] >= _ONE_PLACE:
        return None
    return f"its bytes {others[0]} to {others[-1]} changed after it was written"


def _open_footer(
    tables: bytes, offset: int, length: int, limits: Limits, path: str | None, footer_format: FooterFormat
) -> FlatFooter:
    lookup = FlatLookup(tables, limits, path)
    if lookup.flat.is_encrypted:
        raise UnsupportedError(
            "encrypted FlatBuffers footers are not supported", feature="encrypted FlatBuffers footer"
        )
    return FlatFooter(lookup, offset, length, footer_format)


def _warn(path: str | None, message: str) -> None:
    from pqext.core.indexes.reading import DamagedIndexWarning

    warn_about_file(path, message, DamagedIndexWarning)
