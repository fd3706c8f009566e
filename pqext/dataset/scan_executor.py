"""Execute a planned scan, file by file.

The filter's columns are read from the parts of a file that the plan contains, and the filter is evaluated exactly on
their rows. The other columns of the result are read only for the remaining rows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.batches import split_batches
from pqext.core.base.errors import CorruptFileError
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.arrow_schema.arrays import filter_batch
from pqext.core.schema.row_ranges import RowQueue, row_numbers
from pqext.dataset.evaluation.evaluate import evaluate
from pqext.dataset.execution.metrics import Metrics, Run
from pqext.dataset.execution.stages import iter_matching_batches
from pqext.dataset.expressions import bases, operand_column
from pqext.dataset.expressions.visitors import columns
from pqext.dataset.files.file_set import ErrorLocation
from pqext.dataset.planning.certainty import uncertain_plans
from pqext.dataset.planning.plan import RowGroupPlan
from pqext.dataset.planning.planner import RowTarget
from pqext.dataset.planning.projection import compute_columns
from pqext.dataset.scan_planner import ScanPlanner
from pqext.dataset.table.file_request import FileRequest

_ALL = 1 << 62
"""More rows than files can have."""
_FEW_ROWS = 1 << 16
"""A limit up to this number of rows disables read-ahead."""
_COUNTED_ROWS = 1 << 18
"""The batch size of counts."""
_FILTERED_ROWS = 1 << 13
"""The minimum number of rows on which a filter is evaluated together, regardless of the limit."""


class ScanExecutor:
    """Executor of one run of a planned request, which returns batches or a count. ``run`` collects the metrics."""

    def __init__(self, planner: ScanPlanner) -> None:
        self.planner = planner
        self.request = planner.request
        self.run = Run()

    @property
    def metrics(self) -> Metrics:
        """The metrics of the run so far."""
        return self.run.metrics

    def batches(self, batch_rows: int) -> Generator[tuple[pa.RecordBatch, int], None, None]:
        """Yield non-empty batches, and for each batch the total size of the files opened so far.

        Reading stops once ``limit`` rows have been returned.
        """
        return self.run.time_batches(self._limited_batches(batch_rows))

    def _limited_batches(self, batch_rows: int) -> Generator[tuple[pa.RecordBatch, int], None, None]:
        request = self.request
        passed, left = min(request.offset, _ALL), _ALL if request.limit is None else min(request.limit, _ALL)
        if not left:
            return
        most = min(batch_rows, passed + left)
        if request.filter is not None:  # few of the rows evaluated together may match
            most = max(most, _FILTERED_ROWS)
        with_prefetch = passed + left > _FEW_ROWS
        with closing(self._iter_matching(most, request.row_target, with_prefetch)) as batches:
            for batch, opened in split_batches(batches, batch_rows):
                if passed or batch.num_rows > left:
                    batch, passed = batch.slice(passed, left), max(0, passed - batch.num_rows)
                left -= batch.num_rows
                self.run.rows += batch.num_rows
                if batch.num_rows:
                    yield batch, opened
                if not left:
                    return

    def _iter_matching(
        self, batch_rows: int, row_target: RowTarget | None, with_prefetch: bool = True
    ) -> Generator[tuple[pa.RecordBatch, int], None, None]:
        """Yield batches of matching rows of all files, and for each batch the total size of the files opened so far.

        Planning stops once ``row_target`` is certain to be reached, so more rows may be yielded.
        """
        opened = 0
        with closing(self.planner.open_files(self.run, self.planner.sources_to_read())) as files:
            for position, file in files:
                opened += file.source.size
                with ErrorLocation(file):
                    with self.run.planning():
                        file_request = self.planner.request_file(position, file)
                        is_pruned = file_request.prune_reason is not None
                        is_pruned = is_pruned or self.planner.prunes_all(file_request, file)
                    if not is_pruned:
                        batches = self.file_batches(
                            position, file, file_request, batch_rows, row_target, with_prefetch=with_prefetch
                        )
                        with closing(batches):
                            for batch in batches:
                                yield batch, opened

    def planned_batches(
        self, plans: Iterable[RowGroupPlan], file: ParquetFile, batch_rows: int
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the matching rows of ``file``, the only file of the request, using existing ``plans``."""
        with ErrorLocation(file):
            file_request = self.planner.request_file(0, file)
            with closing(self.file_batches(0, file, file_request, batch_rows, plans=plans)) as rows:
                yield from rows

    def file_batches(
        self, position: int, file: ParquetFile, file_request: FileRequest, batch_rows: int,
        row_target: RowTarget | None = None, *, with_prefetch: bool = True, plans: Iterable[RowGroupPlan] | None = None,
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield batches of the matching rows of one file.

        Planning stops once ``row_target`` is certain to be reached, so more rows may be yielded. If ``plans`` is
        passed, it is used instead of planning the file again.
        """
        file.check_rows()
        of_file = row_target if file_request.is_exact else None  # some rows of the file are dropped later
        if plans is None:
            plans = self.planner.file_planner(file_request, file).row_groups(True, False, of_file)
        plans = self.run.count_plans(plans)
        partitions = self.request.partitions
        name = partitions.rows
        if name is None:
            value = add_null_numbers(
                iter_matching_batches(file, plans, file_request.computed, batch_rows, with_prefetch=with_prefetch)
            )
        else:
            value = iter_numbered(file, plans, file_request, batch_rows)
        with closing(value):
            for batch, computed, numbers in value:
                count = batch.num_rows
                constants = partitions.arrays(self.planner.partition_values, position, count) if partitions else {}
                if name is not None:
                    constants[name] = numbers
                result = file_request.result_batch(batch, computed, constants)
                if result.num_rows:
                    yield result

    def count(self) -> int:
        """Return the number of matching rows, within the limit. Without a filter, only the footers are read."""
        request = self.request
        if request.filter is not None and request.limit is not None:
            few = ScanExecutor(ScanPlanner(replace(request, result=())))
            few.run = self.run
            return sum(batch.num_rows for batch, _ in few.batches(_COUNTED_ROWS))
        total = max(0, sum(self.run.time_batches(self._counts())) - request.offset)
        self.run.rows = total if request.limit is None else min(total, request.limit)
        return self.run.rows

    def _counts(self) -> Generator[int, None, None]:
        """Yield counts of matching rows that add up to the total. The limit is ignored."""
        for position, file in self.planner.open_files(self.run, self.planner.sources_to_read()):
            with ErrorLocation(file):
                file_request = self.planner.request_count(position, file)
                if file_request.prune_reason is not None:
                    continue
                if not file_request.is_exact:
                    batches = self.file_batches(position, file, file_request, _COUNTED_ROWS)
                    yield from (batch.num_rows for batch in batches)
                elif file_request.filter is None:
                    if file.metadata.num_rows not in (0, file.num_rows):  # some writers leave the count at 0
                        raise CorruptFileError(
                            f"the row groups have {file.num_rows} rows, but the footer states {file.metadata.num_rows}"
                        )
                    yield file.num_rows - sum(map(len, file.deleted_rows.values()))
                else:
                    with self.run.planning():
                        if self.planner.prunes_all(file_request.without_columns, file):
                            continue
                    file.check_rows()
                    planner = self.planner.file_planner(file_request.without_columns, file)
                    sure: list[int] = []
                    plans = self.run.count_plans(planner.row_groups(use_page_indexes=True, with_ranges=False))
                    uncertain = uncertain_plans(plans, file, file_request.filter, sure.append)
                    batches = iter_matching_batches(file, uncertain, (), _COUNTED_ROWS)
                    yield from (batch.num_rows for batch, _ in batches)
                    yield sum(sure)

    def files(self) -> Generator[tuple[int, ParquetFile, FileRequest], None, None]:
        """Yield position, open file and request of each file that may contain matching rows."""
        for position, file in self.planner.open_files(self.run, self.planner.sources_to_read()):
            with ErrorLocation(file):
                file_request = self.planner.request_file(position, file)
                if file_request.prune_reason is None:
                    file.check_rows()
                    yield position, file, file_request


def iter_numbered(
    file: ParquetFile, plans: Iterable[RowGroupPlan], file_request: FileRequest, batch_rows: int
) -> Generator[tuple[pa.RecordBatch, list[pa.Array], pa.Array], None, None]:
    """Yield matching rows with row numbers, like :func:`pqext.dataset.execution.stages.iter_matching_batches`.

    Pages pruned by the plans are not read. All needed columns of the other pages are read in one stage.
    """
    starts = [0, *accumulate(group.num_rows for group in file.row_groups)]
    names = None if file_request.columns is None else list(file_request.columns)
    if names is not None:
        needed = [operand_column(base).path[0] for item in file_request.computed for base in bases(item.field)]
        needed += columns(file_request.filter) if file_request.filter is not None else ()
        names = list(dict.fromkeys([*names, *needed]))
    for plan in plans:
        if plan.prune_reason is not None or plan.rows == []:
            continue
        deleted = file.deleted_rows.get(plan.index)
        ranges = [range(plan.num_rows)] if plan.rows is None else plan.rows
        queue = RowQueue(ranges)
        for batch in file.iter_batches(batch_rows, names, rows={plan.index: ranges}):
            rows = row_numbers(queue.pop(batch.num_rows))
            numbers = pa.array(rows + np.int64(starts[plan.index]))
            mask = None if file_request.filter is None else evaluate(file_request.filter, batch)
            if deleted is not None:
                remaining = pa.array(np.isin(rows, deleted, assume_unique=True, invert=True))
                mask = remaining if mask is None else pc.and_(mask, remaining)
            if mask is not None:
                batch, numbers = filter_batch(batch, mask), numbers.filter(mask)
            if batch.num_rows:
                yield batch, compute_columns(file_request.computed, {}, batch), numbers


def add_null_numbers(
    parts: Generator[tuple[pa.RecordBatch, list[pa.Array]], None, None],
) -> Generator[tuple[pa.RecordBatch, list[pa.Array], Any], None, None]:
    """Yield ``parts`` with None in place of row numbers, for scans without row numbers."""
    with closing(parts):
        for batch, computed in parts:
            yield batch, computed, None
