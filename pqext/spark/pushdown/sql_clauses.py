"""Split the text of a Spark SQL condition at AND or OR, and find clauses that have different semantics in pqext.

Splitting recognises only quotes, comments, brackets and words, so clauses can be any SQL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from pyspark.sql import types as T
from sqlglot import exp

from pqext.dataset.notations.sql import parse_tree
from pqext.dataset.notations.sql_dialect import NAN, Filter
from pqext.dataset.notations.sql_literals import ARITHMETIC

_TOKEN = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|`(?:[^`]|``)*+`)|(?P<comment>--[^\n]*|/\*.*?\*/)"""
    r"""|(?P<word>\w+)|(?P<other>.)""",
    re.S,
)
TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-](0\d|1[0-7]):[0-5]\d|[+-]18:00)?)?")
"""Strings that Spark and Python parse as the same date or timestamp."""
_TIME_OF_PYTHON = re.compile(r":\d\d(,|\.\d{7})")
"""Comma before the fraction, or a fraction that Spark truncates to microseconds."""
_NAME_OF_DECIMAL = re.compile(r"\b(dec|decimal|numeric)\b", re.I)
_BITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_TIME_TYPES = ("DATE", "TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPLTZ", "TIMESTAMPTZ")
_LITERALS_OF_SPARK = [["date"], ["time"], ["timestamp"], ["timestamp_ltz"], ["timestamp_ntz"], ["interval"]]
"""Tokens before a string in literals that Spark supports."""
_SUFFIXES = ("precision", "varying", "unsigned", "with", "without", "local", "zone")
"""Words after the first word of types such as DOUBLE PRECISION and TIMESTAMP WITH TIME ZONE."""
_OPENING, _CLOSING = "([{", ")]}"

Word = Literal["and", "or"]


def split_clauses(text: str, word: Word) -> list[str]:
    """Split ``text`` into the clauses that ``word`` joins. Return only the text if ``word`` does not occur.

    >>> split_clauses("a = 1 and (b or c) and d between 1 and 2", "and")
    ['a = 1', '(b or c)', 'd between 1 and 2']
    """
    parts: dict[Word, list[str]] = {"and": [], "or": []}
    starts: dict[Word, int] = {"and": 0, "or": 0}
    depth = cases = betweens = 0
    for token in _TOKEN.finditer(text):
        part = token[0].lower()
        if token["other"]:
            depth += (part in _OPENING) - (part in _CLOSING)
            if part in "'\"`" or depth < 0:
                return [text]  # an unbalanced quote or bracket
        elif token["word"] and not depth:
            cases += (part == "case") - (part == "end")
            betweens += part == "between"
            if part == "and" and betweens:
                betweens -= 1
            elif part in ("and", "or") and not cases:
                joint: Word = "and" if part == "and" else "or"
                parts[joint].append(text[starts[joint] : token.start()].strip())
                starts[joint] = token.end()
    if depth or cases or betweens or (word == "and" and parts["or"]):
        return [text]
    return [*parts[word], text[starts[word] :].strip()]


def strip_brackets(text: str) -> str:
    """Remove the brackets that enclose all of ``text``.

    >>> strip_brackets("((a) or (b))")
    '(a) or (b)'
    """
    text = text.strip()
    while text.startswith("(") and _is_enclosed(text):
        text = text[1:-1].strip()
    return text


def _is_enclosed(text: str) -> bool:
    depth = 0
    for token in _TOKEN.finditer(text):
        if token["other"]:
            depth += (token[0] in _OPENING) - (token[0] in _CLOSING)
            if not depth:
                return token.end() == len(text)
    return False


def standardize_quotes(text: str) -> str:
    r"""Convert strings with backslash escapes to strings of standard SQL, without escapes.

    Raises ``ValueError`` for escapes of other characters.

    >>> standardize_quotes(r"s = 'it\'s' and t like 'a\\\_b'")
    "s = 'it''s' and t like 'a\\\\_b'"
    """
    parts = []
    for token in _TOKEN.finditer(text):
        part = token[0]
        parts.append(_to_standard_string(part) if token["quoted"] and part[0] == "'" and "\\" in part else part)
    return "".join(parts)


def _to_standard_string(quoted_text: str) -> str:
    def replacement(escape: re.Match[str]) -> str:
        if escape[1] in "%_":
            return escape[0]
        if escape[1] not in "\\'\"":
            raise ValueError(f"the text has Spark's escape {escape[0]}, which pqext does not support")
        return "''" if escape[1] == "'" else escape[1]

    return re.sub(r"\\(.)", replacement, quoted_text, flags=re.S)


