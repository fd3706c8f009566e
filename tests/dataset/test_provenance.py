"""Columns that tell the file of each row and its number there, as DuckDB and polars tell them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pytest
from dataset.strategies import expressions, tables
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import col, variant
from reference import evaluate as twin
from reference.effort import share


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(3):
        table = pa.table({"a": range(number * 10, number * 10 + 10), "b": [f"{row}" for row in range(10)]})
        pqext.write_table(table, tmp_path / f"{number}.parquet", row_group_rows=4, page_rows=2)
    return tmp_path


def test_paths_and_row_numbers_match_duckdb(folder: Path) -> None:
    found = pqext.scan(
        folder, ["a"], (col("a") > 7) & (col("a") < 23), include_file_paths="filename",
        include_row_numbers="file_row_number",
    )
    theirs = duckdb.sql(
        f"SELECT a, filename, file_row_number FROM read_parquet('{folder}/*.parquet', filename=true, "
        "file_row_number=true) WHERE a > 7 AND a < 23"
    ).fetchall()
    assert [tuple(row.values()) for row in found.to_table().to_pylist()] == theirs
    assert found.count() == len(theirs) == 15
    assert found.head(3)["file_row_number"].to_pylist() == [8, 9, 0]
    assert found.schema.names == ["a", "filename", "file_row_number"]


def test_paths_match_polars(folder: Path) -> None:
    theirs = polars.scan_parquet(folder / "*.parquet", include_file_paths="path").collect().to_arrow()
    assert pqext.read_table(folder, include_file_paths="path")["path"].to_pylist() == theirs["path"].to_pylist()


def test_filter_on_paths_leaves_other_files_unopened(folder: Path) -> None:
    (folder / "0.parquet").write_bytes(b"no Parquet")
    found = pqext.scan(folder, ["b"], col("path") == str(folder / "1.parquet"), include_file_paths="path")
    assert found.to_table()["b"].to_pylist() == [f"{row}" for row in range(10)]
    first = found.plan()[0]
    assert first.prune_reason is not None
    assert first.prune_reason.endswith(f"path is '{folder / '0.parquet'}'")


@settings(max_examples=share(0.3))
@given(st.data())
def test_row_numbers_match_the_selected_rows(data: st.DataObject) -> None:
    batch = data.draw(tables())
    expression = data.draw(expressions(batch))
    sink = io.BytesIO()
    rows = data.draw(st.integers(1, 4))
    pqext.write_table(pa.table(batch), sink, row_group_rows=rows, page_rows=data.draw(st.integers(1, rows)))
    matching = [row for row, truth in enumerate(twin.truths(expression, batch)) if truth]
    rule = data.draw(st.sampled_from([None, "union"]))
    found = pqext.scan(sink.getvalue(), [], expression, schema=rule, include_row_numbers="row")
    assert found.to_table()["row"].to_pylist() == matching


def test_variant_values_are_returned_with_row_numbers(tmp_path: Path) -> None:
    texts = [json.dumps({"n": number}) for number in range(6)]
    for name, shredding in (("1", "n BIGINT"), ("2", None)):
        table = pa.table({"v": variant.parse_json(pa.array(texts), shredding=shredding)})
        pqext.write_table(table, tmp_path / f"{name}.parquet", row_group_rows=2)
    path = col("v").variant("$.n", "int64")
    found = pqext.read_table(tmp_path, [("n", path)], path >= 3, include_row_numbers="row")
    assert found["n"].to_pylist() == found["row"].to_pylist() == [3, 4, 5] * 2


def test_name_conflicts_and_filters_on_row_numbers_are_rejected(folder: Path) -> None:
    with pytest.raises(ValueError, match="column 'a' exists in the file"):
        pqext.read_table(folder, include_file_paths="a")
    with pytest.raises(ValueError, match="has lone surrogates"):
        pqext.read_table(folder, include_file_paths="\ud800")
    with pytest.raises(ValueError, match="already exists"):
        pqext.read_table(folder, include_file_paths="x", include_row_numbers="x")
    with pytest.raises(ValueError, match="contains row numbers, which filters do not support"):
        pqext.read_table(folder, filter=col("r") > 1, include_row_numbers="r")
    with pytest.raises(ValueError, match="corrupt pages are skipped"):
        pqext.read_table(folder, on_corrupt="skip", include_row_numbers="r")
