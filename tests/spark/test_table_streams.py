"""Stream the rows that are added to tables: each once, from offsets alone, and errors for changed rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import StreamingQueryException
from pyspark.sql import types as T
from tables.delta_logs import adds, delete_rows
from tables.iceberg_tables import commit, data_paths, new_catalog, position_deletes

import pqext
from pqext import tables
from pqext.core.base.errors import SchemaMismatchError
from pqext.dataset.table.partitions import Partitions
from pqext.dataset.table_snapshot import TableSnapshot
from pqext.spark.reading.request import Query
from pqext.spark.sources.data_sources import PqextSource
from pqext.spark.streams.tables import TableStream
from pqext.tables.delta.history import DeltaHistory
from pqext.tables.iceberg.deletes import DeletedRows
from pqext.tables.iceberg.file_view import IcebergFileView
from pqext.tables.table_view import FileView

SCHEMA = T.StructType([T.StructField("id", T.LongType())])


def append(folder: Path, *ids: int) -> None:
    write_deltalake(folder, pa.table({"id": pa.array(ids, pa.int64())}), mode="append")


def stream(folder: Path | str, **options: str) -> TableStream:
    table = folder if isinstance(folder, str) else f"delta:{folder}"
    return TableStream({"path": table, **options}, SCHEMA)


def ids(source: TableStream, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    """The rows of a batch, read by other processes."""
    slices = source.partitions(start, end)
    batches = [batch for each in slices for batch in source.read(cloudpickle.loads(cloudpickle.dumps(each)))]
    return sorted(number for batch in batches for number in batch["id"].to_pylist())


@pytest.mark.spec("tables.stream.once")
def test_offsets_are_versions_and_each_row_is_read_once(tmp_path: Path) -> None:
    append(tmp_path, 1, 2)
    append(tmp_path, 3)
    start = stream(tmp_path).initialOffset()
    first = json.loads(json.dumps(stream(tmp_path).latestOffset(start, None)))
    append(tmp_path, 4)
    append(tmp_path, 5)
    assert ids(stream(tmp_path), start, first) == [1, 2, 3]
    second = stream(tmp_path).latestOffset(first, None)
    assert ids(stream(tmp_path), first, second) == [4, 5]
    assert stream(tmp_path).latestOffset(second, None) == second
    assert ids(stream(tmp_path), second, second) == []
    tables.compact(f"delta:{tmp_path}")
    third = stream(tmp_path).latestOffset(second, None)
    assert third != second
    assert ids(stream(tmp_path), second, third) == []
    assert ids(stream(tmp_path), first, second) == [4, 5]  # a batch that Spark repeats


def append_after_opening(patch: pytest.MonkeyPatch, append: Callable[[], None]) -> None:
    """Append rows once, after a stream has opened its table."""
    open_history = TableStream._history

    def race(source: TableStream) -> Any:
        history = open_history(source)
        patch.setattr(TableStream, "_history", open_history)
        append()
        return history

    patch.setattr(TableStream, "_history", race)


@pytest.mark.spec("tables.stream.once")
def test_first_batch_ends_at_its_offset_if_rows_are_appended_while_it_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path, 1)
    first = stream(tmp_path).latestOffset({"table_version": None})
    append_after_opening(monkeypatch, lambda: append(tmp_path, 2))
    assert ids(stream(tmp_path), {"table_version": None}, first) == [1]
    assert ids(stream(tmp_path), {"table_version": None}, first) == [1]  # repeated, at an earlier version
    assert ids(stream(tmp_path), first, stream(tmp_path).latestOffset(first)) == [2]


def test_limit_reads_the_commits_of_one_batch_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        append(tmp_path, number)
    read = DeltaHistory._entries
    versions: list[int] = []

    def record(history: DeltaHistory, version: int) -> Any:
        versions.append(version)
        return read(history, version)

    monkeypatch.setattr(DeltaHistory, "_entries", record)
    assert stream(tmp_path).latestOffset({"table_version": 0}, SimpleNamespace(max_files=2)) == {"table_version": 2}
    assert versions == [1, 2]


def test_limit_ends_a_batch_after_a_version(tmp_path: Path) -> None:
    for number in range(5):
        append(tmp_path, number)
    limit = SimpleNamespace(max_files=2)
    start = stream(tmp_path, startingVersion="1").initialOffset()
    middle = stream(tmp_path).latestOffset(start, limit)
    assert ids(stream(tmp_path), start, middle) == [1, 2]
    assert ids(stream(tmp_path), middle, stream(tmp_path).latestOffset(middle, None)) == [3, 4]
    source = stream(tmp_path)
    source.prepareForTriggerAvailableNow()
    append(tmp_path, 9)
    assert ids(source, middle, source.latestOffset(middle, None)) == [3, 4]
    assert ids(source, source.latestOffset(None), stream(tmp_path).latestOffset(None)) == [9]


def test_streams_start_at_a_version(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    assert stream(tmp_path, starting_version="latest").initialOffset() == stream(tmp_path).latestOffset(None)
    append(tmp_path, 3)
    now = stream(tmp_path).latestOffset(None)
    for version, expected in (("0", [1, 2, 3]), ("1", [2, 3]), ("2", [3])):
        assert ids(stream(tmp_path), stream(tmp_path, startingVersion=version).initialOffset(), now) == expected
    with pytest.raises(FileNotFoundError, match="has no version 7"):
        stream(tmp_path, startingVersion="7").initialOffset()


@pytest.mark.spec("tables.appends.changes")
def test_changed_rows_end_the_stream_unless_they_are_skipped(tmp_path: Path) -> None:
    append(tmp_path, 1, 2)
    start = stream(tmp_path).latestOffset(None)
    DeltaTable(str(tmp_path)).delete("id = 1")
    append(tmp_path, 3)
    end = stream(tmp_path).latestOffset(start)
    with pytest.raises(pqext.UnsupportedError, match="skip_change_commits"):
        ids(stream(tmp_path), start, end)
    assert ids(stream(tmp_path, skipChangeCommits="true"), start, end) == [3]


def test_invalid_options_and_offsets_are_errors(tmp_path: Path) -> None:
    append(tmp_path, 1)
    for options, message in (
        ({"version": "0"}, "do not support option 'version'"), ({"startingVersion": "x"}, "a version or 'latest'"),
        ({"ignoreMissingFiles": "true"}, "ignore_missing_files"), ({"skip_change_commits": "1"}, "true or false"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            stream(tmp_path, **options)
    with pytest.raises(ValueError, match="is for streams of tables"):
        PqextSource({"path": str(tmp_path), "startingVersion": "1"}).streamReader(SCHEMA)
    with pytest.raises(ValueError, match="offset of another source"):
        stream(tmp_path).partitions({"version": 1, "files": 0, "seen": ""}, {"table_version": 0})
    write_deltalake(tmp_path, pa.table({"id": [2], "x": [3]}), mode="append", schema_mode="merge")
    inferred = TableStream({"path": f"delta:{tmp_path}"}, SCHEMA, False)
    with pytest.raises(SchemaMismatchError, match="files have columns x"):
        inferred.partitions({"table_version": 0}, {"table_version": 1})


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a slice of each file."""
    monkeypatch.setattr("pqext.spark.reading.planning.slice_bytes", lambda total, most: 1)


