"""Run the plan of a file stage by stage, so that columns are decoded only for the rows that the filter selects.

A row group is read in windows of rows, starting with a small one. If most rows of a window match or matching rows are
spread over all of it, the rest of the row group is read in one stage with all columns in parallel, because stages would
cost more than they save.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import InvalidValueError, OffsetIndexError, ParquetError
from pqext.core.base.threads import thread_count
from pqext.core.base.usage import Budget, Usage
from pqext.core.read.deleted_rows import exclude_rows
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.arrow_schema.arrays import filter_batch
from pqext.core.schema.row_ranges import NumberQueue, RowQueue, RowRanges, row_numbers
from pqext.dataset.evaluation.evaluate import Prepared, evaluate
from pqext.dataset.execution.parallel_decoding import Part, Run, decode_in_parallel, divide_plans, has_min_bytes
from pqext.dataset.execution.row_selection import (
    combine_columns,
    flag_remaining,
    matching_positions,
    restore_types,
    select_flagged,
    select_matching,
    without_columns,
)
from pqext.dataset.expressions import Operand, VariantField, operand_column
from pqext.dataset.expressions.visitors import operands
from pqext.dataset.planning.conjuncts import PassRates, estimate_selectivity
from pqext.dataset.planning.plan import RowGroupPlan, Stage, check_plans, merge_stages
from pqext.dataset.planning.projection import ComputedColumn, Fields, compute_columns, read_leaves

AHEAD_BYTES = 1 << 20
"""If fewer stored bytes are to be read, row groups are read on demand, without threads."""
_STAGE_ROWS = 1 << 19
"""Maximum number of rows of a filter's columns that are decoded at a time."""
_FEWEST_ROWS = 1024
"""Minimum number of rows evaluated together, regardless of the batch size."""
_GROWTH = 8
_MOST_ROWS = 1 << 23
"""Growth factor of the window from one to the next, and its maximum number of rows."""
_KEPT_BYTES = 32 << 20
"""Maximum size of the filter's columns that are buffered until the other columns are read, except for one batch."""
_PAYS = 0.3
"""Maximum fraction of rows that remain for the last stage if separate stages are worthwhile."""
_NEARLY_ALL = 0.5
"""Minimum fraction of remaining rows at which all rows are decoded and filtered afterwards."""


def iter_matching_batches(
    file: ParquetFile, plans: Iterable[RowGroupPlan], computed_columns: Sequence[ComputedColumn], batch_rows: int, *,
    with_prefetch: bool = True,
) -> Generator[Part, None, None]:
    """Yield the matching rows in the order of ``plans``, in non-empty batches of at most ``batch_rows`` rows.

    Row groups are decoded in parallel if that is worthwhile. With ``with_prefetch``, rows may be read before they are
    requested.
    """
    statistics = AdaptiveStatistics()
    unfiltered: dict[Stage, dict[int, RowRanges | None]] = {}
    options = file.options
    threads = thread_count(options.threads)
    result = check_plans(plans, file, computed_columns)
    if with_prefetch := with_prefetch and threads > 1 and not options.skips_corrupt:
        with_prefetch, result = has_min_bytes(result, file, AHEAD_BYTES)

    def runs() -> Iterator[Run]:
        for plan in divide_plans(result, file, threads) if with_prefetch else result:
            if plan.prune_reason is None and plan.rows != []:
                is_unfiltered = len(plan.stages) == 1 and plan.stages[0].filter is None and not computed_columns
                if is_unfiltered and plan.index not in file.deleted_rows:
                    unfiltered.setdefault(plan.stages[0], {})[plan.index] = plan.rows
                    continue
                yield partial(_run, file, plan, computed_columns, batch_rows, statistics)
        for stage, rows in unfiltered.items():  # without a filter, all row groups are read together
            yield partial(_read_unfiltered, file, stage, rows, batch_rows)

    if with_prefetch:
        yield from decode_in_parallel(runs(), options.threads, max(len(file.row_groups), threads))
    else:
        for run in runs():
            yield from run(1)


@dataclass(slots=True)
class AdaptiveStatistics:
    """Statistics of the row groups read so far. They determine how the next row groups are read."""

    pays: bool | None = None
    """Whether stages are worth their overhead; ``None`` until a row group was read."""
    prepared: Prepared = field(default_factory=dict)
    passed: PassRates = field(default_factory=PassRates)


