"""Detect overlapping column chunks. If two chunks overlap, the offset or size of one chunk is wrong (File Layout)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.footer.structure_lookup import peek
from pqext.core.footer.thrift_footer import MAGIC
from pqext.core.format.metadata import ColumnChunk, ColumnMetaData, FileMetaData, RowGroup

ChunkPosition = tuple[int, int]
"""Row group and leaf of a chunk."""
_Extent = tuple[int, int]
_NOWHERE = (-1, -1)


class _GroupLayout(NamedTuple):
    """Byte ranges of the chunks of a row group, and start offsets of its page indexes and Bloom filters."""

    extents: tuple[_Extent, ...] = ()
    sections: frozenset[int] = frozenset()


class ChunkRanges:
    """Byte ranges of the chunks of a file whose footer is at ``end``, except encrypted and external chunks.

    Row groups whose chunks all have the same ranges are repetitions of one row group, and do not overlap.
    """

    def __init__(self, metadata: FileMetaData, end: int) -> None:
        self._metadata = metadata
        self._end = end

    def overlapping_chunk(self, group: int, leaf: int) -> ChunkPosition | None:
        """Return a chunk that overlaps the chunk of ``leaf`` in row group ``group``; None if no chunk overlaps it.

        Also return None if the chunk of ``leaf`` adjoins the preceding or the following chunk, since the other chunk
        then has the wrong offset or size.
        """
        other = self._overlapping_chunks.get((self._first_equal_groups[group], leaf))
        return None if other is None or self._adjoins_neighbour(group, leaf) else other

    def iter_overlaps(self) -> Iterator[tuple[ChunkPosition, ChunkPosition]]:
        """Yield pairs of overlapping chunks.

        The first of a pair is the suspect: it is misplaced, or otherwise too long.
        """
        reported = set()
        for pair in self._overlapping_chunks.items():
            first, second = sorted(pair, key=lambda place: (self._adjoins_neighbour(*place), self._extent(*place)))
            if (first, second) not in reported:
                reported.add((first, second))
                yield first, second

    def repeated_groups(self) -> dict[int, list[int]]:
        """Return the positions of repeated row groups, by the position of the first row group with the same ranges."""
        result: dict[int, list[int]] = {}
        for group, first in enumerate(self._first_equal_groups):
            if first != group and any(extent != _NOWHERE for extent in self._layouts[group].extents):
                result.setdefault(first, []).append(group)
        return result

    @cached_property
    def repeated_starts(self) -> frozenset[ChunkPosition]:
        """Chunks that begin at the offset of an earlier chunk of the file."""
        starts: set[int] = set()
        results = []
        for group, laid in enumerate(self._layouts):
            for leaf, (start, stop) in enumerate(laid.extents):
                if start < stop and start in starts:
                    results.append((group, leaf))
                starts.add(start)
        return frozenset(results)

    def _adjoins_neighbour(self, group: int, leaf: int) -> bool:
        """Return whether the chunk begins at the end of the preceding chunk, or ends at the start of the following
        chunk or structure.

        Also return True if the chunk overlaps both neighbours, because sizes that are too large extend chunks into
        the following chunks.
        """
        extents = self._layouts[group].extents
        start, stop = extents[leaf]
        if leaf:
            before = extents[leaf - 1]
        else:
            before = self._extent(group - 1, -1) if group else (0, len(MAGIC))
        if leaf + 1 < len(extents):
            behind = {extents[leaf + 1][0]}
        else:
            behind = {self._extent(group + 1, 0)[0], *self._layouts[group].sections}
            if group + 1 == len(self._layouts):
                behind |= {self._end, *self._layouts[0].sections}
        if before[1] == start or stop in behind:
            return True
        return before[0] < start <= before[1] and any(start < place <= stop for place in behind)

    def _extent(self, group: int, leaf: int) -> _Extent:
        extents = self._layouts[group].extents if group < len(self._layouts) else ()
        return extents[leaf] if extents else _NOWHERE

    @cached_property
    def _layouts(self) -> list[_GroupLayout]:
        """Layouts of all row groups. The layout of a row group with corrupt metadata is empty."""
        results = []
        for number in range(len(self._metadata.row_groups)):
            laid = _GroupLayout()
            with suppress(CorruptFileError, UnsupportedError):
                laid = _lay_out_group(peek(self._metadata.row_groups, number))
            results.append(laid)
        return results

    @cached_property
    def _first_equal_groups(self) -> list[int]:
        """For each row group, the position of the first row group with the same byte ranges."""
        seen: dict[tuple[_Extent, ...], int] = {}
        return [seen.setdefault(laid.extents, number) for number, laid in enumerate(self._layouts)]

    @cached_property
    def _overlapping_chunks(self) -> dict[ChunkPosition, ChunkPosition]:
        """Mapping from each overlapping chunk to a chunk that it overlaps."""
        chunks = sorted(
            (extent, (group, leaf))
            for group, first in enumerate(self._first_equal_groups)
            if first == group
            for leaf, extent in enumerate(self._layouts[group].extents)
            if extent[0] < extent[1]
        )
        result: dict[ChunkPosition, ChunkPosition] = {}
        reached, furthest = -1, (-1, -1)
        for (start, stop), place in chunks:
            if start < reached:
                result[place] = furthest
                result.setdefault(furthest, place)
            if stop > reached:
                reached, furthest = stop, place
        return result


def _lay_out_group(group: RowGroup) -> _GroupLayout:
    extents: list[_Extent] = []
    sections: set[int | None] = set()
    for chunk in group.columns:
        about = chunk.meta_data
        extents.append(_extent_of(chunk))
        sections |= {chunk.column_index_offset, chunk.offset_index_offset}
        sections.add(None if about is None else about.bloom_filter_offset)
    return _GroupLayout(tuple(extents), frozenset(at for at in sections if at is not None))


def _extent_of(chunk: ColumnChunk) -> _Extent:
    """Return the byte range of a chunk.

    Return ``_NOWHERE`` if it has no values, metadata or valid offset, or is stored in another file.
    """
    about = chunk.meta_data
    if about is None or chunk.file_path is not None or not about.num_values:
        return _NOWHERE
    start = start_of(about)
    return (start, start + about.total_compressed_size) if start >= 0 else _NOWHERE


def start_of(chunk: ColumnMetaData) -> int:
    """Return the offset of the first page of a chunk. Some writers store 0 for a missing dictionary or data page."""
    start = chunk.data_page_offset
    dictionary = chunk.dictionary_page_offset
    return dictionary if dictionary is not None and dictionary > 0 and (dictionary < start or start == 0) else start
