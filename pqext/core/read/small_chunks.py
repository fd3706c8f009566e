"""Row groups of very many small column chunks: one read, and one compiled call a chunk.

What a chunk costs beside its bytes is most of what they cost, so that all that can be is resolved once a call:
:class:`SmallLeaves` is made for its leaves and used for each row group. A chunk that is unusual, large or damaged is
left to :class:`pqext.core.read.column.ColumnReader`, and so is one that may be damaged where damage is skipped.
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

from pqext.core.base.budget import Account
from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.format import compression
from pqext.core.format.metadata import CompressionCodec, Type
from pqext.core.format.thrift import LazyStructs
from pqext.core.kernels.chunk_places import small_places
from pqext.core.kernels.small_chunk import SmallChunks
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.row_group import RowGroup
from pqext.core.schema.row_ranges import RowRanges
from pqext.core.schema.shape import LeafShape, Shape
from pqext.core.schema.types import leaf

SMALL = 64 << 10
"""Bytes of a small chunk's pages, and of what is not worth a thread: these wait for one another more than they work."""
_ROOM = 4 * SMALL
"""What a chunk may take while it is decoded; one that takes more is not small."""
_ROWS = 1 << 14
_COUNTED = 1 << 20
"""Bytes that are decoded before they are counted."""
_AHEAD, _AHEAD_BYTES = 256, 1 << 20
"""Chunks of several row groups, and their bytes, that are fetched together."""
_Rows = RowRanges | NDArray[np.int64] | None
"""Rows that are read of a row group: all for None."""
_Places = tuple[list[int], list[int], list[tuple[int, int]]]
"""As ``small_places`` gives them."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    asked: tuple[int, int, bytes]
    """As ``small_places`` takes it; the first is the column's index."""
    chunks: SmallChunks
    convert: Callable[[int, pa.Buffer | None, Any, Any], pa.Array]


@dataclass(frozen=True, slots=True)
class Fetched:
    """The small chunks of a row group of so many rows: which of the leaves, by what codecs, and their bytes."""

    rows: int
    chosen: Sequence[int]
    codecs: Sequence[int]
    data: Sequence[Any]
    unpackers: dict[int, Any]
    """By codec: what unpacks a page, shared by row groups that are decoded one after another."""


