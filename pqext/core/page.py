"""Pages: from the bytes of a column chunk to levels and encoded values, and back.

Implements data pages (order of levels and values), checksumming, and the two versions of the data page header.
Version 1 compresses levels and values together and prefixes the levels with their length; version 2 leaves the
levels uncompressed, with their lengths in the header.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pqext.core import compression
from pqext.core.buffers import Bytes, view
from pqext.core.errors import CorruptFileError, LimitError, UnsupportedError
from pqext.core.limits import Limits
from pqext.core.metadata import (
    CompressionCodec,
    DataPageHeader,
    DataPageHeaderV2,
    DictionaryPageHeader,
    Encoding,
    PageHeader,
    PageType,
)
from pqext.core.thrift import decode, encode


@dataclass(frozen=True, slots=True)
class RawPage:
    """A page as it lies in the file: its header, its stored bytes and where they begin in the chunk."""

    header: PageHeader
    body: Bytes
    offset: int

    @property
    def num_values(self) -> int:
        """Entries of a data page, nulls included; values of a dictionary page."""
        header = self.header
        detail = header.data_page_header or header.data_page_header_v2 or header.dictionary_page_header
        return detail.num_values if detail is not None else 0


@dataclass(frozen=True, slots=True)
class DataPage:
    """A data page taken apart: encoded levels (without length prefixes) and encoded values.

    ``repetition`` and ``definition`` are ``None`` where the column has no such levels.
    """

    num_values: int
    encoding: int
    repetition: Bytes | None
    definition: Bytes | None
    values: Bytes
    offset: int


def raw_pages(chunk: Bytes, limits: Limits) -> Iterator[RawPage]:
    """The pages of a column chunk, one after another; page types that are not known are passed over.

    Errors carry the ``offset`` within ``chunk``.
    """
    at = 0
    while at < len(chunk):
        window = chunk[at : at + limits.page_header_bytes]
        try:
            header, length = decode(PageHeader, window, 0, limits)
        except (CorruptFileError, LimitError) as error:
            error.offset = at + (error.offset or 0)
            raise
        start = at + length
        stored, size = header.compressed_page_size, header.uncompressed_page_size
        if stored < 0 or size < 0 or stored > len(chunk) - start:
            raise CorruptFileError(
                f"a page of {stored} bytes leaves its column chunk, which has {len(chunk) - start} left", offset=at
            )
        if size > limits.page_bytes:
            raise LimitError(f"a page of {size} bytes exceeds page_bytes={limits.page_bytes}", offset=at)
        page = RawPage(header, chunk[start : start + stored], at)
        if not 0 <= page.num_values <= limits.page_values:
            raise LimitError(f"a page of {page.num_values} values exceeds page_values={limits.page_values}", offset=at)
        yield page
        at = start + stored


def verify_checksum(page: RawPage) -> None:
    """Compare the stored bytes with the header's CRC-32, where it has one."""
    crc = page.header.crc
    if crc is not None and zlib.crc32(page.body.data) != crc & 0xFFFFFFFF:
        raise CorruptFileError("a page's bytes do not match its checksum; the file is damaged", offset=page.offset)


def open_dictionary(page: RawPage, codec: int) -> tuple[int, Bytes]:
    """(number of values, PLAIN bytes) of a dictionary page."""
    header = page.header.dictionary_page_header
    if header is None:
        raise CorruptFileError("a dictionary page lacks its header", offset=page.offset)
    if header.encoding not in (Encoding.PLAIN, Encoding.PLAIN_DICTIONARY):
        raise UnsupportedError(f"a dictionary page in encoding {header.encoding!r}", feature="dictionary encoding")
    return header.num_values, compression.decompress(codec, page.body, page.header.uncompressed_page_size)


def open_data(page: RawPage, codec: int, *, max_repetition: int, max_definition: int) -> DataPage:
    """Decompress a data page of either version and part it into levels and values."""
    if page.header.type == PageType.DATA_PAGE_V2:
        return _open_v2(page, codec, max_repetition, max_definition)
    header = page.header.data_page_header
    if header is None:
        raise CorruptFileError("a data page lacks its header", offset=page.offset)
    body = compression.decompress(codec, page.body, page.header.uncompressed_page_size)
    repetition = definition = None
    if max_repetition:
        repetition, body = _prefixed(body, header.repetition_level_encoding, page.offset)
    if max_definition:
        definition, body = _prefixed(body, header.definition_level_encoding, page.offset)
    return DataPage(header.num_values, header.encoding, repetition, definition, body, page.offset)


