"""Layout of a file to which row groups are appended, which determines how the writer stores its columns.

A writer determines once how each column is stored (:mod:`pqext.core.write.storage`). When appending, each column is
stored like the file's column with the same name: with the same shredding, physical type, unit and CRS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pqext.core.format.metadata import FileMetaData, SchemaElement
from pqext.core.options.read_write import ReadOptions
from pqext.core.schema import shape
from pqext.core.schema.annotations import StoredColumn
from pqext.core.schema.difference import difference
from pqext.core.schema.key_value_types import apply_key_value_types
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.shape import ListShape, Shape


@dataclass(frozen=True)
class LikeColumn:
    """Existing column, or a child of one, whose storage a field follows.

    ``properties`` is the file's key-value metadata.
    """

    shape: Shape
    properties: Mapping[str, str]

    @property
    def node(self) -> SchemaNode:
        """Node of the column in the file's schema."""
        return self.shape.node

    def stored_column(self) -> StoredColumn:
        """Return the column as it is passed to handlers."""
        field = self.shape.storage_field(ReadOptions(shredded=True, properties=self.properties))
        return StoredColumn(self.node, field, self.properties)

    def child(self, name: str) -> LikeColumn | None:
        """Return the field ``name`` of a struct; None if there is none."""
        return next((self._child(item) for item in getattr(self.shape, "children", ()) if item.node.name == name), None)

    def elements(self, count: int) -> Sequence[LikeColumn | None]:
        """Return the element of a list (``count`` is 1), or the key and the value of a map (``count`` is 2).

        They are None if the column is of another type.
        """
        result: Sequence[Shape] = ()
        if isinstance(self.shape, ListShape) and self.shape.is_map == (count == 2):
            result = (self.shape.element,) if count == 1 else getattr(self.shape.element, "children", ())
        return [self._child(item) for item in result] if len(result) == count else [None] * count

    def _child(self, shape: Shape) -> LikeColumn:
        return LikeColumn(shape, self.properties)


@dataclass(frozen=True)
class FileLayout:
    """Columns of the file at ``path``. ``elements`` are the schema elements of its footer."""

    path: str
    schema: Schema
    elements: Sequence[SchemaElement]
    properties: Mapping[str, str]

    @classmethod
    def from_footer(cls, footer: FileMetaData, path: str) -> FileLayout:
        """Build the layout of a file from its footer."""
        pairs = footer.key_value_metadata or []
        schema, _ = apply_key_value_types(from_elements(footer.schema, path=path, strict=False), pairs, path)
        return cls(path, schema, footer.schema, {pair.key: pair.value for pair in pairs if pair.value is not None})

    def columns(self, names: Sequence[str]) -> list[LikeColumn | None]:
        """Return the top-level columns with these names. The result is None for each missing column."""
        root = self.schema.root
        same = list(names) == list(root.child_names)  # several columns may have the same name
        nodes = root.children if same else map(root.child, names)
        return [None if node is None else LikeColumn(shape.from_node(node), self.properties) for node in nodes]

    def reorder_columns(self, schema: pa.Schema) -> pa.Schema:
        """Return ``schema`` with its columns in the order of the file. Columns that the file lacks come last.

        A schema with duplicate names is returned unchanged.
        """
        if len(set(schema.names)) < len(schema.names):
            return schema
        places = {name: place for place, name in enumerate(self.schema.root.child_names)}
        return pa.schema(sorted(schema, key=lambda field: places.get(field.name, len(places))), schema.metadata)

    def check_fits(self, schema: Schema) -> Schema:
        """Return the file's schema. Raises ``ValueError`` if ``schema`` does not match it."""
        mismatch = difference(self.schema, schema, "the file", lenient=True)
        if mismatch is not None:
            raise ValueError(f"the rows do not match {self.path}: {mismatch}")
        return self.schema
