"""Execution of a planned scan, file by file.

The filter's columns are read from what the plan leaves and the filter is evaluated exactly on their rows; the other
columns of the result are read of the rows that are left.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from pqext.core.base.batches import split_batches
from pqext.core.base.errors import CorruptFileError
from pqext.core.read.reader import ParquetFile
from pqext.dataset.execution.metrics import Metrics, Run
from pqext.dataset.execution.stages import matching
from pqext.dataset.files.file_set import located
from pqext.dataset.planning.certainty import apart
from pqext.dataset.planning.plan import RowGroupPlan
from pqext.dataset.planning.planner import RowsWanted
from pqext.dataset.scan_planner import ScanPlanner
from pqext.dataset.table.file_request import Asked
from pqext.dataset.table.row_numbers import matching_numbered, unnumbered

_FEW_ROWS = 1 << 16
"""A limit up to this number of rows disables read-ahead."""
_COUNTED_ROWS = 1 << 18
"""The batch size of counts."""
_FILTERED_ROWS = 1 << 13
"""The minimum batch size of a filter, whatever the limit."""


class ScanExecutor:
    """One run of a planned request, as batches or as a count. ``run`` collects its metrics."""

    def __init__(self, planner: ScanPlanner) -> None:
        self.planner = planner
        self.request = planner.request
        self.run = Run()

    @property
    def metrics(self) -> Metrics:
        """The metrics of the run so far."""
        return self.run.metrics

    def batches(self, batch_rows: int) -> Generator[tuple[pa.RecordBatch, int], None, None]:
        """The batches, each with the bytes of the files opened for it and those before; none is empty.

        Nothing more is read once there are ``limit`` rows.
        """
        return self.run.timed(self._limited(batch_rows))

    def _limited(self, batch_rows: int) -> Generator[tuple[pa.RecordBatch, int], None, None]:
        request = self.request
        passed, left = request.offset, 1 << 62 if request.limit is None else request.limit
        if not left:
            return
        most = min(batch_rows, passed + left)
        if request.filter is not None:  # few of the rows evaluated together may match
            most = max(most, _FILTERED_ROWS)
        with closing(self._matching(most, request.wanted, ahead=passed + left > _FEW_ROWS)) as matching:
            for batch, opened in split_batches(matching, batch_rows):
                if passed or batch.num_rows > left:
                    batch, passed = batch.slice(passed, left), max(0, passed - batch.num_rows)
                left -= batch.num_rows
                self.run.rows += batch.num_rows
                if batch.num_rows:
                    yield batch, opened
                if not left:
                    return

    def _matching(
        self, batch_rows: int, wanted: RowsWanted | None, ahead: bool = True
    ) -> Generator[tuple[pa.RecordBatch, int], None, None]:
        """The matching rows, until there are as many as ``wanted``."""
        opened = 0
        with closing(self.planner.open_files(self.run, self.planner.sources_to_read())) as files:
            for row, file in files:
                opened += file.source.size
                with located(file):
                    with self.run.planning():
                        asked = self.planner.ask(row, file)
                        is_refused = asked.refusal is not None or self.planner.refuses_all(asked, file)
                    if not is_refused:
                        with closing(self.file_batches(row, file, asked, batch_rows, wanted, ahead=ahead)) as found:
                            for batch in found:
                                yield batch, opened

    def planned_batches(
        self, plans: Iterable[RowGroupPlan], file: ParquetFile, batch_rows: int
    ) -> Generator[pa.RecordBatch, None, None]:
        """The matching rows of the request's one ``file``, by ``plans`` that a request of more files has made."""
        with located(file):
            asked = self.planner.ask(0, file)
            with closing(self.file_batches(0, file, asked, batch_rows, plans=plans)) as found:
                yield from found

    def file_batches(
        self, row: int, file: ParquetFile, asked: Asked, batch_rows: int,
        wanted: RowsWanted | None = None, *, ahead: bool = True, plans: Iterable[RowGroupPlan] | None = None,
    ) -> Generator[pa.RecordBatch, None, None]:
        """The matching rows of one file, until there are as many as ``wanted``; by ``plans`` if they are given."""
        file.check_rows()
        of_file = wanted if asked.is_exact else None  # of the rows that a file gives some are dropped
        if plans is None:
            plans = self.planner.of_file(asked, file).row_groups(True, False, of_file)
        plans = self.run.plans(plans)
        partitions = self.request.partitions
        name = partitions.rows
        if name is None:
            found = unnumbered(matching(file, plans, asked.computed, batch_rows, ahead=ahead))
        else:
            found = matching_numbered(file, plans, asked, batch_rows)
        with closing(found):
            for batch, computed, numbers in found:
                constants = partitions.arrays(self.planner.folder_values, row, batch.num_rows) if partitions else {}
                if name is not None:
                    constants[name] = numbers
                given = asked.give(batch, computed, constants)
                if given.num_rows:
                    yield given

    def count(self) -> int:
        """The number of rows that match, within the limit; without a filter from the footers alone."""
        request = self.request
        if request.filter is not None and request.limit is not None:
            few = ScanExecutor(ScanPlanner(replace(request, result=())))
            few.run = self.run
            return sum(batch.num_rows for batch, _ in few.batches(_COUNTED_ROWS))
        total = max(0, sum(self.run.timed(self._counted())) - request.offset)
        self.run.rows = total if request.limit is None else min(total, request.limit)
        return self.run.rows

    def _counted(self) -> Generator[int, None, None]:
        """The numbers of matching rows, whatever the limit, in parts."""
        for row, file in self.planner.open_files(self.run, self.planner.sources_to_read()):
            with located(file):
                asked = self.planner.ask_to_count(row, file)
                if asked.refusal is not None:
                    continue
                if not asked.is_exact:
                    yield from (batch.num_rows for batch in self.file_batches(row, file, asked, _COUNTED_ROWS))
                elif asked.filter is None:
                    if file.metadata.num_rows not in (0, file.num_rows):  # some writers count none at all
                        raise CorruptFileError(
                            f"the row groups have {file.num_rows} rows, the footer counts {file.metadata.num_rows}"
                        )
                    yield file.num_rows
                else:
                    with self.run.planning():
                        if self.planner.refuses_all(asked.without_columns, file):
                            continue
                    file.check_rows()
                    planner = self.planner.of_file(asked.without_columns, file)
                    sure: list[int] = []
                    plans = self.run.plans(planner.row_groups(pages=True, places=False))
                    left = apart(plans, file, asked.filter, sure.append)
                    yield from (batch.num_rows for batch, _ in matching(file, left, (), _COUNTED_ROWS))
                    yield sum(sure)

    def files(self) -> Generator[tuple[int, ParquetFile, Asked], None, None]:
        """The files that may have matching rows, each with its number and the request to it."""
        for row, file in self.planner.open_files(self.run, self.planner.sources_to_read()):
            with located(file):
                asked = self.planner.ask(row, file)
                if asked.refusal is None:
                    file.check_rows()
                    yield row, file, asked
