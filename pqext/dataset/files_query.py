"""What is asked of many files: planned, and run file by file.

The files whose folders refuse the filter are dropped, of each other file the footer is read, the row groups are dropped
whose statistics refuse the filter, then the pages whose bounds do; the filter's columns are read from the rest and the
filter is evaluated exactly on their rows, and the other columns of the result are read of the rows that are left.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from pqext.core.base.batches import cut
from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.base.limits import Limits
from pqext.core.base.pickling import PickledByFields
from pqext.core.base.suggestions import listed
from pqext.core.files.summary_files import footer_crc
from pqext.core.read.reader import ParquetFile
from pqext.dataset.column_names import ExactNames
from pqext.dataset.execution.metrics import Metrics, Run, counts_of
from pqext.dataset.execution.stages import matching
from pqext.dataset.expressions import Expression, all_of, bases
from pqext.dataset.expressions.timezones import in_timezone
from pqext.dataset.files.file_set import FileSet, located
from pqext.dataset.files.sources import source_name
from pqext.dataset.planning.certainty import apart, split_certain
from pqext.dataset.planning.checks import check_numbers
from pqext.dataset.planning.likely_mistakes import doubtful, doubts_of
from pqext.dataset.planning.plan import REACHED, RowGroupPlan, Task
from pqext.dataset.planning.planner import FilePlanner, RowsWanted
from pqext.dataset.planning.projection import Computed
from pqext.dataset.skipping import Skipping, narrowed_by, of_stored_values
from pqext.dataset.table.agreement import Agreement
from pqext.dataset.table.file_request import Asked, Form, Wanted
from pqext.dataset.table.partitions import NO_PARTITIONS, Narrowed, Partitions
from pqext.dataset.table.row_numbers import matching_numbered, unnumbered
from pqext.dataset.table.unified_schema import Unifier
from pqext.dataset.table.union import Union
from pqext.variant.timezones import DEFAULT

SchemaRule: TypeAlias = Literal["union"] | pa.Schema | None
"""How the columns of files become those of one table."""

_FEW_ROWS = 1 << 16
"""Where no more rows are wanted, none are read ahead."""
_NO_FILE = "no file is left to take the schema from: none is Parquet"
_COUNTED_ROWS = 1 << 18
"""Rows that are looked at together where they are only counted."""
_FILTERED_ROWS = 1 << 13
"""Rows that a filter looks at together at least, however few are wanted."""


@dataclass(eq=False)
class FilesQuery(PickledByFields):
    """The rows of files for which ``filter`` is true, and of them ``result``: names, and values within VARIANTs."""

    files: FileSet
    result: tuple[str | Computed, ...] | None
    filter: Expression | None
    partitions: Partitions = NO_PARTITIONS
    rule: SchemaRule = None
    """The columns of the result: those of the first file, with which all must agree, ``"union"`` for those of all files
    by name, or a schema to which they conform."""
    offset: int = 0
    """Rows that match and are passed over before the first that is given."""
    limit: int | None = None
    """Rows that are given at most."""
    skipping: Skipping | None = None
    """What refuses files that need not be opened then."""
    timezone: str = DEFAULT
    """The zone of local times in casts of the result and the filter."""
    is_count: bool = False
    """Whether the rows are only counted: batches have no columns, and of files that must agree on those of the result
    only what the filter needs is planned and read."""

    def __post_init__(self) -> None:
        self.result = in_timezone(self.result, self.timezone)
        self.filter = in_timezone(self.filter, self.timezone)
        for column in self.result or ():
            if isinstance(column, Computed):
                for base in bases(column.field):
                    self.partitions.check(base, is_computed=True)
        if self.rule is not None and self.files.options.shredded:
            raise ValueError("shredded=True gives VARIANT columns as each file stores them, which schema= cannot unify")
        if self.partitions.rows is not None and self.files.options.on_corrupt == "skip":
            raise ValueError('rows cannot be numbered where damage is passed over: leave out on_corrupt="skip"')
        self._run = Run()
        self._was_run = False
        self._planner: tuple[Asked, FilePlanner] | None = None

    @property
    def sources(self) -> tuple[Any, ...]:
        """The files."""
        return self.files.sources

    @property
    def limits(self) -> Limits:
        """What reading may take."""
        return self.files.limits

    @property
    def metrics(self) -> Metrics | None:
        """What the last run took so far, None before the first."""
        return self._run.metrics if self._was_run else None

    def _start(self) -> Run:
        self._run, self._was_run = Run(), True
        return self._run

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result, from the first file that is read; fields of several files may be null."""
        known = self.known_schema if self.rule is None else self._form.schema
        if known is None:
            rows = [row for row, part in enumerate(self._narrowed) if part.refusal is None]
            with closing(self.reading(Run(), rows or [0])) as files:
                for row, file in files:
                    with located(file):
                        return self.ask(row, file).schema
            raise CorruptFileError(_NO_FILE)
        return known

    @property
    def known_schema(self) -> pa.Schema | None:
        """The schema where no file needs to be opened for it."""
        form = self.__dict__.get("_form")
        return None if form is None else form.schema

    @property
    def is_local_file(self) -> bool:
        """Is there one file, on this machine?"""
        return len(self.sources) == 1 and isinstance(self.sources[0], str) and "://" not in self.sources[0]

    @cached_property
    def exact(self) -> ExactNames:
        """The columns that dotted names stand for."""
        return ExactNames(self.files, tuple(self.partitions.schema.names), self.rule)

    @cached_property
    def _form(self) -> Form:
        result = None if self.result is None else tuple(map(self.exact.of_column, self.result))
        wanted = Wanted(self.sources, result, self.exact.of(self.filter), self.partitions)
        if not isinstance(self.rule, str):
            return Agreement(wanted) if self.rule is None else Union(wanted, self.rule)
        if not self.files.schemas:
            raise CorruptFileError(_NO_FILE)
        unifier = Unifier(wanted.tops)
        for path, schema in self.files.schemas:
            unifier.add(schema, path)
        return Union(wanted, unifier.schema)

    def plan(self, pages: bool = False, looks: int | None = None, is_told: bool = True) -> list[Task]:
        """What will be read of each file, from the footers and Bloom filters alone.

        With ``pages`` the page indexes are read too, as when the scan runs: each row group's ``rows`` are those in
        pages that may hold one that matches. Of a query without limit, row groups that their statistics do not refuse
        are asked for more than that only while they are no more than ``looks``, file by file; the plans of the files
        behind are outlines, from the footers alone. Reasons are given in full where they are to be told.
        """
        tasks, kept, wanted = {}, self.kept(), self._wanted
        for row, file in self.reading(Run(), kept):
            with located(file):
                asked = self.ask(row, file)
                file.check_rows()
                of_file = wanted if asked.is_exact else None
                plans: tuple[RowGroupPlan, ...] = ()
                if looks is not None and wanted is None and asked.refusal is None:
                    with file.by_footer_alone():
                        plans = tuple(self.planner(asked, file).outlines(is_told))
                    left = [plan.index for plan in plans if plan.refusal is None]
                    looks -= len(left)
                    if left and looks >= 0:
                        looked = self.planner(asked, file).row_groups(pages, True, chosen=left)
                        known = {plan.index: plan for plan in looked}
                        plans = tuple(known.get(plan.index, plan) for plan in plans)
                elif asked.refusal is None:
                    plans = tuple(self.planner(asked, file).row_groups(pages, True, of_file))
                is_outline = looks is not None and looks < 0
                path, crc = source_name(self.sources[row]), footer_crc(file)
                tasks[row] = Task(path, plans, asked.refusal, crc, is_outline)
            if wanted is not None and wanted.rows <= 0:
                rest = kept[kept.index(row) + 1 :]
                tasks |= {row: Task(source_name(self.sources[row]), (), REACHED) for row in rest}
                break
        return [
            tasks[row] if row in tasks else Task(source_name(source), (), part.refusal, evidence=part.evidence)
            for row, (source, part) in enumerate(zip(self.sources, self._narrowed, strict=True))
            if row in tasks or part.refusal is not None
        ]

    def doubts(self) -> list[str]:
        """Paths within VARIANT columns and boxes that the first file to be read shows to be mistakes, maybe."""
        fields, places = doubtful(self.exact.of(self.filter), self.result or ())
        kept = self.kept() if fields or places else []
        with closing(self.files.opened(kept[:1], is_learning=True)) as files:
            for _, file in files:
                return doubts_of(fields, places, file)
        return []

    @property
    def _wanted(self) -> RowsWanted | None:
        return None if self.limit is None else RowsWanted(self.offset + self.limit)

    def found(self, batch_rows: int) -> Generator[tuple[pa.RecordBatch, int], None, None]:
        """The batches, each with the bytes of the files opened for it and those before; none is empty.

        Nothing more is read once there are ``limit`` rows.
        """
        run = self._start()
        return run.timed(self._limited(run, batch_rows))

    def _limited(self, run: Run, batch_rows: int) -> Generator[tuple[pa.RecordBatch, int], None, None]:
        passed, left = self.offset, 1 << 62 if self.limit is None else self.limit
        if not left:
            return
        most = min(batch_rows, passed + left)
        if self.filter is not None:  # of the rows that are looked at together few may match
            most = max(most, _FILTERED_ROWS)
        with closing(self._matching(run, most, self._wanted, ahead=passed + left > _FEW_ROWS)) as matching:
            for batch, opened in cut(matching, batch_rows):
                if passed or batch.num_rows > left:
                    batch, passed = batch.slice(passed, left), max(0, passed - batch.num_rows)
                left -= batch.num_rows
                run.rows += batch.num_rows
                if batch.num_rows:
                    yield batch, opened
                if not left:
                    return

    def _matching(
        self, run: Run, batch_rows: int, wanted: RowsWanted | None, ahead: bool = True
    ) -> Generator[tuple[pa.RecordBatch, int], None, None]:
        """The rows that match, at least as many as are ``wanted``."""
        opened = 0
        with closing(self.reading(run, self.kept())) as files:
            for row, file in files:
                opened += file.source.size
                with located(file):
                    with run.planning():
                        asked = self.ask(row, file)
                        is_refused = asked.refusal is not None or self._refuses_all(asked, file)
                    if not is_refused:
                        with closing(self.given(run, row, file, asked, batch_rows, wanted, ahead=ahead)) as found:
                            for batch in found:
                                yield batch, opened

    def planned(
        self, plans: Iterable[RowGroupPlan], file: ParquetFile, batch_rows: int
    ) -> Generator[pa.RecordBatch, None, None]:
        """The rows that match in the one ``file`` of the query, for which a query of more files has made ``plans``."""
        with located(file):
            asked = self.ask(0, file)
            with closing(self.given(self._start(), 0, file, asked, batch_rows, plans=plans)) as found:
                yield from found

    def detailed(self, task: Task, file: ParquetFile) -> Task:
        """The plan of the one ``file`` of the query as it runs, of an outline by asking what that left aside."""
        if not task.is_outline:
            return task
        with located(file):
            asked = self.ask(0, file)
            check_numbers(task.kept, file)
            plans = self.planner(asked, file).row_groups(True, False, chosen=task.kept)
            return replace(task, row_groups=tuple(plans), is_outline=False)

    def divided(self, task: Task, file: ParquetFile) -> tuple[list[RowGroupPlan], list[RowGroupPlan]]:
        """The plans of a task in two: row groups all of whose rows match for certain, and others that are read."""
        with located(file):
            asked = self.ask(0, file)
            return split_certain(task.row_groups, file, asked.filter, asked.is_exact)

    def given(
        self, run: Run, row: int, file: ParquetFile, asked: Asked, batch_rows: int,
        wanted: RowsWanted | None = None, *, ahead: bool = True, plans: Iterable[RowGroupPlan] | None = None,
    ) -> Generator[pa.RecordBatch, None, None]:
        """The rows of one file that match, at least as many as are ``wanted``; by ``plans`` where these are made."""
        file.check_rows()
        of_file = wanted if asked.is_exact else None  # of the rows that a file gives some are dropped
        plans = run.plans(self.planner(asked, file).row_groups(True, False, of_file) if plans is None else plans)
        name = self.partitions.rows
        if name is None:
            found = unnumbered(matching(file, plans, asked.computed, batch_rows, ahead=ahead))
        else:
            found = matching_numbered(file, plans, asked, batch_rows)
        with closing(found):
            for batch, computed, numbers in found:
                constants = self.partitions.arrays(self.folder_values, row, batch.num_rows) if self.partitions else {}
                if name is not None:
                    constants[name] = numbers
                given = asked.give(batch, computed, constants)
                if given.num_rows:
                    yield given

    def count(self) -> int:
        """The number of rows that match, within the limit; without a filter from the footers alone."""
        if self.filter is not None and self.limit is not None:
            few = replace(self, result=())
            found = few.found(_COUNTED_ROWS)
            self._run, self._was_run = few._run, True
            return sum(batch.num_rows for batch, _ in found)
        run = self._start()
        total = max(0, sum(run.timed(self._counted(run))) - self.offset)
        run.rows = total if self.limit is None else min(total, self.limit)
        return run.rows

    def _counted(self, run: Run) -> Generator[int, None, None]:
        """How many rows match, whatever the limit, in parts."""
        for row, file in self.reading(run, self.kept()):
            with located(file):
                asked = self._form.to_count(row, file, self.exact.of(self._narrowed[row].filter))
                if asked.refusal is not None:
                    continue
                if not asked.is_exact:
                    yield from (batch.num_rows for batch in self.given(run, row, file, asked, _COUNTED_ROWS))
                elif asked.filter is None:
                    if file.metadata.num_rows not in (0, file.num_rows):  # some writers count none at all
                        raise CorruptFileError(
                            f"the row groups have {file.num_rows} rows, the footer counts {file.metadata.num_rows}"
                        )
                    yield file.num_rows
                else:
                    with run.planning():
                        if self._refuses_all(asked.without_columns, file):
                            continue
                    file.check_rows()
                    planner = self.planner(asked.without_columns, file)
                    sure: list[int] = []
                    plans = run.plans(planner.row_groups(pages=True, places=False))
                    left = apart(plans, file, asked.filter, sure.append)
                    yield from (batch.num_rows for batch, _ in matching(file, left, (), _COUNTED_ROWS))
                    yield sum(sure)

    def _refuses_all(self, asked: Asked, file: ParquetFile) -> bool:
        """Is it known of all row groups of a file that none has a row that is asked for?"""
        if asked.filter is None or len(self.sources) == 1 or file.options.on_corrupt == "skip":
            return False
        file.check_rows()
        return self.planner(asked, file).refuses_all()

    def asked(self, run: Run | None = None) -> Generator[tuple[int, ParquetFile, Asked, Run], None, None]:
        """The files that may hold rows of the result, each with its place, what it is asked for, and the run."""
        run = self._start() if run is None else run
        for row, file in self.reading(run, self.kept()):
            with located(file):
                asked = self.ask(row, file)
                if asked.refusal is None:
                    file.check_rows()
                    yield row, file, asked, run

    def reading(self, run: Run, rows: Sequence[int]) -> Generator[tuple[int, ParquetFile], None, None]:
        """The files of the sources in ``rows`` in order, to which the filter suits, counted in ``run``."""
        at = 0
        summaries = self.files.summaries
        with closing(self.files.opened(rows)) as files:
            while at < len(rows):
                before = counts_of(self.sources[rows[at]])
                with run.planning():
                    found = next(files, None)
                if summaries is not None and summaries.usages:
                    run.read(summaries.take_usages())
                if found is None:
                    return
                row, file = found
                at = rows.index(row, at) + 1
                with located(file), run.opened(file, before):
                    self.exact.learn(file)
                    self._form.check_filter(file)
                    yield row, file

    @cached_property
    def folder_values(self) -> pa.RecordBatch:
        """What the folders of each source say of the partition columns."""
        return self.partitions.values(self.sources)

    @cached_property
    def _narrowed(self) -> list[Narrowed]:
        """What is left of the filter for each source.

        Raises ``UnsupportedError`` for a file with a column that the folders of others name and its own do not.
        """
        narrowed = self._narrowed_by_folders()
        if self.skipping is None or self.filter is None or not self.files.options.trust_statistics:
            return narrowed
        cast = self.rule.names if isinstance(self.rule, pa.Schema) else ()
        names = self.partitions.schema.names
        asked = of_stored_values(self.exact.of(self.filter), names, cast, self.rule == "union")
        return narrowed if asked is None else narrowed_by(self.skipping, narrowed, self.sources, asked)

    def _narrowed_by_folders(self) -> list[Narrowed]:
        if not self.partitions:
            return [Narrowed(self.filter)] * len(self.sources)
        unnamed = self.partitions.unnamed(self.sources, self.folder_values)
        for row, file in self.files.opened([*unnamed]):
            both = unnamed[row].intersection(file.schema.root.child_names)
            if both:
                raise UnsupportedError(
                    f"column {listed(sorted(both))} is in the file, while the folders of other files name it: "
                    "pass partitioning=None, or scan them apart",
                    feature="partition columns within files", path=file.path,
                )
        return self.partitions.narrow(self.exact.of_folders(self.filter), self.folder_values)

    def kept(self) -> list[int]:
        """The sources that are read; with none, a wrong name in the filter is an error all the same."""
        kept = [row for row, part in enumerate(self._narrowed) if part.refusal is None]
        if not kept:
            for _ in self.reading(Run(), [0]):
                pass
        return kept

    def ask(self, row: int, file: ParquetFile, condition: Expression | None = None) -> Asked:
        """What is asked of the file of a source, with a further ``condition`` on its own columns."""
        filter = self.exact.of(self._narrowed[row].filter)
        both = [part for part in (filter, condition) if part is not None]
        asked = self._form.ask(row, file, all_of(both) if both else None)
        return asked.without_columns if self.is_count else asked

    def planner(self, asked: Asked, file: ParquetFile) -> FilePlanner:
        """What plans the reading of a file; files of one schema share what follows from it."""
        known = self._planner
        if known is not None and known[0] is asked and known[1].facts is file:
            return known[1]
        if known is not None and known[0] is asked and known[1].shares(file, file.options):
            planner = known[1].of(file)
            self._planner = asked, planner  # with what was worked out since
            return planner
        planner = FilePlanner(file, file.options, asked.columns, asked.computed, asked.filter)
        if len(self.sources) > 1:
            self._planner = asked, planner
        return planner
