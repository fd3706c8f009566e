"""Plan the row groups and tasks of a query, and record what tasks have read."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from posixpath import commonpath

from pyspark.sql.datasource import InputPartition

from pqext.core.base.text import escape_text, with_noun
from pqext.dataset.planning.explanation import format_plan
from pqext.dataset.planning.plan import RowGroupPlan, Task
from pqext.dataset.scan_planner import ScanPlanner
from pqext.spark.base.files import local_path, slice_bytes
from pqext.spark.reading.request import Query

_STORE = re.compile(r"(?:[A-Za-z][\w+.-]*://[^/]*)?")
"""The scheme and the store of a URL, empty for a path."""
MAX_INDEXED_ROW_GROUPS = 256
"""Maximum number of row groups whose page indexes and Bloom filters the driver reads to plan tasks by their bytes.

Tasks read the page indexes and Bloom filters of other row groups, in parallel.
"""


@dataclass(frozen=True)
class Slice(InputPartition):
    """Work of one Spark task: plans of files with the row groups that the task reads."""

    tasks: tuple[Task, ...]
    query: Query | None = None
    """The query with the partition values and deleted rows of these files only; None for files without a table."""


@dataclass(frozen=True)
class ReadPlan:
    """Plan of a read. Byte counts cover the requested columns, excluding skipped pages.

    ``print(plan)`` lists files and row groups with the reasons for skipping them, like :meth:`pqext.Scan.explain`.
    ``tasks`` has the same facts: ``prune_reason`` of each file that is skipped, and ``prune_reason`` of each of its
    ``row_groups`` otherwise. ``engine`` is the reader, ``python`` or ``native``, and ``reasons`` explain the choice
    between them. Spark's reader, ``native``, reads complete files and may skip fewer row groups and pages.

    If statistics leave many row groups, the tasks read the page indexes and Bloom filters of most of them, and may
    therefore read less than planned. These files have ``is_outline`` in ``tasks``.
    """

    tasks: tuple[Task, ...]
    engine: str = "python"
    reasons: tuple[str, ...] = ()
    is_filtered: bool = True
    columns: tuple[str, ...] = ()
    filter: str | None = None
    """Condition of the read, as text."""
    spark_filter: str | None = None
    """Condition that Spark evaluates on the rows of the read, as text; it does not skip data."""
    warnings: tuple[str, ...] = ()
    """Likely mistakes in the paths and boxes of the condition."""

    @property
    def files(self) -> int:
        """Number of files to read."""
        return sum(bool(task.kept_row_groups) for task in self.tasks)

    @property
    def row_groups(self) -> int:
        """Number of row groups to read."""
        return sum(len(task.kept_row_groups) for task in self.tasks)

    @property
    def row_groups_total(self) -> int:
        """Number of row groups of all files."""
        return sum(task.total for task in self.tasks)

    @property
    def row_groups_deferred(self) -> int:
        """Number of row groups whose page indexes and Bloom filters only tasks read."""
        return sum(len(task.kept_row_groups) for task in self.tasks if task.is_outline)

    @property
    def files_skipped(self) -> int:
        """Number of files that partition values, the log of a table, a data-skipping store or the schema prune.

        Their row groups are not counted. ``prune_reason`` of their task is the reason.
        """
        return sum(task.prune_reason is not None for task in self.tasks)

    @property
    def bytes(self) -> int:
        """Maximum number of stored bytes of the requested columns to read."""
        return sum(task.bytes_kept for task in self.tasks)

    @property
    def bytes_total(self) -> int:
        """Number of stored bytes of the requested columns in all row groups."""
        return sum(task.bytes_total for task in self.tasks)

    def slices(self, max_bytes: int, open_bytes: int = 0) -> list[Slice]:
        """Split the row groups into tasks of nearly equal bytes, about ``max_bytes`` at most.

        Opening a file counts as ``open_bytes``.
        """
        total = max(1, self.bytes + self.files * open_bytes)
        share = total / ceil(total / slice_bytes(total, max_bytes))
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
                    slices.append(_create_slice(runs))
                    runs, number = [], int(center // share)
                if not runs or runs[-1][0] is not task:
                    runs.append((task, []))
                runs[-1][1].append(group)
                size += weight
        return [*slices, _create_slice(runs)] if runs else slices

    def __str__(self) -> str:
        return self._format([])

    def describe(self) -> str:
        """Return the plan as text with its folder, columns and filter."""
        lines = []
        if self.tasks:
            location = self._location()
            suffix = "" if location is None else f", {escape_text(location)}"
            lines.append(f"files: {self.files} of {len(self.tasks)}{suffix}")
        lines.append(f"columns: {', '.join(map(escape_text, self.columns))}")
        if self.filter is not None:
            lines.append(f"filter: {escape_text(self.filter)}")
        return self._format(lines)

    def _format(self, facts: Sequence[str]) -> str:
        messages = [*facts, *self.warnings, *(f"{self.engine}: {reason}" for reason in self.reasons)]
        if self.is_filtered and (deferred := self.row_groups_deferred):
            groups = with_noun(deferred, "row group")
            messages.append(f"tasks check page indexes and Bloom filters of {groups}, and may read less")
        if self.spark_filter is not None:
            messages.append(f"Spark evaluates: {escape_text(self.spark_filter)}")
        return "\n".join(map(escape_text, format_plan(self.tasks, messages))).lstrip()

    def _location(self) -> str | None:
        """Return the path of the only file, or the folder that contains all files; None if they share no folder."""
        stores = {_STORE.match(task.path)[0] for task in self.tasks}  # type: ignore[index]
        if len(stores) > 1:
            return None
        store = stores.pop()
        paths = [task.path.removeprefix(store) for task in self.tasks]
        is_absolute = {path.startswith("/") for path in paths}
        return (store + commonpath(paths) or None) if len(is_absolute) == 1 else None


def _create_slice(runs: Sequence[tuple[Task, Sequence[RowGroupPlan]]]) -> Slice:
    return Slice(tuple(replace(task, row_groups=tuple(groups)) for task, groups in runs))


def plan_read(
    query: Query, names: Sequence[str], pages: bool = True, max_indexed: int | None = MAX_INDEXED_ROW_GROUPS,
    *, with_reasons: bool = False,
) -> ReadPlan:
    """Plan a query from the footers of its files, for the result columns ``names``.

    Bloom filters are evaluated for at most ``max_indexed`` row groups, or for all if None, and page indexes too if
    ``pages``. With ``with_reasons``, the plan states the reason for each pruned row group, and likely mistakes. Raises
    ``ValueError`` if the schemas of the files differ.
    """
    filter = query.filter()
    planner = ScanPlanner(query.planning_request(names, filter))
    tasks = planner.plan(pages, max_indexed, with_reasons)
    warnings = tuple(planner.mistake_warnings()) if with_reasons else ()
    text = None if filter is None else str(filter)
    return ReadPlan(
        tuple(tasks), is_filtered=filter is not None, columns=tuple(names), filter=text, warnings=warnings
    )


@dataclass(frozen=True)
class ReadMetrics:
    """Counts of a read: row groups, rows of the pages read, rows returned by the filter, and bytes including footers.

    A file is counted once for each task that opens it.
    """

    files: int = 0
    row_groups: int = 0
    rows_read: int = 0
    rows_returned: int = 0
    bytes: int = 0


def write_metrics(folder: str, name: str, metrics: ReadMetrics) -> None:
    """Write the metrics of a task to ``folder``, replacing the metrics of an earlier attempt."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    partial = target / f".{name}-{uuid.uuid4().hex}"
    partial.write_text(json.dumps(asdict(metrics)), "utf-8")
    partial.replace(target / f"{name}.json")


def read_metrics(folder: str) -> ReadMetrics:
    """Return the sums of the metrics that tasks of all reads with this ``metrics_path`` have written.

    Every action on a data frame reads the files. Only the last attempt of a task counts.

    Args:
        folder: The folder passed to ``read(..., metrics_path=)``.

    Returns:
        The sums of the metrics.

    Example:
        >>> read_metrics("/tmp/metrics").row_groups  # doctest: +SKIP
    """
    totals = asdict(ReadMetrics())
    for path in Path(local_path(folder)).glob("[!.]*.json"):
        for name, value in json.loads(path.read_text("utf-8")).items():
            totals[name] += value
    return ReadMetrics(**totals)
