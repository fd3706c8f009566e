"""Ingests that overlap, and drivers that stall before their commit, in many rounds: each row is added once.

``python tests/stress/overlapping_ingests.py --rounds 50`` ends with an error at the first folder with other rows. Jobs
overlap in threads of a driver, and in drivers of their own.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pqext
from pqext.dataset.writing.targets import FolderTarget
from pqext.spark import ingest_json, local_session

_commits = threading.local()


def check(dest: Path, rows: int, case: str) -> None:
    """End the program unless each row is there once."""
    column = pqext.col("value").variant("$.id", "int64").alias("id")
    found = sorted(pqext.read_table(dest, [column])["id"].to_pylist())
    if found != [*range(rows)]:
        sys.exit(f"{case}: {len(found):,} rows of {rows:,}")


def ingest(spark: Any, source: str, dest: str) -> tuple[int, int]:
    """Return the number of rows that a job adds, and of its attempts to commit."""
    _commits.count = 0
    rows = ingest_json(spark, source, dest, "id BIGINT").rows
    return rows, _commits.count


def count_commits(before_commit: Any = None) -> None:
    """Have all jobs count their attempts to commit, and call ``before_commit`` before each."""
    commit = FolderTarget.commit

    def counted(self: FolderTarget, *arguments: Any, **keywords: Any) -> None:
        _commits.count = getattr(_commits, "count", 0) + 1
        if before_commit is not None:
            before_commit()
        commit(self, *arguments, **keywords)

    FolderTarget.commit = counted  # type: ignore[method-assign]


class Driver:
    """Another driver, which ingests a file into a folder, and on request stops before its commit until it is woken."""

    def __init__(self) -> None:
        command = [sys.executable, __file__, "--driver"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def begin(self, source: Path, dest: Path, stalls: bool = False) -> None:
        """Begin a job; if it ``stalls``, return when the driver has stopped before the commit."""
        print(source, dest, int(stalls), sep="\t", file=self._process.stdin, flush=True)
        if stalls:
            self._read("stalls")
            _, status = os.waitpid(self._process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)

    def wake(self) -> None:
        """Let a stalled driver continue with its commit."""
        os.kill(self._process.pid, signal.SIGCONT)

    def result(self) -> tuple[int, int]:
        """Wait for the end of the job, and return its rows and attempts to commit."""
        rows, commits = self._read("done")
        return int(rows), int(commits)

    def end(self) -> None:
        """End the driver."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(120)

    def _read(self, word: str) -> list[str]:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if line.split()[:1] == [word]:
                return line.split()[1:]
        sys.exit(f"a driver ended before it printed {word!r}")


def drive() -> None:
    """Ingest the files that standard input names, one job a line."""
    job = {"stalls": False}

    def stall() -> None:
        if job["stalls"]:
            job["stalls"] = False
            print("stalls", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)

    count_commits(stall)
    spark = local_session("another driver", cores="local[1]", conf={"spark.ui.enabled": "false"})
    for line in sys.stdin:
        source, dest, stalls = line.rstrip("\n").split("\t")
        job["stalls"] = stalls == "1"
        print("done", *ingest(spark, source, dest), flush=True)
    spark.stop()


def in_threads(spark: Any, source: Path, dest: Path, jobs: int) -> list[tuple[int, int]]:
    """Ingest in threads that begin together."""
    barrier = threading.Barrier(jobs)

    def run(_: int) -> tuple[int, int]:
        barrier.wait()
        return ingest(spark, str(source), str(dest))

    with ThreadPoolExecutor(jobs) as pool:
        return [*pool.map(run, range(jobs))]


def in_drivers(spark: Any, source: Path, dest: Path, drivers: list[Driver]) -> list[tuple[int, int]]:
    """Ingest in this driver and in others that begin together."""
    for driver in drivers:
        driver.begin(source, dest)
    return [ingest(spark, str(source), str(dest)), *(driver.result() for driver in drivers)]


def with_stalled_driver(spark: Any, source: Path, dest: Path, driver: Driver) -> list[tuple[int, int]]:
    """Ingest in a driver that wakes before its commit when this driver has committed."""
    driver.begin(source, dest, stalls=True)
    first = ingest(spark, str(source), str(dest))
    driver.wake()
    return [first, driver.result()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50, help="rounds of each case")
    parser.add_argument("--rows", type=int, default=2_000, help="rows of the file")
    parser.add_argument("--driver", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.driver:
        drive()
        return
    count_commits()
    overlaps: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="overlapping-ingests-") as folder:
        source = Path(folder, "in.json")
        source.write_text("".join(f'{{"id": {row}}}\n' for row in range(options.rows)))
        drivers = [Driver(), Driver()]
        spark = local_session("overlapping ingests", cores="local[2]", conf={"spark.ui.enabled": "false"})
        cases: dict[str, Any] = {
            "2 threads": lambda dest: in_threads(spark, source, dest, 2),
            "3 threads": lambda dest: in_threads(spark, source, dest, 3),
            "2 drivers": lambda dest: in_drivers(spark, source, dest, drivers[:1]),
            "3 drivers": lambda dest: in_drivers(spark, source, dest, drivers),
            "a stalled driver": lambda dest: with_stalled_driver(spark, source, dest, drivers[0]),
        }
        for number in range(options.rounds):
            started = time.monotonic()
            for case, run in cases.items():
                dest = Path(folder, f"{number} {case}")
                jobs = run(dest)
                if sorted(rows for rows, _ in jobs) != [0] * (len(jobs) - 1) + [options.rows]:
                    sys.exit(f"{case}: the jobs report {jobs}")
                check(dest, options.rows, case)
                overlaps[case] = overlaps.get(case, 0) + any(commits for rows, commits in jobs if not rows)
            print(f"round {number + 1}: {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
        for driver in drivers:
            driver.end()
        spark.stop()
    for case, count in overlaps.items():
        print(f"{case}: {options.rounds} rounds, {options.rows:,} rows in each, {count} with a commit that came second")


if __name__ == "__main__":
    main()
