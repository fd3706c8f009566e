"""Convert Iceberg schemas to Arrow, and map the columns of a table to ids and names in files.

Spec: Apache Iceberg, "Schemas and Data Types", "Column Projection", "Name Mapping Serialization".

``pyiceberg`` has no VARIANT type. A VARIANT column is a struct whose field id is in ``variants``
(:mod:`pqext.tables.iceberg.loading`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from pqext.core.base.errors import UnsupportedError
from pqext.core.schema.types.marks import UUID_MARK
from pqext.geo.crs import normalize
from pqext.geo.types import GeospatialType, mark
from pqext.tables.renaming import TableField
from pqext.variant.types import variant_field

_TYPES: Mapping[type[IcebergType], pa.DataType] = {
    BooleanType: pa.bool_(), IntegerType: pa.int32(), LongType: pa.int64(), FloatType: pa.float32(),
    DoubleType: pa.float64(), DateType: pa.date32(), TimeType: pa.time64("us"), TimestampType: pa.timestamp("us"),
    TimestamptzType: pa.timestamp("us", "UTC"), TimestampNanoType: pa.timestamp("ns"),
    TimestamptzNanoType: pa.timestamp("ns", "UTC"), StringType: pa.string(), UUIDType: pa.binary(16),
    BinaryType: pa.binary(), UnknownType: pa.null(), GeometryType: pa.binary(), GeographyType: pa.binary(),
}
ELEMENT, KEY, VALUE = "element", "key", "value"
"""Roles of the fields of lists and maps."""


def arrow_schema(schema: Schema, variants: Collection[int]) -> pa.Schema:
    """Convert a table's schema. Raises ``UnsupportedError`` for an unknown type."""
    return pa.schema([_field(field, variants) for field in schema.fields])


def _field(field: NestedField, variants: Collection[int]) -> pa.Field:
    if field.field_id in variants:
        return variant_field(field.name, not field.required)
    result = pa.field(field.name, _type(field.field_type, field.name, variants), nullable=not field.required)
    if isinstance(field.field_type, UUIDType):
        return result.with_metadata(UUID_MARK)
    if isinstance(field.field_type, GeometryType):
        return mark(result, GeospatialType(normalize(field.field_type.crs)))
    if isinstance(field.field_type, GeographyType):
        edges: Any = str(field.field_type.algorithm).lower()
        return mark(result, GeospatialType(normalize(field.field_type.crs), edges))
    return result


def arrow_type(field: NestedField) -> pa.DataType:
    """Return the Arrow type of a field that is not a VARIANT."""
    return _type(field.field_type, field.name, frozenset())


def _type(type: IcebergType, name: str, variants: Collection[int]) -> pa.DataType:
    known = _TYPES.get(type.__class__)
    if known is not None:
        return known
    if isinstance(type, DecimalType):
        return pa.decimal128(type.precision, type.scale)
    if isinstance(type, FixedType) and 0 < len(type) < 1 << 31:
        return pa.binary(len(type))
    if isinstance(type, StructType):
        return pa.struct([_field(field, variants) for field in type.fields])
    if isinstance(type, ListType):
        return pa.list_(_field(type.element_field, variants))
    if isinstance(type, MapType):
        return pa.map_(_field(type.key_field, variants), _field(type.value_field, variants))
    raise UnsupportedError(f"column {name!r} has the unsupported Iceberg type {type}", feature="Iceberg types")


def fields_by_id(struct: StructType, variants: Collection[int]) -> dict[int | str, TableField]:
    """Return the fields of a struct by field id, for :class:`pqext.tables.renaming.Renaming`."""
    return {
        field.field_id: TableField(field.name, children_by_id(field, variants)) for field in struct.fields
    }


def children_by_id(field: NestedField, variants: Collection[int]) -> dict[int | str, TableField]:
    """Return the children of a field: fields of a struct by id, entries of a list or map by role."""
    if isinstance(field.field_type, StructType) and field.field_id not in variants:
        return fields_by_id(field.field_type, variants)
    return {role: TableField(role, children_by_id(child, variants)) for role, child in roles(field.field_type).items()}


def roles(type: IcebergType) -> dict[str, NestedField]:
    """Return the fields of a list or a map by role; empty for other types."""
    if isinstance(type, ListType):
        return {ELEMENT: type.element_field}
    return {KEY: type.key_field, VALUE: type.value_field} if isinstance(type, MapType) else {}


def fields_by_name(
    struct: StructType, mapping: NameMapping | list[MappedField], variants: Collection[int]
) -> dict[int | str, TableField]:
    """Return the fields of a struct by the names in the name ``mapping``. A field may have several names."""
    fields = {field.field_id: field for field in struct.fields}
    result: dict[int | str, TableField] = {}
    for mapped in mapping:
        field = None if mapped.field_id is None else fields.get(mapped.field_id)
        if field is not None:
            table_field = TableField(field.name, _children_by_name(field, mapped.fields, variants))
            result.update((name, table_field) for name in mapped.names)
    return result


def _children_by_name(
    field: NestedField, mapping: list[MappedField], variants: Collection[int]
) -> dict[int | str, TableField]:
    if isinstance(field.field_type, StructType):
        return {} if field.field_id in variants else fields_by_name(field.field_type, mapping, variants)
    children: dict[int | str, TableField] = {}
    for role, child in roles(field.field_type).items():
        below = next((mapped.fields for mapped in mapping if mapped.field_id == child.field_id), [])
        children[role] = TableField(role, _children_by_name(child, below, variants))
    return children


def paths_by_id(struct: StructType, variants: Collection[int]) -> dict[int, tuple[str, ...]]:
    """Return the path of each field that is not within a list or a map, by field id."""
    return {field.field_id: path for path, field in iter_fields(struct, variants)}


def iter_fields(
    struct: StructType, variants: Collection[int], parent: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], NestedField]]:
    """Yield the path and the field of each field that is not within a list or a map."""
    for field in struct.fields:
        path = (*parent, field.name)
        yield path, field
        if isinstance(field.field_type, StructType) and field.field_id not in variants:
            yield from iter_fields(field.field_type, variants, path)


@dataclass(frozen=True, slots=True)
class Default:
    """Initial default of a field in files without the field. ``children`` are nested fields with defaults."""

    value: pa.Scalar | None
    children: Mapping[str, Default]


def defaults_of(fields: Mapping[str, NestedField], variants: Collection[int]) -> dict[str, Default]:
    """Return the initial defaults of ``fields`` and of their nested fields. Fields without a default are missing."""
    result = {}
    for name, field in fields.items():
        if field.field_id in variants:
            continue
        below = roles(field.field_type)
        if isinstance(field.field_type, StructType):
            below = {child.name: child for child in field.field_type.fields}
        children = defaults_of(below, variants)
        if field.initial_default is not None or children:
            type = _type(field.field_type, field.name, variants)
            value = None if field.initial_default is None else scalar(field.initial_default, type)
            result[name] = Default(value, children)
    return result


def scalar(value: Any, type: pa.DataType) -> pa.Scalar:
    """Convert a value of ``pyiceberg`` to ``type``. Dates, times and timestamps may be integers in the type's unit."""
    if isinstance(value, int) and pa.types.is_temporal(type):
        return pa.scalar(value, pa.int32() if pa.types.is_date32(type) else pa.int64()).cast(type)
    if pa.types.is_fixed_size_binary(type) and hasattr(value, "bytes"):
        return pa.scalar(value.bytes, type)
    return pa.scalar(value, type)
