"""One column chunk written: encoding chosen, pages cut, statistics taken, metadata filled in.

A chunk is encoded whole and in memory, so that columns can be encoded in parallel; offsets are relative to the
chunk until the writer knows where it lies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core import leaf, statistics
from pqext.core.buffers import Bytes
from pqext.core.compression import WRITABLE
from pqext.core.disassemble import DenseColumn
from pqext.core.encodings import dictionary, plain, rle
from pqext.core.metadata import (
    ColumnMetaData,
    Encoding,
    PageEncodingStats,
    PageType,
    SizeStatistics,
    Type,
)
from pqext.core.options import WriteOptions
from pqext.core.page import PageWriter

DICTIONARY_BYTES = 1 << 20
"""A dictionary that grows beyond this is given up for PLAIN."""
DICTIONARY_SAMPLE = 8192
"""Values looked at before a dictionary of all of them is built."""


@dataclass
class EncodedChunk:
    """The stored bytes of a chunk in pieces, and its metadata with offsets from the chunk's start."""

    metadata: ColumnMetaData
    pieces: list[bytes | Bytes] = field(default_factory=list)
    size: int = 0

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


@dataclass(frozen=True)
class _Values:
    """The values of a chunk, encoded page by page."""

    encoding: Encoding
    physical: pa.Array
    indices: NDArray[np.int32] | None
    entries: int

    def page(self, start: int, stop: int) -> bytes | Bytes:
        if self.indices is not None:
            return dictionary.encode(self.indices[start:stop], self.entries)
        return plain.encode(self.physical[start:stop])


def encode_chunk(column: DenseColumn, rows: int, options: WriteOptions) -> EncodedChunk:
    """Encode one leaf's values for a row group of ``rows`` rows."""
    node = column.shape.node
    leaf_type = node.leaf_type
    codec = WRITABLE[options.compression_of(node.dotted)]
    physical = leaf.to_physical(column.values, leaf_type)
    values, dictionary_values = _choose(physical, leaf_type.physical, wanted=options.dictionary_of(node.dotted))
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
    writer = PageWriter(codec, options.checksums, options.page_version)
    if dictionary_values is not None:
        header, body, size = writer.dictionary(plain.encode(dictionary_values), len(dictionary_values))
        metadata.dictionary_page_offset = chunk.add(header, body, size)
        metadata.data_page_offset = chunk.size
    pages = 0
    for page in _cut(column, rows, physical, options):
        definition, repetition = page.levels(column)
        header, body, size = writer.data(
            num_values=page.entries.stop - page.entries.start,
            num_nulls=page.entries.stop - page.entries.start - (page.values.stop - page.values.start),
            num_rows=page.rows,
            encoding=values.encoding,
            repetition=repetition,
            definition=definition,
            values=values.page(page.values.start, page.values.stop),
        )
        chunk.add(header, body, size)
        pages += 1
    _describe(metadata, column, values, pages, options)
    return chunk


def _choose(physical: pa.Array, kind: Type, *, wanted: bool) -> tuple[_Values, pa.Array | None]:
    """RLE_DICTIONARY when few values occur, else PLAIN."""
    plain_values = _Values(Encoding.PLAIN, physical, None, 0)
    if not wanted or kind == Type.BOOLEAN or not len(physical):
        return plain_values, None
    if len(physical) > DICTIONARY_SAMPLE:
        sample = physical[:DICTIONARY_SAMPLE]
        if pc.count_distinct(sample).as_py() > DICTIONARY_SAMPLE // 2:
            return plain_values, None
    encoded = physical.dictionary_encode()
    entries = encoded.dictionary
    # Each index takes bit_length / 8 bytes instead of a whole value: keep the dictionary only if that pays.
    stored = entries.nbytes + len(physical) * len(entries).bit_length() // 8
    if entries.nbytes > DICTIONARY_BYTES or stored >= physical.nbytes:
        return plain_values, None
    indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    return _Values(Encoding.RLE_DICTIONARY, physical, np.ascontiguousarray(indices), len(entries)), entries


@dataclass(frozen=True)
class _Page:
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
            part = np.full(count, level, np.int16) if isinstance(level, int) else level[self.entries]
            return rle.encode_levels(part, highest)

        return (
            encoded(column.definition, node.max_definition_level),
            encoded(column.repetition, node.max_repetition_level),
        )


def _cut(column: DenseColumn, rows: int, physical: pa.Array, options: WriteOptions) -> Iterator[_Page]:
    """Cut the chunk into pages at row boundaries, by rows and by the average size of a row."""
    node = column.shape.node
    # Levels count for a byte an entry: many short or empty lists make many entries of few values.
    size = physical.nbytes + column.entries * (bool(node.max_definition_level) + bool(node.max_repetition_level))
    page_rows = max(1, min(options.page_rows, int(options.page_bytes * rows / max(size, 1))))
    if isinstance(column.repetition, int):
        starts: NDArray[np.int64] | None = None
    else:
        starts = np.append(np.flatnonzero(column.repetition == 0), column.entries)
    highest = node.max_definition_level
    value = 0
    for row in range(0, rows, page_rows):
        last = min(row + page_rows, rows)
        entry, end = (row, last) if starts is None else (int(starts[row]), int(starts[last]))
        if isinstance(column.definition, int):
            count = end - entry if column.definition == highest else 0
        else:
            count = int(np.count_nonzero(column.definition[entry:end] == highest))
        yield _Page(slice(entry, end), slice(value, value + count), last - row)
        value += count


def _describe(
    metadata: ColumnMetaData, column: DenseColumn, values: _Values, pages: int, options: WriteOptions
) -> None:
    """Fill in what is known once all pages are written."""
    node = column.shape.node
    uses = [Encoding.RLE] if node.max_definition_level or node.max_repetition_level else []
    uses.append(values.encoding)
    stats = [PageEncodingStats(page_type=PageType.DATA_PAGE, encoding=values.encoding, count=pages)]
    if options.page_version == 2:
        stats[0].page_type = PageType.DATA_PAGE_V2
    if values.indices is not None:
        uses.append(Encoding.PLAIN)
        stats.insert(0, PageEncodingStats(page_type=PageType.DICTIONARY_PAGE, encoding=Encoding.PLAIN, count=1))
    metadata.encodings = uses
    metadata.encoding_stats = stats
    if not options.statistics:
        return
    metadata.statistics = statistics.of_values(node.leaf_type, column.values, column.entries - len(column.values))
    metadata.size_statistics = _sizes(column, values.physical)
    annotation = column.shape.annotation
    if annotation is not None:
        metadata.geospatial_statistics = annotation.load().geospatial_statistics(node, [column.values])


def _sizes(column: DenseColumn, physical: pa.Array) -> SizeStatistics | None:
    node = column.shape.node
    sizes = SizeStatistics()
    if node.physical_type == Type.BYTE_ARRAY:
        sizes.unencoded_byte_array_data_bytes = pc.sum(pc.binary_length(physical), min_count=0).as_py()

    def histogram(level: int | NDArray[np.int16], highest: int) -> list[int]:
        if isinstance(level, int):
            return [column.entries if i == level else 0 for i in range(highest + 1)]
        return [int(count) for count in np.bincount(level, minlength=highest + 1)]

    if node.max_definition_level > 1 or node.max_repetition_level:
        sizes.definition_level_histogram = histogram(column.definition, node.max_definition_level)
    if node.max_repetition_level:
        sizes.repetition_level_histogram = histogram(column.repetition, node.max_repetition_level)
    return sizes