class SmallLeaves:
    """The leaves below ``tops`` whose small chunks are decoded whole: no lists, no optional groups above."""

    def __init__(self, tops: Sequence[Shape], limits: Limits, options: ReadOptions) -> None:
        self.shapes = [leaf for top in tops for leaf in top.leaves()]
        self.tops = tops
        self._limits = limits
        self._crc32 = isal_zlib.crc32 if options.checksums else None
        self._are_read = not options.second_copies
        self._are_exact = options.on_corrupt == "skip"

    @cached_property
    def _leaves(self) -> list[_Leaf]:
        return [one for shape in self.shapes if (one := self._resolved(shape)) is not None]

    def _resolved(self, shape: LeafShape) -> _Leaf | None:
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
        return _Leaf(node.stored_place, chunks, convert)

    @cached_property
    def _asked(self) -> list[tuple[int, int, bytes]]:
        return [one.asked for one in self._leaves]

    @cached_property
    def are_shown(self) -> bool:
        """Are all leaves top-level columns, shown as the arrays that are made of them?"""
        return len(self._leaves) == len(self.tops) and all(map(_is_shown, self.tops))

    def fetched(
        self, groups: Iterable[tuple[RowGroup, _Rows]], batch_rows: int | None
    ) -> Iterator[tuple[RowGroup, _Rows, Fetched | None]]:
        """Row groups and the rows that are read of each, with those small chunks that are decoded whole.

        The chunks of several row groups are fetched together: of twice as many each time for batches of at most
        ``batch_rows``, the first of which may be all that are asked for.
        """
        ahead: list[tuple[RowGroup, _Rows, _Places | None]] = []
        chunks = stored = 0
        most = _AHEAD if batch_rows is None else 1
        remaining = iter(groups)
        while True:
            try:
                group, rows = next(remaining)
            except StopIteration:
                break
            except ParquetError:  # of the next row group: those before it are whole
                yield from _fetch(ahead)
                raise
            found = self._places(group, batch_rows) if rows is None and self._are_read else None
            ahead.append((group, rows, found))
            if found is not None:
                chunks += len(found[2])
                stored += sum([length for _, length in found[2]])
            if found is None or chunks >= most or stored >= _AHEAD_BYTES:
                yield from _fetch(ahead)
                ahead, chunks, stored = [], 0, 0
                most = min(2 * most, _AHEAD)
        yield from _fetch(ahead)

    def _places(self, group: RowGroup, batch_rows: int | None) -> _Places | None:
        """Which of the leaves have small chunks in a row group, their codecs and where they lie.

        None where they are large on average, or anything is unusual about the row group.
        """
        try:
            columns, rows = group.metadata.columns, group.num_rows
            source = group.source
            if source is None or not 0 < rows <= min(_ROWS, batch_rows or _ROWS):
                return None
            near = getattr(columns, "near", None)
            index = columns.untouched if isinstance(columns, LazyStructs) and near is None else None
            if (index is None and near is None) or len(columns) != len(group.schema.leaves):
                return None
            if group.crypto is not None or group.counts_too_little or not self._leaves:
                return None
            own_name = source.known_as.encode("utf-8", "surrogateescape")
            if index is not None:
                found = small_places(index, self._asked, rows, SMALL, _ROOM, source.size, own_name)
            else:  # of a footer that finds its structures one by one
                assert near is not None
                found = [], [], []
                for position, (column, physical, path) in enumerate(self._asked):
                    if (place := near(column)) is not None:
                        asked = [(place[1], physical, path)]
                        one = small_places(place[0], asked, rows, SMALL, _ROOM, source.size, own_name)
                        found[0].extend([position] * len(one[0]))
                        found[1].extend(one[1])
                        found[2].extend(one[2])
        except ParquetError:  # told by those who read what is wrong
            return None
        few = len(found[0]) < len(self.shapes) if self._are_exact else 2 * len(found[0]) < len(self._asked)
        return None if few else found

    def read(self, fetched: Fetched, account: Account) -> dict[int, pa.Array]:
        """By column index, all rows of the chunks that were fetched and are not unusual; ``account`` counts them."""
        held = account.held
        try:
            return self._decode(fetched, account)
        except ParquetError:
            account.resize(held)
            return {}

    def _decode(self, fetched: Fetched, account: Account) -> dict[int, pa.Array]:
        found: dict[int, pa.Array] = {}
        rows, unpackers, crc32 = fetched.rows, fetched.unpackers, self._crc32
        owed = pages = 0
        for position, codec, stored in zip(fetched.chosen, fetched.codecs, fetched.data, strict=True):
            one = self._leaves[position]
            if codec not in unpackers:
                if not compression.is_known(codec):
                    continue
                unpackers[codec] = compression.page_unpacker(codec)
            try:
                made = one.chunks.decode(stored, rows, unpackers[codec], crc32)
                if made is None:
                    continue
                count, validity, values, offsets = made
                pages += count
                array = one.convert(rows, None if validity is None else pa.py_buffer(validity), values, offsets)
            except ParquetError:
                continue
            owed += len(values) + rows * 5
            if owed > _COUNTED:
                account.reserve(owed)
                owed = 0
            found[one.asked[0]] = array
        account.reserve(owed)
        account.count_pages(pages)
        return found


def _fetch(
    ahead: Sequence[tuple[RowGroup, _Rows, _Places | None]]
) -> Iterator[tuple[RowGroup, _Rows, Fetched | None]]:
    """The row groups of one file with the bytes at their places."""
    ranges = [one for _, _, found in ahead if found is not None for one in found[2]]
    data: list[Any] = [b""] * len(ranges)
    is_fetched = True
    if ranges:
        source = ahead[0][0].source
        assert source is not None
        try:
            for places, start, read in source.gathered(ranges):
                held = read.data
                for place in places:
                    offset, length = ranges[place]
                    data[place] = held[offset - start : offset - start + length]
        except ParquetError:
            is_fetched = False
    at, unpackers = 0, {int(CompressionCodec.UNCOMPRESSED): None}
    for group, rows, found in ahead:
        if found is None or not is_fetched:
            yield group, rows, None
            continue
        chosen, codecs, _ = found
        yield group, rows, Fetched(group.num_rows, chosen, codecs, data[at : at + len(codecs)], unpackers)
        at += len(codecs)


def _is_shown(top: Shape) -> bool:
    plain = isinstance(top, LeafShape) and top.annotation is None and top.original is None
    return plain and top.node.physical_type != Type.INT96
