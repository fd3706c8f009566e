"""Convert data frames of pandas and polars: preserve marks of VARIANT and geometry columns, and convert types."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import pyarrow as pa

from pqext.core.base.errors import ParquetError, UnsupportedError
from pqext.core.schema.annotations import EXTENSION_METADATA, EXTENSION_NAME, supports_extension

KEY = "pqext:fields"
"""Key in ``DataFrame.attrs``. Its value maps columns to extension names and metadata as text, so that it can be
JSON."""
_DIGITS = 38
_OBJECTS = (
    "holds Python objects (polars type Object), which Arrow exports as memory addresses; cast the column, for example "
    "with .map_elements(str, return_dtype=pl.String)"
)
PANDAS_FAULTS = (pa.ArrowException, ValueError)
"""Errors of ``pyarrow.Table.to_pandas`` for types that pandas lacks, invalid UTF-8, and dates after the year 9999."""

Frame = TypeVar("Frame")


def store_extension_types(frame: Any, schema: pa.Schema) -> None:
    """Store the extension types of the columns of ``schema`` in the attributes of ``frame``."""
    marks = {}
    for field in schema:
        metadata = field.metadata or {}
        name = metadata.get(EXTENSION_NAME, b"").decode("utf-8", "replace")
        if supports_extension(name) and len(schema.get_all_field_indices(field.name)) == 1:
            marks[field.name] = [name, metadata.get(EXTENSION_METADATA, b"").decode("utf-8", "replace")]
    if marks:
        frame.attrs[KEY] = marks


def restore_extension_types(table: pa.Table, attributes: Any) -> pa.Table:
    """Return ``table`` with the extension types that are stored in the ``attributes`` of a frame.

    Columns whose types no longer match are unchanged. See :func:`store_extension_types`.
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
        if not _is_compatible(column.type, is_variant):
            continue
        metadata = {EXTENSION_NAME: mark[0].encode(), EXTENSION_METADATA: mark[1].encode()}
        table = table.set_column(place, pa.field(field.name, column.type, field.nullable, metadata), column)
    return table


def drop_row_ranges(metadata: Mapping[bytes, bytes] | None) -> dict[bytes, bytes]:
    """Return the metadata of a schema without pandas' row ranges, which do not apply to rows in another order.

    A pandas ``RangeIndex`` is stored as a range, which would label the wrong rows. Without it, pandas numbers the rows.
    """
    result = dict(metadata or {})
    with suppress(KeyError, TypeError, ValueError, RecursionError):
        stated = json.loads(result[b"pandas"])
        stated["index_columns"] = [index for index in stated["index_columns"] if not isinstance(index, dict)]
        result[b"pandas"] = json.dumps(stated).encode()
    return result


_VARIANT = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])


def _is_compatible(type: pa.DataType, is_variant: bool) -> bool:
    if is_variant:
        return pa.types.is_struct(type) and {"metadata", "value"} == {child.name for child in type}
    return bool(pa.types.is_binary(type) or pa.types.is_large_binary(type))


def to_arrow_types(data: Any) -> Any:
    """Return a polars DataFrame or Series with types that Arrow supports. Other data is returned unchanged.

    Int128 and UInt128 become ``Decimal(38, 0)``, including those within lists, arrays and structs.

    Raises:
        TypeError: If a column holds Python objects.
        ValueError: If an integer has more than 38 digits.
    """
    polars = sys.modules.get("polars")
    if polars is None:
        return data
    if isinstance(data, polars.Series):
        return _convert_series(polars, data, f"the Series {data.name!r}" if data.name else "the Series")
    if not isinstance(data, polars.DataFrame):
        return data
    changed = []
    for name, dtype in data.schema.items():
        if dtype == polars.Object or _arrow_type(polars, dtype) != dtype:
            changed.append(_convert_series(polars, data.get_column(name), f"column {name!r}"))
    return data.with_columns(changed) if changed else data


def _convert_series(polars: Any, series: Any, name: str) -> Any:
    if series.dtype == polars.Object:
        raise TypeError(f"{name} {_OBJECTS}")
    target = _arrow_type(polars, series.dtype)
    if target == series.dtype:
        return series
    try:
        return series.cast(target)
    except polars.exceptions.InvalidOperationError:
        raise ValueError(
            f"{name} of polars type {series.dtype} contains an integer of more than {_DIGITS} digits, the maximum of a "
            "Parquet DECIMAL; cast the column to String or Float64"
        ) from None


def _arrow_type(polars: Any, dtype: Any) -> Any:
    """Replace 128-bit integers in ``dtype`` with ``Decimal(38, 0)``."""
    if dtype in (polars.Int128, polars.UInt128):
        return polars.Decimal(_DIGITS, 0)
    if isinstance(dtype, polars.List):
        return polars.List(_arrow_type(polars, dtype.inner))
    if isinstance(dtype, polars.Array):
        return polars.Array(_arrow_type(polars, dtype.inner), dtype.size)
    if isinstance(dtype, polars.Struct):
        return polars.Struct([polars.Field(field.name, _arrow_type(polars, field.dtype)) for field in dtype.fields])
    return dtype


def convert_table(
    table: pa.Table, library: str, convert: Callable[[pa.Table], Frame], *faults: type[BaseException]
) -> Frame:
    """Convert the table to a data frame with ``convert``.

    Raises an ``UnsupportedError`` that names the column if ``convert`` raises one of ``faults``.
    """
    try:
        return convert(table)
    except faults as error:
        if isinstance(error, (ParquetError, MemoryError)):
            raise
        if isinstance(error, ValueError):
            convert(table.schema.empty_table())  # raises if the options, and not a value, are wrong
        for place, field in enumerate(table.schema):
            try:
                convert(table.select([place]))
            except faults as error:
                raise UnsupportedError(
                    f"column {field.name!r} of type {field.type} is not supported in {library}: {error}; select other "
                    "columns or use to_table()", feature=f"{field.type} in {library}",
                ) from error
        raise
