"""Clauses that pqext understands otherwise than Spark, which therefore evaluates them alone, on every row.

Spark computes with literals in their own decimal and integer types, ``isnan`` of null is false to it, and it rejects or
cuts literals that Python reads. A clause in doubt counts as different.
"""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import types as T
from sqlglot import exp

from pqext.dataset.notations.sql import parsed
from pqext.dataset.notations.sql_functions import NAN
from pqext.dataset.notations.sql_literals import ARITHMETIC
from pqext.spark.pushdown.sql_clauses import with_standard_quotes

TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-](0\d|1[0-7]):[0-5]\d|[+-]18:00)?)?")
"""Texts that Spark and Python read as the same date or timestamp."""
_TIME_OF_PYTHON = re.compile(r":\d\d(,|\.\d{7})")
"""A comma before the fraction, or a fraction that Spark cuts to microseconds."""
_NAME_OF_DECIMAL = re.compile(r"\b(dec|decimal|numeric)\b", re.I)
_BITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPLTZ", "TIMESTAMPTZ")


def differs_in_spark(text: str) -> bool:
    """Whether the text of a condition may mean something else to Spark.

    >>> differs_in_spark("n = 0.1 + 0.2"), differs_in_spark("n + 0.1 = 0.2")
    (True, False)
    """
    try:
        tree = parsed(with_standard_quotes(text))
    except ValueError:
        return False  # pqext does not evaluate it, nor any bound of it
    return any(_differs(node, text) for node in tree.walk())


def names_within(type: T.DataType) -> list[str]:
    """Names of the fields of a type at any depth."""
    match type:
        case T.StructType():
            return [name for field in type for name in (field.name, *names_within(field.dataType))]
        case T.ArrayType():
            return names_within(type.elementType)
        case T.MapType():
            return [*names_within(type.keyType), *names_within(type.valueType)]
    return []


def _differs(node: Any, text: str) -> bool:
    match node:
        case exp.Literal(is_string=True):
            return _TIME_OF_PYTHON.search(node.this) is not None
        case exp.Cast():
            return _is_of_literals(node) and not _is_same_cast(node, text)
        case exp.Neg():
            return _is_of_literals(node) and not isinstance(node.this, exp.Literal | exp.Cast)
        case exp.Anonymous():
            name, texts = str(node.this).lower(), [one.this for one in node.expressions if isinstance(one, exp.Literal)]
            if name in NAN:
                return not _is_alone(node)
            return name in ("date", "timestamp", "timestamptz") and any(TIME.fullmatch(text) is None for text in texts)
    return type(node) in ARITHMETIC and _is_of_literals(node)


def _is_of_literals(node: Any) -> bool:
    return node.find(exp.Identifier) is None


def _is_alone(node: Any) -> bool:
    """Whether only AND and OR join a part of a condition, for which null is as good as false."""
    while node.parent is not None:
        node = node.parent
        if not isinstance(node, exp.Paren | exp.And | exp.Or):
            return False
    return True


def _is_same_cast(node: exp.Cast, text: str) -> bool:
    """Whether a literal that is cast, or that ends with the letter of its type, has the same value in Spark."""
    literal, name = node.this, str(getattr(node.to.this, "value", node.to.this))
    if not isinstance(literal, exp.Literal) or node.to.expressions:
        return False
    if literal.is_string:
        return name == "TEXT" or (name in _TIMES and TIME.fullmatch(literal.this) is not None)
    if name in _BITS:
        return str(literal.this).isdecimal() and int(literal.this) < 1 << _BITS[name]
    if name == "DECIMAL":
        return _NAME_OF_DECIMAL.search(text) is None  # of a number such as 1.5BD
    return name in ("DOUBLE", "FLOAT")
