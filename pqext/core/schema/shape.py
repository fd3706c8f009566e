"""Shapes: schema tree in Arrow's structure of leaves, groups and lists, with the levels of each node.

The reader uses shapes to assemble arrays, and the writer to disassemble them. If a shape has an annotation, its handler
converts between the storage and the array that users see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from pqext.core.base.errors import ParquetError
from pqext.core.format.metadata import FieldRepetitionType
from pqext.core.options.read_write import ReadOptions
from pqext.core.schema.annotations import Annotation, TypeWarningHandler, find_by_logical_type
from pqext.core.schema.arrow_schema.types import metadata_of, type_of
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.types import marks
from pqext.core.schema.types.file_reference import find_fault
from pqext.core.schema.types.logical import GROUP_MEMBERS


@dataclass(frozen=True)
class Shape:
    """Base class of shapes.

    A *slot* is a position in the array of this shape. ``slot_level`` is the minimum definition level of an entry with a
    slot; at lower levels an enclosing list is empty or null. ``value_level`` is the minimum definition level of a slot
    that is not null. ``repetition_level`` is the number of repeated fields above and at the slot. ``original`` is the
    field in the stored Arrow schema, if it matches.
    """

    node: SchemaNode
    slot_level: int
    value_level: int
    repetition_level: int
    annotation: Annotation | None
    original: pa.Field | None = field(default=None, kw_only=True)

    @property
    def nullable(self) -> bool:
        """Whether a slot can be null."""
        return self.node.repetition == FieldRepetitionType.OPTIONAL

    def leaves(self) -> Iterator[LeafShape]:
        """Yield the leaf shapes at or below this shape, in column order."""
        raise NotImplementedError

    @cached_property
    def first_leaf(self) -> int:
        """Column index of the first leaf, whose levels describe this shape."""
        return next(self.leaves()).node.leaf_start

    def storage_field(self, options: ReadOptions) -> pa.Field:
        """Return the plain Arrow field of the storage, without this shape's own annotation."""
        raise NotImplementedError

    def field(self, options: ReadOptions) -> pa.Field:
        """Return the Arrow field that readers see, with its field id if the file has one."""
        field = self.storage_field(options)
        if self.annotation is not None:
            field = self.annotation.load().arrow_field(self.node, field, options)
        if self.original is not None:
            shown = field.type if self.annotation is not None else type_of(field.type, self.original.type)
            typed = isinstance(shown, pa.BaseExtensionType)
            metadata = metadata_of(field.metadata, self.original.metadata, is_typed=typed)
            field = pa.field(field.name, shown, field.nullable, metadata or None)
        if self.node.field_id is None:
            return field
        return field.with_metadata({**(field.metadata or {}), marks.FIELD_ID: str(self.node.field_id).encode()})

    def iter_ignored_annotations(self) -> Iterator[tuple[SchemaNode, str]]:
        """Yield the nodes at or below this shape whose annotation is ignored, with the reason."""
        logical = self.node.logical_type
        is_read = self.node.is_leaf or self.node.is_adopted
        if logical is not None and not is_read and not self._uses_annotation(logical.member):
            what = f"{logical.member} does not match the group" if logical.member else "its logical type is unknown"
            yield self.node, f"{what}; it is read as a struct"

    def _uses_annotation(self, member: str | None) -> bool:
        # Do not use ``annotation``: columns of an annotated group may be read as its storage on request.
        return _group_annotation(self.node) is not None

    def select(self, predicate: Callable[[SchemaNode], bool]) -> Shape | None:
        """Return the shape with only the leaves that match ``predicate``; None if no leaf matches.

        If leaves of an annotated shape are removed, the result is its storage without the annotation.
        """
        kept = self._select(predicate)
        if kept is not None and kept.annotation is not None and len(list(kept.leaves())) < len(list(self.leaves())):
            return replace(kept, annotation=None)
        return kept

    def _select(self, predicate: Callable[[SchemaNode], bool]) -> Shape | None:
        raise NotImplementedError


