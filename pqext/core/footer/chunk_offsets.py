"""Column chunks that share bytes: the footer is wrong about the place or size of one of them (File Layout)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.footer.structure_lookup import peeked
from pqext.core.footer.thrift_footer import MAGIC
from pqext.core.format.metadata import ColumnChunk, ColumnMetaData, FileMetaData, RowGroup

Place = tuple[int, int]
"""(row group, leaf)."""
_Extent = tuple[int, int]
_NOWHERE = (-1, -1)


class _Laid(NamedTuple):
    """Where the chunks of a row group begin and end, and where their indexes and filters begin."""

    extents: tuple[_Extent, ...] = ()
    sections: frozenset[int] = frozenset()


class ChunkPlaces:
    """Where the chunks of a file lie, as its footer at ``end`` says; those in other files or encrypted ones aside.

    Row groups whose chunks all lie in the same places are one that is named several times: they share nothing.
    """

    def __init__(self, metadata: FileMetaData, end: int) -> None:
        self._metadata = metadata
        self._end = end

    def taken_by(self, group: int, leaf: int) -> Place | None:
        """Another chunk that has bytes of this one, which joins neither what lies before it nor what lies behind.

        Where it joins one, the other is out of place, or is said to be longer than it is.
        """
        other = self._sharing.get((self._first[group], leaf))
        return None if other is None or self._joins(group, leaf) else other

    def shared(self) -> Iterator[tuple[Place, Place]]:
        """Chunks that share bytes, of each two the one first that is out of place, or else the one that is too long."""
        told = set()
        for pair in self._sharing.items():
            first, second = sorted(pair, key=lambda place: (self._joins(*place), self._extent(*place)))
            if (first, second) not in told:
                told.add((first, second))
                yield first, second

    def repeated_groups(self) -> dict[int, list[int]]:
        """Row groups whose chunks all lie where those of an earlier row group do, by the first of them."""
        found: dict[int, list[int]] = {}
        for group, first in enumerate(self._first):
            if first != group and any(extent != _NOWHERE for extent in self._laid[group].extents):
                found.setdefault(first, []).append(group)
        return found

    @cached_property
    def repeated_starts(self) -> frozenset[Place]:
        """Chunks that begin where an earlier chunk of the file begins."""
        starts: set[int] = set()
        found = []
        for group, laid in enumerate(self._laid):
            for leaf, (start, stop) in enumerate(laid.extents):
                if start < stop and start in starts:
                    found.append((group, leaf))
                starts.add(start)
        return frozenset(found)

    def _joins(self, group: int, leaf: int) -> bool:
        """Does the chunk begin where the one before it ends, or end where begins what lies behind it?

        Or does it stand between both without a gap? Sizes that count too much make chunks reach into the next ones.
        """
        extents = self._laid[group].extents
        start, stop = extents[leaf]
        if leaf:
            before = extents[leaf - 1]
        else:
            before = self._extent(group - 1, -1) if group else (0, len(MAGIC))
        if leaf + 1 < len(extents):
            behind = {extents[leaf + 1][0]}
        else:
            behind = {self._extent(group + 1, 0)[0], *self._laid[group].sections}
            if group + 1 == len(self._laid):
                behind |= {self._end, *self._laid[0].sections}
        if before[1] == start or stop in behind:
            return True
        return before[0] < start <= before[1] and any(start < place <= stop for place in behind)

    def _extent(self, group: int, leaf: int) -> _Extent:
        extents = self._laid[group].extents if group < len(self._laid) else ()
        return extents[leaf] if extents else _NOWHERE

    @cached_property
    def _laid(self) -> list[_Laid]:
        """All row groups; one with damaged metadata says nothing of places."""
        found = []
        for number in range(len(self._metadata.row_groups)):
            laid = _Laid()
            with suppress(CorruptFileError, UnsupportedError):
                laid = _laid_out(peeked(self._metadata.row_groups, number))
            found.append(laid)
        return found

    @cached_property
    def _first(self) -> list[int]:
        """Of each row group the first one that lies in the same places."""
        seen: dict[tuple[_Extent, ...], int] = {}
        return [seen.setdefault(laid.extents, number) for number, laid in enumerate(self._laid)]

    @cached_property
    def _sharing(self) -> dict[Place, Place]:
        """Chunks that have bytes of another one, and that one."""
        chunks = sorted(
            (extent, (group, leaf))
            for group, first in enumerate(self._first)
            if first == group
            for leaf, extent in enumerate(self._laid[group].extents)
            if extent[0] < extent[1]
        )
        found: dict[Place, Place] = {}
        reached, furthest = -1, (-1, -1)
        for (start, stop), place in chunks:
            if start < reached:
                found[place] = furthest
                found.setdefault(furthest, place)
            if stop > reached:
                reached, furthest = stop, place
        return found


def _laid_out(group: RowGroup) -> _Laid:
    extents: list[_Extent] = []
    sections: set[int | None] = set()
    for chunk in group.columns:
        about = chunk.meta_data
        extents.append(_extent_of(chunk))
        sections |= {chunk.column_index_offset, chunk.offset_index_offset}
        sections.add(None if about is None else about.bloom_filter_offset)
    return _Laid(tuple(extents), frozenset(at for at in sections if at is not None))


def _extent_of(chunk: ColumnChunk) -> _Extent:
    """Where the chunk begins and ends, which says nothing where it has no values."""
    about = chunk.meta_data
    if about is None or chunk.file_path is not None or not about.num_values:
        return _NOWHERE
    start = start_of(about)
    return (start, start + about.total_compressed_size) if start >= 0 else _NOWHERE


def start_of(chunk: ColumnMetaData) -> int:
    """Where the first page of a chunk begins. Writers put 0 where there is no dictionary, or no data page."""
    start = chunk.data_page_offset
    dictionary = chunk.dictionary_page_offset
    return dictionary if dictionary is not None and dictionary > 0 and (dictionary < start or start == 0) else start