def _run(
    file: ParquetFile, plan: RowGroupPlan, computed_columns: Sequence[ComputedColumn], batch_rows: int,
    statistics: AdaptiveStatistics, shares: int,
) -> Iterator[Part]:
    returned = 0
    try:
        for part in _GroupRun(file, plan, computed_columns, batch_rows, statistics, shares).parts():
            returned += part[0].num_rows
            yield part
    except OffsetIndexError as error:
        indexes = file.row_groups[plan.index].indexes
        if returned or plan.rows is None or indexes is None:
            raise
        indexes.ignore_pages(error)
        yield from _GroupRun(file, replace(plan, rows=None), computed_columns, batch_rows, statistics, shares).parts()
    except InvalidValueError:
        # The filter may exclude the corrupt row if the other columns are read after the filter.
        stages = _split_filter(plan, file)
        if stages is None or file.options.skips_corrupt:
            raise
        run = _GroupRun(file, plan, computed_columns, batch_rows, statistics, shares, is_separate=True)
        yield from _drop_rows(run.run_stages(*stages), returned)
    except ParquetError as error:
        error.locate(path=file.path, row_group=plan.index)
        raise


def _split_filter(plan: RowGroupPlan, file: ParquetFile) -> tuple[Stage, ...] | None:
    """Split a plan into a stage for the filter's columns and a stage for the others; return None if impossible."""
    if len(plan.stages) > 1:
        return plan.stages
    (stage,) = plan.stages
    if stage.filter is None or stage.asked or stage.leaves:
        return None
    names = tuple(dict.fromkeys(operand_column(operand).path[0] for operand in operands(stage.filter)))
    every = file.schema.root.child_names if stage.columns is None else stage.columns
    columns = tuple(name for name in every if name in stage.kept or name not in stage.compared)
    if not columns or any("." in name for name in (*names, *columns)) or len(set(every)) < len(every):
        return None
    last = replace(stage, columns=columns, filter=None, compared=())
    return replace(stage, columns=names, compared=(), kept=()), last


def _drop_rows(parts: Iterable[Part], rows: int) -> Iterator[Part]:
    """Skip the first ``rows`` rows of a stream of batches, and yield the rest."""
    for batch, arrays in parts:
        if rows < batch.num_rows:
            yield batch.slice(rows), [array.slice(rows) for array in arrays]
        rows = max(rows - batch.num_rows, 0)


def _read_unfiltered(
    file: ParquetFile, stage: Stage, rows: Mapping[int, RowRanges | None], batch_rows: int, shares: int
) -> Iterator[Part]:
    batches = file.iter_batches(batch_rows, stage.columns, rows=rows)
    return ((batch, []) for batch in batches if batch.num_rows)


