"""Which row groups a query reads, in which tasks, and what was read in the end."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path

from pyspark.sql.datasource import InputPartition

from pqext.core.base.text import escape_text
from pqext.dataset.planning.plan import RowGroupPlan, Task
from pqext.dataset.scan_planner import ScanPlanner
from pqext.dataset.skipping import EVIDENCE
from pqext.spark.base.files import local_path, slice_bytes
from pqext.spark.reading.request import Query

LOOKS = 256
"""Row groups of which the driver asks page indexes and Bloom filters, where statistics do not refuse them: so that few
are cut into tasks by what is read of them. Of more the tasks ask, side by side."""


@dataclass(frozen=True)
class Slice(InputPartition):
    """The work of one Spark task: plans of files, each with the row groups of it that the task reads."""

    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class ReadPlan:
    """What a query reads out of what there is; bytes are those of the columns that it needs, pages left out apart.

    ``tasks`` tell it file by file and row group by row group, with the reason for each that is skipped. ``engine`` is
    who reads, ``python`` or ``native``, and ``reasons`` say why. Spark's reader, ``native``, gets files whole: it skips
    row groups and pages by itself, perhaps fewer.

    Where many row groups are left by statistics, page indexes and Bloom filters of most are not looked at here: the
    tasks do it, so that less is read. These are the files of ``tasks`` with ``is_outline``.
    """

    tasks: tuple[Task, ...]
    engine: str = "python"
    reasons: tuple[str, ...] = ()
    is_filtered: bool = True
    columns: tuple[str, ...] = ()
    filter: str | None = None
    """The condition of the read, as text."""

    @property
    def files(self) -> int:
        """Files that are read."""
        return sum(bool(task.kept) for task in self.tasks)

    @property
    def row_groups(self) -> int:
        """Row groups that are read."""
        return sum(len(task.kept) for task in self.tasks)

    @property
    def row_groups_total(self) -> int:
        """Row groups of all files."""
        return sum(task.total for task in self.tasks)

    @property
    def row_groups_unlooked(self) -> int:
        """Row groups of which tasks ask page indexes and Bloom filters, not the plan."""
        return sum(len(task.kept) for task in self.tasks if task.is_outline)

    @property
    def files_skipped(self) -> int:
        """Files that a data-skipping store refuses, none of which was opened; their row groups are not counted."""
        return sum(task.evidence == EVIDENCE for task in self.tasks)

    @property
    def bytes(self) -> int:
        """Stored bytes of the needed columns that are read at most."""
        return sum(task.bytes_kept for task in self.tasks)

    @property
    def bytes_total(self) -> int:
        """Stored bytes of the needed columns in all row groups."""
        return sum(task.bytes_total for task in self.tasks)

    def slices(self, upper: int, open_bytes: int = 0) -> list[Slice]:
        """The row groups that are read, cut into tasks of nearly equal bytes, none above ``upper`` by much.

        Each file counts as ``open_bytes`` in addition to what is read of it.
        """
        total = max(1, self.bytes + self.files * open_bytes)
        share = total / ceil(total / slice_bytes(total, upper))
        slices: list[Slice] = []
        runs: list[tuple[Task, list[RowGroupPlan]]] = []
        size = number = 0
        for task in self.tasks:
            opening = open_bytes
            for group in task.row_groups:
                if group.prune_reason is not None or group.rows == []:
                    continue
                weight, opening = opening + group.bytes_read, 0
                center = size + weight / 2
                if runs and center >= (number + 1) * share:
                    slices.append(_slice(runs))
                    runs, number = [], int(center // share)
                if not runs or runs[-1][0] is not task:
                    runs.append((task, []))
                runs[-1][1].append(group)
                size += weight
        return [*slices, _slice(runs)] if runs else slices

    def __str__(self) -> str:
        text = (
            f"reads {self.row_groups} of {self.row_groups_total} row groups, "
            f"{self.bytes:,} of {self.bytes_total:,} bytes of the columns needed"
        )
        if self.is_filtered and (left := self.row_groups_unlooked):
            text += f"; of {left} row groups page indexes and Bloom filters are left to the tasks, which may read less"
        if skipped := self.files_skipped:
            text += f"; {skipped} of {len(self.tasks)} files are left out by the {EVIDENCE}"
        return "\n".join((text, *(f"  {self.engine}: {reason}" for reason in self.reasons)))

    def describe(self) -> str:
        """The plan as text, with its files, columns and filter."""
        lines = [str(self)]
        if self.tasks:
            others = f" and {len(self.tasks) - 1} more" if len(self.tasks) > 1 else ""
            lines.append(f"  files: {self.files} of {len(self.tasks)}, {escape_text(self.tasks[0].path)}{others}")
        lines.append(f"  columns: {', '.join(map(escape_text, self.columns))}")
        if self.filter is not None:
            lines.append(f"  filter: {escape_text(self.filter)}")
        return "\n".join(lines)


def _slice(runs: Sequence[tuple[Task, Sequence[RowGroupPlan]]]) -> Slice:
    return Slice(tuple(replace(task, row_groups=tuple(groups)) for task, groups in runs))


def plan_read(
    query: Query, names: Sequence[str], pages: bool = True, looks: int | None = LOOKS, *, with_reasons: bool = False
) -> ReadPlan:
    """Plan a query from the footers of its files, for the result's columns ``names``.

    Of at most ``looks`` row groups, of all when None, Bloom filters are asked too, and page indexes with ``pages``.
    Why others are refused is found out where it is to be told. Raises ``ValueError`` when the files' schemas differ.
    """
    filter = query.filter()
    tasks = ScanPlanner(query.to_plan(names, filter)).plan(pages, looks, with_reasons)
    text = None if filter is None else str(filter)
    return ReadPlan(tuple(tasks), is_filtered=filter is not None, columns=tuple(names), filter=text)


@dataclass(frozen=True)
class ReadMetrics:
    """What was read: row groups, rows of them that pages left, rows left by the filter, and bytes fetched with footers.

    A file counts once for each task that opens it.
    """

    files: int = 0
    row_groups: int = 0
    rows_read: int = 0
    rows_returned: int = 0
    bytes: int = 0


def write_metrics(folder: str, name: str, metrics: ReadMetrics) -> None:
    """Leave one task's numbers in ``folder``; those of an attempt that ran again take the place of the first's."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = target / f".{name}-{uuid.uuid4().hex}"
    written.write_text(json.dumps(asdict(metrics)), "utf-8")
    written.replace(target / f"{name}.json")


def read_metrics(folder: str) -> ReadMetrics:
    """The sum of what the tasks of all reads with this ``metrics_path`` have left there.

    Every action on a data frame reads; a task that failed and ran again counts once, as it ran last.
    """
    totals = asdict(ReadMetrics())
    for path in Path(local_path(folder)).glob("[!.]*.json"):
        for name, value in json.loads(path.read_text("utf-8")).items():
            totals[name] += value
    return ReadMetrics(**totals)
