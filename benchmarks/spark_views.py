"""Counts, SQL over views and joins of what pqext reads in Spark, beside Spark's own reader of the same files.

    python benchmarks/spark_views.py [--rows 2000000] [--documents 200000] [--repeat 5] [--cores 2] [--record]

A table of numbers (one of them floating point) and text, sorted by its number, and JSON documents that `ingest_json`
has shredded. Each case runs by data source pqext, by `engine="auto"` and by Spark's own reader, in turns in one session
by the clock, after one run that does not count; the least of each counts. "view with options" is the view that SQL
makes of data source pqext with its options `where` and `columns`.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import variant_documents
from recording import Recording

from pqext.spark import ingest_json, local_session, query, read

Job = Callable[[], Any]


def cases(spark: Any, table: str, documents: str) -> dict[str, dict[str, Job]]:
    """By case and reader, the jobs."""

    def by_sql(path: str, text: str) -> dict[str, Job]:
        def run(frame: Any) -> Any:
            frame.createOrReplaceTempView("viewed")
            return spark.sql(text).collect()

        return {
            "pqext": lambda: run(read(spark, path)),
            "engine auto": lambda: run(read(spark, path, engine="auto")),
            "Spark": lambda: run(spark.read.parquet(path)),
        }

    def counts(path: str) -> dict[str, Job]:
        return {
            "pqext": lambda: read(spark, path).count(),
            "engine auto": lambda: read(spark, path, engine="auto").count(),
            "Spark": lambda: spark.read.parquet(path).count(),
        }

    def narrow() -> Any:
        spark.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW narrow USING pqext OPTIONS (path '{table}', where 'id < 10000', "
            "columns 'id, k')"
        )
        return spark.sql(few.replace("viewed", "narrow")).collect()

    few = "SELECT k, count(*) n FROM viewed WHERE id < 10000 GROUP BY k"
    by_leaf = "SELECT variant_get(value, '$.event', 'string') k, count(*) n FROM viewed GROUP BY k"
    grouped = {"rows": "count"}
    return {
        "count of a table": counts(table),
        "count of documents": counts(documents),
        "filter of a table over a view": by_sql(table, few) | {"view with options": narrow},
        "group by a column over a view": by_sql(table, "SELECT k, count(*) n FROM viewed GROUP BY k")
        | {"query": lambda: query(spark, table, grouped, by=["k"]).collect()},
        "group by a leaf over a view": by_sql(documents, by_leaf),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="pqext-spark-views-"))
    spark = local_session("benchmark", cores=f"local[{options.cores}]")
    recording = Recording("Spark: counts and SQL over views", unit="seconds by the clock")
    try:
        text, table, documents = folder / "documents.ndjson", str(folder / "table"), str(folder / "documents")
        text.write_text("\n".join(variant_documents.generated(variant_documents.SMALL, options.documents)) + "\n")
        ingest_json(spark, str(text), documents, compression="zstd")
        columns = "id", "id % 1000 AS k", "rand() AS x", "concat('n', id % 5000) AS name"
        spark.range(options.rows).selectExpr(*columns).write.option("parquet.block.size", 4 << 20).parquet(table)
        for name, jobs in cases(spark, table, documents).items():
            seconds: dict[str, list[float]] = {reader: [] for reader in jobs}
            for _ in range(options.repeat + 1):
                for reader, job in jobs.items():
                    start = time.perf_counter()
                    job()
                    seconds[reader].append(time.perf_counter() - start)
            least = {reader: min(found[1:]) for reader, found in seconds.items()}
            print(f"  {name:32} " + ", ".join(f"{reader} {least[reader]:.3f} s" for reader in jobs), flush=True)
            for reader in (reader for reader in jobs if reader != "Spark"):
                case = f"{name}, {reader}".removesuffix(", pqext")
                recording.add(case, "pqext", least[reader])
                recording.add(case, "Spark", least["Spark"])
        if options.record:
            recording.save()
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
