"""A save happens whole or not at all: killed at any step, and for readers that list its folder meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

import pqext
from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.dataset.files.folders import COMMIT, JOURNAL
from pqext.dataset.writing import commit
from pqext.spark import clean
from pqext.spark.writing.sink import Sink

JOB = "a" * 32
SCHEMA = T.StructType([T.StructField("x", T.LongType())])
OLD = [0, 1, 2]
NEW = [10, 11]
NAMES = [f"part-{at:05}-{JOB}-{at}.parquet" for at in range(2)]


def put(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"x": [value]}), path)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder of three files, one without an ending and one in a folder, beside which two new files are staged."""
    base = tmp_path / "base"
    for name, value in zip(("b.parquet", "data", "k=1/c.pq"), OLD, strict=True):
        put(base / name, value)
    (base / "_SUCCESS").touch()
    (base / "_notes").touch()
    staged = commit.begin(base, JOB)
    for name, value in zip(NAMES, NEW, strict=True):
        put(staged / name, value)
    put(staged / "part-00000-of-a-failed-attempt.parquet", 99)
    return base


def rows(folder: Path) -> list[int]:
    return sorted(pqext.read_table(folder, columns=["x"])["x"].to_pylist())


def plain_rows(folder: Path) -> list[int]:
    """What a reader sees that knows no journal."""
    return sorted(pa.dataset.dataset(folder, format="parquet").to_table(columns=["x"])["x"].to_pylist())


