"""Binding: an expression meets the schema of one file and becomes questions about its columns.

A bound expression is a tree of :class:`AllOf` and :class:`AnyOf` over leaves, without Not. A leaf holds the
questions that its column's statistics must not refuse; none means that they cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeAlias

from pqext.core import predicate as core
from pqext.core.annotations import for_logical
from pqext.core.metadata import Type
from pqext.core.schema import Schema, SchemaNode
from pqext.core.text import visible
from pqext.dataset.expressions import (
    NEGATED,
    And,
    Column,
    Comparison,
    Expression,
    IsIn,
    IsNotNull,
    IsNull,
    Not,
    Operand,
    Or,
    Spatial,
    VariantField,
    operand_column,
)
from pqext.dataset.literals import Kind, kind_of_arrow, kind_of_node, to_value
from pqext.dataset.spatial import predicate
from pqext.dataset.visitors import normal

if TYPE_CHECKING:
    from pqext.geo.predicates.predicate import SpatialPredicate
    from pqext.variant.pruning import VariantPredicate

Question: TypeAlias = "core.Predicate | SpatialPredicate | VariantPredicate"
"""What is asked of a column: a predicate on its values, or one of the handler that serves its annotation."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of the expression on ``node``: no row is true unless all ``questions`` may match."""

    expression: Expression
    node: SchemaNode
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """No row is true unless all ``operands`` may match."""

    operands: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """No row is true unless one of ``operands`` may match."""

    operands: tuple[Bound, ...]


Bound = Leaf | AllOf | AnyOf


def bind(expression: Expression, schema: Schema) -> Bound:
    """Bind ``expression`` to the schema of a file.

    Every column of the expression must exist: a name that is missing is taken for a mistake and not for a
    column of nulls. Raises ``ValueError`` for columns that are missing and ``TypeError`` for questions that
    the column's type does not answer, naming the column.
    """
    return _bind(normal(expression), schema)


def _bind(expression: Expression, schema: Schema) -> Bound:
    match expression:
        case And():
            return AllOf(tuple(_bind(operand, schema) for operand in expression.operands))
        case Or():
            return AnyOf(tuple(_bind(operand, schema) for operand in expression.operands))
        case Not():
            return _bind_leaf(expression.operand, expression, schema)
    return _bind_leaf(expression, expression, schema)


def _bind_leaf(leaf: Expression, whole: Expression, schema: Schema) -> Leaf:
    negated = whole is not leaf
    match leaf:
        case Comparison() | IsIn():
            node = find(schema, operand_column(leaf.operand))
            kind = _kind(leaf.operand, node)
            literals = leaf.values if isinstance(leaf, IsIn) else (leaf.value,)
            values = tuple(to_value(literal, kind, str(leaf.operand)) for literal in literals)
            return Leaf(whole, node, _asked(leaf.operand, node, _comparisons(leaf, values, negated)))
        case IsNull() | IsNotNull():
            node = find(schema, operand_column(leaf.operand))
            if isinstance(leaf.operand, VariantField):
                _check_variant(leaf.operand, node)
            asks_null = isinstance(leaf, IsNull) != negated
            return Leaf(whole, node, _asked(leaf.operand, node, (core.IsNull() if asks_null else core.IsNotNull(),)))
        case Spatial():
            node = find(schema, leaf.column)
            return Leaf(whole, node, _spatial(leaf, node, negated))
    raise TypeError(f"{type(leaf).__name__} is not a leaf of an expression")


def _comparisons(
    leaf: Comparison | IsIn, values: tuple[core.Value, ...], negated: bool
) -> tuple[core.Predicate, ...]:
    if isinstance(leaf, Comparison):
        operator = NEGATED[leaf.operator] if negated else leaf.operator
        return (core.Comparison(operator, values[0]),)
    if negated:
        return tuple(core.Comparison("!=", value) for value in values) or (core.IsNotNull(),)
    return (core.IsIn(_sorted(values)),)


def _sorted(values: tuple[core.Value, ...]) -> tuple[core.Value, ...]:
    """Values of one kind in order, NaN last."""
    return tuple(sorted(values, key=lambda value: (value != value, value)))


def _asked(operand: Operand, node: SchemaNode, questions: tuple[core.Predicate, ...]) -> tuple[Question, ...]:
    """``questions`` in the form that whoever answers for the operand understands."""
    if node.max_repetition_level:
        return ()  # a value of a list is not the value of a row
    if isinstance(operand, Column):
        return questions
    if node.logical_name != "VARIANT":
        return ()
    from pqext.variant.pruning import VariantPredicate

    assert isinstance(operand, VariantField)
    return tuple(VariantPredicate(operand.path, operand.type, question) for question in questions)


