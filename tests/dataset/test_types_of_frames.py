"""Columns that pandas or polars cannot hold raise an error that names them."""

from __future__ import annotations

import io

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.base.errors import UnsupportedError

LISTS = pa.table({"id": [1], "l": pa.array([[b"abc"]], pa.list_(pa.binary(3)))})
INTERVALS = pa.table({"id": [1], "i": pa.array([(1, 2, 3_000_000)], pa.month_day_nano_interval())})
WIDE = pa.table({"id": [1], "d": pa.array([1], pa.decimal256(50, 3))})


def scan(table: pa.Table) -> pqext.Scan:
    file = io.BytesIO()
    pqext.write_table(table, file)
    return pqext.scan(file.getvalue())


def test_column_unsupported_by_pandas_is_named() -> None:
    with pytest.raises(pa.ArrowNotImplementedError):
        LISTS.to_pandas()
    with pytest.raises(UnsupportedError, match=r"column 'l' of type list<.* is not supported in pandas: .*to_table"):
        scan(LISTS).to_pandas()
    with pytest.raises(UnsupportedError, match="column 'l' of type list<"):
        pqext.geo.to_geopandas(LISTS.append_column("g", pqext.geo.from_points([1.0], [2.0])))
    assert scan(LISTS).select("id").to_pandas()["id"].tolist() == [1]


def test_invalid_utf8_names_its_column() -> None:
    text = pa.array([b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(pa.ArrowException, match="Wrapping"):
        pa.table({"s": text}).to_pandas()
    with pytest.raises(UnsupportedError, match="column 's' of type string"):
        pqext.geo.to_geopandas(pa.table({"s": text, "g": pqext.geo.from_points([1.0], [2.0])}))


@pytest.mark.parametrize(("table", "name"), [(INTERVALS, "i"), (WIDE, "d")])
def test_column_unsupported_by_polars_is_named(table: pa.Table, name: str) -> None:
    with pytest.raises((polars.exceptions.PolarsError, polars.exceptions.PanicException)):
        polars.DataFrame(table)
    with pytest.raises(UnsupportedError, match=rf"column '{name}' of type .* is not supported in polars"):
        scan(table).to_polars()


def test_duplicate_columns_have_no_polars_frame() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(polars.exceptions.DuplicateError):
        polars.DataFrame(table)
    file = io.BytesIO()
    pq.write_table(table, file)
    with pytest.raises(ValueError, match="polars does not support duplicate column names: a; use"):
        pqext.scan(file.getvalue()).to_polars()
