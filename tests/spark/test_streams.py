"""Streams into folders and stores, each batch once, and streams of the files that come into them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import types as T
from remote.conftest import S3, SECRET, s3, server

import pqext
from pqext.core.base.errors import CorruptFileError
from pqext.core.io.sources import multipart
from pqext.dataset.writing import commit
from pqext.spark import clean
from pqext.spark.streams import parquet as stream_sink
from pqext.spark.streams.files import FileStream, StreamOptions
from pqext.spark.streams.parquet import ParquetStream, StreamSink

__all__ = ["s3", "server"]

SCHEMA = T.StructType([T.StructField("x", T.LongType())])
QUERY = "11111111-2222-3333-4444-555555555555"


class Files(FileStream):
    """A stream whose batches are names of files."""

    def partitions(self, start: Any, end: Any) -> list[str]:
        return [os.path.basename(one.file) for one in self.list_batch(start, end)[0]]

    def read(self, partition: Any) -> Iterator[Any]:
        yield partition


class Limit:
    max_files = 2


def touched(folder: Path, name: str, at: int) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("")
    os.utime(folder / name, (at, at))


@pytest.mark.spec("spark.stream.files", "spark.stream.order")
def test_new_files_are_ordered_by_time_and_late_files_are_included(tmp_path: Path) -> None:
    def stream() -> Files:
        return Files([str(tmp_path)], None, StreamOptions())

    for name, at in (("b", 30), ("a", 30), ("c", 10), ("_hidden", 1)):
        touched(tmp_path, name, at)
    start = stream().initialOffset()
    first = json.loads(json.dumps(stream().latestOffset(start, Limit())))
    touched(tmp_path, "old", 1)  # with a time before all that was read, while the batch is planned
    assert stream().partitions(start, first) == ["c", "a"]
    second = stream().latestOffset(first, None)
    assert stream().partitions(first, second) == ["old", "b"]
    assert stream().latestOffset(second, None) == second
    assert stream().partitions(second, second) == []
    assert sorted(stream().partitions(start, second)) == ["a", "b", "c", "old"]
    (tmp_path / "a").unlink()  # offsets hold no file for longer than it is there
    touched(tmp_path, "d", 50)
    third = stream().latestOffset(second, None)
    assert (third["files"], stream().partitions(second, third)) == (4, ["d"])


@pytest.mark.spec("spark.stream.files")
def test_available_now_query_ends_with_the_existing_files(tmp_path: Path) -> None:
    touched(tmp_path, "a", 1)
    stream = Files([str(tmp_path)], None, StreamOptions())
    stream.prepareForTriggerAvailableNow()
    touched(tmp_path, "b", 2)
    end = stream.latestOffset(stream.initialOffset(), None)
    assert stream.partitions(stream.initialOffset(), end) == ["a"]
    assert stream.latestOffset(end, None) == end


@pytest.mark.spec("spark.stream.files")
def test_file_being_moved_by_a_save_is_counted_once(tmp_path: Path) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    sink_folder = commit.begin(tmp_path, "a" * 32)
    pqext.write_table(pa.table({"x": [1]}), str(sink_folder / "part.parquet"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit, "_finish", killed)
        with pytest.raises(KeyboardInterrupt):
            commit.commit(tmp_path, "a" * 32, ["part.parquet"], overwrite=False)
    stream = Files([str(tmp_path)], None, StreamOptions())
    end = stream.latestOffset(stream.initialOffset(), None)
    assert end["files"] == 1
    clean(str(tmp_path))
    assert stream.latestOffset(end, None) == end


def test_missing_files_and_invalid_offsets_are_reported(tmp_path: Path) -> None:
    touched(tmp_path, "a", 1)
    stream = Files([str(tmp_path)], None, StreamOptions())
    start, end = stream.initialOffset(), stream.latestOffset(stream.initialOffset(), None)
    (tmp_path / "a").unlink()
    with pytest.raises(FileNotFoundError, match="1 of 1 files were removed after this batch was planned"):
        stream.partitions(start, end)
    assert Files([str(tmp_path)], None, StreamOptions(ignore_missing_files=True)).partitions(start, end) == []
    for wrong in ({}, {"version": 1, "files": 2, "seen": end["seen"]}, {"version": 1, "files": 1, "seen": "?"}):
        with pytest.raises(ValueError, match="the checkpoint contains an offset of another source"):
            stream.latestOffset(wrong, None)
    assert Files([str(tmp_path / "later")], None, StreamOptions()).latestOffset(start, None) == start
    with pytest.raises(ValueError, match="option maxFilesPerTrigger must be a positive number, not '0'"):
        ParquetStream({"path": str(tmp_path), "maxFilesPerTrigger": "0"}, SCHEMA)
    with pytest.raises(ValueError, match="streams do not support option 'schema'"):
        ParquetStream({"path": str(tmp_path), "schema": "union"}, SCHEMA)


@pytest.fixture(params=["folder", "store"])
def target(request: Any, tmp_path: Path) -> dict[str, str]:
    """Options of a sink into a folder, and into a store."""
    if request.param == "folder":
        return {"path": str(tmp_path / "out")}
    found: S3 = request.getfixturevalue("s3")
    return {"path": "s3://bucket/out", "storage_options": json.dumps(found.options)}


def rows(options: dict[str, str]) -> list[int]:
    pqext.clear_cache()
    storage = json.loads(options.get("storage_options", "null"))
    try:
        return sorted(pqext.read_table(options["path"], storage_options=storage)["x"].to_pylist())
    except FileNotFoundError:
        return []


def run(options: dict[str, str], number: int, values: list[int], job: str, overwrite: bool = False) -> None:
    """A batch, as Spark runs it: one writer for the tasks, and another one for the commit."""
    batch = pa.record_batch({"x": pa.array(values, "int64")})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_sink, "_identify_job", lambda: (QUERY, job * 32))
        message = StreamSink(options, SCHEMA, overwrite).write(iter([batch]))
    StreamSink(options, SCHEMA, overwrite).commit([message], number)


@pytest.mark.spec("spark.stream.once")
def test_repeated_batch_adds_no_rows(target: dict[str, str]) -> None:
    run(target, 0, [1, 2], "a")
    run(target, 0, [1, 2], "b")
    assert rows(target) == [1, 2]
    run(target, 1, [3], "c")
    run(target, 2, [], "d")
    run(target, 1, [3], "e")
    assert rows(target) == [1, 2, 3]
    run({**target, "checkpointLocation": "anywhere"}, 3, [9], "f", overwrite=True)  # output mode complete
    run(target, 3, [9], "0", overwrite=True)
    assert rows(target) == [9]


@pytest.mark.spec("spark.stream.once")
def test_one_of_two_concurrent_batch_runs_is_committed(target: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    commits = StreamSink.commit
    over = []

    def overtaken(self: StreamSink, messages: Any, number: int) -> None:
        if not over:
            over.append(True)
            run(target, 0, [1], "b")
        commits(self, messages, number)

    monkeypatch.setattr(StreamSink, "commit", overtaken)
    run(target, 0, [1], "a")
    assert rows(target) == [1]


@pytest.mark.spec("spark.stream.once")
def test_manifest_of_another_run_voids_that_of_a_store(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"path": "s3://bucket/out", "storage_options": json.dumps(s3.options)}
    claim = multipart.Bucket.claim
    over = []

    def overtaken(self: Any, key: str, data: bytes) -> str:
        if not over:
            over.append(True)
            run(options, 0, [1], "b")
        return claim(self, key, data)

    monkeypatch.setattr(multipart.Bucket, "claim", overtaken)
    run(options, 0, [1], "a")
    assert rows(options) == [1]
    assert [*multipart.Bucket("s3://bucket", s3.options).iter_pending_files("")] == []


def test_remains_of_a_dead_run_are_cleaned(target: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    storage = json.loads(target.get("storage_options", "null"))

    def cleaned_files() -> tuple[str, ...]:
        return clean(target["path"], older_than=timedelta(-1), storage_options=storage).removed

    run(target, 0, [1], "b")
    monkeypatch.setattr(stream_sink, "_identify_job", lambda: (QUERY, "a" * 32))
    sink = StreamSink(target, SCHEMA, False)
    sink.write(iter([pa.record_batch({"x": [2]})]))
    assert rows(target) == [1]
    assert cleaned_files() == ("a" * 32,)
    sink.abort([sink.write(iter([pa.record_batch({"x": [2]})])), None], 1)
    assert cleaned_files() == ()


def test_invalid_stream_options_are_rejected(tmp_path: Path) -> None:
    for option in ("partition_overwrite", "summary_path"):
        with pytest.raises(ValueError, match=f"option {option} applies to saves"):
            StreamSink({"path": str(tmp_path), option: "static"}, SCHEMA, False)
    options = {"path": str(tmp_path)}
    run(options, 0, [1], "a")
    with pytest.raises(ValueError, match="nothing was written"):
        StreamSink(options, T.StructType([T.StructField("y", T.LongType())]), False).commit(
            [stream_sink.WrittenBatch("another", "b" * 32, (1,))], 0  # type: ignore[arg-type]
        )
    for damaged in ("{", '{"batch": 1e999}', '{"batch": 1.5}', '{"batch": "1"}'):
        (tmp_path / f"_pqext_streamed-{QUERY}.json").write_text(damaged)
        with pytest.raises(CorruptFileError, match="the record of a stream is corrupt"):
            run(options, 1, [2], "c")


@pytest.mark.slow
def test_streams_copy_json_to_a_folder_and_then_to_a_store(spark: Any, s3: S3, tmp_path: Path) -> None:
    source, folder = tmp_path / "in", tmp_path / "events"
    source.mkdir()

    def add(name: str, numbers: range) -> None:
        (tmp_path / name).write_text("".join(json.dumps({"n": n}) + "\n" for n in numbers))
        (tmp_path / name).rename(source / name)

    def ingest() -> None:
        lines = spark.readStream.format("pqext_json").option("maxFilesPerTrigger", 1).load(str(source))
        frame = lines.selectExpr("variant_get(value, '$.n', 'int') AS n", "value AS event")
        writer = frame.writeStream.format("pqext").option("shredding", '{"event": "n INT"}')
        query = writer.option("checkpointLocation", str(tmp_path / "one")).trigger(availableNow=True).start(str(folder))
        query.awaitTermination()
        assert query.exception() is None

    def stored_numbers() -> list[int]:
        return sorted(pqext.read_table(str(folder), columns=["n"])["n"].to_pylist())

    add("a.json", range(5))
    add("b.json", range(5, 10))
    ingest()
    assert stored_numbers() == [*range(10)]
    commits = sorted((tmp_path / "one" / "commits").glob("[0-9]*"))
    assert [path.name for path in commits] == ["0", "1"]
    commits[1].unlink()  # as if Spark had died before it noted that the batch was committed
    (tmp_path / "one" / "commits" / ".1.crc").unlink(missing_ok=True)
    add("c.json", range(10, 12))
    ingest()
    assert stored_numbers() == [*range(12)]
    given = json.dumps(s3.options)
    files = spark.readStream.format("pqext").option("columns", "n").load(str(folder))
    query = (
        files.writeStream.format("pqext").option("storage_options", given)
        .option("checkpointLocation", str(tmp_path / "two")).trigger(availableNow=True).start("s3a://bucket/copy")
    )
    query.awaitTermination()
    copied = pqext.read_table("s3://bucket/copy", storage_options=s3.options)
    assert sorted(copied["n"].to_pylist()) == [*range(12)]
    assert SECRET not in query._jsq.explainInternal(True)
    with pytest.raises(PySparkException, match="unknown option 'maxfilespertriggers'"):
        spark.readStream.format("pqext").option("maxFilesPerTriggers", 1).load(str(folder))
