"""Hive partitions: columns whose values are stored in folder names, such as ``year=2020/month=3``.

Files do not contain these columns: every row has the value in the name of its folder. Filters on them are evaluated on
paths only, and pruned files are never opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal, cast
from urllib.parse import unquote_to_bytes

import pyarrow as pa

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.text import escape_text
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.types.arrow_compute import cast_exactly
from pqext.dataset.evaluation.evaluate import evaluate
from pqext.dataset.expressions import (
    And,
    Column,
    Expression,
    Operand,
    Or,
    VariantField,
    all_of,
    any_of,
    literal_text,
    operand_column,
)
from pqext.dataset.expressions.mistakes import label_of
from pqext.dataset.expressions.visitors import operands, paths, push_down_not
from pqext.dataset.files.sources import common_root, folder_of, source_name
from pqext.dataset.table.conformance import nulls
from pqext.dataset.table.substitution import substitute

Partitioning = Literal["hive"] | None

NULL = "__HIVE_DEFAULT_PARTITION__"
"""Folder value that represents null."""

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
"""Integers without leading zeros; numbers with leading zeros, such as ``01234``, are codes and remain text."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

PartitionTypes = Mapping[str, str | pa.DataType]
"""Types of partition columns by name; see :func:`partitions_of`."""
_OTHERS = "*"
"""The name that represents all other columns."""


