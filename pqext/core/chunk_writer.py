"""One column chunk written: encoding chosen, pages cut, statistics taken, metadata filled in.

A chunk is encoded whole and in memory, so that columns can be encoded in parallel; offsets are relative to the
chunk until the writer knows where it lies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core import distinct
from pqext.core.buffers import Bytes, size_of
from pqext.core.compression import WRITABLE
from pqext.core.disassemble import DenseColumn
from pqext.core.distinct import IndexedValues
from pqext.core.encodings import dictionary, plain, rle
from pqext.core.encodings.choose import choose
from pqext.core.encodings.table import encoder
from pqext.core.encryption.modules import ORDINAL_MAX
from pqext.core.encryption.writing import ChunkEncryptor, page_rows_for
from pqext.core.extension.structure import set_extension
from pqext.core.indexes import chunk as chunk_index
from pqext.core.indexes.chunk import ChunkIndexes, WrittenPage
from pqext.core.metadata import (
    ColumnMetaData,
    Encoding,
    PageEncodingStats,
    PageType,
)
from pqext.core.options import WriteOptions
from pqext.core.page_writer import PageWriter
from pqext.core.types import leaf, profile
from pqext.core.types.stored import normal


@dataclass
class EncodedChunk:
    """The stored bytes of a chunk in pieces, and its metadata with offsets from the chunk's start."""

    metadata: ColumnMetaData
    pieces: list[bytes | Bytes] = field(default_factory=list)
    size: int = 0
    indexes: ChunkIndexes = field(default_factory=ChunkIndexes)
    second: EncodedChunk | None = None

    def add(self, header: bytes, body: Bytes, uncompressed: int) -> int:
        """Append a page; returns its offset in the chunk."""
        at = self.size
        self.pieces += (header, body)
        self.size += len(header) + len(body)
        self.metadata.total_compressed_size = self.size
        self.metadata.total_uncompressed_size += len(header) + uncompressed
        return at

    def move(self, offset: int) -> None:
        """Make the offsets absolute: the chunk begins at ``offset`` of the file."""
        self.metadata.data_page_offset += offset
        if self.metadata.dictionary_page_offset is not None:
            self.metadata.dictionary_page_offset += offset
        if self.indexes.offset_index is not None:
            for page in self.indexes.offset_index.page_locations:
                page.offset += offset


@dataclass
class _Values:
    """The values of a chunk, encoded page by page: by the dictionary as far as it goes, the rest otherwise."""

    physical: pa.Array
    dictionary: IndexedValues | None
    fallback: Encoding

    def page(self, start: int, stop: int) -> tuple[Encoding, bytes | Bytes]:
        indexed = self.dictionary
        if indexed is not None and stop <= len(indexed.indices):
            return Encoding.RLE_DICTIONARY, dictionary.encode(indexed.indices[start:stop], len(indexed.entries))
        if self._plain is not None:
            data, width = self._plain
            return Encoding.PLAIN, data[start * width : stop * width]
        return self.fallback, encoder(self.fallback).encode(self.physical[start:stop])

    @cached_property
    def _plain(self) -> tuple[Bytes, int] | None:
        """All values in PLAIN and the bytes of one, where pages are slices of them."""
        kind = self.physical.type
        fixed = not (pa.types.is_binary(kind) or pa.types.is_boolean(kind))
        return (plain.encode(self.physical), kind.byte_width) if fixed and self.fallback == Encoding.PLAIN else None


def encode_chunk(
    column: DenseColumn,
    rows: int,
    options: WriteOptions,
    encryptor: ChunkEncryptor | None = None,
    page_starts: NDArray[np.int64] | None = None,
) -> EncodedChunk:
    """Encode one leaf's values for a row group of ``rows`` rows, encrypted by ``encryptor`` where there is one.

    ``page_starts``: rows at which pages begin, 0 first; too large ones are cut further.
    """
    node = column.shape.node
    path, leaf_type = node.dotted, node.leaf_type
    codec = WRITABLE[options.compression_of(path)]
    physical = leaf.to_physical(column.values, leaf_type)
    indexed = _dictionary(column, physical) if options.dictionary_of(path) else None
    name = options.encoding_of(path)
    if name == "auto" and column.encoded is not None and pa.types.is_binary(physical.type):
        name = "plain"  # behind a dictionary Arrow's reader takes no other
    chosen = choose(
        name, physical, leaf_type.physical, codec, indexed, split=options.profile != "spark"
    )
    indexed = indexed if chosen.keep_dictionary else None
    if options.profile == "spark":
        profile.check_values(column.values, path)
        indexed = distinct.with_both_zeros(indexed) if indexed is not None else None
    values = _Values(physical, indexed, chosen.encoding)
    metadata = ColumnMetaData(
        type=leaf_type.physical,
        encodings=[],
        path_in_schema=list(node.path),
        codec=codec,
        num_values=column.entries,
        total_uncompressed_size=0,
        total_compressed_size=0,
        data_page_offset=0,
    )
    chunk = EncodedChunk(metadata)
    writer = PageWriter(codec, options.checksums, options.page_version, encryptor, options.level_of(path))
    if indexed is not None:
        header, body, size = writer.dictionary(plain.encode(indexed.entries), len(indexed.entries))
        metadata.dictionary_page_offset = chunk.add(header, body, size)
        metadata.data_page_offset = chunk.size
    pages: Counter[Encoding] = Counter()
    written: list[WrittenPage] = []
    for page in _cut(column, rows, physical, options, page_starts, encrypted=encryptor is not None):
        definition, repetition = page.levels(column)
        encoding, encoded = values.page(page.values.start, page.values.stop)
        header, body, size = writer.data(
            num_values=page.entries.stop - page.entries.start,
            num_nulls=page.entries.stop - page.entries.start - (page.values.stop - page.values.start),
            num_rows=page.rows,
            encoding=encoding,
            repetition=repetition,
            definition=definition,
            values=encoded,
            ordinal=len(written),
        )
        at = chunk.add(header, body, size)
        written.append(WrittenPage(page.entries, page.values, page.rows, at, chunk.size - at))
        pages[encoding] += 1
    _describe(metadata, column, values, pages, options)
    extension = options.extension_of(path)
    if extension is not None:
        set_extension(metadata, extension)
    chunk.indexes = chunk_index.describe(
        metadata, column, physical, written, None if indexed is None else indexed.used(len(physical)), options
    )
    again = options.for_second_copy(path)
    if again is not None:  # never with encryption, see options
        chunk.second = encode_chunk(column, rows, again, None, page_starts)
    return chunk