def steps(what: str, folder: Path, overwrite: bool) -> Any:
    arguments = json.dumps({"names": NAMES, "overwrite": overwrite})
    program = Path(__file__).with_name("commit_steps.py")
    done = subprocess.run(
        [sys.executable, str(program), what, str(folder), arguments], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def save(target: Path, values: list[int], *, overwrite: bool) -> None:
    sink = Sink({"path": str(target)}, SCHEMA, overwrite)
    sink.commit([sink.write(iter([pa.record_batch({"x": values})]))])


def hidden(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name.startswith(("_", "."))}


@pytest.mark.slow
@pytest.mark.parametrize("overwrite", [True, False], ids=["overwrite", "append"])
def test_save_killed_at_any_step_is_committed_or_absent(base: Path, overwrite: bool) -> None:
    before, after = OLD, NEW if overwrite else OLD + NEW
    seen: dict[str, list[list[int]]] = {}
    for name in steps("kill", base.parent, overwrite):
        target = base.parent / name
        found = rows(target)
        assert found in (before, after), name
        seen.setdefault(name[:8] if name.count("-") > 1 else name[:4], []).append(found)
        if (target / "_SUCCESS").exists():
            assert plain_rows(target) == found, name
        if name.count("-") == 1:
            again = base.parent / "again"
            shutil.copytree(target, again)
            save(again, [20], overwrite=overwrite)
            assert rows(again) == plain_rows(again) == ([20] if overwrite else [*found, 20])
            assert hidden(again) - {f"{commit.TEMPORARY}{JOB}"} == {"_SUCCESS", "_notes"}
            shutil.rmtree(again)
        clean(target, older_than=timedelta(0))
        assert rows(target) == plain_rows(target) == found, name
        assert hidden(target) <= {"_SUCCESS", "_notes"}
    for how in ("kill", "exit"):
        first = seen[how].index(after)
        assert seen[how] == [before] * first + [after] * (len(seen[how]) - first)
        assert 2 <= first < len(seen[how]) - (7 if overwrite else 4), "steps on both sides of the decision"
    assert all(len({tuple(one) for one in found}) == 1 for key, found in seen.items() if "-" in key)


@pytest.mark.slow
@pytest.mark.parametrize("overwrite", [True, False], ids=["overwrite", "append"])
def test_listing_during_a_save_shows_the_state_before_or_after(base: Path, overwrite: bool) -> None:
    before = ["b.parquet", "data", "c.pq"]
    after = NAMES if overwrite else ["b.parquet", "data", *NAMES, "c.pq"]
    assert sorted(steps("beside", base.parent, overwrite)) == sorted([before, after])


def test_overwrite_removes_exactly_the_readable_files(tmp_path: Path) -> None:
    for name in ("a.parquet", "b", "c.snappy", "k=1/d.parq", "_private/e.parquet", ".f.parquet", "k=1/_g.parquet"):
        put(tmp_path / name, 1)
    (tmp_path / ".a.parquet.crc").touch()
    assert rows(tmp_path) == [1, 1, 1, 1]
    save(tmp_path, [5], overwrite=True)
    assert rows(tmp_path) == plain_rows(tmp_path) == [5]
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    (new,) = (name for name in left if name.startswith("part-"))
    assert left - {new} == {"_private/e.parquet", ".f.parquet", "k=1/_g.parquet", "_SUCCESS"}


def test_folder_with_unrelated_files_is_not_overwritten(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", 1)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "kept.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"kept\.txt is not a Parquet file"):
        save(tmp_path, [5], overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "notes"]
    sink = Sink({"path": str(tmp_path / "b")}, SCHEMA, True)
    written = [sink.write(iter([pa.record_batch({"x": [1]})]))]
    (tmp_path / "b" / "late.csv").write_text("x")
    with pytest.raises(ValueError, match=r"late\.csv"):
        sink.commit(written)
    assert not (tmp_path / "b" / "_SUCCESS").exists()
    assert (tmp_path / "b" / "late.csv").read_text() == "x"


def test_two_concurrent_saves_both_commit(tmp_path: Path) -> None:
    save(tmp_path, [1], overwrite=False)
    sinks = [Sink({"path": str(tmp_path)}, SCHEMA, overwrite) for overwrite in (True, False, True)]
    written = [[sink.write(iter([pa.record_batch({"x": [at]})]))] for at, sink in enumerate(sinks, 10)]
    for sink, messages, expected in zip(sinks, written, ([10], [10, 11], [12]), strict=True):
        sink.commit(messages)
        assert rows(tmp_path) == expected


def test_files_added_by_others_during_a_save_remain(base: Path) -> None:
    staged = base / f"{commit.TEMPORARY}{JOB}"
    names = [commit.ReplacedFile.from_path(name, str(base / name)) for name in ("b.parquet", "data", "k=1/c.pq")]
    (staged / JOURNAL).write_bytes(commit.Journal(tuple(NAMES), tuple(names)).dump())
    staged.rename(base / f"{COMMIT}{JOB}")
    put(base / "part-from-spark.parquet", 7)
    assert rows(base) == [7, *NEW]
    assert clean(base).finished == (JOB,)
    assert rows(base) == plain_rows(base) == [7, *NEW]
    assert clean(base) == commit.CleanupResult((), ())


def test_corrupt_journal_blocks_saves_and_loses_nothing(base: Path) -> None:
    (base / f"{commit.TEMPORARY}{JOB}" / JOURNAL).write_bytes(b"{")
    (base / f"{commit.TEMPORARY}{JOB}").rename(base / f"{COMMIT}{JOB}")
    before = sorted(path for path in base.rglob("*"))
    for act in (lambda: rows(base), lambda: clean(base), lambda: save(base, [1], overwrite=True)):
        with pytest.raises(CorruptFileError, match=r"journal of an interrupted save is corrupt"):
            act()
    assert sorted(path for path in base.rglob("*")) == before


def test_system_error_before_the_decision_changes_nothing(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="disk full") as caught:
        commit.commit(base, JOB, NAMES, overwrite=True)
    assert caught.value.__notes__ == [f"{base} is as it was before the save"]
    assert rows(base) == plain_rows(base) == OLD
    assert (base / "_SUCCESS").exists()


def test_system_error_after_the_decision_is_completed_later(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise PermissionError("not yours")

    with monkeypatch.context() as changed:
        changed.setattr(commit, "_remove", fail)
        with pytest.raises(PermissionError, match="not yours") as caught:
            commit.commit(base, JOB, NAMES, overwrite=True)
        assert "the save is committed, and pqext reads its rows" in caught.value.__notes__[0]
        commit.abort(base, JOB)
        assert rows(base) == NEW
    assert plain_rows(base) == OLD + NEW
    clean(base)
    assert plain_rows(base) == NEW


def test_file_missing_before_the_commit_aborts_it(base: Path) -> None:
    with pytest.raises(RuntimeError, match=r"part-missing of the job that writes .* was removed before it was commit"):
        commit.commit(base, JOB, [*NAMES, "part-missing"], overwrite=True)
    assert rows(base) == OLD


def test_next_save_removes_remains_of_dead_drivers_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = {"machine": commit._machine_identity(), "pid": process.pid, "started": commit._start_time(process.pid)}
    monkeypatch.setattr(commit, "_driver_identity", lambda: owner)
    remains = commit.begin(tmp_path, "b" * 32)
    put(remains / "part.parquet", 1)
    monkeypatch.setattr(commit, "_driver_identity", lambda: None)
    unknown = commit.begin(tmp_path, "c" * 32)
    save(tmp_path, [1], overwrite=False)
    assert remains.exists()
    process.communicate(b"\n")
    assert clean(tmp_path).removed == ("b" * 32,)
    assert not remains.exists()
    week = commit.ABANDONED_AFTER.total_seconds()
    os.utime(unknown, times=(0, unknown.stat().st_mtime - week + 60))
    save(tmp_path, [2], overwrite=False)
    assert unknown.exists()
    os.utime(unknown, times=(0, unknown.stat().st_mtime - 120))
    save(tmp_path, [3], overwrite=False)
    assert not unknown.exists()
    assert rows(tmp_path) == [1, 2, 3]


def test_clean_requires_a_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        clean(tmp_path / "nowhere")


def test_task_cannot_write_into_a_job_folder_being_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = commit.begin(tmp_path / "table", JOB)
    (folder / "early.parquet").write_bytes(b"x")
    remove = shutil.rmtree

    def remove_during_task(path: Path, ignore_errors: bool) -> None:
        with pytest.raises(FileNotFoundError):
            (folder / "late.parquet").write_bytes(b"x")
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", remove_during_task)
    commit.abort(tmp_path / "table", JOB)
    assert not (tmp_path / "table").exists()


PARTITIONED = T.StructType([T.StructField("x", T.LongType()), T.StructField("k", T.StringType())])
PARTITION_SAVES = [("static", False), ("static", True), ("dynamic", True)]


def save_partition(target: Path, mode: str, overwrite: bool) -> None:
    sink = Sink({"path": str(target), "partition_by": '["k"]', "partition_overwrite": mode}, PARTITIONED, overwrite)
    try:
        sink.commit([sink.write(iter([pa.record_batch({"x": [7, 8], "k": ["a", "b"]})]))])
    except BaseException:
        sink.abort([])
        raise


def entries(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(("mode", "overwrite"), PARTITION_SAVES)
@pytest.mark.parametrize("exists", [True, False])
def test_partition_that_is_a_link_is_rejected_before_the_commit(
    tmp_path: Path, mode: str, overwrite: bool, exists: bool
) -> None:
    put(tmp_path / "t" / "k=a" / "a.parquet", 1)
    if exists:
        put(tmp_path / "other" / "b.parquet", 2)
    (tmp_path / "t" / "k=b").symlink_to(tmp_path / "other")
    before = entries(tmp_path)
    reason = "this partition folder is a symbolic link to" if exists else "No such file or directory"
    with pytest.raises(UnsupportedError if exists else FileNotFoundError, match=reason) as error:
        save_partition(tmp_path / "t", mode, overwrite)
    assert str(tmp_path / "t" / "k=b") in str(error.value)
    assert entries(tmp_path) == before


@pytest.mark.parametrize(("mode", "overwrite"), PARTITION_SAVES)
def test_file_with_the_name_of_a_partition_is_rejected_before_the_commit(
    tmp_path: Path, mode: str, overwrite: bool
) -> None:
    put(tmp_path / "k=a" / "a.parquet", 1)
    put(tmp_path / "k=b", 2)
    before = entries(tmp_path)
    with pytest.raises(UnsupportedError, match=r"a file exists at the path of a partition folder.*; rename") as error:
        save_partition(tmp_path, mode, overwrite)
    assert error.value.path == str(tmp_path / "k=b")
    assert entries(tmp_path) == before


@pytest.mark.parametrize("overwrite", [True, False])
def test_folder_named_success_is_rejected_before_any_task(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "_SUCCESS").mkdir()
    with pytest.raises(UnsupportedError, match="_SUCCESS must be a file, which marks complete saves"):
        Sink({"path": str(tmp_path)}, SCHEMA, overwrite)
    assert entries(tmp_path) == ["_SUCCESS"]
    (tmp_path / "_SUCCESS").rmdir()
    sink = Sink({"path": str(tmp_path)}, SCHEMA, overwrite)
    written = [sink.write(iter([pa.record_batch({"x": [1]})]))]
    (tmp_path / "_SUCCESS").mkdir()
    with pytest.raises(UnsupportedError, match="_SUCCESS must be a file, which marks complete saves"):
        sink.commit(written)
    assert entries(tmp_path) == ["_SUCCESS"]
