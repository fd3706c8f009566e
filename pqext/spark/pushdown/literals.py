"""Literals of expressions for a column of a Spark type: the question they ask there, in that type itself.

Spark casts before it compares, a BIGINT and a fraction to DOUBLE or text to a date by the session's settings. pqext
compares exact values, as ``pqext.dataset.evaluation.evaluate`` does, and these questions need no cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.format.predicate import Operator
from pqext.dataset.evaluation.literal_placement import placed
from pqext.dataset.expressions.literals import kind_of_arrow, to_value
from pqext.spark.base.types import exchange_type

FIRST_YEAR = 1900
"""Older dates and times of Python reach Spark in another calendar or not at all, and are made there."""
_EPOCH = datetime(1970, 1, 1)


def asked(type: T.DataType, operator: Operator, literal: Any, column: str) -> tuple[Operator, Any] | bool:
    """``operator literal`` with a literal that ``type`` can hold, or the one answer for all its values.

    Raises ``TypeError`` naming ``column`` when type and literal do not compare.
    """
    if isinstance(type, T.StringType):
        type = T.StringType()
    arrow = exchange_type(type)
    kind = kind_of_arrow(arrow)
    if kind is None:
        raise TypeError(f"column {column} of type {type.simpleString()} compares with no literal, only with null")
    value = to_value(literal, kind, column)
    if kind.name in ("string", "binary", "boolean"):
        return operator, literal
    question = placed(arrow, operator, value)
    if isinstance(question, bool):
        return question
    operator, scalar = question
    return operator, _python(scalar, arrow)


def asked_exactly(type: T.DataType, literals: Sequence[Any], column: str) -> list[Any]:
    """Those of ``literals`` that a value of ``type`` can equal, as literals of that type; both zeros for one."""
    questions = [asked(type, "==", literal, column) for literal in literals]
    values = [question[1] for question in questions if not isinstance(question, bool)]
    if isinstance(type, T.FloatType | T.DoubleType) and 0 in values:
        values = [value for value in values if value != 0] + [0.0, -0.0]
    return values


def spark_value(value: Any) -> Any:
    """A literal of :func:`asked` as Spark takes it, for its functions."""
    from pqext.spark.pushdown.guards import spark_literal

    return spark_literal(value)


def _python(scalar: pa.Scalar, arrow: pa.DataType) -> Any:
    """The scalar that stores a value of ``arrow`` as Python's value of that type, or a column where there is none."""
    if pa.types.is_date(arrow):
        day = date(1970, 1, 1) + timedelta(days=scalar.as_py())
        return day if day.year >= FIRST_YEAR else F.lit(day.isoformat()).cast("date")
    if pa.types.is_time(arrow):
        return (_EPOCH + timedelta(microseconds=scalar.as_py())).time()
    if pa.types.is_duration(arrow):
        return timedelta(microseconds=scalar.as_py())
    if not pa.types.is_timestamp(arrow):
        return scalar.as_py()
    micros = scalar.as_py()
    try:
        wall = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        wall = None
    if arrow.tz is None:
        if wall is None:
            raise TypeError(f"Spark has no literal for a timestamp {micros} microseconds from 1970 without timezone")
        return F.lit(wall.isoformat(" ")).cast("timestamp_ntz")
    return (
        wall.replace(tzinfo=UTC) if wall is not None and wall.year >= FIRST_YEAR else F.timestamp_micros(F.lit(micros))
    )
