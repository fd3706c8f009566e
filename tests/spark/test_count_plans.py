"""What the driver plans for a count, and counts itself: the columns of the filter, or footers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")

from pqext import col
from pqext.spark.reading.aggregation import Aggregate, Aggregation
from pqext.spark.reading.encoding import encode_options
from pqext.spark.reading.parquet_reader import Reader, few_files_counter
from pqext.spark.reading.planning import Slice, plan_read
from pqext.spark.reading.request import Query

COUNT = Aggregation(0, (Aggregate("rows", "count", None),))


def count_of(folder: Path, **options: Any) -> Query:
    given = encode_options(aggregation=COUNT, **options)
    return Query.from_options({**given, "path": str(folder)}).resolve()


@pytest.mark.spec("spark.counts")
@pytest.mark.parametrize("columns", [None, ["blob"]])
def test_count_tasks_are_balanced_by_filter_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: list[str] | None
) -> None:
    for number in range(3):
        blobs = [os.urandom(1000) for _ in range(50)]
        pq.write_table(pa.table({"id": range(50), "blob": blobs}), tmp_path / f"{number}.parquet")
    files = [pq.read_metadata(file) for file in tmp_path.iterdir()]
    stored = sum(file.row_group(0).column(0).total_compressed_size for file in files)
    query = count_of(tmp_path, where=col("id") < 30, columns=columns)
    assert plan_read(query, query.values_schema().names).bytes == stored
    monkeypatch.setattr("pqext.spark.reading.parquet_reader.STORED_BYTES", stored)
    counter = few_files_counter(query)
    assert counter is not None
    question = f"SELECT count(*) FROM '{tmp_path}/*.parquet' WHERE id < 30"
    assert [(counter(),)] == duckdb.execute(question).fetchall() == [(90,)]


@pytest.mark.spec("spark.counts")
def test_footers_of_many_files_are_counted_by_several_tasks(tmp_path: Path) -> None:
    for number in range(40):
        pq.write_table(pa.table({"id": [number]}), tmp_path / f"{number}.parquet")
    query = count_of(tmp_path)
    slices = [one for one in Reader(query, query.values_schema()).partitions() if isinstance(one, Slice)]
    assert len(slices) > 1
    assert sorted(task.path for one in slices for task in one.tasks) == sorted(map(str, tmp_path.iterdir()))


@pytest.mark.spec("spark.counts")
def test_union_count_is_balanced_by_the_filter_columns(tmp_path: Path) -> None:
    first = {"a": pa.array([1, 5, 9], pa.int32()), "b": [4, 4, 4], "blob": [b"x" * 50] * 3}
    second = {"a": pa.array([2, 3], pa.int64()), "blob": [b"y" * 50] * 2}
    third = {"a": pa.array([0.5, 7.0]), "b": [1, 8], "blob": [b"z" * 50] * 2}
    for name, columns in {"1": first, "2": second, "3": third}.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table(columns), path, compression="none", use_dictionary=False)
        blob = pq.read_metadata(path).row_group(0).column(len(columns) - 1)
        data = bytearray(path.read_bytes())
        start, size = blob.data_page_offset, blob.total_compressed_size
        data[start : start + size] = b"\xff" * size
        path.write_bytes(data)
    files = f"read_parquet('{tmp_path}/*.parquet', union_by_name=true)"
    for filter, text in (
        (col("a") < col("b"), "a < b"), (col("a") > 2.5, "a > 2.5"), (col("b").is_null(), "b IS NULL"),
        ((col("a") < col("b")) | (col("a") == 2), "a < b OR a = 2"),
    ):  # fmt: skip
        counter = few_files_counter(count_of(tmp_path, where=filter, schema="union"))
        assert counter is not None
        assert [(counter(),)] == duckdb.execute(f"SELECT count(*) FROM {files} WHERE {text}").fetchall(), text
