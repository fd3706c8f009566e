"""Compare columns of Spark's type CHAR with text as Spark does.

Spark stores a CHAR(n) as a string that is padded to n characters with spaces, and records the type in the metadata of
the column. It compares such a column with text as if the shorter one were padded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import types as T

from pqext.core.base.errors import UnsupportedError
from pqext.dataset.expressions import And, Column, Comparison, Expression, IsIn, Not, Or, Relation

_KEY = "__CHAR_VARCHAR_TYPE_STRING"
_CHAR = re.compile(r"char\((\d{1,9})\)", re.ASCII)


def char_lengths(schema: T.StructType) -> dict[str, int]:
    """Return the lengths of the CHAR columns of a recorded schema, by name."""
    types = {field.name: _CHAR.fullmatch(str((field.metadata or {}).get(_KEY))) for field in schema}
    return {name: int(match[1]) for name, match in types.items() if match is not None}


def pad_literals(node: Expression, lengths: Mapping[str, int]) -> Expression:
    """Pad the text that a condition compares with CHAR columns to the length of the column.

    Raises ``UnsupportedError`` for CHAR columns of different lengths that are compared with each other.
    """
    match node:
        case And() | Or():
            return replace(node, operands=tuple(pad_literals(operand, lengths) for operand in node.operands))
        case Not():
            return replace(node, operand=pad_literals(node.operand, lengths))
        case Comparison(operand=Column(path=(name,))) if name in lengths:
            return replace(node, value=_pad(node.value, lengths[name]))
        case IsIn(operand=Column(path=(name,))) if name in lengths:
            return replace(node, values=tuple(_pad(value, lengths[name]) for value in node.values))
        case Relation() if pads_columns(node, lengths):
            raise UnsupportedError(
                f"{node} compares CHAR columns of different lengths, of which Spark pads the shorter: pass the "
                "condition as Spark SQL text, or filter with df.where", feature="comparisons of CHAR columns",
            )
    return node


def pads_columns(node: Relation, lengths: Mapping[str, int]) -> bool:
    """Return whether Spark pads an operand: both are CHAR columns, and their lengths differ."""
    columns = [side.path[0] for side in (node.left, node.right) if isinstance(side, Column) and len(side.path) == 1]
    return len({lengths[name] for name in columns if name in lengths}) > 1


def _pad(literal: Any, length: int) -> Any:
    text = literal.rstrip(" ") if isinstance(literal, str) else ""
    return text.ljust(length) if isinstance(literal, str) and len(text) <= length else literal