def test_slices_contain_only_their_own_files(tmp_path: Path, small_slices: None) -> None:
    rows = pa.table({"id": pa.array(range(6), pa.int64()), "p": ["a", "b", "c"] * 2})
    write_deltalake(tmp_path, rows, partition_by=["p"])
    source = TableStream({"path": f"delta:{tmp_path}"}, SCHEMA)
    slices = source.partitions({"table_version": -1}, {"table_version": 0})
    assert [len(each.query.files) for each in slices] == [len(each.tasks) for each in slices]
    assert len(slices) == 3
    assert all(set(each.query.partitions.stated) == {*each.query.files} for each in slices)
    assert ids(source, {"table_version": None}, {"table_version": 0}) == list(range(6))


def test_slices_contain_only_their_own_deleted_rows(tmp_path: Path, small_slices: None) -> None:
    for number in range(3):
        rows = pa.table({"id": pa.array(range(number * 4, number * 4 + 4), pa.int64())})
        settings = {} if number else {"configuration": {"delta.enableDeletionVectors": "true"}}
        write_deltalake(tmp_path, rows, mode="append", **settings)
    for path in adds(str(tmp_path)):
        delete_rows(str(tmp_path), path, [0, 3])
    source = TableStream({"path": f"delta:{tmp_path}"}, SCHEMA)
    end = source.latestOffset(None)
    slices = source.partitions({"table_version": None}, end)
    assert [{*each.query.table.view.deleted} for each in slices] == [{*each.query.files} for each in slices]
    assert len(slices) == 3
    assert ids(source, {"table_version": None}, end) == [1, 2, 5, 6, 9, 10]


def test_batch_reads_send_each_task_only_its_own_deleted_rows(tmp_path: Path, small_slices: None) -> None:
    for number in range(3):
        rows = pa.table({"id": pa.array(range(number * 4, number * 4 + 4), pa.int64()), "p": [number] * 4})
        write_deltalake(
            tmp_path, rows, mode="append", partition_by=["p"],
            **({} if number else {"configuration": {"delta.enableDeletionVectors": "true"}}),
        )
    for path in adds(str(tmp_path)):
        delete_rows(str(tmp_path), path, [0, 3])
    reader = PqextSource({"path": f"delta:{tmp_path}"}).reader(SCHEMA)
    slices = reader.partitions()
    sent = cloudpickle.loads(cloudpickle.dumps(reader))
    query = sent.query
    assert (query.files, query.table.files, query.table.view.deleted, query.partitions.stated) == ((), (), {}, {})
    assert len(slices) == 3
    for each in slices:
        assert {*each.query.table.view.deleted} == {*each.query.partitions.stated} == {*each.query.files}
        assert len(each.query.files) == 1
    batches = [batch for each in slices for batch in sent.read(cloudpickle.loads(cloudpickle.dumps(each)))]
    assert sorted(id for batch in batches for id in batch.column(0).to_pylist()) == [1, 2, 5, 6, 9, 10]


