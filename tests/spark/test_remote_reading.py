"""Reading files of an S3 store on loopback from Spark: folders, partitions, filters, credentials."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from remote.conftest import KEY, S3, SECRET, s3, server

import pqext
from pqext import col
from pqext.spark import explain_read, query, read, read_json
from pqext.spark.reading.request import Query
from pqext.spark.sources.data_sources import PqextSource

__all__ = ["s3", "server"]


@pytest.fixture
def folder(s3: S3) -> str:
    """A folder of two partitions in the store."""
    for part in range(2):
        sink = pa.BufferOutputStream()
        rows = range(part * 100, (part + 1) * 100)
        pqext.write_table(pa.table({"id": rows, "word": [f"w{row % 3}" for row in rows]}), sink, row_group_rows=20)
        s3.put(f"t/part={part}/rows.parquet", sink.getvalue().to_pybytes())
    return "s3a://bucket/t"


@pytest.fixture
def hadoop(spark: Any, server: S3) -> Iterator[None]:
    """The store in the session's Hadoop settings."""
    settings = {
        "access.key": KEY, "secret.key": "of others", "bucket.bucket.secret.key": SECRET, "endpoint": server.url,
        "endpoint.region": "us-east-1", "path.style.access": "true",
    }  # fmt: skip
    for name, value in settings.items():
        spark.conf.set(f"spark.hadoop.fs.s3a.{name}", value)
    yield
    for name in settings:
        spark.conf.unset(f"spark.hadoop.fs.s3a.{name}")


def test_folders_of_a_store_are_read_with_partitions_and_pruned(spark: Any, s3: S3, folder: str) -> None:
    asked = (col("part") == 1) & (col("id") >= 170)
    found = read(spark, folder, where=asked, storage_options=s3.options)
    assert sorted(row.id for row in found.collect()) == list(range(170, 200))
    assert SECRET not in found._jdf.queryExecution().toString()
    plan = explain_read(folder, where=asked, storage_options=s3.options)
    assert (plan.row_groups, plan.row_groups_total) == (2, 5)
    total = query(spark, folder, {"n": "count", "last": ("max", "id")}, by=["word"], storage_options=s3.options)
    assert sorted(map(tuple, total.collect())) == [("w0", 67, 198), ("w1", 67, 199), ("w2", 66, 197)]


@pytest.mark.usefixtures("hadoop")
def test_credentials_are_taken_from_spark_hadoop_settings(spark: Any, folder: str) -> None:
    assert read(spark, [f"{folder}/part=0", f"{folder}/part=1/rows.parquet"]).count() == 200


def test_data_source_takes_credentials_from_the_files_of_the_cluster(
    folder: str, server: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, as in the one in which Spark plans, whose environment Spark has set at its start."""
    settings = {"access.key": KEY, "secret.key": SECRET, "endpoint": server.url, "endpoint.region": "us-east-1"}
    lines = [f"spark.hadoop.fs.s3a.{name} {value}\n" for name, value in settings.items()]
    (tmp_path / "spark-defaults.conf").write_text("".join([*lines, "spark.hadoop.fs.s3a.path.style.access true\n"]))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    source = PqextSource({"path": folder})
    reader: Any = source.reader(source.schema())
    assert sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part)) == 200


def test_json_lines_of_a_store_are_read_in_ranges_and_decompressed(spark: Any, s3: S3) -> None:
    lines = [json.dumps({"n": n}) for n in range(300)]
    s3.put("j/a.json", "\n".join(lines[:200]).encode())
    s3.put("j/b.json.gz", gzip.compress(("\n".join(lines[200:]) + "\n{").encode()))
    found = read_json(
        spark, ["s3a://bucket/j"], on_error="null", error_column="e", partition_bytes=500, storage_options=s3.options
    )
    assert SECRET not in found._jdf.queryExecution().toString()
    rows = found.selectExpr("try_variant_get(value, '$.n', 'int') AS n", "e").collect()
    assert sorted(row.n for row in rows if row.e is None) == [*range(300)]
    assert [row.e for row in rows if row.e] == [
        "s3://bucket/j/b.json.gz, line 101, byte 1: the text ends within a value"
    ]


def test_errors_name_the_location_without_secrets(spark: Any, s3: S3, folder: str) -> None:
    with pytest.raises(PySparkException, match=r"bucket/nothing") as caught:
        read(spark, "s3://bucket/nothing", storage_options=s3.options)
    assert SECRET not in str(caught.value)
    with pytest.raises(PySparkException, match="storage_options are for URLs"):
        read(spark, "/nowhere.parquet", storage_options=s3.options)
    with pytest.raises(ValueError, match="option storage_options must be a JSON object") as wrong:
        Query.from_options({"path": folder, "storage_options": f'{{"secret": "{SECRET}"'})
    assert SECRET not in str(wrong.value)
