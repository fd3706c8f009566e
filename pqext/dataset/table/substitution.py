"""Substitute the values of partition columns in conditions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pqext.dataset.evaluation.evaluate import value_of
from pqext.dataset.expressions import (
    Arithmetic,
    Cast,
    Constant,
    Expression,
    IsNotNull,
    IsNull,
    Not,
    OneOperand,
    Operand,
    Relation,
    bases,
    operand_column,
    relation,
)


def substitute(leaf: Expression, row: pa.RecordBatch) -> Expression | bool | None:
    """Replace the partition columns in a condition with the values in ``row``.

    Return the new condition, or its result, True, False or None for null, if the values determine the result.
    """
    if isinstance(leaf, Not):
        inner = substitute(leaf.operand, row)
        return Not(inner) if isinstance(inner, Expression) else None if inner is None else not inner
    if isinstance(leaf, Relation):
        left, right = _fold_constants(leaf.left, row), _fold_constants(leaf.right, row)
        return None if left is None or right is None else relation(left, leaf.operator, right)
    made = _fold_constants(leaf.operand, row) if isinstance(leaf, OneOperand) else None
    if not isinstance(leaf, OneOperand) or made is None:
        return True if isinstance(leaf, IsNull) else False if isinstance(leaf, IsNotNull) else None
    return leaf if made is leaf.operand else replace(leaf, operand=made)


def uses_only(operand: Operand, names: Collection[str]) -> bool:
    """Return whether an operand uses at least one column, and only columns in ``names``."""
    result = bases(operand)
    return bool(result) and all(operand_column(base).path[0] in names for base in result)


def _fold_constants(operand: Any, row: pa.RecordBatch) -> Any:
    """Replace values that depend only on ``row`` with constants. Return None if the operand is null."""
    if uses_only(operand, row.schema.names):
        (result,) = value_of(operand, row)
        return Constant(result) if result.is_valid else None
    match operand:
        case Arithmetic():
            sides = tuple(_fold_constants(item, row) for item in operand.operands)
            return None if any(side is None for side in sides) else Arithmetic(operand.operator, sides)
        case Cast():
            inner = _fold_constants(operand.operand, row)
            return None if inner is None else Cast(inner, operand.type, operand.timezone)
    return operand
