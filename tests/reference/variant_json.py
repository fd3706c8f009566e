"""JSON to variants and variants to JSON, one value at a time, with the standard library doing the work."""

from __future__ import annotations

import base64
import json
import math
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from reference.variant_value import DECIMALS, INTEGERS, Value


class _Number(str):
    """The text of a number."""


class _Fields(list[tuple[str, Any]]):
    """An object's fields as written."""


def parse(text: str, duplicate_keys: str = "error") -> Value:
    """The value that :func:`pqext.variant.parse_json` must give."""
    loaded = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_refuse, object_pairs_hook=_Fields)
    return _value(loaded, duplicate_keys)


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _value(loaded: Any, duplicate_keys: str) -> Value:
    if isinstance(loaded, _Fields):
        fields: dict[str, Value] = {}
        for name, child in loaded:
            value = _value(child, duplicate_keys)
            if name in fields and duplicate_keys == "error":
                raise ValueError(name)
            if name not in fields or duplicate_keys == "last":
                fields[name] = value
        return "object", fields
    if isinstance(loaded, list):
        return "array", [_value(child, duplicate_keys) for child in loaded]
    if isinstance(loaded, _Number):
        return number(loaded)
    if isinstance(loaded, str):
        loaded.encode()  # refuses surrogates
        return "string", loaded
    return {None: "null", True: "true", False: "false"}[loaded], None


def number(text: str) -> Value:
    """A number's narrowest exact type, a double where none is, as for the -0.0 that decimals lack."""
    if "e" not in text.lower():
        _, digits, exponent = Decimal(text).as_tuple()
        assert isinstance(exponent, int)
        scale = -exponent
        if scale and text.startswith("-") and not any(digits):
            return "double", -0.0
        unscaled = int("".join(map(str, digits))) * (-1 if text.startswith("-") else 1)
        if scale == 0:
            for kind in ("int8", "int16", "int32", "int64"):
                if -(256 ** INTEGERS[kind]) // 2 <= unscaled < 256 ** INTEGERS[kind] // 2:
                    return kind, unscaled
        for kind, (_, most) in DECIMALS.items():
            if scale <= most and abs(unscaled) < 10**most and (scale or kind == "decimal16"):
                return kind, (unscaled, scale)
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return "double", value


def write(value: Value) -> str:
    """The text that :func:`pqext.variant.to_json` must give."""
    kind, data = value
    if kind == "object":
        names = sorted(data, key=lambda name: name.encode())
        return "{" + ",".join(f"{_quoted(name)}:{write(data[name])}" for name in names) + "}"
    if kind == "array":
        return "[" + ",".join(map(write, data)) + "]"
    if kind in ("null", "true", "false"):
        return kind
    if kind in ("int8", "int16", "int32", "int64"):
        return str(data)
    if kind in DECIMALS:
        with localcontext() as context:
            context.prec = 100
            text = f"{Decimal(data[0]).scaleb(-data[1]):f}"
            return text.rstrip("0").rstrip(".") if "." in text else text
    if kind in ("double", "float"):
        return _float(data, kind == "float")
    if kind == "string":
        return _quoted(data)
    if kind == "binary":
        return f'"{base64.b64encode(data).decode()}"'
    if kind == "uuid":
        return f'"{uuid.UUID(bytes=data)}"'
    if kind == "date":
        return f'"{_date(data)}"'
    if kind == "time_ntz":
        return f'"{_time(data * 1000)}"'
    nanos = data if kind.endswith("nanos") else data * 1000
    days, rest = divmod(nanos, 86_400 * 10**9)
    return f'"{_date(days)} {_time(rest)}{"" if "ntz" in kind else "+00:00"}"'


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _float(data: float, single: bool) -> str:
    if math.isnan(data) or math.isinf(data):
        return '"NaN"' if math.isnan(data) else '"Infinity"' if data > 0 else '"-Infinity"'
    if not single:
        return repr(data)
    sign = "-" if math.copysign(1, data) < 0 else ""
    # numpy finds the shortest digits of a float32, Python the form of a number with these digits.
    return sign + repr(float(np.format_float_scientific(np.float32(abs(data)), unique=True)))


def _date(days: int) -> str:
    # 400 years have as many days wherever they begin: bring the date into the years that Python knows.
    cycles, rest = divmod(days, 146_097)
    moment = date(1970, 1, 1) + timedelta(days=rest)
    year = moment.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{moment:%m-%d}"


def _time(nanos: int) -> str:
    seconds, fraction = divmod(nanos, 10**9)
    text = (datetime.combine(date.min, time.min, UTC) + timedelta(seconds=seconds)).strftime("%H:%M:%S")
    return f"{text}.{fraction:09}".rstrip("0") if fraction else text
