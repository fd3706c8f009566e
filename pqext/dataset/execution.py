"""Running the plan of a file: stage by stage, so that columns are decoded only of rows that the filter has left.

A row group is read in windows of rows, the first of them small. Where rows that match lie all over a window, the rest
is read in one stage, all columns side by side, because stages cost more than they save there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.arrow_schema.arrays import filtered
from pqext.core.indexes.row_ranges import RowQueue, RowRanges, flags_within, ranges_around, row_numbers
from pqext.core.reader import ParquetFile
from pqext.dataset.evaluate import evaluate
from pqext.dataset.expressions import VariantField
from pqext.dataset.plan import RowGroupPlan, Stage, together
from pqext.dataset.projection import Computed, computed_of, read_leaves
from pqext.dataset.visitors import operands

Part = tuple[pa.RecordBatch, list[pa.Array]]
"""Rows that match, and of them the computed columns."""

_STAGE_ROWS = 65_536
"""Rows of a filter's columns that are decoded at a time."""
_FEWEST_ROWS = 1024
"""Rows that are looked at together at least, however small the batches are to be."""
_GROWTH = 8
_MOST_ROWS = 1 << 23
"""A window has so many times the rows of the one before it, up to so many."""
_KEPT_BYTES = 32 << 20
"""Bytes of the filter's columns that wait for the other columns of their rows, but for one batch."""
_GAP = 4096
"""Fewer rows between two that match are decoded with them: ranges of rows cost time too."""
_PAYS = 0.5
"""Stages pay where at most such a share of the rows is decoded in the last one."""
_NEARLY_ALL = 0.9
"""Where such a share of a row group's rows is to be decoded, all are."""


def matching(
    file: ParquetFile, plans: Iterable[RowGroupPlan], computed: Sequence[Computed], batch_rows: int
) -> Iterator[Part]:
    """The rows that match, in the order of the ``plans``: at most ``batch_rows`` at a time, none empty."""
    pays = True
    unfiltered: dict[Stage, list[int]] = {}
    for plan in plans:
        if plan.refusal is None and plan.rows != []:
            if len(plan.stages) == 1 and plan.stages[0].filter is None and not computed:
                unfiltered.setdefault(plan.stages[0], []).append(plan.index)
                continue
            run = _GroupRun(file, plan, computed, batch_rows, pays)
            yield from run.parts()
            pays = run.pays
    for stage, indices in unfiltered.items():  # without a filter all row groups are read the same way, at once
        yield from ((batch, []) for batch in file.iter_batches(batch_rows, stage.columns, indices) if batch.num_rows)


@dataclass(slots=True)
class _Window:
    """Rows of a row group that a stage has looked at: which of them are left, and the columns kept of these."""

    looked_at: int = 0
    rows: list[NDArray[np.int64]] = field(default_factory=list)
    kept: list[pa.RecordBatch] = field(default_factory=list)
    kept_bytes: int = 0

    def look_at(
        self, stage: Stage, batch: pa.RecordBatch, fields: Mapping[Computed, pa.Array], rows: Sequence[range],
        flags: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.bool_]:
        """Evaluate a stage's filter on ``batch`` and values in ``fields`` beside it; gives a flag for each row of it.

        It has the ``rows``, or those of them with ``flags``.
        """
        mask = _mask(stage, batch, fields)
        found = _flags(mask)
        self.looked_at += batch.num_rows
        if found.any():
            numbers = row_numbers(rows)
            self.rows.append((numbers if flags is None else numbers[flags])[found])
            if stage.kept:
                self.kept.append(filtered(batch.select(list(stage.kept)), mask))
                self.kept_bytes += self.kept[-1].nbytes
        return found

    def left(self) -> NDArray[np.int64]:
        """The rows that are left."""
        return np.concatenate(self.rows) if self.rows else np.empty(0, np.int64)

    def columns(self) -> pa.RecordBatch | None:
        """The columns kept of them, ``None`` without any."""
        return pa.concat_batches(self.kept) if self.kept else None


