"""Writers and readers of a store at work at once, and writers that are killed: facts are never lost or half written."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import skipping
from pqext.skipping import MinMax, Prefix, ValueList, open_store
from pqext.skipping.maintenance.construction import LocalIndexing

ROOT = Path(__file__).resolve().parents[2]
FILES = 24


def put(path: Path, number: int) -> None:
    pqext.write_table(pa.table({"x": [number], "s": [f"{number:03}"]}), path)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    for number in range(FILES):
        put(tmp_path / "t" / f"{number:02}.parquet", number)
    return tmp_path / "t"


def check(table: Path, store: Path, number: int) -> int:
    """The files that the store leaves out of a question; its answer is right."""
    known = open_store(store)
    assert pqext.scan(table, filter=pqext.col("x") == number, skipping=known).count() == 1
    assert known.latest is not None
    return known.latest.skipped


def test_refresh_merge_and_read_run_concurrently(table: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    skipping.build(str(table), [MinMax("x"), Prefix("s", length=3)], store)
    stop, faults = threading.Event(), list[BaseException]()

    def repeat(step: object) -> None:
        while not stop.is_set():
            try:
                assert callable(step)
                step()
            except BaseException as error:
                faults.append(error)
                return

    changed = iter(range(FILES, 1 << 20))

    def change() -> None:
        number = next(changed)
        put(table / f"{number % FILES:02}.parquet", number)
        skipping.refresh(table, store, threads=1)

    steps = [
        change, lambda: skipping.refresh(table, store, threads=1), lambda: skipping.compact(store, table),
        lambda: skipping.compact(store), lambda: check_any(table, store),
    ]  # fmt: skip
    threads = [threading.Thread(target=repeat, args=[step]) for step in steps]
    for one in threads:
        one.start()
    time.sleep(4)
    stop.set()
    for one in threads:
        one.join()
    assert faults == []
    skipping.refresh(table, store)
    skipping.compact(store, table)
    told = skipping.describe(store, table)
    assert (told.objects, told.rows, told.fresh, told.stale, told.parts) == (FILES, FILES, FILES, 0, 1)
    kept = pqext.read_table(table / "05.parquet").column("x")[0].as_py()
    assert check(table, store, kept) == FILES - 1


def check_any(table: Path, store: Path) -> None:
    """What a scan gives by a store is what it gives without: of a table that others change, a file that stays."""
    pqext.scan(table, filter=pqext.col("x") < 0, skipping=store).plan()


STEPS = {
    "refresh": "skipping.refresh(table, store, threads=1)",
    "compact": "skipping.compact(store, table)",
    "drop": "skipping.drop(store, [skipping.ValueList('x')])",
    "replace": "skipping.build(table, [skipping.MinMax('x'), skipping.ValueList('x')], store, overwrite=True)",
}


@pytest.mark.parametrize("rounds", [2, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("step", STEPS)
def test_killed_writer_leaves_the_previous_store(table: Path, tmp_path: Path, step: str, rounds: int) -> None:
    """The child does its step again and again until it is killed, at another moment each time."""
    store = tmp_path / "store"
    indexes = [MinMax("x"), ValueList("x"), Prefix("s", length=3)]
    skipping.build(str(table), indexes, store)
    code = (
        "import sys\nfrom pqext import skipping\ntable, store = sys.argv[1:]\nprint('on', flush=True)\n"
        f"while True:\n    try: {STEPS[step]}\n    except ValueError: pass\n"
    )
    moments = random.Random(step)
    for round in range(rounds):
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(table), str(store)], stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert child.stdout is not None
        child.stdout.readline()
        if step == "refresh":
            put(table / f"{round:02}.parquet", round + 1000)
        time.sleep(moments.uniform(0, 0.6))
        child.kill()
        child.wait()
        child.stdout.close()
        skipped = check(table, store, FILES - 1)
        assert skipped >= FILES - 2 - round if step == "refresh" else skipped == FILES - 1
    skipping.refresh(table, store)
    skipping.compact(store, table)
    told = skipping.describe(store, table)
    assert (told.objects, told.rows, told.fresh, told.stale) == (FILES, FILES, FILES, 0)
    assert check(table, store, FILES - 1) == FILES - 1


def test_two_concurrent_builds_leave_one_store(table: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    faults: list[BaseException] = []

    def build() -> None:
        try:
            skipping.build(str(table), [MinMax("x")], store)
        except FileExistsError:
            pass
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=build) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert faults == []
    assert check(table, store, 3) == FILES - 1
    skipping.compact(store)
    told = skipping.describe(store)
    assert (told.objects, told.rows) == (FILES, FILES)


def test_concurrent_builds_of_two_tables_in_one_folder_reject_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other build ends while this one looks at its files."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        put(tmp_path / name / "a.parquet", 1)
    plain, place = LocalIndexing.add, tmp_path / "store"

    def add(self: LocalIndexing, *arguments: Any) -> Any:
        monkeypatch.setattr(LocalIndexing, "add", plain)
        skipping.build(tmp_path / "other", [MinMax("x")], place)
        return plain(self, *arguments)

    monkeypatch.setattr(LocalIndexing, "add", add)
    with pytest.raises(FileExistsError, match="a store of another table was built"):
        skipping.build(tmp_path / "one", [MinMax("x")], place)
    assert check(tmp_path / "other", place, 1) == 0
    plan = pqext.scan(tmp_path / "other", filter="x > 5", skipping=place).plan()
    assert [task.prune_reason is None for task in plan] == [
        False
    ]
