"""INT96 timestamps in Spark: instants of whole microseconds, whoever wrote them, as its own reader has them.

Conditions may also compare them with local times, which are in UTC, as :func:`pqext.scan` compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from pqext.core.base.limits import Limits
from pqext.core.format.metadata import Type
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.dataset.expressions import And, Column, Comparison, Expression, IsIn, Not, Or, iso_text, visitors
from pqext.dataset.expressions.literals import timestamp_literal, timestamp_nanoseconds
from pqext.dataset.files.file_set import FileSet
from pqext.dataset.table.unified_schema import Unifier
from pqext.spark.columns.schema_note import KEY as NOTE
from pqext.spark.columns.schema_note import merged

Paths = frozenset[tuple[str, ...]]


def read_schema(place: Any, options: ReadOptions, limits: Limits) -> pa.Schema:
    """The Arrow schema of the file at a ``place``."""
    with ParquetFile(place, options, limits=limits) as file:
        return file.arrow_schema


def unify_schemas(places: Sequence[Any], options: ReadOptions, limits: Limits) -> pa.Schema:
    """The schema of all files by name.

    Raises ``ValueError`` where types of a column have none in common.
    """
    unifier, notes = Unifier(), []
    for path, schema in FileSet(tuple(places), options, limits).schemas:
        unifier.add(schema, path)
        if (text := (schema.metadata or {}).get(NOTE.encode())) is not None:
            notes.append(text)
    return unifier.schema.with_metadata({NOTE: merged(notes)})


def compares_local_times(where: Expression) -> bool:
    """Whether a condition compares a column with what may be a local time."""
    return any(map(_local_times, visitors.leaves(where)))


def with_instants(where: Expression, place: Any, options: ReadOptions, limits: Limits) -> Expression:
    """``where`` with local times as instants if INT96 columns of the file at ``place`` are compared with them."""
    if not compares_local_times(where):
        return where
    with ParquetFile(place, options, limits=limits) as file:
        paths = frozenset(leaf.path for leaf in file.schema.leaves if leaf.physical_type == Type.INT96)
    return _with_instants(where, paths)


def _with_instants(node: Expression, paths: Paths) -> Expression:
    match node:
        case And() | Or():
            return replace(node, operands=tuple(_with_instants(operand, paths) for operand in node.operands))
        case Not():
            return replace(node, operand=_with_instants(node.operand, paths))
        case Comparison(operand=Column(path=path)) if path in paths:
            return replace(node, value=_instant(node.value))
        case IsIn(operand=Column(path=path)) if path in paths:
            return replace(node, values=tuple(map(_instant, node.values)))
    return node


def _local_times(leaf: Expression) -> bool:
    """Whether a leaf compares a column with what may be a local time."""
    match leaf:
        case Comparison(operand=Column(), value=value):
            return _instant(value) is not value
        case IsIn(operand=Column(), values=values):
            return any(_instant(value) is not value for value in values)
    return False


def _instant(literal: Any) -> Any:
    """A local time as the instant that it is in UTC; other literals as they are."""
    nanoseconds: int | None = None
    if isinstance(literal, str):
        with suppress(ValueError):
            nanoseconds = iso_text.nanoseconds(literal, False)
    elif _is_local(literal):
        nanoseconds = timestamp_nanoseconds(literal)
    return literal if nanoseconds is None else timestamp_literal(nanoseconds, True)


def _is_local(literal: Any) -> bool:
    if isinstance(literal, pa.Scalar):
        return bool(pa.types.is_timestamp(literal.type) and literal.type.tz is None)
    return isinstance(literal, datetime) and literal.tzinfo is None
