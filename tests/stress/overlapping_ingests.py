"""Ingests that overlap, and drivers that stall before their commit, many times: no row may be there twice.

``python tests/stress/overlapping_ingests.py --times 50`` ends with an error at the first folder with other rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pqext
from pqext.dataset.writing.targets import FolderTarget
from pqext.spark import ingest_json, local_session

ROWS = 20_000


def check(dest: Path, what: str) -> None:
    """End the program unless each row is there once."""
    column = pqext.col("value").variant("$.id", "int64").alias("id")
    found = sorted(pqext.read_table(dest, [column])["id"].to_pylist())
    if found != [*range(ROWS)]:
        sys.exit(f"{what}: {len(found):,} rows of {ROWS:,}")


def overlap(spark: Any, source: Path, dest: Path, jobs: int) -> None:
    """Ingest in threads that begin together."""
    barrier = threading.Barrier(jobs)

    def ingest(_: int) -> int:
        barrier.wait()
        return ingest_json(spark, str(source), str(dest), "id BIGINT").rows

    with ThreadPoolExecutor(jobs) as pool:
        assert sum(pool.map(ingest, range(jobs))) == ROWS
    check(dest, f"{jobs} jobs")


class Zombie:
    """Another driver, which stops itself before each commit until it is woken."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--zombie"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def begin(self, source: Path, dest: Path) -> None:
        """Return when the driver has stopped before its commit."""
        print(source, dest, sep="\t", file=self._process.stdin, flush=True)
        self._expect("stalls")
        _, status = os.waitpid(self._process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def wake(self) -> None:
        """Return when the driver has ended its job."""
        os.kill(self._process.pid, signal.SIGCONT)
        self._expect("done 0")

    def end(self) -> None:
        """End the driver."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _expect(self, text: str) -> None:
        assert self._process.stdout is not None
        while (line := self._process.stdout.readline().strip()) != text:
            if not line or line.startswith("done"):
                sys.exit(f"the stalled driver answers {line!r}, not {text!r}")


def be_zombie() -> None:
    """Ingest what standard input names, and stop before each commit."""
    commit = FolderTarget.commit

    def stalled(self: FolderTarget, *arguments: Any, **keywords: Any) -> None:
        print("stalls", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
        commit(self, *arguments, **keywords)

    FolderTarget.commit = stalled  # type: ignore[method-assign]
    spark = local_session("stalled driver", cores="local[1]")
    for line in sys.stdin:
        source, dest = line.rstrip("\n").split("\t")
        print("done", ingest_json(spark, source, dest, "id BIGINT").rows, flush=True)
    spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50, help="repetitions of each case")
    parser.add_argument("--zombie", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.zombie:
        be_zombie()
        return
    folder = Path(tempfile.mkdtemp(prefix="overlapping-ingests-"))
    source = folder / "in.json"
    source.write_text("".join(f'{{"id": {row}}}\n' for row in range(ROWS)))
    zombie, spark = Zombie(), local_session("overlapping ingests", cores="local[2]")
    for number in range(chosen.times):
        for jobs in (2, 3):
            overlap(spark, source, folder / f"{number}-{jobs}", jobs)
        dest = folder / f"{number}-zombie"
        zombie.begin(source, dest)
        assert ingest_json(spark, str(source), str(dest), "id BIGINT").rows == ROWS
        zombie.wake()
        check(dest, "a stalled driver")
    print(f"{chosen.times} times 2 jobs, 3 jobs and a stalled driver: {ROWS:,} rows each time")
    zombie.end()
    spark.stop()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
