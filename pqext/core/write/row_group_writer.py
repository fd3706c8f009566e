"""Encode the columns of a row group, in parallel if this is worthwhile, and write them in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, starmap
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import Bytes
from pqext.core.base.workers import Workers
from pqext.core.encryption.writing import ChunkEncryptor
from pqext.core.format.metadata import ColumnMetaData
from pqext.core.io.sink import Sink
from pqext.core.kernels.encode.small_chunk import SmallChunk
from pqext.core.options.read_write import WriteOptions
from pqext.core.schema.shape import Shape
from pqext.core.write import sorting
from pqext.core.write.chunk_writer import EncodedChunk, encode_chunk, record_copy, write_copies
from pqext.core.write.disassemble import DenseColumn, DenseColumns
from pqext.core.write.index_writer import WrittenGroup
from pqext.core.write.storage import StoredField
from pqext.core.write.write_plan import WritePlan

_SMALL = 64 << 10
"""Average size of a column in bytes below which threads are not worthwhile, since waiting would dominate."""
_GATHERED = 1 << 20
"""Number of bytes of encoded chunks that are written together."""

_Calls = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class BegunRowGroup:
    """Row group of ``rows`` rows whose ``chunks`` are being encoded by ``workers``."""

    rows: int
    encryptors: Sequence[ChunkEncryptor | None]
    chunks: Iterator[EncodedChunk | SmallChunk]
    workers: Workers


def begin(
    plan: WritePlan, dense: DenseColumns, table: pa.Table, rows: int, size: int,
    page_starts: NDArray[np.int64] | None, encryptors: Sequence[ChunkEncryptor | None], ordinal: int,
) -> BegunRowGroup:
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
            sorting.check(plan.options.sort_keys, plan.sorting, held, ordinal, plan.options.float_order)
            chunks = workers.map(encode_chunk, *zip(*calls(held, 0), strict=True))
        elif workers.is_parallel or page_starts is not None or any(encryptors):
            chunks = workers.map_split(split, encode_chunk, plan.plan, plan.shapes, table.columns)
        else:
            chunks = _encode_serially(plan, table, split)
    except BaseException:
        workers.abandon()
        raise
    return BegunRowGroup(rows, encryptors, chunks, workers)


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
    """Written chunks of a row group from offset ``start`` on. Their uncompressed size is ``size`` bytes.

    ``extensions`` contains the extension entries to add to the metadata of chunks.
    """

    group: WrittenGroup
    start: int
    size: int
    extensions: list[tuple[ColumnMetaData, Mapping[UUID, bytes]]]


def write(row_group: BegunRowGroup, sink: Sink, options: WriteOptions) -> WrittenChunks:
    """Write the chunks as soon as they are encoded, after their second copies."""
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
