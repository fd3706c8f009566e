"""Error messages for missing columns, and for conditions and literals that a column's type does not support."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, cast

from pqext.core.base.suggestions import closest_name, exclusion_hint
from pqext.core.base.text import escape_text
from pqext.core.format.predicate import Value
from pqext.core.schema.nodes import SchemaNode
from pqext.dataset.expressions import spatial_functions as functions
from pqext.dataset.expressions.conditions import Operand
from pqext.dataset.expressions.literals import Literal, ValueType, to_value
from pqext.dataset.expressions.operands import (
    Arithmetic,
    Cast,
    Column,
    Constant,
    ListLength,
    SpatialValue,
    VariantField,
    bases,
    operand_column,
)

_SHOWN = 10
"""Maximum number of column names listed in an error."""
_TEXT = 200
"""Maximum length of a column name that is checked for SQL text."""
_LONGEST = 40
"""Maximum length of a literal that an error rewrites."""


class Notation(Enum):
    """Notation in which the user wrote an expression. Error messages about an expression use the same notation."""

    SQL = "sql"
    PYTHON = "python"
    NAME = "name"
    """A result column specified only by name, in Python or on the command line."""


def notation(operand: Operand) -> Notation:
    """Return the notation of an operand. Only operands that were parsed from SQL text have a position in the text."""
    return Notation.SQL if any(position_text(operand)) else Notation.PYTHON


def label_of(operand: Operand) -> str:
    """Return the text of an operand for messages. The name of a column is in quotes.

    >>> from pqext import col
    >>> label_of(col("a.b")), label_of(col("a") + 1)
    ("'a.b'", 'a + 1')
    """
    return f"'{operand}'" if isinstance(operand, Column) else str(operand)


def position_text(operand: Operand) -> str:
    """Return the position of an operand in SQL text, as the end of an error message; empty for other notations."""
    return next((result for base in bases(operand) if (result := operand_column(base).place)), "")


def no_column_message(column: Column, node: SchemaNode, name: str, extra_names: Iterable[str]) -> str:
    """Format the error message for a ``column`` of a condition if ``node`` has no field ``name``.

    Columns in ``extra_names`` are suggested in addition to the top-level columns of the file.
    """
    whole = ".".join(column.path)
    if not node.path and len(column.path) > 1 and node.child(whole) is not None:
        shown, written = escape_text(whole), {Notation.SQL: '"{}"', Notation.PYTHON: "col(['{}'])"}[notation(column)]
        message = f"no column {escape_text(name)!r} with fields; write {written.format(shown)} for the column"
        return f"{message} {shown!r}{column.place or ''}"
    if not column.place and (message := python_hint(whole)):
        return f"no column {escape_text(whole)!r}: {message}"
    return _missing_message(str(column), node, name, extra_names, notation(column)) + (column.place or "")


def python_hint(text: str) -> str:
    """Return the Python equivalent of command-line syntax in a column name, as a hint in an error message.

    The hint is empty for a plain name.
    """
    if kept := exclusion_hint(text):
        return escape_text(kept)
    if order := _ORDER.fullmatch(text):
        is_descending = order["minus"] is not None or order["direction"].lower().startswith("desc")
        flag = ", descending=True" if is_descending else ""
        return escape_text(f"to sort rows, write order_by({order['minus'] or order['column']!r}{flag})")
    computed = _suggest_computed(text)
    return computed and f"write {escape_text(computed)}"


def missing_column_message(root: SchemaNode, column: str, extra_names: Iterable[str]) -> str:
    """Format the message for a result column whose dotted path ``column`` does not exist."""
    if message := python_hint(column):
        return f"no column {escape_text(column)!r}: {message}"
    node = root
    for depth, name in enumerate(names := column.split(".")):
        child = node.child(name)
        if child is None:
            break
        if child.logical_name == "VARIANT" and names[depth + 1 :]:
            return f"no column {escape_text(column)!r}{value_hint(child, Notation.NAME, names[depth + 1 :])}"
        node = child
    return _missing_message(escape_text(column), node, name, extra_names, Notation.NAME)


_NAMED = re.compile(r"(?P<value>.+?)(?:\s+as\s+(?P<name>\w+))?", re.S | re.I)
_WITHIN = re.compile(r"(?P<column>[\w.]+)(?::(?P<path>[^:\s]+))?(?:::(?P<type>\w+(?:\([\d, ]+\))?))?")
_ORDER = re.compile(r"-(?P<minus>[\w.]+)|(?P<column>[\w.]+)\s+(?P<direction>(asc|desc)(ending)?)", re.I)
_OPERATOR = re.compile(r"[\w)]\s+[-+*/%]\s+[\w(]")
_OF_SQL = {"timestamp": "timestamp_ntz", "timestamptz": "timestamp"}


def _suggest_computed(text: str) -> str:
    """Return the Python equivalent of the SQL text of a value, or an example.

    Empty if the text looks like a plain name.

    >>> _suggest_computed("ev:$.n::int as n")
    "col('ev').variant('$.n', 'int').alias('n')"
    """
    match = _NAMED.fullmatch(text) if len(text) <= _TEXT else None
    if match is None or not (match["name"] or "::" in text or ":$" in text or _OPERATOR.search(text)):
        return ""
    name = f".alias({match['name'] or 'name'!r})"
    within = _WITHIN.fullmatch(match["value"])
    if within is None:
        return f"it in Python, as in (col('a') * 2){name}"
    column, path, type = within.groups()
    value = f"col({column!r})"
    type = type and _OF_SQL.get(type.lower(), type)
    if path is not None:
        path = path if path.startswith("$") else f"$.{path}"
        return f"{value}.variant({path!r}, {type or 'variant'!r}){name if match['name'] else ''}"
    return value + (f".cast({type!r})" if type else "") + name


def to_python_code(value: Operand) -> str:
    """Format a value as Python code.

    >>> from pqext import col
    >>> to_python_code((col("a") + 1).cast("string"))
    "(col('a') + 1).cast('string')"
    """
    match value:
        case VariantField():
            return f"{to_python_code(value.column)}.variant({value.path!r}, {value.type!r})"
        case Cast():
            return f"{to_python_code(value.operand)}.cast({value.type!r})"
        case ListLength():
            return f"{to_python_code(value.operand)}.list_length()"
        case Arithmetic(operator, operands):
            sides = list(map(to_python_code, operands))
            return f"(-{sides[0]})" if len(sides) == 1 else f"({f' {operator} '.join(sides)})"
        case SpatialValue(function, (Operand() as first, *rest)):
            return f"{to_python_code(first)}.{function}({', '.join(map(functions.argument_text, rest))})"
        case Constant():
            return repr(value.value)
        case Column():
            dots = any("." in name for name in value.path)
            return f"col({list(value.path) if dots else '.'.join(value.path)!r})"
    return str(value)


def _missing_message(column: str, node: SchemaNode, name: str, extra_names: Iterable[str], notation: Notation) -> str:
    if node.is_leaf:
        return f"no column {column!r}: {escape_text(node.dotted_path)!r} is a plain column without fields"
    names = [child.name for child in node.children]
    if not node.path:
        names += [item for item in extra_names if item not in names]
    near = closest_name(name, names)
    shown = [escape_text(".".join((*node.path, element))) for element in ([near] if near else names)]
    if near:
        return f"no column {column!r}; did you mean {shown[0]!r}?"
    hint = f"the columns are {', '.join(map(repr, shown[:_SHOWN]))}" + (", ..." if len(shown) > _SHOWN else "")
    variants = [child for child in node.children if child.logical_name == "VARIANT"]
    if len(variants) == 1 and not node.path:
        hint += value_hint(variants[0], notation, [name])
    return f"no column {column!r}; {hint}"


def value_hint(node: SchemaNode, notation: Notation, path: Sequence[str] = ("name",)) -> str:
    """Return a hint for conditions on values inside ``node``; empty if conditions cannot use these values."""
    name = escape_text(node.dotted_path)
    if node.logical_name == "VARIANT":
        return _variant_hint(name, notation, path)
    if node.logical_name in ("GEOMETRY", "GEOGRAPHY"):
        return f"; use {_SPATIAL[notation is Notation.SQL]} or another spatial condition"
    if not node.is_leaf and not node.logical_name and node.children:
        child = escape_text(node.children[0].dotted_path)
        return f"; compare a field of it, {child if notation is Notation.SQL else f'col({child!r})'}"
    return ""


def _variant_hint(name: str, notation: Notation, path: Sequence[str]) -> str:
    inside = escape_text(".".join(path))
    sql, python = f"{name}:$.{inside}", f"col({name!r}).variant('$.{inside}', 'string')"
    form = {Notation.SQL: sql, Notation.PYTHON: python}.get(notation, f"{python}, on the command line {sql}")
    return f"; a value inside a VARIANT is {form}"


def field_error(value: Operand, column: Column, is_variant: bool) -> Exception:
    """Return the error for a dotted ``column`` that refers to a missing field of the computed column ``value``."""
    name, place = escape_text(column.path[0]), column.place or ""
    if is_variant:
        hint = _variant_hint(name, notation(column), column.path[1:])
        return TypeError(f"column {label_of(column)} is a value inside the VARIANT column {name!r}{hint}{place}")
    problem = "has no such field" if isinstance(value, Column) else "has no fields"
    return ValueError(f"no column {str(column)!r}: {name!r} is computed as {value} and {problem}{place}")


_SPATIAL = {False: "intersects, within, dwithin", True: "st_intersects, st_within, st_dwithin"}


def comparison_value(literal: Literal, value_type: ValueType, operand: Operand) -> Value:
    """Convert a literal with ``to_value``. The error for a wrong type suggests a literal of the correct type."""
    try:
        return to_value(literal, value_type, label_of(operand))
    except TypeError as error:
        instead = literal_hint(literal, value_type, notation(operand))
        raise TypeError(f"{error}{instead}{position_text(operand)}") from None


def comparison_values(literals: Sequence[Literal], value_type: ValueType, operand: Operand) -> tuple[Value, ...]:
    """Convert ``literals`` like :func:`comparison_value`. Long lists of numbers and texts are converted together."""
    kinds = set(map(type, literals))
    if value_type.name in ("integer", "float") and kinds <= {int, float}:
        return cast("tuple[Value, ...]", tuple(literals))
    if value_type.name == "string" and kinds == {str}:
        return tuple(map(str.encode, cast("Sequence[str]", literals)))
    return tuple(comparison_value(literal, value_type, operand) for literal in literals)


def literal_hint(literal: Literal, value_type: ValueType, notation: Notation) -> str:
    """Return a hint that suggests a literal of ``value_type``; empty if ``literal`` cannot be converted to one.

    >>> literal_hint("2026-05-01", ValueType("date"), Notation.SQL)
    "; write date '2026-05-01'"
    >>> literal_hint("2026-05-01", ValueType("date"), Notation.PYTHON)
    '; write datetime.date(2026, 5, 1)'
    """
    is_sql = notation is Notation.SQL
    form = ""
    if isinstance(literal, str):
        form = _literal_from_text(literal, value_type, is_sql)
    elif value_type.name == "string" and isinstance(literal, int | float) and not isinstance(literal, bool):
        form = f"'{literal}'" if len(str(literal)) <= _LONGEST else ""
    elif value_type.name == "boolean" and isinstance(literal, int) and literal in (0, 1):
        form = _boolean_text(bool(literal), is_sql)
    elif isinstance(literal, date) and value_type.name in ("date", "timestamp"):
        form = _temporal_literal(literal, value_type, is_sql)
    elif value_type.name == "duration" and isinstance(literal, int) and not isinstance(literal, bool):
        form = _duration_literal(literal, value_type, is_sql)
    return form and f"; write {form}"


def _duration_literal(ticks: int, value_type: ValueType, is_sql: bool) -> str:
    """Format a duration of ``ticks`` units of ``value_type`` as a literal."""
    if is_sql:
        count, unit = (f"{Decimal(ticks).scaleb(-3):f}", "us") if value_type.unit == "ns" else (ticks, value_type.unit)
        return f"interval '{count} {unit}'"
    if value_type.unit == "ns":
        return f"pyarrow.scalar({ticks}, 'duration[ns]')"
    unit = {"s": "seconds", "ms": "milliseconds", "us": "microseconds"}[value_type.unit]
    return f"datetime.timedelta({unit}={ticks})"


def _literal_from_text(text: str, value_type: ValueType, is_sql: bool) -> str:
    text = text.strip()
    try:
        if value_type.name in ("date", "timestamp"):
            return _temporal_literal(datetime.fromisoformat(text), value_type, is_sql)
        if value_type.name in ("integer", "float", "decimal") and len(text) <= _LONGEST and text.isascii():
            if not isfinite(float(text)):
                return (f"double '{text}'" if is_sql else f"float('{text}')") if value_type.name == "float" else ""
            return text if value_type.name != "integer" and float(text) else str(int(text))
    except (ValueError, OverflowError):  # within hours of the first or last date, which UTC may not represent
        return ""
    is_boolean = value_type.name == "boolean" and text.lower() in _TRUTHS
    return _boolean_text(text.lower() == "true", is_sql) if is_boolean else ""


_TRUTHS = ("true", "false")


def _boolean_text(value: bool, is_sql: bool) -> str:
    return str(value).lower() if is_sql else str(value)


def _temporal_literal(value: date, value_type: ValueType, is_sql: bool) -> str:
    """Format a date or timestamp as a literal of ``value_type``. UTC is used if a timezone is required but missing."""
    if value_type.name == "date":
        day = value.isoformat()[:10]
        return f"date '{day}'" if is_sql else f"datetime.date({value.year}, {value.month}, {value.day})"
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    if is_sql:
        return f"timestamptz '{value.isoformat(' ')}Z'" if value_type.utc else f"timestamp '{value.isoformat(' ')}'"
    parts: list[Any] = [value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond]
    while len(parts) > 3 and not parts[-1]:
        parts.pop()
    if value_type.utc:
        parts.append("tzinfo=datetime.UTC")
    return f"datetime.datetime({', '.join(map(str, parts))})"
