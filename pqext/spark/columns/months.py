"""Exchange year-month intervals with Spark as numbers of months, because Spark does not pass intervals to Python.

Spark stores an interval as its number of months, an INT32, and records the type
(:mod:`pqext.spark.columns.recorded_schema`). ``read`` and ``write`` of :mod:`pqext.spark` therefore exchange INT with
the data source, and Spark casts. Field metadata states the original type of a column.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.base.errors import UnsupportedError
from pqext.spark.columns.names import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MARK = "pqext.interval"
"""Key of the field metadata with the original type of a column, as JSON."""
_MONTHS = T.YearMonthIntervalType(T.YearMonthIntervalType.MONTH, T.YearMonthIntervalType.MONTH)
"""Interval type that Spark casts to and from integers."""

AS_INT = "CAST(CAST(x AS INTERVAL MONTH) AS INT)"
"""Cast that error messages recommend."""


def has_months(type: T.DataType) -> bool:
    """Return whether a type is or contains a year-month interval."""
    return _replace_intervals(type, T.IntegerType()) != type


def intervals_to_months(schema: T.StructType) -> T.StructType:
    """Replace year-month intervals in a schema by INT. :func:`months_to_intervals` restores them."""
    return T.StructType([_interval_to_months(field) if has_months(field.dataType) else field for field in schema])


def months_to_intervals(schema: T.StructType) -> T.StructType:
    """Restore the year-month intervals that :func:`intervals_to_months` replaced."""
    return T.StructType([_months_to_interval(field) for field in schema])


def cast_to_months(df: DataFrame) -> DataFrame:
    """Cast year-month intervals in a data frame to INT."""
    return _cast(df, intervals_to_months(df.schema))


def cast_to_intervals(df: DataFrame) -> DataFrame:
    """Restore the year-month intervals that :func:`cast_to_months` replaced."""
    return _cast(df, months_to_intervals(df.schema))


def reject_months(columns: Iterable[T.StructField], advice: str) -> None:
    """Raise ``UnsupportedError`` if a column contains year-month intervals."""
    for column in columns:
        if has_months(column.dataType):
            raise UnsupportedError(
                f"Spark cannot pass columns of type {column.dataType.simpleString()!r} to Python; {advice}",
                feature="year-month intervals", column=column.name,
            )


def _cast(df: DataFrame, schema: T.StructType) -> DataFrame:
    """Cast columns between intervals and integers. Either ``df`` or ``schema`` has the intervals."""
    columns = []
    for field, target in zip(df.schema, schema, strict=True):
        column = F.col(quote(field.name))
        if field.dataType != target.dataType:
            interval_field = field if has_months(field.dataType) else target
            intermediate = _replace_intervals(interval_field.dataType, _MONTHS)
            column = column.cast(intermediate).cast(target.dataType).alias(field.name, metadata=target.metadata)
        columns.append(column)
    return df if schema == df.schema else df.select(*columns)


def _interval_to_months(field: T.StructField) -> T.StructField:
    metadata = {**(field.metadata or {}), MARK: field.dataType.json()}
    return T.StructField(field.name, _replace_intervals(field.dataType, T.IntegerType()), field.nullable, metadata)


def _months_to_interval(field: T.StructField) -> T.StructField:
    metadata = dict(field.metadata or {})
    text = metadata.pop(MARK, None)
    if text is None:
        return field
    data = {"name": field.name, "type": json.loads(text), "nullable": field.nullable, "metadata": metadata}
    return T.StructField.fromJson(data)


def _replace_intervals(type: T.DataType, number: T.DataType) -> T.DataType:
    """Return ``type`` with year-month intervals replaced by ``number``."""
    if isinstance(type, T.YearMonthIntervalType):
        return number
    if isinstance(type, T.ArrayType):
        return T.ArrayType(_replace_intervals(type.elementType, number), type.containsNull)
    if isinstance(type, T.MapType):
        key, value = _replace_intervals(type.keyType, number), _replace_intervals(type.valueType, number)
        return T.MapType(key, value, type.valueContainsNull)
    if isinstance(type, T.StructType):
        fields = [
            T.StructField(field.name, _replace_intervals(field.dataType, number), field.nullable, field.metadata)
            for field in type
        ]
        return T.StructType(fields)
    return type
