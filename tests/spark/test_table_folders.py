"""Folders of Delta, Iceberg and Hudi tables in Spark: nothing is read of them or written to them unasked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from remote.conftest import S3, s3, server

import pqext
from pqext.core.base.errors import UnsupportedError
from pqext.spark import explain_read, ingest_json, query, read, write

__all__ = ["s3", "server"]

deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed (extra 'delta')")


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    """A table of each format: of Delta by its own library, with a file that it has removed."""
    folders = {name: tmp_path / "lake" / name for name in ("Delta", "Iceberg", "Hudi")}
    deltalake.write_deltalake(folders["Delta"], pa.table({"id": [1, 2]}))
    deltalake.write_deltalake(folders["Delta"], pa.table({"id": [3]}), mode="overwrite")
    for name, marker in (("Iceberg", "metadata/v1.metadata.json"), ("Hudi", ".hoodie/hoodie.properties")):
        (folders[name] / marker).parent.mkdir(parents=True)
        (folders[name] / marker).write_text("{}")
        pq.write_table(pa.table({"id": [1, 2]}), folders[name] / "a.parquet")
    return folders


def content(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*") if path.is_file()
    }


def stream(spark: Any, source: Path, target: Path) -> None:
    frame = spark.readStream.format("text").load(str(source)).selectExpr("cast(value as bigint) id")
    query = frame.writeStream.format("pqext").option("checkpointLocation", str(source) + "-checkpoint")
    query.trigger(availableNow=True).start(str(target)).awaitTermination(60)


@pytest.mark.spec("spark.tables.refused")
def test_readers_reject_a_table_folder_unless_all_files_are_requested(
    spark: Any, tables: dict[str, Path]
) -> None:
    readers: list[Callable[[str], Any]] = [
        lambda path: read(spark, path),
        lambda path: read(spark, path, engine="auto"),
        lambda path: query(spark, path, {"rows": "count"}),
        lambda path: explain_read(path),
        lambda path: spark.read.format("pqext").load(path),
        lambda path: spark.readStream.format("pqext").load(path),
    ]
    for name, folder in tables.items():
        for reader in readers if name == "Delta" else readers[3:4]:
            with pytest.raises(Exception, match=f"belongs to an? {name} table.*ignore_table_format=True"):
                reader(str(folder))
    delta = str(tables["Delta"])
    found = deltalake.DeltaTable(delta)
    assert [row.id for row in read(spark, found.file_uris()).collect()] == found.to_pyarrow_table()["id"].to_pylist()
    theirs = sorted(row.id for row in spark.read.parquet(delta).collect())
    assert sorted(row.id for row in read(spark, delta, ignore_table_format=True).collect()) == theirs == [1, 2, 3]
    option = spark.read.format("pqext").option("ignore_table_format", "true")
    assert option.load(delta).count() == 3


@pytest.mark.spec("spark.tables.refused")
def test_writers_reject_a_table_folder_and_leave_it_unchanged(
    spark: Any, tables: dict[str, Path], tmp_path: Path
) -> None:
    frame = spark.range(3)
    (tmp_path / "in.json").write_text('{"id": 1}\n')
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "a.txt").write_text("1\n")
    before = content(tmp_path / "lake")
    delta = tables["Delta"]
    writers: list[Callable[[Path], Any]] = [
        *(lambda path, mode=mode: write(frame, str(path), mode) for mode in ("error", "ignore", "append", "overwrite")),
        lambda path: frame.write.format("pqext").mode("overwrite").save(str(path)),
        lambda path: ingest_json(spark, str(tmp_path / "in.json"), str(path)),
        lambda path: ingest_json(spark, str(tmp_path / "in.json"), str(path), mode="overwrite"),
    ]
    for name, folder in tables.items():
        for writer in writers if name == "Delta" else writers[3:4]:
            with pytest.raises(Exception, match=f"belongs to an? {name} table.*save to another folder"):
                writer(folder)
    for folder in (delta / "day=1", delta.parent):
        with pytest.raises(Exception, match="belongs to a Delta table"):
            write(frame, str(folder), "overwrite")
    with pytest.raises(Exception, match="belongs to a Delta table"):
        stream(spark, tmp_path / "lines", delta)
    assert content(tmp_path / "lake") == before
    assert deltalake.DeltaTable(delta).to_pyarrow_table()["id"].to_pylist() == [3]


@pytest.mark.spec("spark.tables.refused")
def test_table_in_a_store_is_rejected(s3: S3) -> None:
    from pqext.dataset.writing.store_target import StoreTarget
    from pqext.spark.writing.sink import append_check

    bucket = StoreTarget("s3://bucket/t", s3.options)._bucket
    pqext.write_table(pa.table({"id": [1]}), "s3://bucket/t/day=1/a.parquet", storage_options=s3.options)
    bucket.put("t/_delta_log/00000000000000000000.json", b"{}")
    keys = bucket.keys("t/")
    for url in ("s3://bucket/t", "s3://bucket/t/day=1"):
        for overwrite in (False, True):
            with pytest.raises(UnsupportedError, match=r"Delta table.*save to another folder"):
                StoreTarget(url, s3.options).check(overwrite, append_check(lambda: b""))
        with pytest.raises(UnsupportedError, match="Delta table"):
            pqext.scan(url, storage_options=s3.options)
    assert bucket.keys("t/") == keys


@pytest.mark.spec("spark.tables.others")
def test_guard_ignores_folders_of_orc_csv_and_json(spark: Any, tmp_path: Path) -> None:
    from pqext.spark import read_json

    frame = spark.range(3)
    for format in ("orc", "csv", "json"):
        path = str(tmp_path / format)
        frame.write.format(format).save(path)
        (tmp_path / format / "metadata").mkdir()
        text = json.dumps({"id": 7})
        (tmp_path / format / "metadata" / "a.metadata.json").write_text(text)
        before = content(tmp_path / format)
        assert spark.read.format(format).schema("id BIGINT").load(path).count() == 3
        if format == "json":
            assert read_json(spark, path).count() == 4
            assert ingest_json(spark, path, str(tmp_path / "out")).rows == 4
            streamed = spark.readStream.format("pqext_json").load(path)
            streamed.writeStream.format("memory").queryName("guarded").trigger(availableNow=True).option(
                "checkpointLocation", str(tmp_path / "checkpoint")
            ).start().awaitTermination(60)
            assert spark.table("guarded").count() == 4
        assert content(tmp_path / format) == before
    write(frame, str(tmp_path / "plain" / "metadata"))
    write(frame, str(tmp_path / "plain" / "metadata"), "append")
    assert read(spark, str(tmp_path / "plain")).count() == 6
