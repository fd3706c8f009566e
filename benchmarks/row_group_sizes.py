"""What the size of row groups costs: writing, file size, and reading times of pqext, DuckDB, polars and Spark.

    python benchmarks/row_group_sizes.py [--rows 2000000] [--repeat 3] [--no-spark] [--record]

A lineitem-like table of thirteen columns is written by pqext at each size. By the clock, with all processors, from a
warm file cache: reading all, and reading two columns of the rows that a selective filter on the sorted column keeps.
The default of ``WriteOptions.row_group_rows`` was chosen by this table.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import polars
from engine import lineitem
from recording import RESULTS, processor

import pqext
from pqext import col

SIZES = (30_000, 61_440, 122_880, 250_000, 1 << 19, 1 << 20, 1 << 21)
Jobs = dict[str, Callable[[], Any]]


def readers(path: Path, low: int, high: int, spark: Any) -> Jobs:
    """What each engine does with a file, by "all" and "few"."""
    kept = (col("orderkey") >= low) & (col("orderkey") < high)
    where = f"orderkey >= {low} AND orderkey < {high}"
    jobs: Jobs = {
        "pqext, all": lambda: pqext.read_table(path),
        "pqext, few": lambda: pqext.read_table(path, ["partkey", "comment"], filter=kept),
        "DuckDB, all": lambda: duckdb.sql(f"FROM read_parquet('{path}')").to_arrow_table(),
        "DuckDB, few": lambda: duckdb.sql(
            f"SELECT partkey, comment FROM read_parquet('{path}') WHERE {where}"
        ).to_arrow_table(),
        "polars, all": lambda: polars.read_parquet(path),
        "polars, few": lambda: polars.scan_parquet(path)
        .filter((polars.col("orderkey") >= low) & (polars.col("orderkey") < high))
        .select("partkey", "comment")
        .collect(),
    }
    if spark is not None:
        frame = spark.read.parquet(str(path))
        jobs["Spark, all"] = lambda: frame.write.format("noop").mode("overwrite").save()
        jobs["Spark, few"] = lambda: frame.where(where).select("partkey", "comment").toArrow()
    return jobs


def least(job: Callable[[], Any], repeat: int) -> float:
    """Seconds of the quickest call after a first one."""
    job()
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        job()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> int:
    """Print one line per size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    spark = None
    if not options.no_spark and find_spec("pyspark") is not None:
        from pqext.spark import local_session

        spark = local_session("row_group_sizes")
    table = lineitem(options.rows)
    keys = table["orderkey"].to_numpy()
    low, high = int(keys[options.rows // 2]), int(keys[options.rows // 2 + options.rows // 200])
    lines: list[str] = []

    def show(*cells: str) -> None:
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)

    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            path = Path(folder) / f"{size}.parquet"
            write = partial(pqext.write_table, table, path, row_group_rows=size)
            times = {"write": least(write, options.repeat)}
            times |= {name: least(job, options.repeat) for name, job in readers(path, low, high, spark).items()}
            if not lines:
                show("rows", "MB", *times)
                show(*["---:"] * (len(times) + 2))
            megabytes = path.stat().st_size / 1e6
            show(f"{size:,}", f"{megabytes:.1f}", *(f"{seconds * 1e3:.1f}" for seconds in times.values()))
    if options.record:
        about = f"Milliseconds by the clock: {processor()}, {os.cpu_count()} processors, {options.rows:,} rows."
        page = ["# Row group sizes", "", about, "", *lines, ""]
        (RESULTS / "row_group_sizes.md").write_text("\n".join(page), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
