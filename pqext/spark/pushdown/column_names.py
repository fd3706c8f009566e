"""Names of columns as Spark resolves them: in any case of their letters, unless the session tells cases apart."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from pqext.dataset.expressions import Column
from pqext.dataset.expressions.dotted_names import replace_columns

N = TypeVar("N")

SETTING = "spark.sql.caseSensitive"


def is_case_sensitive(spark: SparkSession) -> bool:
    """Whether names that differ in case are different names to a session."""
    return str(spark.conf.get(SETTING, "false")).lower() == "true"


def resolve_case(node: N, df: DataFrame) -> N:
    """A condition or a value whose columns have the names that ``df`` has for them."""
    resolved = with_case_of(node, df.schema)
    return node if resolved is node or is_case_sensitive(df.sparkSession) else resolved


def with_case_of(node: N, schema: T.StructType) -> N:
    """A condition or a value with the names of ``schema`` for those that differ from one of them in case alone."""
    made: N = replace_columns(node, lambda column: _named(column, schema))
    return made


def _named(column: Column, schema: T.StructType) -> Column:
    names: list[str] = []
    type: T.DataType = schema
    for name in column.path:
        if not isinstance(type, T.StructType):
            return column
        if name not in type.names:
            same = [known for known in type.names if known.casefold() == name.casefold()]
            if len(same) != 1:
                return column
            name = same[0]
        names.append(name)
        type = type[name].dataType
    return column if tuple(names) == column.path else replace(column, path=tuple(names))
