"""INT96 timestamps in Spark: instants of whole microseconds, whoever wrote them, as its own reader has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from pqext.core.limits import Limits
from pqext.core.metadata import Type
from pqext.core.options import ReadOptions
from pqext.core.reader import ParquetFile


def file_schema_in_spark(place: Any, options: ReadOptions, limits: Limits) -> pa.Schema:
    """The Arrow schema of the file at a ``place``, in which INT96 timestamps are microseconds in UTC."""
    with ParquetFile(place, options, limits=limits) as file:
        schema = file.arrow_schema
        if not any(leaf.physical_type == Type.INT96 for leaf in file.schema.leaves):
            return schema
    # Only INT96 is read in the unit that is asked for: two units tell it from other timestamps, however deep.
    schemas = []
    for unit in ("us", "ms"):
        with ParquetFile(place, replace(options, int96=unit), limits=limits) as file:
            schemas.append(file.arrow_schema)
    fields = [_field(*pair) for pair in zip(*schemas, strict=True)]
    return pa.schema(fields, schema.metadata)


def _field(field: pa.Field, other: pa.Field) -> pa.Field:
    return field.with_type(_type(field.type, other.type))


def _type(type: pa.DataType, other: pa.DataType) -> pa.DataType:
    if type.equals(other):
        return type
    if pa.types.is_struct(type):
        return pa.struct([_field(*pair) for pair in zip(type, other, strict=True)])
    if pa.types.is_map(type):
        return pa.map_(_field(type.key_field, other.key_field), _field(type.item_field, other.item_field))
    if pa.types.is_list(type):
        return pa.list_(_field(type.value_field, other.value_field))
    return pa.timestamp("us", "UTC")
