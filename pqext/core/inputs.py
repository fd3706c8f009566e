"""Tables in every form that they are given in: Arrow, pandas, polars, DuckDB, mappings, Arrow's C interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

_HINTS = {
    "GeoDataFrame": "; pqext.geo.write_geopandas takes it",
    "LazyFrame": "; collect() it first",
    "list": "; pyarrow.Table.from_pylist makes a table of a list of rows",
    "str": "; pqext.read_table reads a file",
}


def as_table(data: Any) -> Any:
    """``data`` as a ``pyarrow.Table``, or as an iterable of batches with a ``schema`` where it comes in batches.

    ``data`` is a Table, a RecordBatch, a RecordBatchReader, an iterable of batches with a ``schema``, a pandas or
    polars DataFrame, a mapping from names to arrays, or any object with ``__arrow_c_stream__`` (a DuckDB relation) or
    ``__arrow_c_array__``. The index of a pandas DataFrame is kept as pyarrow keeps it. Raises ``TypeError`` for others.
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
            return pa.Table.from_pandas(data)
        if isinstance(data, Mapping):
            return pa.table(dict(data))
        if hasattr(data, "__arrow_c_stream__"):
            # What has a length is in memory already.
            return pa.table(data) if hasattr(data, "__len__") else pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(data)])
    raise TypeError(
        "expected a table: of pyarrow, pandas or polars, a mapping from names to arrays, or an object with "
        f"__arrow_c_stream__, not {kind}{_HINTS.get(kind, '')}"
    )
