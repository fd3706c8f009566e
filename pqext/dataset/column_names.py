"""Resolve the dotted names in a scan and its filter to columns as soon as the schema is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast

import pyarrow as pa

from pqext.core.base.suggestions import closest_name, join_names, unknown_column_message
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import SchemaNode
from pqext.dataset.execution.top_rows import OrderKey
from pqext.dataset.expressions import Column, Value, bases, col, operand_column
from pqext.dataset.expressions.mistakes import field_error
from pqext.dataset.expressions.visitors import dotted_columns, exact, replace_columns
from pqext.dataset.files.file_set import FileSet
from pqext.dataset.planning.projection import ComputedColumn, parse_columns

T = TypeVar("T")
Result = tuple["str | ComputedColumn", ...]
_NOT_A_NAME = re.compile(r"[^\w.]")
"""Characters that a name without expressions, commas and blanks lacks."""


@dataclass
class ExactNames:
    """Resolver of dotted names to partition columns and file columns.

    ``rule`` defines how the schemas of the files are unified.
    """

    files: FileSet
    folders: tuple[str, ...]
    rule: Literal["union"] | pa.Schema | None
    _names: Container[str] | None = None
    _known: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """Resolved conditions and values, by the id of the original object."""

    def resolve(self, node: T) -> T:
        """Return a condition or a value with its dotted names resolved to columns."""
        known = self._known.get(id(node))
        if known is None:
            made = exact(node, self.names) if dotted_columns(node) else node
            known = self._known[id(node)] = node, made
        return cast(T, known[1])

    def resolve_partitions(self, node: T) -> T:
        """Resolve as :meth:`resolve`, but open a file only if a dotted name may refer to a partition column."""
        made = exact(node, self.folders)
        is_unclear = any(column.path[0] in self.folders for column in dotted_columns(made))
        return self.resolve(node) if is_unclear else made

    def resolve_column(self, column: str | ComputedColumn) -> str | ComputedColumn:
        """Resolve the dotted names in a result column; a plain name is returned unchanged."""
        return replace(column, field=self.resolve(column.field)) if isinstance(column, ComputedColumn) else column

    def record_names(self, file: ParquetFile) -> None:
        """Record the column names of the first file. They apply to all files unless schemas are unified or passed."""
        if self._names is None and self.rule is None:
            self._names = _FileNames(self.folders, file.schema.root)

    @property
    def names(self) -> Container[str]:
        """The names of all partition columns and file columns."""
        if self._names is None:
            self._names = self._read_names()
        return self._names

    def _read_names(self) -> Container[str]:
        if isinstance(self.rule, pa.Schema):
            return frozenset((*self.folders, *self.rule.names))
        if self.rule == "union":
            return frozenset((*self.folders, *(name for _, schema in self.files.schemas for name in schema.names)))
        with closing(self.files.iter_open(range(len(self.files.sources)), is_learning=True)) as files:
            for _, file in files:
                return _FileNames(self.folders, file.schema.root)
        return self.folders


@dataclass(frozen=True)
class _FileNames:
    """Names of the partition columns and of a file's columns. Names in wide schemas are looked up only when tested."""

    folders: tuple[str, ...]
    root: SchemaNode

    def __contains__(self, name: object) -> bool:
        return name in self.folders or name in self.root


def expand_columns(columns: Result, schema: Callable[[], pa.Schema]) -> Result:
    """Expand each string that is not a column or field name into the columns that a selection parses from it.

    ``schema`` returns the schema that has the names. It is only called if there is text other than a plain name. Text
    that cannot be parsed but resembles a name is returned unchanged. Raises ``ValueError`` for other invalid text.
    """
    if not any(isinstance(column, str) and _NOT_A_NAME.search(column) for column in columns):
        return columns
    from pqext.dataset.notations.column_text import dotted_names, selection

    known = schema()
    fields = dotted_names(known)
    results: list[Any] = []
    for column in columns:
        top, _, path = column.partition(".") if isinstance(column, str) else ("", "", "")
        is_name = column in fields or (top in known.names and not _NOT_A_NAME.search(path))
        if not isinstance(column, str) or is_name or not _NOT_A_NAME.search(column):
            results.append(column)
            continue
        try:
            results += selection(column, lambda: known.names, lambda: fields)
        except ValueError:
            if top not in known.names and closest_name(column, sorted(fields)) is None:
                raise
            results.append(column)
    return parse_columns(results)