def _dictionary(column: DenseColumn, physical: pa.Array) -> IndexedValues | None:
    """The dictionary of a chunk: the given one of a column of strings or bytes, or one of the values."""
    encoded = column.encoded
    if encoded is not None and pa.types.is_binary(physical.type):
        found = None
        if not encoded.dictionary.null_count:
            entries = encoded.dictionary.cast(normal(encoded.type.value_type))
            entries = leaf.to_physical(entries, column.shape.node.leaf_type)
            found = distinct.given(physical, entries, ordered=encoded.type.ordered)
        if found is not None:
            return found
    return distinct.index(physical)


@dataclass
class _PageCut:
    """Which entries, values and rows one page holds."""

    entries: slice
    values: slice
    rows: int

    def levels(self, column: DenseColumn) -> tuple[bytes | None, bytes | None]:
        node = column.shape.node
        count = self.entries.stop - self.entries.start

        def encoded(level: int | NDArray[np.int16], highest: int) -> bytes | None:
            if not highest:
                return None
            if isinstance(level, int):
                return _same_levels(count, level, highest)
            return rle.encode_levels(level[self.entries], highest)

        return (
            encoded(column.definition, node.max_definition_level),
            encoded(column.repetition, node.max_repetition_level),
        )


@lru_cache(maxsize=256)
def _same_levels(count: int, level: int, highest: int) -> bytes:
    return rle.encode_levels(np.full(count, level, np.int16), highest)


def _cut(
    column: DenseColumn,
    rows: int,
    physical: pa.Array,
    options: WriteOptions,
    page_starts: NDArray[np.int64] | None,
    *,
    encrypted: bool,
) -> Iterator[_PageCut]:
    """Cut the chunk into pages at row boundaries, by rows and by the average size of a row."""
    node = column.shape.node
    # Levels count for a byte an entry: many short or empty lists make many entries of few values.
    levels = bool(node.max_definition_level) + bool(node.max_repetition_level)
    size = size_of(physical, len(physical)) + column.entries * levels
    page_rows = max(1, min(options.page_rows, int(options.page_bytes * rows / max(size, 1))))
    if encrypted:
        page_rows = page_rows_for(rows, page_rows)
    if isinstance(column.repetition, int):
        starts: NDArray[np.int64] | None = None
    else:
        starts = np.append(np.flatnonzero(column.repetition == 0), column.entries)
    highest = node.max_definition_level
    value = 0
    for row, last in pairwise(_page_edges(rows, page_rows, page_starts, encrypted)):
        entry, end = (row, last) if starts is None else (int(starts[row]), int(starts[last]))
        if isinstance(column.definition, int):
            count = end - entry if column.definition == highest else 0
        else:
            count = int(np.count_nonzero(column.definition[entry:end] == highest))
        yield _PageCut(slice(entry, end), slice(value, value + count), last - row)
        value += count


def _page_edges(
    rows: int, page_rows: int, page_starts: NDArray[np.int64] | None, encrypted: bool
) -> list[int]:
    """Where pages of at most ``page_rows`` rows begin, and where the last one ends."""
    edges = list(range(0, rows, page_rows))
    if page_starts is not None:
        parts = pairwise([*page_starts.tolist(), rows])
        wanted = [row for begin, end in parts for row in range(begin, end, page_rows)]
        if not encrypted or len(wanted) <= ORDINAL_MAX:
            edges = wanted
    return [*edges, rows]


def _describe(
    metadata: ColumnMetaData, column: DenseColumn, values: _Values, pages: Counter[Encoding], options: WriteOptions
) -> None:
    """Fill in what is known once all pages are written."""
    node = column.shape.node
    uses = [Encoding.RLE] if node.max_definition_level or node.max_repetition_level else []
    kind = PageType.DATA_PAGE_V2 if options.page_version == 2 else PageType.DATA_PAGE
    stats = [PageEncodingStats(page_type=kind, encoding=encoding, count=count) for encoding, count in pages.items()]
    uses += pages
    if values.dictionary is not None:
        uses.append(Encoding.PLAIN)
        stats.insert(0, PageEncodingStats(page_type=PageType.DICTIONARY_PAGE, encoding=Encoding.PLAIN, count=1))
    metadata.encodings = list(dict.fromkeys(uses))
    metadata.encoding_stats = stats
