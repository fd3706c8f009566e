"""Write one column chunk: choose its encoding, split it into pages, compute statistics and build its metadata.

A chunk is encoded completely in memory, so that columns can be encoded in parallel. Its offsets are relative to the
chunk until the writer appends it to the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from isal import isal_zlib
from numpy.typing import NDArray

from pqext.core.base.buffers import Bytes, size_of, view
from pqext.core.base.errors import LimitError
from pqext.core.base.text import escape_text
from pqext.core.encryption.modules import ORDINAL_MAX, Module
from pqext.core.encryption.writing import ChunkEncryptor, fit_page_rows
from pqext.core.format import compression
from pqext.core.format.encodings.table import encoder
from pqext.core.format.extension.framing import ExtensionContainer
from pqext.core.format.extension.structure import extensions, set_extension
from pqext.core.format.metadata import (
    ColumnMetaData,
    CompressionCodec,
    DataPageHeader,
    DataPageHeaderV2,
    DictionaryPageHeader,
    Encoding,
    PageEncodingStats,
    PageHeader,
    PageType,
)
from pqext.core.format.thrift import encode
from pqext.core.io.sink import Sink
from pqext.core.kernels.encode.page_boundaries import PageBoundaries, split_pages
from pqext.core.kernels.encode.pages import EncodedPages, Levels, PageValues, encode_pages
from pqext.core.read.second_copy import SECOND_COPY, shift_offsets
from pqext.core.schema.types import leaf, spark_profile
from pqext.core.schema.types.physical_types import canonical_type
from pqext.core.write import chunk_statistics as chunk_index
from pqext.core.write import dictionary_builder
from pqext.core.write.chunk_statistics import ChunkIndexes
from pqext.core.write.dictionary_builder import IndexedValues
from pqext.core.write.disassemble import DenseColumn
from pqext.core.write.encoding_choice import choose
from pqext.core.write.leaf_recipe import LeafRecipe

TOO_LARGE = "a page exceeds 2 GiB; write smaller pages (page_rows, page_bytes)"


@dataclass
class WrittenPages:
    """Individually written pages with the attributes of :class:`pqext.core.kernels.encode.pages.EncodedPages`."""

    pieces: list[Any] = field(default_factory=list)
    size: int = 0
    uncompressed: int = 0
    dictionary_size: int = 0
    by_index: int = 0

    def add(self, header: bytes, body: Bytes, uncompressed_bytes: int) -> None:
        """Append a page. ``uncompressed_bytes`` is the uncompressed size of its body."""
        self.pieces += (header, body)
        self.size += len(header) + len(body)
        self.uncompressed += len(header) + uncompressed_bytes


@dataclass
class PageWriter:
    """Serialiser of the pages of one encrypted column chunk: compression, encryption, checksum and header.

    Pages that are not encrypted are written by :func:`pqext.core.kernels.encode.pages.encode_pages`.
    """

    codec: CompressionCodec
    checksums: bool
    version: int
    encryptor: ChunkEncryptor | None = None
    level: int | None = None

    @cached_property
    def _compress(self) -> Callable[[Any], Bytes]:
        return compression.compressor(self.codec, self.level)

    def write_pages(
        self, boundaries: PageBoundaries, levels: Levels, values: PageValues, dictionary: tuple[Any, int] | None
    ) -> WrittenPages:
        """Write all pages of a chunk, and record their locations in ``boundaries``."""
        written = WrittenPages()
        if dictionary is not None:
            written.add(*self.serialise_dictionary(*dictionary))
            written.dictionary_size = written.size
        entry = value = 0
        for page in range(boundaries.count):
            rows, entries, present = boundaries.page(page)
            repetition, definition = levels.encode(entry, entry + entries)
            encoding, encoded = values.page(value, value + present)
            entry, value, at = entry + entries, value + present, written.size
            written.add(
                *self.serialise_data(
                    num_values=entries, num_nulls=entries - present, num_rows=rows, encoding=Encoding(encoding),
                    repetition=repetition, definition=definition, values=encoded, ordinal=page,
                )
            )
            written.by_index += encoding == Encoding.RLE_DICTIONARY
            boundaries.locate(page, at, written.size - at)
        return written

    def serialise_dictionary(self, values: Any, count: int) -> tuple[bytes, Bytes, int]:
        """Serialise a dictionary page of PLAIN ``values``; return header, body and uncompressed body size."""
        body = self._encrypt(Module.DICTIONARY_PAGE, self._compress(values))
        detail = DictionaryPageHeader(num_values=count, encoding=Encoding.PLAIN)
        header = self._header(PageType.DICTIONARY_PAGE, len(values), body)
        header.dictionary_page_header = detail
        return self._serialise(Module.DICTIONARY_PAGE_HEADER, header), body, len(values)

    def serialise_data(
        self, *, num_values: int, num_nulls: int, num_rows: int, encoding: Encoding,
        repetition: bytes | None, definition: bytes | None, values: Any, ordinal: int = 0,
    ) -> tuple[bytes, Bytes, int]:
        """Serialise a data page; return header, body and uncompressed body size.

        Levels are None if the column has no levels of this type.

        ``ordinal`` is the index of the data page in the chunk.
        """
        if self.version == 2:
            levels = (repetition or b"") + (definition or b"")
            packed = self._compress(values)
            compressed = self.codec != CompressionCodec.UNCOMPRESSED and len(packed) < len(values)
            body = self._encrypt(Module.DATA_PAGE, _prepend_levels(levels, packed if compressed else values), ordinal)
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
        whole = _prepend_levels(levels, values)
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


def _prepend_levels(levels: bytes, values: Any) -> Bytes:
    return np.concatenate((view(levels), view(values))) if levels else view(values)


@dataclass(slots=True)
class EncodedChunk:
    """Stored bytes of a chunk in ``pieces``, and its metadata with offsets relative to the chunk.

    ``second`` is the copy of the chunk in another encoding, if any.
    """

    metadata: ColumnMetaData
    pieces: list[bytes | Bytes]
    indexes: ChunkIndexes = field(default_factory=ChunkIndexes)
    second: EncodedChunk | None = None

    def move(self, offset: int) -> None:
        """Make the offsets absolute. ``offset`` is the offset of the chunk in the file."""
        self.metadata.data_page_offset += offset
        if self.metadata.dictionary_page_offset is not None:
            self.metadata.dictionary_page_offset += offset
        self.indexes.offset = offset


def encode_chunk(
    column: DenseColumn,
    rows: int,
    recipe: LeafRecipe,
    encryptor: ChunkEncryptor | None = None,
    page_starts: NDArray[np.int64] | None = None,
) -> EncodedChunk:
    """Encode one leaf's values for a row group of ``rows`` rows, and encrypt them if ``encryptor`` is set.

    ``page_starts`` contains the rows at which pages begin, starting with 0. Pages that are too large are split further.
    Raises ``ValueError`` for a string that is not valid UTF-8, and ``LimitError`` for a page of more than 2 GiB.
    """
    options = recipe.options
    try:
        stored_values = leaf.to_physical(column.values, recipe.leaf_type)
    except leaf.NotUtf8Error as error:
        row = column.row_of_value(error.position)
        raise ValueError(f"column {escape_text(recipe.dotted)!r}, row {row} of the row group: {error}") from None
    size = size_of(stored_values, len(stored_values))
    indexed = _build_dictionary(column, stored_values, size, recipe) if recipe.dictionary else None
    name = recipe.encoding
    if name == "auto" and column.encoded is not None and pa.types.is_binary(stored_values.type):
        name = "plain"  # after a dictionary, Arrow's reader accepts no other encoding
    chosen = choose(
        name, stored_values, recipe.leaf_type.physical, recipe.codec, indexed, split=options.profile != "spark"
    )
    indexed = indexed if chosen.keep_dictionary else None
    if options.profile == "spark":
        spark_profile.check_values(column.values, recipe.dotted)
        indexed = dictionary_builder.add_missing_zero(indexed) if indexed is not None else None
    # Count one byte per entry for levels, since many short or empty lists have many entries but few values.
    size += column.entries * recipe.level_bytes
    boundaries = _split_pages(
        column, rows, len(stored_values), size, recipe, page_starts, is_encrypted=encryptor is not None
    )
    values = _page_values(stored_values, chosen.encoding)
    levels = _levels(column, recipe)
    entries = None
    if indexed is not None:
        entries = (indexed.encode_plain(), indexed.count)
        values.index(indexed.indices, indexed.count)
    pages: EncodedPages | WrittenPages
    if encryptor is None:
        try:
            pages = encode_pages(
                boundaries, levels, values, entries, options.page_version, recipe.compress, recipe.checksum
            )
        except OverflowError:
            raise LimitError(TOO_LARGE) from None
    else:
        writer = PageWriter(recipe.codec, options.checksums, options.page_version, encryptor, recipe.level)
        pages = writer.write_pages(boundaries, levels, values, entries)
    metadata = _build_metadata(recipe, column, boundaries, pages, chosen.encoding, entries is not None)
    chunk = EncodedChunk(metadata, pages.pieces)
    if recipe.extension is not None:
        set_extension(metadata, recipe.extension)
    chunk.indexes = chunk_index.describe(
        metadata, column, stored_values, boundaries, indexed, recipe
    )
    if recipe.second is not None:  # the options do not allow it with encryption
        chunk.second = encode_chunk(column, rows, recipe.second, None, page_starts)
    return chunk


def _build_dictionary(
    column: DenseColumn, stored_values: pa.Array, size: int, recipe: LeafRecipe
) -> IndexedValues | None:
    """Return the dictionary of a chunk: the input's dictionary of strings or bytes, or a dictionary of the values.

    Return None if a dictionary is not worthwhile.
    """
    encoded = column.encoded
    if encoded is not None and pa.types.is_binary(stored_values.type):
        result = None
        if not encoded.dictionary.null_count:
            entries = encoded.dictionary.cast(canonical_type(encoded.type.value_type))
            entries = leaf.to_physical(entries, recipe.leaf_type)
            result = dictionary_builder.from_entries(stored_values, entries, is_ordered=encoded.type.ordered)
        if result is not None:
            return result
    return dictionary_builder.build_dictionary(stored_values, size)


def _page_values(stored_values: pa.Array, encoding: Encoding) -> PageValues:
    """Return the values of pages without a dictionary."""
    count = len(stored_values)
    if encoding != Encoding.PLAIN:
        encode = encoder(encoding).encode
        return PageValues(
            "other", encoding, count, 0, 0, None, None, lambda start, stop: encode(stored_values[start:stop])
        )
    kind, (_, *held) = stored_values.type, stored_values.buffers()
    if pa.types.is_binary(kind):
        return PageValues("bytes", encoding, count, stored_values.offset, 0, held[0], held[1], None)
    if pa.types.is_boolean(kind):
        return PageValues("bits", encoding, count, stored_values.offset, 0, held[0], None, None)
    return PageValues("fixed", encoding, count, stored_values.offset, kind.byte_width, held[0], None, None)


def _levels(column: DenseColumn, recipe: LeafRecipe) -> Levels:
    node = recipe.node
    return Levels(
        column.repetition, node.max_repetition_level, column.definition, node.max_definition_level, column.entries
    )


def _split_pages(
    column: DenseColumn, rows: int, count: int, size: int, recipe: LeafRecipe,
    page_starts: NDArray[np.int64] | None, *, is_encrypted: bool,
) -> PageBoundaries:
    """Split a chunk of ``count`` values and ``size`` bytes into pages at row boundaries.

    The options limit the number of rows of a page, and its size for rows of average size.
    """
    options = recipe.options
    page_rows = max(1, min(options.page_rows, int(options.page_bytes * rows / max(size, 1))))
    if is_encrypted:
        page_rows = fit_page_rows(rows, page_rows)
    edges = None if page_starts is None else _page_edges(rows, page_rows, page_starts, is_encrypted)
    repetition, definition = column.repetition, column.definition
    return split_pages(
        rows, page_rows, edges, column.entries,
        None if isinstance(repetition, int) else repetition, None if isinstance(definition, int) else definition,
        recipe.node.max_definition_level, count,
    )


def _page_edges(
    rows: int, page_rows: int, page_starts: NDArray[np.int64], is_encrypted: bool
) -> NDArray[np.int64] | None:
    """Return the first rows of pages of at most ``page_rows`` rows; None if there are too many pages to encrypt."""
    parts = pairwise([*page_starts.tolist(), rows])
    requested = [row for begin, end in parts for row in range(begin, end, page_rows)]
    return np.array(requested, np.int64) if not is_encrypted or len(requested) <= ORDINAL_MAX else None


def _build_metadata(
    recipe: LeafRecipe, column: DenseColumn, boundaries: PageBoundaries, pages: EncodedPages | WrittenPages,
    encoding: Encoding, has_index: bool,
) -> ColumnMetaData:
    plain_pages = boundaries.count - pages.by_index
    uses, stats = _encodings(
        bool(recipe.level_bytes), recipe.options.page_version, has_index, pages.by_index, encoding, plain_pages
    )
    return ColumnMetaData(
        type=recipe.leaf_type.physical,
        encodings=uses,
        path_in_schema=recipe.node.path,
        codec=recipe.codec,
        num_values=column.entries,
        total_uncompressed_size=pages.uncompressed,
        total_compressed_size=pages.size,
        data_page_offset=pages.dictionary_size,
        dictionary_page_offset=0 if has_index else None,
        encoding_stats=stats,
    )


@lru_cache(maxsize=1024)
def _encodings(
    levels: bool, version: int, has_index: bool, by_index: int, encoding: Encoding, other_count: int
) -> tuple[tuple[Encoding, ...], tuple[PageEncodingStats, ...]]:
    """Return the encodings of a chunk, and its page counts by encoding. The tuples can be shared by many chunks."""
    kind = PageType.DATA_PAGE_V2 if version == 2 else PageType.DATA_PAGE
    pages = [(Encoding.RLE_DICTIONARY, by_index), (encoding, other_count)]
    stats = [PageEncodingStats(page_type=kind, encoding=element, count=count) for element, count in pages if count]
    uses: list[Any] = [Encoding.RLE] if levels else []
    uses += [item for item, count in pages if count]
    if has_index:
        uses.append(Encoding.PLAIN)
        stats.insert(0, PageEncodingStats(page_type=PageType.DICTIONARY_PAGE, encoding=Encoding.PLAIN, count=1))
    return tuple(dict.fromkeys(uses)), tuple(stats)


def write_copies(chunks: list[EncodedChunk], sink: Sink) -> None:
    """Write the second copies of a row group's chunks. They precede all chunks."""
    for chunk in chunks:
        if chunk.second is not None:
            chunk.second.move(sink.offset)
            for piece in chunk.second.pieces:
                sink.write(piece)


def record_copy(chunk: EncodedChunk) -> None:
    """Record the second copy, if any, in the metadata extension of ``chunk``. The offset of ``chunk`` must be final."""
    if chunk.second is None:
        return
    about = shift_offsets(chunk.second.metadata, -chunk.metadata.data_page_offset)
    stored = extensions(chunk.metadata)
    others = ExtensionContainer() if stored is None else ExtensionContainer.decode(stored)
    if others is None:
        name = ".".join(chunk.metadata.path_in_schema)
        raise ValueError(
            f"column {name!r} has a second copy, so its extension must be a mapping from UUIDs to bytes"
        )
    set_extension(chunk.metadata, others.with_payload(SECOND_COPY, encode(about)).encode(), replace=True)
