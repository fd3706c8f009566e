"""Strong earthquakes around Fiji among ten million: the example of the README.

    python benchmarks/quakes.py [--rows 10000000] [--repeat 20] [--record]

The events resemble those of the week in ``pqext.examples``: the same regions, spread by a degree and a half, and
magnitudes by the law of Gutenberg and Richter. They are JSON documents of 11 fields, written along a Hilbert curve with
two fields shredded. The query combines a box across the antimeridian with a magnitude, and returns the events as JSON.
DuckDB reads the same file. Times are wall time with all processors, from
opening the file to an Arrow table, from a warm file cache.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from recording import Recording

import pqext
from pqext import col, geo, variant
from pqext.core.io.source import PathSource
from pqext.examples import earthquakes

SHREDDING = "mag DECIMAL(9,2), place STRING"
ROWS_PER_STEP = 500_000
MAGNITUDE = 6.0
FIJI = (170, -30, -170, -10)
HALVES = [(170, -30, 180, -10), (-180, -30, -170, -10)]


def sql(path: Path) -> str:
    """The query in SQL: DuckDB skips row groups by one box at a time, and its boxes do not wrap."""
    return " UNION ALL ".join(
        f"SELECT CAST(CAST(event AS JSON) AS VARCHAR) AS event FROM read_parquet('{path}') "
        f"WHERE TRY_CAST(event.mag AS DOUBLE) >= {MAGNITUDE} AND geom && '{shapely.box(*half).wkt}'::GEOMETRY"
        for half in HALVES
    )


def write(path: Path, rows: int) -> int:
    """Write ``rows`` events to ``path`` and return the bytes of their JSON."""
    generator = np.random.default_rng(7)
    features = json.loads(earthquakes().read_text("utf-8"))["features"]
    origin = generator.integers(0, len(features), rows)
    longitudes, latitudes, _ = np.array([feature["geometry"]["coordinates"] for feature in features]).T
    x = (longitudes[origin] + generator.normal(0, 1.5, rows) + 180) % 360 - 180
    y = np.clip(latitudes[origin] + generator.normal(0, 1.5, rows), -90, 90)
    points = geo.from_points(x, y)
    order = geo.sort_indices(points).to_numpy()
    places = pa.array([json.dumps(feature["properties"]["place"], ensure_ascii=False) for feature in features])
    json_bytes = 0
    schema = pa.schema([variant.variant_field("event"), geo.geometry_field("geom")])
    with pqext.ParquetWriter(
        path, schema, shredding={"event": SHREDDING}, geometry={"geom": {"edges": "spherical", "order": "hilbert"}},
        compression="zstd", row_group_rows=100_000, page_rows=2_000,
    ) as file:  # fmt: skip
        for start in range(0, rows, ROWS_PER_STEP):
            chosen = order[start : start + ROWS_PER_STEP]
            documents = events(chosen, places.take(pa.array(origin[chosen])), generator)
            json_bytes += pc.sum(pc.binary_length(documents)).as_py() + len(documents)
            columns = [variant.parse_json(documents, threads=0), points.take(pa.array(chosen))]
            file.write_table(pa.Table.from_arrays(columns, schema=schema))
    return json_bytes


def events(ids: np.ndarray[Any, Any], places: pa.Array, generator: np.random.Generator) -> pa.Array:
    """One JSON document for each event."""
    count = len(ids)

    def numbers(values: np.ndarray[Any, Any], digits: int = 0) -> pa.Array:
        return pc.cast(pa.array(values.round(digits) if digits else values.astype(np.int64)), pa.string())

    magnitudes = np.minimum(2 + generator.exponential(1 / np.log(10), count), 9.5)
    values = {
        "mag": numbers(magnitudes, 2),
        "place": places,
        "time": numbers(1_500_000_000_000 + generator.integers(0, 10**11, count)),
        "type": '"earthquake"',
        "net": '"us"',
        "id": numbers(ids),
        "nst": numbers(generator.integers(4, 120, count)),
        "gap": numbers(generator.integers(20, 300, count)),
        "rms": numbers(generator.uniform(0.1, 1.5, count), 2),
        "depth": numbers(generator.uniform(1, 600, count), 1),
        "sig": numbers(65 * magnitudes**2 / 10),
    }
    parts: list[Any] = []
    for name, value in values.items():
        parts += ["," if parts else "{", f'"{name}":', value]
    return pc.binary_join_element_wise(*parts, "}", "")


def scan(source: Any) -> pqext.Scan:
    """The query of the README."""
    strong = col("event").variant("$.mag", "double") >= MAGNITUDE
    return pqext.scan(source, ["event"], filter=strong & col("geom").intersects(FIJI))


def best(query: Callable[[], pa.Table], repeat: int) -> tuple[float, int]:
    """The least wall time of ``repeat`` runs in seconds, and the rows of the result."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        table = query()
        seconds.append(time.perf_counter() - start)
    return min(seconds), table.num_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    recording = Recording("A box and a path among millions of events", unit="wall seconds")
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "quakes.parquet"
        start = time.perf_counter()
        json_bytes = write(path, options.rows)
        print(f"{json_bytes / 1e6:,.0f} MB of JSON written in {time.perf_counter() - start:.0f} s")
        source = PathSource(str(path))
        rows = scan(source).to_table().num_rows
        print(f"{rows} rows; {source.bytes_read:,} of {path.stat().st_size:,} bytes read, the footer included")
        case = f"{options.rows // 1_000_000} million events"
        sides = {
            "pqext": lambda: scan(path).to_table(variants="json"),
            "DuckDB": lambda: duckdb.sql(sql(path)).to_arrow_table(),
        }
        for name, query in sides.items():
            seconds, count = best(query, options.repeat)
            assert count == rows, f"{name} returns {count} rows"
            recording.add(case, name, seconds)
            print(f"{name}: {seconds * 1e3:.1f} ms")
        recording.add_size("json", json_bytes)
        recording.add_size("file", path.stat().st_size)
        recording.add_size("read", source.bytes_read)
        recording.add_size("matches", rows)
    if options.record:
        recording.save()


if __name__ == "__main__":
    main()
