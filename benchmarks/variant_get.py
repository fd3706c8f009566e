"""Values by path out of a column of variants: pqext's ``variant.get`` against DuckDB and Spark's variant_get.

    python benchmarks/variant_get.py [--rows 1000000] [--repeat 3] [--no-spark]

The documents are generated, of about 230 bytes. Each engine gets one thread and variants that are in its memory
already, takes one value out of every row, casts it, and drops the results: DuckDB counts them, Spark has a sink for
it. Times are of the processor, the least of the repeats, as nanoseconds a row and as ratios. The last lines are
pqext's alone: nested types, the same columns shredded, and rows exploded. Fails when pqext is not the quickest at
every single value, or when it makes Python objects for rows.
"""

from __future__ import annotations

import argparse
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import variant_documents
from recording import Recording
from timing import least

from pqext import variant

SINGLE = [
    ("$.user.uid", "bigint"),
    ("$.price", "double"),
    ("$.price", "decimal(9,2)"),
    ("$.event", "string"),
    ("$.user.vip", "boolean"),
    ("$.ts", "timestamp"),
    ("$.tags[1]", "string"),
]
NESTED = [
    ("$.tags", "array<string>"),
    ("$.position", "struct<lat: double, lon: double>"),
    ("$.position", "map<string, double>"),
]
SCHEMA = "event STRING, user STRUCT<uid: BIGINT, vip: BOOLEAN>, price DECIMAL(9,2), tags ARRAY<STRING>"
MOST_OBJECTS = 100_000
"""Bytes of Python objects that a call may have at once, whatever the number of its rows."""

Measure = Callable[[str, str], float]


def duckdb_measure(texts: pa.Array, repeat: int) -> Measure | None:
    """DuckDB on one thread, None when it is not installed."""
    try:
        import duckdb
    except ImportError:
        return None
    connection = duckdb.connect(config={"threads": 1})
    connection.register("source", pa.table({"text": texts}))
    connection.execute("CREATE TABLE docs AS SELECT text::JSON::VARIANT AS v FROM source")
    types = {"decimal(9,2)": "DECIMAL(9,2)", "string": "VARCHAR", "timestamp": "TIMESTAMPTZ"}

    def measure(path: str, type: str) -> float:
        # DuckDB counts elements from 1.
        column = path.replace("$.", "v.").replace("[1]", "[2]")
        query = f"SELECT count({column}::{types.get(type, type)}) FROM docs"
        return least(lambda: connection.execute(query).fetchall(), repeat)

    return measure


def spark_measure(texts: pa.Array, repeat: int) -> Measure | None:
    """Spark on one core, None when it is not installed."""
    try:
        from pyspark.sql import functions as F

        from pqext.spark import local_session
    except ImportError:
        return None
    spark = local_session("variant_get", cores="local[1]", conf={"spark.driver.memory": "4g"})
    frame = spark.createDataFrame(pa.table({"text": texts})).select(F.parse_json("text").alias("v")).cache()
    frame.count()

    def measure(path: str, type: str) -> float:
        result = frame.select(F.variant_get("v", path, type).alias("x"))
        return least(lambda: result.write.format("noop").mode("overwrite").save(), repeat)

    return measure


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    documents = variant_documents.generated(variant_documents.SMALL, min(options.rows, 20_000))
    texts = pa.array((documents * (-(-options.rows // len(documents))))[: options.rows])
    array = variant.parse_json(texts)
    print(f"{len(array):,} documents of {texts.nbytes / len(array):.0f} bytes; nanoseconds a row")
    peers = {"DuckDB": duckdb_measure(texts, options.repeat)}
    if not options.no_spark:
        peers["Spark"] = spark_measure(texts, options.repeat)

    def ours(function: Callable[[], Any]) -> float:
        return least(function, options.repeat)

    quickest = True
    recording = Recording("A value by its path out of every VARIANT")
    for path, type in SINGLE:
        seconds = ours(lambda path=path, type=type: variant.get(array, path, type, strict=True))  # type: ignore[misc]
        line = f"{path:14} {type:34} {seconds / len(array) * 1e9:6.0f}"
        recording.add(f"{path} {type}", "pqext", seconds)
        for name, measure in peers.items():
            if measure is not None:
                theirs = measure(path, type)
                quickest = quickest and theirs > seconds
                recording.add(f"{path} {type}", name, theirs)
                line += f"   {name} {theirs / len(array) * 1e9:6.0f} ({theirs / seconds:4.1f} times)"
        print(line)
    if options.record:
        recording.save()
    shredded = variant.shred(array, SCHEMA)
    for path, type in NESTED:
        seconds = ours(lambda path=path, type=type: variant.get(array, path, type))  # type: ignore[misc]
        print(f"{path:14} {type:34} {seconds / len(array) * 1e9:6.0f}")
    for path, type in [*SINGLE, *NESTED[:1]]:
        seconds = ours(lambda path=path, type=type: variant.get(shredded, path, type))  # type: ignore[misc]
        print(f"{path:14} {type:34} {seconds / len(array) * 1e9:6.0f}   shredded")
    seconds = ours(lambda: variant.explode(array, "$.tags[*]", "string"))
    print(f"{'$.tags[*]':14} {'exploded':34} {seconds / len(array) * 1e9:6.0f}")
    held = objects(array)
    print(f"Python objects of a call, at most: {held:,} bytes")
    return 0 if quickest and held < MOST_OBJECTS else 1


def objects(array: pa.Array) -> int:
    """Bytes of Python objects at the peak of casting a column; Arrow's buffers are none."""
    tracemalloc.start()
    for path, type in [*SINGLE, *NESTED]:
        variant.get(array, path, type)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


if __name__ == "__main__":
    sys.exit(main())
