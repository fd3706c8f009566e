"""Values computed of the columns of one row, on Python objects, and patterns of text by Python's own expressions."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from pqext.dataset.expressions import Arithmetic, Cast, Column, Constant, ListLength, Matches

EXACT = Context(prec=400)


def value(operand: Any, batch: pa.RecordBatch, row: int) -> Any:
    """The value of an operand in one row: a Python object, a scalar of a column that is no number, None for null."""
    match operand:
        case Column():
            scalar: Any = batch.column(operand.path[0])[row]
            for name in operand.path[1:]:
                scalar = scalar[name] if scalar.is_valid else None
                if scalar is None:
                    return None
            return scalar if scalar.is_valid else None
        case Constant():
            return operand.value
        case ListLength():
            found = value(operand.operand, batch, row)
            return None if found is None else len(found)
        case Cast():
            return cast(number(value(operand.operand, batch, row)), operand.type)
        case Arithmetic():
            sides = [number(value(one, batch, row)) for one in operand.operands]
            return None if None in sides else computed(operand.operator, *sides)
    raise TypeError(operand)


def number(found: Any) -> Any:
    """An Arrow scalar as the number that is computed with: an int, a Decimal (of uint64 too) or a float."""
    if not isinstance(found, pa.Scalar):
        return found
    plain = found.as_py()
    return Decimal(plain) if pa.types.is_uint64(found.type) else plain


def computed(operator: str, left: Any, right: Any = None) -> Any:
    """SQL's arithmetic: None for what has no result."""
    if right is None:
        return computed("-", 0, left) if isinstance(left, int) else -left
    if isinstance(left, float) and isinstance(right, Decimal):
        left, right = meant(left, right)
    elif isinstance(right, float) and isinstance(left, Decimal):
        right, left = meant(right, left)
    in_doubles = isinstance(left, float) or isinstance(right, float)
    if operator == "/" or in_doubles:
        with np.errstate(all="ignore"):
            one, other = np.float64(left), np.float64(right)
            functions = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod}
            found = functions[operator](one, other)
        return float(found)
    if operator == "%":
        return EXACT.remainder(Decimal(left), Decimal(right)) if right else None
    exact = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}[operator](Decimal(left), Decimal(right))
    if isinstance(left, int) and isinstance(right, int):
        return int(exact) if -(2**63) <= exact < 2**63 else None
    return exact


def meant(literal: float, beside: Decimal) -> tuple[Any, Any]:
    """A float and a decimal as they are computed with; drawn cases have floats beside decimals as literals only."""
    return (Decimal(repr(literal)), beside) if math.isfinite(literal) else (literal, float(beside))


def cast(found: Any, type: str) -> Any:
    """A number or a text as another type."""
    if found is None or isinstance(found, str):
        return found if type == "string" else None  # no drawn text is a number
    if type == "double":
        return float(found)
    if isinstance(found, float) and not math.isfinite(found):
        return None
    if type.startswith("decimal"):
        rounded = Decimal(repr(found) if isinstance(found, float) else found).quantize(
            Decimal("0.1"), ROUND_HALF_UP, Context(prec=400)
        )
        return rounded if abs(rounded) < 10**8 else None
    bits = int(type[3:])
    return int(found) if -(2 ** (bits - 1)) <= int(found) < 2 ** (bits - 1) else None


def matches(node: Matches, found: Any) -> bool:
    """Does a text match? By Python's string methods, and for LIKE by a regular expression."""
    if not isinstance(node.pattern, str) or node.how not in ("like", "ilike"):
        found = found.as_py() if isinstance(found, pa.Scalar) else found
        pattern: Any = node.pattern
        if node.how == "starts_with":
            return bool(found.startswith(pattern))
        return bool(found.endswith(pattern)) if node.how == "ends_with" else pattern in found
    expression, characters = "", iter(node.pattern)
    for one in characters:
        if one == node.escape:
            expression += re.escape(next(characters))
        else:
            expression += ".*" if one == "%" else "." if one == "_" else re.escape(one)
    flags = re.DOTALL | (re.IGNORECASE if node.how == "ilike" else 0)
    return re.fullmatch(expression, found.as_py() if isinstance(found, pa.Scalar) else found, flags) is not None
