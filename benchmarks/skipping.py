"""What a data-skipping store costs and spares over many small files: pqext, with and without one.

    python benchmarks/skipping.py [--files 10000] [--repeat 3] [--record]

A folder of files with ten columns and a hundred rows each, in one row group, as in `many_files.py`. By the clock, from
a warm file cache: building the store from footers, the first time and where one file in a hundred has changed since,
with the memory that the process takes at most; listing the files alone; planning a query that one file answers, by
opening every footer, through a store that is opened for it, and through one that is open already. The ratio is the time
by footers, listing included, over that through the store.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from many_files import ROWS, write
from recording import Recording

import pqext
from pqext import col, skipping
from pqext.dataset.files.sources import find_sources

RATIO = 50
"""How many times as quick a plan through the store is to be."""


def least(job: Callable[[], Any], repeat: int) -> float:
    """Seconds of the quickest of some calls."""
    found = []
    for _ in range(repeat):
        begin = time.perf_counter()
        job()
        found.append(time.perf_counter() - begin)
    return min(found)


def peak() -> float:
    """The most memory that this process has taken, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    recording = Recording(f"a store of {options.files:,} files", "seconds")
    with tempfile.TemporaryDirectory() as folder:
        table, store = Path(folder) / "table", Path(folder) / "store"
        table.mkdir()
        write(table, options.files, differ=False)
        indexes = [skipping.MinMax("id"), skipping.MinMax("key"), skipping.NullCount("id")]
        before = peak()
        begin = time.perf_counter()
        summary = skipping.build(table, indexes, store)
        built = time.perf_counter() - begin
        grown = peak() - before
        size = sum(one.stat().st_size for one in store.rglob("*.parquet"))
        for path in sorted(table.iterdir())[::100]:
            os.utime(path, (1e9, 1e9))
        begin = time.perf_counter()
        refreshed = skipping.refresh(table, store)
        again = time.perf_counter() - begin
        point = col("id") == options.files * ROWS // 2
        opened = skipping.open_store(store)
        listing = least(lambda: find_sources(table), options.repeat)
        footers = least(lambda: pqext.scan(table, filter=point).plan(), options.repeat)
        arrow = least(lambda: [*ds.dataset(table).get_fragments(ds.field("id") == -1)], options.repeat)
        through = least(lambda: pqext.scan(table, filter=point, skipping=store).plan(), options.repeat)
        kept = least(lambda: pqext.scan(table, filter=point, skipping=opened).plan(), options.repeat)
        answered = least(lambda: pqext.scan(table, filter=point, skipping=opened).to_table(), options.repeat)
        read = sum(task.prune_reason is None for task in pqext.scan(table, filter=point, skipping=opened).plan())
    rows: list[tuple[str, float, str, float | None]] = [
        ("build from footers", built, "s", None),
        ("memory of building", grown, "MB", None),
        ("refresh, 1 % changed", again, "s", None),
        ("size of the store", size / 1e6, "MB", None),
        ("listing the files", listing * 1e3, "ms", None),
        ("plan by footers", footers * 1e3, "ms", None),
        ("plan through the store, opened for it", through * 1e3, "ms", None),
        ("plan through the store, open", kept * 1e3, "ms", None),
        ("one row through the store, open", answered * 1e3, "ms", None),
        ("ratio of plans, store opened for it", footers / through, "times", RATIO),
        ("ratio of plans, store open", footers / kept, "times", RATIO),
        ("ratio of plans, store open, listing aside", (footers - listing) / (kept - listing), "times", RATIO),
    ]
    print(f"{summary}; refreshed: {refreshed}; files left by the store: {read}; pyarrow lists fragments: {arrow:.3f} s")
    print("| case | figure |")
    print("|---|---:|")
    for case, figure, unit, goal in rows:
        print(f"| {case} | {figure:,.4g} {unit} |")
        if goal is not None:
            recording.add_figure(case, figure, unit, goal)
    if options.record:
        recording.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