class _GroupRun:
    """One row group read; ``pays`` tells whether stages are worth their overhead, and in the end whether they were."""

    def __init__(
        self, file: ParquetFile, plan: RowGroupPlan, computed: Sequence[Computed], batch_rows: int, pays: bool
    ) -> None:
        self.pays = pays
        self._file = file
        self._plan = plan
        self._computed = computed
        self._batch_rows = batch_rows
        self._is_measured = True

    def parts(self) -> Iterator[Part]:
        """The rows that match."""
        stages = self._plan.stages
        # Where damage is passed over, the rows that come cannot be numbered.
        if len(stages) < 2 or not self.pays or self._file.options.on_corrupt == "skip":
            return self._at_once(stages, self._plan.rows)
        found = self._file.row_groups[self._plan.index].num_rows
        if found != self._plan.num_rows:
            raise ValueError(
                f"the plan is of another file: it has {self._plan.num_rows} rows in row group {self._plan.index}, "
                f"the file {found}"
            )
        return self._in_stages(*stages)

    def _at_once(self, stages: Sequence[Stage], ranges: RowRanges | None) -> Iterator[Part]:
        self._is_measured = False
        yield from self._give(together(stages), ranges)

    def _in_stages(self, first: Stage, *more: Stage) -> Iterator[Part]:
        at_once = most = min(max(self._batch_rows, _FEWEST_ROWS), _STAGE_ROWS)
        queue = RowQueue([range(self._plan.num_rows)] if self._plan.rows is None else self._plan.rows)
        batches = self._batches(first, self._plan.rows, at_once)
        while queue:
            window = _Window()
            while queue and window.looked_at < most and window.kept_bytes <= _KEPT_BYTES:
                batch, fields = next(batches)
                window.look_at(first, batch, fields, queue.take(batch.num_rows))
            left, kept, last = self._filtered(window.left(), window.columns(), more)
            pays = window.kept_bytes <= _KEPT_BYTES and covered(left) <= _PAYS * window.looked_at
            if len(left):
                yield from self._give_kept(last, left, kept)
            most = min(most * _GROWTH, _MOST_ROWS)
            if not pays and queue:
                del batches
                yield from self._at_once([first, *more], queue.take(1 << 62))
                return
        for _ in batches:  # its end, where the reader refuses a chunk that holds more rows than the row group
            pass

    def _filtered(
        self, left: NDArray[np.int64], kept: pa.RecordBatch | None, stages: Sequence[Stage]
    ) -> tuple[NDArray[np.int64], pa.RecordBatch | None, Stage]:
        """What the further stages leave of the rows ``left`` by the first, of which it has ``kept`` columns.

        Gives the rows, the columns kept of them, and the last stage, which reads what is not kept.
        """
        *filters, last = stages
        for stage in filters:
            if not len(left):
                break
            window, flags = _Window(), []
            ranges = self._ranges(left)
            queue = RowQueue([range(self._plan.num_rows)] if ranges is None else ranges)
            for batch, fields in self._batches(stage, ranges, _STAGE_ROWS):
                part = queue.take(batch.num_rows)
                wanted = flags_within(left, part)
                if wanted.any():
                    batch, fields = _only(batch, fields, wanted)
                    flags.append(window.look_at(stage, batch, fields, part, wanted))
                if window.kept_bytes > _KEPT_BYTES:
                    # They are read again, with the columns of the last stage.
                    last = replace(together([stage, last]), filter=None, asked=())
                    stage = replace(stage, kept=())
                    window.kept, window.kept_bytes = [], 0
            left = window.left()
            if kept is not None:
                kept = filtered(kept, pa.array(np.concatenate(flags)))
            kept = side_by_side(kept, window.columns())
        return left, kept, last

    def _give_kept(self, last: Stage, left: NDArray[np.int64], kept: pa.RecordBatch | None) -> Iterator[Part]:
        """The rows that are ``left``: the columns ``kept`` of them and those of the last stage."""
        if last.columns or last.leaves:
            yield from self._give(last, self._ranges(left), left, kept)
            return
        for start in range(0, len(left), self._batch_rows):
            count = min(self._batch_rows, len(left) - start)
            batch = _without_columns(count) if kept is None else kept.slice(start, count)
            yield batch, computed_of(self._computed, {}, batch)

    def _give(
        self, stage: Stage, ranges: RowRanges | None, left: NDArray[np.int64] | None = None,
        kept: pa.RecordBatch | None = None,
    ) -> Iterator[Part]:
        """The last stage: its columns of the rows in ``ranges`` that are ``left`` and match its filter, with those that
        were ``kept`` of these rows."""
        queue = RowQueue([range(self._plan.num_rows)] if ranges is None else ranges)
        at = 0
        for batch, leaves in self._batches(stage, ranges, self._batch_rows):
            if left is not None:
                batch, leaves = _only(batch, leaves, flags_within(left, queue.take(batch.num_rows)))
                if kept is not None:
                    batch = side_by_side(kept.slice(at, batch.num_rows), batch)
                at += batch.num_rows
            if not batch.num_rows:
                continue
            arrays = computed_of(self._computed, leaves, batch)
            if stage.filter is not None:
                mask = _mask(stage, batch, leaves)
                if not self._is_measured:  # the first rows tell whether stages would pay
                    self.pays = covered(np.flatnonzero(_flags(mask))) <= _PAYS * batch.num_rows
                    self._is_measured = True
                batch, arrays = _matching(batch, mask, stage.compared), [array.filter(mask) for array in arrays]
            if batch.num_rows:
                yield batch, arrays

    def _batches(
        self, stage: Stage, ranges: RowRanges | None, batch_rows: int
    ) -> Iterator[tuple[pa.RecordBatch, Mapping[Computed, pa.Array]]]:
        """A stage's columns, and beside each batch the values within VARIANT columns that come from leaves."""
        index, leaves = self._plan.index, self._file.schema.leaves
        batches = self._file.iter_compared(batch_rows, stage.columns, index, ranges, stage.compared)
        by_name = dict(stage.leaves)
        nodes = {column: leaves[by_name[column.name]] for column in self._computed if column.name in by_name}
        nodes |= {field: leaves[leaf] for field, leaf in _fields(stage)}
        if not nodes:
            return ((batch, {}) for batch in batches)
        compared = {leaf for _, leaf in stage.asked} - set(by_name.values())
        return read_leaves(self._file, self._file.row_groups[index], nodes, batches, batch_rows, ranges, compared)

    def _ranges(self, left: NDArray[np.int64]) -> RowRanges | None:
        """The rows to decode for those that are ``left``; ``None`` for all of the row group."""
        ranges = ranges_around(left, _GAP)
        return None if sum(map(len, ranges)) >= _NEARLY_ALL * self._plan.num_rows else ranges