@dataclass(frozen=True)
class LeafShape(Shape):
    """Shape of one leaf column. ``encoded`` means that values are read as a dictionary array, ``viewed`` as views.

    ``element_levels`` contains the minimum definition level of elements of each enclosing list, from the outermost
    list.
    """

    element_levels: tuple[int, ...] = ()
    encoded: bool = field(default=False, kw_only=True)
    viewed: bool = field(default=False, kw_only=True)

    def leaves(self) -> Iterator[LeafShape]:
        yield self

    def storage_field(self, options: ReadOptions) -> pa.Field:
        leaf = self.node.leaf_type
        try:
            arrow = leaf.arrow_type(options.int96_unit)
            result = marks.logical_marks(leaf.logical, leaf.member)
        except ParquetError as error:
            # Other columns can be read; ``check`` raises the error if this column is requested.
            arrow, result = leaf.physical_arrow_type(), {marks.UNREADABLE: error.message.encode()}
        # Arrow's null type is always nullable.
        return pa.field(self.node.name, arrow, self.nullable or pa.types.is_null(arrow), metadata=result or None)

    def iter_ignored_annotations(self) -> Iterator[tuple[SchemaNode, str]]:
        reason = self.node.leaf_type.ignored_reason
        if reason is not None:
            yield self.node, reason

    def _select(self, predicate: Callable[[SchemaNode], bool]) -> Shape | None:
        return self if predicate(self.node) else None


@dataclass(frozen=True)
class GroupShape(Shape):
    """Shape of a struct, with the shapes of its fields as ``children``."""

    children: tuple[Shape, ...]

    def leaves(self) -> Iterator[LeafShape]:
        for child in self.children:
            yield from child.leaves()

    def storage_field(self, options: ReadOptions) -> pa.Field:
        kind = self._struct(options)
        is_file = self.node.logical_name == "FILE" and find_fault(kind) is None
        result = marks.logical_marks(None, "FILE") if is_file else None
        return pa.field(self.node.name, kind, self.nullable, metadata=result)

    def _struct(self, options: ReadOptions) -> pa.StructType:
        return pa.struct([child.field(options) for child in self.children])

    def iter_ignored_annotations(self) -> Iterator[tuple[SchemaNode, str]]:
        yield from super().iter_ignored_annotations()
        for child in self.children:
            yield from child.iter_ignored_annotations()

    def _uses_annotation(self, member: str | None) -> bool:
        if member == "FILE":
            return find_fault(self._struct(ReadOptions())) is None
        # parquet-mr also annotates the entries of a map.
        return super()._uses_annotation(member) or self.node.repetition == FieldRepetitionType.REPEATED

    def _select(self, predicate: Callable[[SchemaNode], bool]) -> Shape | None:
        children = tuple(retained for child in self.children if (retained := child.select(predicate)) is not None)
        return replace(self, children=children) if children else None


@dataclass(frozen=True)
class ListShape(Shape):
    """List or map: a repeated group, and its enclosing group, if any.

    ``element_level`` is the minimum definition level of an element. ``element_repetition`` is the repetition level of
    all elements after the first.
    """

    element: Shape
    element_level: int
    element_repetition: int
    is_map: bool

    def leaves(self) -> Iterator[LeafShape]:
        yield from self.element.leaves()

    def storage_field(self, options: ReadOptions) -> pa.Field:
        element = self.element.field(options)
        if self.is_map and pa.types.is_struct(element.type) and element.type.num_fields == 2:
            key, value = element.type.field(0), element.type.field(1)
            return pa.field(self.node.name, pa.map_(key.with_nullable(False), value), self.nullable)
        return pa.field(self.node.name, pa.list_(element), self.nullable)

    def iter_ignored_annotations(self) -> Iterator[tuple[SchemaNode, str]]:
        yield from self.element.iter_ignored_annotations()

    def _select(self, predicate: Callable[[SchemaNode], bool]) -> Shape | None:
        element = self.element.select(predicate)
        return None if element is None else replace(self, element=element)


def check(shapes: Iterable[Shape], options: ReadOptions) -> list[str]:
    """Raise the error of the first column that cannot be read. Return warnings about annotations and types."""
    results: list[str] = []
    for top in shapes:
        for leaf in top.leaves():
            try:
                leaf.node.leaf_type.arrow_type()
            except ParquetError as error:
                error.locate(column=leaf.node.dotted_path)
                raise
        results += [f"column {node.dotted_path}: {reason}" for node, reason in top.iter_ignored_annotations()]
        results += [f"column {node.dotted_path}: {reason}" for node, reason in _type_warnings(top, options)]
    return results


def _type_warnings(top: Shape, options: ReadOptions) -> Iterator[tuple[SchemaNode, str]]:
    """Yield each column at or below ``top`` with a type warning from its handler, and the warning."""
    for shape in (top,) if isinstance(top, LeafShape) else (top, *top.leaves()):
        handler = None if shape.annotation is None else shape.annotation.load()
        reason = handler.type_warning(shape.node, options) if isinstance(handler, TypeWarningHandler) else None
        if reason is not None:
            yield shape.node, reason


