"""A box over a share of a Hilbert-sorted file of points: bytes read against the ideal, and time against DuckDB.

    python benchmarks/geo_query.py [--rows 10000000] [--share 0.001] [--queries 20] [--folder F]

Both sides read a file of their own with the same rows in the same order, natively GEOMETRY, from opening it to the
result as an Arrow table of all columns; DuckDB prunes by ``&&``. The ideal are the stored bytes of the rows that match:
as many times the mean stored size of a row. Times are those of processors and of clocks, as ratios in one run. With
``--folder`` the files are kept there and taken from there the next time.
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
import pyarrow as pa
from recording import Recording

import pqext
from pqext import geo
from pqext.core.io.source import PathSource

WORLD = (-180.0, -90.0, 180.0, 90.0)


def make(rows: int, ours: Path, theirs: Path) -> None:
    """Write the same points to both files, in Hilbert order."""
    generator = np.random.default_rng(20)
    x, y = generator.uniform(-180, 180, rows), generator.uniform(-90, 90, rows)
    table = pa.table({"id": np.arange(rows), "value": generator.normal(size=rows), "geom": geo.from_points(x, y)})
    begin = time.perf_counter(), time.process_time()
    pqext.write_table(table, ours, geometry={"geom": {"order": "hilbert"}})
    took = time.perf_counter() - begin[0], time.process_time() - begin[1]
    print(f"sorted and written in {took[0]:.1f} s, {took[1]:.1f} s of CPU")
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT * FROM read_parquet('{ours}')) TO '{theirs}' (FORMAT parquet, geoparquet_version 'V2')"
        )
        types = connection.execute(f"SELECT typeof(geom) FROM read_parquet('{theirs}') LIMIT 1").fetchall()
        assert types == [("GEOMETRY",)]


def boxes(share: float, count: int) -> list[tuple[float, float, float, float]]:
    """So many boxes xmin, ymin, xmax, ymax anywhere in the world."""
    generator = np.random.default_rng(21)
    width, height = 360 * share**0.5, 180 * share**0.5
    lower = generator.uniform(-180, 180 - width, count), generator.uniform(-90, 90 - height, count)
    return [(x, y, x + width, y + height) for x, y in zip(*(line.tolist() for line in lower), strict=True)]


def ask_pqext(path: Path, box: tuple[float, float, float, float]) -> pa.Table:
    """The rows within the box."""
    return pqext.read_table(path, filter=pqext.col("geom").intersects(box))


def ask_duckdb(connection: Any, path: Path, box: tuple[float, float, float, float]) -> pa.Table:
    """The rows within the box, by DuckDB."""
    xmin, ymin, xmax, ymax = box
    ring = f"{xmin} {ymin},{xmax} {ymin},{xmax} {ymax},{xmin} {ymax},{xmin} {ymin}"
    query = f"SELECT * FROM read_parquet('{path}') WHERE geom && 'POLYGON(({ring}))'::GEOMETRY"
    return connection.sql(query).to_arrow_table()


def timed(ask: Callable[[Any], pa.Table], boxes: list[Any], repeat: int) -> tuple[float, float, list[int]]:
    """Seconds by the clock and of processors for all boxes, each its quickest, and the rows found."""
    clock = processor = 0.0
    rows = []
    for box in boxes:
        times = []
        for _ in range(repeat):
            begin = time.perf_counter(), time.process_time()
            found = ask(box)
            times.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
        clock += min(time[0] for time in times)
        processor += min(time[1] for time in times)
        rows.append(found.num_rows)
    return clock, processor, rows


def bytes_read(path: Path, box: tuple[float, float, float, float]) -> tuple[int, float]:
    """Bytes fetched for a box, and those of the rows that match."""
    with pqext.open(path) as file:
        stored = sum(chunk.byte_range[1] for group in file.row_groups for chunk in group.chunks())
        row = stored / file.num_rows
    source = PathSource(str(path))
    found = pqext.read_table(source, filter=pqext.col("geom").intersects(box))
    return source.bytes_read, row * found.num_rows


def main() -> int:
    """Print the figures; status 1 where the goals are missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--share", type=float, default=0.001)
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        ours, theirs = folder / "pqext.parquet", folder / "duckdb.parquet"
        if not (ours.exists() and theirs.exists()):
            make(options.rows, ours, theirs)
        asked = boxes(options.share, options.queries)
        fetched, ideal = (sum(parts) for parts in zip(*(bytes_read(ours, box) for box in asked), strict=True))
        print(geo.explain_layout(ours, query=options.share))
        print(f"bytes: {fetched / len(asked) / 1e3:.0f} KB a query, {fetched / ideal:.2f} times the ideal (goal: 3)")
        with duckdb.connect() as connection:
            mine = timed(lambda box: ask_pqext(ours, box), asked, options.repeat)
            other = timed(lambda box: ask_duckdb(connection, theirs, box), asked, options.repeat)
        assert mine[2] == other[2], "the rows differ"
        if options.record:
            recording = Recording("Points in a box")
            case = f"{options.share:.1%} of {options.rows:,} points"
            recording.add(case, "pqext", mine[1] / len(asked))
            recording.add(case, "DuckDB", other[1] / len(asked))
            recording.save()
        faster = [b / a for a, b in zip(mine[:2], other[:2], strict=True)]
        print(f"{sum(mine[2]) / len(asked):.0f} rows a query; pqext {mine[0] / len(asked) * 1e3:.1f} ms, DuckDB "
              f"{duckdb.__version__} {other[0] / len(asked) * 1e3:.1f} ms")
        print(f"time: {faster[0]:.1f} times faster than DuckDB, {faster[1]:.1f} times less CPU (goal: 3)")
        return 0 if fetched <= 3 * ideal and faster[0] >= 3 else 1


if __name__ == "__main__":
    sys.exit(main())
