"""What planning costs Spark's driver: 10,000 files of 100 MB each, of which only footers and page indexes exist.

    python benchmarks/spark_planning.py [--files 10000] [--templates 10] [--record]

A terabyte by its listing: every file is a copy of one of some real ones, with holes where its pages were, in hive
folders of a day each. Nothing reads the holes, for only plans are made: which row groups, pages and bytes, cut into
tasks as Spark gets them. By the clock, from a warm file cache; memory is what the process has taken at most. The size
of the tasks is what the driver pickles for the executors.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pickle
import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from recording import Recording

import pqext
from pqext import col
from pqext.spark import explain_read

ROWS = 6_000_000
DAYS = 100
UPPER = 64 << 20
"""Bytes of a task at most, the default of reads."""


def template(number: int, path: Path) -> None:
    """A file of about 100 MB in row groups of the default size."""
    chance = np.random.default_rng(number)
    first = number * ROWS
    table = pa.table(
        {
            "id": np.arange(first, first + ROWS),
            "user": chance.integers(0, 1 << 40, ROWS),
            "value": chance.random(ROWS),
            "kind": pa.array(chance.integers(0, 30, ROWS).astype(str)).dictionary_encode().cast(pa.string()),
        }
    )
    pqext.write_table(table, path, compression="zstd")


def kept_bytes(path: Path) -> tuple[int, bytes]:
    """The size of a file, and all of it behind its last page."""
    with pqext.open(path) as file:
        chunks = [group.chunk(leaf) for group in file.row_groups for leaf in range(len(file.schema.leaves))]
        end = max(sum(chunk.byte_range) for chunk in chunks)
    data = path.read_bytes()
    return len(data), data[end:]


def holed(path: Path, size: int, tail: bytes) -> None:
    """A file of ``size`` bytes of which only the first four and the last exist."""
    with path.open("wb") as file:
        file.write(b"PAR1")
        file.truncate(size)
        file.seek(size - len(tail))
        file.write(tail)


def make(folder: Path, files: int, templates: int) -> int:
    """The folder of ``files`` files; their bytes altogether."""
    total = 0
    known = []
    for number in range(templates):
        real = folder.parent / "real.parquet"
        template(number, real)
        known.append(kept_bytes(real))
    for day in range(DAYS):
        (folder / f"day={day}").mkdir(parents=True)
    for number in range(files):
        size, tail = known[number % templates]
        holed(folder / f"day={number % DAYS}" / f"{number:06}.parquet", size, tail)
        total += size
    return total


def main() -> int:
    """Print and record one line a question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--templates", type=int, default=10)
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    recording = Recording("Planning a terabyte for Spark", "seconds by the clock")
    wanted = ROWS * options.templates // 2
    questions: dict[str, Any] = {
        "all rows": None,
        "one day of 100": col("day") == 7,
        "0.1 % of the ids": (col("id") >= wanted) & (col("id") < wanted + ROWS * options.templates // 1000),
        "one id of one day": (col("day") == 7) & (col("id") == 7 * ROWS),
        "value < 0.5, which no statistics refuse": col("value") < 0.5,
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "events")
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:  # whose memory does not count
            total = other.submit(make, folder, options.files, options.templates).result()
        exists = sum(os.stat(Path(root, name)).st_blocks * 512 for root, _, names in os.walk(folder) for name in names)
        print(f"{options.files:,} files, {total / 1e9:,.0f} GB, of which {exists / 1e6:,.0f} MB exist")
        print(f"{'question':42}{'s':>8}{'us/file':>9}{'files':>8}{'row groups':>12}{'GB':>8}{'tasks':>8}{'MB sent':>9}")
        for name, where in questions.items():
            begin = time.perf_counter()
            plan = explain_read(str(folder), where=where)
            slices = plan.slices(UPPER)
            taken = time.perf_counter() - begin
            sent = sum(len(pickle.dumps(one)) for one in slices)
            files = sum(bool(task.kept_row_groups) for task in plan.tasks)
            print(
                f"{name:42}{taken:8.2f}{taken / options.files * 1e6:9.0f}{files:8,}{plan.row_groups:12,}"
                f"{plan.bytes / 1e9:8.1f}{len(slices):8,}{sent / 1e6:9.2f}", flush=True,
            )  # fmt: skip
            recording.add(name, "pqext", taken)
        print(f"memory at most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")
    if options.record:
        recording.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
