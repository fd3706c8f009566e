"""Calendar of the dates and instants that are written.

Files of Spark record its version, which states that their values are in the proleptic Gregorian calendar. Readers would
otherwise interpret old values by the settings of their session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import __version__

from pqext.core.base.errors import UnsupportedError
from pqext.core.schema.types.legacy_calendar import VERSION

SETTING = "spark.sql.parquet.datetimeRebaseModeInWrite"
_MODE = f"option datetime_rebase_mode or {SETTING}"
_EARLIEST_DAY = -141_427
"""1582-10-15, the first day that is the same in both calendars."""
_EARLIEST_SECOND = -2_208_988_800
"""1900-01-01. Later instants are the same in both calendars for all time zones."""


def with_version(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the writer's ``options`` with Spark's version in the key-value metadata."""
    version = __version__.partition(".dev")[0]
    return {**options, "key_value_metadata": {VERSION: version, **options.get("key_value_metadata", {})}}


def depends_on_calendar(type: pa.DataType) -> bool:
    """Return whether a type contains dates or instants."""
    if pa.types.is_nested(type):
        return any(depends_on_calendar(type.field(index).type) for index in range(type.num_fields))
    return bool(pa.types.is_date(type) or (pa.types.is_timestamp(type) and type.tz is not None))


def reject_mode(mode: str, fields: Iterable[pa.Field]) -> None:
    """Raise ``ValueError`` if files with these columns cannot be written with a value of :data:`SETTING`."""
    for field in fields:
        if depends_on_calendar(field.type):
            raise ValueError(
                f"column {field.name!r} has dates or timestamps, which are written in the proleptic Gregorian calendar "
                f"only, and {_MODE} is {mode.upper()}: set it to CORRECTED, or write with Spark's own sink"
            )


def check_ancient(batch: pa.RecordBatch, excluded_names: Collection[str]) -> None:
    """Raise ``UnsupportedError`` for dates before 15 October 1582 and instants before 1900, as ``EXCEPTION`` does."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in excluded_names or not depends_on_calendar(column.type):
            continue
        for leaf in _leaves(column):
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


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the arrays of dates and instants in a column, without the values within nulls."""
    type = array.type
    if not depends_on_calendar(type):
        return
    if pa.types.is_map(type):
        yield from _leaves(array.cast(pa.list_(pa.struct([type.key_field, type.item_field]))))
    elif pa.types.is_struct(type):
        for child in array.flatten():
            yield from _leaves(child)
    elif pa.types.is_nested(type):
        yield from _leaves(array.flatten())
    else:
        yield array
