"""JSON text to VARIANT: pqext's kernel against DuckDB and Spark's parse_json, in one run, as MB/s a core and ratios.

    python benchmarks/json_to_variant.py [--megabytes 50] [--repeat 5] [FILE.ndjson ...]

Without files the earthquakes that come with the package are taken, repeated to the size asked for. Each engine
gets one thread and text that is in its memory already, and writes nothing: DuckDB counts the values' types, Spark
writes to its sink that drops them. The least of the repeats counts. DuckDB and Spark are left out where they are not
installed. Fails when pqext is below its goal of 350 MB/s.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa

from pqext import variant

GOAL = 350.0


def least(function: Callable[[], Any], repeat: int) -> float:
    """Seconds of the quickest call."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def documents(files: list[Path]) -> list[str]:
    """One JSON text a row."""
    if files:
        return [line for file in files for line in file.read_text("utf-8").splitlines() if line.strip()]
    text = resources.files("pqext.examples").joinpath("earthquakes.json").read_text("utf-8")
    return [json.dumps(feature, separators=(",", ":")) for feature in json.loads(text)["features"]]


def duckdb_seconds(array: pa.Array, repeat: int) -> float | None:
    """DuckDB's cast from JSON to VARIANT on one thread, None when it is not installed."""
    try:
        import duckdb
    except ImportError:
        return None
    connection = duckdb.connect(config={"threads": 1})
    connection.register("source", pa.table({"text": array}))
    connection.execute("CREATE TABLE docs AS SELECT text::JSON AS text FROM source")
    query = "SELECT count(variant_typeof(text::VARIANT)) FROM docs"
    return least(lambda: connection.execute(query).fetchall(), repeat)


def spark_seconds(array: pa.Array, repeat: int) -> float | None:
    """Spark's parse_json on one core, None when it is not installed."""
    try:
        from pyspark.sql import functions as F

        from pqext.spark import local_session
    except ImportError:
        return None
    spark = local_session("json_to_variant", cores="local[1]")
    try:
        frame = spark.createDataFrame(pa.table({"text": array})).cache()
        frame.count()
        # A sink that drops its rows: of what a query does not need, Spark's optimiser parses less or nothing.
        parsed = frame.select(F.parse_json("text").alias("value"))
        return least(lambda: parsed.write.format("noop").mode("overwrite").save(), repeat)
    finally:
        spark.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    rows = documents(options.files)
    size = sum(len(row.encode()) for row in rows)
    times = max(1, round(options.megabytes * 1e6 / size))
    array, megabytes = pa.array(rows * times), size * times / 1e6
    print(f"{len(array):,} documents, {megabytes:.1f} MB, {megabytes * 1e6 / len(array):.0f} bytes each")
    ours = least(lambda: variant.parse_json(array), options.repeat)
    print(f"{'pqext':8} {megabytes / ours:7.0f} MB/s")
    for name, seconds in (
        ("DuckDB", duckdb_seconds(array, options.repeat)),
        ("Spark", spark_seconds(array, options.repeat)),
    ):
        if seconds is None:
            print(f"{name:8} not installed")
        else:
            print(f"{name:8} {megabytes / seconds:7.0f} MB/s, pqext {seconds / ours:.1f} times as fast")
    return 0 if megabytes / ours >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
