"""Bounds of single values as the JSON of a Delta table's statistics has them.

Spec: Delta Transaction Log Protocol, "Per-file Statistics".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pqext.core.format.metadata import Type
from pqext.core.format.predicate import Value
from pqext.core.schema.types.logical import LeafType
from pqext.metrics.truncation import lower_text, upper_text_with_tie_breaker

TEXT = 32
"""Code points to which text is cut."""

_MILLISECOND = 1_000_000
_LONG = range(-(1 << 63), 1 << 63)
_TEXTS = frozenset({"STRING", "ENUM", "JSON"})


def json_value(leaf: LeafType, value: Value, *, upper: bool) -> Any:
    """A bound of a column as JSON has it, decimals as ``Decimal``; ``None`` where Delta has none for it.

    ``value`` is in the form in which values compare. Text is cut to 32 code points, times to milliseconds, both
    outward. There are no bounds of binary, of types that Delta lacks (times of the day, UUIDs), infinite ones, and
    times outside the years 1 to 9999.
    """
    member = leaf.member
    if leaf.logical is not None and not member:
        return None
    if isinstance(value, bytes):
        if member not in _TEXTS:
            return None
        return upper_text_with_tie_breaker(value, TEXT) if upper else lower_text(value, TEXT)
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) and member != "FLOAT16" else None
    if isinstance(value, Decimal):
        return value if len(value.as_tuple().digits) <= 38 else None
    if member == "DATE":
        return _date(value)
    if member == "TIMESTAMP" or leaf.physical == Type.INT96:
        assert leaf.logical is None or leaf.logical.TIMESTAMP is not None
        utc = leaf.logical is None or (leaf.logical.TIMESTAMP is not None and leaf.logical.TIMESTAMP.isAdjustedToUTC)
        return _timestamp(value, utc, upper)
    return value if member in ("", "INTEGER") and value in _LONG else None


def _date(days: int) -> str | None:
    try:
        return (date(1970, 1, 1) + timedelta(days)).isoformat()
    except OverflowError:
        return None


def _timestamp(nanoseconds: int, utc: bool, upper: bool) -> str | None:
    milliseconds = -(-nanoseconds // _MILLISECOND) if upper else nanoseconds // _MILLISECOND
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("Z" if utc else "")


def dumps(value: Any) -> str:
    """JSON text of dictionaries, text, numbers and decimals, which keep all their digits.

    >>> dumps({"price": Decimal("12345678901234567.10")})
    '{"price":12345678901234567.10}'
    """
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(name)}:{dumps(one)}" for name, one in value.items()) + "}"
    return format(value, "f") if isinstance(value, Decimal) else json.dumps(value)