def _prefixed(body: Bytes, encoding: int, offset: int) -> tuple[Bytes, Bytes]:
    if encoding != Encoding.RLE:
        raise UnsupportedError(f"levels in encoding {encoding!r} cannot be read", feature="level encoding")
    length = int.from_bytes(body[:4], "little")
    if len(body) < 4 or length > len(body) - 4:
        raise CorruptFileError("levels leave their page", offset=offset)
    return body[4 : 4 + length], body[4 + length :]


def _open_v2(page: RawPage, codec: int, max_repetition: int, max_definition: int) -> DataPage:
    header = page.header.data_page_header_v2
    if header is None:
        raise CorruptFileError("a data page lacks its header", offset=page.offset)
    first, second = header.repetition_levels_byte_length, header.definition_levels_byte_length
    size = page.header.uncompressed_page_size - first - second
    if first < 0 or second < 0 or first + second > len(page.body) or size < 0:
        raise CorruptFileError("levels leave their page", offset=page.offset)
    values = page.body[first + second :]
    if header.is_compressed is not False and (len(values) or size):
        values = compression.decompress(codec, values, size)
    return DataPage(
        num_values=header.num_values,
        encoding=header.encoding,
        repetition=page.body[:first] if max_repetition else None,
        definition=page.body[first : first + second] if max_definition else None,
        values=values,
        offset=page.offset,
    )


@dataclass(frozen=True, slots=True)
class PageWriter:
    """Serialises pages of one column chunk: compress, checksum, header."""

    codec: CompressionCodec
    checksums: bool
    version: int

    def dictionary(self, values: Any, count: int) -> tuple[bytes, Bytes, int]:
        """A dictionary page of PLAIN ``values``: (header, body, uncompressed body size)."""
        body = compression.compress(self.codec, values)
        detail = DictionaryPageHeader(num_values=count, encoding=Encoding.PLAIN)
        header = self._header(PageType.DICTIONARY_PAGE, len(values), body)
        header.dictionary_page_header = detail
        return encode(header), body, len(values)

    def data(
        self, *, num_values: int, num_nulls: int, num_rows: int, encoding: Encoding,
        repetition: bytes | None, definition: bytes | None, values: Any,
    ) -> tuple[bytes, Bytes, int]:
        """A data page: (header, body, uncompressed body size); levels ``None`` where the column has none."""
        if self.version == 2:
            levels = (repetition or b"") + (definition or b"")
            packed = compression.compress(self.codec, values)
            compressed = self.codec != CompressionCodec.UNCOMPRESSED and len(packed) < len(values)
            body = view(levels + bytes(packed if compressed else values))
            header = self._header(PageType.DATA_PAGE_V2, len(levels) + len(values), body)
            header.data_page_header_v2 = DataPageHeaderV2(
                num_values=num_values,
                num_nulls=num_nulls,
                num_rows=num_rows,
                encoding=encoding,
                definition_levels_byte_length=len(definition or b""),
                repetition_levels_byte_length=len(repetition or b""),
                is_compressed=compressed,
            )
            return encode(header), body, len(levels) + len(values)
        parts = [part for part in (repetition, definition) if part is not None]
        levels = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
        whole = levels + bytes(values) if levels else values
        body = compression.compress(self.codec, whole)
        header = self._header(PageType.DATA_PAGE, len(whole), body)
        header.data_page_header = DataPageHeader(
            num_values=num_values,
            encoding=encoding,
            definition_level_encoding=Encoding.RLE,
            repetition_level_encoding=Encoding.RLE,
        )
        return encode(header), body, len(whole)

    def _header(self, kind: PageType, size: int, body: Bytes) -> PageHeader:
        if max(size, len(body)) > 0x7FFFFFFF:
            raise LimitError("a page of more than 2 GiB; write smaller pages (page_rows, page_bytes)")
        header = PageHeader(type=kind, uncompressed_page_size=size, compressed_page_size=len(body))
        if self.checksums:
            crc = zlib.crc32(body.data)
            header.crc = crc - (1 << 32) if crc >= 1 << 31 else crc
        return header
