"""Compare new rows with the schema of an Iceberg table, and add the table's field ids to the columns of files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import SchemaMismatchError, UnsupportedError
from pqext.core.base.suggestions import did_you_mean
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.types.marks import FIELD_ID
from pqext.dataset.writing.appending import empty_file
from pqext.variant.types import storage_type


def check_columns(rows: pa.Schema, table: pa.Schema, name: str) -> None:
    """Raise ``SchemaMismatchError`` unless rows with the schema ``rows`` can be added to ``table``."""
    for field in table:
        if field.name not in rows.names:
            hint = did_you_mean(field.name, rows.names)
            raise _mismatch(f"the rows lack column {field.name!r}{hint}; add it", name, field.name)
    for field in rows:
        if field.name not in table.names:
            hint = did_you_mean(field.name, table.names) or f"; its columns are {', '.join(table.names)}"
            raise _mismatch(f"the table has no column {field.name!r}{hint}", name, field.name)
        target = table.field(field.name)
        if _plain(field.type) != _plain(target.type):
            message = f"{field.name} is {field.type} in the rows and {target.type} in the table; cast the column"
            raise _mismatch(message, name, field.name)


def check_added_columns(schema: pa.Schema, options: Mapping[str, Any], name: str) -> None:
    """Raise ``UnsupportedError`` if the writer would add columns without field ids to files with ``schema``."""
    with ParquetFile(empty_file(schema, {**options, "sorting": ()})) as file:
        added = next((field.name for field in file.arrow_schema if FIELD_ID not in (field.metadata or {})), None)
    if added is not None:
        raise UnsupportedError(
            f"the covering column {added!r} is not a column of the Iceberg table; omit covering= and geoparquet='1.1'; "
            "nothing was written", feature="covering columns in Iceberg", path=name, column=added,
        )


def _mismatch(message: str, name: str, column: str) -> SchemaMismatchError:
    return SchemaMismatchError(f"{message}; nothing was written", path=name, column=column)


def _plain(type: pa.DataType) -> Any:
    """Return a key that is equal for types that differ only in layout and nullability."""
    type = storage_type(type)
    if pa.types.is_dictionary(type):
        return _plain(type.value_type)
    if pa.types.is_large_string(type) or pa.types.is_string_view(type):
        return pa.string()
    if pa.types.is_large_binary(type) or pa.types.is_binary_view(type):
        return pa.binary()
    if pa.types.is_timestamp(type) and type.tz is not None:
        return pa.timestamp(type.unit, "UTC")
    if pa.types.is_struct(type):
        return "struct", tuple((child.name, _plain(child.type)) for child in type)
    if pa.types.is_map(type):
        return "map", _plain(type.key_type), _plain(type.item_type)
    if hasattr(type, "value_field"):
        return "list", _plain(type.value_type)
    return type


def field_with_id(field: pa.Field, member: Any) -> pa.Field:
    """Return ``field`` and its children with the field ids of ``member``, a pyiceberg ``NestedField``."""
    marks = {**(field.metadata or {}), FIELD_ID: str(member.field_id).encode()}
    return pa.field(field.name, _type_with_ids(field.type, member.field_type), field.nullable, marks)


def _type_with_ids(type: pa.DataType, iceberg: Any) -> pa.DataType:
    if pa.types.is_struct(type) and hasattr(iceberg, "fields"):
        return pa.struct([field_with_id(child, member) for child, member in zip(type, iceberg.fields, strict=True)])
    if pa.types.is_map(type):
        key = field_with_id(type.key_field, iceberg.key_field)
        return pa.map_(key.with_name("key").with_nullable(False), field_with_id(type.item_field, iceberg.value_field))
    if hasattr(type, "value_field") and hasattr(iceberg, "element_field"):
        return pa.list_(field_with_id(type.value_field, iceberg.element_field))
    return type