@dataclass(frozen=True, slots=True)
class RemainingFilter:
    """Filter that remains to be evaluated on the rows of a file. If ``prune_reason`` is set, no row can match."""

    filter: Expression | None
    prune_reason: str | None = None
    evidence: str = "partition"
    """Evidence for pruning, in a word or two."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """Partition columns below the folder ``root``, and their types.

    The additional columns with the file path and the row number are included if they are requested.
    """

    root: str | None
    schema: pa.Schema
    paths: str | None = None
    """Name of the column with the file's path."""
    rows: str | None = None
    """Name of the column with the row number in the file, whose values the executor adds."""
    stated: Mapping[str, Mapping[str, Any]] | None = None
    """Values by file name and column, as the log of a table states them. Names of folders are ignored then."""

    def __bool__(self) -> bool:
        return bool(self.schema.names)

    def values(self, sources: Sequence[Any]) -> pa.RecordBatch:
        """Return the partition values, one row per source. Columns that are missing from a source's path are null."""
        results = [self._folder_or_log_values(source) for source in sources]
        columns = []
        for field in self.schema:
            if field.name == self.rows:
                columns.append(nulls(len(results), field.type))
                continue
            texts = [values.get(field.name) for values in results]
            if field.name == self.paths:
                texts = [*map(source_name, sources)]
            elif self.stated is not None:
                columns.append(pa.array(texts, field.type))
                continue
            columns.append(_convert_values(texts, field))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _folder_or_log_values(self, source: Any) -> Mapping[str, Any]:
        if self.stated is None:
            return _parse_folders(source, self.root)
        return self.stated.get(source_name(source), {})

    def evaluate(self, filter: Expression | None, values: pa.RecordBatch) -> list[RemainingFilter]:
        """Evaluate ``filter`` on each row of ``values``, the values of a source; return the remaining filters.

        Raises ``TypeError`` if a literal cannot be compared with its column.
        """
        if filter is None:
            return [RemainingFilter(filter)] * values.num_rows
        whole = push_down_not(filter)
        for operand in operands(whole):
            self.check(operand)
        names = set(self.schema.names)
        if self.rows is not None and any(path[0] == self.rows for path in paths(whole)):
            raise ValueError(
                f"column {self.rows!r} contains row numbers, which filters do not support; read the rows and filter "
                "the result"
            )
        if not names & {path[0] for path in paths(whole)}:
            return [RemainingFilter(filter)] * values.num_rows
        known = {leaf: self._evaluate(leaf, values) for leaf in _leaves(whole) if _top_columns(leaf) <= names}
        results = [_remaining_filter(whole, known, values, row) for row in range(values.num_rows)]
        if self.paths is None and self.stated is None:
            return results
        name = "" if self.paths is None else f"{escape_text(self.paths)} is"  # not a partition column
        before = "by its folders " if self.stated is not None else f"by its folders {name}"
        after = "in the log of the table " if self.stated is not None else name
        reasons = (remaining.prune_reason for remaining in results)
        texts = [reason and reason.replace(before, after) for reason in reasons]
        return [replace(item, prune_reason=text) for item, text in zip(results, texts, strict=True)]

    def _evaluate(self, leaf: Expression, values: pa.RecordBatch) -> list[bool | None]:
        try:
            return cast("list[bool | None]", evaluate(leaf, values).to_pylist())
        except TypeError as error:
            name = next(iter(_top_columns(leaf)))
            if not pa.types.is_string(values.schema.field(name).type):
                raise
            raise TypeError(
                f"{error}; column {escape_text(name)!r} contains text from folder names; pass partition_types="
                f"{{{name!r}: 'int64'}} to read numbers"
            ) from None

    def add_columns(self, paths: str | None, rows: str | None) -> Partitions:
        """Add columns for the file path and for the row number in the file, unless their names are None.

        Raises ``ValueError`` if a name is already in use, and ``TypeError`` if it is not text.
        """
        schema = self.schema
        for name, type in ((paths, pa.string()), (rows, pa.int64())):
            if name is not None:
                if not isinstance(name, str):
                    raise TypeError(f"the name of an included column must be text, not {name.__class__.__name__}")
                if any("\ud800" <= character <= "\udfff" for character in name):
                    raise ValueError(f"the name of an included column has lone surrogates: {name!r}")
                if name in schema.names:
                    raise ValueError(f"column {name!r} already exists; choose another name for the included column")
                schema = schema.append(pa.field(name, type))
        return replace(self, schema=schema, paths=paths, rows=rows)

    def missing_columns(self, sources: Sequence[Any], values: pa.RecordBatch) -> dict[int, set[str]]:
        """Return, by source, the partition columns that are missing from the source's path but not from other paths."""
        names = {name for name, column in zip(self.schema.names, values.columns, strict=True) if column.null_count}
        names -= {self.paths, self.rows}
        if not names or self.stated is not None:
            return {}
        lacking = {row: names - _parse_folders(source, self.root).keys() for row, source in enumerate(sources)}
        return {row: result for row, result in lacking.items() if result}

    def check_name_conflicts(self, root: SchemaNode) -> None:
        """Raise ``ValueError`` if the schema ``root`` of a file has a column with the name of an included column."""
        for name in (self.paths, self.rows):
            if name is not None and root.position(name) is not None:
                raise ValueError(f"column {name!r} exists in the file; choose another name for the included column")

    def check(self, operand: Operand, is_computed: bool = False) -> None:
        """Raise ``TypeError`` if an operand uses a partition column as a VARIANT.

        If ``is_computed``, a result column is computed from the operand, which must not be a partition column.
        """
        column = operand_column(operand)
        if column.path[0] not in self.schema.names:
            return
        options = {self.paths: "include_file_paths", self.rows: "include_row_numbers"}
        option = options.get(column.path[0])
        origin = "a partition column" if option is None else f"the column of {option}"
        if is_computed and isinstance(operand, Column):
            advice = "" if option is None else f"; pass another name to {option}"
            raise TypeError(f"column {label_of(operand)} is {origin}, which computed columns cannot use{advice}")
        if isinstance(operand, VariantField):
            raise TypeError(f"column {label_of(column)} is {origin}, not a VARIANT, so it has no fields")

    def file_conditions(self, filter: Expression | None) -> list[Expression]:
        """Return the leaves of ``filter`` that use only columns of the files."""
        leaves = [] if filter is None else _leaves(push_down_not(filter))
        return [leaf for leaf in leaves if _top_columns(leaf).isdisjoint(self.schema.names)]

    def cast(self, schema: pa.Schema) -> Partitions:
        """Change the types of the partition columns to the types in ``schema``."""
        fields = [schema.field(item.name) if item.name in schema.names else item for item in self.schema]
        return replace(self, schema=pa.schema(fields))

    def complete_schema(self, schema: pa.Schema) -> pa.Schema:
        """Add the partition columns to the ``schema`` of a file, replacing columns with the same name."""
        for field in self.schema:
            index = schema.get_field_index(field.name)
            schema = schema.append(field) if index < 0 else schema.set(index, field)
        return schema

    def arrays(self, values: pa.RecordBatch, row: int, length: int) -> dict[str, pa.Array]:
        """Return the partition columns for ``length`` rows of a source. Row ``row`` of ``values`` is repeated."""
        return {name: pa.repeat(values.column(name)[row], length) for name in self.schema.names}

    def complete(self, batch: pa.RecordBatch, values: pa.RecordBatch, row: int) -> pa.RecordBatch:
        """Append the partition columns to a batch of a source. The values are in row ``row`` of ``values``."""
        for name, array in self.arrays(values, row, batch.num_rows).items():
            batch = batch.append_column(name, array)
        return batch

    def columns_of_files(self, names: Sequence[str]) -> list[str]:
        """Return the ``names`` that are not partition columns."""
        return [name for name in names if name not in self.schema.names]


