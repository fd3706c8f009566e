"""What `write_table` accepts as a table, and what it says of other data."""

from __future__ import annotations

import io
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import pqext


@pytest.mark.parametrize(
    "table",
    [{"a": [1, 2]}, {"a": (1, 2)}, {"a": range(1, 3)}, {"a": np.array([1, 2])}, {"a": pd.Series([1, 2])},
     {"a": pl.Series([1, 2])}, {"a": pa.array([1, 2])}, {"a": pa.chunked_array([[1], [2]])},
     pl.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 2]}), pa.array([{"a": 1}, {"a": 2}]),
     pa.chunked_array([[{"a": 1}, {"a": 2}]])],
    ids=lambda table: type(next(iter(table.values())) if isinstance(table, dict) else table).__name__,
)  # fmt: skip
def test_tables_and_mappings_of_columns_are_written(table: Any) -> None:
    sink = io.BytesIO()
    pqext.write_table(table, sink)
    assert pq.read_table(io.BytesIO(sink.getvalue())).to_pydict() == {"a": [1, 2]}
    sink = io.BytesIO()
    pqext.write_table(duckdb.sql("SELECT 1 AS a"), sink)
    assert pq.read_table(io.BytesIO(sink.getvalue())).to_pydict() == {"a": [1]}


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (pa.array([1]), TypeError, r"expected a table, not Int64Array; .* pyarrow.table\(\{'name': values\}\)"),
        (pa.chunked_array([[1]]), TypeError, "expected a table, not ChunkedArray; .* pyarrow.table"),
        (pl.Series([1]), TypeError, "expected a table, not Series; .* pyarrow.table"),
        ({"a": 1}, TypeError, r"column 'a' has type int; pass an array or a list of values, as in \{'a': \[...\]\}"),
        ({"a": None}, TypeError, "column 'a' has type NoneType"),
        ({"a": "text"}, TypeError, "column 'a' has type str"),
        ({"a": {"b": [1]}}, TypeError, "column 'a' has type dict"),
        ({1: [1]}, TypeError, "column names must be text, not 1"),
        ({"a": [1, 2], "b": [1]}, ValueError, "number of rows: 'a' has 2, 'b' has 1"),
        ({"a": [1], "b": [1, "x"]}, ValueError, "column 'b': Could not convert 'x' with type str: [^;]*$"),
        ({"a": [shapely.Point(1, 2)]}, ValueError, "column 'a': Could not convert .*; pqext.geo.from_shapely makes"),
        ({"a": [{"b": 1}, [1]]}, ValueError, "column 'a': .*; pqext.variant.from_python makes a VARIANT column"),
        (pd.DataFrame({"a": ["x", 1]}), TypeError, "^column 'a': Expected bytes, got a 'int' object$"),
        (pd.DataFrame({"a": [None, shapely.Point(1, 2)]}), ValueError, "^column 'a': .*; pqext.geo.from_shapely makes"),
        (pd.DataFrame({"a": [[("k", 1)], []]}), TypeError, "^column 'a': Expected bytes, got a 'int' object$"),
        (pd.DataFrame({"a": [{"b": 1}, [1]]}), ValueError, "^column 'a': .*; pqext.variant.from_python makes"),
    ],
)
def test_data_that_is_not_a_table_is_an_error_with_remedy(
    data: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        pqext.write_table(data, io.BytesIO())
