"""Encode the columns of a row group, write them in order, and collect their page indexes and Bloom filters.

Bloom filters follow all row groups, or each row group is followed by its own filters. After them come all column
indexes, the offset indexes of each row group, and the footer. Until then, the chunk metadata of a row group is held
serialised if only the locations of indexes are missing, because a file may have millions of chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, starmap
from typing import Any, Protocol
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import Bytes
from pqext.core.base.limits import OWN_METADATA
from pqext.core.base.threads import Workers
from pqext.core.encryption.modules import Module
from pqext.core.encryption.writing import ChunkEncryptor
from pqext.core.format.metadata import ColumnChunk, ColumnMetaData, RowGroup
from pqext.core.format.thrift import decode, encode, struct_list_header
from pqext.core.indexes import bloom
from pqext.core.io.sink import Sink
from pqext.core.kernels.encode.small_chunk import SmallChunk
from pqext.core.kernels.thrift.page_index import placed_columns
from pqext.core.options.read_write import WriteOptions
from pqext.core.schema.shape import Shape
from pqext.core.write import row_order
from pqext.core.write.chunk_writer import EncodedChunk, encode_chunk, record_copy, write_copies
from pqext.core.write.disassemble import DenseColumn, DenseColumns
from pqext.core.write.storage import StoredField
from pqext.core.write.write_plan import WritePlan

_SMALL = 64 << 10
"""Average size of a column in bytes below which threads are not worthwhile, since waiting would dominate."""
_GATHERED = 1 << 20
"""Number of bytes of encoded chunks that are written together."""
_EMPTY_LIST = encode(RowGroup(columns=[], total_byte_size=0, num_rows=0))[:2]

_Calls = list[tuple[Any, ...]]


class Target(Protocol):
    """Output file. ``offset`` is the number of bytes written so far."""

    offset: int

    def write_all(self, buffers: Sequence[Any]) -> None:
        """Append all ``buffers``."""


class WrittenGroup:
    """Written chunks of a row group, the indexes of the chunks and, after the indexes are written, their offsets.

    A chunk is held in serialised form without the locations of its indexes, unless its metadata may still change.
    """

    def __init__(self) -> None:
        self._columns: list[bytes | ColumnChunk] = []
        self._group: RowGroup | None = None
        self.column_indexes: list[bytes | None] = []
        self.offset_indexes: list[bytes | None] = []
        self.filters: list[tuple[ColumnChunk, bytes]] = []
        self.column_start = 0
        self.offset_start = 0

    def add(self, encoded_chunk: EncodedChunk, encryptor: ChunkEncryptor | None) -> None:
        """Add the next chunk, whose offsets are absolute, and its indexes."""
        chunk, indexes = ColumnChunk(file_offset=0, meta_data=encoded_chunk.metadata), encoded_chunk.indexes
        column_index, offset_index = indexes.column_index, indexes.offset_index
        if encryptor is not None:
            column_index = _seal(column_index, encryptor, Module.COLUMN_INDEX)
            offset_index = _seal(offset_index, encryptor, Module.OFFSET_INDEX)
        if indexes.bloom_filter is not None:
            self.filters.append((chunk, bloom.serialise(indexes.bloom_filter, encryptor)))
        self.column_indexes.append(column_index)
        self.offset_indexes.append(offset_index)
        changing = encryptor is not None or indexes.extensions or indexes.bloom_filter is not None
        self._columns.append(chunk if changing else encode(chunk)[:-1])

    def add_small(self, chunk: SmallChunk, offset: int) -> None:
        """Add a small chunk that is at ``offset`` in the file."""
        self.column_indexes.append(chunk.column_index)
        self.offset_indexes.append(chunk.offset_index(offset))
        self._columns.append(chunk.column_chunk(offset))

    def end(self, group: RowGroup) -> None:
        """Complete the row group. Move its chunks to ``group``, unless they are already serialised."""
        self._group = group
        if any(isinstance(chunk, ColumnChunk) for chunk in self._columns):
            self._columns = [
                decode(ColumnChunk, chunk + b"\0")[0] if isinstance(chunk, bytes) else chunk for chunk in self._columns
            ]
            group.columns = [chunk for chunk in self._columns if isinstance(chunk, ColumnChunk)]

    def serialise_partial(self) -> bytes:
        """Serialise the row group without the locations of indexes that are not written yet."""
        assert self._group is not None
        if self._group.columns or not self._columns:
            return encode(self._group)
        head = struct_list_header(len(self._columns))
        chunks = [chunk + b"\0" for chunk in self._columns if isinstance(chunk, bytes)]
        return b"".join([_EMPTY_LIST[:1], head, *chunks, encode(self._group)[len(_EMPTY_LIST) :]])

    def finish(self) -> None:
        """Record the locations of the indexes in the column chunks."""
        group = self._group
        assert group is not None
        if self._columns and isinstance(self._columns[0], ColumnChunk):
            at = self.column_start
            for chunk, raw in zip(group.columns, self.column_indexes, strict=True):
                if raw is not None:
                    chunk.column_index_offset, chunk.column_index_length = at, len(raw)
                    at += len(raw)
            at = self.offset_start
            for chunk, raw in zip(group.columns, self.offset_indexes, strict=True):
                if raw is not None:
                    chunk.offset_index_offset, chunk.offset_index_length = at, len(raw)
                    at += len(raw)
            return
        closed = [chunk for chunk in self._columns if isinstance(chunk, bytes)]
        columns = placed_columns(
            closed, self.column_indexes, self.column_start, self.offset_indexes, self.offset_start
        )
        rest = encode(group)[len(_EMPTY_LIST) :]
        group.columns = decode(RowGroup, columns + rest, limits=OWN_METADATA)[0].columns


class IndexWriter:
    """Buffer of the indexes of a file. After writing the indexes, it records their locations in the column chunks."""

    def __init__(self, options: WriteOptions) -> None:
        self._filters_follow_row_groups = options.bloom_filter_place == "row_group"
        self._filters: list[tuple[ColumnChunk, bytes]] = []
        self._held: list[WrittenGroup] = []

    def add(self, written_group: WrittenGroup, group: RowGroup, sink: Target) -> None:
        """Add the indexes of row group ``group``, whose chunks are in ``written_group``."""
        self._filters += written_group.filters
        if self._filters_follow_row_groups:
            self._write_filters(sink)
        written_group.end(group)
        self._held.append(written_group)

    def serialise_partial(self) -> list[bytes]:
        """Serialise the row groups of the file without indexes that are not written yet."""
        return [held.serialise_partial() for held in self._held]

    def finish(self, sink: Target) -> None:
        """Write all remaining indexes, before the footer is built."""
        self._write_filters(sink)
        for held in self._held:
            held.column_start = sink.offset
            sink.write_all([raw for raw in held.column_indexes if raw is not None])
        for held in self._held:
            held.offset_start = sink.offset
            sink.write_all([raw for raw in held.offset_indexes if raw is not None])
        for held in self._held:
            held.finish()
        self._held.clear()

    def _write_filters(self, sink: Target) -> None:
        for chunk, raw in self._filters:
            assert chunk.meta_data is not None
            chunk.meta_data.bloom_filter_offset, chunk.meta_data.bloom_filter_length = sink.offset, len(raw)
            sink.write_all([raw])
        self._filters.clear()


def _seal(raw: bytes | None, encryptor: ChunkEncryptor, module: Module) -> bytes | None:
    return None if raw is None else bytes(encryptor.encrypt(module, raw))


@dataclass(frozen=True, slots=True)
class PendingRowGroup:
    """Row group that is not written yet: ``workers`` are encoding its chunks. It has ``rows`` rows."""

    rows: int
    encryptors: Sequence[ChunkEncryptor | None]
    chunks: Iterator[EncodedChunk | SmallChunk]
    workers: Workers


def begin(
    plan: WritePlan, dense: DenseColumns, table: pa.Table, rows: int, size: int,
    page_starts: NDArray[np.int64] | None, encryptors: Sequence[ChunkEncryptor | None], ordinal: int,
) -> PendingRowGroup:
    """Start encoding ``table``, which has ``size`` bytes, as row group ``ordinal``."""
    columns = len(encryptors)
    workers = Workers(plan.options.threads, columns if size > _SMALL * columns else 1)

    def calls(leaves: Iterable[DenseColumn], first: int) -> _Calls:
        return [
            (leaf, rows, plan.recipes[index], encryptors[index], page_starts)
            for index, leaf in enumerate(leaves, first)
        ]

    def split(field: StoredField, top: Shape, column: pa.ChunkedArray) -> _Calls:
        return calls(dense.leaves(field, top, column), top.node.leaf_start)

    chunks: Iterator[EncodedChunk | SmallChunk]
    try:
        if plan.sorting:
            taken_apart = workers.map(dense.leaves, plan.plan, plan.shapes, table.columns)
            held = list(chain.from_iterable(taken_apart))
            row_order.check_sorted(plan.options.sort_keys, plan.sorting, held, ordinal, plan.options.float_order)
            chunks = workers.map(encode_chunk, *zip(*calls(held, 0), strict=True))
        elif workers.is_parallel or page_starts is not None or any(encryptors):
            chunks = workers.map_split(split, encode_chunk, plan.plan, plan.shapes, table.columns)
        else:
            chunks = _encode_serially(plan, table, split)
    except BaseException:
        workers.abandon()
        raise
    return PendingRowGroup(rows, encryptors, chunks, workers)


def _encode_serially(
    plan: WritePlan, table: pa.Table, split: Callable[[StoredField, Shape, pa.ChunkedArray], _Calls]
) -> Iterator[EncodedChunk | SmallChunk]:
    """Yield the encoded chunks, one after another. Small ordinary chunks are encoded in one call each."""
    for field, top, small, column in zip(
        plan.plan, plan.shapes, plan.small_encoders, table.columns, strict=True
    ):
        made = None
        if small is not None and column.num_chunks == 1:
            recipe = plan.recipes[top.node.leaf_start]
            made = small.encode(column.chunk(0), recipe.compress, recipe.checksum)
        if made is None:
            yield from starmap(encode_chunk, split(field, top, column))
        else:
            yield made


@dataclass(frozen=True, slots=True)
class WrittenChunks:
    """Written chunks of a row group. The first chunk starts at offset ``start``; all chunks have ``size`` bytes
    uncompressed.

    ``extensions`` contains the extension entries to add to the metadata of chunks.
    """

    group: WrittenGroup
    start: int
    size: int
    extensions: list[tuple[ColumnMetaData, Mapping[UUID, bytes]]]


def write(row_group: PendingRowGroup, sink: Sink, options: WriteOptions) -> WrittenChunks:
    """Write all second copies, and then each chunk as soon as it is encoded."""
    encoded = row_group.chunks
    if options.second_encodings:
        encoded = iter(held := list(encoded))
        write_copies([chunk for chunk in held if isinstance(chunk, EncodedChunk)], sink)
    start, written = sink.offset, WrittenGroup()
    extensions: list[tuple[ColumnMetaData, Mapping[UUID, bytes]]] = []
    size = waiting = 0
    pieces: list[bytes | Bytes] = []
    for encryptor, chunk in zip(row_group.encryptors, encoded, strict=True):  # later chunks are still being encoded
        pieces += chunk.pieces
        if isinstance(chunk, SmallChunk):
            written.add_small(chunk, sink.offset + waiting)
            waiting += chunk.size
            size += chunk.uncompressed
        else:
            chunk.move(sink.offset + waiting)
            waiting += chunk.metadata.total_compressed_size
            size += chunk.metadata.total_uncompressed_size
            chunk.pieces.clear()
            record_copy(chunk)
            written.add(chunk, encryptor)
            if chunk.indexes.extensions:
                extensions.append((chunk.metadata, chunk.indexes.extensions))
        if waiting >= _GATHERED:
            sink.write_all(pieces)
            pieces, waiting = [], 0
    sink.write_all(pieces)
    return WrittenChunks(written, start, size, extensions)
