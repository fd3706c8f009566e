"""Map literals, types and operators of SQL text, and locate nodes in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from math import isinf
from typing import Any
from uuid import UUID

import pyarrow as pa
from sqlglot import Token, TokenType, exp

from pqext.core.base.suggestions import did_you_mean
from pqext.core.base.text import escape_text
from pqext.core.format.predicate import Operator
from pqext.dataset.expressions import ArithmeticOperator
from pqext.dataset.expressions.literals import MAX_EXPONENT, duration_literal, timestamp_literal, timestamp_nanoseconds
from pqext.variant.shredding.schema import quote_name

_Kind = exp.DataType.Type
_TYPES: dict[str, str] = {
    "BOOLEAN": "boolean", "TINYINT": "int8", "SMALLINT": "int16", "INT": "int32", "BIGINT": "int64",
    "UTINYINT": "uint8", "USMALLINT": "uint16", "UINT": "uint32", "UBIGINT": "uint64", "FLOAT": "float",
    "DOUBLE": "double", "VARCHAR": "string", "TEXT": "string", "CHAR": "string", "NVARCHAR": "string",
    "BINARY": "binary", "VARBINARY": "binary", "BLOB": "binary", "DATE": "date", "DATETIME": "timestamp_ntz",
    "TIMESTAMP": "timestamp_ntz", "TIMESTAMPNTZ": "timestamp_ntz", "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp", "TIME": "time64[us]", "UUID": "uuid", "VARIANT": "variant",
}  # fmt: skip
"""sqlglot's type names, and the corresponding names in casts."""
_TYPES_TOLD = (
    "BIGINT, BINARY, BOOLEAN, DATE, DECIMAL(precision, scale), DOUBLE, FLOAT, INT, SMALLINT, STRING, TIME, "
    "TIMESTAMP (without a zone), TIMESTAMPTZ (an instant), TINYINT, UUID, VARIANT"
)
_EXACT = Context(prec=400)
_AROUND = 60
"""Characters shown on both sides of a position in errors."""
_SECOND = 1_000_000_000
_UNITS = {
    **dict.fromkeys(("us", "usec", "microsecond"), 1_000),
    **dict.fromkeys(("ms", "msec", "millisecond"), 1_000_000),
    **dict.fromkeys(("s", "sec", "second"), _SECOND),
    **dict.fromkeys(("m", "min", "minute"), 60 * _SECOND),
    **dict.fromkeys(("h", "hr", "hour"), 3_600 * _SECOND),
    **dict.fromkeys(("d", "day"), 86_400 * _SECOND),
    **dict.fromkeys(("w", "week"), 7 * 86_400 * _SECOND),
}
"""Nanoseconds in each unit."""
_NO_LENGTH = ("mon", "month", "quarter", "y", "year", "decade", "century", "millennium")
_PART = re.compile(
    r"\s*(?:(?P<sign>[+-]?)(?P<hours>\d+):(?P<minutes>\d\d)(?::(?P<seconds>\d\d(?:\.\d{1,9})?))?"
    r"|(?P<number>[+-]?\d+(?:\.\d+)?)\s*(?P<unit>[a-z]+))",
    re.ASCII | re.I,
)
_MOST = 200
"""Maximum length of a duration in characters."""


def parse_hexadecimal(digits: str) -> bytes:
    """Parse the digits of a binary literal. Raises ``ValueError`` if they are not pairs of hexadecimal digits."""
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise ValueError("a binary literal has two hexadecimal digits per byte, as in x'00ff'") from None


def parse_number(text: str) -> int | float | Decimal:
    """Parse a number as an integer, as a float if formatting it restores the number, or otherwise as a decimal.

    Text with an exponent is always a float.
    """
    if len(text) > MAX_EXPONENT:
        raise ValueError(f"a number has more than {MAX_EXPONENT:,} characters")
    if text.isdecimal():
        return int(text)
    value = float(text)
    if "e" in text.lower():
        return _check_finite(value, text)
    exact = Decimal(text)
    return value if Decimal(repr(value)) == exact else exact


def _check_finite(value: float, text: str) -> float:
    """Return ``value``; raise ``ValueError`` if the number in ``text`` exceeds the range of double."""
    if isinf(value) and "inf" not in text.lower():
        raise ValueError(f"{text} exceeds the range of double")
    return value


def excerpt(text: str, offset: int) -> str:
    """Return the text around a position, with a caret below the position."""
    start = max(0, offset - _AROUND)
    before, after = escape_text(text[start:offset]), escape_text(text[offset : offset + _AROUND])
    dots = "..." if start else ""
    return f"\n  {dots}{before}{after}\n  {' ' * len(dots + before)}^"


