"""Row groups of very many small column chunks: one read, and one compiled call a chunk.

What a chunk costs beside its bytes is most of what they cost, so that all that can be is resolved once a call:
:class:`SmallLeaves` is made for its leaves and used for each row group. A chunk that is unusual, large or damaged is
left to :class:`pqext.core.column.ColumnReader`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from isal import isal_zlib

from pqext.core import compression
from pqext.core.budget import Account
from pqext.core.errors import ParquetError
from pqext.core.kernels.chunk_places import small_places
from pqext.core.kernels.small_chunk import SmallChunks
from pqext.core.limits import Limits
from pqext.core.metadata import CompressionCodec, Type
from pqext.core.row_group import RowGroup
from pqext.core.shape import LeafShape, Shape
from pqext.core.thrift import LazyStructs
from pqext.core.types import leaf

SMALL = 64 << 10
"""Bytes of a small chunk's pages, and of what is not worth a thread: these wait for one another more than they work."""
_ROOM = 4 * SMALL
"""What a chunk may take while it is decoded; one that takes more is not small."""
_ROWS = 1 << 14
_COUNTED = 1 << 20
"""Bytes that are decoded before they are counted."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    asked: tuple[int, int, bytes]
    """As ``small_places`` takes it; the first is the column's index."""
    chunks: SmallChunks
    convert: Callable[[int, pa.Buffer | None, Any, Any], pa.Array]


class SmallLeaves:
    """The leaves below ``tops`` whose small chunks are decoded whole: no lists, no optional groups above."""

    def __init__(self, tops: Sequence[Shape], limits: Limits, *, checksums: bool) -> None:
        self.shapes = [leaf for top in tops for leaf in top.leaves()]
        self._tops = tops
        self._limits = limits
        self._crc32 = isal_zlib.crc32 if checksums else None

    @cached_property
    def _leaves(self) -> list[_Leaf]:
        return [one for shape in self.shapes if (one := _resolved(shape, self._limits)) is not None]

    @cached_property
    def _asked(self) -> list[tuple[int, int, bytes]]:
        return [one.asked for one in self._leaves]

    @cached_property
    def are_shown(self) -> bool:
        """Are all leaves top-level columns, shown as the arrays that are made of them?"""
        return len(self._leaves) == len(self._tops) and all(map(_is_shown, self._tops))

    def read(self, group: RowGroup, account: Account) -> dict[int, pa.Array]:
        """By column index, all rows of the chunks that are small; ``account`` counts them.

        None where they are large on average, or anything is unusual about the row group.
        """
        columns = group.metadata.columns
        near = getattr(columns, "near", None)
        index = columns.untouched if isinstance(columns, LazyStructs) and near is None else None
        rows, source = group.num_rows, group.source
        if (index is None and near is None) or source is None or not 0 < rows <= _ROWS:
            return {}
        if len(columns) != len(group.schema.leaves):
            return {}
        if group.crypto is not None or group.counts_too_little or not self._leaves:
            return {}
        own_name = source.known_as.encode("utf-8", "surrogateescape")
        if index is not None:
            chosen, codecs, ranges = small_places(index, self._asked, rows, SMALL, _ROOM, source.size, own_name)
        elif near is not None:  # of a footer with a jump table
            chosen, codecs, ranges = [], [], []
            for position, (column, physical, path) in enumerate(self._asked):
                if (found := near(column)) is not None:
                    asked = [(found[1], physical, path)]
                    one = small_places(found[0], asked, rows, SMALL, _ROOM, source.size, own_name)
                    chosen += [position] * len(one[0])
                    codecs += one[1]
                    ranges += one[2]
        if 2 * len(chosen) < len(self._asked):
            return {}
        held = account.held
        try:
            data: list[Any] = [b""] * len(ranges)
            for places, start, read in source.gathered(ranges):
                held_bytes = read.data
                for place in places:
                    offset, length = ranges[place]
                    data[place] = held_bytes[offset - start : offset - start + length]
            return self._decode(chosen, data, codecs, rows, account)
        except ParquetError:
            account.settle(held)
            return {}

    def _decode(
        self, chosen: Sequence[int], data: Sequence[Any], codecs: Sequence[int], rows: int, account: Account
    ) -> dict[int, pa.Array]:
        found: dict[int, pa.Array] = {}
        unpackers: dict[int, Any] = {int(CompressionCodec.UNCOMPRESSED): None}
        crc32, owed, pages = self._crc32, 0, 0
        for position, codec, stored in zip(chosen, codecs, data, strict=True):
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
                account.take(owed)
                owed = 0
            found[one.asked[0]] = array
        account.take(owed)
        account.decoded(pages)
        return found


def _resolved(shape: LeafShape, limits: Limits) -> _Leaf | None:
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
        limits, kind.width or 0, kind.physical == Type.BOOLEAN, node.max_definition_level == 1, _ROOM
    )
    return _Leaf(node.stored_place, chunks, convert)


def _is_shown(top: Shape) -> bool:
    plain = isinstance(top, LeafShape) and top.annotation is None and top.original is None
    return plain and top.node.physical_type != Type.INT96
