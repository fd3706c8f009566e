"""Bind an expression to the schema of one file, as predicates on its columns.

A bound expression is a tree of :class:`AllOf` and :class:`AnyOf` over leaves, without Not. A leaf contains the
predicates that statistics of its column can disprove. A leaf without predicates cannot be pruned by statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from pqext.core.base.errors import GeometryError
from pqext.core.base.lru import LRU
from pqext.core.base.text import escape_text
from pqext.core.format import predicate as core
from pqext.core.format.metadata import Type
from pqext.core.schema import shape
from pqext.core.schema.annotations import find_by_logical_type
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.dataset.evaluation.comparison import COMPARABLE, check_comparable
from pqext.dataset.evaluation.operand_values import type_of
from pqext.dataset.expressions import (
    NEGATED,
    And,
    Arithmetic,
    Base,
    Cast,
    Column,
    Comparison,
    Expression,
    IsIn,
    IsNotNull,
    IsNull,
    Matches,
    Not,
    Operand,
    Or,
    Relation,
    Spatial,
    SpatialValue,
    VariantField,
    bases,
    mistakes,
    operand_column,
)
from pqext.dataset.expressions.literals import ValueType, is_duration, value_type_of_arrow, value_type_of_node
from pqext.dataset.expressions.mistakes import label_of
from pqext.dataset.expressions.spatial import predicate
from pqext.dataset.expressions.visitors import push_down_not
from pqext.dataset.pruning.bounds import UNKNOWN, convert_dates_to_timestamps, operand_bounds, to_predicates
from pqext.dataset.pruning.implied_predicates import implied_predicate, result_predicate
from pqext.variant.access.targets import target_type

if TYPE_CHECKING:
    from pqext.geo.predicates.predicate import SpatialPredicate
    from pqext.variant.pruning import VariantPredicate

ColumnPredicate: TypeAlias = "core.Predicate | SpatialPredicate | VariantPredicate"
"""A predicate on a column's values, or one evaluated by the handler of the column's annotation."""


@dataclass(frozen=True)
class Leaf:
    """Condition on the column ``node``. No row matches unless all ``predicates`` may match."""

    expression: Expression
    node: SchemaNode
    predicates: tuple[ColumnPredicate, ...]

    @cached_property
    def comparisons(self) -> tuple[core.Comparison | core.IsIn, ...]:
        """The predicates that can be disproved by the minimum and maximum."""
        return tuple(predicate for predicate in self.predicates if isinstance(predicate, core.Comparison | core.IsIn))

    @cached_property
    def text(self) -> str:
        """The condition as text, formatted once for all row groups."""
        return str(self.expression)

    @cached_property
    def value_type(self) -> ValueType | None:
        """Category of the column's values."""
        return value_type_of_node(self.node)


