"""Rows of a scan in the order of keys.

With a limit of n rows the row groups are read in the order of their bounds, and each by the condition that its rows
come before the n-th row so far. So statistics, page indexes and late materialisation skip what cannot be among the
first n rows, by the same proofs as for any other condition, and bounds only choose what is read first. Without a limit
all rows are sorted in memory.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa

from pqext.core.base.budget import Budget
from pqext.core.base.errors import MemoryLimitError
from pqext.core.format.predicate import Bounds
from pqext.core.read.reader import ParquetFile
from pqext.core.read.row_group import RowGroup
from pqext.dataset.execution.metrics import Run
from pqext.dataset.execution.top_rows import OrderKey, TopRows, check_order, key_values
from pqext.dataset.expressions import Base, Column, Expression, Value, bases, operand_column
from pqext.dataset.expressions.timezones import in_timezone
from pqext.dataset.files.file_set import located
from pqext.dataset.files_query import FilesQuery
from pqext.dataset.planning.planner import RowsWanted
from pqext.dataset.planning.projection import Computed, leaf_of
from pqext.dataset.pruning.binding import bind, find, type_in
from pqext.dataset.pruning.intervals import UNKNOWN, interval
from pqext.dataset.table.file_request import Asked
from pqext.dataset.table.partitions import Narrowed

_ROWS = 1 << 16
"""Rows that are read together."""
_FILE = 1 << 32
"""Positions of a file: the row groups of a file count on from its multiple of this."""


@dataclass(eq=False)
class OrderedQuery(FilesQuery):
    """The rows of files by the keys of an order; those with equal keys in the order of files and rows."""

    order: tuple[OrderKey, ...] = ()

    @classmethod
    def of(cls, query: FilesQuery, order: tuple[OrderKey, ...]) -> OrderedQuery:
        """The rows of ``query`` in another order."""
        return cls(**_values_of(query), order=order)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.order = in_timezone(self.order, self.timezone)

    @property
    def _wanted(self) -> RowsWanted | None:
        return None  # the first rows may be in any row group

    def found(self, batch_rows: int) -> Generator[tuple[pa.RecordBatch, int], None, None]:
        """As that of the base; without a limit all rows are held, with one as many as it has."""
        run = self._start()
        return run.timed(_ordered_rows(self, run, batch_rows))

    def count(self) -> int:
        """The number of rows, whatever their order."""
        unordered = FilesQuery(**_values_of(self))
        number = unordered.count()
        self._run, self._was_run = unordered._run, True
        return number


def _values_of(query: FilesQuery) -> dict[str, Any]:
    return {field.name: getattr(query, field.name) for field in fields(FilesQuery)}


def _ordered_rows(query: OrderedQuery, run: Run, batch_rows: int) -> Generator[tuple[pa.RecordBatch, int], None, None]:
    """The rows of ``query`` in its order, in batches, each with the bytes of the files opened for it."""
    limit = None if query.limit is None else query.offset + query.limit
    if limit == 0:
        return
    keys = [replace(key, value=query.exact.of(key.value)) for key in query.order]
    reading, values = _with_keys(query, keys)
    top, opened = TopRows(keys, limit), 0
    counts_rows = any(operand_column(base).path[0] == query.partitions.rows for base in bases(keys[0].value))
    read = _in_file_order if limit is None or counts_rows else _by_bounds
    with closing(read(reading, run, keys[0], top)) as batches:
        for batch, position, size in batches:
            opened = size
            top.add(batch, [key_values(value, batch) for value in values], position)
            _check_memory(query, opened, 2 * top.held if limit is None else top.held)
    columns = [*range(len(query.schema))]
    for batch in top.ordered():
        batch = batch.slice(query.offset).select(columns)
        run.rows += batch.num_rows
        for start in range(0, batch.num_rows, batch_rows):
            yield batch.slice(start, batch_rows), opened


def _check_memory(query: FilesQuery, opened: int, size: int) -> None:
    try:
        Budget(query.limits, opened).add(size)
    except MemoryLimitError as error:
        raise MemoryLimitError(
            f"{error}; order_by holds the rows of its result in memory: call limit(n) after it or select fewer columns"
        ) from None


def _with_keys(query: OrderedQuery, keys: Sequence[OrderKey]) -> tuple[FilesQuery, list[Value]]:
    """The query without order and limit, whose result ends with what the keys need, and the keys' values in it."""
    result = None if query.result is None else [*query.result]
    values: list[Value] = []
    for number, key in enumerate(keys):
        value = key.value
        tops = {operand_column(base).path[0] for base in bases(value)}
        if result is not None and not tops <= {column for column in result if isinstance(column, str)}:
            if isinstance(value, Column) and len(value.path) == 1:
                result.append(value.path[0])
            else:
                result.append(Computed(f"_pqext_order_{number}", value))
                value = Column((f"_pqext_order_{number}",))
        values.append(value)
    columns = None if result is None else tuple(dict.fromkeys(result))
    return FilesQuery(**_values_of(query) | {"limit": None, "offset": 0, "result": columns}), values