@contextmanager
def list_sql_types() -> Iterator[None]:
    """Context manager in which errors about unknown types list the names of SQL types."""
    try:
        yield
    except ValueError as error:
        unknown, separator, _ = str(error).partition(" is not a type")
        if not separator:
            raise
        meant = did_you_mean(unknown, re.findall("[A-Z]+", _TYPES_TOLD))
        there = f"{meant} The" if meant else "; the"
        raise ValueError(f"{unknown} is not a type{there} types are {_TYPES_TOLD}") from None


def type_of_cast(type: exp.DataType) -> str:
    """Return the name of a type for casts. Raises ``ValueError`` if casts do not support the type."""
    from pqext.variant.access.targets import type_name

    name = type.this.value if isinstance(type.this, _Kind) else str(type.this)
    digits = [int(str(param.this.this)) for param in type.expressions if isinstance(param, exp.DataTypeParam)]
    if name == "DECIMAL":
        if len(digits) != 2:
            raise ValueError("a decimal type requires precision and scale, as in decimal(9, 2)")
        return str(type_name(f"decimal({digits[0]},{digits[1]})"))
    if name in _TYPES and not type.expressions:
        return str(type_name(_TYPES[name]))
    with list_sql_types():
        return str(type_name(_format_nested_type(type) if type.args.get("nested") else escape_text(type.sql()).lower()))


def _format_nested_type(type: exp.DataType) -> str:
    """Format a list, map or struct type as DDL; field names keep their case."""
    parts = []
    for part in type.expressions:
        if isinstance(part, exp.ColumnDef) and isinstance(part.args.get("kind"), exp.DataType):
            parts.append(f"{quote_name(str(part.this.this))}: {type_of_cast(part.args['kind'])}")
        elif isinstance(part, exp.DataType):
            parts.append(type_of_cast(part))
        else:
            raise ValueError(f"{escape_text(part.sql())} is not a struct field with a type; write struct<a: bigint>")
    return f"{str(type.this.value).lower()}<{', '.join(parts)}>"


def cast_literal(value: Any, type: exp.DataType) -> Any:
    """Convert a literal to another type, as in ``date '2024-01-01'``. Raises ``ValueError`` if the text is invalid."""
    name = type.this.value if isinstance(type.this, _Kind) else str(type.this)
    kind = _TYPES.get(name, name.lower())
    if kind == "decimal":
        return _cast_to_decimal(value, type)
    if kind in _OF_TEXT and isinstance(value, str):
        try:
            return _OF_TEXT[kind](value)
        except ValueError as error:
            if kind not in _EXAMPLES or not str(error).startswith(("Invalid isoformat", "badly formed")):
                raise
            example = _EXAMPLES[kind]
            raise ValueError(f"{value!r} is not a {example.partition(' ')[0]}; write {example}") from None
    if kind == "string" and isinstance(value, str):
        return value
    if kind.startswith(("int", "uint")) and isinstance(value, int | str):
        return int(value)
    if kind == "float":
        return _check_finite(pa.scalar(float(value), pa.float32()).as_py(), str(value))
    if kind == "double":
        return _check_finite(float(value), str(value))
    if kind == "boolean" and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    raise ValueError(f"{value!r} is not a literal of type {escape_text(type.sql()).lower()}")


def _cast_to_decimal(value: Any, type: exp.DataType) -> Decimal:
    try:
        result = Decimal(repr(value) if isinstance(value, float) else value)
    except ArithmeticError:
        raise ValueError(f"{value!r} is not a decimal number") from None
    digits = [int(str(param.this.this)) for param in type.expressions if isinstance(param, exp.DataTypeParam)]
    if len(digits) == 2 and result.is_finite():
        result = result.quantize(Decimal(1).scaleb(-digits[1]), ROUND_HALF_UP, _EXACT)
    return result


def _parse_timestamp(text: str) -> datetime | pa.Scalar:
    """Parse a timestamp with up to nine fractional digits. The result is in UTC if the text has an offset."""
    whole, dot, rest = text.strip().partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    try:
        result = datetime.fromisoformat(whole + (dot + digits[:6] if digits else "") + rest[len(digits) :])
    except ValueError as error:
        if "offset" in str(error):
            raise ValueError(f"the UTC offset of {text!r} is out of range") from None
        raise
    if result.tzinfo is not None:
        result = result.astimezone(UTC)
    if len(digits) <= 6:
        return result
    if len(digits) > 9:
        raise ValueError(f"{text!r} has more than nine fractional digits")
    return timestamp_literal(timestamp_nanoseconds(result) + int(digits[6:].ljust(3, "0")), result.tzinfo is not None)


def _parse_instant(text: str) -> datetime | pa.Scalar:
    result = _parse_timestamp(text)
    if isinstance(result, datetime):
        return result if result.tzinfo is not None else result.replace(tzinfo=UTC)
    return result if result.type.tz is not None else timestamp_literal(timestamp_nanoseconds(result), True)