@dataclass(frozen=True, slots=True)
class AllOf:
    """Conjunction: no row matches unless all ``operands`` may match."""

    operands: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Disjunction: no row matches unless one of ``operands`` may match."""

    operands: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class ComputedLeaf:
    """Condition on a computed operand. No row matches unless the operand's bounds allow ``predicate``.

    The predicate tests the operand's values, or is a comparison operator with another operand.
    """

    expression: Expression
    operand: Operand
    predicate: core.Predicate | tuple[core.Operator, Operand]
    nodes: Mapping[tuple[Any, ...], SchemaNode | None]
    """The columns that the operand is computed from, by key; None for nested columns, whose bounds are unknown."""
    types: Mapping[tuple[Any, ...], pa.DataType]

    def may_match(self, get_bounds: Callable[[SchemaNode], core.Bounds]) -> bool:
        """Return whether a row may match. ``get_bounds`` returns the bounds of a column.

        ``False`` is definitive.
        """

        def bounds(base: Base) -> core.Bounds:
            node = self.nodes[base._key()]
            return UNKNOWN if node is None else get_bounds(node)

        def type(base: Base) -> pa.DataType:
            return self.types[base._key()]

        result = operand_bounds(self.operand, type, bounds)
        if not isinstance(self.predicate, tuple):
            return core.may_match(self.predicate, result)
        operator, other = self.predicate
        beside = operand_bounds(other, type, bounds)
        kinds = value_type_of_arrow(type_of(self.operand, type)), value_type_of_arrow(type_of(other, type))
        if kinds == (_DATE, _TIMESTAMP):
            result = convert_dates_to_timestamps(result)
        elif kinds == (_TIMESTAMP, _DATE):
            beside = convert_dates_to_timestamps(beside)
        elif None in kinds or (kinds[0] != kinds[1] and not all(item.name in COMPARABLE for item in kinds if item)):
            return True
        return core.may_relate(result, operator, beside)


Bound = Leaf | ComputedLeaf | AllOf | AnyOf

_DATE, _TIMESTAMP = ValueType("date"), ValueType("timestamp")


_recent: LRU[tuple[int, int], tuple[Expression, Schema, Bound]] = LRU(16)
"""Recent results of :func:`bind`: many files share a schema, and each file is bound. Entries hold the objects of their
keys."""


def bind(expression: Expression, schema: Schema) -> Bound:
    """Bind ``expression`` to the schema of a file.

    Every column of the expression must exist: a missing column is an error, not a column of nulls. Raises
    ``ValueError`` if a column is missing, and ``TypeError``, with the name of the column, if its type does not support
    a condition.
    """
    key = id(expression), id(schema)
    known = _recent.get(key)
    if known is None:
        known = expression, schema, _bind(push_down_not(expression), schema)
        _recent.put(key, known)
    return known[2]


def _bind(expression: Expression, schema: Schema) -> Bound:
    match expression:
        case And():
            return AllOf(tuple(_bind(operand, schema) for operand in expression.operands))
        case Or():
            return AnyOf(tuple(_bind(operand, schema) for operand in expression.operands))
        case Not():
            return _bind_leaf(expression.operand, expression, schema)
    return _bind_leaf(expression, expression, schema)


def _bind_leaf(leaf: Expression, expression: Expression, schema: Schema) -> Bound:
    negated = expression is not leaf
    match leaf:
        case Comparison() | IsIn() | Matches():
            kind = _comparison_type(leaf.operand, schema)
            literals = leaf.values if isinstance(leaf, IsIn) else (leaf.value,) if isinstance(leaf, Comparison) else ()
            if kind.name == "integer" and isinstance(leaf.operand, Column) and any(map(is_duration, literals)):
                return Leaf(expression, find(schema, leaf.operand), ())  # only the stored Arrow schema has its unit
            implied = implied_predicate(leaf) if isinstance(leaf, Comparison) and not negated else None
            if implied is not None:
                node = find(schema, implied[0])
                is_plane = node.logical_name == "GEOMETRY"
                prunes = (is_plane or implied[1].operation == "dwithin") and bool(node.logical_name)
                return Leaf(expression, node, (implied[1],) if prunes and not node.max_repetition_level else ())
            predicates = to_predicates(leaf, kind, negated)
            either = [_bind_predicates(expression, leaf.operand, schema, predicate) for predicate in predicates]
            return either[0] if len(either) == 1 else AnyOf(tuple(either))
        case Relation():
            check_comparable(_comparison_type(leaf.left, schema), _comparison_type(leaf.right, schema), str(leaf))
            operator = NEGATED[leaf.operator] if negated else leaf.operator
            return _bind_computed(expression, leaf.left, schema, (operator, leaf.right))
        case IsNull() | IsNotNull():
            if not isinstance(leaf.operand, Column | VariantField):
                operand_type(leaf.operand, schema)
            elif isinstance(leaf.operand, VariantField):
                _check_variant(leaf.operand, find(schema, leaf.operand.column))
            asks_null = isinstance(leaf, IsNull) != negated
            null_test = core.IsNull() if asks_null else core.IsNotNull()
            return _bind_predicates(expression, leaf.operand, schema, (null_test,))
        case Spatial():
            node = find(schema, operand_column(_geometry_base(leaf)))
            return Leaf(expression, node, _spatial_predicates(leaf, node, negated, schema))
    raise TypeError(f"{type(leaf).__name__} is not a leaf of an expression")


def _bind_predicates(
    expression: Expression, operand: Operand, schema: Schema, predicates: tuple[core.Predicate, ...]
) -> Bound:
    """Bind ``predicates`` on the values of an operand."""
    if isinstance(operand, Column | VariantField):
        node = find(schema, operand_column(operand))
        return Leaf(expression, node, _column_predicates(operand, node, predicates))
    parts = tuple(_bind_computed(expression, operand, schema, predicate) for predicate in predicates)
    return parts[0] if len(parts) == 1 else AllOf(parts)


def _bind_computed(
    expression: Expression, operand: Operand, schema: Schema, predicate: core.Predicate | tuple[core.Operator, Operand]
) -> ComputedLeaf:
    read = bases(operand) + (bases(predicate[1]) if isinstance(predicate, tuple) else [])
    nodes = {base._key(): _flat_column(base, schema) for base in read}
    types = {base._key(): _column_type(base, schema) for base in read}
    return ComputedLeaf(expression, operand, predicate, nodes, types)


def _flat_column(base: Base, schema: Schema) -> SchemaNode | None:
    """Return the leaf column of ``base`` if it has one value per row and no annotation, otherwise None."""
    node = find(schema, operand_column(base))
    is_plain = isinstance(base, Column) and node.is_leaf and not node.max_repetition_level
    return node if is_plain and find_by_logical_type(node.logical_name) is None else None


def _column_predicates(
    operand: Operand, node: SchemaNode, predicates: tuple[core.Predicate, ...]
) -> tuple[ColumnPredicate, ...]:
    """Convert ``predicates`` to predicates that the operand's statistics can disprove."""
    if node.max_repetition_level:
        return ()  # the value of a list element is not the value of a row
    if isinstance(operand, Column):
        return predicates
    if node.logical_name != "VARIANT":
        return ()
    from pqext.variant.pruning import VariantPredicate

    assert isinstance(operand, VariantField)
    zone = operand.timezone
    return tuple(VariantPredicate(operand.path, operand.type, predicate, zone) for predicate in predicates)


