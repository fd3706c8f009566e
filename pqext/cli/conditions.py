"""Filters as text: what Python's own expressions of :func:`pqext.col` look like, and shorter forms of them.

    mag >= 5 and place is not None
    event.variant("$.mag", "double") > 5 and geom.intersects((170, -30, -170, -10))
    col("a b") in (1, 2) or not (day < date("2024-01-01"))

Text is parsed, never run: names are columns, and only what is listed here is understood. The JSON text that
:func:`pqext.filters.to_json` gives is taken too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NoReturn

from pqext.dataset.expressions import Column, Expression, Operand, all_of, any_of, col
from pqext.dataset.serialise import from_json

MAX_LENGTH = 10_000

_QUESTIONS = (
    "isin", "is_null", "is_not_null", "is_nan", "variant", "intersects", "within", "contains", "disjoint", "touches",
    "crosses", "overlaps", "covers", "covered_by", "geom_equals", "dwithin",
)
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}


def parse_condition(text: str) -> Expression:
    """The expression that ``text`` stands for; ``ValueError`` says what is not understood.

    >>> str(parse_condition('mag >= 5 and not place is None'))
    '(mag >= 5 and not (place is null))'
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"the filter has more than {MAX_LENGTH:,} characters")
    if text.lstrip().startswith("{"):
        return from_json(text)
    try:
        tree = ast.parse(text.strip(), mode="eval")
        found = _value(tree.body)
    except SyntaxError as error:
        raise ValueError(f"the filter {text!r} cannot be read: {error.msg}, at character {error.offset}") from None
    except (RecursionError, MemoryError):
        raise ValueError("the filter nests too deep") from None
    except TypeError as error:
        raise ValueError(f"the filter {text!r}: {error}") from None
    if not isinstance(found, Expression):
        raise ValueError(f"the filter {text!r} is no condition: compare a column, as in mag >= 5")
    return found


def _value(node: ast.expr) -> Any:
    """A condition, a column, or a literal."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return col([name])
        case ast.Attribute(value=of, attr=name):
            above = _value(of)
            if not isinstance(above, Column):
                _refuse(node)
            return col([*above.path, name])
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            return tuple(map(_value, items))
        case ast.UnaryOp(op=ast.USub(), operand=operand) if isinstance(operand, ast.Constant):
            return -_number(operand)
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            return ~_condition(operand)
        case ast.BoolOp(op=operator, values=parts):
            conditions = [_condition(part) for part in parts]
            return all_of(conditions) if isinstance(operator, ast.And) else any_of(conditions)
        case ast.BinOp(op=ast.BitAnd(), left=left, right=right):
            return _condition(left) & _condition(right)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _condition(left) | _condition(right)
        case ast.Compare():
            return _comparison(node)
        case ast.Call(func=function, args=arguments, keywords=[]):
            return _call(function, arguments)
    raise _not_understood(node)


def _comparison(node: ast.Compare) -> Expression:
    found: Expression | None = None
    sides = [node.left, *node.comparators]
    for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
        one = _compared(node, _value(left), operator, _value(right))
        found = one if found is None else found & one
    assert found is not None
    return found


def _compared(node: ast.Compare, left: Any, operator: ast.cmpop, right: Any) -> Expression:
    made: Any = None
    if isinstance(left, Operand) and isinstance(operator, ast.In | ast.NotIn) and isinstance(right, tuple):
        among = left.isin(right)
        return among if isinstance(operator, ast.In) else ~among
    if isinstance(left, Operand) and right is None:
        if isinstance(operator, ast.Is | ast.Eq):
            return left.is_null()
        if isinstance(operator, ast.IsNot | ast.NotEq):
            return left.is_not_null()
    if type(operator) in _COMPARE and (isinstance(left, Operand) or isinstance(right, Operand)):
        made = _COMPARE[type(operator)](left, right)
    if not isinstance(made, Expression):
        _refuse(node)
    return made


def _call(function: ast.expr, arguments: list[ast.expr]) -> Any:
    given = [_value(argument) for argument in arguments]
    match function:
        case ast.Name(id="col") if len(given) == 1 and isinstance(given[0], str | tuple):
            return col(given[0])
        case ast.Name(id="date" | "timestamp" | "decimal" as name) if len(given) == 1 and isinstance(given[0], str):
            read: dict[str, Callable[[str], Any]] = {
                "date": date.fromisoformat, "timestamp": datetime.fromisoformat, "decimal": _decimal
            }
            return read[name](given[0])
        case ast.Attribute(value=of, attr=name) if name in _QUESTIONS:
            asked = _value(of)
            if isinstance(asked, Operand) and hasattr(asked, name):
                return getattr(asked, name)(*(_geometry(name, value) for value in given))
    raise _not_understood(function)


def _geometry(question: str, value: Any) -> Any:
    """A geometry's WKT read, for questions about geometries."""
    if not isinstance(value, str) or question in ("variant", "isin"):
        return value
    import shapely

    try:
        return shapely.from_wkt(value)
    except shapely.errors.GEOSException as error:
        raise ValueError(f"{value!r} is no WKT: {error}") from None


def _condition(node: ast.expr) -> Expression:
    found = _value(node)
    if not isinstance(found, Expression):
        written = ast.unparse(node)
        if isinstance(node, ast.Constant):
            hint = "join comparisons by 'and' and 'or', or put each in parentheses"
            raise ValueError(f"{written!r} is no condition: {hint}")
        raise ValueError(f"{written!r} is no condition: compare it, as in {written} == True")
    return found


def _number(node: ast.Constant) -> Any:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        _refuse(node)
    return node.value


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        raise ValueError(f"{text!r} is no decimal number") from None


def _refuse(node: ast.expr) -> NoReturn:
    raise _not_understood(node)


def _not_understood(node: ast.expr) -> ValueError:
    return ValueError(
        f"{ast.unparse(node)!r} is not understood in a filter; there are comparisons, in, is None, and, or, not, "
        f"col(), date(), timestamp(), decimal() and a column's {', '.join(_QUESTIONS)}"
    )