class LookupTable(dict[str, Any]):
    """A dictionary for access by key only."""

    def __iter__(self) -> Any:
        raise AssertionError("all entries are read")

    items = keys = values = __iter__


def test_slice_of_one_file_does_not_read_the_metadata_of_all_files(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [f"memory://lake/{number}.parquet" for number in range(5000)]
    entries = LookupTable({file: {} for file in files})
    view: Any = FileView("t", None, entries)
    for kind in (view, IcebergFileView("t", None, None, entries, {}, {}, DeletedRows(entries, entries, {}, entries))):
        table = TableSnapshot("t", pa.schema([]), (), pa.schema([]), {}, None, kind)
        query = Query(tuple(files), partitions=Partitions(None, pa.schema([]), stated=entries), table=table)
        monkeypatch.setattr(Query, "locate", lambda *_: pytest.fail("a file is located"))
        part = query.restrict({files[7]}, {})
        assert part.files == (files[7],)
        assert dict.__len__(part.partitions.stated) == 1


def test_plan_of_slices_names_the_files_once(
    tmp_path: Path, small_slices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        append(tmp_path, number)
    calls = []
    names = Query.display_names
    monkeypatch.setattr(Query, "display_names", lambda query: calls.append(query) or names(query))
    assert len(PqextSource({"path": f"delta:{tmp_path}"}).reader(SCHEMA).partitions()) == 4
    assert len(calls) == 1


def test_slices_contain_only_their_own_values_and_deletes_of_iceberg(tmp_path: Path, small_slices: None) -> None:
    table = new_catalog(tmp_path).create_table("db.t", pa.schema([("id", pa.int64()), ("day", pa.string())]))
    with table.update_spec() as update:
        update.add_identity("day")
    for number in range(3):
        table.append(pa.table({"id": pa.array([2 * number, 2 * number + 1]), "day": [str(number)] * 2}))
    deletes = [
        position_deletes(table, f"deletes-{day}", [(path, 0)], partition=[day])
        for path in data_paths(table) for day in [path.partition("day=")[2][0]]
    ]
    source = stream(f"iceberg:{commit(table, deletes)}")
    end = source.latestOffset(None)
    slices = source.partitions({"table_version": None}, end)
    for each in slices:
        view = each.query.table.view
        assert {*view.constants} == {*view.deleted.names} == {*each.query.files}
    assert len(slices) == 3
    assert ids(source, {"table_version": None}, end) == [1, 3, 5]


def test_iceberg_snapshots_are_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_catalog(tmp_path).create_table("db.t", pa.schema([("id", pa.int64())]))
    options = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}

    def source(**more: str) -> TableStream:
        return stream("iceberg:local.db.t", storage_options=json.dumps(options), **more)

    start = source().initialOffset()
    empty = source().latestOffset(start)
    assert ids(source(), start, empty) == []
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    end = source().latestOffset(empty)
    assert ids(source(), empty, end) == ids(source(), start, end) == [0, 1, 2]
    assert ids(source(), start, empty) == []  # repeated, after the first snapshot
    append_after_opening(monkeypatch, lambda: table.append(pa.table({"id": [3]})))
    assert ids(source(), start, end) == [0, 1, 2]
    assert ids(source(), end, source().latestOffset(end)) == [3]
    second = str(table.snapshots()[1].snapshot_id)
    assert ids(source(), source(startingVersion=second).initialOffset(), end) == [1, 2]


@pytest.mark.spec("tables.stream.once")
def test_query_reads_the_table_and_then_its_appends(spark: Any, tmp_path: Path) -> None:
    table, out, checkpoint = tmp_path / "table", tmp_path / "out", tmp_path / "checkpoint"
    write_deltalake(table, pa.table({"id": [1, 2], "p": ["a", None]}), partition_by=["p"])

    def run(**options: str) -> None:
        rows = spark.readStream.format("pqext").option("table", f"delta:{table}").options(**options).load()
        query = rows.writeStream.format("pqext").option("checkpointLocation", str(checkpoint))
        query.trigger(availableNow=True).start(str(out)).awaitTermination()

    run()
    assert sorted(pqext.read_table(out)["id"].to_pylist()) == [1, 2]
    write_deltalake(table, pa.table({"id": [3], "p": ["b"]}), mode="append")
    run()
    rows = pqext.read_table(out).to_pylist()
    assert sorted((row["id"], str(row["p"])) for row in rows) == [(1, "a"), (2, "None"), (3, "b")]
    DeltaTable(str(table)).delete("id = 1")
    with pytest.raises(StreamingQueryException, match="removes or changes rows"):
        run()
    run(skipChangeCommits="true")
    assert pqext.read_table(out).num_rows == 3
