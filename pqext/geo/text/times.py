"""Detect text columns that contain ISO 8601 dates, timestamps in UTC or timestamps without a zone."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute

UTC_OFFSET = "^.{11}.*(Z|[+-][0-9:]+)$"
"""Regular expression of ISO 8601 timestamps that end in an offset from UTC."""
_TIME = r"^\d{4}-\d\d-\d\d([ T]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?$"
"""Regular expression of the dates and timestamps that Arrow parses."""
_HEAD_ROWS = 100
_LONGER_FRACTIONS = {"s": r"\.\d", "ms": r"\.\d{4}", "us": r"\.\d{7}"}
"""Regular expressions of timestamps whose fraction of a second has more digits than a unit."""


def infer_times(table: pa.Table) -> pa.Table:
    """Convert string columns and nested string fields to dates or timestamps if all their values have this format.

    Dates become ``date32``. Timestamps, and dates mixed with timestamps, become timestamps: in UTC if all have an
    offset from UTC, without a zone if none has. Their unit suits the longest fraction of a second. Other columns
    are unchanged, as are values that the unit cannot represent.
    """
    types = [_time_type(column) for column in table.columns]
    if types == table.schema.types:
        return table
    columns = [column.cast(type) for column, type in zip(table.columns, types, strict=True)]
    fields = [field.with_type(type) for field, type in zip(table.schema, types, strict=True)]
    return pa.table(columns, schema=pa.schema(fields, table.schema.metadata))


def _time_type(column: pa.ChunkedArray) -> pa.DataType:
    """Return the type of a column after inference of times."""
    type = column.type
    if pa.types.is_struct(type):
        fields = [
            field.with_type(_time_type(pa.compute.struct_field(column, [number]))) for number, field in enumerate(type)
        ]
        return pa.struct(fields)
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(_time_type(pa.compute.list_flatten(column))))
    return _text_type(column) if pa.types.is_string(type) else type


def _text_type(texts: pa.ChunkedArray) -> pa.DataType:
    compute = pa.compute
    for part in (texts.slice(0, _HEAD_ROWS), texts):
        if not compute.all(compute.match_substring_regex(part, _TIME), min_count=0).as_py():
            return texts.type
    if texts.null_count == len(texts):
        return texts.type
    has_offset = compute.match_substring_regex(texts, UTC_OFFSET)
    is_instant = compute.all(has_offset).as_py()
    if not is_instant and compute.any(has_offset).as_py():
        return texts.type
    if compute.all(compute.equal(compute.utf8_length(texts), len("2026-07-01"))).as_py():
        type = pa.date32()
    else:
        longer = (
            unit for unit, pattern in _LONGER_FRACTIONS.items()
            if not compute.any(compute.match_substring_regex(texts, pattern)).as_py()
        )
        type = pa.timestamp(next(longer, "ns"), "UTC" if is_instant else None)
    try:
        texts.cast(type)
    except pa.ArrowInvalid:  # a day that does not exist, or a year beyond the unit
        return texts.type
    return type