NO_PARTITIONS = Partitions(None, pa.schema([]))


def partitions_of(
    sources: Sequence[Any], files: Sequence[Any], partitioning: Partitioning = "hive", *,
    types: PartitionTypes | None = None,
) -> Partitions:
    """Infer the partition columns, if any, from the folders between the root of ``sources`` and ``files``.

    The sources must be located (:func:`pqext.dataset.files.sources.locate_sources`).

    The root is the folder that is read, for a pattern the path before its first folder with ``*``, for a list the
    common root, and for a file its folder. A column is int32 or int64 if all its values are integers within that range
    without leading zeros, date32 if all are dates such as ``2024-01-31``, and otherwise text. ``types`` overrides these
    types with Arrow types or their names; ``"*"`` applies to all columns that it does not name. ``%20`` is the byte
    0x20, and ``__HIVE_DEFAULT_PARTITION__`` is null.

    Raises:
        UnsupportedError: If names are not UTF-8, or if folders name a column twice.
        ValueError: If ``types`` names a column that is not a partition column.
    """
    if partitioning is None:
        if types:
            raise ValueError("partition_types requires partition columns; do not pass partitioning=None")
        return NO_PARTITIONS
    if partitioning != "hive":
        raise ValueError(f'partitioning must be "hive" or None, not {partitioning!r}')
    partitions = infer_partitions(common_root(sources), files)
    return partitions.cast(_parse_types(types, partitions.schema)) if types else partitions


def _parse_types(types: PartitionTypes, partitions: pa.Schema) -> pa.Schema:
    from pqext.variant.access.targets import target_type

    if not isinstance(types, Mapping):
        kind = types.__class__.__name__
        raise TypeError(f"partition_types must map names to types, as in {{'zip': 'string'}}, not {kind}")
    fields = []
    if _OTHERS in types:
        every = dict.fromkeys(partitions.names, types[_OTHERS])
        types = every | {name: type for name, type in types.items() if name != _OTHERS}
    for name, type in types.items():
        if name not in partitions.names:
            listed = ", ".join(map(escape_text, partitions.names))
            reason = f"the partition columns are {listed}" if listed else "the folders have no partition columns"
            problem = f"partition_types: no partition column {escape_text(str(name))!r}"
            raise ValueError(f"{problem}; {reason}")
        try:
            arrow_type = target_type(type)
        except ValueError as error:
            raise ValueError(f"partition_types: column {escape_text(name)!r}: {error}") from None
        if pa.types.is_nested(arrow_type):
            message = f"partition_types: column {escape_text(name)!r} must have a scalar type, not {type}"
            raise ValueError(message)
        fields.append((name, arrow_type))
    return pa.schema(fields)


def infer_partitions(root: str | None, files: Sequence[Any]) -> Partitions:
    """Infer the partition columns between ``root`` and ``files``. Raises the errors of :func:`partitions_of`."""
    texts: dict[str, dict[str | None, None]] = {}
    folders = {file.rpartition(os.sep)[0] if isinstance(file, str) else folder_of(file): file for file in files}
    for file in folders.values():
        for name, text in _parse_folders(file, root).items():
            texts.setdefault(name, {})[text] = None
    if not texts and root is None:
        return NO_PARTITIONS
    return Partitions(root, pa.schema([(name, _type_of([*result])) for name, result in texts.items()]))


