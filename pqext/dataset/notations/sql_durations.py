"""Durations in SQL text: ``interval '1 day 2 hours'``, ``interval 90 minutes``, ``interval '01:30:00'``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa
from sqlglot import Token, TokenType, exp

from pqext.core.base.text import visible
from pqext.dataset.expressions.literals import duration_literal

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
"""Characters of a duration."""


def duration(node: exp.Interval) -> timedelta | pa.Scalar:
    """The duration of an interval; ``ValueError`` for months and years, whose length is not fixed."""
    number, unit = node.this, node.args.get("unit")
    while isinstance(number, exp.Paren):
        number = number.this
    sign = ""
    if isinstance(number, exp.Neg):
        sign, number = "-", number.this
    if not isinstance(number, exp.Literal) or not isinstance(unit, exp.Var | None):
        raise ValueError("a duration is written as interval '1 day 2 hours' or interval 90 minutes")
    text = sign + str(number.this)
    return parse_duration(text if unit is None else f"{text} {unit.this}")


def as_written(node: Any, tokens: Sequence[Token]) -> Any:
    """Return sqlglot's node of an interval with the complete text of its ``tokens``, whose end sqlglot may drop."""
    texts = [token for token in tokens if token.token_type == TokenType.STRING]
    if not isinstance(node, exp.Interval) or len(texts) != 1:
        return node
    literal = exp.Literal.string(texts[0].text)
    literal.meta["start"] = texts[0].start
    return exp.Interval(this=literal, unit=node.args.get("unit") if tokens[-1] is not texts[0] else None)


def parse_duration(text: str) -> timedelta | pa.Scalar:
    """The duration of a text such as ``1 day 2 hours`` and ``01:30:00``.

    >>> parse_duration("1 day -01:30:00")
    datetime.timedelta(seconds=81000)
    """
    found, at = Fraction(0), 0
    whole = text.strip()
    while at < len(whole):
        part = _PART.match(whole, at) if len(whole) <= _MOST else None
        if part is None:
            raise ValueError(f"{visible(whole[:_MOST])!r} is not a duration; write interval '1 day 2 hours'")
        found += _clock(part) if part["number"] is None else Fraction(part["number"]) * _nanoseconds(part["unit"])
        at = part.end()
    if not whole or found.denominator != 1:
        raise ValueError("a duration counts whole nanoseconds, as in interval '1.5 seconds'")
    return duration_literal(found.numerator)


def _clock(part: re.Match[str]) -> Fraction:
    seconds = (int(part["hours"]) * 60 + int(part["minutes"])) * 60 + Fraction(part["seconds"] or 0)
    return seconds * (-_SECOND if part["sign"] == "-" else _SECOND)


def _nanoseconds(unit: str) -> int:
    name = unit.lower()
    for one in (name, name.removesuffix("s")):
        if one in _UNITS:
            return _UNITS[one]
        if one in _NO_LENGTH:
            raise ValueError(f"a duration has no {visible(unit)}, whose length is not fixed: write days")
    raise ValueError(f"{visible(unit)!r} is not a unit of time; units are weeks, days, hours, minutes, seconds, ms, us")
