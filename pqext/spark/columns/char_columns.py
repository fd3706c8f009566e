"""Conditions on CHAR columns, which Spark pads with spaces.

Spark stores a CHAR(n) as a string that is padded to n characters, and records the type in the metadata of the column.
Its reader also pads values that other writers stored without padding. It pads literals only in the comparisons and IN
lists of a column itself: not in BETWEEN, LIKE, functions, lists with null, and not for fields of structs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import types as T

from pqext.core.base.errors import UnsupportedError
from pqext.dataset.expressions import (
    And,
    Column,
    Comparison,
    Expression,
    IsIn,
    IsNotNull,
    IsNull,
    Matches,
    Not,
    Or,
    any_of,
    visitors,
)
from pqext.spark.columns.recorded_schema import field_at_path

CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
_CHAR = re.compile(r"\bchar\((\d{1,9})\)", re.ASCII | re.IGNORECASE)
_MOST_CHARACTERS = 1 << 22
"""Maximum size of the texts that replace the literals of a comparison with a CHAR column."""


def char_lengths(schema: T.StructType) -> dict[str, int]:
    """Return the lengths of the CHAR columns of a recorded schema, by name."""
    types = {field.name: _CHAR.fullmatch(_recorded_type(field)) for field in schema}
    return {name: int(match[1]) for name, match in types.items() if match is not None}


def _recorded_type(field: T.StructField) -> str:
    return str((field.metadata or {}).get(CHAR_TYPE))


def pad_literals(node: Expression, lengths: Mapping[str, int]) -> Expression:
    """Rewrite comparisons of CHAR columns with text so that padded values in files also match.

    The leaves must have passed :func:`check_char_padding`.
    """
    match node:
        case And() | Or():
            return replace(node, operands=tuple(pad_literals(operand, lengths) for operand in node.operands))
        case Not():
            return replace(node, operand=pad_literals(node.operand, lengths))
        case Comparison() if comparison := _char_comparison(node, lengths):
            return _compare_padded(node, comparison[1][0], comparison[0])
        case IsIn() if comparison := _char_comparison(node, lengths):
            return _equal_padded(node, comparison[1], comparison[0])
    return node


def _char_comparison(leaf: Expression, lengths: Mapping[str, int]) -> tuple[int, list[str]] | None:
    """Return the length of the CHAR column and the literals in a leaf, if Spark pads these literals."""
    match leaf:
        case Comparison(operand=Column(path=(name,)), value=str(literal)) if name in lengths:
            return lengths[name], [literal]
        case IsIn(operand=Column(path=(name,)), has_null=False) if name in lengths:
            texts = [value for value in leaf.values if isinstance(value, str)]
            return (lengths[name], texts) if len(texts) == len(leaf.values) else None
    return None


def _compare_padded(node: Comparison, literal: str, length: int) -> Expression:
    """Rewrite a comparison with text for values that may be padded.

    A value that equals the literal except for trailing spaces is a prefix of the padded literal, so it is less or
    equal by its bytes. If a value differs from the literal in other characters, its padding changes the order only if
    the literal contains a character below the space.
    """
    equal = _equal_padded(node, [literal], length)
    if node.operator in ("==", "!="):
        return equal if node.operator == "==" else Not(equal)
    padded = replace(node, value=literal.ljust(length))
    if node.operator in ("<", ">"):
        return And((padded, Not(equal)))
    return Or((padded, equal))


def _equal_padded(node: Comparison | IsIn, literals: Sequence[str], length: int) -> Expression:
    """Return a condition that is true if a value, padded as in Spark, equals one of the padded ``literals``.

    Spark pads or truncates the value to the longest literal if that is longer than the column.
    """
    padded_length = _padded_length(literals, length)
    texts = [literal.rstrip(" ") for literal in literals]
    values = [text.ljust(count) for text in texts for count in range(len(text), padded_length + 1)]
    longer = [text.ljust(padded_length) for text in texts] if padded_length > length else []
    return any_of([IsIn(node.operand, tuple(values)), *(Matches(node.operand, "starts_with", text) for text in longer)])


def _padded_length(literals: Sequence[str], length: int) -> int:
    return max([length, *map(len, literals)])


def depends_on_padding(leaf: Expression, schema: T.StructType) -> bool:
    """Return whether the result of a leaf depends on the padding of CHAR columns in ``schema``."""
    if isinstance(leaf, IsNull | IsNotNull) and isinstance(leaf.operand, Column):
        return False
    columns = {field.name: field for field in schema if _CHAR.search(_recorded_type(field))}
    fields = [field_at_path(columns[path[0]], path) for path in visitors.paths(leaf) if path[0] in columns]
    texts = (T.StringType, T.StructType, T.ArrayType, T.MapType)
    return any(isinstance(field.dataType, texts) for field in fields)


def check_char_padding(leaves: Iterable[Expression], schema: T.StructType) -> None:
    """Raise ``UnsupportedError`` if the result of a leaf after :func:`pad_literals` differs from Spark's."""
    for leaf in leaves:
        problem = _padding_problem(leaf, schema)
        if problem:
            raise UnsupportedError(
                f"{leaf} {problem}: filter with pqext.spark.where(df, condition), which Spark evaluates",
                feature="comparisons of CHAR columns",
            )


def has_exact_padding(leaf: Expression, schema: T.StructType) -> bool:
    """Return whether a leaf that :func:`pad_literals` rewrites has the same result as in Spark."""
    return not _padding_problem(leaf, schema)


def _padding_problem(leaf: Expression, schema: T.StructType) -> str:
    """Return the reason why Spark's result of a leaf differs after :func:`pad_literals`; empty if it is equal."""
    if not depends_on_padding(leaf, schema):
        return ""
    comparison = _char_comparison(leaf, char_lengths(schema))
    if comparison is None:
        return "is a condition on a CHAR column: Spark pads the values but not the literals"
    length, literals = comparison
    is_order = isinstance(leaf, Comparison) and leaf.operator not in ("==", "!=")
    if is_order and any(character < " " for character in literals[0]):
        return "compares a CHAR column with a character below the space, which Spark pads"
    padded_length = _padded_length(literals, length)
    spaces = sum(padded_length - len(literal.rstrip(" ")) + 1 for literal in literals)
    if spaces * padded_length > _MOST_CHARACTERS:
        return f"compares a column of type CHAR({length}), with too many spaces to pad"
    return ""
