"""JSON text to VARIANT: pqext's kernel against DuckDB and Spark's parse_json, in one run, as MB/s a core and ratios.

    python benchmarks/json_to_variant.py [--megabytes 50] [--repeat 5] [--no-spark] [FILE ...]

The documents are generated, of about 230 and 2,600 bytes, and the earthquakes that come with the package, or those of
FILES (JSON lines or one JSON array), repeated to the size asked for. Each engine gets one thread and text that is in
its memory already, and writes nothing: DuckDB counts the values' types, Spark writes to its sink that drops them. Times
are of the processor, the least of the repeats. DuckDB and Spark are left out where they are not installed. Fails when
pqext is below 400 MB/s on the documents of about 2,600 bytes, or below 4 times another engine on any.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import variant_documents
from recording import Recording
from timing import least

from pqext import variant

GOAL = 400.0
TIMES = 4.0


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


def spark_session() -> Any:
    """A session of one core, None when Spark is not installed."""
    try:
        from pqext.spark import local_session

        return local_session("json_to_variant", cores="local[1]")
    except ImportError:
        return None


def spark_seconds(spark: Any, array: pa.Array, repeat: int) -> float:
    """Spark's parse_json on one core."""
    from pyspark.sql import functions as F

    frame = spark.createDataFrame(pa.table({"text": array})).cache()
    frame.count()
    # A sink that drops its rows: of what a query does not need, Spark's optimiser parses less or nothing.
    parsed = frame.select(F.parse_json("text").alias("value"))
    seconds = least(lambda: parsed.write.format("noop").mode("overwrite").save(), repeat)
    frame.unpersist()
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    spark = None if options.no_spark else spark_session()
    fast = True
    recording = Recording("JSON text to VARIANT")
    for name, rows in variant_documents.samples(options.files, options.megabytes).items():
        array, megabytes = pa.array(rows), sum(len(row.encode()) for row in rows) / 1e6
        print(f"{name}: {len(array):,} documents, {megabytes:.1f} MB, {megabytes * 1e6 / len(array):.0f} bytes each")
        ours = least(lambda array=array: variant.parse_json(array), options.repeat)
        recording.add(name, "pqext", ours)
        fast &= megabytes / ours >= GOAL or not name.startswith(str(variant_documents.LARGE))
        print(f"  {'pqext':8} {megabytes / ours:7.0f} MB/s")
        doubles = least(lambda array=array: variant.parse_json(array, numbers="double"), options.repeat)
        print(f"  {'doubles':8} {megabytes / doubles:7.0f} MB/s")
        others = {"DuckDB": duckdb_seconds(array, options.repeat)}
        if spark is not None:
            others["Spark"] = spark_seconds(spark, array, options.repeat)
        for other, seconds in others.items():
            if seconds is None:
                print(f"  {other:8} not installed")
                continue
            fast &= seconds / ours >= TIMES
            recording.add(name, other, seconds)
            print(f"  {other:8} {megabytes / seconds:7.0f} MB/s, pqext {seconds / ours:.1f} times as fast")
    if spark is not None:
        spark.stop()
    if options.record:
        recording.save()
    return 0 if fast else 1


if __name__ == "__main__":
    sys.exit(main())
