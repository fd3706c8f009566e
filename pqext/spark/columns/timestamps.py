"""Dates and timestamps of Spark: the calendar for writing values, and conversions of INT96 timestamps for reading.

Files of Spark record its version, which states that their values are in the proleptic Gregorian calendar. Readers would
otherwise interpret old values by the settings of their session. INT96 timestamps are instants in microseconds, as in
Spark's own reader. Conditions can also compare them with local times, which are interpreted as UTC, as in
:func:`pqext.scan`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import __version__

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.limits import Limits
from pqext.core.format.metadata import Type
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.types.legacy_calendar import VERSION
from pqext.dataset.expressions import And, Column, Comparison, Expression, IsIn, Not, Or, iso_text, visitors
from pqext.dataset.expressions.literals import timestamp_literal, timestamp_nanoseconds
from pqext.dataset.files.file_set import FileSet
from pqext.dataset.table.unified_schema import Unifier
from pqext.spark.columns.recorded_schema import KEY, merge_recorded_schemas

SETTING = "spark.sql.parquet.datetimeRebaseModeInWrite"
_MODE = f"option datetime_rebase_mode or {SETTING}"
_EARLIEST_DAY = -141_427
"""1582-10-15, the first day that is the same in both calendars."""
_EARLIEST_SECOND = -2_208_988_800
"""1900-01-01. Later instants are the same in both calendars for all time zones."""
Paths = frozenset[tuple[str, ...]]


def add_version(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the writer's ``options`` with Spark's version in the key-value metadata."""
    version = __version__.partition(".dev")[0]
    return {**options, "key_value_metadata": {VERSION: version, **options.get("key_value_metadata", {})}}


def depends_on_calendar(type: pa.DataType) -> bool:
    """Return whether a type contains dates or instants."""
    if pa.types.is_nested(type):
        return any(depends_on_calendar(type.field(index).type) for index in range(type.num_fields))
    return bool(pa.types.is_date(type) or (pa.types.is_timestamp(type) and type.tz is not None))


def check_rebase_mode(mode: str, fields: Iterable[pa.Field]) -> None:
    """Raise ``ValueError`` for a column of dates or instants if pqext does not support rebase mode ``mode``."""
    for field in fields:
        if depends_on_calendar(field.type):
            raise ValueError(
                f"column {field.name!r} has dates or timestamps, which are written in the proleptic Gregorian calendar "
                f"only, and {_MODE} is {mode.upper()}: set it to CORRECTED, or write with Spark's own sink"
            )


def reject_ancient_values(batch: pa.RecordBatch, excluded_names: Collection[str]) -> None:
    """Raise ``UnsupportedError`` for dates before 15 October 1582 and instants before 1900, like mode ``EXCEPTION``."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in excluded_names or not depends_on_calendar(column.type):
            continue
        for leaf in _calendar_leaves(column):
            least = pc.min(leaf)
            earliest = pa.scalar(_EARLIEST_DAY, pa.int32()).cast(pa.date32())
            if pa.types.is_timestamp(leaf.type):
                earliest = pa.scalar(_EARLIEST_SECOND, pa.int64()).cast(pa.timestamp("s", "UTC")).cast(leaf.type)
            if least.is_valid and pc.less(least, earliest).as_py():
                raise UnsupportedError(
                    f"WRITE_ANCIENT_DATETIME: a date before 1582-10-15 or a timestamp before 1900 is ambiguous, "
                    f"because Spark 2 and Hive read it in another calendar: set {_MODE} to CORRECTED to write it",
                    feature="dates and instants of an unknown calendar", column=name,
                )


def _calendar_leaves(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the date and timestamp arrays in a column, at any depth. Values of null parents are omitted or null."""
    type = array.type
    if not depends_on_calendar(type):
        return
    if pa.types.is_map(type):
        yield from _calendar_leaves(array.cast(pa.list_(pa.struct([type.key_field, type.item_field]))))
    elif pa.types.is_struct(type):
        for child in array.flatten():
            yield from _calendar_leaves(child)
    elif pa.types.is_nested(type):
        yield from _calendar_leaves(array.flatten())
    else:
        yield array


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
    return unifier.schema.with_metadata({KEY: merge_recorded_schemas(recorded)})


def compares_local_times(where: Expression) -> bool:
    """Return whether a condition compares a column with a value that may be a local time."""
    return any(map(_has_local_time, visitors.leaves(where)))


def convert_local_times(where: Expression, location: Any, options: ReadOptions, limits: Limits) -> Expression:
    """Convert the local times that ``where`` compares with INT96 columns of a file to instants."""
    if not compares_local_times(where):
        return where
    with ParquetFile(location, options, limits=limits) as file:
        paths = frozenset(leaf.path for leaf in file.schema.leaves if leaf.physical_type == Type.INT96)
    return _convert_literals(where, paths)


def _convert_literals(node: Expression, paths: Paths) -> Expression:
    match node:
        case And() | Or():
            return replace(node, operands=tuple(_convert_literals(operand, paths) for operand in node.operands))
        case Not():
            return replace(node, operand=_convert_literals(node.operand, paths))
        case Comparison(operand=Column(path=path)) if path in paths:
            return replace(node, value=_to_instant(node.value))
        case IsIn(operand=Column(path=path)) if path in paths:
            return replace(node, values=tuple(map(_to_instant, node.values)))
    return node


def _has_local_time(leaf: Expression) -> bool:
    match leaf:
        case Comparison(operand=Column(), value=value):
            return _to_instant(value) is not value
        case IsIn(operand=Column(), values=values):
            return any(_to_instant(value) is not value for value in values)
    return False


def _to_instant(literal: Any) -> Any:
    """Convert a local time to an instant in UTC. Other literals are returned unchanged."""
    nanoseconds: int | None = None
    if isinstance(literal, str):
        with suppress(ValueError):
            nanoseconds = iso_text.parse_timestamp(literal, False)
    elif _is_local(literal):
        nanoseconds = timestamp_nanoseconds(literal)
    return literal if nanoseconds is None else timestamp_literal(nanoseconds, True)


def _is_local(literal: Any) -> bool:
    if isinstance(literal, pa.Scalar):
        return bool(pa.types.is_timestamp(literal.type) and literal.type.tz is None)
    return isinstance(literal, datetime) and literal.tzinfo is None