def _check_geometries(column: Column, node: SchemaNode) -> None:
    """Raise ``TypeError`` unless a column can contain geometries."""
    is_wkb = node.physical_type == Type.BYTE_ARRAY and node.logical_name in ("GEOMETRY", "GEOGRAPHY", "")
    if not is_wkb and not node.is_adopted:
        raise TypeError(f"column {label_of(column)} contains no geometries{column.place or ''}")


def _is_geographic(node: SchemaNode) -> bool:
    """Return whether a geometry column has a geographic CRS; False if its CRS is unknown."""
    from pqext.geo.types import GeospatialType

    try:
        return node.logical_type is not None and GeospatialType.from_logical_type(node.logical_type).geographic
    except GeometryError:
        return False


def _geometry_base(leaf: Spatial) -> Base:
    """Return the first input column of the geometries. The statistics of this column are used for pruning."""
    return bases(leaf.operand)[0]


def _spatial_predicates(
    leaf: Spatial, node: SchemaNode, is_negated: bool, schema: Schema
) -> tuple[ColumnPredicate, ...]:
    for base in bases(leaf.operand):
        _check_geometries(operand_column(base), find(schema, operand_column(base)))
    requested: SpatialPredicate | None
    if isinstance(leaf.operand, SpatialValue):
        requested = result_predicate(leaf)
    else:
        requested = predicate(leaf.operation, leaf.geometry, leaf.distance)
        if node.logical_name == "GEOGRAPHY":
            requested.warn_of_mismatch(str(leaf.operand))
        if _is_geographic(node):
            requested.warn_of_swapped_axes(str(leaf.operand))
    if node.max_repetition_level:
        return ()
    if is_negated or requested is None or not node.logical_name:
        return (core.IsNotNull(),)
    return (requested,)


