"""Column chunks that share bytes: the footer is wrong about the place of one of them (File Layout)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pqext.core.errors import CorruptFileError
from pqext.core.footer import MAGIC
from pqext.core.metadata import ColumnChunk, ColumnMetaData, FileMetaData

Place = tuple[int, int]
"""(row group, leaf)."""
_NOWHERE = (-1, -1)
_MAGIC = (0, len(MAGIC))
_FAR = 1 << 62


class ChunkPlaces:
    """Where the chunks of a file lie, as its footer says; those in other files or with hidden metadata aside."""

    def __init__(self, metadata: FileMetaData) -> None:
        self._metadata = metadata

    def taken_by(self, group: int, leaf: int) -> Place | None:
        """Another chunk that has bytes of this one, which joins neither the chunk before it nor the one behind.

        Where it joins one, the other is out of place. Row groups that are the same one share all their chunks.
        """
        columns = self._metadata.row_groups[group].columns
        if leaf >= len(columns):
            return None
        start, stop = _extent(columns[leaf])
        before = self._at(group, leaf - 1) if leaf else self._at(group - 1, -1) if group else _MAGIC
        behind = self._at(group, leaf + 1) if leaf + 1 < len(columns) else self._at(group + 1, 0)
        if start >= stop or before[1] == start or behind[0] == stop:
            return None
        starts, stops, places = self._sorted
        found = (places[at] for at in np.flatnonzero((starts < stop) & (stops > start)).tolist())
        return next((other for other in found if not self._are_same((group, leaf), other)), None)

    def shared(self) -> Iterator[tuple[Place, Place]]:
        """Chunks that begin within the one named behind them."""
        starts, stops, places = self._sorted
        if not len(starts):
            return
        reached = np.maximum.accumulate(stops)
        furthest = np.maximum.accumulate(np.where(stops == reached, np.arange(len(stops)), 0))
        for at in (np.flatnonzero(starts[1:] < reached[:-1]) + 1).tolist():
            if not self._are_same(places[at], other := places[furthest[at - 1]]):
                yield places[at], other

    def _are_same(self, one: Place, other: Place) -> bool:
        """Are they the same leaf in row groups of which all chunks lie in the same places?"""
        if one[1] != other[1]:
            return False
        columns, others = (self._metadata.row_groups[group].columns for group, _ in (one, other))
        return len(columns) == len(others) and all(map(lambda a, b: _extent(a) == _extent(b), columns, others))

    def _at(self, group: int, leaf: int) -> tuple[int, int]:
        groups = self._metadata.row_groups
        if not 0 <= group < len(groups):
            return _NOWHERE
        with suppress(CorruptFileError, IndexError):
            return _extent(groups[group].columns[leaf])
        return _NOWHERE

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Place]]:
        """The extents of all chunks that have bytes, by their starts, and whose they are."""
        found: list[tuple[int, int, int, int]] = []
        for group in range(len(self._metadata.row_groups)):
            with suppress(CorruptFileError):  # damaged metadata says nothing of places
                columns = self._metadata.row_groups[group].columns
                found += [(*_extent(chunk), group, leaf) for leaf, chunk in enumerate(columns)]
        found = sorted(one for one in found if one[0] < one[1])
        extents = np.array([one[:2] for one in found], np.int64).reshape(-1, 2)
        return extents[:, 0], extents[:, 1], [one[2:] for one in found]


def _extent(chunk: ColumnChunk) -> tuple[int, int]:
    """Where the chunk begins and ends, which says nothing where it has no values."""
    about = chunk.meta_data
    if about is None or chunk.file_path is not None or not about.num_values:
        return _NOWHERE
    start = start_of(about)
    return max(start, 0), min(start + about.total_compressed_size, _FAR)


def start_of(chunk: ColumnMetaData) -> int:
    """Where the first page of a chunk begins. Some writers put 0 where there is no dictionary."""
    start = chunk.data_page_offset
    dictionary = chunk.dictionary_page_offset
    return dictionary if dictionary is not None and 0 < dictionary < start else start
