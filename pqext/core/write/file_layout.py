"""Layout and options of an existing file, which the writer also uses for appended row groups.

A writer determines once how each column is stored (:mod:`pqext.core.write.storage`). When appending, each column is
stored like the file's column with the same name: with the same shredding, physical type, unit and CRS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import UnsupportedError
from pqext.core.format.compression import WRITABLE
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import (
    ColumnMetaData,
    CompressionCodec,
    Encoding,
    FileMetaData,
    PageType,
    SchemaElement,
    Type,
)
from pqext.core.options.layout import SortKey
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape
from pqext.core.schema.annotations import StoredColumn
from pqext.core.schema.arrow_schema.stored_schema import KEY
from pqext.core.schema.difference import difference
from pqext.core.schema.key_value_types import apply_key_value_types
from pqext.core.schema.lazy_tree import from_elements
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.shape import ListShape, Shape
from pqext.core.write.encoding_choice import SUITABLE

_CODECS = {codec: name for name, codec in WRITABLE.items()}
_ENCODINGS = {
    Encoding.DELTA_BINARY_PACKED: "delta_binary_packed",
    Encoding.DELTA_LENGTH_BYTE_ARRAY: "delta_length_byte_array",
    Encoding.DELTA_BYTE_ARRAY: "delta_byte_array",
    Encoding.BYTE_STREAM_SPLIT: "byte_stream_split",
    Encoding.ALP: "alp",
}


@dataclass(frozen=True)
class TemplateColumn:
    """Existing column, or a child of a column, that determines how a field is stored.

    ``properties`` is the file's key-value metadata.
    """

    shape: Shape
    properties: Mapping[str, str]

    @property
    def node(self) -> SchemaNode:
        """Node of the column in the file's schema."""
        return self.shape.node

    def stored_column(self) -> StoredColumn:
        """Return the column in the format that handlers accept."""
        field = self.shape.storage_field(ReadOptions(shredded=True, properties=self.properties))
        return StoredColumn(self.node, field, self.properties)

    def child(self, name: str) -> TemplateColumn | None:
        """Return the field ``name`` of a struct; None if missing."""
        return next((self._child(item) for item in getattr(self.shape, "children", ()) if item.node.name == name), None)

    def elements(self, count: int) -> Sequence[TemplateColumn | None]:
        """Return the element of a list (``count`` is 1), or the key and the value of a map (``count`` is 2).

        They are None if the column is of another type.
        """
        result: Sequence[Shape] = ()
        if isinstance(self.shape, ListShape) and self.shape.is_map == (count == 2):
            result = (self.shape.element,) if count == 1 else getattr(self.shape.element, "children", ())
        return [self._child(item) for item in result] if len(result) == count else [None] * count

    def _child(self, shape: Shape) -> TemplateColumn:
        return TemplateColumn(shape, self.properties)


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

    def columns(self, names: Sequence[str]) -> list[TemplateColumn | None]:
        """Return the top-level columns with these names. The result is None for each missing column."""
        root = self.schema.root
        same = list(names) == list(root.child_names)  # several columns may have the same name
        nodes = root.children if same else map(root.child, names)
        return [None if node is None else TemplateColumn(shape.from_node(node), self.properties) for node in nodes]

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


def infer_options(file: ParquetFile, schema: Schema) -> dict[str, Any]:
    """Infer write options for ``schema`` from ``file``. The first row group with rows is inspected.

    Codec, dictionary, encoding, statistics, page index and Bloom filter are inferred for each leaf. A leaf that is
    missing from the file uses the codec of the first leaf of its column. Page version and sort keys apply to the
    complete file. Extensions are not inferred, because they may describe the old bytes.
    """
    options: dict[str, Any] = {}
    first = next((group for group in file.row_groups if group.num_rows), None)
    if first is None:
        return options
    known: dict[str, ColumnMetaData] = {}
    tops: dict[str, ColumnMetaData] = {}
    indexed: set[str] = set()
    for chunk in first.chunks():
        known[chunk.node.dotted_path] = chunk.metadata
        tops.setdefault(chunk.node.path[0], chunk.metadata)
        if chunk.structure.offset_index_offset is not None:
            indexed.add(chunk.node.dotted_path)
    about = [(leaf, known.get(leaf.dotted_path, tops[leaf.path[0]])) for leaf in schema.leaves]
    options["compression"] = {leaf.dotted_path: _codec(leaf, m, file) for leaf, m in about}
    same = [(leaf, m) for leaf, m in about if leaf.dotted_path in known]
    options["dictionary"] = {leaf.dotted_path: _has_dictionary(m) for leaf, m in same}
    options["encodings"] = dict(_encodings(same))
    options["statistics"] = {leaf.dotted_path: m.statistics is not None for leaf, m in about}
    options["page_index"] = {leaf.dotted_path: bool(indexed) for leaf, _ in about}
    filtered = {leaf.dotted_path for leaf, m in same if m.bloom_filter_offset is not None}
    options["bloom_filters"] = {
        leaf.dotted_path: leaf.dotted_path in filtered for leaf, _ in about if leaf.physical_type != Type.BOOLEAN
    }
    stats = [stat for _, m in same for stat in m.encoding_stats or ()]
    if any(stat.page_type == PageType.DATA_PAGE_V2 for stat in stats):
        options["page_version"] = 2
    options["arrow_schema"] = any(pair.key == KEY for pair in file.metadata.key_value_metadata or ())
    options["sorting"] = list(_sorting(file, {leaf.dotted_path for leaf, _ in same}))
    return options


def _codec(leaf: SchemaNode, metadata: ColumnMetaData, file: ParquetFile) -> str:
    """Return the codec of a chunk, or LZ4_RAW if its codec cannot be written.

    Raises ``UnsupportedError`` for an unknown codec.
    """
    try:
        return _CODECS.get(CompressionCodec(metadata.codec), "lz4_raw")
    except ValueError:
        message = f"compression codec {metadata.codec} is unknown, so the column cannot keep its codec"
        raise UnsupportedError(
            message, feature=f"codec {metadata.codec}", path=file.path, column=leaf.dotted_path
        ) from None


def _has_dictionary(metadata: ColumnMetaData) -> bool:
    if metadata.dictionary_page_offset is not None:
        return True
    return bool(DICTIONARY_ENCODINGS & set(metadata.encodings))


def _encodings(leaves: list[tuple[SchemaNode, ColumnMetaData]]) -> Iterator[tuple[str, str]]:
    for leaf, metadata in leaves:
        if metadata.type != leaf.physical_type:  # decimals and INT96 may now be stored as a different type
            continue
        # A corrupt list may contain encodings that the type does not support.
        known = [encoding for encoding in metadata.encodings if encoding in _ENCODINGS]
        used = [encoding for encoding in known if metadata.type in SUITABLE[encoding]]
        if used:
            yield leaf.dotted_path, _ENCODINGS[Encoding(used[0])]


def _sorting(file: ParquetFile, leaf_paths: set[str]) -> Iterator[SortKey]:
    """Yield the sort keys that all row groups share, up to the first leaf that is not written."""
    keys = [group.metadata.sorting_columns or [] for group in file.row_groups]
    for column in keys[0]:
        leaves = file.schema.leaves
        if not 0 <= column.column_idx < len(leaves) or leaves[column.column_idx].dotted_path not in leaf_paths:
            return
        position = keys[0].index(column)
        if any(len(other) <= position or other[position] != column for other in keys):
            return
        yield SortKey(leaves[column.column_idx].dotted_path, bool(column.descending), bool(column.nulls_first))
