"""Folders named ``key=value`` are columns to data source ``pqext`` as they are to Spark's own reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import pqext
from pqext.spark import explain_read, read, read_metrics, where

VALUES = ["a b", "c/d:e", "100%", "x=y", "é", None]


@pytest.fixture(scope="module")
def folder(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve rows that Spark wrote by two columns: a text with what has to be escaped, and a number."""
    path = tmp_path_factory.mktemp("partitioned") / "table"
    texts = F.element_at(F.array(*map(F.lit, VALUES)), (F.col("x") % 6 + 1).cast("int"))
    df = spark.range(12).withColumnRenamed("id", "x").select("x", texts.alias("k"), (F.col("x") % 2 - 1).alias("n"))
    df.repartition(1).write.partitionBy("k", "n").parquet(str(path))
    return path


def test_folders_written_by_spark_are_read_like_in_spark(spark: Any, folder: Path) -> None:
    ours, theirs = read(spark, str(folder)), spark.read.parquet(str(folder))
    assert ours.dtypes == theirs.dtypes
    expected = sorted(theirs.collect(), key=str)
    assert {row.k for row in expected} == set(VALUES)
    assert sorted(ours.collect(), key=str) == expected
    native = read(spark, str(folder), engine="native")
    assert (native.schema, sorted(native.collect(), key=str)) == (ours.schema, expected)
    assert sorted(map(str, pqext.read_table(folder).to_pylist())) == sorted(str(row.asDict()) for row in expected)
    for condition in ("n = -1", "k IS NULL", "k = 'a b' OR n = 0", "k > 'b' AND x > 3", "NOT (n < 0)"):
        assert sorted(ours.where(condition).collect(), key=str) == sorted(theirs.where(condition).collect(), key=str)
    assert ours.select("k").distinct().count() == len(VALUES)
    assert ours.groupBy("n").count().count() == 2


def test_dates_preserve_their_type_and_codes_their_leading_zeros(spark: Any, tmp_path: Path) -> None:
    folder = str(tmp_path / "days")
    days = spark.range(4).select("id", F.expr("date '2024-02-28' + cast(id as int)").alias("day"))
    days.withColumn("zip", F.lpad("id", 5, "0")).repartition(1).write.partitionBy("day", "zip").parquet(folder)
    theirs = spark.read.schema("id bigint, day date, zip string").parquet(folder)
    expected = sorted(theirs.collect())
    for engine in ("python", "native"):
        ours = read(spark, folder, engine=engine)
        assert ours.dtypes == theirs.dtypes
        assert sorted(ours.collect()) == expected
        assert [row.id for row in where(ours, "day = date '2024-02-29'").collect()] == [1]
    stated = read(spark, folder, partition_types={"day": "string", "zip": "int32"})
    assert stated.dtypes == [("id", "bigint"), ("day", "string"), ("zip", "int")]
    assert sorted(row.zip for row in where(stated, "zip > 1").collect()) == [2, 3]
    option = spark.read.format("pqext").option("partition_types", '{"zip": "int"}').load(folder)
    assert option.dtypes == [("id", "bigint"), ("day", "date"), ("zip", "int")]
    plan = explain_read(folder, where="zip = 3", partition_types={"zip": "int32"})
    assert [task.prune_reason is None for task in plan.tasks].count(True) == 1


def test_files_excluded_by_a_partition_filter_are_not_opened(spark: Any, folder: Path, tmp_path: Path) -> None:
    filter = (pqext.col("n") == -1) & (pqext.col("k") == "c/d:e")
    assert [task.prune_reason is None for task in explain_read(str(folder), where=filter).tasks].count(True) == 0
    filter = (pqext.col("n") == 0) & (pqext.col("k") == "c/d:e")
    found = where(read(spark, str(folder), metrics_path=str(tmp_path)), filter)
    assert sorted(row.x for row in found.collect()) == [1, 7]
    metrics = read_metrics(str(tmp_path))
    assert metrics.files == len(list(folder.glob("k=c%2Fd%3Ae/n=0/*.parquet")))
    both = read(spark, str(folder), ["n"], where=(pqext.col("x") < 4) & (pqext.col("n") == 0))
    assert [row.n for row in both.collect()] == [0, 0]


def test_alternatives_and_file_name_patterns_select_files(spark: Any, folder: Path, tmp_path: Path) -> None:
    some = f"{folder}/k={{é,x%3Dy}}/n=*"
    expected = sorted(map(str, spark.read.option("basePath", str(folder)).parquet(some).collect()))
    assert sorted(map(str, read(spark, some).collect())) == expected
    for name in ("a.parquet", "b.parquet", "c.txt"):
        pqext.write_table(pa.table({"x": [ord(name[0])]}), tmp_path / name)
    chosen = spark.read.format("pqext").option("pathGlobFilter", "{b,c}.parq*").load(str(tmp_path))
    assert [row.x for row in chosen.collect()] == [ord("b")]
    assert read(spark, str(tmp_path), path_glob_filter="*.parquet").count() == 2
    assert read(spark, str(tmp_path), path_glob_filter="?.txt", engine="native").collect()[0].x == ord("c")
    with pytest.raises(FileNotFoundError, match=r"no file has a name that matches '\*\.csv'"):
        explain_read(str(tmp_path), path_glob_filter="*.csv")
    with pytest.raises(ValueError, match="a pattern of file names without folders"):
        read(spark, str(tmp_path), path_glob_filter="x/*")
    with pytest.raises(TypeError, match=r"path_glob_filter must be str \| None, not list"):
        read(spark, str(tmp_path), path_glob_filter=["*.parquet"])  # type: ignore[arg-type]


def test_arguments_of_other_apis_suggest_ours(spark: Any, folder: Path) -> None:
    for name, ours in (("filter", "use where"), ("pathGlobFilter", "use path_glob_filter")):
        with pytest.raises(TypeError, match=f"has no argument '{name}'; {ours}"):
            read(spark, str(folder), **{name: "x"})


def test_partitioning_can_be_disabled(spark: Any, folder: Path) -> None:
    assert read(spark, str(folder), partitioning=None).columns == ["x"]
    assert spark.read.format("pqext").option("partitioning", "none").load(str(folder)).columns == ["x"]
    with pytest.raises(ValueError, match="expected 'hive' or 'none'"):
        read(spark, str(folder), partitioning="year")  # type: ignore[arg-type]
