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
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.dataset.execution.top_rows import OrderKey
from pqext.dataset.expressions import Column, Value, VariantField, bases, col, operand_column
from pqext.dataset.expressions.mistakes import field_error
from pqext.dataset.expressions.type_inference import UNTYPED
from pqext.dataset.expressions.visitors import dotted_columns, replace_columns, resolve_dotted_names
from pqext.dataset.files.file_set import FileSet
from pqext.dataset.planning.projection import ComputedColumn, parse_columns
from pqext.dataset.table.union import empty_file

T = TypeVar("T")
Result = tuple["str | ComputedColumn", ...]
_NOT_A_NAME = re.compile(r"[^\w.]")
"""Characters that a name without expressions, commas and blanks lacks."""


@dataclass
class NameResolver:
    """Resolver of dotted names to partition columns and file columns.

    ``rule`` defines how the schemas of the files are unified.
    """

    files: FileSet
    folders: tuple[str, ...]
    rule: Literal["union"] | pa.Schema | None
    _names: Container[str] | None = None
    _schemas: tuple[Schema, ...] | None = None
    _known: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """Resolved conditions and values, by the id of the original object."""

    def resolve(self, node: T) -> T:
        """Resolve the dotted names in a condition or a value to columns."""
        known = self._known.get(id(node))
        if known is None:
            made = resolve_dotted_names(node, self.names) if dotted_columns(node) else node
            known = self._known[id(node)] = node, made
        return cast(T, known[1])

    def resolve_partitions(self, node: T) -> T:
        """Resolve names like :meth:`resolve`, but open a file only if a dotted name may refer to a partition column."""
        made = resolve_dotted_names(node, self.folders)
        is_unclear = any(column.path[0] in self.folders for column in dotted_columns(made))
        return self.resolve(node) if is_unclear else made

    def resolve_column(self, column: str | ComputedColumn) -> str | ComputedColumn:
        """Resolve the dotted names in a result column; a plain name is returned unchanged."""
        return replace(column, field=self.resolve(column.field)) if isinstance(column, ComputedColumn) else column

    def record_names(self, file: ParquetFile) -> None:
        """Record the column names of the first file, unless the schema is unified or passed as an argument."""
        if self._names is None and self.rule is None:
            self._names, self._schemas = _FileNames(self.folders, file.schema.root), (file.schema,)

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
                self.record_names(file)
                return _FileNames(self.folders, file.schema.root)
        return self.folders

    @property
    def schemas(self) -> tuple[Schema, ...]:
        """The schemas of the files, without partition columns. There is one unless different schemas are unified."""
        if self._schemas is None:
            if self.rule is None:
                _ = self.names  # records the schema
            else:
                known = [self.rule] if isinstance(self.rule, pa.Schema) else [item for _, item in self.files.schemas]
                self._schemas = tuple(empty_file(schema).schema for schema in known)
        return self._schemas or ()

    def find(self, column: Column) -> list[SchemaNode]:
        """Return the schema nodes of a column, from each schema that contains the column."""
        path = column.resolve_name(self.names).path
        return [node for schema in self.schemas if (node := schema.find(path)) is not None]

    def is_within(self, inner: str, outer: str | Sequence[str]) -> bool:
        """Return whether ``inner``, a dotted path, is a field at any depth of the struct ``outer``.

        ``outer`` is a dotted path or a sequence of names. A path that no file has is compared as text, because its
        error is raised when the scan runs.
        """
        if not inner.startswith(f"{outer if isinstance(outer, str) else '.'.join(outer)}."):
            return False
        nodes = [(schema.find(inner), schema.find(outer)) for schema in self.schemas]
        paths = [(node.path, struct.path) for node, struct in nodes if node is not None and struct is not None]
        return any(path[: len(top)] == top for path, top in paths) if paths else inner not in self.names


@dataclass(frozen=True)
class _FileNames:
    """Container of the names of partition columns and file columns, which looks names up without listing all names."""

    folders: tuple[str, ...]
    root: SchemaNode

    def __contains__(self, name: object) -> bool:
        return name in self.folders or name in self.root