def find(schema: Schema, column: Column, extra_names: Iterable[str] = ()) -> SchemaNode:
    """Return the schema node of ``column``.

    ``extra_names`` are columns outside the file that the error for a missing column may suggest.

    Raises:
        ValueError: If the column does not exist.
        TypeError: If the column does not have exactly one value per row.
    """
    node = schema.root
    for depth, name in enumerate(column.path):
        if depth and find_by_logical_type(node.logical_name) is not None:
            whole = f"{node.logical_name} column {escape_text(node.dotted_path)!r}"
            inside = f"column {label_of(column)} is a value inside the {whole}"
            message = mistakes.value_hint(node, mistakes.notation(column), column.path[depth:])
            raise TypeError(inside + message + (column.place or ""))
        if node.max_repetition_level or node.logical_name in ("LIST", "MAP"):
            problem = f"column {label_of(column)} is inside a list or map"
            raise TypeError(f"{problem}; a condition requires one value per row")
        child = node.child(name)
        if child is None:
            raise ValueError(mistakes.no_column_message(column, node, name, extra_names))
        _check_unique(node, child)
        node = child
    return node


def lookup(schema: Schema, column: str, extra_names: Iterable[str] = ()) -> SchemaNode:
    """Return the schema node of a column by name or dotted path. Raises ``ValueError`` if it does not exist.

    ``extra_names`` are columns outside the file that the error may suggest.
    """
    node = schema.find(column)
    if node is None:
        raise ValueError(mistakes.missing_column_message(schema.root, column, extra_names))
    parent = schema.root
    for name in node.path:
        child = parent.child(name)
        if child is not None:
            _check_unique(parent, child)
            parent = child
    return node


def _check_unique(parent: SchemaNode, child: SchemaNode) -> None:
    if not parent.is_unique(child.name):
        dotted_path = escape_text(child.dotted_path)
        raise ValueError(f"column {dotted_path!r} is ambiguous: the file has several columns with this name")


def _check_variant(operand: VariantField, node: SchemaNode) -> None:
    if node.logical_name != "VARIANT" and not {"metadata", "value"} <= {child.name for child in node.children}:
        raise TypeError(f"column {label_of(operand.column)} is not a VARIANT; paths apply to VARIANT columns only")


def _comparison_type(operand: Operand, schema: Schema) -> ValueType:
    """Return the comparison category of an operand's values."""
    kind = value_type_of_arrow(operand_type(operand, schema))
    if kind is None or (isinstance(operand, SpatialValue) and operand.is_geometry):
        node = find(schema, operand) if isinstance(operand, Column) else None
        if node is not None and node.max_repetition_level:
            raise TypeError(f"column {label_of(operand)} is repeated; a condition requires one value per row")
        hint = "" if node is None else mistakes.value_hint(node, mistakes.notation(operand))
        position = mistakes.position_text(operand)
        raise TypeError(f"column {label_of(operand)} can only be compared with null{hint}{position}")
    return kind


def _geometry_columns(operand: Operand) -> list[Base]:
    """Return the columns that the operand's spatial functions use as geometries."""
    match operand:
        case SpatialValue():
            return bases(operand)
        case Arithmetic():
            return [base for part in operand.operands for base in _geometry_columns(part)]
        case Cast():
            return _geometry_columns(operand.operand)
    return []


def operand_type(operand: Operand, schema: Schema) -> pa.DataType:
    """Return the Arrow type of an operand's values in a file. Raises the errors of :func:`bind`."""
    for base in _geometry_columns(operand):
        _check_geometries(operand_column(base), find(schema, operand_column(base)))
    return type_of(operand, lambda base: _column_type(base, schema))


def _column_type(base: Base, schema: Schema) -> pa.DataType:
    """Return the Arrow type of a column's values.

    For columns with several values per row, it is a type without children.
    """
    node = find(schema, operand_column(base))
    if isinstance(base, VariantField):
        _check_variant(base, node)
        return target_type(base.type)
    if find_by_logical_type(node.logical_name) is not None:
        return pa.struct([])
    if isinstance(shape.from_node(node), shape.ListShape):
        return pa.list_(pa.null())
    return node.leaf_type.arrow_type() if node.is_leaf else pa.struct([])