@dataclass(slots=True)
class _Window:
    """Rows of a row group that passed the filters evaluated so far, and the columns read for these rows.

    ``schema`` is the schema of these columns in the result, and ``budget`` limits the size of their values.
    """

    schema: pa.Schema
    budget: Budget
    looked_at: int = 0
    rows: list[NDArray[np.int64]] = field(default_factory=list)
    kept: list[pa.RecordBatch] = field(default_factory=list)
    kept_bytes: int = 0
    is_complete: bool = True
    """Whether ``kept`` contains all rows. If not, the values of a batch are too large to buffer."""

    def evaluate(
        self, stage: Stage, batch: pa.RecordBatch, fields: Fields,
        rows: RowRanges | NDArray[np.int64], usage: Usage, statistics: AdaptiveStatistics,
        flags: NDArray[np.bool_] | None = None,
    ) -> pa.BooleanArray:
        """Evaluate a stage's filter on ``batch`` and the values in ``fields``, and add the matching rows to the window.

        Returns the filter's result for each row. The batch contains the ``rows``. If the ``flags`` of the preceding
        stages are passed, it contains only the flagged rows.
        """
        mask = _evaluate_filter(stage, batch, fields, usage, statistics.prepared, is_first=flags is None)
        self.looked_at += batch.num_rows
        result = mask.true_count
        if stage.filter is not None:
            statistics.passed.count(stage.filter, batch.num_rows, result)
        if result:
            if flags is None and not isinstance(rows, np.ndarray) and len(rows) == 1:
                self.rows.append(matching_positions(mask, result, rows[0].start))
            else:
                numbers = rows if isinstance(rows, np.ndarray) else row_numbers(rows)
                self.rows.append((numbers if flags is None else numbers[flags])[matching_positions(mask, result)])
            if stage.kept:
                matching_rows = filter_batch(batch.select(list(stage.kept)), mask)
                part = next(restore_types(matching_rows, stage.kept, self.schema, self.budget))
                self.kept.append(part)
                self.kept_bytes += part.nbytes
                self.is_complete &= part.num_rows == result
        return mask

    @property
    def is_full(self) -> bool:
        """Whether no more columns may be buffered."""
        return self.kept_bytes > _KEPT_BYTES or not self.is_complete

    def row_numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the remaining rows."""
        return np.concatenate(self.rows) if self.rows else np.empty(0, np.int64)

    def columns(self) -> pa.RecordBatch | None:
        """Return the columns read for the remaining rows; None if no columns have been read or rows are missing."""
        return pa.concat_batches(self.kept) if self.kept and self.is_complete else None


class _GroupRun:
    """Reader of one row group that uses one of ``shares`` equal shares of the memory limit."""

    def __init__(
        self, file: ParquetFile, plan: RowGroupPlan, computed_columns: Sequence[ComputedColumn], batch_rows: int,
        statistics: AdaptiveStatistics, shares: int = 1, *, is_separate: bool = False,
    ) -> None:
        self._file = file
        self._is_separate = is_separate
        self._plan = plan
        self._computed = computed_columns
        self._batch_rows = batch_rows
        self._statistics = statistics
        self._shares = shares
        self._is_measured = True
        self._usage = file.source.usage
        self._deleted = file.deleted_rows.get(plan.index)
        self._budget = file.budget(shares)

    def parts(self) -> Iterator[Part]:
        """Yield the matching rows. Read the row group in stages if the expected saving exceeds the overhead."""
        stages = self._plan.stages
        # If corrupt rows are skipped, row numbers are unknown.
        if len(stages) < 2 or not self._is_staging_worthwhile(stages) or self._file.options.skips_corrupt:
            return self._run_in_one_stage(stages, self._plan.rows)
        result = self._file.row_groups[self._plan.index].num_rows
        if result != self._plan.num_rows:
            raise ValueError(
                f"the plan belongs to another file: it has {self._plan.num_rows} rows in row group {self._plan.index}, "
                f"the file has {result}"
            )
        return self.run_stages(*self._statistics.passed.order_stages(stages, self._file, self._plan.index))

    def _is_staging_worthwhile(self, stages: Sequence[Stage]) -> bool:
        """Return whether reading in stages is likely to save time.

        The preceding row groups decide; for the first row group, the column statistics.
        """
        if self._statistics.pays is not None:
            return self._statistics.pays
        condition = merge_stages(stages).filter
        return condition is None or estimate_selectivity(condition, self._file.row_groups[self._plan.index]) <= _PAYS

    def _run_in_one_stage(self, stages: Sequence[Stage], ranges: RowRanges | None) -> Iterator[Part]:
        self._is_measured = False
        stage = merge_stages(stages)
        if self._deleted is None:
            yield from self._run_last_stage(stage, ranges)
            return
        parts = [range(self._plan.num_rows)] if ranges is None else ranges
        remaining_rows = exclude_rows(parts, self._deleted)
        is_dense = len(remaining_rows) >= _NEARLY_ALL * sum(map(len, parts))
        yield from self._run_last_stage(stage, ranges if is_dense else remaining_rows, remaining_rows)

    def run_stages(self, first: Stage, *next_stages: Stage) -> Iterator[Part]:
        """Read the row group in stages, and yield the matching rows.

        Stages end once they are not worthwhile, unless the columns must be read separately.
        """
        at_once = most = min(max(self._batch_rows, _FEWEST_ROWS), _STAGE_ROWS)
        queue = RowQueue([range(self._plan.num_rows)] if self._plan.rows is None else self._plan.rows)
        batches = self._batches(first, self._plan.rows, at_once)
        while queue:
            window = _Window(self._file.arrow_schema, self._budget)
            while queue and window.looked_at < most and not window.is_full:
                batch, fields = next(batches)
                rows = queue.pop(batch.num_rows)
                window.evaluate(first, batch, fields, rows, self._usage, self._statistics)
            remaining_rows, retained = self._without_deleted(window.row_numbers(), window.columns())
            stages = next_stages if window.is_complete else (*next_stages[:-1], _merge_last(first, next_stages[-1]))
            remaining_rows, retained, last = self._apply_stages(remaining_rows, retained, stages)
            pays = not window.is_full and len(remaining_rows) <= _PAYS * window.looked_at
            if len(remaining_rows):
                yield from self._yield_columns(last, remaining_rows, retained)
            most = min(most * _GROWTH, _MOST_ROWS)
            self._statistics.pays = pays
            if not pays and queue and not self._is_separate:
                del batches
                yield from self._run_in_one_stage([first, *next_stages], queue.pop(1 << 62))
                return
        for _ in batches:  # read to the end, where the reader rejects a chunk with more rows than the row group
            pass

    def _without_deleted(
        self, rows: NDArray[np.int64], columns: pa.RecordBatch | None
    ) -> tuple[NDArray[np.int64], pa.RecordBatch | None]:
        """Remove rows that the table's deletion vectors delete from ``rows`` and ``columns``."""
        if self._deleted is None:
            return rows, columns
        flags = np.isin(rows, self._deleted, assume_unique=True, invert=True)
        return rows[flags], columns if columns is None else filter_batch(columns, pa.array(flags))

    def _apply_stages(
        self, remaining_rows: NDArray[np.int64], columns: pa.RecordBatch | None, stages: Sequence[Stage]
    ) -> tuple[NDArray[np.int64], pa.RecordBatch | None, Stage]:
        """Apply the stages after the first to ``remaining_rows``, the rows that match the filter of the first stage.

        ``columns`` contains the columns read for these rows so far. Return the rows that remain, the columns read for
        them, and the last stage, which reads the other columns.
        """
        *filters, last = stages
        for stage in filters:
            if not len(remaining_rows):
                break
            window, flags = _Window(self._file.arrow_schema, self._budget), []
            rows = self._rows_to_decode(remaining_rows)
            queue = self._queue(rows)
            for batch, fields in self._batches(stage, rows, _STAGE_ROWS):
                part = queue.pop(batch.num_rows)
                remaining = flag_remaining(remaining_rows, part)
                if remaining.any():
                    batch, fields = select_flagged(batch, fields, remaining)
                    flags.append(window.evaluate(stage, batch, fields, part, self._usage, self._statistics, remaining))
                if window.is_full:
                    last = _merge_last(stage, last)
                    stage = replace(stage, kept=())
                    window.kept, window.kept_bytes, window.is_complete = [], 0, True
            remaining_rows = window.row_numbers()
            if columns is not None:
                columns = filter_batch(columns, pa.concat_arrays(flags))
            columns = combine_columns(columns, window.columns())
        return remaining_rows, columns, last

    def _yield_columns(
        self, last: Stage, remaining_rows: NDArray[np.int64], columns: pa.RecordBatch | None
    ) -> Iterator[Part]:
        """Yield ``remaining_rows`` with ``columns``, which are already read, and the columns of the last stage."""
        if last.columns or last.leaves:
            yield from self._run_last_stage(last, self._rows_to_decode(remaining_rows), remaining_rows, columns)
            return
        for start in range(0, len(remaining_rows), self._batch_rows):
            count = min(self._batch_rows, len(remaining_rows) - start)
            batch = without_columns(count) if columns is None else columns.slice(start, count)
            yield batch, compute_columns(self._computed, {}, batch)

    def _run_last_stage(
        self, stage: Stage, rows: Rows, remaining_rows: NDArray[np.int64] | None = None,
        columns: pa.RecordBatch | None = None,
    ) -> Iterator[Part]:
        """Read the last stage for ``remaining_rows``, and yield the matching rows with ``columns`` added."""
        queue = self._queue(rows)
        at = 0
        for batch, leaves in self._batches(stage, rows, self._batch_rows):
            if remaining_rows is not None:
                flags = flag_remaining(remaining_rows, queue.pop(batch.num_rows))
                batch, leaves = select_flagged(batch, leaves, flags)
                if columns is not None:
                    batch = combine_columns(columns.slice(at, batch.num_rows), batch)
                at += batch.num_rows
            if not batch.num_rows:
                continue
            arrays = compute_columns(self._computed, leaves, batch)
            if stage.filter is not None:
                mask = _evaluate_filter(
                    stage, batch, leaves, self._usage, self._statistics.prepared, is_first=remaining_rows is None
                )
                if not self._is_measured:  # the first rows decide whether stages are worthwhile
                    self._statistics.pays = mask.true_count <= _PAYS * batch.num_rows
                    self._is_measured = True
                batch = select_matching(batch, mask, {*stage.compared}.difference(stage.kept))
                arrays = [array.filter(mask) for array in arrays]
            if stage.filter is not None and stage.kept:
                start = 0
                for part in restore_types(batch, stage.kept, self._file.arrow_schema, self._budget):
                    yield part, [array.slice(start, part.num_rows) for array in arrays]
                    start += part.num_rows
            elif batch.num_rows:
                yield batch, arrays

    def _queue(self, rows: Rows) -> RowQueue | NumberQueue:
        if isinstance(rows, np.ndarray):
            return NumberQueue(rows)
        return RowQueue([range(self._plan.num_rows)] if rows is None else rows)

    def _batches(
        self, stage: Stage, rows: Rows, batch_rows: int
    ) -> Iterator[tuple[pa.RecordBatch, Fields]]:
        """Yield batches of a stage's columns, and for each batch the VARIANT fields that leaf columns store."""
        index, leaves = self._plan.index, self._file.schema.leaves
        budget = self._file.budget(self._shares)
        batches = self._file.iter_dictionary_batches(batch_rows, stage.columns, index, rows, stage.compared, budget)
        by_name = dict(stage.leaves)
        computed = [(item.field, by_name[item.name]) for item in self._computed if item.name in by_name]
        nodes = {
            field._key(): (field, leaves[leaf])
            for field, leaf in (*computed, *_leaf_operands(stage))
            if isinstance(field, VariantField)
        }
        if not nodes:
            return ((batch, {}) for batch in batches)
        compared = {leaf for _, leaf in stage.asked} - set(by_name.values())
        return read_leaves(
            self._file, self._file.row_groups[index], nodes, batches, batch_rows, rows, compared, budget
        )

    def _rows_to_decode(self, remaining_rows: NDArray[np.int64]) -> Rows:
        """Return the rows to decode: only ``remaining_rows``, or all rows of the plan if most of them remain."""
        is_dense = len(remaining_rows) >= _NEARLY_ALL * self._plan.rows_read and not self._is_separate
        return self._plan.rows if is_dense else remaining_rows


def _merge_last(stage: Stage, last: Stage) -> Stage:
    """Return a last stage that also reads the columns of ``stage`` for rows that match its filter already."""
    return replace(merge_stages([stage, last]), filter=None, asked=(), kept=(), compared=())


Rows = RowRanges | NDArray[np.int64] | None
"""Rows of a row group: ranges, ascending row numbers, or ``None`` for all."""


def _leaf_operands(stage: Stage) -> Iterator[tuple[Operand, int]]:
    """Yield the operands of a stage's filter that are read directly from leaf columns, with the leaf indexes."""
    if stage.filter is not None and stage.asked:
        requested = operands(stage.filter)
        for place, leaf in stage.asked:
            yield requested[place], leaf


def _evaluate_filter(
    stage: Stage, batch: pa.RecordBatch, fields: Fields, usage: Usage, prepared_operands: Prepared, *,
    is_first: bool,
) -> pa.BooleanArray:
    """Evaluate a stage's filter. ``is_first`` is true if no other filter has been evaluated on these rows."""
    if stage.filter is None:
        return pa.repeat(True, batch.num_rows)
    known = fields if stage.asked else None
    with usage.time_filter(batch.num_rows if is_first else 0):
        return evaluate(stage.filter, batch, known, prepared_operands)


