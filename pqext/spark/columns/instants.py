"""Treat INT96 timestamps as instants in microseconds, as Spark's own reader does.

Conditions can also compare them with local times, which are interpreted as UTC, as in :func:`pqext.scan`.
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
from pqext.spark.columns.recorded_schema import KEY, merge_recorded

Paths = frozenset[tuple[str, ...]]


def read_schema(location: Any, options: ReadOptions, limits: Limits) -> pa.Schema:
    """Read the Arrow schema of a file."""
    with ParquetFile(location, options, limits=limits) as file:
        return file.arrow_schema


def unify_schemas(locations: Sequence[Any], options: ReadOptions, limits: Limits) -> pa.Schema:
    """Unify the schemas of files by column name.

    Raises ``ValueError`` if the types of a column have no common type.
    """
    unifier, recorded = Unifier(), []
    for path, schema in FileSet(tuple(locations), options, limits).schemas:
        unifier.add(schema, path)
        if (text := (schema.metadata or {}).get(KEY.encode())) is not None:
            recorded.append(text)
    return unifier.schema.with_metadata({KEY: merge_recorded(recorded)})


def compares_local_times(where: Expression) -> bool:
    """Return whether a condition compares a column with a value that may be a local time."""
    return any(map(_has_local_time, visitors.leaves(where)))


def with_instants(where: Expression, location: Any, options: ReadOptions, limits: Limits) -> Expression:
    """Return ``where`` with instants in place of local times that are compared with INT96 columns of a file."""
    if not compares_local_times(where):
        return where
    with ParquetFile(location, options, limits=limits) as file:
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


def _has_local_time(leaf: Expression) -> bool:
    match leaf:
        case Comparison(operand=Column(), value=value):
            return _instant(value) is not value
        case IsIn(operand=Column(), values=values):
            return any(_instant(value) is not value for value in values)
    return False


def _instant(literal: Any) -> Any:
    """Convert a local time to an instant in UTC. Other literals are returned unchanged."""
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
