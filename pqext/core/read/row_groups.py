"""Lazy sequences of the row groups of a file and of their page indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError, MemoryLimitError, ParquetError
from pqext.core.base.lru import LRU
from pqext.core.base.suggestions import join_names
from pqext.core.base.text import escape_text, html_summary
from pqext.core.base.usage import Budget
from pqext.core.footer.chunk_offsets import ChunkRanges
from pqext.core.format import metadata as structures
from pqext.core.format.thrift import LazyStructs
from pqext.core.indexes.page_index import IndexedPages
from pqext.core.kernels.thrift.footer_lists import count_rows
from pqext.core.read.row_group import RowGroup
from pqext.core.read.row_group_reader import rows_of
from pqext.core.schema.row_ranges import RowRanges, normalize_ranges
from pqext.core.schema.shape import LeafShape

T = TypeVar("T")
SelectedRows = tuple[int, RowRanges | NDArray[np.int64] | None]
"""Row group with the ranges or ascending numbers of its selected rows; None for all rows."""

_KEPT = 1 << 14
"""Maximum total number of column chunks of cached row groups, with their indexes and filters."""
_FEW_CHUNKS = 64
"""Number of column chunks that are counted for an empty row group."""
_SHARED_ROWS = 1 << 10
"""Maximum number of rows of a row group that is not checked individually: the columns of small row groups are decoded
together, without metadata."""
_REPEATED_CHUNK = 1 << 15
"""Number of bytes counted for a column chunk shared with an earlier row group. Decoding it takes up to a
millisecond."""
_GROUP_CHUNKS = 2
"""Number of chunks that are counted for a row group with repeated chunks, in addition to these."""


def total_rows(row_groups: Sequence[structures.RowGroup], read_groups: Callable[[], Iterable[RowGroup]]) -> int:
    """Return the number of rows of all row groups, from the footer if possible, otherwise from ``read_groups``.

    Raises ``CorruptFileError`` if a row group has a negative row count.
    """
    index = row_groups.undecoded_index if isinstance(row_groups, LazyStructs) else None
    rows = getattr(row_groups, "rows", None) if index is None else count_rows(index)
    return sum(map(rows_of, read_groups())) if rows is None else rows


def _sharing_error(size: str, group: RowGroup) -> MemoryLimitError:
    return MemoryLimitError(
        f"row groups that share one column chunk have {size}, more than memory_bytes allows; "
        "raise the limit with limits=Limits(memory_bytes=...)",
        path=group.path, row_group=group.index,
    )  # fmt: skip


def _weight(group: RowGroup) -> int:
    return _FEW_CHUNKS + len(group.known)


class RowGroups(Sequence[RowGroup]):
    """Sequence of ``count`` row groups, each created by ``make`` from its index. The most recent row groups are cached.

    ``chunk_ranges`` are the byte ranges of their column chunks.
    """

    def __init__(self, count: int, make: Callable[..., RowGroup], chunk_ranges: ChunkRanges) -> None:
        self._count = count
        self._make = make
        self.chunk_ranges = chunk_ranges
        self._kept: LRU[int, RowGroup] = LRU(_KEPT, keeps_last=True)
        self._last: RowGroup | None = None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[RowGroup]:
        return (self[index] for index in range(self._count))

    @overload
    def __getitem__(self, index: int) -> RowGroup: ...
    @overload
    def __getitem__(self, index: slice) -> list[RowGroup]: ...
    def __getitem__(self, index: int | slice) -> RowGroup | list[RowGroup]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(f"row group {index} does not exist; the file has {self._count} row groups")
        index %= self._count
        result = self._kept.get(index)
        if result is None:
            if (last := self._last) is not None:  # an older row group rarely gets more chunks
                self._kept.weigh(last.index, _weight(last))
            result = self._last = self._kept.get_or_make(index, partial(self._make, index=index), _weight)
        return result

    def select(
        self, row_groups: Iterable[int] | None, rows: Mapping[int, Iterable[range] | None] | None
    ) -> list[SelectedRows]:
        """Return the indices of ``row_groups``, with the rows to read in each.

        ``rows`` maps row groups to ranges; row groups that it lacks are omitted. Raises ``IndexError`` if a row group
        or row does not exist.
        """
        if rows is not None and not isinstance(rows, Mapping):
            raise TypeError(f"rows must map row groups to ranges, like {{0: [range(10, 20)]}}, not {rows!r}")
        requested = range(self._count) if rows is None else rows
        indices = list(requested if row_groups is None else row_groups)
        for index in (*indices, *(rows or ())):
            if isinstance(index, bool):
                raise TypeError(f"a row group must be selected by its index, not by {index}")
            if not 0 <= index < self._count:
                raise IndexError(f"row group {index} does not exist; the file has {self._count} row groups")
        if rows is None:
            return [(index, None) for index in indices]
        selected = [(at, normalize_ranges(rows[at], self[at].num_rows)) for at in indices if at in rows]
        return [(index, ranges) for index, ranges in selected if ranges != []]

    def iter_within(
        self,
        selection: Iterable[tuple[int, T]],
        leaves: Sequence[LeafShape],
        budget: Budget,
        num_rows: Callable[[], int],
    ) -> Iterator[tuple[RowGroup, T]]:
        """Return an iterator over the row groups and rows in ``selection``, checked by :meth:`get_with_budget`.

        If ``selection`` contains all of several row groups, and the file has more rows than the budget has bytes, all
        row groups are checked before the first is decoded.
        """
        selection = list(selection)
        with suppress(CorruptFileError):  # a negative count: the reader raises the error or skips the row group
            if len(selection) == len(self) > 1 and num_rows() > budget.room:
                self.check_shared(leaves, budget)
        return ((self.get_with_budget(index, leaves, budget), rows) for index, rows in selection)

    def check_repeats(self, leaves: int, memory_bytes: int) -> None:
        """Raise ``MemoryLimitError`` if too many chunks share a start offset. ``leaves`` is the number of columns to
        read.
        """
        if self._count * (leaves + _GROUP_CHUNKS) * _REPEATED_CHUNK > memory_bytes:
            starts = self.chunk_ranges.repeated_starts
            groups = {group for group, _ in starts}
            if (len(starts) + _GROUP_CHUNKS * len(groups)) * _REPEATED_CHUNK > memory_bytes:
                raise _sharing_error(f"{len(starts)} repeated chunks", self[min(groups)])

    def check_shared(self, leaves: Sequence[LeafShape], budget: Budget) -> None:
        """Check all row groups, even small ones, with :meth:`get_with_budget` before any of them is decoded."""
        for index in range(self._count):
            self.get_with_budget(index, leaves, budget, 0)

    def get_with_budget(
        self, index: int, leaves: Sequence[LeafShape], budget: Budget, unchecked_rows: int = _SHARED_ROWS
    ) -> RowGroup:
        """Return row group ``index``, after checking that shared column chunks do not exceed ``budget``.

        Raises ``MemoryLimitError`` if this and other row groups share a column chunk, and have more rows in total than
        the budget has bytes, or too many column chunks. A few bytes in a file can declare any number of rows, and a
        footer can list chunks faster than they can be decoded.
        """
        group, rows, chunks = self[index], 0, 0
        with suppress(ParquetError):  # the reader raises the error or skips the row group
            if budget.usage is not None and leaves and group.num_rows > unchecked_rows:
                chunk = group.chunk(leaves[0].node)
                place = chunk.file_path, chunk.byte_range[0]
                rows, chunks = budget.usage.count_shared(place, index, group.num_rows, len(leaves))
        if max(rows, chunks * _REPEATED_CHUNK) > budget.room:
            size = f"{rows} rows" if rows > budget.room else f"{chunks} repeated chunks"
            raise _sharing_error(size, group)
        return group

    def __repr__(self) -> str:
        return f"<{self._count} row groups>"


class PageIndex(Mapping[str, IndexedPages]):
    """Pages of the columns of a row group by dotted path. Columns without an offset index are omitted.

    The index of a column is read on access. ``RowGroup.load_page_indexes`` fetches several indexes together.
    """

    def __init__(self, group: RowGroup) -> None:
        self._group = group

    def __getitem__(self, path: str) -> IndexedPages:
        node = self._group.schema.find(path)
        pages = self._group.chunk(node).pages if node is not None and node.is_leaf else None
        if pages is None:
            raise KeyError(path)
        return pages

    def __iter__(self) -> Iterator[str]:
        return (
            chunk.node.dotted_path for chunk in self._group.chunks() if chunk.structure.offset_index_offset is not None
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return escape_text(f"<PageIndex of row group {self._group.index}: {join_names(self) or 'no columns'}>")

    def _repr_html_(self) -> str:
        rows = [(path, f"{len(self[path]):,} pages") for path in islice(self, 50) if path in self]
        return html_summary(f"Page index of row group {self._group.index}", rows)
