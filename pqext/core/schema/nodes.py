"""Schema tree: nodes with their levels, and conversion to schema elements.

Implements nested encoding (maximum levels from the schema) and the nested types of the LogicalTypes document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pqext.core.base.text import escape_text
from pqext.core.format.metadata import FieldRepetitionType, LogicalType, SchemaElement, Type
from pqext.core.schema.types import logical
from pqext.core.schema.types.geometries import crs_label
from pqext.core.schema.types.legacy_calendar import LegacyCalendar
from pqext.core.schema.types.logical import LeafType


@dataclass(frozen=True)
class SchemaNode:
    """Node of the schema: a leaf with a physical type, or a group of children.

    ``max_definition_level`` and ``max_repetition_level`` apply to the node itself. ``leaf_start`` and ``leaf_stop``
    bound the column indexes of its leaves. ``path`` excludes the root. If ``is_adopted`` is true, the logical type
    comes from key-value metadata, and ``declared_type`` is the type in the schema. ``calendar`` is the calendar of a
    leaf's values if it is not the proleptic Gregorian calendar. If ``is_utc`` is true, INT96 timestamps are read as
    instants; ``int96_step`` is their unit in nanoseconds. ``stored_path`` is the path in the file if a table gives the
    column another one.
    """

    name: str
    repetition: FieldRepetitionType
    children: Sequence[SchemaNode]
    physical_type: Type | None
    type_length: int | None
    logical_type: LogicalType | None
    field_id: int | None
    path: tuple[str, ...]
    max_definition_level: int
    max_repetition_level: int
    leaf_start: int
    leaf_stop: int
    is_adopted: bool = field(default=False, compare=False)
    declared_type: LogicalType | None = field(default=None, compare=False)
    calendar: LegacyCalendar | None = field(default=None, compare=False)
    is_utc: bool = field(default=False, compare=False)
    int96_step: int = field(default=1, compare=False)
    stored_path: tuple[str, ...] | None = field(default=None, compare=False)

    @property
    def path_in_file(self) -> tuple[str, ...]:
        """Path of the node in the file's metadata."""
        return self.path if self.stored_path is None else self.stored_path

    @property
    def is_leaf(self) -> bool:
        """Whether the node is a leaf."""
        return self.physical_type is not None

    @property
    def dotted_path(self) -> str:
        """Path in the schema, with names joined by dots."""
        return ".".join(self.path)

    @property
    def logical_name(self) -> str:
        """Name of the LogicalType member that is set on the node, or an empty string."""
        return (self.logical_type.member or "") if self.logical_type is not None else ""

    @cached_property
    def leaf_type(self) -> LeafType:
        """Stored type of a leaf. Raises ``TypeError`` for a group."""
        if self.physical_type is None:
            raise TypeError(f"{self.dotted_path!r} is a group, not a leaf")
        return LeafType(
            self.physical_type, self.type_length, self.logical_type, self.calendar, self.is_utc, self.int96_step
        )

    @cached_property
    def lookup_key(self) -> tuple[int, int, bytes]:
        """Key of a leaf for kernels that search a footer: column index, physical type, length-prefixed names."""
        names = [name.encode("utf-8", "surrogateescape") for name in self.path_in_file]
        path = b"".join(len(name).to_bytes(4, "little") + name for name in names)
        return self.leaf_start, int(self.leaf_type.physical), path

    @cached_property
    def _by_name(self) -> dict[str, int]:
        names = self.child_names
        return dict(zip(reversed(names), range(len(names) - 1, -1, -1), strict=True))

    @cached_property
    def child_names(self) -> list[str]:
        """Names of the children in order."""
        if isinstance(self.children, tuple):
            return [child.name for child in self.children]
        names: list[str] = self.children.names()  # type: ignore[attr-defined]
        return names

    def __contains__(self, name: object) -> bool:
        """Return whether a child is called ``name``, without reading all names of a wide schema."""
        return isinstance(name, str) and self.position(name) is not None

    def position(self, name: str) -> int | None:
        """Return the position of the first child called ``name``; None if missing."""
        result = self._search(name)
        return self._by_name.get(name) if result is None else result[0]

    def _search(self, name: str) -> tuple[int | None, bool] | None:
        if "_by_name" in self.__dict__ or isinstance(self.children, tuple):
            return None
        match: tuple[int | None, bool] | None = self.children.search(name)  # type: ignore[attr-defined]
        return match

    def child(self, name: str) -> SchemaNode | None:
        """Return the first child called ``name``; None if missing."""
        position = self.position(name)
        return None if position is None else self.children[position]

    @cached_property
    def _repeated_names(self) -> frozenset[str]:
        if len(self._by_name) == len(self.child_names):
            return frozenset()
        return frozenset(name for name, count in Counter(self.child_names).items() if count > 1)

    def is_unique(self, name: str) -> bool:
        """Return whether at most one child has this name. If a file repeats a name, paths refer to the first child."""
        result = self._search(name)
        return result[1] if result is not None else name not in self._repeated_names

    def leaves(self) -> Iterator[SchemaNode]:
        """Yield the leaves at or below the node, in column order."""
        if self.is_leaf:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(frozen=True)
