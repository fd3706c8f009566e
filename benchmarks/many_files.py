"""What each of many small files costs: pqext, pyarrow.dataset, polars and DuckDB, in microseconds per file.

    python benchmarks/many_files.py [--files 10000] [--repeat 3] [--record]

A folder of files with ten columns and a hundred rows each, in one row group. By the clock, with all processors, from a
warm file cache: counting rows, planning with reasons in full (pqext alone), looking up one row by a column whose
statistics refuse all other files, reading one column of all, and the lookup in files whose schemas differ. Lines with
``_metadata`` are of a folder with a summary, which only pqext finds by itself, all others from footers. The last
column is the time of the quickest peer divided by that of pqext. Behind each time by the clock stands that of the
processor, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from recording import Recording

import pqext
from pqext import col

Jobs = dict[str, dict[str, Callable[[], Any]]]
ENGINES = ("pqext", "pyarrow", "polars", "DuckDB")
ROWS = 100
PLAN_MICROSECONDS = 150
"""What planning a file with all reasons may take."""


def write(folder: Path, files: int, *, differ: bool) -> None:
    """Files of ``ROWS`` rows; where they ``differ``, every second has wider numbers and another column."""
    for number in range(files):
        is_other = differ and number % 2
        ids = pa.array(range(number * ROWS, number * ROWS + ROWS), pa.int64() if is_other or not differ else pa.int32())
        columns = {"id": ids, "key": [number] * ROWS, "text": [f"s{row}" for row in range(ROWS)]}
        columns |= {f"x{place}": [float(place)] * ROWS for place in range(7 + bool(is_other))}
        pq.write_table(pa.table(columns), folder / f"{number:06}.parquet")


def jobs(one: Path, noted: Path, mixed: Path, wanted: int) -> Jobs:
    """What is measured, by case and engine."""
    files, both = f"'{one}/*.parquet'", f"'{mixed}/*.parquet'"
    point = col("id") == wanted
    return {
        "count": {
            "pqext": lambda: pqext.scan(one).count(),
            "pyarrow": lambda: ds.dataset(one).count_rows(),
            "polars": lambda: polars.scan_parquet(one / "*.parquet").select(polars.len()).collect(),
            "DuckDB": lambda: duckdb.sql(f"SELECT count(*) FROM {files}").fetchall(),
        },
        "count, _metadata": {"pqext": lambda: pqext.scan(noted).count()},
        "plan": {"pqext": lambda: pqext.scan(one, filter=point).plan()},
        "plan, _metadata": {"pqext": lambda: pqext.scan(noted, filter=point).plan()},
        "one row": {
            "pqext": lambda: pqext.scan(one, filter=point).to_table(),
            "pyarrow": lambda: ds.dataset(one).to_table(filter=ds.field("id") == wanted),
            "polars": lambda: polars.scan_parquet(one / "*.parquet").filter(polars.col("id") == wanted).collect(),
            "DuckDB": lambda: duckdb.sql(f"FROM {files} WHERE id = {wanted}").to_arrow_table(),
        },
        "one row, _metadata": {
            "pqext": lambda: pqext.scan(noted, filter=point).to_table(),
            "pyarrow": lambda: ds.parquet_dataset(str(noted / "_metadata")).to_table(filter=ds.field("id") == wanted),
        },
        "one column": {
            "pqext": lambda: pqext.scan(one, ["id"]).to_table(),
            "pyarrow": lambda: ds.dataset(one).to_table(columns=["id"]),
            "polars": lambda: polars.scan_parquet(one / "*.parquet").select("id").collect(),
            "DuckDB": lambda: duckdb.sql(f"SELECT id FROM {files}").to_arrow_table(),
        },
        "one row, union": {
            "pqext": lambda: pqext.scan(mixed, filter=point, schema="union").to_table(),
            "DuckDB": lambda: duckdb.sql(
                f"FROM read_parquet({both}, union_by_name = true) WHERE id = {wanted}"
            ).to_arrow_table(),
        },
    }


def least(by_engine: dict[str, Callable[[], Any]], repeat: int) -> dict[str, tuple[float, float]]:
    """Seconds by the clock and of the processor of each engine's quickest calls after a first one, all in turn."""
    clock: dict[str, list[float]] = {engine: [] for engine in by_engine}
    processor: dict[str, list[float]] = {engine: [] for engine in by_engine}
    for _ in range(repeat + 1):
        for engine, job in by_engine.items():
            begin, used = time.perf_counter(), time.process_time()
            job()
            clock[engine].append(time.perf_counter() - begin)
            processor[engine].append(time.process_time() - used)
    return {engine: (min(clock[engine][1:]), min(processor[engine][1:])) for engine in by_engine}


def _cell(times: tuple[float, float] | None, files: int) -> str:
    return "" if times is None else " / ".join(f"{seconds * 1e6 / files:.0f}" for seconds in times)


def main() -> int:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    recording = Recording(f"{options.files:,} small files", "processor seconds per file")
    with tempfile.TemporaryDirectory() as folder:
        one, noted, mixed = (Path(folder) / name for name in ("one", "noted", "mixed"))
        for path, differ in ((one, False), (mixed, True)):
            path.mkdir()
            write(path, options.files, differ=differ)
        shutil.copytree(one, noted)
        pqext.write_summary(sorted(noted.glob("*.parquet")), noted)
        print(f"| us per file, {options.files:,} files | {' | '.join(ENGINES)} | ratio |")
        print(f"|---|{'---:|' * (len(ENGINES) + 1)}")
        for case, by_engine in jobs(one, noted, mixed, options.files * ROWS // 2).items():
            times = least(by_engine, options.repeat)
            peers = [clock for engine, (clock, _) in times.items() if engine != "pqext"]
            cells = [_cell(times.get(engine), options.files) for engine in ENGINES]
            ratio = f"{min(peers) / times['pqext'][0]:.2f}" if peers else ""
            print(f"| {case} | {' | '.join(cells)} | {ratio} |", flush=True)
            for engine, (_, processor) in times.items():
                if peers:
                    recording.add(case, engine, processor / options.files)
                elif case.startswith("plan"):
                    recording.add_figure(case, 1e6 * processor / options.files, "us per file", PLAN_MICROSECONDS)
    if options.record:
        recording.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
