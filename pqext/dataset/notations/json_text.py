"""Serialise expressions as JSON without loss: every literal keeps its type and value.

A node is an object: ``{"and": [...]}``, ``{"or": [...]}``, ``{"not": ...}``, or a leaf with ``op``, an operand and its
arguments. An operand is one member: ``{"column": [names]}``, ``{"dotted": ["a.b"]}`` for a dotted name,
``{"variant": {"column": [names], "path": "$.a", "type": "int64"}}``, ``{"arithmetic": {"operator": "+", "of":
[operands]}}``, ``{"cast": {"of": operand, "type": "int64"}}``, ``{"list_length": operand}`` or, within arithmetic,
``{"constant": literal}``. Strings, booleans, integers and finite floats are JSON values; other literals are objects
with one member that names their type. ``variant`` and ``cast`` may have a ``timezone``. Unknown members are an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any, NoReturn, cast, get_args
from uuid import UUID

import pyarrow as pa

from pqext.core.base.suggestions import join_names
from pqext.core.format.predicate import COMPARE
from pqext.dataset.expressions import (
    MAX_DEPTH,
    And,
    Arithmetic,
    ArithmeticOperator,
    Base,
    Cast,
    Column,
    Comparison,
    Constant,
    Expression,
    IsIn,
    IsNotNull,
    IsNull,
    ListLength,
    Matches,
    Not,
    Operand,
    Or,
    Relation,
    Spatial,
    SpatialValue,
    Value,
    VariantField,
)
from pqext.dataset.expressions.literals import (
    Literal,
    duration_literal,
    duration_nanoseconds,
    time_literal,
    time_nanoseconds,
    timestamp_literal,
    timestamp_nanoseconds,
    to_literal,
)
from pqext.dataset.expressions.patterns import ESCAPE, HOW
from pqext.dataset.expressions.spatial import Geometry
from pqext.dataset.expressions.visitors import Visitor, fold
from pqext.geo.predicates.boxes import Operation
from pqext.variant.timezones import find_timezone

_OPERATIONS = frozenset(get_args(Operation))
_OPS = sorted({*COMPARE, *HOW, *_OPERATIONS, "in", "is_null", "is_not_null"})


def to_json(expression: Expression) -> str:
    """Serialise an expression as JSON text without loss: every literal keeps its type and value.

    ``filter=`` of all readers and Spark's ``where=`` accept the text instead of the expression; :func:`from_json`
    parses it.

    Raises:
        TypeError: If the argument is not an expression.

    >>> from pqext import col, filters
    >>> filters.to_json((col("mag") >= 5) & col("name").is_not_null())
    '{"and":[{"op":">=","column":["mag"],"value":5},{"op":"is_not_null","column":["name"]}]}'
    """
    if not isinstance(expression, Expression):
        raise TypeError(f"expected an expression like col('a') > 5, not {type(expression).__name__}")
    return json.dumps(fold(expression, _Writer()), allow_nan=False, separators=(",", ":"))


def from_json(text: str | bytes) -> Expression:
    """Parse the JSON text of an expression, as written by :func:`to_json`.

    >>> from pqext import filters
    >>> str(filters.from_json('{"op":">=","column":["mag"],"value":5}'))
    'mag >= 5'

    Raises:
        ValueError: If the text is not JSON, has unknown, missing or duplicate members or values of the wrong type, or
            nests too deeply.
    """
    try:
        tree = json.loads(text, object_pairs_hook=_to_object, parse_constant=_reject_constant, parse_float=_to_double)
        return _parse_expression(tree, 0)
    except (json.JSONDecodeError, RecursionError, TypeError, OverflowError) as error:
        raise ValueError(f"not the JSON text of an expression: {error}; in Python, write col('a') > 5") from error


def tree_of(value: Value) -> dict[str, Any]:
    """Convert a value to its JSON tree."""
    return _write_operand(value)


def value_of_tree(tree: Any) -> Value:
    """Parse an operand from a JSON tree built by :func:`tree_of`. Raises ``ValueError`` for other trees."""
    try:
        return _parse_operand_object(tree)
    except (RecursionError, TypeError, OverflowError) as error:
        raise ValueError(f"invalid operand: {error}") from error


class _Writer(Visitor[dict[str, Any]]):
    def visit_and(self, operands: list[dict[str, Any]]) -> dict[str, Any]:
        return {"and": operands}

    def visit_or(self, operands: list[dict[str, Any]]) -> dict[str, Any]:
        return {"or": operands}

    def visit_not(self, operand: dict[str, Any]) -> dict[str, Any]:
        return {"not": operand}

    def visit_comparison(self, node: Comparison) -> dict[str, Any]:
        return {"op": node.operator, **_write_operand(node.operand), "value": _write_literal(node.value)}

    def visit_is_in(self, node: IsIn) -> dict[str, Any]:
        values = [*map(_write_literal, node.values), *([None] if node.has_null else [])]
        return {"op": "in", **_write_operand(node.operand), "values": values}

    def visit_relation(self, node: Relation) -> dict[str, Any]:
        return {"op": node.operator, **_write_operand(node.left), "other": _write_operand(node.right)}

    def visit_matches(self, node: Matches) -> dict[str, Any]:
        escape = {} if node.escape == ESCAPE else {"escape": node.escape}
        return {"op": node.how, **_write_operand(node.operand), "pattern": _write_literal(node.pattern), **escape}

    def visit_is_null(self, node: IsNull) -> dict[str, Any]:
        return {"op": "is_null", **_write_operand(node.operand)}

    def visit_is_not_null(self, node: IsNotNull) -> dict[str, Any]:
        return {"op": "is_not_null", **_write_operand(node.operand)}

    def visit_spatial(self, node: Spatial) -> dict[str, Any]:
        geometry = _write_geometry(node.geometry)
        distance = {} if node.distance is None else {"distance": _write_literal(node.distance)}
        return {"op": node.operation, **_write_operand(node.operand), **geometry, **distance}


def _write_operand(operand: Operand) -> dict[str, Any]:
    match operand:
        case VariantField():
            field = {**_write_column(operand.column), "path": operand.path, "type": operand.type}
            return {"variant": {**field, **_write_timezone(operand)}}
        case Arithmetic():
            return {"arithmetic": {"operator": operand.operator, "of": list(map(_write_operand, operand.operands))}}
        case Cast():
            return {"cast": {"of": _write_operand(operand.operand), "type": operand.type, **_write_timezone(operand)}}
        case ListLength():
            return {"list_length": _write_operand(operand.operand)}
        case SpatialValue():
            arguments = [
                _write_operand(item) if isinstance(item, Operand)
                else _write_geometry(item) if isinstance(item, bytes | tuple) else item
                for item in operand.arguments
            ]
            return {"spatial": {"function": operand.function, "arguments": arguments}}
        case Constant():
            return {"constant": _write_literal(operand.value)}
    return _write_column(cast(Column, operand))


def _write_geometry(geometry: Geometry) -> dict[str, Any]:
    if isinstance(geometry, bytes):
        return {"wkb": geometry.hex()}
    return {"box": [_write_literal(side) for side in geometry]}


def _write_column(column: Column) -> dict[str, Any]:
    if column.dotted < 2:
        return {"column": list(column.path)}
    return {"dotted": [".".join(column.path[: column.dotted]), *column.path[column.dotted :]]}


def _write_timezone(operand: Cast | VariantField) -> dict[str, str]:
    return {} if operand.timezone is None else {"timezone": operand.timezone}


def _write_literal(literal: Literal) -> Any:
    match literal:
        case bool() | int() | str():
            return literal
        case float():
            return literal if isfinite(literal) else {"float": repr(literal)}
        case Decimal():
            return {"decimal": str(literal)}
        case bytes():
            return {"bytes": literal.hex()}
        case UUID():
            return {"uuid": str(literal)}
        case datetime():
            return {"timestamp": literal.isoformat()}
        case date():
            return {"date": literal.isoformat()}
        case time():
            return {"time": literal.isoformat()}
        case timedelta():
            return {"duration_ns": duration_nanoseconds(literal)}
    if pa.types.is_duration(literal.type):
        return {"duration_ns": duration_nanoseconds(literal)}
    if pa.types.is_time(literal.type):
        return {"time_ns": time_nanoseconds(literal)}
    return {"timestamp_ns" if literal.type.tz is None else "timestamp_ns_utc": timestamp_nanoseconds(literal)}


def _parse_expression(tree: Any, depth: int) -> Expression:
    if depth > MAX_DEPTH:
        raise ValueError(f"the expression is nested more than {MAX_DEPTH} levels deep")
    if not isinstance(tree, dict):
        raise ValueError("an expression must be a JSON object")
    if tree.keys() == {"and"} or tree.keys() == {"or"}:
        ((word, operands),) = tree.items()
        if not isinstance(operands, list):
            raise ValueError(f"the operands of {word} must be a JSON list, not {type(operands).__name__}")
        joined = tuple(_parse_expression(operand, depth + 1) for operand in operands)
        return And(joined) if word == "and" else Or(joined)
    if tree.keys() == {"not"}:
        return Not(_parse_expression(tree["not"], depth + 1))
    return _parse_leaf(tree)


def _parse_leaf(tree: dict[str, Any]) -> Expression:
    tree = dict(tree)
    name = tree.pop("op", None)
    operand = _parse_operand(tree)
    if not isinstance(name, str):
        raise ValueError("an expression must have an op")
    if name in COMPARE and "other" in tree:
        (other,) = _get_members(tree, "other")
        return Relation(operand, name, _parse_operand_object(other))
    if name in HOW and "pattern" in tree:
        escape = tree.pop("escape", ESCAPE)
        (pattern,) = _get_members(tree, "pattern")
        result = _parse_literal(pattern)
        if not isinstance(result, str | bytes):
            raise ValueError(f"a pattern must be text or bytes, not {type(result).__name__}")
        return Matches(operand, name, result, _check_text(escape))
    if name in COMPARE:
        (value,) = _get_members(tree, "value")
        return Comparison(operand, name, _parse_literal(value))
    if name == "in":
        (values,) = _get_members(tree, "values")
        if not isinstance(values, list):
            raise ValueError("in requires a list of values")
        return IsIn(operand, tuple(None if value is None else _parse_literal(value) for value in values))
    if name in ("is_null", "is_not_null"):
        _get_members(tree)
        return IsNull(operand) if name == "is_null" else IsNotNull(operand)
    if name in _OPERATIONS:
        distance = _check_distance(tree.pop("distance", None)) if name == "dwithin" else None
        return Spatial(operand, cast(Operation, name), _parse_geometry(tree), distance)
    raise ValueError(f"unknown op {name!r}; the ops are {', '.join(_OPS)}")


def _parse_operand_object(tree: Any, depth: int = 0) -> Value:
    """Parse the JSON object of an operand. Raises ``ValueError`` if the object has additional members."""
    if not isinstance(tree, dict):
        raise ValueError("an operand must be a JSON object")
    rest = dict(tree)
    operand = _parse_operand(rest, depth)
    _get_members(rest)
    return operand


def _parse_operand(tree: dict[str, Any], depth: int = 0) -> Value:
    if depth > MAX_DEPTH:
        raise ValueError(f"computed values nest more than {MAX_DEPTH} levels deep")
    name = next((name for name in ("arithmetic", "cast", "list_length", "spatial") if name in tree), None)
    if name is not None:
        return _parse_computed(name, tree.pop(name), depth + 1)
    if "constant" in tree and depth:
        return Constant(_parse_literal(tree.pop("constant")))
    if "variant" in tree:
        field = tree.pop("variant")
        if not isinstance(field, dict):
            raise ValueError("variant requires an object")
        field = dict(field)
        timezone, column = _pop_timezone(field), _pop_column(field)
        path, type = _get_members(field, "path", "type")
        if not isinstance(path, str) or not isinstance(type, str):
            raise ValueError("the path and type of a variant field must be text")
        return VariantField(column, path, type, timezone)
    return _pop_column(tree)


def _parse_computed(name: str, tree: Any, depth: int) -> Value:
    if name == "list_length":
        return ListLength(cast(Base, _parse_operand_object(tree, depth)))
    if not isinstance(tree, dict):
        raise ValueError(f"{name} requires an object")
    if name == "cast":
        timezone = _pop_timezone(tree)
        of, type = _get_members(tree, "of", "type")
        return Cast(_parse_operand_object(of, depth), _check_text(type), timezone)
    if name == "spatial":
        function, arguments = _get_members(tree, "function", "arguments")
        if not isinstance(arguments, list):
            raise ValueError(f"the arguments of spatial must be a JSON list, not {arguments.__class__.__name__}")
        return SpatialValue(_check_text(function), tuple(_parse_spatial_argument(item, depth) for item in arguments))
    operator, operands = _get_members(tree, "operator", "of")
    if not isinstance(operands, list):
        raise ValueError(f"the operands of arithmetic must be a JSON list, not {operands.__class__.__name__}")
    parsed = tuple(_parse_operand_object(operand, depth) for operand in operands)
    return Arithmetic(cast(ArithmeticOperator, operator), parsed)


def _parse_spatial_argument(tree: Any, depth: int) -> Any:
    if not isinstance(tree, dict):
        return tree
    return _parse_geometry(tree) if tree.keys() & {"wkb", "box"} else _parse_operand_object(tree, depth)


def _pop_timezone(tree: dict[str, Any]) -> str | None:
    """Remove the timezone from the JSON object of a cast and return the timezone; None if the object has none."""
    if "timezone" not in tree:
        return None
    name = _check_text(tree.pop("timezone"))
    find_timezone(name)
    return name


def _pop_column(tree: dict[str, Any]) -> Column:
    """Remove the column from the JSON object of an operand and return the column."""
    is_dotted = "dotted" in tree
    path = tree.pop("dotted" if is_dotted else "column", None)
    if not isinstance(path, list) or not path or not all(isinstance(name, str) for name in path):
        raise ValueError("a column must be a non-empty list of names")
    if not is_dotted:
        return Column(tuple(path))
    parts = path[0].split(".")
    return Column((*parts, *path[1:]), dotted=len(parts))


def _parse_geometry(tree: dict[str, Any]) -> Any:
    if "wkb" in tree:
        (wkb,) = _get_members(tree, "wkb")
        return bytes.fromhex(_check_text(wkb))
    (box,) = _get_members(tree, "box")
    if not isinstance(box, list) or len(box) != 4:
        raise ValueError("a box must be a list of four numbers")
    sides = list(map(_parse_literal, box))
    if not all(isinstance(side, float) for side in sides):
        raise ValueError("the sides of a box must be floats")
    return tuple(sides)


def _check_distance(value: Any) -> float:
    if not isinstance(value, float):
        raise ValueError(f"the distance of dwithin must be a float, not {value!r}")
    return value


def _parse_decimal(text: Any) -> Decimal:
    try:
        return Decimal(_check_text(text))
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is not a decimal") from error


def _parse_float(text: Any) -> float:
    value = float(_check_text(text))
    if isfinite(value):
        raise ValueError(f"a finite float must be written as a number, not {text!r}")
    return value


def _parse_datetime(text: Any) -> datetime:
    value = datetime.fromisoformat(_check_text(text))
    if value.tzinfo not in (None, UTC):
        raise ValueError(f"a timestamp must be in UTC or have no timezone, not {text!r}")
    return value


_LITERALS: dict[str, Callable[[Any], Any]] = {
    "float": _parse_float,
    "decimal": _parse_decimal,
    "bytes": lambda text: bytes.fromhex(_check_text(text)),
    "uuid": lambda text: UUID(_check_text(text)),
    "date": lambda text: date.fromisoformat(_check_text(text)),
    "time": lambda text: time.fromisoformat(_check_text(text)),
    "timestamp": _parse_datetime,
    "time_ns": lambda value: time_literal(_check_integer(value)),
    "duration_ns": lambda value: duration_literal(_check_integer(value)),
    "timestamp_ns": lambda value: timestamp_literal(_check_integer(value), utc=False),
    "timestamp_ns_utc": lambda value: timestamp_literal(_check_integer(value), utc=True),
}


def _parse_literal(tree: Any) -> Literal:
    if not isinstance(tree, dict):
        if not isinstance(tree, bool | int | float | str):
            raise ValueError("a literal must be text, a number, a boolean or an object that names its type")
        return to_literal(tree)
    if len(tree) != 1:
        raise ValueError("a literal object must have one member, its type")
    ((name, value),) = tree.items()
    if name not in _LITERALS:
        raise ValueError(f"unknown literal type {name!r}; use one of {join_names(_LITERALS)}")
    return to_literal(_LITERALS[name](value))


def _get_members(tree: dict[str, Any], *names: str) -> tuple[Any, ...]:
    if tree.keys() != set(names):
        raise ValueError(f"expected the members {sorted(names)}, not {sorted(tree)}")
    return tuple(tree[name] for name in names)


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, not {type(value).__name__}")
    return value


def _check_integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"expected an integer, not {type(value).__name__}")
    return value


def _to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError(f"duplicate names among the members {sorted(name for name, _ in pairs)}")
    return members


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _to_double(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text} is not a double")
    return value
