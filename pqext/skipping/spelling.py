"""One spelling of types within VARIANT columns, so that an index answers filters however these name its type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pqext.dataset.expressions import And, Arithmetic, Cast, Expression, Not, OneOperand, Or, Relation, VariantField
from pqext.variant.access.targets import target_type, type_name


def one_spelling(node: Any) -> Any:
    """An operand or a condition with every type of a value within a VARIANT as :func:`pqext.variant.get` names it.

    >>> from pqext import col
    >>> print(one_spelling(col("event").variant("$.mag", "float64") > 5))
    event[$.mag: DOUBLE] > 5
    """
    match node:
        case VariantField():
            name = type_name(target_type(node.type))
            return node if name == node.type else replace(node, type=name)
        case And() | Or() | Arithmetic():
            changed: Any = {"operands": tuple(map(one_spelling, node.operands))}
            return replace(node, **changed)
        case Relation():
            return replace(node, left=one_spelling(node.left), right=one_spelling(node.right))
        case Not() | Cast() | OneOperand():
            return replace(node, operand=one_spelling(node.operand))
    return node


def spelled(filter: Expression) -> Expression:
    """A filter in this spelling."""
    found: Expression = one_spelling(filter)
    return found
