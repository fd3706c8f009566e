"""Apply the column names, default values and deleted rows of an Iceberg table to its data files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.lru import LRU
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.shape import GroupShape, ListShape, Shape, from_node
from pqext.dataset.files.sources import source_name
from pqext.tables.iceberg.deletes import DeletedRows, nodes_by_id
from pqext.tables.iceberg.schemas import ELEMENT, KEY, VALUE, Default
from pqext.tables.renaming import Renaming
from pqext.tables.table_view import exclude_rows

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class IcebergFileView:
    """View that applies a snapshot's column names, default values and deletes to its data files.

    Columns are matched by field id, or by the table's name mapping if a file has no ids. ``constants`` are the values
    of identity partitions by file name and column, and ``defaults`` are the initial defaults by column. A column that a
    file lacks has its constant or, without a constant, its default. ``paths`` are the paths of columns by field id.
    """

    table: str
    by_id: Renaming
    by_name: Renaming | None
    constants: Mapping[str, Mapping[str, pa.Scalar]]
    defaults: Mapping[str, Default]
    paths: Mapping[int, tuple[str, ...]]
    deleted: DeletedRows
    _missing: LRU[int, tuple[Schema, Mapping[str, Any]]] = field(default_factory=lambda: LRU(16), compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return IcebergFileView, (
            self.table, self.by_id, self.by_name, self.constants, self.defaults, self.paths, self.deleted
        )

    def restrict(self, names: Collection[str]) -> IcebergFileView:
        """Return a copy that is restricted to the files ``names``."""
        constants = {name: self.constants[name] for name in names if name in self.constants}
        return replace(self, constants=constants, deleted=self.deleted.restrict(names))

    def apply(self, source: Any, file: ParquetFile) -> None:
        """Rename the columns of ``file``, set the values of missing columns, and exclude deleted rows.

        Raises ``UnsupportedError`` if the file has no field ids and the table has no name mapping, and the errors of
        :meth:`pqext.tables.iceberg.deletes.DeletedRows.positions`.
        """
        nodes = nodes_by_id(file)
        if nodes or any(_has_id(child) for child in file.schema.root.children):
            file.rename_columns(self.by_id.schema(file.schema))
            nodes = nodes_by_id(file)
        elif self.by_name is not None:
            file.rename_columns(self.by_name.schema(file.schema))
            matches = ((id, file.schema.find(path)) for id, path in self.paths.items())
            nodes = {id: node for id, node in matches if node is not None and node.is_leaf}
        elif file.schema.leaves:
            raise UnsupportedError(
                "the columns of the file have no field ids and the table has no name mapping; set the table property "
                "schema.name-mapping.default",
                feature="Iceberg files without field ids",
            )
        missing = self._missing_values(source, file)
        if missing:
            file.missing_values = missing
        exclude_rows(file, self.deleted.positions(source, file, nodes))

    def _missing_values(self, source: Any, file: ParquetFile) -> Mapping[str, Any]:
        constants = self.constants.get(source_name(source), {})
        values = {name: value for name, value in constants.items() if file.schema.root.child(name) is None}
        if not self.defaults:
            return values or _NONE
        entry = self._missing.get(id(file.schema))
        if entry is None or entry[0] is not file.schema:
            columns = {child.name: from_node(child) for child in file.schema.root.children}
            entry = file.schema, _missing_defaults(self.defaults, columns)
            self._missing.put(id(file.schema), entry)
        return {**entry[1], **values} if values else entry[1]


def _has_id(node: SchemaNode) -> bool:
    return node.field_id is not None or any(_has_id(child) for child in node.children)


def _missing_defaults(defaults: Mapping[str, Default], children: Mapping[str, Shape]) -> dict[str, Any]:
    """Return the defaults of all fields, nested fields included, that the columns ``children`` lack."""
    result: dict[str, Any] = {}
    for name, default in defaults.items():
        child = children.get(name)
        if child is None:
            if default.value is not None:
                result[name] = default.value
        elif default.children:
            below = _missing_defaults(default.children, _children(child))
            if below:
                result[name] = below
    return result


def _children(column: Shape) -> dict[str, Shape]:
    """Return the children of a column: fields of a struct by name, entries of a list or map by role."""
    if isinstance(column, GroupShape):
        return {child.node.name: child for child in column.children}
    if not isinstance(column, ListShape):
        return {}
    entries = column.element
    if column.is_map and isinstance(entries, GroupShape) and len(entries.children) == 2:
        return dict(zip((KEY, VALUE), entries.children, strict=True))
    return {ELEMENT: entries}
