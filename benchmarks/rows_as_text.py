"""Rows of a Parquet file as CSV and as JSON lines: `pqext query` against DuckDB's COPY, as ratios.

    python benchmarks/rows_as_text.py [--rows 3000000] [--repeat 3]

The file has numbers, floats, text, instants, dates and booleans, by pyarrow. Both programs start for each run, write a
file and use all processors. Times are of the processor, the least of the repeats; those of the clock are printed too.
Fails when pqext takes more than 1.5 times as long as DuckDB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from recording import Recording

GOAL = 1.5
FORMATS = {"csv": "CSV", "json": "JSON lines"}


def make_table(rows: int) -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table({
        "id": np.arange(rows),
        "price": (random.random(rows) * 1000).round(2),
        "share": random.random(rows),
        "weight": random.random(rows).astype("f4"),
        "name": [f"name {n % 5000}" for n in range(rows)],
        "at": pa.array(random.integers(1_600_000_000_000_000, 1_700_000_000_000_000, rows), pa.timestamp("us", "UTC")),
        "day": pa.array(random.integers(18_000, 20_000, rows).astype("i4"), pa.date32()),
        "flag": random.random(rows) > 0.5,
    })


def run(command: list[str]) -> tuple[float, float]:
    """Seconds of the processor, and of the clock, of a process."""
    start = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    recording = Recording("Rows to text")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "rows.parquet"
        pq.write_table(make_table(options.rows), source, row_group_size=200_000)
        for suffix, name in FORMATS.items():
            ours, theirs = Path(folder) / f"ours.{suffix}", Path(folder) / f"theirs.{suffix}"
            copy = f"SET enable_progress_bar=false; COPY (FROM '{source}') TO '{theirs}' (FORMAT {suffix})"
            commands = {
                "pqext": [sys.executable, "-m", "pqext", "query", str(source), "--output", str(ours), "--force"],
                "DuckDB": [sys.executable, "-c", f"import duckdb; duckdb.execute({copy!r})"],
            }
            times = {engine: [run(command) for _ in range(options.repeat)] for engine, command in commands.items()}
            sums = "count(*), sum(id), sum(price::DECIMAL(9, 2)), sum(length(name))"
            read = [f"SELECT {sums} FROM read_{suffix}('{path}')" for path in (ours, theirs)]
            assert duckdb.execute(read[0]).fetchall() == duckdb.execute(read[1]).fetchall()
            least = {engine: min(processor for processor, _ in found) for engine, found in times.items()}
            clock = {engine: min(seconds for _, seconds in found) for engine, found in times.items()}
            for engine, seconds in least.items():
                recording.add(name, engine, seconds)
            recording.add_figure(f"{name}, clock", clock["pqext"] / clock["DuckDB"], "times DuckDB's", GOAL)
            ratios.append(least["pqext"] / least["DuckDB"])
            print(
                f"{name:10} pqext {least['pqext']:.2f} s, DuckDB {least['DuckDB']:.2f} s of the processor: "
                f"{ratios[-1]:.2f} times; of the clock {clock['pqext']:.2f} and {clock['DuckDB']:.2f} s, "
                f"load {os.getloadavg()[0]:.1f}"
            )
    if options.record:
        recording.save()
    return 0 if max(ratios) <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
