"""Convert a ``Column`` to Spark SQL text, from its string representation in PySpark, without py4j.

Spark prints operators before their operands: ``and(>(a, 5), like(s, 'x%'))``. Spark Connect does the same, but prints
strings without quotes, so its expressions are traversed instead. The text is used for pruning only: Spark itself
evaluates the ``Column`` if the text is ambiguous.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.spark.pushdown.sql_clauses import strip_brackets

_BETWEEN = {
    "=": "=", "==": "=", "<=>": "<=>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "!=": "<>", "and": "and", "or": "or",
    "+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "like": "like", "ilike": "ilike", "rlike": "rlike",
}  # fmt: skip
"""SQL operators between two operands, by the prefix operators that Spark prints."""
_AFTER = {"isnull": "is null", "isnotnull": "is not null"}
_BEFORE = {"!": "not ", "not": "not ", "negative": "-", "-": "-"}
_CALL = re.compile(r"(<=>|<=|>=|==|!=|[=<>!+\-*/%]|\w+)\(")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`", re.S)
_UNQUOTED_TIME = re.compile(r"(?<![\w'.:-])(\d{4}-\d\d-\d\d)( \d\d:\d\d:\d\d(?:\.\d{1,6})?)?(?![\w':.-])")
_UNSAFE_NAME = re.compile(r"[()\[\],'\"`]|--|/\*")
_NAME = re.compile(r"[A-Za-z_]\w*")
_WORD = re.compile(
    "all|and|any|between|case|cast|current_(date|time|timestamp|user)|distinct|div|else|end|escape|exists|false|ilike|in"
    "|inf|infinity|interval|is|like|localtimestamp|nan|not|null|or|regexp|rlike|some|then|true|try_cast|user|when"
)
"""SQL words that are not names, or that are ambiguous."""
_OPERAND = re.compile(r"(DATE|TIMESTAMP)?'(?:[^'\\]|\\.)*'|[\w.]+", re.S)
_OPENING, _CLOSING = "([", ")]"


class _UnsupportedColumnError(ValueError):
    """A ``Column`` has no equivalent SQL text."""


def column_text(column: Column, names: list[str]) -> str | None:
    """Convert a ``Column`` to SQL text. Returns None if the text would be ambiguous or is not supported.

    ``names`` are the names of the data frame's columns and nested fields.
    """
    if any(_UNSAFE_NAME.search(name) for name in names):
        return None  # Spark prints names without quotes
    is_connect = type(column).__module__.startswith("pyspark.sql.connect")
    try:
        text = _connect_text(column._expr) if is_connect else _quote_times(str(column)[len("Column<'") : -len("'>")])
        if '"' in text or "--" in text or "/*" in text or any(_is_ambiguous(name, text) for name in names):
            return None
        return _to_infix(text)
    except (_UnsupportedColumnError, RecursionError):
        return None


def _is_ambiguous(name: str, text: str) -> bool:
    """Return whether ``text`` may contain ``name``, a name that is only valid in quotes, such as ``p-1``."""
    name, text = name.casefold(), text.casefold()
    if _WORD.fullmatch(name):
        return re.search(rf"\b{name}\b", text) is not None
    return _NAME.fullmatch(name) is None and name in text


def _quote_times(text: str) -> str:
    """Return ``text`` with dates and timestamps as literals, because Spark prints them without quotes."""

    def literal(time: re.Match[str]) -> str:
        return f"DATE'{time[1]}'" if time[2] is None else f"TIMESTAMP'{time[0]}'"

    parts, at = [], 0
    for quoted in _QUOTED.finditer(text):
        parts += [_UNQUOTED_TIME.sub(literal, text[at : quoted.start()]), quoted[0]]
        at = quoted.end()
    return "".join([*parts, _UNQUOTED_TIME.sub(literal, text[at:])])


def _to_infix(text: str) -> str:
    """Convert calls of operators, such as ``=(a, 1)``, to infix notation."""
    result, at = "", 0
    while at < len(text):
        quoted = _QUOTED.match(text, at)
        if quoted is not None:
            result, at = result + quoted[0], quoted.end()
            continue
        call = None if _is_within_word(text, at) else _CALL.match(text, at)
        if call is None:
            result, at = result + text[at], at + 1
            continue
        end, arguments = _parse_arguments(text, call.end())
        result += _format_call(call[1], [_to_infix(argument) for argument in arguments], _ends_with_operand(result))
        at = end
    return result


def _is_within_word(text: str, position: int) -> bool:
    return position > 0 and (text[position - 1].isalnum() or text[position - 1] in "_.") and (
        text[position].isalnum() or text[position] == "_"
    )


def _ends_with_operand(text: str) -> bool:
    """Return whether ``text`` ends with an operand, as before a call in the text of ``expr('a in (1)')``."""
    word = re.search(r"(\w+|[^\s\w])\s*$", text)
    return word is not None and word[1] not in "([," and word[1].lower() not in ("when", "then", "else", "not", "case")


def _format_call(name: str, arguments: list[str], is_after_operand: bool) -> str:
    word, sides = name.lower(), list(map(_add_brackets, arguments))
    if not is_after_operand:
        if word in _BETWEEN and len(sides) == 2:
            return f"({sides[0]} {_BETWEEN[word]} {sides[1]})"
        if word in _BEFORE and len(sides) == 1:
            return f"({_BEFORE[word]}{sides[0]})"
        if word in _AFTER and len(sides) == 1:
            return f"({sides[0]} {_AFTER[word]})"
        if word == "in" and len(sides) > 1:
            return f"({sides[0]} in ({', '.join(sides[1:])}))"
        if not (word.isidentifier() and word not in ("in", "and", "or")):
            raise _UnsupportedColumnError
    return f"{name}({', '.join(arguments)})"


def _add_brackets(argument: str) -> str:
    """Enclose an argument in brackets if it may contain an operator, because Spark prints ``expr`` without brackets."""
    is_atomic = _OPERAND.fullmatch(argument) is not None or strip_brackets(argument) != argument
    return argument if is_atomic else f"({argument})"


def _parse_arguments(text: str, position: int) -> tuple[int, list[str]]:
    """Parse the arguments of a call, which start at ``position``. Return the end of the call and the arguments."""
    depth, start, arguments = 0, position, []
    while position < len(text):
        quoted = _QUOTED.match(text, position)
        if quoted is not None:
            position = quoted.end()
            continue
        depth += (text[position] in _OPENING) - (text[position] in _CLOSING)
        if depth < 0 or (depth == 0 and text[position] == ","):
            arguments.append(text[start:position].strip())
            start = position + 1
        if depth < 0:
            return position + 1, [argument for argument in arguments if argument]
        position += 1
    raise _UnsupportedColumnError


def _connect_text(node: Any) -> str:
    """Return the text that Spark Classic would print for an expression of Spark Connect."""
    match type(node).__name__:
        case "UnresolvedFunction" if not node._is_distinct:
            return f"{node._name}({', '.join(map(_connect_text, node._args))})"
        case "ColumnReference":
            return str(node._unparsed_identifier)
        case "SQLExpression":
            return str(node._expr)
        case "LiteralExpression":
            return _format_literal(node._value, node._dataType)
    raise _UnsupportedColumnError


def _format_literal(value: Any, type: T.DataType) -> str:
    if value is None:
        return "NULL"
    match type:
        case T.StringType():
            escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case T.BooleanType():
            return str(value).lower()
        case T.ByteType() | T.ShortType() | T.IntegerType() | T.LongType():
            return str(value)
        case T.DoubleType() | T.DecimalType():
            return repr(value) if isinstance(value, float) else str(value)
        case T.DateType():
            return f"DATE'{type.fromInternal(value)}'"
        case T.TimestampType():
            moment = datetime(1970, 1, 1) + timedelta(microseconds=value)
            return f"TIMESTAMP'{moment}'"  # possibly in another time zone, as on Spark Classic
    raise _UnsupportedColumnError
