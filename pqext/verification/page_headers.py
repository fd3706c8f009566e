"""Data pages as their headers have them, and whether those of version 2 count rows and nulls as the levels do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pqext.core.read.leaf_column import LeafColumn


@dataclass(frozen=True, slots=True)
class PageExtent:
    """A data page by its header: offset in the file, stored size with the header, entries.

    Headers of version 2 tell rows and nulls too; nulls are -1 where parquet-java writes no statistics.
    """

    offset: int
    size: int
    entries: int
    rows: int | None
    nulls: int | None


class Counted:
    """Rows and nulls of each page of a chunk, by the runs of rows that are decoded one after another.

    ``highest`` is the definition level of entries that have a value.
    """

    def __init__(self, pages: Sequence[PageExtent], highest: int) -> None:
        self._pages = [page for page in pages if page.entries]
        self._ends = np.cumsum([page.entries for page in self._pages], dtype=np.int64)
        self._highest = highest
        self._rows, self._nulls = np.zeros(len(self._pages), np.int64), np.zeros(len(self._pages), np.int64)
        self._at = 0

    def add(self, column: LeafColumn) -> None:
        """Count the next run."""
        begin, stop = self._at, self._at + column.entries
        self._at = stop
        first, last = np.searchsorted(self._ends, [begin, stop - 1], "right")
        if begin == stop or last >= len(self._pages):
            return
        which = slice(first, last + 1)
        ends = np.minimum(self._ends[which], stop)
        starts = np.concatenate(([begin], ends[:-1])) - begin
        if column.repetition is None:
            self._rows[which] += ends - begin - starts
        else:
            self._rows[which] += np.add.reduceat(column.repetition == 0, starts, dtype=np.int64)
        if column.definition is not None:
            self._nulls[which] += np.add.reduceat(column.definition < self._highest, starts, dtype=np.int64)
        elif column.array.null_count:
            nulls = column.array.is_null().to_numpy(zero_copy_only=False)
            self._nulls[which] += np.add.reduceat(nulls, starts, dtype=np.int64)

    def contradicted(self) -> Iterator[tuple[PageExtent, str]]:
        """Each page that holds other rows or nulls than its header says, and how."""
        for page, rows, nulls in zip(self._pages, self._rows.tolist(), self._nulls.tolist(), strict=True):
            if page.rows is not None and page.rows != rows:
                yield page, f"a page holds {rows} rows where its header says {page.rows}"
            if page.nulls not in (None, -1, nulls):
                yield page, f"a page holds {nulls} nulls where its header says {page.nulls}"
