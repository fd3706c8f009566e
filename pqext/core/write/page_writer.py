"""Write encrypted pages: compression, encryption, checksum, and a header of either version (Data Pages)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from isal import isal_zlib

from pqext.core.base.buffers import Bytes, view
from pqext.core.base.errors import LimitError
from pqext.core.encryption.modules import Module
from pqext.core.encryption.writing import ChunkEncryptor
from pqext.core.format import compression
from pqext.core.format.metadata import (
    CompressionCodec,
    DataPageHeader,
    DataPageHeaderV2,
    DictionaryPageHeader,
    Encoding,
    PageHeader,
    PageType,
)
from pqext.core.format.thrift import encode
from pqext.core.kernels.encode.page_boundaries import PageBoundaries
from pqext.core.kernels.encode.pages import Levels, PageValues

TOO_LARGE = "a page of more than 2 GiB; write smaller pages (page_rows, page_bytes)"


@dataclass
class WrittenPages:
    """The result of :class:`pqext.core.kernels.encode.pages.EncodedPages` for pages written one by one."""

    pieces: list[Any] = field(default_factory=list)
    size: int = 0
    uncompressed: int = 0
    dictionary_size: int = 0
    by_index: int = 0

    def add(self, header: bytes, body: Bytes, uncompressed: int) -> None:
        """Append a page."""
        self.pieces += (header, body)
        self.size += len(header) + len(body)
        self.uncompressed += len(header) + uncompressed


@dataclass
class PageWriter:
    """Serialise pages of one encrypted column chunk: compress, encrypt, checksum, header.

    :func:`pqext.core.kernels.encode.pages.encode_pages` writes pages that are not encrypted.
    """

    codec: CompressionCodec
    checksums: bool
    version: int
    encryptor: ChunkEncryptor | None = None
    level: int | None = None

    @cached_property
    def _compress(self) -> Callable[[Any], Bytes]:
        return compression.compressor(self.codec, self.level)

    def all(
        self, boundaries: PageBoundaries, levels: Levels, values: PageValues, dictionary: tuple[Any, int] | None
    ) -> WrittenPages:
        """Write all pages of a chunk, and record their locations in ``boundaries``."""
        written = WrittenPages()
        if dictionary is not None:
            written.add(*self.dictionary(*dictionary))
            written.dictionary_size = written.size
        entry = value = 0
        for page in range(boundaries.count):
            rows, entries, present = boundaries.page(page)
            repetition, definition = levels.encode(entry, entry + entries)
            encoding, encoded = values.page(value, value + present)
            entry, value, at = entry + entries, value + present, written.size
            written.add(
                *self.data(
                    num_values=entries, num_nulls=entries - present, num_rows=rows, encoding=Encoding(encoding),
                    repetition=repetition, definition=definition, values=encoded, ordinal=page,
                )
            )
            written.by_index += encoding == Encoding.RLE_DICTIONARY
            boundaries.locate(page, at, written.size - at)
        return written

    def dictionary(self, values: Any, count: int) -> tuple[bytes, Bytes, int]:
        """Write a dictionary page of PLAIN ``values``; returns (header, body, uncompressed body size)."""
        body = self._encrypt(Module.DICTIONARY_PAGE, self._compress(values))
        detail = DictionaryPageHeader(num_values=count, encoding=Encoding.PLAIN)
        header = self._header(PageType.DICTIONARY_PAGE, len(values), body)
        header.dictionary_page_header = detail
        return self._serialise(Module.DICTIONARY_PAGE_HEADER, header), body, len(values)

    def data(
        self, *, num_values: int, num_nulls: int, num_rows: int, encoding: Encoding,
        repetition: bytes | None, definition: bytes | None, values: Any, ordinal: int = 0,
    ) -> tuple[bytes, Bytes, int]:
        """Write a data page; returns (header, body, uncompressed body size). Levels are None if the column has none.

        ``ordinal`` counts the data pages of the chunk.
        """
        if self.version == 2:
            levels = (repetition or b"") + (definition or b"")
            packed = self._compress(values)
            compressed = self.codec != CompressionCodec.UNCOMPRESSED and len(packed) < len(values)
            body = self._encrypt(Module.DATA_PAGE, _behind(levels, packed if compressed else values), ordinal)
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
            return self._serialise(Module.DATA_PAGE_HEADER, header, ordinal), body, len(levels) + len(values)
        parts = [part for part in (repetition, definition) if part is not None]
        levels = b"".join([len(part).to_bytes(4, "little") + part for part in parts])
        whole = _behind(levels, values)
        body = self._encrypt(Module.DATA_PAGE, self._compress(whole), ordinal)
        header = self._header(PageType.DATA_PAGE, len(whole), body)
        header.data_page_header = DataPageHeader(
            num_values=num_values,
            encoding=encoding,
            definition_level_encoding=Encoding.RLE,
            repetition_level_encoding=Encoding.RLE,
        )
        return self._serialise(Module.DATA_PAGE_HEADER, header, ordinal), body, len(whole)

    def _encrypt(self, module: Module, body: Bytes, ordinal: int | None = None) -> Bytes:
        return body if self.encryptor is None else view(self.encryptor.encrypt(module, body, ordinal))

    def _serialise(self, module: Module, header: PageHeader, ordinal: int | None = None) -> bytes:
        serialised = encode(header)
        return serialised if self.encryptor is None else self.encryptor.encrypt(module, serialised, ordinal)

    def _header(self, page_type: PageType, size: int, body: Bytes) -> PageHeader:
        if max(size, len(body)) > 0x7FFFFFFF:
            raise LimitError(TOO_LARGE)
        header = PageHeader(type=page_type, uncompressed_page_size=size, compressed_page_size=len(body))
        if self.checksums:
            crc = isal_zlib.crc32(body)
            header.crc = crc - (1 << 32) if crc >= 1 << 31 else crc
        return header


def _behind(levels: bytes, values: Any) -> Bytes:
    return np.concatenate((view(levels), view(values))) if levels else view(values)
