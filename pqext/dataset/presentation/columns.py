"""Convert VARIANT and geometry columns, at any depth, to JSON and WKT instead of binary values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa

from pqext.geo.geoparquet import KEY
from pqext.geo.types import type_of, unmark
from pqext.variant.types import is_shredded_type, is_variant_type, plain_list, storage_array, storage_type

VariantFormat: TypeAlias = Literal["binary", "json", "python"]
"""Format of returned VARIANT values."""
GeometryFormat: TypeAlias = Literal["wkb", "wkt", "shapely"]
"""Format of returned geometries."""


@dataclass(frozen=True, slots=True)
class Formats:
    """Formats of VARIANT and geometry columns in a result."""

    variants: VariantFormat = "binary"
    geometry: GeometryFormat = "wkb"

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("variants", self.variants, get_args(VariantFormat)), ("geometry", self.geometry, get_args(GeometryFormat)),
        ):
            if value not in allowed:
                choices = ", ".join(map(repr, allowed[:-1])) + f" or {allowed[-1]!r}"
                raise ValueError(f"{name} must be {choices}, not {value!r}")

    @property
    def is_stored(self) -> bool:
        """Whether all columns keep their stored format."""
        return self.variants == "binary" and self.geometry == "wkb"

    def converts(self, field: pa.Field) -> bool:
        """Return whether the values of a column, at any depth, are converted."""
        return any(
            (self.variants != "binary" and is_variant(part)) or (self.geometry != "wkb" and is_geometry(part))
            for part in _nested_fields(field)
        )

    def needs_objects(self, field: pa.Field) -> bool:
        """Return whether values of a column, at any depth, become Python objects that Arrow cannot represent."""
        return any(
            (self.variants == "python" and is_variant(part)) or (self.geometry == "shapely" and is_geometry(part))
            for part in _nested_fields(field)
        )

    def check_arrow(self, remedy: str) -> None:
        """Raise ``ValueError`` if values are returned as Python objects, which Arrow cannot represent."""
        for name, value in (("variants", self.variants), ("geometry", self.geometry)):
            if value in ("python", "shapely"):
                raise ValueError(f"{name}={value!r} creates Python objects, which Arrow cannot represent; {remedy}")

    def arrow_formats(self) -> Formats:
        """Replace formats that Arrow cannot represent with the stored format."""
        return Formats(
            "binary" if self.variants == "python" else self.variants,
            "wkb" if self.geometry == "shapely" else self.geometry,
        )

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the converted columns."""
        if self.is_stored or not any(map(self.converts, schema)):
            return schema
        metadata = dict(schema.metadata or {})
        if self.geometry != "wkb":
            metadata.pop(KEY.encode(), None)
        return pa.schema(list(map(self._field, schema)), metadata or None)

    def convert_batch(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """Convert the columns of a batch. ``schema`` is the schema of the batch before the conversion."""
        if self.is_stored or not any(map(self.converts, schema)):
            return batch
        columns = [self.convert_array(column, field) for column, field in zip(batch.columns, schema, strict=True)]
        if not columns:
            return batch
        return pa.RecordBatch.from_arrays(columns, schema=self.schema(schema))

    def convert_table(self, table: pa.Table) -> pa.Table:
        """Convert the columns of a table."""
        if self.is_stored or not any(map(self.converts, table.schema)):
            return table
        schema = self.schema(table.schema)
        columns = [
            pa.chunked_array([self.convert_array(chunk, field) for chunk in column.chunks], new.type)
            for column, field, new in zip(table.columns, table.schema, schema, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    def _field(self, field: pa.Field) -> pa.Field:
        if not self.converts(field):
            return field
        if is_variant(field) or is_geometry(field):
            return unmark(field).with_type(pa.string())
        return field.with_type(_map_fields(field.type, self._field))

    def convert_array(self, array: pa.Array, field: pa.Field) -> pa.Array:
        if not self.converts(field):
            return array
        if is_geometry(field):
            from pqext.geo.text.wkt import to_wkt

            return _to_string(to_wkt(array))
        if is_variant(field):
            from pqext.variant.json.text import to_json

            return to_json(array)
        array = plain_layout(array)
        kind, new = array.type, self._field(field.with_type(array.type)).type
        if pa.types.is_struct(kind):
            children = [self.convert_array(array.field(i), kind.field(i)) for i in range(kind.num_fields)]
            return pa.StructArray.from_arrays(children, fields=list(new), mask=array.is_null())
        if pa.types.is_map(kind):
            keys = self.convert_array(array.keys, kind.key_field)
            items = self.convert_array(array.items, kind.item_field)
            child = pa.StructArray.from_arrays([keys, items], fields=[new.key_field, new.item_field])
        else:
            child = self.convert_array(array.values, kind.value_field)
        buffers = array.buffers()[: 1 if pa.types.is_fixed_size_list(kind) else 2]
        return pa.Array.from_buffers(new, len(array), buffers, offset=array.offset, children=[child])


STORED = Formats()
"""The stored formats of columns."""
SHOWN = Formats("json", "wkt")
"""The formats of previews and text."""


def is_geometry(field: pa.Field) -> bool:
    """Return whether a field is annotated as a geometry."""
    return type_of(field) is not None


def is_variant(field: pa.Field) -> bool:
    """Return whether a field is a VARIANT, shredded or not."""
    kind = storage_type(field.type)
    return is_variant_type(kind) or is_shredded_type(kind)


def _nested_fields(field: pa.Field) -> list[pa.Field]:
    """Return the field and its descendants, except the storage fields of a VARIANT."""
    if is_geometry(field) or is_variant(field):
        return [field]
    kind = storage_type(field.type)
    if pa.types.is_dictionary(kind):
        return _nested_fields(pa.field("", kind.value_type))
    return [field, *(part for i in range(kind.num_fields) for part in _nested_fields(kind.field(i)))]


def _map_fields(type_: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """Apply ``change`` to the fields of a nested type, and return the type in the layout of :func:`plain_layout`."""
    types: Any = pa.types
    type_ = storage_type(type_)
    if types.is_dictionary(type_):
        return _map_fields(type_.value_type, change)
    if types.is_struct(type_):
        return pa.struct([change(part) for part in type_])
    if types.is_map(type_):
        return pa.map_(change(type_.key_field), change(type_.item_field), type_.keys_sorted)
    if types.is_fixed_size_list(type_):
        return pa.list_(change(type_.value_field), type_.list_size)
    if types.is_large_list(type_):
        return pa.large_list(change(type_.value_field))
    return pa.list_(change(type_.value_field))


def plain_layout(array: pa.Array) -> pa.Array:
    """Convert an array to a layout without extension types, dictionaries or list views at the top level."""
    array = storage_array(array)
    if pa.types.is_dictionary(array.type):
        return plain_layout(array.dictionary_decode())
    if pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type):
        return plain_list(array)
    return array


def map_to_list(array: pa.MapArray) -> pa.ListArray:
    """Convert a map array to lists of structs with a key and a value."""
    kind = array.type
    pairs = pa.StructArray.from_arrays([array.keys, array.items], fields=[kind.key_field, kind.item_field])
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(pa.list_(pairs.type), len(array), buffers, offset=array.offset, children=[pairs])


def _to_string(texts: pa.Array) -> pa.Array:
    return texts if texts.type == pa.string() else texts.cast(pa.string())
