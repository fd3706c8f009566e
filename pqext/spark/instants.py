"""INT96 timestamps in Spark: instants of whole microseconds, whoever wrote them, as its own reader has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pqext.core.limits import Limits
from pqext.core.metadata import Type
from pqext.core.options import ReadOptions
from pqext.core.reader import ParquetFile
from pqext.dataset.files.file_set import FileSet
from pqext.dataset.one_table.unified import Unifier
from pqext.spark.schema_note import KEY as NOTE
from pqext.spark.schema_note import merged


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


def unified(places: Sequence[Any], options: ReadOptions, limits: Limits) -> tuple[pa.Schema, pa.Schema]:
    """The schema of all files by name, and that in which INT96 timestamps are microseconds in UTC.

    Raises ``ValueError`` where types of a column have none in common.
    """

    notes: list[bytes] = []

    def of(options: ReadOptions) -> pa.Schema:
        unifier = Unifier()
        notes.clear()
        for path, schema in FileSet(tuple(places), options, limits).schemas:
            unifier.add(schema, path)
            if (text := (schema.metadata or {}).get(NOTE.encode())) is not None:
                notes.append(text)
        return unifier.schema

    found = seen = of(options)
    if "timestamp" in str(found.types):
        seen = pa.schema([_field(*pair) for pair in zip(found, of(replace(options, int96="ms")), strict=True)])
    return found, seen.with_metadata({NOTE: merged(notes)})


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
