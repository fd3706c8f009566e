"""Compact, recluster and reshred Delta tables; lost races, leftovers and killed writers."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import UnsupportedError, col, geo, tables, variant

pytest.importorskip("deltalake")
from deltalake import DeltaTable, write_deltalake

from tests.tables.delta_logs import delete_rows

NOW = timedelta(0)


def ids(path: Path, version: int | None = None) -> list[int]:
    found: list[int] = pqext.scan(f"delta:{path}", ["id"], version=version).to_table()["id"].to_pylist()
    return sorted(found)


def files(path: Path) -> set[str]:
    return {os.path.relpath(file, path) for file in DeltaTable(path).file_uris()}


def data_files(path: Path) -> set[str]:
    found = [file for file in path.rglob("*") if file.is_file() and "_delta_log" not in file.parts]
    return {str(file.relative_to(path)) for file in found}


def write_small_files(path: Path, count: int = 4, by: bool = False) -> None:
    for value in range(count):
        rows = pa.table({"id": [value, value + 100], "p": ["a", "b"]})
        tables.append(f"delta:{path}", rows, partition_by="p" if by else ())


def test_compact_combines_small_files_of_each_partition(tmp_path: Path) -> None:
    write_small_files(tmp_path, by=True)
    before = files(tmp_path)
    plan = tables.compact(f"delta:{tmp_path}", dry_run=True)
    assert (plan.files_before, plan.files_after, plan.rows, plan.bytes_after) == (8, 2, 8, None)
    assert files(tmp_path) == before
    result = tables.compact(f"delta:{tmp_path}")
    assert (result.version, result.files_before, result.files_after, result.rows) == (4, 8, 2, 8)
    assert result.bytes_after == sum(os.stat(tmp_path / file).st_size for file in files(tmp_path))
    assert {file.partition("/")[0] for file in files(tmp_path)} == {"p=a", "p=b"}
    assert ids(tmp_path) == ids(tmp_path, version=3) == [0, 1, 2, 3, 100, 101, 102, 103]
    adds = pa.table(DeltaTable(tmp_path).get_add_actions(flatten=True)).to_pylist()
    assert sorted((row["partition.p"], row["min.id"], row["max.id"]) for row in adds) == [("a", 0, 3), ("b", 100, 103)]
    assert tables.compact(f"delta:{tmp_path}").files_before == 0
    assert DeltaTable(tmp_path).version() == 4


@pytest.mark.spec("tables.delta.rewrite")
def test_compaction_changes_no_data_in_the_log(tmp_path: Path) -> None:
    write_small_files(tmp_path)
    tables.compact(f"delta:{tmp_path}")
    log = (tmp_path / "_delta_log" / f"{4:020}.json").read_text()
    assert log.count('"dataChange":false') == 5
    assert '"dataChange":true' not in log


def test_filter_selects_partitions_to_compact(tmp_path: Path) -> None:
    write_small_files(tmp_path, by=True)
    assert tables.compact(f"delta:{tmp_path}", filter="p = 'a'").files_before == 4
    assert len(files(tmp_path)) == 5


def test_files_are_combined_up_to_the_target_size(tmp_path: Path) -> None:
    write_small_files(tmp_path, 6)
    size = max(os.stat(tmp_path / file).st_size for file in files(tmp_path))
    assert tables.compact(f"delta:{tmp_path}", target_file_bytes=2 * size + 10).files_after == 3
    assert len(ids(tmp_path)) == 12


@pytest.mark.spec("tables.delta.conflict")
def test_lost_compaction_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    write_small_files(tmp_path)

    def compact_first(*_: Any) -> None:
        if DeltaTable(tmp_path).version() == 3:
            tables.compact(f"delta:{tmp_path}")

    with pytest.raises(tables.TableConflictError, match=r"another writer has removed .*nothing was changed"):
        tables.compact(f"delta:{tmp_path}", progress=compact_first)
    assert ids(tmp_path) == [0, 1, 2, 3, 100, 101, 102, 103]
    assert data_files(tmp_path) == files(tmp_path) | {
        os.path.relpath(file, tmp_path) for file in DeltaTable(tmp_path, version=3).file_uris()
    }


def test_compaction_after_a_concurrent_delete_is_lost(tmp_path: Path) -> None:
    write_small_files(tmp_path)

    def delete(*_: Any) -> None:
        DeltaTable(tmp_path).delete("id = 1")

    with pytest.raises(tables.TableConflictError):
        tables.compact(f"delta:{tmp_path}", progress=delete)
    assert ids(tmp_path) == [0, 2, 3, 100, 101, 102, 103]


def write_files_with_deletion_vectors(path: Path) -> None:
    rows = pa.table({"id": [0, 100], "p": ["a", "b"]})
    write_deltalake(path, rows, configuration={"delta.enableDeletionVectors": "true"})
    for value in range(1, 4):
        tables.append(f"delta:{path}", pa.table({"id": [value, value + 100], "p": ["a", "b"]}))


def test_files_with_deletion_vectors_are_retained(tmp_path: Path) -> None:
    write_files_with_deletion_vectors(tmp_path)
    victim = sorted(files(tmp_path))[0]
    kept = pq.read_table(tmp_path / victim)["id"].to_pylist()[1]
    delete_rows(str(tmp_path), victim, [0])
    before, rows = data_files(tmp_path), ids(tmp_path)
    with pytest.raises(UnsupportedError, match="has a deletion vector"):
        tables.overwrite(f"delta:{tmp_path}", pa.table({"id": [1], "p": ["a"]}))
    assert data_files(tmp_path) == before
    result = tables.compact(f"delta:{tmp_path}")
    assert (result.files_before, result.files_after, result.skipped) == (3, 1, 1)
    assert victim in files(tmp_path)
    assert ids(tmp_path) == rows
    assert kept in rows


def test_rows_deleted_while_a_rewrite_writes_stay_deleted(tmp_path: Path) -> None:
    write_files_with_deletion_vectors(tmp_path)
    victim = sorted(files(tmp_path))[0]

    def delete(*_: Any) -> None:
        if DeltaTable(tmp_path).version() == 3:
            delete_rows(str(tmp_path), victim, [0])

    with pytest.raises(tables.TableConflictError, match="another writer has deleted rows of"):
        tables.compact(f"delta:{tmp_path}", progress=delete)
    assert len(ids(tmp_path)) == 7


def test_compaction_keeps_rows_appended_while_it_writes(tmp_path: Path) -> None:
    write_small_files(tmp_path)

    def append(*_: Any) -> None:
        if DeltaTable(tmp_path).version() == 3:
            write_deltalake(tmp_path, pa.table({"id": [1000], "p": ["a"]}), mode="append")

    assert tables.compact(f"delta:{tmp_path}", progress=append).files_before == 4
    assert ids(tmp_path) == [0, 1, 2, 3, 100, 101, 102, 103, 1000]
    assert len(files(tmp_path)) == 2


def test_compaction_is_lost_if_the_schema_changes(tmp_path: Path) -> None:
    write_small_files(tmp_path)

    def alter(*_: Any) -> None:
        DeltaTable(tmp_path).alter.set_table_properties({"delta.appendOnly": "true"})

    with pytest.raises(tables.TableConflictError, match="has changed the schema or properties"):
        tables.compact(f"delta:{tmp_path}", progress=alter)
    assert len(files(tmp_path)) == 4


def test_rows_that_the_log_does_not_state_stop_a_rewrite(tmp_path: Path) -> None:
    write_small_files(tmp_path, 2)
    victim = sorted(files(tmp_path))[0]
    pq.write_table(pq.read_table(tmp_path / victim).slice(0, 1), tmp_path / victim)
    before = data_files(tmp_path)
    with pytest.raises(pqext.CorruptFileError, match="the log states 4 rows for 2 files, but the files contain 3"):
        tables.compact(f"delta:{tmp_path}")
    assert data_files(tmp_path) == before


def test_recluster_by_variant_path_sorts_rows(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), variant.variant_field("v")])
    for start in range(4):
        numbers = list(range(start, 400, 4))
        documents = variant.parse_json([f'{{"n": {number}}}' for number in numbers])
        tables.append(f"delta:{tmp_path}", pa.table([pa.array(numbers), documents], schema=schema))
    result = tables.recluster(f"delta:{tmp_path}", "v:$.n::bigint", target_file_bytes=1 << 30)
    assert (result.files_after, result.rows) == (1, 400)
    (file,) = files(tmp_path)
    assert pq.read_table(tmp_path / file, columns=["id"])["id"].to_pylist() == list(range(400))
    assert pqext.scan(f"delta:{tmp_path}").filter(col("v").variant("$.n", "int64") == 7).count() == 1


def test_recluster_by_geometry_follows_the_hilbert_curve(tmp_path: Path) -> None:
    cells = [(x, y) for x in range(8) for y in range(8)]
    random.Random(1).shuffle(cells)
    points = geo.from_points([float(x) for x, _ in cells], [float(y) for _, y in cells])
    rows = pa.table([pa.array(range(64)), points], schema=pa.schema([("id", pa.int64()), geo.geometry_field("at")]))
    tables.append(f"delta:{tmp_path}", rows)
    tables.recluster(f"delta:{tmp_path}", "at")
    order = [cells[position] for position in pqext.scan(f"delta:{tmp_path}").to_table()["id"].to_pylist()]
    steps = [abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in pairwise(order)]
    assert steps == [1] * 63  # neighbours on a Hilbert curve are neighbours in the plane


def test_sorting_beyond_the_memory_loses_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pqext.tables.clustering.SORT_BYTES", 200_000)
    values = [None if n % 97 == 0 else (n * 7919) % 5000 for n in range(60_000)]
    rows = pa.table({"id": pa.array(range(60_000)), "key": pa.array(values, pa.int64())})
    tables.append(f"delta:{tmp_path}", rows.to_reader(1000), sort_by="key")
    found = pqext.scan(f"delta:{tmp_path}").to_table()
    assert sorted(found["id"].to_pylist()) == list(range(60_000))
    keys = found["key"].to_pylist()
    assert keys == sorted(keys, key=lambda key: (key is None, key))


def test_reshred_and_compact_keep_the_shredding(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), variant.variant_field("v")])
    for start in (0, 10):
        documents = variant.parse_json([f'{{"n": {number}}}' for number in range(start, start + 10)])
        tables.append(f"delta:{tmp_path}", pa.table([pa.array(range(start, start + 10)), documents], schema=schema))
    with pytest.raises(UnsupportedError, match="allow_undeclared_shredding"):
        tables.reshred(f"delta:{tmp_path}", {"v": "n BIGINT"})
    result = tables.reshred(f"delta:{tmp_path}", {"v": "n BIGINT"}, allow_undeclared_shredding=True)
    assert (result.files_before, result.files_after, result.rows) == (2, 2, 20)
    assert tables.compact(f"delta:{tmp_path}").files_after == 1
    (file,) = files(tmp_path)
    assert "typed_value" in pq.read_schema(tmp_path / file).field("v").type.names
    tables.reshred(f"delta:{tmp_path}", {})
    (file,) = files(tmp_path)
    assert "typed_value" not in pq.read_schema(tmp_path / file).field("v").type.names
    assert ids(tmp_path) == list(range(20))


def test_describe_and_clean_leftovers(tmp_path: Path) -> None:
    write_small_files(tmp_path, 3, by=True)
    tables.compact(f"delta:{tmp_path}")
    DeltaTable(tmp_path).create_checkpoint()
    for name in ("p=a/part-9.parquet", "part-8.parquet", ".pqext-0123.tmp", "_hidden.parquet", "notes.txt"):
        (tmp_path / name).write_bytes(b"xyz")
    old = time.time() - 8 * 86_400
    for name in data_files(tmp_path) - {"part-8.parquet"}:
        os.utime(tmp_path / name, (old, old))
    found = tables.describe(f"delta:{tmp_path}")
    assert (found.version, found.files, found.rows, found.partition_by) == (3, 2, 6, ("p",))
    assert found.bytes == sum(os.stat(tmp_path / file).st_size for file in files(tmp_path))
    assert sorted(found.leftovers) == [".pqext-0123.tmp", "p=a/part-9.parquet"]
    before = data_files(tmp_path)
    assert len(tables.clean(f"delta:{tmp_path}").files) == 2
    assert data_files(tmp_path) == before
    assert tables.clean(f"delta:{tmp_path}", dry_run=False).bytes == 6
    assert before - data_files(tmp_path) == {".pqext-0123.tmp", "p=a/part-9.parquet"}
    assert ids(tmp_path, version=2) == ids(tmp_path)


@pytest.mark.spec("tables.delta.references")
def test_files_that_only_a_checkpoint_names_are_not_leftovers(tmp_path: Path) -> None:
    write_small_files(tmp_path, 3)
    tables.compact(f"delta:{tmp_path}")
    DeltaTable(tmp_path).create_checkpoint()
    for version in range(4):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    assert len(data_files(tmp_path)) == 4
    assert tables.describe(f"delta:{tmp_path}", older_than=NOW).leftovers == ()


@pytest.mark.spec("tables.delta.references")
def test_files_that_the_log_names_through_a_link_are_not_leftovers(tmp_path: Path) -> None:
    folder = tmp_path / "real"
    write_small_files(folder, 1)
    (tmp_path / "link").symlink_to(folder)
    commit = folder / "_delta_log" / f"{0:020}.json"
    (name,) = data_files(folder)
    commit.write_text(commit.read_text().replace(f'"path":"{name}"', f'"path":"{(tmp_path / "link" / name).as_uri()}"'))
    assert len(ids(folder)) == len(pq.read_table(folder / name))
    assert tables.clean(f"delta:{folder}", older_than=NOW, dry_run=False).files == ()


@pytest.mark.parametrize("log", ["_delta_log/00000000000000000000.json", "metadata/v1.metadata.json"])
def test_files_of_tables_inside_are_not_leftovers(tmp_path: Path, log: str) -> None:
    write_small_files(tmp_path, 1)
    for name in (log, "part-1.parquet", "a/part-2.parquet"):
        path = tmp_path / "inside" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"xyz")
    assert tables.clean(f"delta:{tmp_path}", older_than=NOW, dry_run=False).files == ()


@pytest.mark.parametrize("text", ["{", ""])
def test_unreadable_log_stops_cleaning(tmp_path: Path, text: str) -> None:
    write_small_files(tmp_path, 3)
    DeltaTable(tmp_path).create_checkpoint()
    (tmp_path / "part-8.parquet").write_bytes(b"xyz")
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text(text)  # before the checkpoint, so the table opens
    with pytest.raises(pqext.CorruptFileError, match="the log cannot be read"):
        tables.clean(f"delta:{tmp_path}", older_than=NOW, dry_run=False)
    assert (tmp_path / "part-8.parquet").exists()


_APPEND = """
import sys, pyarrow as pa
from pqext import tables
start = int(sys.argv[2])
print("ready", flush=True)
tables.append(f"delta:{sys.argv[1]}", pa.table({"id": range(start, start + 20_000)}), target_file_bytes=20_000)
print("done", flush=True)
"""
_COMPACT = """
import sys
from pqext import tables
print("ready", flush=True)
tables.compact(f"delta:{sys.argv[1]}")
print("done", flush=True)
"""


def kill_writers(path: Path, moments: int) -> None:
    """Kill appends and compactions at random moments, and compare the rows with those of the committed versions."""
    draw = random.Random(moments)
    expected = {0}
    tables.append(f"delta:{path}", pa.table({"id": [0]}))
    killed = 0
    for moment in range(moments):
        is_append = moment % 2 == 0
        start = (moment + 1) * 100_000
        for value in (start - 2, start - 1) if not is_append else ():
            tables.append(f"delta:{path}", pa.table({"id": [value]}))
            expected.add(value)
        before = DeltaTable(path).version()
        command = [sys.executable, "-c", _APPEND if is_append else _COMPACT, str(path), str(start)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(draw.random() * 0.4)
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate()
        killed += "done" not in rest
        version = DeltaTable(path).version()
        assert version in (before, before + 1)
        if is_append and version > before:
            expected |= set(range(start, start + 20_000))
        assert set(ids(path)) == expected
        assert len(ids(path)) == len(expected)
        tables.clean(f"delta:{path}", older_than=NOW, dry_run=False)
        assert set(tables.describe(f"delta:{path}", older_than=NOW).leftovers) == set()
        assert set(ids(path)) == expected
        assert {name for name in data_files(path) if name.startswith(".")} == set()
    assert killed


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_killed_writers_leave_the_old_or_the_new_version(tmp_path: Path) -> None:
    kill_writers(tmp_path, 10)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_killed_writers_leave_the_old_or_the_new_version_100_times(tmp_path: Path) -> None:
    kill_writers(tmp_path, 100)


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abc")), max_size=6)),
        st.tuples(st.just("overwrite"), st.lists(st.tuples(st.integers(0, 30), st.just("b")), max_size=3)),
        st.tuples(st.sampled_from(["compact", "recluster", "delete"]), st.integers(0, 30)),
    ),
    min_size=1, max_size=8,
)


@settings(deadline=None)
@given(operations=OPERATIONS, bound=st.integers(0, 30))
def test_operations_and_filters_agree_with_a_list_of_rows(operations: list[tuple[str, Any]], bound: int) -> None:
    with TemporaryDirectory() as folder:
        name = f"delta:{folder}"
        model: list[tuple[int, str]] = []

        def rows(values: list[tuple[int, str]]) -> pa.Table:
            types = pa.schema([("id", pa.int64()), ("p", pa.string())])
            return pa.Table.from_pylist([{"id": id, "p": p} for id, p in values], schema=types)

        tables.append(name, rows([]), partition_by="p")
        for operation, value in operations:
            if operation == "append":
                tables.append(name, rows(value), sort_by="id")
                model += value
            elif operation == "overwrite":
                tables.overwrite(name, rows(value), filter="p = 'b'")
                model = [row for row in model if row[1] != "b"] + value
            elif operation == "compact":
                tables.compact(name, target_file_bytes=500 + 100 * value)
            elif operation == "recluster":
                tables.recluster(name, ["p", "id"], filter=f"p > '{'abc'[value % 3]}'")
            elif model:
                DeltaTable(folder).delete(f"id = {value}")
                model = [row for row in model if row[0] != value]
        found = pqext.scan(name).to_table().to_pylist()
        assert sorted((row["id"], row["p"]) for row in found) == sorted(model)
        assert pqext.scan(name, filter=f"id >= {bound}").count() == sum(id >= bound for id, _ in model)
        assert tables.describe(name, older_than=NOW).leftovers == ()
