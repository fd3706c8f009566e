"""Conditions on columns of files and of folders at once, once it is known what the folders of a file say."""

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


def substituted(leaf: Expression, row: pa.RecordBatch) -> Expression | bool | None:
    """A leaf of a normalised expression with the values of ``row`` for its columns; its truth where they decide it."""
    if isinstance(leaf, Not):
        inner = substituted(leaf.operand, row)
        return Not(inner) if isinstance(inner, Expression) else None if inner is None else not inner
    if isinstance(leaf, Relation):
        left, right = _replaced(leaf.left, row), _replaced(leaf.right, row)
        return None if left is None or right is None else relation(left, leaf.operator, right)
    made = _replaced(leaf.operand, row) if isinstance(leaf, OneOperand) else None
    if not isinstance(leaf, OneOperand) or made is None:
        return True if isinstance(leaf, IsNull) else False if isinstance(leaf, IsNotNull) else None
    return leaf if made is leaf.operand else replace(leaf, operand=made)


def reads(operand: Operand, names: Collection[str]) -> bool:
    """Is an operand computed of columns ``names`` alone?"""
    found = bases(operand)
    return bool(found) and all(operand_column(base).path[0] in names for base in found)


def _replaced(operand: Any, row: pa.RecordBatch) -> Any:
    """An operand with constants for what is computed of ``row`` alone; None where that is null."""
    if reads(operand, row.schema.names):
        (found,) = value_of(operand, row)
        return Constant(found) if found.is_valid else None
    match operand:
        case Arithmetic():
            sides = tuple(_replaced(one, row) for one in operand.operands)
            return None if any(one is None for one in sides) else Arithmetic(operand.operator, sides)
        case Cast():
            inner = _replaced(operand.operand, row)
            return None if inner is None else Cast(inner, operand.type, operand.timezone)
    return operand
