"""The schema tree: nodes with their levels, and the shapes in which Arrow sees them.

Implements nested encoding (maximum levels from the schema) and the nested types of the LogicalTypes document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pqext.core import logical
from pqext.core.errors import CorruptFileError, LimitError, UnsupportedError
from pqext.core.limits import DEFAULT_LIMITS, Limits
from pqext.core.logical import LeafType
from pqext.core.metadata import FieldRepetitionType, LogicalType, SchemaElement, Type


@dataclass(frozen=True)
class SchemaNode:
    """One field of the schema: a leaf with a physical type or a group of children.

    ``max_definition_level`` and ``max_repetition_level`` are those of the node itself; ``leaf_start`` and
    ``leaf_stop`` the range of column indexes below it. ``path`` leaves out the root.
    """

    name: str
    repetition: FieldRepetitionType
    children: tuple[SchemaNode, ...]
    physical_type: Type | None
    type_length: int | None
    logical_type: LogicalType | None
    field_id: int | None
    path: tuple[str, ...]
    max_definition_level: int
    max_repetition_level: int
    leaf_start: int
    leaf_stop: int

    @property
    def is_leaf(self) -> bool:
        """Does the node hold values itself?"""
        return self.physical_type is not None

    @property
    def dotted(self) -> str:
        """The path in the schema, joined by dots."""
        return ".".join(self.path)

    @property
    def logical_name(self) -> str:
        """The member of LogicalType set on the node, empty when there is none."""
        return (self.logical_type.member or "") if self.logical_type is not None else ""

    @cached_property
    def leaf_type(self) -> LeafType:
        """The stored type of a leaf."""
        if self.physical_type is None:
            raise TypeError(f"{self.dotted!r} is a group, not a leaf")
        return LeafType(self.physical_type, self.type_length, self.logical_type)

    @cached_property
    def _by_name(self) -> dict[str, SchemaNode]:
        return {child.name: child for child in reversed(self.children)}

    def child(self, name: str) -> SchemaNode | None:
        """The child called ``name``, if there is one; the first of several."""
        return self._by_name.get(name)

    @cached_property
    def _repeated_names(self) -> frozenset[str]:
        return frozenset(name for name, count in Counter(child.name for child in self.children).items() if count > 1)

    def is_unique(self, name: str) -> bool:
        """Does no more than one child have this name? Files may repeat names; a path then means the first."""
        return name not in self._repeated_names

    def leaves(self) -> Iterator[SchemaNode]:
        """The leaves at or below the node, in column order."""
        if self.is_leaf:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(frozen=True)
class Schema:
    """The schema of a file, from its root."""

    root: SchemaNode

    @cached_property
    def leaves(self) -> tuple[SchemaNode, ...]:
        """All leaves in column order: ``leaves[i]`` is column chunk ``i`` of each row group."""
        return tuple(self.root.leaves())

    def find(self, path: str | Sequence[str]) -> SchemaNode | None:
        """The node at ``path``: a sequence of names, a top-level name, or names joined by dots."""
        if isinstance(path, str):
            whole = self.root.child(path)
            return whole if whole is not None else self.find(path.split(".")) if "." in path else None
        node: SchemaNode | None = self.root
        for name in path:
            node = node.child(name) if node is not None else None
        return node

    def __str__(self) -> str:
        return "\n".join(_render(self.root, 0))


def _render(node: SchemaNode, depth: int) -> Iterator[str]:
    annotation = f" ({node.logical_name})" if node.logical_name else ""
    pad = "  " * depth
    repetition = node.repetition.name.lower()
    if node.physical_type is not None:
        length = f"({node.type_length})" if node.physical_type == Type.FIXED_LEN_BYTE_ARRAY else ""
        yield f"{pad}{repetition} {node.physical_type.name}{length} {node.name}{annotation}"
        return
    yield f"{pad}{repetition} group {node.name}{annotation} {{" if depth else f"message {node.name} {{"
    for child in node.children:
        yield from _render(child, depth + 1)
    yield pad + "}"


def from_elements(elements: Sequence[SchemaElement], limits: Limits = DEFAULT_LIMITS) -> Schema:
    """Build the tree from the footer's depth-first list of elements.

    Raises ``CorruptFileError`` when the list is no tree and ``LimitError`` when it is too deep.
    """
    if not elements:
        raise CorruptFileError("the schema has no root")
    builder = _Builder(elements, limits)
    root = builder.node(0, (), 0, 0, is_root=True)
    if builder.at != len(elements):
        raise CorruptFileError(f"the schema holds {len(elements) - builder.at} elements that belong to no group")
    return Schema(root)


class _Builder:
    def __init__(self, elements: Sequence[SchemaElement], limits: Limits) -> None:
        self.elements = elements
        self.limits = limits
        self.at = 0
        self.leaf = 0

    def node(
        self, depth: int, parent: tuple[str, ...], definition: int, repetition: int, *, is_root: bool = False
    ) -> SchemaNode:
        if self.at >= len(self.elements):
            raise CorruptFileError("a group of the schema has fewer children than it claims")
        if depth > self.limits.schema_depth:
            raise LimitError(f"the schema nests deeper than schema_depth={self.limits.schema_depth}")
        element = self.elements[self.at]
        self.at += 1
        path = () if is_root else (*parent, element.name)
        if not element.name.isascii() and any("\ud800" <= character <= "\udfff" for character in element.name):
            raise CorruptFileError(f"the name of field {element.name!r} is not UTF-8")
        kind = FieldRepetitionType.REQUIRED if is_root else _repetition(element, path)
        definition += kind != FieldRepetitionType.REQUIRED
        repetition += kind == FieldRepetitionType.REPEATED
        start = self.leaf
        children: tuple[SchemaNode, ...] = ()
        count = element.num_children or 0
        physical: Type | None = None
        if element.type is not None and not count and not is_root:
            physical = _physical(element, path)
            self.leaf += 1
        elif count < 0 or (not count and not is_root):
            place = _place(path)
            raise CorruptFileError(f"{place} has neither a type nor children", column=place)
        else:
            children = tuple(self.node(depth + 1, path, definition, repetition) for _ in range(count))
        return SchemaNode(
            name=element.name,
            repetition=kind,
            children=children,
            physical_type=physical,
            type_length=element.type_length if physical == Type.FIXED_LEN_BYTE_ARRAY else None,
            logical_type=logical.from_element(element),
            field_id=element.field_id,
            path=path,
            max_definition_level=definition,
            max_repetition_level=repetition,
            leaf_start=start,
            leaf_stop=self.leaf,
        )


def _place(path: tuple[str, ...]) -> str:
    # Joined for errors only: long names nested deeply make paths many times the size of the footer.
    return ".".join(path) or "the root"


def _repetition(element: SchemaElement, path: tuple[str, ...]) -> FieldRepetitionType:
    try:
        return FieldRepetitionType(-1 if element.repetition_type is None else element.repetition_type)
    except ValueError:
        place = _place(path)
        raise CorruptFileError(f"{place} has no valid repetition type", column=place) from None


def _physical(element: SchemaElement, path: tuple[str, ...]) -> Type:
    try:
        physical = Type(-1 if element.type is None else element.type)
    except ValueError:
        place = _place(path)
        raise UnsupportedError(
            f"{place} has physical type {element.type}, which is not known", feature="physical type", column=place
        ) from None
    if physical == Type.FIXED_LEN_BYTE_ARRAY and not 0 < (element.type_length or 0) <= 1 << 24:
        place = _place(path)
        raise CorruptFileError(f"{place} is FIXED_LEN_BYTE_ARRAY of length {element.type_length}", column=place)
    return physical


def to_elements(root: SchemaNode) -> list[SchemaElement]:
    """The footer's depth-first list of elements for a tree."""
    elements = [SchemaElement(name=root.name, num_children=len(root.children))]
    for child in root.children:
        elements.extend(_elements(child))
    return elements


def _elements(node: SchemaNode) -> Iterator[SchemaElement]:
    element = SchemaElement(
        name=node.name,
        repetition_type=node.repetition,
        field_id=node.field_id,
        logicalType=node.logical_type,
        converted_type=logical.converted_type(node.logical_type),
    )
    if node.is_leaf:
        element.type = node.physical_type
        element.type_length = node.type_length
        if node.logical_type is not None and node.logical_type.DECIMAL is not None:
            element.scale = node.logical_type.DECIMAL.scale
            element.precision = node.logical_type.DECIMAL.precision
    else:
        element.num_children = len(node.children)
    yield element
    for child in node.children:
        yield from _elements(child)
