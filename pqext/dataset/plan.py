"""What a scan is about to read: which row groups, which of their rows, how many bytes, and why not the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from pqext.core.indexes.row_ranges import RowRanges
from pqext.core.page_selection import pages_of
from pqext.core.reader import ParquetFile
from pqext.core.row_group import ColumnChunk
from pqext.core.text import visible

_SHOWN_RANGES = 3


@dataclass(frozen=True, slots=True)
class RowGroupPlan:
    """What a scan does with one row group; ``num_bytes`` are all stored bytes of the columns it needs."""

    index: int
    num_rows: int
    num_bytes: int
    refusal: str | None
    """Why no row can match, when the row group is skipped."""
    rows: RowRanges | None = None
    """Rows in pages that may hold one that matches, when pages were asked and refuse some."""
    page_bytes: int | None = None
    """Stored bytes of the pages that hold these rows, with the dictionaries they need."""

    @property
    def rows_read(self) -> int:
        """Rows that are read, but for the rest of pages that are read in part."""
        if self.refusal is not None:
            return 0
        return self.num_rows if self.rows is None else sum(map(len, self.rows))

    @property
    def bytes_read(self) -> int:
        """Stored bytes that are read of the columns needed."""
        if self.refusal is not None:
            return 0
        return self.num_bytes if self.page_bytes is None else self.page_bytes


@dataclass(frozen=True, slots=True)
class Task:
    """What a scan does with one file."""

    path: str
    row_groups: tuple[RowGroupPlan, ...]
    refusal: str | None = None
    """Why no row can match, when the file is skipped by its path: its row groups are not known then."""
    footer_crc: int | None = None
    """CRC-32 of the footer that was planned from, which tells a file that has taken the place of another."""

    @property
    def kept(self) -> tuple[int, ...]:
        """Indexes of the row groups that are read."""
        return tuple(plan.index for plan in self.row_groups if plan.refusal is None)

    @property
    def total(self) -> int:
        """Row groups in the file."""
        return len(self.row_groups)

    @property
    def bytes_kept(self) -> int:
        """Stored bytes of the needed columns that are read: whole row groups, or pages where these were asked."""
        return sum(plan.bytes_read for plan in self.row_groups)

    @property
    def bytes_total(self) -> int:
        """Stored bytes of the needed columns in all row groups."""
        return sum(plan.num_bytes for plan in self.row_groups)

    @property
    def rows_kept(self) -> int:
        """Rows that are read."""
        return sum(plan.rows_read for plan in self.row_groups)

    @property
    def rows_total(self) -> int:
        """Rows in the file."""
        return sum(plan.num_rows for plan in self.row_groups)

    @property
    def reasons(self) -> dict[int, str]:
        """Why each row group that is skipped cannot match, by its index."""
        return {plan.index: plan.refusal for plan in self.row_groups if plan.refusal is not None}


def footer_crc(file: ParquetFile) -> int:
    """CRC-32 of the footer of an open file, as it is stored."""
    return crc32(file.footer.raw.data)


def stored_bytes(chunk: ColumnChunk, rows: RowRanges) -> int:
    """Stored bytes of the pages that hold ``rows``, and of the dictionary they need."""
    known, (start, length) = chunk.page_places, chunk.byte_range
    if known is None:
        return length
    pages = pages_of(known, rows)
    head = known.byte_range(0)[0] - start if pages else 0
    return head + sum(known.byte_range(page)[1] for page in pages)


def _rows_text(plan: RowGroupPlan) -> str:
    """The rows that pages leave, the first few ranges of them."""
    rows = plan.rows or []
    held = sum(map(len, rows))
    places = ", ".join(f"{one.start:,} to {one.stop - 1:,}" for one in rows[:_SHOWN_RANGES])
    places += f" and {len(rows) - _SHOWN_RANGES} more ranges" if len(rows) > _SHOWN_RANGES else ""
    return f"{held:,} of {count(plan.num_rows, 'row')} may match by their pages" + (f": {places}" if places else "")


def summary(tasks: Sequence[Task]) -> str:
    """How much of everything is read, in one line."""
    kept, total = sum(len(task.kept) for task in tasks), sum(task.total for task in tasks)
    rows_kept, rows_total = sum(task.rows_kept for task in tasks), sum(task.rows_total for task in tasks)
    bytes_kept, bytes_total = sum(task.bytes_kept for task in tasks), sum(task.bytes_total for task in tasks)
    opened = sum(task.refusal is None for task in tasks)
    files = f"{opened} of {count(len(tasks), 'file')}, " if opened < len(tasks) else ""
    return (
        f"{files}{kept} of {count(total, 'row group')}, {rows_kept:,} of {count(rows_total, 'row')}, "
        f"{bytes_kept:,} of {count(bytes_total, 'byte')}"
    )


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def explanation(tasks: Sequence[Task]) -> list[str]:
    """File by file and row group by row group what is read and why not the rest."""
    lines = []
    for task in tasks:
        if task.refusal is not None:
            lines.append(f"{visible(task.path)} skipped: {task.refusal}")
            continue
        lines.append(f"{visible(task.path)}: " + summary([task]))
        for plan in task.row_groups:
            if plan.refusal is not None:
                lines.append(f"  row group {plan.index} skipped: {plan.refusal}")
            elif plan.rows is not None:
                lines.append(f"  row group {plan.index}: {_rows_text(plan)}")
    return lines