def expand_columns(columns: Result, schema: Callable[[], pa.Schema]) -> Result:
    """Replace strings in ``columns`` that are selections, such as ``a, b * 2 AS c``, with the selected columns.

    Names of columns and fields are returned unchanged, as is text that cannot be parsed but resembles a name. Raises
    ``ValueError`` for other invalid text. ``schema`` returns the schema of the names. It is called only if a string is
    not a plain name.
    """
    if not any(isinstance(column, str) and _NOT_A_NAME.search(column) for column in columns):
        return columns
    from pqext.dataset.notations.column_text import dotted_names, parse_selection

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
            results += parse_selection(column, lambda: known.names, lambda: fields)
        except ValueError:
            if top not in known.names and closest_name(column, sorted(fields)) is None:
                raise
            results.append(column)
    return parse_columns(results)


def restrict_columns(
    previous_result: Result | None, selection: Result, resolve: Callable[[Value], Value], names: NameResolver
) -> Result:
    """Return the columns of ``previous_result`` that ``selection`` selects. None represents all columns of the files.

    A name selects those fields of its column that are in the previous result; a dotted path selects a single field.
    ``resolve`` resolves the names in values of the selection, and ``names`` resolves stored columns.

    Raises:
        ValueError: If an earlier selection excluded a name, or fields of a struct that a value needs.
        TypeError: If a name is a path into a computed VARIANT.
    """
    if previous_result is None:
        return selection
    stored = [known for known in previous_result if isinstance(known, str)]
    every = [known if isinstance(known, str) else known.name for known in previous_result]
    results: list[str | ComputedColumn] = []
    for item in selection:
        if isinstance(item, ComputedColumn):
            for base in bases(item.field):
                column = operand_column(base)
                if resolve(column) is column:  # not a computed column
                    _check_fields(column, stored, names)
            results.append(replace(item, field=resolve(item.field)))
            continue
        whole = [known for known, name in zip(previous_result, every, strict=True) if item == name]
        above = [item] if any(names.is_within(item, known) for known in stored) else []
        parts = [known for known in stored if names.is_within(known, item)]
        if not (whole or above or parts):
            message = unknown_column_message(item, every).replace("the file has", "the scan has")
            column = col(item)
            is_field = column.dotted > 1 and resolve(column) is not column
            advice = f"; for a field of a computed column, select col({item!r})" if is_field else ""
            raise ValueError(message + advice)
        results += whole or above or parts
    return tuple(dict.fromkeys(results))


def _check_fields(column: Column, selected_names: Sequence[str], names: NameResolver) -> None:
    """Raise ``ValueError`` if ``column`` is a struct of which ``selected_names`` contains only some fields."""
    path = ".".join(column.path)
    if path in selected_names or not any(name.startswith(f"{path}.") for name in selected_names):
        return
    exact_path = names.resolve(column).path
    fields = [name for name in selected_names if names.is_within(name, exact_path)]
    if fields and not any(names.is_within(path, name) for name in selected_names):
        raise ValueError(f"only {join_names(fields)} of {path} are selected: use these fields, or select {path} first")


def substitute_computed(
    expression: T, computed_columns: Sequence[ComputedColumn], result_names: Container[str], names: NameResolver
) -> T:
    """Replace references to ``computed_columns`` in a condition or value with the values of these columns.

    A dotted name refers, in this order, to the stored column of the result among ``result_names``, to the computed
    column with this name, to a field of a computed column, and to the stored column among ``names``. Files are opened
    only for paths into computed columns. Raises ``ValueError`` or ``TypeError`` for a field that does not exist.
    """
    if not computed_columns:
        return expression
    known = {item.name: item.field for item in computed_columns}

    def replacement(column: Column) -> Value:
        name = ".".join(column.path[: column.dotted])
        if column.dotted > 1 and name in result_names:
            return column
        exact_column = column.resolve_name(known)
        value, fields = known.get(exact_column.path[0]), exact_column.path[1:]
        if value is None:
            return exact_column
        if not fields:
            return value
        is_variant = isinstance(value, VariantField) and value.type == UNTYPED
        if isinstance(value, Column):  # a stored column under another name
            field = Column((*value.path, *fields), column.place, value.dotted)
            nodes = names.find(value)
            if not nodes or names.find(field):
                return field
            is_variant = any(node.logical_name == "VARIANT" for node in nodes)
        if exact_column.dotted > 1 and name in names.names:
            return column
        raise field_error(value, exact_column, is_variant)

    made: T = replace_columns(expression, replacement)
    return made


def order_keys(
    columns: Sequence[Any], descending: bool | Sequence[bool], nulls_first: bool | Sequence[bool],
    resolve: Callable[[Value], Value],
) -> tuple[OrderKey, ...]:
    """Return the sort keys for ``columns``, which are names or values. ``resolve`` resolves the names in a value.

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
