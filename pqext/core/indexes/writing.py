"""Page indexes and Bloom filters on their way into a file: gathered row group by row group, written where they belong.

Bloom filters follow all row groups, or each its own; then come all column indexes, then the offset indexes of each row
group together, and the footer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pqext.core.encryption.modules import Module
from pqext.core.indexes import bloom
from pqext.core.metadata import ColumnChunk
from pqext.core.options import WriteOptions
from pqext.core.thrift import encode

if TYPE_CHECKING:
    from pqext.core.chunk_writer import EncodedChunk
    from pqext.core.encryption.writing import ChunkEncryptor


class Target(Protocol):
    """Where a file is written; ``offset`` counts its bytes so far."""

    offset: int

    def write(self, data: bytes) -> None:
        """Append ``data``."""


_Chunks = Sequence[tuple[ColumnChunk, "EncodedChunk", "ChunkEncryptor | None"]]


class IndexWriter:
    """Holds the indexes of a file until they are written, and then notes their places in the column chunks."""

    def __init__(self, options: WriteOptions) -> None:
        self._filters_follow_row_groups = options.bloom_filter_place == "row_group"
        self._filters: list[tuple[ColumnChunk, bytes]] = []
        self._column_indexes: list[tuple[ColumnChunk, bytes]] = []
        self._offset_indexes: list[tuple[ColumnChunk, bytes]] = []

    def add(self, chunks: _Chunks, sink: Target) -> None:
        """Take over the indexes of a row group that has been written, whose offsets are those in the file."""
        for chunk, encoded, encryptor in chunks:
            indexes = encoded.indexes
            if indexes.bloom_filter is not None:
                self._filters.append((chunk, bloom.serialise(indexes.bloom_filter, encryptor)))
            for held, index, module in (
                (self._column_indexes, indexes.column_index, Module.COLUMN_INDEX),
                (self._offset_indexes, indexes.offset_index, Module.OFFSET_INDEX),
            ):
                if index is not None:
                    raw = encode(index)
                    held.append((chunk, raw if encryptor is None else bytes(encryptor.encrypt(module, raw))))
        if self._filters_follow_row_groups:
            self._write_filters(sink)

    def finish(self, sink: Target) -> None:
        """Write all that is still held, before the footer is made."""
        self._write_filters(sink)
        for chunk, raw in self._column_indexes:
            chunk.column_index_offset, chunk.column_index_length = sink.offset, len(raw)
            sink.write(raw)
        for chunk, raw in self._offset_indexes:
            chunk.offset_index_offset, chunk.offset_index_length = sink.offset, len(raw)
            sink.write(raw)
        self._column_indexes.clear()
        self._offset_indexes.clear()

    def _write_filters(self, sink: Target) -> None:
        for chunk, raw in self._filters:
            assert chunk.meta_data is not None
            chunk.meta_data.bloom_filter_offset, chunk.meta_data.bloom_filter_length = sink.offset, len(raw)
            sink.write(raw)
        self._filters.clear()
