"""Killed writers of Iceberg tables, and compactions that race with other writers: no row is lost or doubled."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import pqext
from pqext import tables
from reference.effort import share

pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")
from pyiceberg.table import Table

from tests.tables.iceberg_tables import local, new_catalog

NOW = timedelta(0)
SCHEMA = pa.schema([("id", pa.int64())])
_OPEN = """
import sys, pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pqext import tables
folder, start = sys.argv[1], int(sys.argv[2])
catalog = SqlCatalog("local", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
table = catalog.load_table("db.t")
print("ready", flush=True)
"""
_APPEND = """
tables.append(table, pa.table({"id": range(start, start + 20_000)}), target_file_bytes=20_000)
print("done", flush=True)
"""
_COMPACT = """
tables.compact(table)
print("done", flush=True)
"""


def ids(table: Table) -> list[int]:
    found: list[int] = pqext.scan(table.refresh()).to_table()["id"].to_pylist()
    return sorted(found)


def kill_writers(folder: Path, moments: int) -> None:
    """Kill appends and compactions at random moments, and compare the rows with those of the committed snapshots."""
    table = new_catalog(folder).create_table("db.t", schema=SCHEMA)
    draw = random.Random(moments)
    expected = {0}
    tables.append(table, pa.table({"id": [0]}))
    killed = 0
    for moment in range(moments):
        is_append = moment % 2 == 0
        start = (moment + 1) * 100_000
        for value in () if is_append else (start - 2, start - 1):
            tables.append(table, pa.table({"id": [value]}))
            expected.add(value)
        before = len(table.refresh().snapshots())
        command = [sys.executable, "-c", _OPEN + (_APPEND if is_append else _COMPACT), str(folder), str(start)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(draw.random() * 0.5)
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate()
        killed += "done" not in rest
        has_committed = len(table.refresh().snapshots()) > before
        assert has_committed or "done" not in rest
        if is_append and has_committed:
            expected |= set(range(start, start + 20_000))
        assert ids(table) == sorted(expected)
        tables.clean(table, older_than=NOW, dry_run=False)
        assert tables.describe(table, older_than=NOW).leftovers == ()
        assert ids(table) == sorted(expected)
        assert [path for path in (local(table.location()) / "data").rglob(".*") if path.is_file()] == []
    assert killed


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_killed_writers_leave_the_old_or_the_new_snapshot(tmp_path: Path) -> None:
    kill_writers(tmp_path, 6)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_killed_writers_leave_the_old_or_the_new_snapshot_50_times(tmp_path: Path) -> None:
    kill_writers(tmp_path, 50)


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(100, 199)), st.tuples(st.just("delete"), st.integers(0, 12)),
        st.tuples(st.sampled_from(["compact", "overwrite"]), st.integers(200, 299)),
    ),
    min_size=1, max_size=3,
)


@settings(deadline=None, max_examples=share(0.5), phases=[Phase.explicit, Phase.generate])
@given(files=st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=4), min_size=2, max_size=4), changes=CHANGES)
def test_compaction_that_races_with_other_writers_loses_no_row(
    files: list[list[int]], changes: list[tuple[str, int]]
) -> None:
    with TemporaryDirectory() as folder:
        table = new_catalog(Path(folder)).create_table("db.t", schema=SCHEMA)
        model: list[int] = []
        for rows in files:
            tables.append(table, pa.table({"id": pa.array(rows, pa.int64())}))
            model += rows
        pending = [*changes]
        other = table.catalog.load_table(table.name())
        removes_files = False

        def change(*_: Any) -> None:
            nonlocal removes_files
            operations: dict[str, Callable[[int], Any]] = {
                "append": lambda value: tables.append(other, pa.table({"id": [value]})),
                "delete": lambda value: other.delete(f"id = {value}"),
                "compact": lambda _: tables.compact(other),
                "overwrite": lambda value: tables.overwrite(other, pa.table({"id": [value]})),
            }
            while pending:
                operation, value = pending.pop(0)
                if operation == "delete" and value not in model:
                    continue
                removes_files |= operation != "append"
                operations[operation](value)
                other.refresh()
                if operation == "append":
                    model.append(value)
                elif operation == "delete":
                    model[:] = [row for row in model if row != value]
                elif operation == "overwrite":
                    model[:] = [value]

        try:
            result = tables.compact(table, progress=change)
        except tables.TableConflictError:
            assert removes_files
        else:
            assert not removes_files
            assert (result.files_before, result.files_after) == (len(files), 1)
        assert ids(table) == sorted(model)
        assert tables.describe(table, older_than=NOW).leftovers == ()