def _in_file_order(
    query: FilesQuery, run: Run, key: OrderKey, top: TopRows
) -> Generator[tuple[pa.RecordBatch, int, int], None, None]:
    """All rows, with their positions and the bytes of the files opened for them."""
    opened = 0
    for row, file, asked, _ in query.asked(run):
        _check_type(key, query, file)
        opened += file.source.size
        with closing(query.given(run, row, file, asked, _ROWS)) as batches:
            for batch in batches:
                yield batch, row * _FILE, opened


def _by_bounds(
    query: FilesQuery, run: Run, key: OrderKey, top: TopRows
) -> Generator[tuple[pa.RecordBatch, int, int], None, None]:
    """The rows that may be among the first, those of the best bounds first; with positions and bytes opened."""
    opened = 0
    for row in _files(query, run, key):
        if top.admits(row * _FILE) is False or _condition(query, row, top.admits(row * _FILE)).refusal is not None:
            continue
        for _, file in query.reading(run, [row]):
            _check_type(key, query, file)
            opened += file.source.size
            file.check_rows()
            admitted: Expression | bool | None = None
            for index in _in_order(key, [(group.index, *_known(key, query, group)) for group in file.row_groups]):
                position = row * _FILE + index
                before, admitted = admitted, top.admits(position)
                if admitted is False:
                    continue
                if admitted is not before:
                    with located(file), run.planning():
                        asked = _ask(query, row, file, admitted)
                        planner = query.planner(asked, file)
                if asked.refusal is not None:
                    continue
                plans = planner.row_groups(True, False, chosen=[index])
                with located(file), closing(query.given(run, row, file, asked, _ROWS, plans=plans)) as batches:
                    for batch in batches:
                        yield batch, position, opened
                top.settle()


def _ask(query: FilesQuery, row: int, file: ParquetFile, admitted: Expression | bool) -> Asked:
    """What a file is asked for, by the condition on rows that may be among the first, if the file can answer it."""
    try:
        asked = query.ask(row, file, _condition(query, row, admitted).filter)
        if asked.filter is not None:
            bind(asked.filter, file.schema)
    except TypeError:  # values that have an order, but compare with no literal
        asked = query.ask(row, file)
    return asked


def _condition(query: FilesQuery, row: int, admitted: Expression | bool) -> Narrowed:
    """What the folders of a file leave of the condition on rows that may be among the first."""
    if isinstance(admitted, bool) or not query.partitions:
        return Narrowed(None if isinstance(admitted, bool) else admitted)
    return query.partitions.narrow(admitted, query.folder_values.slice(row, 1))[0]


def _files(query: FilesQuery, run: Run, key: OrderKey) -> list[int]:
    """The files that are read, by their best bounds, for which all are opened unless folders state them."""
    rows = query.kept()
    if len(rows) < 2:
        return rows
    found: list[tuple[int, Any, bool]] = []
    if isinstance(key.value, Column) and key.value.path[0] in query.partitions.schema.names:
        values = query.folder_values.column(key.value.path[0]).to_pylist()
        return _in_order(key, [(row, values[row], values[row] is None) for row in rows])
    for row, file, *_ in query.asked(run):
        groups = [(number, *_known(key, query, group)) for number, group in enumerate(file.row_groups)]
        best = _in_order(key, groups)[:1]
        found += [(row, groups[number][1], groups[number][2]) for number in best]
    return _in_order(key, found)


def _known(key: OrderKey, query: FilesQuery, group: RowGroup) -> tuple[Any, bool]:
    """The best value that a key may have in a row group, None if it is unknown, and whether the group has nulls."""

    def known(base: Base) -> Bounds:
        node = find(group.schema, base) if isinstance(base, Column) else leaf_of(base, group)
        if node is None or not node.is_leaf or node.max_repetition_level:
            return UNKNOWN
        return group.chunk(node).bounds()

    try:
        bounds = interval(key.value, lambda base: type_in(base, group.schema), known)
        nulls = known(key.value).null_count if isinstance(key.value, Column) else None
    except (TypeError, ValueError):  # of a file that lacks the column, or has it in the names of folders
        return None, False
    return bounds.maximum if key.descending else bounds.minimum, bool(nulls) or bounds.all_null


def _in_order(key: OrderKey, items: Sequence[tuple[int, Any, bool]]) -> list[int]:
    """The items, each with its best value if that is known and whether it has nulls, the most promising first."""
    known = [item for item in items if item[1] is not None]
    unknown = [item for item in items if item[1] is None]
    with suppress(TypeError):  # files with columns of different types
        known.sort(key=lambda item: item[1], reverse=key.descending)
    ordered = [*known, *unknown]
    if key.nulls_first:
        ordered.sort(key=lambda item: not item[2])
    return [item[0] for item in ordered]


def _check_type(key: OrderKey, query: FilesQuery, file: ParquetFile) -> None:
    """Raise ``TypeError`` if the values of a column of a file have no order."""
    names = query.partitions.schema.names
    if query.rule is None and not any(operand_column(base).path[0] in names for base in bases(key.value)):
        check_order(key.value, type_in(key.value, file.schema))
