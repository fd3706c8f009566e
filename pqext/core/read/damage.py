"""Record the rows that a reader skips because of corruption, with the error that explains each loss.

The rows of a corrupt page are lost. A corrupt page header loses the remaining rows of its chunk, and corrupt chunk
metadata loses the row group. Lost rows are omitted from every column, so that the remaining rows stay aligned.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from pqext.core.base.errors import CorruptDataWarning, LimitError, ParquetError, warn
from pqext.core.schema.row_ranges import RowRanges, difference, intersection, merge_ranges


@dataclass(frozen=True, slots=True)
class Damage:
    """Unreadable rows ``start`` to ``stop`` (exclusive) of a row group, with the error that caused the loss.

    ``column`` is the dotted path of the leaf whose chunk is corrupt, or None if the metadata of the row group is
    corrupt.
    """

    row_group: int
    column: str | None
    start: int
    stop: int
    error: ParquetError


def format_rows(start: int, stop: int) -> str:
    """Format the rows from ``start`` to ``stop`` (exclusive) for messages.

    >>> format_rows(0, 50)
    'rows 0 to 49'
    """
    return f"row {start:,}" if stop - start == 1 else f"rows {start:,} to {stop - 1:,}" if stop > start else "no rows"


def count_lost_rows(damage: Sequence[Damage]) -> int:
    """Count the rows that ``damage`` lists as lost. A row that is lost in several columns counts once.

    >>> error = ParquetError("damaged")
    >>> count_lost_rows([Damage(0, "a", 9, 50, error), Damage(0, "b", 25, 60, error), Damage(1, "a", 5, 7, error)])
    53
    """
    lost: dict[int, list[range]] = {}
    for item in damage:
        lost.setdefault(item.row_group, []).append(range(item.start, item.stop))
    return sum(part.stop - part.start for ranges in lost.values() for part in merge_ranges(ranges))


class DamageReport(list[Damage]):
    """List of distinct damage in one file, in order of detection. It has at most ``limit`` entries."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self._pieces: set[tuple[int, str | None, int, int]] = set()
        self._adding = threading.Lock()

    def add(self, damage: Damage) -> None:
        """Append ``damage`` unless the report already lists the same rows of the column.

        Raises ``LimitError`` if the report is full.
        """
        piece = damage.row_group, damage.column, damage.start, damage.stop
        with self._adding:
            if piece not in self._pieces:
                if len(self) == self._limit:
                    message = f"more than {self._limit:,} damaged ranges, the maximum of Limits.damaged_pieces"
                    raise LimitError(f"{message}; pqext.recover writes the readable rows to another file")
                self._pieces.add(piece)
                self.append(damage)


class Losses:
    """Lost rows of one row group, merged over its columns. Each loss is added to ``report`` and a warning is issued."""

    def __init__(self, report: DamageReport, row_group: int, path: str | None) -> None:
        self._report = report
        self._row_group = row_group
        self._path = path
        self._ranges: list[tuple[int, int]] = []
        self._lock = threading.Lock()

    def add(self, column: str | None, start: int, stop: int, error: ParquetError) -> None:
        """Record rows ``start`` to ``stop`` (exclusive) as lost in every column because of ``error``, and warn."""
        error.locate(path=self._path, row_group=self._row_group)
        error.__traceback__ = error.__context__ = None  # these would keep the data being read alive
        with self._lock:
            self._ranges.append((start, stop))
        self._report.add(Damage(self._row_group, column, start, stop, error))
        lost = format_rows(start, stop)
        warn(f"{lost} {'is' if stop - start == 1 else 'are'} skipped: {error}", CorruptDataWarning)

    def remaining_ranges(self, rows: RowRanges) -> list[tuple[int, int]] | None:
        """Return the ranges of ``rows`` that are not lost, as positions in ``rows``; None if all of them remain."""
        with self._lock:
            lost = merge_ranges(range(start, stop) for start, stop in self._ranges)
        if not intersection(rows, lost):
            return None
        retained, passed = [], 0
        for item in rows:
            at = passed - item.start
            retained += [(left.start + at, left.stop + at) for left in difference([item], lost)]
            passed += len(item)
        return retained