def differs_in_spark(text: str) -> bool:
    """Return whether a condition may have different semantics in Spark. Ambiguous clauses count as different.

    Spark computes with literals in their decimal and integer types, ``isnan`` of null is false in Spark, and Spark
    rejects or truncates literals that Python accepts. It also rejects most typed literals.

    >>> differs_in_spark("n = 0.1 + 0.2"), differs_in_spark("n + 0.1 = 0.2"), differs_in_spark("n = bigint '5'")
    (True, False, True)
    """
    if strip_literal_types(text) != text:
        return True
    try:
        tree = parse_tree(standardize_quotes(text))
    except ValueError:
        return False  # pqext evaluates neither the condition nor a bound of it
    return any(_has_other_semantics(node, text) for node in tree.walk())


def strip_literal_types(text: str) -> str:
    """Remove the types of typed literals, such as ``bigint '5'``, that Spark supports only as casts.

    >>> strip_literal_types("n = decimal(4, 2) '5' and d = date '2024-01-01' and x = double precision '7'")
    "n = '5' and d = date '2024-01-01' and x = '7'"
    """
    tokens = [token for token in _TOKEN.finditer(text) if token["comment"] is None and not token[0].isspace()]
    parts, end = [], 0
    for index, token in enumerate(tokens):
        if token["quoted"] and token[0][0] == "'":
            first = _type_start(tokens, index)
            if first < index and [part[0].lower() for part in tokens[first:index]] not in _LITERALS_OF_SPARK:
                parts.append(text[end : tokens[first].start()])
                end = token.start()
    return "".join([*parts, text[end:]])


def _type_start(tokens: Sequence[re.Match[str]], end: int) -> int:
    """Return the index of the first token of the type before token ``end``, or ``end`` without a type."""
    first = end
    while first:
        start = _bracket_start(tokens, first) if tokens[first - 1][0] == ")" else first
        word = tokens[start - 1][0] if start else ""
        is_type = Filter.Tokenizer.KEYWORDS.get(word.upper()) in Filter.Parser.TYPE_TOKENS
        if not is_type and word.lower() not in _SUFFIXES:
            break
        first = start - 1
    return first


def _bracket_start(tokens: Sequence[re.Match[str]], end: int) -> int:
    """Return the index of the opening bracket of the group that ends before token ``end``; 0 if missing."""
    depth = 0
    for index in range(end - 1, 0, -1):
        depth += (tokens[index][0] == ")") - (tokens[index][0] == "(")
        if not depth:
            return index
    return 0


def field_names(type: T.DataType) -> list[str]:
    """Return the names of the fields of a type at any depth."""
    match type:
        case T.StructType():
            return [name for field in type for name in (field.name, *field_names(field.dataType))]
        case T.ArrayType():
            return field_names(type.elementType)
        case T.MapType():
            return [*field_names(type.keyType), *field_names(type.valueType)]
    return []


def _has_other_semantics(node: Any, text: str) -> bool:
    match node:
        case exp.Literal(is_string=True):
            return _TIME_OF_PYTHON.search(node.this) is not None
        case exp.Cast():
            return _has_only_literals(node) and not _is_same_cast(node, text)
        case exp.Neg():
            return _has_only_literals(node) and not isinstance(node.this, exp.Literal | exp.Cast)
        case exp.Anonymous():
            name = str(node.this).lower()
            literals = [argument.this for argument in node.expressions if isinstance(argument, exp.Literal)]
            if name in NAN:
                return not _is_conjunct(node)
            is_time = name in ("date", "timestamp", "timestamptz")
            return is_time and any(TIME.fullmatch(literal) is None for literal in literals)
    return type(node) in ARITHMETIC and _has_only_literals(node)


def _has_only_literals(node: Any) -> bool:
    return node.find(exp.Identifier) is None


def _is_conjunct(node: Any) -> bool:
    """Return whether only AND and OR enclose a part of a condition, so that null is equivalent to false."""
    while node.parent is not None:
        node = node.parent
        if not isinstance(node, exp.Paren | exp.And | exp.Or):
            return False
    return True


def _is_same_cast(node: exp.Cast, text: str) -> bool:
    """Return whether a literal with a cast or a type suffix has the same value in Spark."""
    literal, name = node.this, str(getattr(node.to.this, "value", node.to.this))
    if not isinstance(literal, exp.Literal) or node.to.expressions:
        return False
    if literal.is_string:
        return name == "TEXT" or (name in _TIME_TYPES and TIME.fullmatch(literal.this) is not None)
    if name in _BITS:
        return str(literal.this).isdecimal() and int(literal.this) < 1 << _BITS[name]
    if name == "DECIMAL":
        return _NAME_OF_DECIMAL.search(text) is None  # of a number such as 1.5BD
    return name in ("DOUBLE", "FLOAT")
