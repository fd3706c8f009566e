"""Year-month intervals, which Spark passes to no Python: between Spark and pqext they are numbers of months.

Spark stores such an interval as the number of its months, an INT32, and notes its type
(:mod:`pqext.spark.columns.schema_note`). ``read`` and ``write`` of :mod:`pqext.spark` therefore exchange INT with the
data source, and Spark casts. The metadata of a column that contains intervals states its own type.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.base.errors import UnsupportedError
from pqext.spark.columns.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MARK = "pqext.interval"
"""The key of a column's metadata that holds its type with intervals, as JSON."""
_MONTHS = T.YearMonthIntervalType(T.YearMonthIntervalType.MONTH, T.YearMonthIntervalType.MONTH)
"""The only interval that Spark casts to and from the number of its months."""

AS_INT = "CAST(CAST(x AS INTERVAL MONTH) AS INT)"
"""What messages advise."""


def has_months(type: T.DataType) -> bool:
    """Whether a type is a year-month interval, or contains one."""
    return _replaced(type, T.IntegerType()) != type


def in_months(schema: T.StructType) -> T.StructType:
    """A schema with INT for intervals; :func:`with_intervals` restores it."""
    return T.StructType([_in_months(field) if has_months(field.dataType) else field for field in schema])


def with_intervals(schema: T.StructType) -> T.StructType:
    """The schema of which :func:`in_months` made ``schema``."""
    return T.StructType([_with_intervals(field) for field in schema])


def cast_to_months(df: DataFrame) -> DataFrame:
    """A data frame with numbers of months for intervals."""
    return _cast(df, in_months(df.schema))


def cast_to_intervals(df: DataFrame) -> DataFrame:
    """The data frame of which :func:`cast_to_months` made ``df``."""
    return _cast(df, with_intervals(df.schema))


def refuse_months(columns: Iterable[T.StructField], advice: str) -> None:
    """Raise ``UnsupportedError`` for a column with year-month intervals."""
    for column in columns:
        if has_months(column.dataType):
            raise UnsupportedError(
                f"Spark passes no {column.dataType.simpleString()} to Python; {advice}",
                feature="year-month intervals", column=column.name,
            )


def _cast(df: DataFrame, schema: T.StructType) -> DataFrame:
    """A data frame with the types of ``schema``, of which one side has intervals and the other their numbers."""
    columns = []
    for field, target in zip(df.schema, schema, strict=True):
        column = F.col(quoted(field.name))
        if field.dataType != target.dataType:
            typed = field if has_months(field.dataType) else target
            between = _replaced(typed.dataType, _MONTHS)
            column = column.cast(between).cast(target.dataType).alias(field.name, metadata=target.metadata)
        columns.append(column)
    return df if schema == df.schema else df.select(*columns)


def _in_months(field: T.StructField) -> T.StructField:
    metadata = {**(field.metadata or {}), MARK: field.dataType.json()}
    return T.StructField(field.name, _replaced(field.dataType, T.IntegerType()), field.nullable, metadata)


def _with_intervals(field: T.StructField) -> T.StructField:
    metadata = dict(field.metadata or {})
    text = metadata.pop(MARK, None)
    if text is None:
        return field
    data = {"name": field.name, "type": json.loads(text), "nullable": field.nullable, "metadata": metadata}
    return T.StructField.fromJson(data)


def _replaced(type: T.DataType, number: T.DataType) -> T.DataType:
    """A type with ``number`` for year-month intervals."""
    if isinstance(type, T.YearMonthIntervalType):
        return number
    if isinstance(type, T.ArrayType):
        return T.ArrayType(_replaced(type.elementType, number), type.containsNull)
    if isinstance(type, T.MapType):
        key, value = _replaced(type.keyType, number), _replaced(type.valueType, number)
        return T.MapType(key, value, type.valueContainsNull)
    if isinstance(type, T.StructType):
        fields = [
            T.StructField(field.name, _replaced(field.dataType, number), field.nullable, field.metadata)
            for field in type
        ]
        return T.StructType(fields)
    return type
