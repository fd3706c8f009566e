"""Read the rows of a scan in the order of sort keys.

With a limit of n rows, row groups are read in the order of their bounds, each with the condition that its rows precede
the n-th row so far. Statistics, page indexes and late materialisation then skip rows that cannot be among the first n
rows, by the same proofs as for any other condition. The bounds only determine what is read first. Without a limit, all
rows are sorted in memory.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import MemoryLimitError
from pqext.core.base.usage import Budget
from pqext.core.format.predicate import Bounds
from pqext.core.read.reader import ParquetFile
from pqext.core.read.row_group import RowGroup
from pqext.dataset.execution.metrics import Run
from pqext.dataset.execution.top_rows import OrderKey, TopRows, check_order, key_values
from pqext.dataset.expressions import (
    Base,
    Column,
    Comparison,
    Expression,
    IsNotNull,
    Spatial,
    Value,
    all_of,
    bases,
    operand_column,
)
from pqext.dataset.files.file_set import ErrorLocation
from pqext.dataset.planning.conjuncts import conjuncts_of
from pqext.dataset.planning.planner import FilePlanner
from pqext.dataset.planning.projection import ComputedColumn, input_columns, leaf_of
from pqext.dataset.pruning.binding import bind, find, operand_type
from pqext.dataset.pruning.bounds import UNKNOWN, operand_bounds
from pqext.dataset.pruning.implied_predicates import distance_arguments
from pqext.dataset.pruning.search_radius import distance_to_group, search_radii
from pqext.dataset.scan_executor import ScanExecutor
from pqext.dataset.scan_planner import ScanPlanner
from pqext.dataset.scan_request import ScanRequest
from pqext.dataset.table.file_request import FileRequest
from pqext.dataset.table.partitions import RemainingFilter

_ROWS = 1 << 16
"""Batch size of sorted reads."""
_ROUNDING = 1e-9
"""Upper bound of the relative difference between distances that are computed in two ways."""
_FILE = 1 << 32
"""Positions per file: row groups of a file are numbered from a multiple of this."""


class OrderedExecutor(ScanExecutor):
    """Executor of a sorted request; rows with equal keys keep the order of files and rows."""

    def batches(self, batch_rows: int) -> Generator[tuple[pa.RecordBatch, int], None, None]:
        """Yield sorted batches.

        Holds all rows in memory or, with a limit, the first offset + limit rows and a buffer of unmerged rows.
        """
        return self.run.time_batches(_ordered_rows(self.planner, self.run, batch_rows))

    def count(self) -> int:
        """Count the rows of the request. The rows are not sorted."""
        unordered = ScanExecutor(ScanPlanner(replace(self.request, order=())))
        unordered.run = self.run
        return unordered.count()


def executor_of(planner: ScanPlanner) -> ScanExecutor:
    """Return the executor of a planned request: an :class:`OrderedExecutor` if the request has an order."""
    return OrderedExecutor(planner) if planner.request.order else ScanExecutor(planner)


def _ordered_rows(planner: ScanPlanner, run: Run, batch_rows: int) -> Generator[tuple[pa.RecordBatch, int], None, None]:
    """Yield the sorted rows in batches, each with the total size of the files opened."""
    request = planner.request
    limit = None if request.limit is None else request.offset + request.limit
    if limit == 0:
        return
    keys = [replace(key, value=planner.name_resolver.resolve(key.value)) for key in request.order]
    unordered, values = _add_keys(request, keys)
    counts_rows = any(operand_column(base).path[0] == request.partitions.rows for base in bases(keys[0].value))
    read = _iter_in_file_order if limit is None or counts_rows else _iter_by_bounds
    for radius in _search_radii(unordered, run, keys[0], limit):
        narrowed = unordered if radius is None else _restrict_distance(unordered, keys[0].value, radius)
        executor = ScanExecutor(ScanPlanner(narrowed))
        executor.run = run
        top, opened = TopRows(keys, limit), 0
        with closing(read(executor, keys[0], top)) as batches:
            for batch, position, size in batches:
                opened = size
                top.add(batch, [key_values(value, batch) for value in values], position)
                _check_memory(request, opened, 2 * top.held if limit is None else top.held)
        if radius is not None and top.is_below(radius * (1 - _ROUNDING)):
            break
    columns = [*range(len(planner.schema))]
    for batch in top.iter_sorted():
        batch = batch.slice(request.offset).select(columns).rename_columns(planner.schema.names)
        batch = batch.replace_schema_metadata(planner.schema.metadata)
        run.rows += batch.num_rows
        for start in range(0, batch.num_rows, batch_rows):
            yield batch.slice(start, batch_rows), opened


def _search_radii(request: ScanRequest, run: Run, key: OrderKey, limit: int | None) -> Iterator[float | None]:
    """Yield the search radii for a request of the nearest rows, in increasing order, and None as the last radius.

    If ``limit`` rows lie within a distance, they are the nearest of all. The distances are estimated from the bounding
    boxes and row counts of the nearest row groups. Page indexes then skip all pages that are farther away.
    """
    arguments = distance_arguments(key.value)
    if arguments is not None and limit is not None and not key.descending and not key.nulls_first:
        executor = ScanExecutor(ScanPlanner(request))
        executor.run = run
        groups = [group for _, file, _ in executor.files() for group in file.row_groups]
        yield from search_radii(*arguments, groups, limit)
    yield None


def _restrict_distance(request: ScanRequest, distance: Value, radius: float) -> ScanRequest:
    """Return the request with the additional condition that ``distance`` is at most ``radius``.

    Conditions on greater maximum distances are removed from the filter, because they follow from it.
    """
    arguments = distance_arguments(distance)
    assert arguments is not None
    others = [] if request.filter is None else [
        part for part in conjuncts_of(request.filter) if not _is_implied(part, distance, radius)
    ]
    return replace(request, filter=all_of([*others, Spatial(arguments[0], "dwithin", arguments[1], radius)]))


def _is_implied(condition: Expression, distance: Value, radius: float) -> bool:
    """Return whether every row with ``distance`` below ``radius`` satisfies ``condition``."""
    if isinstance(condition, IsNotNull):
        return bool(condition.operand.equals(distance))
    if not isinstance(condition, Comparison) or condition.operator not in ("<", "<="):
        return False
    maximum = condition.value
    return condition.operand.equals(distance) and isinstance(maximum, int | float | Decimal) and maximum > radius


def _check_memory(request: ScanRequest, open_bytes: int, size: int) -> None:
    try:
        Budget(request.limits, open_bytes).add(size)
    except MemoryLimitError as error:
        raise MemoryLimitError(
            f"{error}; order_by keeps all rows of its result in memory: call limit(n) after it or select fewer columns"
        ) from None


def _add_keys(request: ScanRequest, keys: Sequence[OrderKey]) -> tuple[ScanRequest, list[Value]]:
    """Remove order and limit from a request and add the sort keys as columns. Return the request and the key values."""
    result = None if request.result is None else [*request.result]
    values: list[Value] = []
    for number, key in enumerate(keys):
        value = key.value
        tops = {operand_column(base).path[0] for base in bases(value)}
        if result is not None and not tops <= {column for column in result if isinstance(column, str)}:
            if isinstance(value, Column) and len(value.path) == 1:
                result = [*_hide_name(result, value.path[0]), value.path[0]]
            elif not tops.isdisjoint(request.partitions.schema.names):
                names, columns_of_files, value = input_columns(
                    value, request.partitions.schema.names, f"_pqext_order_{number}_"
                )
                for name in names:
                    result = _hide_name(result, name)
                result += [*names, *columns_of_files]
            else:
                result.append(ComputedColumn(f"_pqext_order_{number}", value))
                value = Column((f"_pqext_order_{number}",))
        values.append(value)
    columns = None if result is None else tuple(dict.fromkeys(result))
    return replace(request, order=(), limit=None, offset=0, result=columns), values


def _hide_name(result: Sequence[str | ComputedColumn], name: str) -> list[str | ComputedColumn]:
    """Rename the computed column ``name``, so that a stored column with the same name can also be read."""
    return [
        replace(column, name=f"_pqext_result_{at}") if isinstance(column, ComputedColumn) and column.name == name
        else column
        for at, column in enumerate(result)
    ]


def _iter_in_file_order(
    executor: ScanExecutor, key: OrderKey, top: TopRows
) -> Generator[tuple[pa.RecordBatch, int, int], None, None]:
    """Yield all rows in batches, each with the position of its file and the total size of the files opened."""
    opened = 0
    for file_position, file, file_request in executor.files():
        _check_type(key, executor.request, file)
        opened += file.source.size
        with closing(executor.file_batches(file_position, file, file_request, _ROWS)) as batches:
            for batch in batches:
                yield batch, file_position * _FILE, opened


def _iter_by_bounds(
    executor: ScanExecutor, key: OrderKey, top: TopRows
) -> Generator[tuple[pa.RecordBatch, int, int], None, None]:
    """Yield batches of rows that may be among the first rows. Row groups are read in the order of their bounds.

    Each batch has the position of its row group and the total size of the files opened.
    """
    planner, run = executor.planner, executor.run
    opened = 0
    for file_position in _files_by_bounds(executor, key):
        condition = top.preceding_condition(file_position * _FILE)
        if condition is False or _remaining_filter(planner, file_position, condition).prune_reason is not None:
            continue
        for _, file in planner.open_files(run, [file_position]):
            _check_type(key, executor.request, file)
            opened += file.source.size
            file.check_rows()
            requests: dict[int, tuple[FileRequest, FilePlanner, Expression | bool]] = {}
            for index in _best_first(key, [(group.index, *_best_bound(key, group)) for group in file.row_groups]):
                position = file_position * _FILE + index
                admitted = top.preceding_condition(position)
                if admitted is False:
                    continue
                if id(admitted) not in requests:
                    with ErrorLocation(file), run.planning():
                        file_request = _request_file(planner, file_position, file, admitted)
                        requests[id(admitted)] = file_request, planner.file_planner(file_request, file), admitted
                file_request, of_file, _ = requests[id(admitted)]
                if file_request.prune_reason is not None:
                    continue
                plans = of_file.row_groups(True, False, row_groups=[index])
                batches = executor.file_batches(file_position, file, file_request, _ROWS, plans=plans)
                with ErrorLocation(file), closing(batches):
                    for batch in batches:
                        yield batch, position, opened
                top.merge_pending()


def _request_file(
    planner: ScanPlanner, file_position: int, file: ParquetFile, row_condition: Expression | bool
) -> FileRequest:
    """Return the request for a file with the additional condition ``row_condition``.

    The condition is omitted if the file's columns do not support it.
    """
    try:
        filter = _remaining_filter(planner, file_position, row_condition).filter
        file_request = planner.request_file(file_position, file, filter)
        if file_request.filter is not None:
            bind(file_request.filter, file.schema)
    except TypeError:  # the values have an order, but cannot be compared with literals
        file_request = planner.request_file(file_position, file)
    return file_request


def _remaining_filter(planner: ScanPlanner, file_position: int, row_condition: Expression | bool) -> RemainingFilter:
    """Return the filter that remains of ``row_condition`` after evaluation on the partition values of a file."""
    if isinstance(row_condition, bool) or not planner.request.partitions:
        return RemainingFilter(None if isinstance(row_condition, bool) else row_condition)
    return planner.request.partitions.evaluate(row_condition, planner.partition_values.slice(file_position, 1))[0]


def _files_by_bounds(executor: ScanExecutor, key: OrderKey) -> list[int]:
    """Return the positions of the files to read, in the order of the best key value that each file can contain.

    All files are opened, unless partition values determine the order.
    """
    planner = executor.planner
    rows = planner.sources_to_read()
    if len(rows) < 2:
        return rows
    results: list[tuple[int, Any, bool]] = []
    if isinstance(key.value, Column) and key.value.path[0] in planner.request.partitions.schema.names:
        values = planner.partition_values.column(key.value.path[0]).to_pylist()
        return _best_first(key, [(number, values[number], values[number] is None) for number in rows])
    for file_position, file, _ in executor.files():
        groups = [(number, *_best_bound(key, group)) for number, group in enumerate(file.row_groups)]
        best = _best_first(key, groups)[:1]
        results += [(file_position, groups[number][1], groups[number][2]) for number in best]
    return _best_first(key, results)


def _best_bound(key: OrderKey, group: RowGroup) -> tuple[Any, bool]:
    """Return the best key value in a row group, or None if it is unknown, and whether null keys are present."""
    arguments = distance_arguments(key.value)
    if arguments is not None:
        return distance_to_group(*arguments, group), False

    def bounds_of(base: Base) -> Bounds:
        node = find(group.schema, base) if isinstance(base, Column) else leaf_of(base, group)
        if node is None or not node.is_leaf or node.max_repetition_level:
            return UNKNOWN
        return group.chunk(node).bounds()

    try:
        bounds = operand_bounds(key.value, lambda base: operand_type(base, group.schema), bounds_of)
        nulls = bounds_of(key.value).null_count if isinstance(key.value, Column) else None
    except (TypeError, ValueError):  # the file lacks the column, or its values are in folder names
        return None, False
    return bounds.maximum if key.descending else bounds.minimum, bool(nulls) or bounds.all_null


def _best_first(key: OrderKey, items: Sequence[tuple[int, Any, bool]]) -> list[int]:
    """Return the numbers of ``items``, sorted by best key value.

    An item is a number, its best value, None if unknown, and whether it contains nulls.
    """
    known = [item for item in items if item[1] is not None]
    unknown = [item for item in items if item[1] is None]
    with suppress(TypeError):  # the types of a column differ between files
        known.sort(key=lambda item: item[1], reverse=key.descending)
    ordered = [*known, *unknown]
    if key.nulls_first:
        ordered.sort(key=lambda item: not item[2])
    return [item[0] for item in ordered]


def _check_type(key: OrderKey, request: ScanRequest, file: ParquetFile) -> None:
    """Raise ``TypeError`` if the values of a file's column have no order."""
    names = request.partitions.schema.names
    if request.rule is None and not any(operand_column(base).path[0] in names for base in bases(key.value)):
        check_order(key.value, operand_type(key.value, file.schema))