_OF_TEXT: dict[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "time64[us]": time.fromisoformat,
    "timestamp_ntz": _parse_timestamp,
    "timestamp": _parse_instant,
    "uuid": UUID,
    "binary": str.encode,
}
_EXAMPLES = {
    "uuid": "uuid '123e4567-e89b-12d3-a456-426614174000'",
    "date": "date '2026-05-31'",
    "time64[us]": "time '23:59:59'",
    "timestamp_ntz": "timestamp '2026-05-31 23:59:59'",
    "timestamp": "timestamptz '2026-05-31 23:59:59Z'",
}


def start_of(node: exp.Expression) -> int | None:
    """Return the offset of a node in the text; None if sqlglot does not record it."""
    return min((int(item.meta["start"]) for item in node.walk() if "start" in item.meta), default=None)


def parse_null(parser: Any, token: Token) -> exp.Null:
    """Parse the keyword null and record its position."""
    node = exp.Null()
    node.meta["start"] = token.start
    return node


def token_offset(text: str, attributes: dict[str, Any]) -> int:
    """Compute the offset of a token. sqlglot records only the line and column of the token's last character."""
    lines = text.splitlines(keepends=True)[: int(attributes.get("line") or 1) - 1]
    end = sum(map(len, lines)) + int(attributes.get("col") or 1)
    return max(0, min(end, len(text)) - max(1, len(attributes.get("highlight") or "")))


COMPARE: dict[type[exp.Expression], Operator] = {
    exp.EQ: "==", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip


def is_right_operand(node: exp.Expression) -> bool:
    """Return whether a node is on the right-hand side of a comparison, where a literal is expected."""
    return isinstance(node.parent, tuple(COMPARE)) and node.arg_key == "expression"


SWAPPED: dict[Operator, Operator] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
ARITHMETIC: dict[type[exp.Expression], ArithmeticOperator] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%",
}  # fmt: skip


def convert_interval(node: exp.Interval) -> timedelta | pa.Scalar:
    """Convert an interval to a duration. Raises ``ValueError`` for months and years, which have no fixed length."""
    number, unit = node.this, node.args.get("unit")
    while isinstance(number, exp.Paren):
        number = number.this
    sign = ""
    if isinstance(number, exp.Neg):
        sign, number = "-", number.this
    if not isinstance(number, exp.Literal) or not isinstance(unit, exp.Var | None):
        raise ValueError("a duration must be written as interval '1 day 2 hours' or interval 90 minutes")
    text = sign + str(number.this)
    return parse_duration(text if unit is None else f"{text} {unit.this}")


def restore_interval(node: Any, tokens: Sequence[Token]) -> Any:
    """Return the interval node with the complete text of ``tokens``, because sqlglot may drop the end of the text."""
    texts = [token for token in tokens if token.token_type == TokenType.STRING]
    if not isinstance(node, exp.Interval) or len(texts) != 1:
        return node
    literal = exp.Literal.string(texts[0].text)
    literal.meta["start"] = texts[0].start
    return exp.Interval(this=literal, unit=node.args.get("unit") if tokens[-1] is not texts[0] else None)


def parse_duration(text: str) -> timedelta | pa.Scalar:
    """Parse a duration such as ``1 day 2 hours`` or ``01:30:00``.

    >>> parse_duration("1 day -01:30:00")
    datetime.timedelta(seconds=81000)
    """
    result, at = Fraction(0), 0
    whole = text.strip()
    while at < len(whole):
        part = _PART.match(whole, at) if len(whole) <= _MOST else None
        if part is None:
            raise ValueError(f"{escape_text(whole[:_MOST])!r} is not a duration; write interval '1 day 2 hours'")
        if part["number"] is None:
            result += _clock_nanoseconds(part)
        else:
            result += Fraction(part["number"]) * _nanoseconds(part["unit"])
        at = part.end()
    if not whole or result.denominator != 1:
        raise ValueError("a duration must be a whole number of nanoseconds, as in interval '1.5 seconds'")
    return duration_literal(result.numerator)


def _clock_nanoseconds(part: re.Match[str]) -> Fraction:
    seconds = (int(part["hours"]) * 60 + int(part["minutes"])) * 60 + Fraction(part["seconds"] or 0)
    return seconds * (-_SECOND if part["sign"] == "-" else _SECOND)


def _nanoseconds(unit: str) -> int:
    name = unit.lower()
    for item in (name, name.removesuffix("s")):
        if item in _UNITS:
            return _UNITS[item]
        if item in _NO_LENGTH:
            raise ValueError(f"a duration cannot use {escape_text(unit)}, whose length varies; use days")
    raise ValueError(
        f"{escape_text(unit)!r} is not a unit of time; units are weeks, days, hours, minutes, seconds, ms, us"
    )
