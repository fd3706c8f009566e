"""Schema of a file as a tree whose nodes are created on demand.

A kernel validates the depth-first list in the footer. For a wide file, objects are then created only for the columns
that are used. Implements nested encoding (maximum levels from the schema).
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from typing import overload

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.format.metadata import FieldRepetitionType, SchemaElement, Type
from pqext.core.format.thrift import LazyStructs
from pqext.core.kernels.thrift import schema_tree as kernel
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.types import logical

_MAX_NAMES_READ = 64
"""Maximum number of children whose names are all read for one search."""
_SOUGHT = 16
"""Maximum number of names that are searched among all children. For more names, an index is built."""
_REPETITIONS = tuple(FieldRepetitionType)


def from_elements(
    elements: Sequence[SchemaElement], limits: Limits = DEFAULT_LIMITS, path: str | None = None, *,
    strict: bool = True,
) -> Schema:  # fmt: skip
    """Build the tree from the footer's depth-first list of elements. ``path`` names the file in later errors.

    Groups without columns are omitted unless ``strict`` is set, because they have no column chunks.

    Raises ``CorruptFileError`` if the list does not form a tree, and ``LimitError`` if it is too deep. Errors of a
    single column, such as an unknown physical type, are raised when the column is accessed.
    """
    if not elements:
        raise CorruptFileError("the schema has no root")
    try:
        tree = Tree(elements, limits, path)
    except CorruptFileError:
        columns = [] if strict else _without_empty_groups(elements)
        if len(columns) in (0, len(elements)):
            raise
        tree = Tree(columns, limits, path)
    root = tree.node(0, None)
    return Schema(root, Leaves(len(tree.leaf_elements), root))


def _without_empty_groups(elements: Sequence[SchemaElement]) -> list[SchemaElement]:
    """Return the elements of a schema without groups that contain no leaf at any depth."""
    retained: list[SchemaElement] = []
    subtrees: list[bool] = []
    """Whether the subtrees that follow the element contain a leaf, the nearest last."""
    for element in reversed(list(elements)):
        count = element.num_children or 0
        if element.type is not None and not count:
            retained.append(element)
            subtrees.append(True)
            continue
        if not 0 <= count <= len(subtrees):
            return list(elements)  # not a tree; the caller raises the error
        children = [subtrees.pop() for _ in range(count)]
        subtrees.append(any(children))
        if any(children):
            group = copy(element)
            group.num_children = sum(children)
            retained.append(group)
    return retained[::-1]


class Tree:
    """Names of all elements of a schema, and arrays of their levels and positions.

    The tree may also be part of a schema, below a root that is created for it. Its leaves are then numbered from
    ``base``.
    """

    def __init__(
        self, elements: Sequence[SchemaElement], limits: Limits, path: str | None, base: int = 0
    ) -> None:
        self.elements, self.base = elements, base
        self._file = path
        index = elements.undecoded_index if isinstance(elements, LazyStructs) else None
        result = kernel.elements(index) if index is not None else _columns(elements)
        self.names, odd, children, repetition, typed = result
        if odd >= 0:
            raise CorruptFileError(f"the name of field {elements[odd].name!r} is not UTF-8")
        self.counts: Sequence[int] = memoryview(children.data)
        self.repetitions: Sequence[int] = memoryview(repetition.data)
        fault, at, arrays = kernel.levels(children, repetition, typed, limits.schema_depth)
        self.definition, self.repetition, self.first_leaf, self.last_leaf, self.end, self.leaf_elements = arrays
        if fault:
            self._raise_fault(fault, at, limits)

    def _raise_fault(self, fault: str, position: int, limits: Limits) -> None:
        if fault == "missing":
            raise CorruptFileError("a group of the schema has fewer children than its num_children declares")
        if fault == "deep":
            raise LimitError(
                f"the schema nests deeper than schema_depth={limits.schema_depth} levels; "
                "raise the limit with limits=Limits(schema_depth=...)"
            )
        if fault == "left":
            raise CorruptFileError(f"the schema has {len(self.names) - position} elements outside any group")
        # The enclosing groups are those that are not complete yet. Element 0 is the root.
        opened = [i for i in range(1, position) if not self.end[i]]
        name = ".".join(self.names[i] for i in (*opened, position) if i) or "the root"
        wrong = "no valid repetition type" if fault == "repetition" else "neither a type nor children"
        raise CorruptFileError(f"{name} has {wrong}", column=name)

    def node(self, position: int, parent: tuple[str, ...] | None) -> SchemaNode:
        """Return the node of one element. ``parent`` is the path of its parent, or None for the root."""
        element = self.elements[position]
        path = () if parent is None else (*parent, element.name)
        count = self.counts[position]
        try:
            physical = _physical_type(element, path) if parent is not None and not count else None
        except ParquetError as error:
            error.locate(path=self._file)
            raise
        return SchemaNode(
            name=element.name,
            repetition=FieldRepetitionType.REQUIRED if parent is None else _REPETITIONS[
                max(self.repetitions[position], 0)
            ],
            children=Children(self, position, path) if count else (),
            physical_type=physical,
            type_length=element.type_length if physical == Type.FIXED_LEN_BYTE_ARRAY else None,
            logical_type=logical.from_element(element),
            field_id=element.field_id,
            path=path,
            max_definition_level=self.definition[position],
            max_repetition_level=self.repetition[position],
            leaf_start=self.base + self.first_leaf[position],
            leaf_stop=self.base + self.last_leaf[position],
        )


def _columns(
    elements: Sequence[SchemaElement],
) -> tuple[Sequence[str], int, NDArray[np.int32], NDArray[np.int8], NDArray[np.uint8]]:
    """Extract names and arrays from ``elements`` that are already decoded. A kernel does the same for a serialised
    schema.
    """
    names = [element.name for element in elements]
    odd = (at for at, name in enumerate(names) if not name.isascii() and any("\ud800" <= x <= "\udfff" for x in name))
    kinds = [element.repetition_type for element in elements]
    return (
        names,
        next(odd, -1),
        np.array([element.num_children or 0 for element in elements], np.int32),
        np.array([-1 if kind is None else kind if 0 <= kind <= 2 else -2 for kind in kinds], np.int8),
        np.array([element.type is not None for element in elements], np.uint8),
    )


class _Nodes(Sequence[SchemaNode]):
    """Immutable sequence of nodes that creates each node on first access."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[int, SchemaNode] = {}

    def _make(self, position: int) -> SchemaNode:
        raise NotImplementedError

    @overload
    def __getitem__(self, position: int) -> SchemaNode: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[SchemaNode, ...]: ...
    def __getitem__(self, position: int | slice) -> SchemaNode | tuple[SchemaNode, ...]:
        if isinstance(position, slice):
            return tuple(self[i] for i in range(*position.indices(len(self))))
        result = self._made.get(position)
        if result is not None:
            return result
        if not -len(self) <= position < len(self):
            raise IndexError(f"no node {position} among {len(self)}")
        if position < 0:
            return self[position + len(self)]
        # If several threads create the same node, all get the first one.
        return self._made.setdefault(position, self._make(position))

    def __iter__(self) -> Iterator[SchemaNode]:
        made = self._made
        for position in range(len(self)):
            result = made.get(position)
            yield self[position] if result is None else result

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (tuple, _Nodes)):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<{len(self)} nodes>"


