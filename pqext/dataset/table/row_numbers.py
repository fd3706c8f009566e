"""Row numbers within a file as a column of its rows."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from pqext.core.read.reader import ParquetFile
from pqext.core.schema.arrow_schema.arrays import filtered
from pqext.core.schema.row_ranges import RowQueue, row_numbers
from pqext.dataset.evaluation.evaluate import evaluate
from pqext.dataset.expressions import bases, operand_column
from pqext.dataset.expressions.visitors import columns
from pqext.dataset.planning.plan import RowGroupPlan
from pqext.dataset.planning.projection import computed_of
from pqext.dataset.table.file_request import FileRequest


def matching_numbered(
    file: ParquetFile, plans: Iterable[RowGroupPlan], file_request: FileRequest, batch_rows: int
) -> Generator[tuple[pa.RecordBatch, list[pa.Array], pa.Array], None, None]:
    """Yield the matching rows, as ``execution.stages.matching`` does, together with their row numbers.

    Pages pruned by the plans are not read; all needed columns of the other pages are read in one stage.
    """
    starts = [0, *accumulate(group.num_rows for group in file.row_groups)]
    names = None if file_request.columns is None else list(file_request.columns)
    if names is not None:
        needed = [operand_column(base).path[0] for one in file_request.computed for base in bases(one.field)]
        needed += columns(file_request.filter) if file_request.filter is not None else ()
        names = list(dict.fromkeys([*names, *needed]))
    for plan in plans:
        if plan.prune_reason is not None or plan.rows == []:
            continue
        ranges = [range(plan.num_rows)] if plan.rows is None else plan.rows
        queue = RowQueue(ranges)
        for batch in file.iter_batches(batch_rows, names, rows={plan.index: ranges}):
            numbers = pa.array(row_numbers(queue.take(batch.num_rows)) + np.int64(starts[plan.index]))
            if file_request.filter is not None:
                mask = evaluate(file_request.filter, batch)
                batch, numbers = filtered(batch, mask), numbers.filter(mask)
            if batch.num_rows:
                yield batch, computed_of(file_request.computed, {}, batch), numbers


def unnumbered(
    parts: Generator[tuple[pa.RecordBatch, list[pa.Array]], None, None],
) -> Generator[tuple[pa.RecordBatch, list[pa.Array], Any], None, None]:
    """The parts of a scan that counts no rows, each with None for the numbers of its rows."""
    with closing(parts):
        for batch, computed in parts:
            yield batch, computed, None
