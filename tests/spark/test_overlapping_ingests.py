"""Ingests of the same files at the same time, or a second time: no row is added twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from remote.conftest import S3, s3, server
from spark.sessions import QUICK_JAVA, QUICK_WORKERS

import pqext
from pqext.dataset.writing.store_target import StoreTarget
from pqext.dataset.writing.targets import FolderTarget
from pqext.spark import ingest_json

__all__ = ["s3", "server"]

ROWS = 200
ROUNDS = int(os.environ.get("PQEXT_INGEST_ROUNDS", "10"))
"""How often the slow test repeats each case."""


@pytest.fixture(params=["folder", "store"])
def dest(request: Any, tmp_path: Path) -> tuple[str, dict[str, Any] | None]:
    """A target and its storage options."""
    if request.param == "folder":
        return str(tmp_path / "out"), None
    server: S3 = request.getfixturevalue("s3")
    return "s3://bucket/data/out", server.options


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in range(2):
        (folder / f"{name}.json").write_text("".join(f'{{"id": {name * ROWS + row}}}\n' for row in range(ROWS)))
    return folder


def identifiers(dest: tuple[str, dict[str, Any] | None]) -> list[int]:
    pqext.clear_cache()
    path, options = dest
    column = pqext.col("value").variant("$.id", "int64").alias("id")
    return sorted(pqext.read_table(path, [column], storage_options=options)["id"].to_pylist())


def before_commits(monkeypatch: pytest.MonkeyPatch, wait: Callable[[], object]) -> None:
    """Have all jobs call ``wait`` when their tasks are done."""
    for target in (FolderTarget, StoreTarget):
        commit = target.commit

        def delayed(self: Any, *arguments: Any, commit: Any = commit, **keywords: Any) -> None:
            wait()
            commit(self, *arguments, **keywords)

        monkeypatch.setattr(target, "commit", delayed)


@pytest.mark.spec("spark.ingest.once")
@pytest.mark.parametrize("jobs", [2, 3])
def test_overlapping_ingests_of_one_file_add_its_rows_once(
    spark: Any, source: Path, dest: Any, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, options = dest
    barrier = threading.Barrier(jobs)
    waits: Iterator[Callable[[], object]] = iter([barrier.wait] * jobs)
    before_commits(monkeypatch, lambda: next(waits, lambda: None)())

    def ingest(_: int) -> Any:
        return ingest_json(spark, str(source), path, "id BIGINT", storage_options=options)

    with ThreadPoolExecutor(jobs) as pool:
        done = list(pool.map(ingest, range(jobs)))
    assert sorted(one.rows for one in done) == [0] * (jobs - 1) + [2 * ROWS]
    assert sorted(len(one.skipped) for one in done) == [0] + [2] * (jobs - 1)
    assert identifiers(dest) == [*range(2 * ROWS)]


@pytest.mark.slow
@pytest.mark.spec("spark.ingest.once")
def test_jobs_of_threads_and_drivers_add_each_row_once_in_many_rounds() -> None:
    program = Path(__file__).parents[1] / "stress" / "overlapping_ingests.py"
    done = subprocess.run(
        [sys.executable, str(program), "--rounds", str(ROUNDS)], capture_output=True, text=True,
        env=os.environ | QUICK_JAVA | QUICK_WORKERS,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    cases = [line.partition(":")[0] for line in done.stdout.splitlines() if f": {ROUNDS} rounds, " in line]
    assert cases == ["2 threads", "3 threads", "2 drivers", "3 drivers", "a stalled driver"]


@pytest.mark.spec("spark.ingest.once")
def test_stalled_job_adds_only_files_that_no_other_job_added(
    spark: Any, source: Path, dest: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, options = dest
    stalled, wakes = threading.Event(), threading.Event()

    def stall() -> None:
        if not stalled.is_set():
            stalled.set()
            assert wakes.wait(60)

    before_commits(monkeypatch, stall)
    with ThreadPoolExecutor(1) as pool:
        zombie = pool.submit(ingest_json, spark, str(source), path, "id BIGINT", storage_options=options)
        assert stalled.wait(60)
        second = ingest_json(spark, str(source / "1.json"), path, "id BIGINT", storage_options=options)
        wakes.set()
        first = zombie.result()
    assert [(Path(file.path).name, file.rows) for file in (*second.files, *first.files)] == [
        ("1.json", ROWS), ("0.json", ROWS),
    ]
    assert [Path(name).name for name in first.skipped] == ["1.json"]
    assert identifiers(dest) == [*range(2 * ROWS)]
    if options is None:
        assert not [name for name in os.listdir(path) if "temporary" in name]


@pytest.mark.spec("spark.ingest.once")
def test_job_overtaken_by_an_overwrite_adds_the_files_it_would_skip(
    spark: Any, source: Path, dest: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, options = dest
    other = source.parent / "other.json"
    other.write_text('{"id": -1}\n')

    def ingest(files: Path, **arguments: Any) -> Any:
        return ingest_json(spark, str(files), path, "id BIGINT", storage_options=options, **arguments)

    ingest(source / "0.json")
    waits = iter([lambda: ingest(other, mode="overwrite")])
    before_commits(monkeypatch, lambda: next(waits, lambda: None)())
    overtaken = ingest(source)
    assert ([*overtaken.skipped], overtaken.rows) == ([], 2 * ROWS)
    assert identifiers(dest) == [-1, *range(2 * ROWS)]  # as if it had begun after the overwrite


@pytest.mark.spec("spark.ingest.store")
def test_job_overtaken_between_check_and_decision_is_void(
    spark: Any, source: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    dest = ("s3://bucket/data/out", s3.options)
    last_job, jobs = StoreTarget._last_job, []

    def ingest() -> Any:
        return ingest_json(spark, str(source), dest[0], "id BIGINT", storage_options=dest[1])

    def overtaken(self: StoreTarget) -> Any:
        last = last_job(self)
        if not jobs:
            jobs.append(None)  # only once
            jobs[0] = ingest()
        return last

    monkeypatch.setattr(StoreTarget, "_last_job", overtaken)
    assert (ingest().rows, jobs[0].rows) == (0, 2 * ROWS)
    assert identifiers(dest) == [*range(2 * ROWS)]


@pytest.mark.spec("spark.ingest.same-file")
def test_file_is_identified_by_content_and_path(spark: Any, source: Path, tmp_path: Path) -> None:
    dest = (str(tmp_path / "out"), None)

    def ingest(path: Any = source) -> Any:
        return ingest_json(spark, str(path), dest[0], "id BIGINT", task_bytes=500)

    assert ingest().rows == 2 * ROWS
    for file in source.iterdir():
        os.utime(file, ns=(1, file.stat().st_mtime_ns + 10**9))
    assert (ingest().rows, ingest(f"{source}/./0.json").rows, ingest(f"{source}/../in/0.json").rows) == (0, 0, 0)
    (tmp_path / "link").symlink_to(source)
    assert (ingest(f"/{source}/1.json").rows, ingest(tmp_path / "link").rows) == (0, 0)
    twice = ingest_json(spark, [f"/{source}/1.json", f"{tmp_path}/link/*.json"], str(tmp_path / "other"), None)
    assert (len(twice.files), twice.rows) == (2, 2 * ROWS)
    changed = (source / "0.json").read_text().replace('"id": 0}', '"id": 9}', 1)
    (source / "0.json").write_text(changed)  # of the same size
    assert ingest().rows == ROWS
    expected = [json.loads(line)["id"] for line in changed.splitlines()] + [*range(2 * ROWS)]
    assert identifiers(dest) == sorted(expected)


@pytest.mark.spec("spark.ingest.arguments")
def test_different_arguments_for_ingested_files_are_rejected(spark: Any, source: Path, tmp_path: Path) -> None:
    dest = (str(tmp_path / "out"), None)

    def ingest(schema: Any = "id BIGINT", **arguments: Any) -> Any:
        return ingest_json(spark, str(source), dest[0], schema, **arguments)

    assert ingest(compression="zstd").rows == 2 * ROWS
    assert ingest(compression="zstd", encodings="auto", threads=2, task_bytes=100).skipped  # which change no file
    for arguments, difference in (
        ({}, r"compression was zstd and is the default"),
        ({"compression": "zstd", "numbers": "double"}, r"numbers was decimal and is double"),
        ({"compression": "zstd", "schema": "id STRING"}, r'schema was .*id: BIGINT.* and is .*id: STRING.*'),
        ({"compression": "zstd", "column": "other"}, r"column was value and is other"),
    ):
        with pytest.raises(ValueError, match=rf'2 input files, .*0\.json first, .*\({difference}\): .*again=True'):
            ingest(**arguments)
    assert len(ingest(on_changed_arguments="skip").skipped) == 2
    (source / "2.json").write_text('{"id": 400}\n')
    assert ingest(on_changed_arguments="skip").rows == 1
    assert identifiers(dest) == [*range(2 * ROWS + 1)]
    with pytest.raises(ValueError, match="on_changed_arguments must be one of 'raise', 'skip'"):
        ingest(on_changed_arguments="ignore")
    assert ingest(mode="overwrite").rows == 2 * ROWS + 1


@pytest.mark.spec("spark.ingest.arguments")
def test_only_arguments_that_change_rows_are_compared(spark: Any, source: Path, tmp_path: Path) -> None:
    dest = str(tmp_path / "out")

    def ingest(**arguments: Any) -> Any:
        return ingest_json(spark, f"{source}/{arguments.pop('file', '0.json')}", dest, "id BIGINT", **arguments)

    assert ingest().rows == ROWS
    assert len(ingest(on_error="skip").skipped) == len(ingest(on_error="null").skipped) == 1  # no document has a fault
    with pytest.raises(ValueError, match=r"arguments \(partition_by was \[\] and is [^)]*\): ") as caught:
        ingest(partition_by={"id": ("$.id", "bigint")})
    assert "time zone" not in str(caught.value)
    (source / "bad.json").write_text('{"id": 1}\n{"id"\n')
    assert ingest(file="bad.json", on_error="skip").rows == 1
    assert len(ingest(file="bad.json", on_error="skip").skipped) == 1
    with pytest.raises(ValueError, match=r"other arguments \(on_error was skip and is null\)"):
        ingest(file="bad.json", on_error="null")