class Group(_Nodes):
    """Children of a group. A child can be looked up by any leaf below it."""

    __slots__ = ()

    @abstractmethod
    def ancestor_of_leaf(self, leaf: int) -> SchemaNode:
        """Return the child that contains the leaf, or is the leaf. The leaf must be below this group."""


class Children(Group):
    """Children of the group that is element ``position`` of the tree."""

    __slots__ = ("_elements", "_found", "_path", "_tree")

    def __init__(self, tree: Tree, position: int, path: tuple[str, ...]) -> None:
        super().__init__()
        self._found: dict[str, tuple[int | None, bool]] = {}
        self._tree, self._path = tree, path
        count, last = tree.counts[position], tree.end[position]
        self._elements: Sequence[int] = range(position + 1, last)
        if last - position - 1 != count:  # some children are groups
            below = []
            place = position + 1
            while place < last:
                below.append(place)
                place = tree.end[place]
            self._elements = below

    def __len__(self) -> int:
        return len(self._elements)

    def _make(self, position: int) -> SchemaNode:
        return self._tree.node(self._elements[position], self._path)

    def names(self) -> list[str]:
        """Return the names of the children, without creating nodes."""
        return [self._tree.names[at] for at in self._elements]

    def search(self, name: str) -> tuple[int | None, bool] | None:
        """Return the position of the first child called ``name`` (None if missing), and whether the name is
        unique.

        Return None if children are not searched individually, because they are few, some are groups or many names were
        searched before.
        """
        names, elements = self._tree.names, self._elements
        if len(elements) <= _MAX_NAMES_READ or not isinstance(name, str):
            return None
        if not isinstance(names, kernel.Names) or not isinstance(elements, range):
            return None
        result = self._found.get(name)
        if result is None:
            if len(self._found) == _SOUGHT:
                return None
            raw = name.encode("utf-8", "surrogatepass")
            at = names.find(raw, elements.start, elements.stop)
            is_only = at < 0 or names.find(raw, at + 1, elements.stop) < 0
            result = self._found[name] = (None if at < 0 else at - elements.start), is_only
        return result

    def ancestor_of_leaf(self, leaf: int) -> SchemaNode:
        return self[self.child_index(leaf)]

    def child_index(self, leaf: int) -> int:
        """Return the position of the child that contains the leaf, or is the leaf."""
        return bisect_right(self._elements, leaf - self._tree.base, key=self._tree.first_leaf.__getitem__) - 1


class Leaves(_Nodes):
    """Sequence of the ``count`` leaves below a root, in column order."""

    __slots__ = ("_count", "_root")

    def __init__(self, count: int, root: SchemaNode) -> None:
        super().__init__()
        self._count, self._root = count, root

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[SchemaNode]:
        return self._root.leaves()

    def _make(self, position: int) -> SchemaNode:
        node = self._root
        while isinstance(node.children, Group):
            node = node.children.ancestor_of_leaf(position)
        return node


def _physical_type(element: SchemaElement, path: tuple[str, ...]) -> Type:
    dotted = ".".join  # Join paths only for errors: those of deeply nested long names may exceed the footer's size.
    try:
        physical = Type(-1 if element.type is None else element.type)
    except ValueError:
        raise UnsupportedError(
            f"{dotted(path)} has unknown physical type {element.type}",
            feature="physical type", column=dotted(path),
        ) from None
    if physical == Type.FIXED_LEN_BYTE_ARRAY and not 0 < (element.type_length or 0) <= 1 << 24:
        raise CorruptFileError(
            f"{dotted(path)} is FIXED_LEN_BYTE_ARRAY with invalid length {element.type_length}", column=dotted(path)
        )
    return physical
