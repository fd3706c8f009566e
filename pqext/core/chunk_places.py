"""Column chunks that begin at one place: the footer is wrong about the place of one of them (File Layout)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property

from pqext.core.errors import CorruptFileError
from pqext.core.footer import MAGIC
from pqext.core.metadata import ColumnChunk, ColumnMetaData, FileMetaData

Place = tuple[int, int]
"""(row group, leaf)."""
_NOWHERE = (-1, -1)
_MAGIC = (0, len(MAGIC))


class ChunkPlaces:
    """Where the chunks of a file lie, as its footer says; those in other files or with hidden metadata aside."""

    def __init__(self, metadata: FileMetaData) -> None:
        self._metadata = metadata

    def taken_by(self, group: int, leaf: int) -> Place | None:
        """Another chunk that begins where this one does, which joins neither the chunk before it nor the one behind.

        Where it joins one, the other is out of place. Row groups that are the same one share all their chunks. Sizes
        that reach into the next chunk move none.
        """
        columns = self._metadata.row_groups[group].columns
        if leaf >= len(columns):
            return None
        start, stop = _extent(columns[leaf])
        before = self._at(group, leaf - 1) if leaf else self._at(group - 1, -1) if group else _MAGIC
        behind = self._at(group, leaf + 1) if leaf + 1 < len(columns) else self._at(group + 1, 0)
        if start >= stop or before[1] == start or behind[0] == stop:
            return None
        return next((one for one in self._begun.get(start, ()) if not self._are_same((group, leaf), one)), None)

    def shared(self) -> Iterator[tuple[Place, Place]]:
        """Chunks that begin where the one named behind them does."""
        for first, *others in self._begun.values():
            yield from ((one, first) for one in others if not self._are_same(one, first))

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
    def _begun(self) -> dict[int, list[Place]]:
        """The chunks that have bytes, by where they begin."""
        found: dict[int, list[Place]] = {}
        for group in range(len(self._metadata.row_groups)):
            with suppress(CorruptFileError):  # damaged metadata says nothing of places
                for leaf, chunk in enumerate(self._metadata.row_groups[group].columns):
                    start, stop = _extent(chunk)
                    if start < stop:
                        found.setdefault(start, []).append((group, leaf))
        return found


def _extent(chunk: ColumnChunk) -> tuple[int, int]:
    """Where the chunk begins and ends, which says nothing where it has no values."""
    about = chunk.meta_data
    if about is None or chunk.file_path is not None or not about.num_values:
        return _NOWHERE
    start = start_of(about)
    return start, start + about.total_compressed_size


def start_of(chunk: ColumnMetaData) -> int:
    """Where the first page of a chunk begins. Some writers put 0 where there is no dictionary."""
    start = chunk.data_page_offset
    dictionary = chunk.dictionary_page_offset
    return dictionary if dictionary is not None and 0 < dictionary < start else start
