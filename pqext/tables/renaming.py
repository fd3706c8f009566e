"""Read data files under the column names of their table, which may differ from the names in the files.

The fields of a table are matched with the columns of a file by field id, or by the name that the table's column mapping
states. Columns that are no longer in the table are hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pqext.core.base.lru import LRU
from pqext.core.schema.nodes import Schema, SchemaNode

_HIDDEN = "\0"
"""Prefix of the names of columns that are not in the table."""


@dataclass(frozen=True, slots=True)
class TableField:
    """Field of a table. The keys of ``children`` are field ids, names in files, or roles in a list or map."""

    name: str
    children: Mapping[int | str, TableField]


class Renaming:
    """Mapping from columns of files to fields of the table. ``fields`` are the table's fields by key.

    Keys are field ids if ``by_id`` is true, otherwise names.
    """

    def __init__(self, fields: Mapping[int | str, TableField], by_id: bool) -> None:
        self._fields = fields
        self._by_id = by_id
        self._renamed: LRU[int, tuple[Schema, Schema]] = LRU(16)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return Renaming, (self._fields, self._by_id)

    def schema(self, schema: Schema) -> Schema:
        """Return ``schema`` with the names of the table. Files with the same schema share the result."""
        entry = self._renamed.get(id(schema))
        if entry is None or entry[0] is not schema:
            entry = schema, Schema.from_root(self._struct(schema.root, self._fields, ()))
            self._renamed.put(id(schema), entry)
        return entry[1]

    def _key(self, node: SchemaNode) -> int | str | None:
        return node.field_id if self._by_id else node.name

    def _struct(
        self, node: SchemaNode, fields: Mapping[int | str, TableField], path: tuple[str, ...], name: str | None = None
    ) -> SchemaNode:
        """Rename a struct, or the root, and its fields."""
        own = path if name is None else (*path, name)
        children = []
        for child in node.children:
            key = self._key(child)
            field = None if key is None else fields.get(key)
            children.append(self._node(child, field, own, _HIDDEN + child.name if field is None else field.name))
        return _rename(node, node.name if name is None else name, own, children)

    def _node(self, node: SchemaNode, field: TableField | None, path: tuple[str, ...], name: str) -> SchemaNode:
        if field is None or not field.children or node.is_leaf or node.logical_name == "VARIANT":
            return _move(node, path, name)
        if node.logical_name not in ("LIST", "MAP"):
            return self._struct(node, field.children, path, name)
        own = (*path, name)
        return _rename(node, name, own, [self._entries(child, field, own) for child in node.children])

    def _entries(self, node: SchemaNode, field: TableField, path: tuple[str, ...]) -> SchemaNode:
        """Rename the fields within the repeated group of a list or a map."""
        if node.is_leaf:
            return _move(node, path, node.name)
        own = (*path, node.name)
        names = ("element",) if "element" in field.children else ("key", "value")
        if len(names) != len(node.children):  # a list of two levels, whose repeated group is the element
            return self._struct(node, field.children["element"].children, path, node.name)
        children = [
            self._node(child, field.children[name], own, child.name)
            for child, name in zip(node.children, names, strict=True)
        ]
        return _rename(node, node.name, own, children)


def _move(node: SchemaNode, path: tuple[str, ...], name: str) -> SchemaNode:
    """Move a node below ``path`` and rename it. The names of its descendants do not change."""
    own = (*path, name)
    return _rename(node, name, own, [_move(child, own, child.name) for child in node.children])


def _rename(node: SchemaNode, name: str, path: tuple[str, ...], children: list[SchemaNode]) -> SchemaNode:
    return replace(node, name=name, path=path, children=tuple(children), stored_path=node.path_in_file)
