"""Infer the types of VARIANT values from the literals in comparisons, and check the literals of arithmetic."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from pqext.dataset.expressions.conditions import literal_text
from pqext.dataset.expressions.literals import Literal, is_null, to_literal

UNTYPED = "variant"
"""The type of a value without a cast."""
_EXACT_INTEGERS = 1 << 53
"""Integers below this value are exact as doubles."""


def infer_type(literal: Any) -> str | None:
    """Return the type to which a VARIANT is cast for comparison with a literal; None if the literal is ambiguous.

    It is ``double`` for floats and for integers that a double represents exactly.

    >>> infer_type("x"), infer_type(5), infer_type(True)
    ('string', 'double', 'boolean')
    """
    match to_literal(literal):
        case bool():
            return "boolean"
        case float():
            return "double"
        case int(number) if abs(number) < _EXACT_INTEGERS:
            return "double"
        case str():
            return "string"
        case datetime(tzinfo=zone):
            return "timestamp_ntz" if zone is None else "timestamp"
        case date():
            return "date"
    return None


def infer_common_type(values: Iterable[Any]) -> str | None:
    """Return the type to which a VARIANT is cast for comparison with a list of literals; None if ambiguous.

    The type is ``string`` if all literals are null. Raises ``ValueError`` if the types of the literals differ.
    """
    types = {infer_type(value) for value in values if not is_null(value)}
    if len(types) > 1 and None not in types:
        raise ValueError("the list contains literals of several types; pass a type to variant(), or use equal types")
    return types.pop() if len(types) == 1 else "string" if not types else None


def suggest_type(literal: Any) -> str:
    """Return a type to suggest if :func:`infer_type` returns None. ``literal`` is None for a column."""
    value = None if literal is None else to_literal(literal)
    match value:
        case int():
            return "bigint" if abs(value) < 1 << 63 else "decimal(38, 0)"
        case Decimal():
            return f"decimal(38, {min(max(-int(value.as_tuple().exponent), 0), 38)})"
        case bytes():
            return "binary"
        case UUID():
            return "uuid"
        case time():
            return "time"
        case pa.Scalar() if not pa.types.is_duration(value.type):
            return str(value.type)
    return "double"


def check_number(value: Literal) -> None:
    """Raise ``TypeError`` if a literal is not a number."""
    if isinstance(value, bool | str | bytes) or not isinstance(value, int | float | Decimal):
        raise TypeError(f"arithmetic requires numbers, not {literal_text(value)}")
