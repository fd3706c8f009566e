"""Which local file a path names: plain paths as they are, ``file:`` URIs decoded, everything else refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext

pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")

from pqext.core.base.errors import UnsupportedError
from pqext.skipping import MinMax
from pqext.spark import build_skipping, clean, ingest_json, query, read, read_json, refresh_skipping, write
from pqext.spark.base import files
from pqext.spark.base.files import local_path, option_paths


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("/a b/c%20d", "/a b/c%20d"),
        ("/a:b/c", "/a:b/c"),
        ("file:/x%20y", "/x y"),
        ("file:///x/*.parquet", "/x/*.parquet"),
        ("FILE://localhost/x#1?2", "/x#1?2"),
        ("file:///a%2520b", "/a%20b"),
    ],
)
def test_plain_paths_are_unchanged_and_file_uris_are_decoded(path: str, local: str) -> None:
    assert local_path(path) == local


@pytest.mark.parametrize("path", ["x/y", "./x", "../*.parquet", "x:y/z", "a%20b"])
def test_relative_paths_start_at_the_driver_folder(path: str) -> None:
    assert local_path(path) == os.path.join(os.getcwd(), path)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("hdfs:/x", "hdfs:/x is not on a local file system: mount it"),
        ("dbfs:/x", "this machine has no folder /dbfs"),
        ("s3a://bucket/x", "not on a local file system"),
        ("s3://bucket", "not on a local file system"),
        ("abfss://c@account.dfs.core.windows.net/x", "not on a local file system"),
        ("hdfs://", "not on a local file system"),
        ("file://host/p", r"file://host/p is on the machine 'host': omit the machine \(file:/path\)"),
        ("file://", "not on a local file system"),
        ("file://user:PW@h/x", "^file://h/x is on the machine 'h'"),
        ("FILE://user:P/W@h/x", "^FILE://h/x is on the machine 'h'"),
        ("hdfs://user:PW@h/x", "^hdfs://h/x is not on a local file system"),
    ],
)
def test_paths_of_other_machines_are_rejected(path: str, text: str) -> None:
    with pytest.raises(UnsupportedError, match=text):
        local_path(path)


def test_databricks_paths_refer_to_the_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedError, match=r"dbfs:/t is on Databricks' file system.* pass the path of a volume"):
        local_path("dbfs:/t")
    monkeypatch.setattr(files, "DBFS", str(tmp_path))
    assert local_path("dbfs:/a b/c%20d") == str(tmp_path / "a b" / "c%20d")
    assert option_paths({"path": "dbfs:///t"}, allow_urls=True) == [str(tmp_path / "t")]


def test_missing_path_is_reported(tmp_path: Path) -> None:
    for options in ({}, {"paths": "[]"}, {"path": ""}, {"paths": '[""]'}):
        with pytest.raises(ValueError, match=r"the path is missing: pass a path to load\(\) or save\(\)"):
            option_paths(options)


EMPTY: list[Callable[[Any, str], Any]] = [
    lambda spark, file: write(spark.range(1), "", "overwrite"),
    lambda spark, file: write(spark.range(1), "", "append"),
    lambda spark, file: ingest_json(spark, "in.ndjson", "", mode="overwrite"),
    lambda spark, file: ingest_json(spark, "in.ndjson", ""),
    lambda spark, file: clean(""),
    lambda spark, file: build_skipping(spark, file, [MinMax("id")], "", overwrite=True),
    lambda spark, file: build_skipping(spark, "", [MinMax("id")], "store"),
    lambda spark, file: refresh_skipping(spark, file, ""),
    lambda spark, file: spark.range(1).write.format("pqext").mode("overwrite").save(""),
]


@pytest.mark.parametrize("call", EMPTY)
def test_empty_destination_is_not_the_working_folder(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[Any, str], Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = str(tmp_path / "ids.parquet")
    pqext.write_table(pa.table({"id": [1, 2]}), file)
    Path("in.ndjson").write_text("{}\n")
    with pytest.raises(Exception, match=r"is empty; pass a path or a URL|the path is missing: pass a path") as error:
        call(spark, file)
    assert isinstance(error.value, ValueError) or "ValueError: the path is missing" in str(error.value)
    assert sorted(os.listdir()) == ["ids.parquet", "in.ndjson"]


def test_path_objects_are_paths(spark: Any, tmp_path: Path) -> None:
    (text := tmp_path / "in.ndjson").write_text('{"x": 1}\n')
    for number, paths in enumerate((text, [text], [str(text)], (text,))):
        assert ingest_json(spark, paths, tmp_path / f"out{number}").rows == 1
        assert read(spark, tmp_path / f"out{number}").count() == read_json(spark, paths).count() == 1
    assert write(spark.range(3), tmp_path / "ids").rows == 3
    assert read(spark, [tmp_path / "ids"], where="id > 0").count() == 2
    assert query(spark, tmp_path / "ids", {"n": "count"}).first()["n"] == 3


def test_spark_reads_and_writes_at_the_same_path(spark: Any, tmp_path: Path) -> None:
    plain, spaced = tmp_path / "a%20b", tmp_path / "a b"
    spark.range(3).write.format("pqext").mode("append").save(str(plain))
    spark.range(5).write.format("pqext").mode("append").save(spaced.as_uri())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a b", "a%20b"]
    assert (read(spark, str(plain)).count(), read(spark, f"file:{tmp_path}/a%20b").count()) == (3, 5)
    for path in ("hdfs:/x", f"file://host{plain}"):
        with pytest.raises(Exception, match="UnsupportedError"):
            read(spark, path).count()
        with pytest.raises(Exception, match="UnsupportedError"):
            spark.range(1).write.format("pqext").mode("append").save(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a b", "a%20b"]


def test_relative_paths_refer_to_the_same_files_in_reads_and_saves(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert write(spark.range(4), "ids").rows == 4
    assert pqext.read_table(tmp_path / "ids").num_rows == 4
    assert read(spark, "ids").count() == read(spark, ["ids"], where="id >= 0").count() == 4
    assert query(spark, "ids", {"n": "count"}).first()["n"] == 4
    Path("in.ndjson").write_text("{}\n")
    assert read_json(spark, "in.ndjson").count() == 1
    with pytest.raises(Exception, match="the path is missing"):
        read(spark, "").count()
