"""Hive partitions: columns whose values stand in the names of folders, such as ``year=2020/month=3``.

A file has no column of these: every row has the value that its folder says. So a filter on them is decided from
paths alone, and files that it refuses are never opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

import pyarrow as pa

from pqext.core.errors import UnsupportedError
from pqext.core.text import visible
from pqext.dataset.evaluate import evaluate
from pqext.dataset.expressions import And, Expression, Operand, Or, VariantField, all_of, any_of, literal_text
from pqext.dataset.sources import common_root, source_name
from pqext.dataset.visitors import normal, operands, paths

Partitioning = Literal["hive"] | None

NULL = "__HIVE_DEFAULT_PARTITION__"
"""What the folder of null is called."""

_INTEGER = re.compile(r"-?[0-9]+")


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What is left of a filter for one file; with a ``refusal`` no row of it can match, and this says why."""

    filter: Expression | None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Partitions:
    """The columns that folders below ``root`` name, with their types."""

    root: str | None
    schema: pa.Schema

    def __bool__(self) -> bool:
        return bool(self.schema.names)

    def values(self, sources: Sequence[Any]) -> pa.RecordBatch:
        """The value of each column in each source, a row a source; null where no folder names it."""
        if not self:
            return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), len(sources), [None]))
        found = [_named(source, self.root) for source in sources]
        columns = []
        for field in self.schema:
            texts = [values.get(field.name) for values in found]
            is_text = pa.types.is_string(field.type)
            columns.append(pa.array(texts if is_text else [None if t is None else int(t) for t in texts], field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def narrow(self, filter: Expression | None, values: pa.RecordBatch) -> list[Narrowed]:
        """What is left of ``filter`` for each row of ``values``, which are sources.

        Raises ``TypeError`` for a literal that does not compare with its column.
        """
        if filter is None or not self:
            return [Narrowed(filter)] * values.num_rows
        whole = normal(filter)
        for operand in operands(whole):
            self.check(operand)
        names = set(self.schema.names)
        if not names & {path[0] for path in paths(whole)}:
            return [Narrowed(filter)] * values.num_rows
        known = {
            leaf: evaluate(leaf, values).to_pylist()
            for leaf in _leaves(whole)
            if paths(leaf)[0][0] in names
        }
        return [_narrowed(whole, known, values, row) for row in range(values.num_rows)]

    def check(self, operand: Operand) -> None:
        """Raise ``TypeError`` for a value asked for within what a folder says."""
        if isinstance(operand, VariantField) and operand.column.path[0] in self.schema.names:
            raise TypeError(f"column {operand.column} is no VARIANT: its values stand in the names of folders")

    def others(self, filter: Expression | None) -> list[Expression]:
        """The leaves of ``filter`` on columns of the files."""
        leaves = [] if filter is None else _leaves(normal(filter))
        return [leaf for leaf in leaves if paths(leaf)[0][0] not in self.schema.names]

    def complete_schema(self, schema: pa.Schema) -> pa.Schema:
        """``schema`` of a file with the columns that folders name: in the place of its own of that name, or last."""
        for field in self.schema:
            index = schema.get_field_index(field.name)
            schema = schema.append(field) if index < 0 else schema.set(index, field)
        return schema

    def arrays(self, values: pa.RecordBatch, row: int, length: int) -> dict[str, pa.Array]:
        """The columns for ``length`` rows of the source in ``row`` of ``values``."""
        return {name: pa.repeat(values.column(name)[row], length) for name in self.schema.names}

    def complete(self, batch: pa.RecordBatch, values: pa.RecordBatch, row: int) -> pa.RecordBatch:
        """Rows of the source in ``row`` of ``values`` with these columns behind their own."""
        for name, array in self.arrays(values, row, batch.num_rows).items():
            batch = batch.append_column(name, array)
        return batch

    def columns_of_files(self, names: Sequence[str]) -> list[str]:
        """Those of the columns ``names`` that are in the files."""
        return [name for name in names if name not in self.schema.names]


NO_PARTITIONS = Partitions(None, pa.schema([]))


def partitions_of(sources: Any, files: Sequence[Any], partitioning: Partitioning = "hive") -> Partitions:
    """The columns that folders between the root of ``sources`` and their ``files`` name; none without partitioning.

    The root is the folder that is read, what stands before the first folder with ``*`` of a pattern, or what all
    roots of a list have in common, where a file's is its folder. A column holds int32, or int64, where all folders
    name whole numbers of that range, and text otherwise; ``%20`` stands for a byte, and ``__HIVE_DEFAULT_PARTITION__``
    for null. Raises ``UnsupportedError`` for names that are not UTF-8 and for folders that name a column twice.
    """
    if partitioning is None:
        return NO_PARTITIONS
    if partitioning != "hive":
        raise ValueError(f'partitioning must be "hive" or None, not {partitioning!r}')
    root = common_root(sources)
    texts: dict[str, dict[str | None, None]] = {}
    folders = {os.path.dirname(file): file for file in files if isinstance(file, str)}
    for file in folders.values():
        for name, text in _named(file, root).items():
            texts.setdefault(name, {})[text] = None
    return Partitions(root, pa.schema([(name, _type_of([*found])) for name, found in texts.items()]))


def _named(source: Any, root: str | None) -> dict[str, str | None]:
    """What the folders between ``root`` and the file say."""
    if root is None or not isinstance(source, str):
        return {}
    folder = os.path.dirname(os.path.abspath(source))
    if folder != root and not folder.startswith(os.path.join(root, "")):
        return {}
    found: dict[str, str | None] = {}
    for part in folder[len(root) :].split(os.sep):
        key, equals, value = part.partition("=")
        if not key or not equals:
            continue
        name = _decoded(key, source)
        if name in found:
            raise UnsupportedError(
                f"the folders of {source_name(source)} name column {name!r} twice: pass partitioning=None",
                feature="partition columns named twice",
            )
        found[name] = None if value == NULL else _decoded(value, source)
    return found


def _decoded(text: str, source: Any) -> str:
    try:
        return unquote_to_bytes(os.fsencode(text)).decode()
    except UnicodeError:
        raise UnsupportedError(
            f"the name of folder {visible(text)} is not UTF-8, in {visible(source_name(source))}: "
            "pass partitioning=None to read without it",
            feature="partition values that are not UTF-8",
        ) from None


def _type_of(texts: Sequence[str | None]) -> pa.DataType:
    given = [text for text in texts if text is not None]
    if not given or not all(_INTEGER.fullmatch(text) and len(text) < 1000 for text in given):
        return pa.string()
    numbers = [int(text) for text in given]
    low, high = min(numbers), max(numbers)
    for type in (pa.int32(), pa.int64()):
        if -(1 << (type.bit_width - 1)) <= low and high < 1 << (type.bit_width - 1):
            return type
    return pa.string()


def _leaves(expression: Expression) -> list[Expression]:
    """The leaves of a normalised expression, with the Not above them."""
    if not isinstance(expression, And | Or):
        return [expression]
    return [leaf for operand in expression.operands for leaf in _leaves(operand)]


def _narrowed(
    expression: Expression, known: Mapping[Expression, Sequence[bool | None]], values: pa.RecordBatch, row: int
) -> Narrowed:
    if isinstance(expression, And | Or):
        parts = [_narrowed(operand, known, values, row) for operand in expression.operands]
        left = [part.filter for part in parts if part.filter is not None]
        refused = [part for part in parts if part.refusal is not None]
        if isinstance(expression, And):
            return refused[0] if refused else Narrowed(all_of(left) if left else None)
        if len(refused) == len(parts):
            return Narrowed(None, "; ".join(dict.fromkeys(str(part.refusal) for part in refused)))
        return Narrowed(any_of(left) if len(left) + len(refused) == len(parts) else None)
    if expression not in known:
        return Narrowed(expression)
    if known[expression][row]:
        return Narrowed(None)
    name = paths(expression)[0][0]
    value = values.column(name)[row].as_py()
    shown = "null" if value is None else literal_text(value)
    return Narrowed(None, f"{expression} is true of no row: by its folders {visible(name)} is {shown}")
