"""Expressions over rows: an immutable tree of conditions on operands.

Start at ``operands`` (columns and values computed from them, built with :func:`col`) and ``conditions`` (comparisons
and predicates, joined by And, Or and Not); ``visitors`` traverses both.
"""

from __future__ import annotations

from pqext.dataset.expressions.conditions import (
    MAX_DEPTH,
    NEGATED,
    And,
    Comparison,
    Expression,
    IsIn,
    IsNotNull,
    IsNull,
    Matches,
    Not,
    OneOperand,
    Operand,
    Or,
    Relation,
    Spatial,
    StoredOperand,
    all_of,
    any_of,
    literal_text,
)
from pqext.dataset.expressions.operands import (
    Arithmetic,
    Base,
    Cast,
    Column,
    Constant,
    GeometryValue,
    ListLength,
    NamedValue,
    SpatialValue,
    Value,
    VariantField,
    as_value,
    bases,
    col,
    operand_column,
    relation,
)
from pqext.dataset.expressions.operators import ARITHMETIC, ArithmeticOperator
from pqext.dataset.expressions.type_inference import check_number

__all__ = [
    "ARITHMETIC", "MAX_DEPTH", "NEGATED", "And", "Arithmetic", "ArithmeticOperator", "Base", "Cast", "Column",
    "Comparison", "Constant", "Expression", "GeometryValue", "IsIn", "IsNotNull", "IsNull", "ListLength", "Matches",
    "NamedValue", "Not", "OneOperand", "Operand", "Or", "Relation", "Spatial", "SpatialValue", "StoredOperand",
    "Value", "VariantField", "all_of", "any_of", "as_value", "bases", "check_number", "col", "literal_text",
    "operand_column", "relation",
]  # fmt: skip