def covered(left: NDArray[np.int64]) -> int:
    """How many rows are decoded for those that are ``left``, with what lies between near ones."""
    return sum(map(len, ranges_around(left, _GAP)))


def side_by_side(first: pa.RecordBatch | None, second: pa.RecordBatch | None) -> pa.RecordBatch | None:
    """The columns of both, which are of the same rows."""
    if first is None or second is None:
        return first if second is None else second
    return pa.RecordBatch.from_arrays(
        [*first.columns, *second.columns], schema=pa.schema([*first.schema, *second.schema], first.schema.metadata)
    )


def _flags(mask: pa.BooleanArray) -> NDArray[np.bool_]:
    """Where a condition is true."""
    flags: NDArray[np.bool_] = mask.fill_null(False).to_numpy(zero_copy_only=False)
    return flags


def _fields(stage: Stage) -> Iterator[tuple[Computed, int]]:
    """What a stage's filter asks about and reads from leaves, with their column indexes."""
    if stage.filter is not None and stage.asked:
        asked = operands(stage.filter)
        for place, leaf in stage.asked:
            field = asked[place]
            if isinstance(field, VariantField):
                yield Computed("", field), leaf


def _mask(stage: Stage, batch: pa.RecordBatch, fields: Mapping[Computed, pa.Array]) -> pa.BooleanArray:
    """The truth of a stage's filter."""
    if stage.filter is None:
        return pa.repeat(True, batch.num_rows)
    known = {column.field._key(): array for column, array in fields.items()} if stage.asked else None
    return evaluate(stage.filter, batch, known)


def _only(
    batch: pa.RecordBatch, fields: Mapping[Computed, pa.Array], flags: NDArray[np.bool_]
) -> tuple[pa.RecordBatch, Mapping[Computed, pa.Array]]:
    """The flagged rows of a batch, which may have no columns, and of what is beside it."""
    if flags.all():
        return batch, fields
    mask = pa.array(flags)
    fields = {column: array.filter(mask) for column, array in fields.items()}
    return (filtered(batch, mask) if batch.num_columns else _without_columns(int(np.count_nonzero(flags)))), fields


def _matching(batch: pa.RecordBatch, mask: pa.BooleanArray, dropped: Collection[str]) -> pa.RecordBatch:
    """The rows of a batch where ``mask`` is true, without the columns ``dropped``."""
    names = [name for name in batch.schema.names if name not in dropped]
    if not names:
        return _without_columns(mask.true_count)
    return filtered(batch if len(names) == batch.num_columns else batch.select(names), mask)


def _without_columns(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))
