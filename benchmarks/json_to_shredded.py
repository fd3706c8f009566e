"""A file of JSON lines to shredded Parquet: pqext against DuckDB and Spark, in one run: time, ratios and sizes.

    python benchmarks/json_to_shredded.py [--megabytes 50] [--repeat 3] [--codec snappy] [--no-spark] [FILE ...]

The documents are generated, of about 230 and 2,600 bytes, no two alike, or those of FILES (JSON lines or one JSON
array). Every engine reads the text file and writes one column of variants, shredded by the schema that it infers:
DuckDB by COPY, Spark by parse_json and its own writer, pqext by `variant.read_json(path, shredding="infer")` and
`ParquetWriter`, with numbers as decimals, which is Spark's way, and as doubles, which is DuckDB's, with
`encodings="auto"`. Each has all processors. Times are of the processor, the least of the repeats, clocks beside them;
the files are compared by their size under one codec. Fails when pqext is below 3 times another engine, or its file is
larger than the smaller of theirs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import variant_documents
from timing import processor_seconds

import pqext
from pqext import variant

TIMES = 3.0


def ours(source: Path, target: Path, codec: Any, numbers: Any) -> None:
    batches = variant.read_json(source, shredding="infer", numbers=numbers)
    with pqext.ParquetWriter(target, batches.schema, compression=codec, encodings="auto") as writer:
        for batch in batches:
            writer.write_batch(batch)


def duckdb(source: Path, target: Path, codec: str) -> None:
    import duckdb

    select = f"SELECT json::VARIANT AS value FROM read_ndjson_objects('{source}')"
    duckdb.connect().execute(f"COPY ({select}) TO '{target}' (FORMAT parquet, COMPRESSION {codec})")


def spark_job(spark: Any) -> Callable[[Path, Path, str], None]:
    from pyspark.sql import functions as F

    def run(source: Path, target: Path, codec: str) -> None:
        parsed = spark.read.text(str(source)).select(F.parse_json("value").alias("value"))
        parsed.write.mode("overwrite").option("compression", codec).parquet(str(target))

    return run


def engines(with_spark: bool) -> dict[str, Callable[[Path, Path, str], None]]:
    """What there is to compare, pqext first."""
    found: dict[str, Callable[[Path, Path, str], None]] = {
        "pqext": lambda source, target, codec: ours(source, target, codec, "decimal"),
        "pqext, doubles": lambda source, target, codec: ours(source, target, codec, "double"),
    }
    if find_spec("duckdb") is not None:
        found["DuckDB"] = duckdb
    else:
        print("DuckDB is not installed")
    if with_spark:
        try:
            from pqext.spark import local_session

            found["Spark"] = spark_job(local_session("json_to_shredded"))
        except ImportError:
            print("Spark is not installed")
    return found


def bytes_of(target: Path) -> int:
    """The Parquet bytes of a file, or of a folder as Spark writes it."""
    return target.stat().st_size if target.is_file() else sum(f.stat().st_size for f in target.glob("*.parquet"))


def measure(job: Callable[[Path, Path, str], None], source: Path, target: Path, codec: str) -> tuple[float, float]:
    start, clock = processor_seconds(), time.perf_counter()
    job(source, target, codec)
    return processor_seconds() - start, time.perf_counter() - clock


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--codec", default="snappy", choices=["snappy", "zstd", "gzip"])
    parser.add_argument("--no-spark", action="store_true")
    options = parser.parse_args()
    if options.files:
        sets = variant_documents.samples(options.files, options.megabytes)
    else:
        sets = {
            f"{size} bytes": variant_documents.generated(size, int(options.megabytes * 1e6 / size))
            for size in (variant_documents.SMALL, variant_documents.LARGE)
        }
    jobs = engines(not options.no_spark)
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in sets.items():
            source = Path(folder, "documents.ndjson")
            source.write_text("\n".join(rows) + "\n", "utf-8")
            megabytes = source.stat().st_size / 1e6
            print(f"{name}: {len(rows):,} documents, {megabytes:.1f} MB, {options.codec}")
            target = Path(folder, "out.parquet")
            times: dict[str, float] = {}
            sizes: dict[str, int] = {}
            for engine, job in jobs.items():
                target = Path(folder, f"{engine}.parquet")
                measured = [measure(job, source, target, options.codec) for _ in range(options.repeat)]
                times[engine] = min(seconds for seconds, _ in measured)
                clock = min(seconds for _, seconds in measured)
                sizes[engine] = bytes_of(target)
                ratio = times[engine] / times["pqext"]
                print(
                    f"  {engine:15} {megabytes / times[engine]:6.0f} MB/s a core, {megabytes / clock:6.0f} MB/s by the "
                    f"clock, {sizes[engine] / 1e6:6.2f} MB"
                    + (f", pqext {ratio:.1f} times as fast" if ratio != 1 else "")
                )
            for engine in set(jobs) - {"pqext", "pqext, doubles"}:
                good &= times[engine] >= TIMES * times["pqext"]
                good &= min(sizes["pqext"], sizes["pqext, doubles"]) <= sizes[engine]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
