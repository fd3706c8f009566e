"""Planning 1,000 and 10,000 files by their footers: time and memory, of files here and in a store that answers late.

    python benchmarks/planning_files.py [--files 1000 10000] [--latency 0.02] [--record]

Each case runs in a process of its own, which plans a lookup by statistics for the first time: by the clock, with the
files in the page cache. The store is a file system of fsspec that waits before each answer. Memory is what the process
has taken at most beyond what it took before, and goes to the plan itself, the footers that are held while the next ones
are fetched and, of the store, the cache of footers, which ``pqext.set_cache_bytes`` bounds. The most requests that were
under way at once stand beside it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem
from many_files import ROWS, write
from recording import Recording

import pqext
from pqext import col

MEGABYTES = 64
"""What planning may take beyond what the process took before, however many files there are."""


class Late(LocalFileSystem):
    """Local files, each answer late; as of a file system of which several requests may be under way."""

    protocol = "late"
    local_file = False
    async_impl = True
    latency = 0.0
    _lock = threading.Lock()
    under_way = most = 0

    def cat_file(self, path: str, start: Any = None, end: Any = None, **keywords: Any) -> bytes:
        """The bytes of a range, after a while."""
        kind = type(self)
        with kind._lock:
            kind.under_way += 1
            kind.most = max(kind.most, kind.under_way)
        time.sleep(self.latency)
        try:
            return super().cat_file(path, start=start, end=end, **keywords)
        finally:
            with kind._lock:
                kind.under_way -= 1


def taken() -> float:
    """Megabytes that this process has taken at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def plan(folder: Path, files: int, latency: float) -> tuple[float, float, int]:
    """Seconds, megabytes and requests at once of planning; without ``latency`` of local files."""
    paths = [str(path) for path in sorted(folder.iterdir())[:files]]
    Late.latency = latency
    options = {"filesystem": Late()} if latency else {}
    before, begin = taken(), time.perf_counter()
    tasks = pqext.scan(paths, filter=col("id") == ROWS * files // 2, **options).plan()
    seconds = time.perf_counter() - begin
    assert sum(bool(task.kept_row_groups) for task in tasks) == 1
    return seconds, taken() - before, Late.most


def main() -> int:
    """Print and record a line a case; 1 where memory is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, nargs="+", default=(1_000, 10_000))
    parser.add_argument("--latency", type=float, default=0.02, help="seconds before each answer of the store")
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    recording = Recording("Planning many files", "seconds by the clock")
    most = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, max(options.files), differ=False)
        for latency in (0.0, options.latency):
            for files in options.files:
                with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
                    seconds, memory, at_once = other.submit(plan, folder, files, latency).result()
                case = f"{files:,} {f'files, answers after {latency * 1e3:.0f} ms' if latency else 'local files'}"
                print(f"{case:40}{seconds:8.2f} s{memory:8.1f} MB{at_once:5} requests at once", flush=True)
                recording.add(case, "pqext", seconds)
                recording.add_figure(f"memory: {case}", memory, "MB", MEGABYTES)
                most = max(most, memory)
    if options.record:
        recording.save()
    return int(most > MEGABYTES)


if __name__ == "__main__":
    sys.exit(main())
