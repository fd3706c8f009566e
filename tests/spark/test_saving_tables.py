"""Save data frames to Delta and Iceberg tables: one commit per save, none for a failed one, and equal rows."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import cloudpickle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import types as T
from tables.delta_logs import delete_rows
from tables.iceberg_tables import new_catalog

import pqext
from pqext import UnsupportedError, col, tables
from pqext.core.base.errors import SchemaMismatchError
from pqext.spark import shred_variant, write
from pqext.spark.sources.data_sources import PqextSource
from pqext.spark.writing.sink import SaveWriter
from pqext.spark.writing.table_sink import TableSink

SCHEMA = T.StructType([T.StructField("k", T.StringType()), T.StructField("n", T.LongType())])


def files(folder: Path) -> set[str]:
    """The files of a table outside its log, hidden ones included."""
    return {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and "_delta_log" not in path.parts
    }


def rows(folder: Path) -> list[tuple[Any, ...]]:
    """The rows of a table as deltalake reads them."""
    found = pa.table(QueryBuilder().register("t", DeltaTable(str(folder))).execute("select * from t")).to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def passed_on(value: Any) -> Any:
    """What another process receives."""
    return cloudpickle.loads(cloudpickle.dumps(value))


def begin(folder: Path, overwrite: bool = False, **options: str) -> TableSink:
    return TableSink({"path": f"delta:{folder}", **options}, SCHEMA, overwrite)


def write_rows(sink: TableSink, data: dict[str, list[Any]], attempt: int = 0) -> Any:
    """What a task does: the attempt numbers of all tasks differ."""
    batch = pa.record_batch({"k": pa.array(data["k"], pa.string()), "n": pa.array(data["n"], pa.int64())})
    context = SimpleNamespace(
        partitionId=lambda: 0, taskAttemptId=lambda: attempt, attemptNumber=lambda: 0, getLocalProperty=lambda _: None
    )
    with patch.object(TaskContext, "get", lambda: context):
        return passed_on(passed_on(sink).write(iter([batch])))


def save(folder: Path, *tasks: dict[str, list[Any]], overwrite: bool = False, **options: str) -> None:
    """What Spark does with a data source, without Spark: each call is in another process."""
    sink = begin(folder, overwrite, **options)
    messages = [write_rows(sink, task, attempt) for attempt, task in enumerate(tasks)]
    passed_on(sink).commit(messages)


@pytest.mark.spec("tables.spark.commit")
def test_tasks_write_files_and_the_driver_commits_them_once(tmp_path: Path) -> None:
    save(tmp_path, {"k": ["a", "b"], "n": [1, 2]}, {"k": ["a"], "n": [3]}, {"k": [], "n": []}, partition_by="k")
    table = DeltaTable(str(tmp_path))
    assert (table.version(), table.metadata().partition_columns) == (0, ["k"])
    assert rows(tmp_path) == [("a", 1), ("a", 3), ("b", 2)]
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert sorted((one["partition.k"], one["min.n"], one["max.n"], one["num_records"]) for one in actions) == [
        ("a", 1, 1, 1), ("a", 3, 3, 1), ("b", 2, 2, 1),
    ]
    assert {one["path"]: one["size_bytes"] for one in actions} == {
        name: (tmp_path / name).stat().st_size for name in files(tmp_path)
    }


def test_empty_save_creates_the_table(tmp_path: Path) -> None:
    save(tmp_path, {"k": [], "n": []})
    assert rows(tmp_path) == []
    save(tmp_path, {"k": [], "n": []})
    assert DeltaTable(str(tmp_path)).version() == 0


def test_overwrite_replaces_all_rows_or_the_written_partitions(tmp_path: Path) -> None:
    save(tmp_path, {"k": ["a", "b", None], "n": [1, 2, 3]}, partition_by="k")
    dynamic = {"partition_by": "k", "partitionOverwriteMode": "DYNAMIC"}
    save(tmp_path, {"k": [None, "c"], "n": [4, 5]}, overwrite=True, **dynamic)
    assert rows(tmp_path) == [("a", 1), ("b", 2), ("c", 5), (None, 4)]
    save(tmp_path, {"k": [], "n": []}, overwrite=True, **dynamic)
    assert len(rows(tmp_path)) == 4
    save(tmp_path, {"k": ["c"], "n": [7]}, overwrite=True, partition_overwrite="dynamic")  # partitioned as the table
    assert rows(tmp_path) == [("a", 1), ("b", 2), ("c", 7), (None, 4)]
    save(tmp_path, {"k": ["z"], "n": [6]}, overwrite=True)
    assert rows(tmp_path) == [("z", 6)]
    assert DeltaTable(str(tmp_path)).version() == 3
    for number in range(2):
        save(tmp_path / "u", {"k": ["a"], "n": [number]}, overwrite=True, partition_overwrite="dynamic")
        assert rows(tmp_path / "u") == [("a", number)]  # a table without partitions


def test_session_in_dynamic_mode_replaces_the_written_partitions(tmp_path: Path, monkeypatch: Any) -> None:
    save(tmp_path, {"k": ["a", "b"], "n": [1, 2]}, partition_by="k")
    settings = "pqext.spark.writing.table_sink.save_settings"
    monkeypatch.setattr(settings, lambda *_: {"partition_overwrite": "dynamic"})
    save(tmp_path, {"k": ["b"], "n": [9]}, overwrite=True)
    assert rows(tmp_path) == [("a", 1), ("b", 9)]


@pytest.mark.spec("tables.spark.abort")
def test_aborted_job_leaves_no_files_and_no_version(tmp_path: Path) -> None:
    save(tmp_path, {"k": ["a"], "n": [1]})
    before = files(tmp_path)
    sink = begin(tmp_path)
    message = write_rows(sink, {"k": ["b"], "n": [2]})
    write_rows(sink, {"k": ["b"], "n": [3]}, 1)  # by a task whose result Spark does not have
    late = passed_on(sink)
    passed_on(sink).abort([message, None])
    assert files(tmp_path) == before
    with pytest.raises(RuntimeError, match="was aborted"):
        write_rows(late, {"k": ["c"], "n": [4]})
    assert files(tmp_path) == before
    assert DeltaTable(str(tmp_path)).version() == 0


@pytest.mark.parametrize("is_conflict", [False, True])
def test_pickled_overwrite_lists_the_planned_files_at_its_commit(tmp_path: Path, is_conflict: bool) -> None:
    def plan_bytes() -> int:
        return len(cloudpickle.dumps(begin(tmp_path, True, partition_by="k", partition_overwrite="dynamic").plan))

    save(tmp_path, {"k": ["a"], "n": [1]}, partition_by="k")
    size = plan_bytes()
    save(tmp_path, {"k": [f"b{number}" for number in range(50)], "n": [2] * 50})
    assert plan_bytes() == size
    sink = begin(tmp_path, True, partition_by="k", partition_overwrite="dynamic")
    message = write_rows(sink, {"k": ["a"], "n": [9]})
    save(tmp_path, {"k": ["a" if is_conflict else "c"], "n": [3]})
    before = rows(tmp_path)
    if is_conflict:
        with pytest.raises(tables.TableConflictError, match="another writer has added"):
            passed_on(sink).commit([message])
        assert rows(tmp_path) == before
    else:
        passed_on(sink).commit([message])
        assert rows(tmp_path) == sorted([*({*before} - {("a", 1)}), ("a", 9)])


def test_files_of_a_commit_with_unknown_outcome_are_retained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, {"k": ["a"], "n": [1]})
    sink = begin(tmp_path)
    message = write_rows(sink, {"k": ["b"], "n": [2]})
    late = []

    def fail(*arguments: Any, **keywords: Any) -> None:
        late.append((arguments, keywords))
        raise OSError("Generic S3 error: operation timed out")

    with monkeypatch.context() as patch:
        patch.setattr("pqext.tables.delta.writer.is_remote", lambda _: True)
        patch.setattr(DeltaTable, "create_write_transaction", fail)
        with pytest.raises(tables.CommitStateUnknownError):
            passed_on(sink).commit([message])
        passed_on(sink).abort([message])
    ((arguments, keywords),) = late
    DeltaTable.create_write_transaction(*arguments, **keywords)  # the request arrives
    assert rows(tmp_path) == [("a", 1), ("b", 2)]


@pytest.mark.spec("tables.spark.abort")
@pytest.mark.parametrize("exists", [True, False])
def test_commit_that_cannot_open_the_table_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    folder = tmp_path / "a" / "b"
    if exists:
        save(folder, {"k": ["a"], "n": [1]}, partition_by="k")
    before = {*tmp_path.rglob("*")}
    sink = begin(folder, partition_by="k")
    message = write_rows(sink, {"k": ["a", "b"], "n": [2, 3]})
    with monkeypatch.context() as patch:
        patch.setattr(TableSink, "_open", fail_to_open)
        with pytest.raises(OSError, match="unavailable"):
            passed_on(sink).commit([message])
        assert not any(sink.folder.job in path.name for path in folder.rglob("*.parquet"))  # as in a store
        passed_on(sink).abort([message])
    assert {*tmp_path.rglob("*")} == before


@pytest.mark.spec("tables.spark.abort")
@pytest.mark.parametrize("results", [[True, False], [True]])  # a task has failed, or the commit was not called
def test_abort_needs_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: list[bool]) -> None:
    sink = begin(tmp_path / "t", partition_by="k")
    message = write_rows(sink, {"k": ["a", "b"], "n": [2, 3]})
    write_rows(sink, {"k": ["b"], "n": [3]}, 1)  # by a task whose result Spark does not have
    monkeypatch.setattr(TableSink, "_open", fail_to_open)
    passed_on(sink).abort([message if is_known else None for is_known in results])
    assert [*tmp_path.iterdir()] == []


def fail_to_open(sink: TableSink) -> Any:
    raise OSError("the store is unavailable")


def test_folders_with_other_files_outlive_an_abort(tmp_path: Path) -> None:
    sink = begin(tmp_path / "t")
    save(tmp_path / "t", {"k": ["a"], "n": [1]})
    passed_on(sink).abort([None])
    assert rows(tmp_path / "t") == [("a", 1)]


@pytest.mark.spec("tables.spark.abort")
def test_task_that_writes_while_the_job_is_aborted_deletes_its_files(tmp_path: Path) -> None:
    sink = begin(tmp_path)

    def batches() -> Any:
        yield pa.record_batch({"k": ["a"], "n": [1]})
        passed_on(sink).abort([None])

    with pytest.raises(RuntimeError, match="was aborted"):
        sink.write(batches())
    assert files(tmp_path) == set()


def test_failing_task_deletes_its_files(tmp_path: Path) -> None:
    sink = begin(tmp_path, target_file_bytes="1")

    def batches() -> Any:
        yield pa.record_batch({"k": ["a"], "n": [1]})
        yield pa.record_batch({"k": ["a"], "n": [2]})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sink.write(batches())
    sink.abort([None])
    assert files(tmp_path) == set()


@pytest.mark.spec("tables.spark.attempts")
@pytest.mark.parametrize("is_retry", [True, False])
def test_lost_attempts_are_not_committed(tmp_path: Path, is_retry: bool) -> None:
    save(tmp_path, {"k": ["z"], "n": [0]})
    sink = begin(tmp_path)
    write_rows(sink, {"k": ["a"], "n": [1]})
    message = replace(write_rows(sink, {"k": ["a"], "n": [1]}, 1), is_retry=is_retry)
    passed_on(sink).commit([message])
    assert rows(tmp_path) == [("a", 1), ("z", 0)]
    lost = [name for name in files(tmp_path) if sink.folder.job in name and name != message.files[0].file.name]
    assert len(lost) == (0 if is_retry else 1)  # a speculative attempt may be lost without a trace
    assert tables.describe(f"delta:{tmp_path}", older_than=timedelta(0)).leftovers == tuple(lost)


def test_table_that_changes_during_the_job_is_a_conflict(tmp_path: Path) -> None:
    save(tmp_path, {"k": ["a"], "n": [1]})
    sink = begin(tmp_path)
    message = write_rows(sink, {"k": ["b"], "n": [2]}, 7)
    DeltaTable(str(tmp_path)).alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(tables.TableConflictError, match="changed the schema or properties"):
        passed_on(sink).commit([message])
    sink.abort([message])
    assert [name for name in files(tmp_path) if sink.folder.job in name] == []
    new = begin(tmp_path / "new")
    message = write_rows(new, {"k": ["b"], "n": [2]})
    save(tmp_path / "new", {"k": ["a"], "n": [1]})
    with pytest.raises(tables.TableConflictError, match="created the table"):
        passed_on(new).commit([message])
    assert rows(tmp_path / "new") == [("a", 1)]


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_rows_appended_while_they_are_replaced_are_a_conflict(tmp_path: Path, mode: str) -> None:
    save(tmp_path, {"k": ["a", "b"], "n": [1, 2]}, partition_by="k")
    sink = begin(tmp_path, overwrite=True, partition_by="k", partition_overwrite=mode)
    message = write_rows(sink, {"k": ["a"], "n": [3]}, 7)
    save(tmp_path, {"k": ["a"], "n": [4]})
    with pytest.raises(tables.TableConflictError, match="has added k=a/part-00000"):
        passed_on(sink).commit([message])
    assert rows(tmp_path) == [("a", 1), ("a", 4), ("b", 2)]


def test_tables_are_checked_before_tasks_start(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "p", pa.table({"k": ["a"], "n": [1]}), partition_by=["k"])
    with pytest.raises(SchemaMismatchError, match="partitioned by k, not by n"):
        begin(tmp_path / "p", partition_by="n")
    with pytest.raises(UnsupportedError, match="schema of a table"):
        begin(tmp_path / "p", mergeSchema="true")
    with pytest.raises(FileExistsError, match="exists; pass mode="):
        begin(tmp_path / "p", requires_empty="true")
    write_deltalake(tmp_path / "q", pa.table({"k": ["a"]}))
    with pytest.raises(SchemaMismatchError, match="has no column 'n'"):
        begin(tmp_path / "q")
    settings = {"delta.enableDeletionVectors": "true"}
    write_deltalake(tmp_path / "d", pa.table({"k": ["a", "b"], "n": [1, 2]}), configuration=settings)
    (path,) = files(tmp_path / "d")
    delete_rows(str(tmp_path / "d"), path, [0])
    with pytest.raises(UnsupportedError, match="deletion vector"):
        begin(tmp_path / "d", overwrite=True)
    months = T.StructType([T.StructField("i", T.YearMonthIntervalType())])
    with pytest.raises(UnsupportedError, match="cast it to another type"):
        TableSink({"path": f"delta:{tmp_path}/m"}, months, False)
    with pytest.raises(UnsupportedError, match="foreachBatch"):
        PqextSource({"path": f"delta:{tmp_path}/s"}).streamWriter(SCHEMA, False)
    for options, message in (({"table": "t"}, "must be delta:PATH"), ({"table": "delta:t", "path": "t"}, "not both")):
        with pytest.raises(ValueError, match=message):
            PqextSource(options).writer(SCHEMA, False)
    with pytest.raises(ValueError, match="is for tables"):
        SaveWriter({"path": str(tmp_path), "allow_undeclared_shredding": "true"}, SCHEMA)


@pytest.mark.spec("tables.spark.commit")
def test_shredded_frames_are_saved_and_pruned(spark: Any, tmp_path: Path) -> None:
    frame = spark.range(40, numPartitions=4).selectExpr(
        "id", "cast(id % 2 as int) p", "parse_json(concat('{\"n\":', id, '}')) v", "timestamp_seconds(id) at"
    )
    name = f"delta:{tmp_path}/t"
    with pytest.raises(PySparkException, match="allow_undeclared_shredding"):
        shred_variant(frame, {"v": "n BIGINT"}).write.format("pqext").option("table", name).mode("append").save()
    shredded = shred_variant(frame, {"v": "n BIGINT"}).write.format("pqext").option("table", name).mode("append")
    shredded.options(allow_undeclared_shredding=True, partition_by="p").save()
    assert sorted(pqext.scan(name).to_table().select(["id", "p"]).to_pylist(), key=lambda row: row["id"]) == [
        {"id": number, "p": number % 2} for number in range(40)
    ]
    (first, *_) = (tmp_path / "t").rglob("*.parquet")
    assert "typed_value" in str(pq.read_schema(first).field("v").type)
    scan = pqext.scan(name).filter(col("v").variant("$.n", "int64") == 33)
    assert [row["id"] for row in scan.to_table().to_pylist()] == [33]
    assert "6 files" in scan.explain()
    saved = write(frame.where("id < 4"), name, "overwrite", partition_by="p")
    assert (saved.path, saved.rows) == (name, 4)
    source = spark.read.format("pqext").option("table", name).load()
    assert sorted((row.id, str(row.v), row.at) for row in source.collect()) == sorted(
        (row.id, str(row.v), row.at) for row in frame.where("id < 4").collect()
    )
    assert write(frame, name, "ignore").files == ()
    with pytest.raises(FileExistsError, match="exists"):
        write(frame, name)


def test_failing_task_of_spark_leaves_the_table_unchanged(spark: Any, tmp_path: Path) -> None:
    save(tmp_path, {"k": ["a"], "n": [1]})
    before = files(tmp_path)

    def fail(batches: Any) -> Any:
        for batch in batches:
            yield batch
            if 3 in batch["n"].to_pylist():
                raise ZeroDivisionError

    frame = spark.range(4, numPartitions=4).selectExpr("'b' k", "id n").mapInArrow(fail, SCHEMA)
    with pytest.raises(PySparkException, match="ZeroDivisionError"):
        write(frame, f"delta:{tmp_path}", "append")
    assert files(tmp_path) == before
    assert DeltaTable(str(tmp_path)).version() == 0


@pytest.mark.spec("tables.spark.commit")
def test_concurrent_appends_all_succeed(spark: Any, tmp_path: Path) -> None:
    save(tmp_path, {"k": [], "n": []})
    errors: list[BaseException] = []

    def append(start: int) -> None:
        try:
            for first in range(start, start + 100, 50):
                frame = spark.range(first, first + 50, numPartitions=2).selectExpr("'x' k", "id n")
                write(frame, f"delta:{tmp_path}", "append")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=append, args=(start,)) for start in (0, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(number for _, number in rows(tmp_path)) == list(range(200))
    assert DeltaTable(str(tmp_path)).version() == 4


def test_partitions_of_an_iceberg_table_are_replaced(tmp_path: Path) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    table = new_catalog(tmp_path).create_table("db.t", pa.schema([("k", pa.string()), ("n", pa.int64())]))
    with table.update_spec() as update:
        update.add_identity("k")

    def save_rows(data: dict[str, list[Any]], overwrite: bool, **options: str) -> None:
        options |= {"path": "iceberg:local.db.t", "storage_options": json.dumps(catalog)}
        sink = TableSink(options, SCHEMA, overwrite)
        message = write_rows(sink, data)
        passed_on(sink).commit([message])

    save_rows({"k": ["a", "", None], "n": [1, 2, 3]}, False)
    save_rows({"k": ["", None, "b"], "n": [4, 5, 6]}, True, partition_overwrite="dynamic")
    expected = [("", 4), ("a", 1), ("b", 6), (None, 5)]
    for found in (table.refresh().scan().to_arrow(), pqext.scan(table).to_table()):
        assert sorted(((row["k"], row["n"]) for row in found.to_pylist()), key=repr) == expected


def test_iceberg_tables_are_saved(spark: Any, tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("s", pa.struct([("x", pa.string())]))])
    table = catalog.create_table("db.t", schema)
    with table.update_spec() as update:
        update.add_identity("day")
    frame = spark.range(6, numPartitions=3).selectExpr(
        "id", "date_add(date'2026-11-30', cast(id % 2 as int)) day", "named_struct('x', string(id)) s"
    )
    options = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    saved = write(frame, "iceberg:local.db.t", "append", storage_options=options)
    assert saved.rows == 6
    writer = frame.where("id = 1").write.format("pqext").option("table", "iceberg:local.db.t").mode("append")
    writer.option("storage_options", json.dumps(options)).save()
    table.refresh()
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == [0, 1, 1, 2, 3, 4, 5]
    assert len(table.snapshots()) == 2
    assert {row["id"] for row in table.scan("day = '2026-12-01'").to_arrow().to_pylist()} == {1, 3, 5}
    write(frame.where("id > 3"), "iceberg:local.db.t", "overwrite", storage_options=options)
    table.refresh()
    assert sorted(row["s"]["x"] for row in table.scan().to_arrow().to_pylist()) == ["4", "5"]
    with pytest.raises(PySparkException, match="SchemaMismatchError"):
        write(frame.drop("s"), "iceberg:local.db.t", "append", storage_options=options)
