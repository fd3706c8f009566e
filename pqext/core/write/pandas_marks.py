"""Marks of VARIANT and geometry columns in the attributes of pandas data frames, which keep no field metadata."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pqext.core.schema.annotations import EXTENSION_METADATA, EXTENSION_NAME, serves_extension

KEY = "pqext:fields"
"""The key in ``DataFrame.attrs``; its value maps columns to extension names and metadata, as text for JSON's sake."""


def remember(frame: Any, schema: pa.Schema) -> None:
    """Note the marks of the columns of ``schema`` in the attributes of ``frame``."""
    marks = {}
    for field in schema:
        metadata = field.metadata or {}
        name = metadata.get(EXTENSION_NAME, b"").decode("utf-8", "replace")
        if serves_extension(name) and len(schema.get_all_field_indices(field.name)) == 1:
            marks[field.name] = [name, metadata.get(EXTENSION_METADATA, b"").decode("utf-8", "replace")]
    if marks:
        frame.attrs[KEY] = marks


def restore(table: pa.Table, attributes: Any) -> pa.Table:
    """Return ``table``, made of a frame with these attributes, with the marks of columns that still hold such values.

    A column of bytes can be a geometry, a struct of bytes a variant; a column of nulls can be either.
    """
    marks = attributes.get(KEY) if isinstance(attributes, dict) else None
    if not isinstance(marks, dict):
        return table
    for place, field in enumerate(table.schema):
        mark = marks.get(field.name)
        if not isinstance(mark, list) or len(mark) != 2 or not all(isinstance(part, str) for part in mark):
            continue
        column, is_variant = table.column(place), "variant" in mark[0]
        if pa.types.is_null(field.type):
            column = column.cast(_VARIANT if is_variant else pa.binary())
        if not _suits(column.type, is_variant):
            continue
        metadata = {EXTENSION_NAME: mark[0].encode(), EXTENSION_METADATA: mark[1].encode()}
        table = table.set_column(place, pa.field(field.name, column.type, field.nullable, metadata), column)
    return table


_VARIANT = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])


def _suits(type: pa.DataType, is_variant: bool) -> bool:
    if is_variant:
        return pa.types.is_struct(type) and {"metadata", "value"} == {child.name for child in type}
    return bool(pa.types.is_binary(type) or pa.types.is_large_binary(type))