class Schema:
    """Schema of a file, from its root.

    ``leaves`` contains all leaves in column order: ``leaves[i]`` corresponds to column chunk ``i`` of each row group.
    """

    root: SchemaNode
    leaves: Sequence[SchemaNode]

    @classmethod
    def from_root(cls, root: SchemaNode) -> Schema:
        """Create a schema from a complete tree."""
        return cls(root, tuple(root.leaves()))

    def find(self, path: str | Sequence[str]) -> SchemaNode | None:
        """Return the node at ``path``: a sequence of names, a top-level name, or a dotted path; None if missing."""
        if isinstance(path, str):
            whole = self.root.child(path)
            return whole if whole is not None else self.find(path.split(".")) if "." in path else None
        node: SchemaNode | None = self.root
        for name in path:
            node = node.child(name) if node is not None else None
        return node

    def __str__(self) -> str:
        return "\n".join(_render(self.root, 0))

    def __repr__(self) -> str:
        return str(self)


def _render(node: SchemaNode, depth: int) -> Iterator[str]:
    annotation = f" ({node.logical_name})" if node.logical_name else ""
    pad = "  " * depth
    repetition = node.repetition.name.lower()
    if node.physical_type is not None:
        length = f"({node.type_length})" if node.physical_type == Type.FIXED_LEN_BYTE_ARRAY else ""
        yield f"{pad}{repetition} {node.physical_type.name}{length} {escape_text(node.name)}{annotation}"
        return
    label = f"{pad}{repetition} group" if depth else "message"
    yield f"{label} {escape_text(node.name)}{annotation if depth else ''} {{"
    for child in node.children:
        yield from _render(child, depth + 1)
    yield pad + "}"


def to_elements(root: SchemaNode) -> list[SchemaElement]:
    """Convert a tree to the depth-first list of elements in a footer."""
    elements = [SchemaElement(name=root.name, num_children=len(root.children))]
    for child in root.children:
        elements.extend(_elements(child))
    return elements


def _elements(node: SchemaNode) -> Iterator[SchemaElement]:
    declared = node.declared_type if node.is_adopted else node.logical_type
    element = SchemaElement(
        name=node.name,
        repetition_type=node.repetition,
        field_id=node.field_id,
        logicalType=logical.to_logical(declared),
        converted_type=logical.converted_type(declared),
    )
    if node.is_leaf:
        element.type = node.physical_type
        element.type_length = node.type_length
        if declared is not None and declared.DECIMAL is not None:
            element.scale = declared.DECIMAL.scale
            element.precision = declared.DECIMAL.precision
    else:
        element.num_children = len(node.children)
    yield element
    for child in node.children:
        yield from _elements(child)


def display_type(node: SchemaNode | None, value: object) -> str:
    """Describe the type of a column for users: its logical type if it is VARIANT or geospatial, otherwise ``value``."""
    if node is None or node.logical_name not in ("VARIANT", "GEOMETRY", "GEOGRAPHY"):
        return str(value)
    if node.logical_name == "VARIANT":
        return "VARIANT, shredded" if node.child("typed_value") is not None else "VARIANT"
    assert node.logical_type is not None
    result = getattr(node.logical_type, node.logical_name)
    return f"{node.logical_name}({crs_label(result.crs)})"