def restrict_columns(previous_result: Result | None, selection: Result, resolve: Callable[[Value], Value]) -> Result:
    """Restrict the result columns ``previous_result`` to ``selection``; None represents all columns of the files.

    A name selects all parts of its column that remain, and a path selects the field within a column. ``resolve``
    resolves the names in values of the selection. Raises ``ValueError`` if an earlier selection excluded a name, or
    fields of a struct that a value needs.
    """
    if previous_result is None:
        return selection
    names = [known for known in previous_result if isinstance(known, str)]
    results: list[str | ComputedColumn] = []
    for item in selection:
        if isinstance(item, ComputedColumn):
            for base in bases(item.field):
                _check_fields(".".join(operand_column(base).path), names)
            results.append(replace(item, field=resolve(item.field)))
            continue
        whole = [known for known in previous_result if item == (known if isinstance(known, str) else known.name)]
        parts = [known for known in names if known.startswith(item + ".")]
        above = [item] if any(item.startswith(known + ".") for known in names) else []
        if not (whole or parts or above):
            every = [known if isinstance(known, str) else known.name for known in previous_result]
            message = unknown_column_message(item, every).replace("the file has", "the scan has")
            is_field = item.partition(".")[0] in every
            advice = f"; for a field of a computed column, select col({item!r})" if is_field else ""
            raise ValueError(message + advice)
        results += whole or above or parts
    return tuple(dict.fromkeys(results))


def _check_fields(path: str, names: Sequence[str]) -> None:
    """Raise ``ValueError`` if only fields of the struct at a dotted path are among the selected ``names``."""
    fields = [name for name in names if name.startswith(f"{path}.")]
    if fields and path not in names:
        raise ValueError(f"only {join_names(fields)} of {path} are selected: name these fields, or select {path} first")


def substitute_computed(
    expression: T, computed_columns: Sequence[ComputedColumn], stored_names: Container[str] = ()
) -> T:
    """Replace references to ``computed_columns`` in a condition or value with the values of these columns.

    A dotted name that is one of ``stored_names``, the stored columns of the result, is not a field of a computed
    column. Raises ``ValueError`` or ``TypeError`` for a field of a computed column that has no fields.
    """
    if not computed_columns:
        return expression
    known = {item.name: item.field for item in computed_columns}

    def replacement(column: Column) -> Value:
        if column.dotted > 1 and ".".join(column.path[: column.dotted]) in stored_names:
            return column
        column = column.exact(known)
        value, fields = known.get(column.path[0]), column.path[1:]
        if value is None:
            return column
        if not fields:
            return value
        if isinstance(value, Column):  # a struct under another name
            return Column((*value.path, *fields), column.place, value.dotted)
        raise field_error(value, column)

    made: T = replace_columns(expression, replacement)
    return made


def order_keys(
    columns: Sequence[Any], descending: bool | Sequence[bool], nulls_first: bool | Sequence[bool],
    resolve: Callable[[Value], Value],
) -> tuple[OrderKey, ...]:
    """Return the sort keys for ``columns``, which are names or values. ``resolve`` resolves the names of the result.

    Raises ``TypeError`` if an argument is not a column, and ``ValueError`` if the numbers of flags and columns differ.
    """
    if not columns:
        raise TypeError("order_by requires at least one column, such as 'price' or pqext.col('price')")
    flags = []
    for name, choice in (("descending", descending), ("nulls_first", nulls_first)):
        choices = [choice] * len(columns) if isinstance(choice, bool) else [*choice]
        if not all(isinstance(item, bool) for item in choices):
            raise TypeError(f"{name} must be a bool or a list with a bool for each column, not {choice!r}")
        if len(choices) != len(columns):
            message = f"{name} has {len(choices)} flags for {len(columns)} columns"
            raise ValueError(f"{message}: pass a bool for each column, or one bool")
        flags.append(choices)
    keys = []
    for column, is_descending, is_first in zip(columns, *flags, strict=True):
        value = col(column) if isinstance(column, str) else column
        if not isinstance(value, Value):
            raise TypeError(f"order_by accepts column names and values such as pqext.col('a') * 2, not {column!r}")
        keys.append(OrderKey(resolve(value), is_descending, is_first))
    return tuple(keys)
