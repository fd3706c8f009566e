"""Data-skipping stores of tables in an object store: built, asked and refreshed by Spark, with credentials."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from remote.conftest import S3, SECRET, s3, server

import pqext
from pqext import col, skipping
from pqext.skipping import MinMax, NullCount
from pqext.spark import build_skipping, explain_read, query, read, refresh_skipping

__all__ = ["s3", "server"]
FOLDER, STORE = "s3a://bucket/t", "s3://bucket/t.skipping"


def put(s3: S3, part: int, first: int) -> None:
    sink = pa.BufferOutputStream()
    pqext.write_table(pa.table({"id": range(first, first + 100)}), sink)
    s3.put(f"t/part={part}/rows.parquet", sink.getvalue().to_pybytes())


@pytest.mark.slow
def test_tables_in_object_stores_are_indexed_and_skipped(spark: Any, s3: S3) -> None:
    for part in range(3):
        put(s3, part, part * 100)
    wanted, options = col("id") >= 250, s3.options
    done = build_skipping(spark, FOLDER, [MinMax("id"), NullCount("id")], STORE, storage_options=options)
    assert (done.objects, done.added, done.read, done.failed) == (3, 3, 0, ())
    found = read(spark, FOLDER, where=wanted, skipping=STORE, storage_options=options)
    assert sorted(row.id for row in found.collect()) == list(range(250, 300))
    assert SECRET not in found._jdf.queryExecution().toString()
    assert explain_read(FOLDER, where=wanted, skipping=STORE, storage_options=options).files_skipped == 2
    opened = skipping.open_store(STORE, storage_options=options)
    assert explain_read(FOLDER, where=wanted, skipping=opened, storage_options=options).files_skipped == 2
    [row] = query(spark, FOLDER, {"n": "count"}, where=wanted, skipping=STORE, storage_options=options).collect()
    assert row["n"] == 50
    put(s3, 0, 900)
    assert read(spark, FOLDER, where=wanted, skipping=STORE, storage_options=options).count() == 150
    done = refresh_skipping(spark, FOLDER, STORE, storage_options=options)
    assert (done.objects, done.added, done.kept) == (3, 1, 2)
    plan = explain_read(FOLDER, where=col("id") < 100, skipping=STORE, storage_options=options)
    assert plan.files_skipped == 3


def test_missing_stores_are_errors(spark: Any, s3: S3) -> None:
    put(s3, 0, 0)
    with pytest.raises(PySparkException, match="no data-skipping store"):
        read(spark, FOLDER, where=col("id") > 5, skipping=STORE, storage_options=s3.options).count()
    with pytest.raises(FileNotFoundError, match="no data-skipping store"):
        refresh_skipping(spark, FOLDER, STORE, storage_options=s3.options)