def strip_annotations(shape: Shape) -> Shape:
    """Return the storage shape, without annotations and stored Arrow types at any level."""
    if isinstance(shape, GroupShape):
        return replace(shape, annotation=None, original=None, children=tuple(map(strip_annotations, shape.children)))
    if isinstance(shape, ListShape):
        return replace(shape, annotation=None, original=None, element=strip_annotations(shape.element))
    if isinstance(shape, LeafShape):
        return replace(shape, annotation=None, original=None, encoded=False, viewed=False)
    return replace(shape, annotation=None, original=None)


def from_node(node: SchemaNode, levels: tuple[int, ...] = ()) -> Shape:
    """Build the shape of a node. ``levels`` are the definition levels of its repeated ancestors, from the outermost."""
    if node.repetition == FieldRepetitionType.REPEATED:
        # A repeated field outside a LIST or MAP is a required list of required elements.
        return _build_list(node, node, levels, _build_element(node, levels), is_map=False)
    level, repetition = node.max_definition_level, node.max_repetition_level
    if node.is_leaf:
        return _build_leaf(node, levels)
    if node.is_adopted:
        declared = from_node(replace(node, logical_type=node.declared_type, is_adopted=False), levels)
        return replace(declared, node=node, annotation=find_by_logical_type(node.logical_name))
    if node.logical_name in ("LIST", "MAP") and len(node.children) == 1:
        repeated = node.children[0]
        if repeated.repetition == FieldRepetitionType.REPEATED:
            if node.logical_name == "MAP" and len(repeated.children) == 2:
                return _build_list(node, repeated, levels, _build_entries(repeated, levels), is_map=True)
            # A map without values becomes a list of its keys, by the same rules.
            if _is_element(node, repeated):
                return _build_list(node, repeated, levels, _build_element(repeated, levels))
            within = *levels, repeated.max_definition_level
            return _build_list(node, repeated, levels, from_node(repeated.children[0], within))
    annotation = _group_annotation(node)
    children = tuple(from_node(child, levels) for child in node.children)
    return GroupShape(node, _slot_level(levels), level, repetition, annotation, children)


def _slot_level(levels: tuple[int, ...]) -> int:
    return levels[-1] if levels else 0


def _build_leaf(node: SchemaNode, levels: tuple[int, ...]) -> LeafShape:
    level, repetition = node.max_definition_level, node.max_repetition_level
    annotation = find_by_logical_type(node.leaf_type.member)
    return LeafShape(node, _slot_level(levels), level, repetition, annotation, element_levels=levels)


def _group_annotation(node: SchemaNode) -> Annotation | None:
    return find_by_logical_type(node.logical_name) if node.logical_name in GROUP_MEMBERS else None


def _build_list(
    node: SchemaNode, repeated_node: SchemaNode, levels: tuple[int, ...], element: Shape, *, is_map: bool = False
) -> ListShape:
    alone = node is repeated_node
    return ListShape(
        node=node,
        slot_level=_slot_level(levels),
        value_level=node.max_definition_level - alone,
        repetition_level=node.max_repetition_level - alone,
        annotation=None,
        element=element,
        element_level=repeated_node.max_definition_level,
        element_repetition=repeated_node.max_repetition_level,
        is_map=is_map,
    )


def _is_element(outer: SchemaNode, repeated_node: SchemaNode) -> bool:
    """Return whether the repeated field itself is the element, by the backward-compatibility rules 1 to 4 for lists."""
    return (
        repeated_node.is_leaf
        or len(repeated_node.children) > 1
        or repeated_node.children[0].repetition == FieldRepetitionType.REPEATED
        or repeated_node.name == "array"
        or repeated_node.name == f"{outer.name}_tuple"
    )


def _build_element(repeated_node: SchemaNode, levels: tuple[int, ...]) -> Shape:
    """Return the shape of a repeated field as a required element of its list."""
    if repeated_node.is_leaf:
        return _build_leaf(repeated_node, (*levels, repeated_node.max_definition_level))
    if repeated_node.logical_name in ("LIST", "MAP"):
        within = *levels, repeated_node.max_definition_level
        return from_node(replace(repeated_node, repetition=FieldRepetitionType.REQUIRED), within)
    return _build_entries(repeated_node, levels)


def _build_entries(repeated_node: SchemaNode, levels: tuple[int, ...]) -> GroupShape:
    """Return the shape of a repeated group treated as a struct, ignoring its LIST or MAP annotation."""
    level, repetition = repeated_node.max_definition_level, repeated_node.max_repetition_level
    children = tuple(from_node(child, (*levels, level)) for child in repeated_node.children)
    return GroupShape(repeated_node, level, level, repetition, _group_annotation(repeated_node), children)
