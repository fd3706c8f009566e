"""A file's stored Arrow schema laid over the shapes of its Parquet schema, field by field."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from pqext.core.base.errors import ParquetError
from pqext.core.format.metadata import Type
from pqext.core.schema.annotations import EXTENSION_NAME, serves_extension
from pqext.core.schema.arrow_schema.types import kind_of, type_of, unmarked
from pqext.core.schema.shape import GroupShape, LeafShape, ListShape, Shape
from pqext.core.schema.types.arrow_compute import is_view


class Contradiction(Exception):
    """The stored type cannot be that of the column; the message says why."""


def hinted(shape: Shape, original: pa.Field) -> Shape:
    """``shape`` with ``original`` at each node that it suits, children of structs by their names.

    A field that an annotation shows takes only metadata from it, no marks of extension types: Parquet says what it is.
    Raises :exc:`Contradiction` when the values cannot be of the original's type.
    """
    if shape.annotation is not None:
        return replace(shape, original=unmarked(pa.field("", pa.null(), metadata=original.metadata)))
    if isinstance(shape, LeafShape) and original.metadata is None and original.type == _plain_type(shape):
        return shape  # nothing to add, as for most of many columns
    if (name := _extension(original)) and serves_extension(name):
        # Only Parquet's annotation makes a column one of these; the filters go by it too.
        bare = original.type.storage_type if isinstance(original.type, pa.BaseExtensionType) else original.type
        original = unmarked(original.with_type(bare))
    kind, wanted = _kind(shape), kind_of(original.type)
    if wanted != kind and "nulls" not in (kind, wanted) and {kind, wanted} != {"lists", "maps"}:
        raise Contradiction(f"{shape.node.dotted!r} holds {kind}, which are not {str(original.type)[:100]}")
    shape = replace(shape, original=original)
    storage = original.type
    while isinstance(storage, pa.BaseExtensionType):
        storage = storage.storage_type
    if wanted != kind:
        return shape
    if isinstance(shape, LeafShape):
        stored = _stored_type(shape, original.type)
        return replace(shape, encoded=bool(pa.types.is_dictionary(stored)), viewed=is_view(stored))
    if pa.types.is_dictionary(storage) or pa.types.is_run_end_encoded(storage):  # Arrow's reader makes none of these
        return shape
    if isinstance(shape, GroupShape):
        return replace(shape, children=_children(shape, storage))
    if isinstance(shape, ListShape) and kind == "lists":
        return replace(shape, element=hinted(shape.element, storage.value_field))
    if isinstance(shape, ListShape) and isinstance(shape.element, GroupShape) and len(shape.element.children) == 2:
        key, item = shape.element.children
        pair = (hinted(key, storage.key_field), hinted(item, storage.item_field))
        return replace(shape, element=replace(shape.element, children=pair))
    return shape


def _extension(original: pa.Field) -> str:
    if isinstance(original.type, pa.BaseExtensionType):
        return str(original.type.extension_name)
    name: bytes = (original.metadata or {}).get(EXTENSION_NAME, b"")
    return name.decode("utf-8", "replace")


def _children(shape: GroupShape, storage: pa.DataType) -> tuple[Shape, ...]:
    same = [child.node.name for child in shape.children] == [field.name for field in storage]
    found = []
    for place, child in enumerate(shape.children):
        index = place if same else storage.get_field_index(child.node.name)
        found.append(child if index < 0 else hinted(child, storage.field(index)))
    return tuple(found)


def _kind(shape: Shape) -> str:
    if isinstance(shape, GroupShape):
        return "structs"
    if isinstance(shape, ListShape):
        return "maps" if shape.is_map else "lists"
    if shape.node.physical_type == Type.INT96:
        return "number"
    plain = _plain_type(shape)
    return "nulls" if plain is None else kind_of(plain)


def _plain_type(shape: Shape) -> pa.DataType | None:
    """The Arrow type of a leaf by its Parquet type; ``None`` where the options choose it or there is none."""
    leaf = shape.node.leaf_type
    try:
        return None if leaf.physical == Type.INT96 else leaf.arrow_type()
    except ParquetError:  # said when the column is read
        return None


def _stored_type(shape: LeafShape, original: pa.DataType) -> pa.DataType:
    """The type in which a leaf is shown, below any extension type."""
    found = _plain_type(shape)
    if found is None:
        return pa.null()
    found = type_of(found, original)
    while isinstance(found, pa.BaseExtensionType):
        found = found.storage_type
    return found
