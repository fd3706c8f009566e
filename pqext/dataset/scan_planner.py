"""Plan a scan: the row groups and pages of each file to read, and the evidence for skipping the others.

Files are first pruned by partition values. The footers of the remaining files are read, and their row groups are pruned
by statistics. Pages are then pruned by their bounds.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import TypeVar

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.base.suggestions import join_names
from pqext.core.files.summary_files import footer_crc
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.data_frames import drop_row_ranges
from pqext.dataset.column_names import NameResolver
from pqext.dataset.execution.metrics import Run, counts_of
from pqext.dataset.expressions import Expression, all_of
from pqext.dataset.files.file_set import ErrorLocation
from pqext.dataset.files.sources import source_name
from pqext.dataset.planning.certainty import split_plans
from pqext.dataset.planning.explanation import checkable_parts, mistake_warnings
from pqext.dataset.planning.plan import REACHED, RowGroupPlan, Task, check_row_groups
from pqext.dataset.planning.planner import FilePlanner
from pqext.dataset.scan_request import ScanRequest
from pqext.dataset.skipping import EVIDENCE, TABLE_EVIDENCE, prune, stored_value_conjuncts
from pqext.dataset.table.agreement import FirstFileSchema
from pqext.dataset.table.file_request import FileRequest, SchemaStrategy, TableRequest
from pqext.dataset.table.partitions import RemainingFilter
from pqext.dataset.table.unified_schema import Unifier
from pqext.dataset.table.union import Union

T = TypeVar("T")
_NO_FILE = "there is no schema, because none of the files is Parquet"


class ScanPlanner:
    """Planner of a request, which caches file metadata and resolved names for all runs of the request.

    Threads can share a planner. Two threads may compute the same fact twice, with the same result.
    """

    def __init__(self, request: ScanRequest) -> None:
        self.request = request
        self._latest: tuple[FileRequest, FilePlanner] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result, from the first file that is read.

        With several files, all fields are nullable.
        """
        schema = self._unordered_schema()
        return schema.with_metadata(drop_row_ranges(schema.metadata) or None) if self.request.order else schema

    def _unordered_schema(self) -> pa.Schema:
        known = self.known_schema if self.request.rule is None else self._strategy.schema
        if known is None:
            rows = [position for position, part in enumerate(self._remaining_filters) if part.prune_reason is None]
            with closing(self.open_files(Run(), rows or [0])) as files:
                for position, file in files:
                    with ErrorLocation(file):
                        return self.request_file(position, file).schema
            raise CorruptFileError(_NO_FILE)
        return known

    @property
    def known_schema(self) -> pa.Schema | None:
        """The schema of the result; None if the schema depends on a file that has not been opened."""
        form = self.__dict__.get("_strategy")
        return None if form is None else form.schema

    @cached_property
    def name_resolver(self) -> NameResolver:
        """Resolver of dotted names to columns of the request's files."""
        return NameResolver(self.request.files, tuple(self.request.partitions.schema.names), self.request.rule)

    def resolve(self, node: T) -> T:
        """Resolve the names of the result in a condition or a value; see :meth:`ScanRequest.resolve`."""
        return self.request.resolve(node, self.name_resolver)

    @cached_property
    def _strategy(self) -> SchemaStrategy:
        request = self.request
        result = None if request.result is None else tuple(map(self.name_resolver.resolve_column, request.result))
        filter = self.name_resolver.resolve(request.filter)
        row_target = TableRequest(request.sources, result, filter, request.partitions)
        if not isinstance(request.rule, str):
            return FirstFileSchema(row_target) if request.rule is None else Union(row_target, request.rule)
        if not request.files.schemas:
            raise CorruptFileError(_NO_FILE)
        unifier = Unifier(row_target.tops)
        for path, schema in request.files.schemas:
            unifier.add(schema, path)
        return Union(row_target, unifier.schema)

    def plan(self, pages: bool = False, max_indexed: int | None = None, with_reasons: bool = True) -> list[Task]:
        """Plan each file, based only on footers and Bloom filters.

        With ``pages``, the page indexes are read too, as when the scan runs. The ``rows`` of each row group are then
        the rows in pages that may contain a match. Without a limit, the row groups that remain after evaluating
        statistics are evaluated further, file by file, as long as their total number is at most ``max_indexed``. The
        plans of later files are outlines based on footers only. ``with_reasons`` adds complete reasons.
        """
        tasks, retained, row_target = {}, self.sources_to_read(), self.request.row_target
        for position, file in self.open_files(Run(), retained):
            with ErrorLocation(file):
                file_request = self.request_file(position, file)
                file.check_rows()
                of_file = row_target if file_request.is_exact else None
                plans: tuple[RowGroupPlan, ...] = ()
                if max_indexed is not None and row_target is None and file_request.prune_reason is None:
                    with file.hide_indexes():
                        plans = tuple(self.file_planner(file_request, file).outlines(with_reasons))
                    left = [plan.index for plan in plans if plan.prune_reason is None]
                    max_indexed -= len(left)
                    if left and max_indexed >= 0:
                        looked = self.file_planner(file_request, file).row_groups(pages, True, row_groups=left)
                        known = {plan.index: plan for plan in looked}
                        plans = tuple(known.get(plan.index, plan) for plan in plans)
                elif file_request.prune_reason is None:
                    plans = tuple(self.file_planner(file_request, file).row_groups(pages, True, of_file))
                is_outline = max_indexed is not None and max_indexed < 0
                path, crc = source_name(self.request.sources[position]), footer_crc(file)
                tasks[position] = Task(path, plans, file_request.prune_reason, crc, is_outline)
            if row_target is not None and row_target.rows <= 0:
                rest = retained[retained.index(position) + 1 :]
                tasks |= {position: Task(source_name(self.request.sources[position]), (), REACHED) for position in rest}
                break
        return [
            tasks[position] if position in tasks
            else Task(source_name(source), (), part.prune_reason, evidence=part.evidence)
            for position, (source, part) in enumerate(zip(self.request.sources, self._remaining_filters, strict=True))
            if position in tasks or part.prune_reason is not None
        ]

    def complete(self, task: Task, file: ParquetFile) -> Task:
        """Complete the outline ``task`` of ``file``, the request's only file, using page indexes and Bloom filters."""
        if not task.is_outline:
            return task
        with ErrorLocation(file):
            file_request = self.request_file(0, file)
            check_row_groups(task.kept_row_groups, file)
            plans = self.file_planner(file_request, file).row_groups(True, False, row_groups=task.kept_row_groups)
            return replace(task, row_groups=tuple(plans), is_outline=False)

    def split(self, task: Task, file: ParquetFile) -> tuple[list[RowGroupPlan], list[RowGroupPlan]]:
        """Separate the row groups in which all rows are known to match from the row groups that must be read."""
        with ErrorLocation(file):
            file_request = self.request_file(0, file)
            return split_plans(task.row_groups, file, file_request.filter, file_request.is_exact)

    def mistake_warnings(self) -> list[str]:
        """Return warnings about VARIANT paths and boxes that are likely mistakes, according to the first file read."""
        fields, places = checkable_parts(self.name_resolver.resolve(self.request.filter), self.request.result or ())
        retained = self.sources_to_read() if fields or places else []
        with closing(self.request.files.iter_open(retained[:1], is_learning=True)) as files:
            for _, file in files:
                return mistake_warnings(fields, places, file)
        return []

    def open_files(self, run: Run, positions: Sequence[int]) -> Generator[tuple[int, ParquetFile], None, None]:
        """Yield the position and the open file of each source in ``positions``, in order.

        The filter is checked against each file, and ``run`` counts the files.
        """
        at = 0
        summaries = self.request.files.summaries
        with closing(self.request.files.iter_open(positions)) as files:
            while at < len(positions):
                previous_counts = counts_of(self.request.sources[positions[at]])
                started = perf_counter()
                result = next(files, None)
                opened = None if result is None else result[1].source
                run.count_opening(perf_counter() - started, opened, previous_counts)
                if summaries is not None and summaries.usages:
                    run.count_usages(summaries.pop_usages())
                if result is None:
                    return
                position, file = result
                at = positions.index(position, at) + 1
                with ErrorLocation(file), run.track_file(file, previous_counts):
                    self.name_resolver.record_names(file)
                    self._strategy.check_filter(file)
                    yield position, file

    @cached_property
    def partition_values(self) -> pa.RecordBatch:
        """The values of the partition columns, one row for each source."""
        return self.request.partitions.values(self.request.sources)

    @cached_property
    def _remaining_filters(self) -> list[RemainingFilter]:
        """Remaining filter of each source, after evaluation of partition values and data-skipping stores.

        Raises ``UnsupportedError`` if a file contains a column that its folders do not name, but the folders of other
        files do.
        """
        narrowed = self._evaluate_partitions()
        request = self.request
        options = request.files.options
        is_rebased = (options.datetime_rebase_mode, options.int96_rebase_mode) != ("corrected", "corrected")
        is_unindexed = request.skipping is None and request.table_statistics is None
        if is_unindexed or request.filter is None or not options.trust_statistics or is_rebased:
            return narrowed  # stores contain values that were read in the calendar of the files
        cast = request.rule.names if isinstance(request.rule, pa.Schema) else ()
        names = request.partitions.schema.names
        filter = self.name_resolver.resolve(request.filter)
        conditions = stored_value_conjuncts(filter, names, ())
        if request.table_statistics is not None and conditions is not None:
            narrowed = prune(request.table_statistics, narrowed, request.sources, conditions, TABLE_EVIDENCE)
        conditions = stored_value_conjuncts(filter, names, cast, request.rule == "union")
        if request.skipping is not None and conditions is not None:
            narrowed = prune(request.skipping, narrowed, request.sources, conditions, EVIDENCE)
        return narrowed

    def _evaluate_partitions(self) -> list[RemainingFilter]:
        if not self.request.partitions:
            return [RemainingFilter(self.request.filter)] * len(self.request.sources)
        unnamed = self.request.partitions.missing_columns(self.request.sources, self.partition_values)
        for position, file in self.request.files.iter_open([*unnamed]):
            both = unnamed[position].intersection(file.schema.root.child_names)
            if both:
                raise UnsupportedError(
                    f"column {join_names(map(repr, sorted(both)))} is stored in this file, but is a partition column "
                    "of other files; pass partitioning=None, or scan this file separately",
                    feature="partition columns within files", path=file.path,
                )
        filter = self.name_resolver.resolve_partitions(self.request.filter)
        return self.request.partitions.evaluate(filter, self.partition_values)

    def sources_to_read(self) -> list[int]:
        """Return the positions of the sources to read.

        An invalid name in the filter is an error even if no source remains.
        """
        retained = [position for position, part in enumerate(self._remaining_filters) if part.prune_reason is None]
        if not retained and isinstance(self.request.rule, pa.Schema):
            _ = self._strategy  # checks the names
        elif not retained:
            for _ in self.open_files(Run(), [0]):
                pass
        return retained

    def request_file(self, position: int, file: ParquetFile, condition: Expression | None = None) -> FileRequest:
        """Return the request for the file of a source, with an additional ``condition`` on the columns of the file."""
        filter = self.name_resolver.resolve(self._remaining_filters[position].filter)
        both = [part for part in (filter, condition) if part is not None]
        file_request = self._strategy.request_file(position, file, all_of(both) if both else None)
        if file.deleted_rows:
            file_request = replace(file_request, is_exact=False)
        return file_request.without_columns if self.request.is_count else file_request

    def request_count(self, position: int, file: ParquetFile) -> FileRequest:
        """Return the request that counts the matching rows in the file of a source."""
        filter = self.name_resolver.resolve(self._remaining_filters[position].filter)
        return self._strategy.request_count(position, file, filter)

    def prunes_all(self, file_request: FileRequest, file: ParquetFile) -> bool:
        """Return whether the footer proves that no row of a file matches. Always False for a single source."""
        if file_request.filter is None or len(self.request.sources) == 1 or file.options.skips_corrupt:
            return False
        file.check_rows()
        return self.file_planner(file_request, file).prunes_all()

    def file_planner(self, file_request: FileRequest, file: ParquetFile) -> FilePlanner:
        """Return the planner of a file. Files with the same schema share the results derived from the schema."""
        known = self._latest
        if known is not None and known[0] is file_request and known[1].facts is file:
            return known[1]
        if known is not None and known[0] is file_request and known[1].can_share(file, file.options):
            planner = known[1].copy_for_file(file)
            self._latest = file_request, planner  # including what has been derived since
            return planner
        planner = FilePlanner(file, file.options, file_request.columns, file_request.computed, file_request.filter)
        if len(self.request.sources) > 1:
            self._latest = file_request, planner
        return planner