def _spatial(leaf: Spatial, node: SchemaNode, negated: bool) -> tuple[Question, ...]:
    if node.physical_type != Type.BYTE_ARRAY or node.logical_name not in ("GEOMETRY", "GEOGRAPHY", ""):
        raise TypeError(f"column {leaf.column} holds no geometries")
    if node.max_repetition_level:
        return ()
    if negated or not node.logical_name:
        return (core.IsNotNull(),)
    return (predicate(leaf.operation, leaf.geometry, leaf.distance),)


def find(schema: Schema, column: Column) -> SchemaNode:
    """The node of ``column``: raises ``ValueError`` when there is none, ``TypeError`` when it has no value a row."""
    node = schema.root
    for depth, name in enumerate(column.path):
        if depth and for_logical(node.logical_name) is not None:
            inside = f"column {column} lies inside {visible(node.dotted)}, a {node.logical_name}"
            raise TypeError(inside + _ask_for(node, column.path[depth:]))
        if node.max_repetition_level or node.logical_name in ("LIST", "MAP"):
            raise TypeError(f"column {column} lies inside a list or map, where a row has no single value")
        child = node.child(name)
        if child is None:
            raise ValueError(_missing(str(column), node, name))
        _check_unique(node, child)
        node = child
    return node


def lookup(schema: Schema, column: str) -> SchemaNode:
    """The node of a column asked for by name or dotted path; raises ``ValueError`` when there is none."""
    node = schema.find(column)
    if node is None:
        raise ValueError(_missing_within(schema.root, column))
    parent = schema.root
    for name in node.path:
        child = parent.child(name)
        if child is not None:
            _check_unique(parent, child)
            parent = child
    return node


def _check_unique(parent: SchemaNode, child: SchemaNode) -> None:
    if not parent.is_unique(child.name):
        raise ValueError(f"column {visible(child.dotted)} is ambiguous: the file has several of this name")


def _missing(column: str, node: SchemaNode, name: str) -> str:
    if node.is_leaf:
        return f"there is no column {column!r}: {visible(node.dotted)!r} is a plain column and has no fields"
    names = [child.name for child in node.children]
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, names[:10]))}"
    hint += ", ..." if len(names) > 10 and not near else ""
    return f"there is no column {column!r}: {hint}"


def _missing_within(root: SchemaNode, column: str) -> str:
    node = root
    for depth, name in enumerate(names := column.split(".")):
        child = node.child(name)
        if child is None:
            break
        if child.logical_name == "VARIANT" and names[depth + 1 :]:
            return f"there is no column {visible(column)!r}{_ask_for(child, names[depth + 1 :])}"
        node = child
    return _missing(visible(column), node, name)


def _ask_for(node: SchemaNode, path: Sequence[str] = ("name",)) -> str:
    """How to ask for what lies inside ``node``; nothing where there is no way to."""
    if node.logical_name == "VARIANT":
        inside = visible(".".join(path))
        return f"; a value inside a VARIANT is col({visible(node.dotted)!r}).variant('$.{inside}', 'string')"
    if node.logical_name in ("GEOMETRY", "GEOGRAPHY"):
        return "; ask with intersects, within, dwithin or another spatial condition"
    if not node.is_leaf and not node.logical_name and node.children:
        return f"; compare a field of it, col({visible(node.children[0].dotted)!r})"
    return ""


def _check_variant(operand: VariantField, node: SchemaNode) -> None:
    if node.logical_name != "VARIANT" and not {"metadata", "value"} <= {child.name for child in node.children}:
        raise TypeError(f"column {operand.column} is no VARIANT")


def _kind(operand: Operand, node: SchemaNode) -> Kind:
    """What an operand's values compare as."""
    if isinstance(operand, VariantField):
        _check_variant(operand, node)
        from pqext.variant.access.targets import target_type

        kind = kind_of_arrow(target_type(operand.type))
    else:
        if node.max_repetition_level:
            raise TypeError(f"column {operand} is repeated, where a row has no single value")
        kind = kind_of_node(node)
    if kind is None:
        hint = "" if isinstance(operand, VariantField) else _ask_for(node)
        raise TypeError(f"column {operand} compares with no literal, only with null{hint}")
    return kind
