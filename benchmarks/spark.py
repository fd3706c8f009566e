"""JSON to shredded Parquet and questions about it in Spark, by pqext and by Spark itself, in one run as ratios.

    python benchmarks/spark.py [--megabytes 230] [--repeat 3] [--cores 2] [--only TEXT] [--record]

The documents are generated, of about 230 bytes, no two alike. Every case runs on one session and the same text or
files, by the clock, in turns after one run that does not count; the least of each counts. A line's last number is
Spark's time over ours. "ingest_json" and "read_json, shred, write" make the files that "Spark" makes of
`spark.read.text` and `parse_json` with the inference of its own writer, each with zstd; their sizes are told. The
questions are asked of the files that each has written, by Spark's reader and by `pqext.spark.query` or `read`, in
"engine auto" by Spark's reader of the files that pqext has planned. "box and leaf" has points of the documents sorted
along a curve in a second copy of our files. "variant_get in Python" is compared with a UDF that gives back its VARIANT.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import variant_documents
from recording import Recording

from pqext import col
from pqext.spark import functions, ingest_json, local_session, query, read, read_json, shred_variant, write

SCHEMA = (
    "id BIGINT, ts STRING, event STRING, user STRUCT<uid: BIGINT, country: STRING, vip: BOOLEAN>, price DECIMAL(9,2), "
    "tags ARRAY<STRING>"
)

BOX = (5.0, 44.0, 16.38, 49.69)
"""A thousandth of the longitudes and latitudes that points have."""


@dataclass(frozen=True)
class Case:
    """One job in both ways, and how many times as long Spark is to take."""

    name: str
    ours: Callable[[], Any]
    sparks: Callable[[], Any]
    goal: float


def jobs(spark: Any, text: Path, folder: Path) -> list[Case]:
    """The jobs that make files, then the questions about them."""
    from pyspark.sql import functions as F

    native, ingested, shredded, placed = (
        str(folder / name) for name in ("native", "ingested", "shredded", "placed")
    )

    def by_spark() -> None:
        parsed = spark.read.text(str(text)).select(F.parse_json("value").alias("value"))
        parsed.write.mode("overwrite").option("compression", "zstd").parquet(native)

    def ingest() -> None:
        ingest_json(spark, str(text), ingested, mode="overwrite", compression="zstd")

    def shred(schema: str) -> Callable[[], None]:
        def run() -> None:
            rows = shred_variant(read_json(spark, str(text)), {"value": schema})
            write(rows, shredded, "overwrite", compression="zstd")

        return run

    def theirs(expression: str) -> Any:
        return spark.read.parquet(native).selectExpr(expression)

    def grouped() -> Any:
        return spark.read.parquet(native).selectExpr("variant_get(value, '$.event', 'string') k").groupBy("k").count()

    @F.arrow_udf("variant")  # type: ignore[call-overload]
    def same(value: pa.Array) -> pa.Array:
        return value

    def in_box() -> Any:
        if not Path(placed).exists():  # in the run that does not count
            points = {"at": {"points": ("$.position.lon", "$.position.lat"), "order": "hilbert"}}
            ingest_json(spark, str(text), placed, geometry=points, compression="zstd", row_group_rows=1 << 16)
        return read(spark, placed, columns=[number.alias("id")], where=kind == "click", bbox=BOX).collect()

    def in_box_by_spark() -> Any:
        low, low_lat, high, high_lat = BOX
        lon, lat = (f"variant_get(value, '$.position.{name}', 'double')" for name in ("lon", "lat"))
        inside = f"{lon} BETWEEN {low} AND {high} AND {lat} BETWEEN {low_lat} AND {high_lat}"
        rows = spark.read.parquet(native).where(f"variant_get(value, '$.event', 'string') = 'click' AND {inside}")
        return rows.selectExpr("variant_get(value, '$.id', 'bigint') id").collect()

    def whole(column: Any) -> None:
        spark.read.parquet(ingested).select(column.alias("x")).write.format("noop").mode("overwrite").save()

    def by_engine(*columns: Any, **options: Any) -> Any:
        return read(spark, ingested, columns=columns, engine="auto", **options)

    kind, number = col("value").variant("$.event", "string"), col("value").variant("$.id", "int64")
    text_of = col("value").variant("$", "string")
    wanted = 1_000_000 + 77
    return [
        Case("JSON, ingest_json", ingest, by_spark, 4),
        Case("JSON, read_json, shred by schema, write", shred(SCHEMA), by_spark, 2),
        Case("JSON, read_json, shred by inference, write", shred("infer"), by_spark, 2),
        Case(
            "count by leaf",
            lambda: query(spark, ingested, {"n": "count"}, where=kind == "click").collect(),
            lambda: spark.read.parquet(native).where("variant_get(value, '$.event', 'string') = 'click'").count(),
            2,
        ),
        Case(
            "sum of a leaf",
            lambda: query(spark, ingested, {"s": ("sum", number)}).collect(),
            lambda: theirs("sum(variant_get(value, '$.id', 'bigint')) s").collect(),
            2,
        ),
        Case(
            "group by a leaf",
            lambda: query(spark, ingested, {"n": "count"}, by=[kind.alias("k")]).collect(),
            lambda: grouped().collect(),
            2,
        ),
        Case(
            "count by leaf, engine auto",
            lambda: by_engine(kind.alias("k"), where=kind == "click").count(),
            lambda: spark.read.parquet(native).where("variant_get(value, '$.event', 'string') = 'click'").count(),
            2,
        ),
        Case(
            "sum of a leaf, engine auto",
            lambda: by_engine(number.alias("n")).selectExpr("sum(n)").collect(),
            lambda: theirs("sum(variant_get(value, '$.id', 'bigint')) s").collect(),
            2,
        ),
        Case(
            "group by a leaf, engine auto",
            lambda: by_engine(kind.alias("k")).groupBy("k").count().collect(),
            lambda: grouped().collect(),
            2,
        ),
        Case(
            "point lookup by leaf",
            lambda: read(spark, ingested, where=number == wanted).collect(),
            lambda: spark.read.parquet(native).where(f"variant_get(value, '$.id', 'bigint') = {wanted}").collect(),
            5,
        ),
        Case("0.1 % box and leaf", in_box, in_box_by_spark, 5),
        Case(
            "variant_get in Python / identity",
            lambda: whole(functions.variant_get("value", "$.event", "string")),
            lambda: whole(same("value")),
            0.8,
        ),
        Case(
            "whole variant to JSON",
            lambda: by_engine(text_of.alias("text")).selectExpr("sum(length(text))").collect(),
            lambda: theirs("sum(length(to_json(value)))").collect(),
            1.5,
        ),
        Case(
            "whole variant to JSON, by Spark's to_json",
            lambda: read(spark, ingested).selectExpr("sum(length(to_json(value)))").collect(),
            lambda: theirs("sum(length(to_json(value)))").collect(),
            1,
        ),
    ]


def seconds(job: Callable[[], Any]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def measured(case: Case, repeat: int) -> tuple[float, float]:
    """The least seconds of both ways, in turns."""
    case.ours(), case.sparks()
    pairs = [(seconds(case.ours), seconds(case.sparks)) for _ in range(repeat)]
    return min(ours for ours, _ in pairs), min(theirs for _, theirs in pairs)


def size(folder: Path) -> float:
    """Megabytes of the Parquet files of a folder."""
    return sum(path.stat().st_size for path in folder.glob("*.parquet")) / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=230)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--only", default="", help="cases whose names hold this text")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="pqext-spark-benchmark-"))
    spark = local_session("benchmark", cores=f"local[{options.cores}]")
    recording = Recording("Spark: JSON to Parquet and questions", unit="seconds by the clock")
    try:
        text = folder / "documents.ndjson"
        rows = variant_documents.generated(variant_documents.SMALL, int(options.megabytes * 1e6 / 230))
        text.write_text("\n".join(rows) + "\n", "utf-8")
        print(f"{len(rows):,} documents, {text.stat().st_size / 1e6:.1f} MB, {options.cores} cores")
        reached = True
        for case in jobs(spark, text, folder):
            if options.only not in case.name:
                if case.name.startswith("JSON, ingest"):  # without a time
                    case.ours(), case.sparks()
                continue
            ours, theirs = measured(case, options.repeat)
            reached &= theirs >= case.goal * ours
            print(f"  {case.name:45} {ours:7.2f} s, Spark {theirs:7.2f} s: {theirs / ours:5.2f} of {case.goal:g}")
            recording.add(case.name, "pqext", ours)
            recording.add(case.name, "Spark", theirs)
        print(f"  files: ingest_json {size(folder / 'ingested'):.2f} MB, Spark {size(folder / 'native'):.2f} MB")
        if options.record:
            recording.save()
        return 0 if reached else 1
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
