"""Read row groups with very many small column chunks: one read for all, and one compiled call per chunk.

Fixed costs dominate for small chunks, so as much as possible is resolved once per call: :class:`SmallLeaves` is built
for the selected leaves and used for each row group. :class:`pqext.core.read.column.ColumnReader` reads chunks that are
unusual, large or corrupt. If corruption is skipped, it also reads chunks that may be corrupt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from isal import isal_zlib
from numpy.typing import NDArray

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.base.usage import Account
from pqext.core.format import compression
from pqext.core.format.metadata import CompressionCodec, Type
from pqext.core.format.thrift import LazyStructs
from pqext.core.kernels.decode.small_chunk import SmallChunks
from pqext.core.kernels.thrift.column_chunks import small_chunk_ranges
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.row_group import RowGroup
from pqext.core.schema.row_ranges import RowRanges
from pqext.core.schema.shape import LeafShape, Shape
from pqext.core.schema.types import leaf

SMALL = 64 << 10
"""Maximum size of a small chunk's pages in bytes, and of work that does not justify a thread."""
_ROOM = 4 * SMALL
"""Maximum memory for decoding a small chunk. A chunk that needs more is not small."""
_ROWS = 1 << 14
_COUNTED = 1 << 20
"""Number of bytes decoded between updates of the account."""
_AHEAD, _AHEAD_BYTES = 256, 1 << 20
"""Maximum number of chunks of several row groups, and of their bytes, that are fetched together."""
_Rows = RowRanges | NDArray[np.int64] | None
"""Rows of a row group to read; None for all rows."""
_Ranges = tuple[list[int], list[int], list[tuple[int, int]]]
"""Result of ``small_chunk_ranges``."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    request: tuple[int, int, bytes]
    """Argument of ``small_chunk_ranges``, which begins with the column index."""
    chunks: SmallChunks
    convert: Callable[[int, pa.Buffer | None, Any, Any], pa.Array]


@dataclass(frozen=True, slots=True)
class FetchedChunks:
    """Stored bytes of small chunks of a row group with ``rows`` rows, and the leaf and codec of each chunk."""

    rows: int
    chosen: Sequence[int]
    codecs: Sequence[int]
    data: Sequence[Any]
    unpackers: dict[int, Any]
    """Decompressors by codec, shared by row groups that are decoded consecutively."""


class SmallLeaves:
    """Decoder of small column chunks. It supports leaves below ``tops`` that are not in lists or optional groups."""

    def __init__(self, tops: Sequence[Shape], limits: Limits, options: ReadOptions) -> None:
        self.shapes = [leaf for top in tops for leaf in top.leaves()]
        self.tops = tops
        self._limits = limits
        self._crc32 = isal_zlib.crc32 if options.checksums else None
        self._are_read = not options.second_copies
        self._are_exact = options.skips_corrupt

    @cached_property
    def _leaves(self) -> list[_Leaf]:
        return [item for shape in self.shapes if (item := self._resolve(shape)) is not None]

    def _resolve(self, shape: LeafShape) -> _Leaf | None:
        node = shape.node
        if node.max_repetition_level or node.max_definition_level > shape.nullable or shape.encoded:
            return None
        kind = node.leaf_type
        try:
            convert = leaf.converter(kind)
        except ParquetError:
            return None
        if kind.width == 0:
            return None
        chunks = SmallChunks(
            self._limits, kind.width or 0, kind.physical == Type.BOOLEAN, node.max_definition_level == 1, _ROOM,
            exact=self._are_exact,
        )  # fmt: skip
        return _Leaf(node.lookup_key, chunks, convert)

    @cached_property
    def _requests(self) -> list[tuple[int, int, bytes]]:
        return [item.request for item in self._leaves]

    @cached_property
    def is_conversion_free(self) -> bool:
        """Whether all leaves are top-level columns whose decoded arrays are returned unchanged."""
        return len(self._leaves) == len(self.tops) and all(map(_needs_no_conversion, self.tops))

    def iter_chunks(
        self, groups: Iterable[tuple[RowGroup, _Rows]], batch_rows: int | None
    ) -> Iterator[tuple[RowGroup, _Rows, FetchedChunks | None]]:
        """Yield row groups, their selected rows, and their small chunks. Each chunk can be decoded in one call.

        The chunks are None for row groups that must be read otherwise.

        The chunks of several row groups are fetched together. For batches of ``batch_rows`` rows, the number of row
        groups doubles with each fetch, since a caller may stop after the first batch.
        """
        ahead: list[tuple[RowGroup, _Rows, _Ranges | None]] = []
        chunks = stored = 0
        most = _AHEAD if batch_rows is None else 1
        remaining = iter(groups)
        while True:
            try:
                group, rows = next(remaining)
            except StopIteration:
                break
            except ParquetError:  # the error is of the next row group; the preceding row groups are complete
                yield from _fetch(ahead)
                raise
            result = self._ranges(group, batch_rows) if rows is None and self._are_read else None
            ahead.append((group, rows, result))
            if result is not None:
                chunks += len(result[2])
                stored += sum([length for _, length in result[2]])
            if result is None or chunks >= most or stored >= _AHEAD_BYTES:
                yield from _fetch(ahead)
                ahead, chunks, stored = [], 0, 0
                most = min(2 * most, _AHEAD)
        yield from _fetch(ahead)

    def _ranges(self, group: RowGroup, batch_rows: int | None) -> _Ranges | None:
        """Return the leaves with small chunks in a row group, their codecs, and their byte ranges.

        Return None if chunks are large on average, or if this decoder does not support the row group.
        """
        try:
            columns, rows = group.metadata.columns, group.num_rows
            source = group.source
            if source is None or not 0 < rows <= min(_ROWS, batch_rows or _ROWS):
                return None
            near = getattr(columns, "locate_element", None)
            index = columns.undecoded_index if isinstance(columns, LazyStructs) and near is None else None
            if (index is None and near is None) or len(columns) != len(group.schema.leaves):
                return None
            if group.crypto is not None or group.may_undercount_bytes or not self._leaves:
                return None
            own_name = source.summary_name.encode("utf-8", "surrogateescape")
            if index is not None:
                result = small_chunk_ranges(index, self._requests, rows, SMALL, _ROOM, source.size, own_name)
            else:  # the footer looks up its structures one by one
                assert near is not None
                result = [], [], []
                for position, (column, physical, path) in enumerate(self._requests):
                    if (place := near(column)) is not None:
                        requested = [(place[1], physical, path)]
                        item = small_chunk_ranges(place[0], requested, rows, SMALL, _ROOM, source.size, own_name)
                        result[0].extend([position] * len(item[0]))
                        result[1].extend(item[1])
                        result[2].extend(item[2])
        except ParquetError:  # the general path raises the error
            return None
        few = len(result[0]) < len(self.shapes) if self._are_exact else 2 * len(result[0]) < len(self._requests)
        return None if few else result

    def read(self, fetched_chunks: FetchedChunks, account: Account) -> dict[int, pa.Array]:
        """Decode ``fetched_chunks`` and charge ``account``. Return the arrays of ordinary chunks by column index.

        The result is empty if the arrays exceed the memory limit.
        """
        held = account.held
        try:
            return self._decode(fetched_chunks, account)
        except ParquetError:
            account.resize(held)
            return {}

    def _decode(self, fetched_chunks: FetchedChunks, account: Account) -> dict[int, pa.Array]:
        result: dict[int, pa.Array] = {}
        rows, unpackers, crc32 = fetched_chunks.rows, fetched_chunks.unpackers, self._crc32
        owed = pages = 0
        for position, codec, stored in zip(
            fetched_chunks.chosen, fetched_chunks.codecs, fetched_chunks.data, strict=True
        ):
            item = self._leaves[position]
            if codec not in unpackers:
                if not compression.is_known(codec):
                    continue
                unpackers[codec] = account.time_decompression(compression.page_unpacker(codec))
            try:
                made = item.chunks.decode(stored, rows, unpackers[codec], crc32)
                if made is None:
                    continue
                count, validity, values, offsets = made
                pages += count
                array = item.convert(rows, None if validity is None else pa.py_buffer(validity), values, offsets)
            except ParquetError:
                continue
            owed += len(values) + rows * 5
            if owed > _COUNTED:
                account.reserve(owed)
                owed = 0
            result[item.request[0]] = array
        account.reserve(owed)
        account.count_pages(pages)
        return result


def _fetch(
    fetch_groups: Sequence[tuple[RowGroup, _Rows, _Ranges | None]]
) -> Iterator[tuple[RowGroup, _Rows, FetchedChunks | None]]:
    """Yield the row groups of one file with their rows and the bytes of their small chunks."""
    ranges = [item for _, _, result in fetch_groups if result is not None for item in result[2]]
    data: list[Any] = [b""] * len(ranges)
    is_fetched = True
    if ranges:
        source = fetch_groups[0][0].source
        assert source is not None
        try:
            for places, start, read in source.read_groups(ranges):
                held = read.data
                for place in places:
                    offset, length = ranges[place]
                    data[place] = held[offset - start : offset - start + length]
        except ParquetError:
            is_fetched = False
    at, unpackers = 0, {int(CompressionCodec.UNCOMPRESSED): None}
    for group, rows, value in fetch_groups:
        if value is None or not is_fetched:
            yield group, rows, None
            continue
        chosen, codecs, _ = value
        yield group, rows, FetchedChunks(group.num_rows, chosen, codecs, data[at : at + len(codecs)], unpackers)
        at += len(codecs)


def _needs_no_conversion(top: Shape) -> bool:
    plain = isinstance(top, LeafShape) and top.annotation is None and top.original is None
    return plain and top.node.physical_type != Type.INT96
