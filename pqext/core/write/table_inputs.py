"""Convert inputs to tables: Arrow, pandas, polars, DuckDB, mappings, and objects with Arrow's C interface."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from pqext.core.schema.data_frames import restore_extension_types, to_arrow_types

_FAILED = re.compile("Conversion failed for column (.*) with type .*", re.DOTALL)
"""Pattern of the second argument of pyarrow's errors about pandas columns."""

_HINTS = {
    "GeoDataFrame": "; write it with pqext.geo.write_geopandas",
    "LazyFrame": "; collect() it first",
    "list": "; make a table of a list of rows with pyarrow.Table.from_pylist",
    "str": "; pqext.read_table reads a file",
}
_ARRAYS = "; make a table of one column with pyarrow.table({'name': values})"


def as_table(data: Any) -> Any:
    """Convert ``data`` to a ``pyarrow.Table``, or to an iterable of batches with a ``schema`` if it is a stream.

    ``data`` is a Table, a RecordBatch, a RecordBatchReader, an iterable of batches with a ``schema``, a pandas or
    polars DataFrame, a mapping from names to arrays, or any object with ``__arrow_c_stream__`` (a DuckDB relation) or
    ``__arrow_c_array__``. The index of a pandas DataFrame is stored as pyarrow stores it, and 128-bit integers of
    polars become ``decimal128(38, 0)``. Raises ``TypeError`` for other inputs and for polars columns of Python objects.
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    kind = type(data).__name__
    if kind not in _HINTS:
        if isinstance(getattr(data, "schema", None), pa.Schema) and isinstance(data, Iterable):
            return data
        if type(data).__module__.partition(".")[0] == "pandas" and kind == "DataFrame":
            return restore_extension_types(_table_from_pandas(data), data.attrs)
        if isinstance(data, Mapping):
            return _table_of(data)
        data = to_arrow_types(data)
        if _is_array(data):
            raise TypeError(f"expected a table, not {kind}{_ARRAYS}")
        if hasattr(data, "__arrow_c_stream__"):
            # An object with a length is already in memory.
            return pa.table(data) if hasattr(data, "__len__") else pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(data)])
    raise TypeError(
        "expected a table of pyarrow, pandas or polars, a mapping from names to arrays, or an object with "
        f"__arrow_c_stream__, not {kind}{_HINTS.get(kind, '')}"
    )


def _is_array(data: Any) -> bool:
    """Return whether Arrow data is one column that is not a struct of columns."""
    if type(data).__name__ == "Series" and hasattr(data, "__arrow_c_stream__"):  # polars
        data = pa.chunked_array(data)
    return isinstance(data, pa.Array | pa.ChunkedArray) and not pa.types.is_struct(data.type)


def _table_from_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        failed = _FAILED.fullmatch(str(error.args[-1])) if len(error.args) == 2 else None
        if failed is None or failed[1] not in frame.columns:
            raise
        name = failed[1]
        values = frame[name] if frame[name].ndim == 1 else ()  # 2 if several columns have the same name
        raise type(error)(f"column {name!r}: {error.args[0]}{_remedy(values)}") from None


def _remedy(values: Iterable[Any]) -> str:
    """Return a hint that names the pqext function for values without an Arrow type, or an empty string."""
    types = {type(value) for value in values if value is not None}
    if any(item.__module__.partition(".")[0] == "shapely" for item in types):
        return "; pqext.geo.from_shapely makes a column of geometries"
    if types & {dict, list} and len(types) > 1:
        return "; pqext.variant.from_python makes a VARIANT column of values of several types"
    return ""


def _table_of(columns: Mapping[Any, Any]) -> pa.Table:
    """Convert a mapping from names to values to a table."""
    arrays = {}
    for name, values in columns.items():
        if not isinstance(name, str):
            raise TypeError(f"column names must be text, not {name!r}")
        arrays[name] = _column(name, values)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name!r} has {length}" for name, length in list(lengths.items())[:10])
        raise ValueError(f"columns differ in their number of rows: {counts}; pass arrays of equal length")
    return pa.table(arrays)


def _column(name: str, values: Any) -> Any:
    """Convert the values of a mapping to an array, since ``pyarrow.table`` does not read nested polars Series."""
    values = to_arrow_types(values)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if values is None or isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
        raise TypeError(
            f"column {name!r} has type {type(values).__name__}; pass an array or a list of values, as in "
            f"{{{name!r}: [...]}}"
        )
    is_series = type(values).__module__.partition(".")[0] == "polars" and hasattr(values, "__arrow_c_stream__")
    try:
        return pa.chunked_array(values) if is_series else pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise type(error)(f"column {name!r}: {error}{_remedy(values)}") from None


def cast_layout(column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    """Cast ``column`` to ``type`` if the types differ only in their Arrow layout. Otherwise return it unchanged.

    Layouts are the plain, large and view variants of strings, bytes and lists. Raises ``ValueError`` if the values do
    not fit into the other layout.
    """
    if column.type == type or plain_layout(column.type) != plain_layout(type):
        return column
    try:
        return column.cast(type)
    except pa.ArrowNotImplementedError:
        return column
    except pa.ArrowInvalid as error:
        raise ValueError(f"a column of type {column.type} cannot be cast to the writer's {type}: {error}") from None


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return ``table`` with the column order and layouts of ``schema``. Raises ``ValueError`` if the columns differ."""
    names, requested = set(table.column_names), set(schema.names)
    missing = [name for name in schema.names if name not in names]
    extra = [name for name in table.column_names if name not in requested]
    if missing or extra or len(table.column_names) != len(schema.names):
        raise ValueError(f"the table's columns differ from the writer's: missing {missing}, unexpected {extra}")
    if table.column_names != schema.names:
        if len(set(schema.names)) < len(schema.names):
            raise ValueError("column names are not unique; pass the columns in the order of the writer's schema")
        table = table.select(schema.names)
    for place, field in enumerate(schema):
        column = cast_layout(original := table.column(place), field.type)
        if column is not original:
            table = table.set_column(place, table.field(place).with_type(field.type), column)
        if column.type != field.type:
            raise ValueError(
                f"column {field.name!r} has type {column.type} instead of the writer's {field.type}; cast the column"
            )
    return table


def plain_layout(type: pa.DataType) -> pa.DataType:
    """Return ``type`` with strings, bytes and lists in their plain layout."""
    if type in (pa.large_string(), pa.string_view()):
        return pa.string()
    if type in (pa.large_binary(), pa.binary_view()):
        return pa.binary()
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(plain_layout(field.type)) for field in type])
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_list_view, pa.types.is_large_list_view)
    if any(test(type) for test in lists):
        return pa.list_(type.value_field.with_type(plain_layout(type.value_type)))
    return type