def _parse_folders(source: Any, root: str | None) -> dict[str, str | None]:
    """Return the partition values in the folders between ``root`` and a file, by column."""
    folder = folder_of(source)
    if root is None or folder is None:
        return {}
    separator = os.sep if isinstance(source, str) else "/"
    if folder != root and not folder.startswith(root.rstrip(separator) + separator):
        return {}
    result: dict[str, str | None] = {}
    for part in folder[len(root) :].split(separator):
        key, equals, value = part.partition("=")
        if not key or not equals:
            continue
        name = _decode_value(key, source)
        if name in result:
            raise UnsupportedError(
                f"partition column {name!r} occurs twice in the path {source_name(source)}; pass partitioning=None",
                feature="partition columns named twice",
            )
        result[name] = None if value == NULL else _decode_value(value, source)
    return result


def _decode_value(text: str, source: Any) -> str:
    try:
        return unquote_to_bytes(os.fsencode(text)).decode()
    except UnicodeError:
        raise UnsupportedError(
            f"the name of folder {escape_text(text)} is not UTF-8, in {escape_text(source_name(source))}: "
            "pass partitioning=None to read without it",
            feature="partition values that are not UTF-8",
        ) from None


def _type_of(texts: Sequence[str | None]) -> pa.DataType:
    """Infer the type of a column from its values in folder names, which may be null."""
    values = [text for text in texts if text is not None]
    if values and all(map(_is_date, values)):
        return pa.date32()
    if not values or not all(len(text) < 1000 and _INTEGER.fullmatch(text) for text in values):
        return pa.string()
    numbers = [int(text) for text in values]
    low, high = min(numbers), max(numbers)
    for type in (pa.int32(), pa.int64()):
        if -(1 << (type.bit_width - 1)) <= low and high < 1 << (type.bit_width - 1):
            return type
    return pa.string()


def _is_date(text: str) -> bool:
    if _DATE.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _convert_values(texts: Sequence[str | None], field: pa.Field) -> pa.Array:
    """Convert the values of a partition column to its type. Raises ``ValueError`` if a text is invalid."""
    if pa.types.is_integer(field.type):  # texts may have any number of digits
        with suppress(ValueError, OverflowError):
            return pa.array([None if text is None else int(text) for text in texts], field.type)
    try:
        return cast_exactly(pa.array(texts, pa.string()), field.type)
    except pa.ArrowException as error:
        column = escape_text(field.name)
        message = f"partition column {column!r}: folder values cannot be converted to {field.type}: {error}"
        raise ValueError(message) from None


def _top_columns(leaf: Expression) -> set[str]:
    return {path[0] for path in paths(leaf)}


def _leaves(expression: Expression) -> list[Expression]:
    """Return the leaves of a normalised expression. A negated leaf is returned as a Not expression."""
    if not isinstance(expression, And | Or):
        return [expression]
    return [leaf for operand in expression.operands for leaf in _leaves(operand)]


def _remaining_filter(
    expression: Expression, results: Mapping[Expression, Sequence[bool | None]], values: pa.RecordBatch, row: int
) -> RemainingFilter:
    if isinstance(expression, And | Or):
        parts = [_remaining_filter(operand, results, values, row) for operand in expression.operands]
        left = [part.filter for part in parts if part.filter is not None]
        refused = [part for part in parts if part.prune_reason is not None]
        if isinstance(expression, And):
            return refused[0] if refused else RemainingFilter(all_of(left) if left else None)
        if len(refused) == len(parts):
            return RemainingFilter(None, "; ".join(dict.fromkeys(str(part.prune_reason) for part in refused)))
        return RemainingFilter(any_of(left) if len(left) + len(refused) == len(parts) else None)
    if expression not in results and _top_columns(expression).isdisjoint(values.schema.names):
        return RemainingFilter(expression)
    result = results[expression][row] if expression in results else substitute(expression, values.slice(row, 1))
    if isinstance(result, Expression):
        return RemainingFilter(result)
    if result:
        return RemainingFilter(None)
    name = next(path[0] for path in paths(expression) if path[0] in values.schema.names)
    value = values.column(name)[row].as_py()
    shown = "null" if value is None else literal_text(value)
    return RemainingFilter(None, f"{expression} is true for no row: by its folders {escape_text(name)} is {shown}")
