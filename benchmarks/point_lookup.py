"""Few rows out of many: one row, a few and all of a table, by a column that is sorted and one that is not.

    python benchmarks/point_lookup.py [--rows 2000000] [--repeat 5] [--folder F] [--record]

All engines read the same file, which pqext wrote, from opening it to the result as an Arrow table of all columns. Times
are those of processors and of clocks, as ratios in one run; a ratio above 1 says that we are quicker. ``column`` reads
the filter's column alone, all of it: where nothing is known of its values, a lookup costs that and little more.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.dataset as ds
from recording import Recording

import pqext
from pqext import col
from pqext.core.io.source import PathSource

NAMES = {"pyarrow": "pyarrow", "duckdb": "DuckDB", "polars": "polars"}


def table(rows: int) -> pa.Table:
    """Orders: a key that rises, one that does not, and columns of the usual types beside them."""
    generator = np.random.default_rng(30)
    words = np.array([f"word {i:05d} of the list" for i in range(1000)], object)
    columns: dict[str, Any] = {
        "sorted": np.arange(rows, dtype=np.int64),
        "unsorted": generator.permutation(rows).astype(np.int64),
        "few": generator.integers(0, 1000, rows),
    }
    columns |= {f"price{i}": generator.normal(size=rows) for i in range(4)}
    columns |= {f"name{i}": pa.array(words[generator.integers(0, 1000, rows)]) for i in range(3)}
    columns |= {f"note{i}": pa.array([f"{n:x} and more" for n in generator.integers(0, 2**60, rows)]) for i in range(3)}
    return pa.table(columns)


def questions(rows: int) -> dict[str, tuple[Any, Any, str, Any]]:
    """By name: the same condition for pqext, pyarrow, DuckDB and polars."""
    key, field, name = rows * 2 // 3 + 1, ds.field, polars.col
    found = {
        "one row, sorted": (col("sorted") == key, field("sorted") == key, f"sorted = {key}", name("sorted") == key),
        "one row, unsorted": (
            col("unsorted") == key, field("unsorted") == key, f"unsorted = {key}", name("unsorted") == key
        ),
        "20 rows, unsorted": (
            (col("unsorted") >= key) & (col("unsorted") < key + 20),
            (field("unsorted") >= key) & (field("unsorted") < key + 20),
            f"unsorted >= {key} AND unsorted < {key + 20}",
            (name("unsorted") >= key) & (name("unsorted") < key + 20),
        ),
        "two columns": (
            (col("few") == 7) & (col("unsorted") < rows // 100),
            (field("few") == 7) & (field("unsorted") < rows // 100),
            f"few = 7 AND unsorted < {rows // 100}",
            (name("few") == 7) & (name("unsorted") < rows // 100),
        ),
    }
    for share in (0.1, 50, 99):
        most = int(rows * share / 100)
        found[f"{share} % of the rows"] = (
            col("unsorted") < most, field("unsorted") < most, f"unsorted < {most}", name("unsorted") < most
        )
    return found


def ways(path: Path, question: tuple[Any, Any, str, Any]) -> dict[str, Callable[[], pa.Table]]:
    ours, arrow, sql, frame = question
    return {
        "pqext": lambda: pqext.read_table(path, filter=ours),
        "pyarrow": lambda: ds.dataset(path).to_table(filter=arrow),
        "duckdb": lambda: duckdb.sql(f"SELECT * FROM '{path}' WHERE {sql}").to_arrow_table(),
        "polars": lambda: polars.scan_parquet(path).filter(frame).collect().to_arrow(),
    }


def timed(function: Callable[[], Any], repeat: int) -> tuple[float, float]:
    """Least seconds by the clock and of processors."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter(), time.process_time()
        function()
        times.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    return min(time[0] for time in times), min(time[1] for time in times)


def main() -> int:
    """Print one line a question; fails where engines find different rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--record", action="store_true", help="save the times in benchmarks/results")
    options = parser.parse_args()
    recording = Recording("Reading the rows that a filter keeps, all columns")
    with tempfile.TemporaryDirectory() as temporary:
        path = (options.folder or Path(temporary)) / f"orders-{options.rows}.parquet"
        if not path.exists():
            pqext.write_table(table(options.rows), path)
        column = timed(lambda: pqext.read_table(path, ["unsorted"]), options.repeat)
        print(f"{'':20}{'pqext':>10}{'cpu':>9}{'fetched':>10}" + "".join(f"{NAMES[one]:>18}" for one in NAMES))
        print(f"{'column':20}{column[0] * 1e3:7.1f} ms{column[1] * 1e3:6.1f} ms")
        for name, question in questions(options.rows).items():
            found = {engine: way() for engine, way in ways(path, question).items()}
            assert len({one.num_rows for one in found.values()}) == 1, name
            source = PathSource(str(path))
            pqext.scan(source, filter=question[0]).to_table()
            times = {engine: timed(way, options.repeat) for engine, way in ways(path, question).items()}
            own = times["pqext"]
            line = f"{name:20}{own[0] * 1e3:7.1f} ms{own[1] * 1e3:6.1f} ms{source.bytes_read / 1e6:7.1f} MB"
            for engine in NAMES:
                line += f"{times[engine][0] / own[0]:9.2f} (cpu{times[engine][1] / own[1]:5.2f})"
            print(line)
            for engine, (_, seconds) in times.items():
                recording.add(name, NAMES.get(engine, engine), seconds)
    if options.record:
        recording.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
