"""What the log of a Delta table spares: plans, lookups, scans with deleted rows, and appends of JSON documents.

    python benchmarks/lake_tables.py [--files 1000] [--rows 10000] [--megabytes 230] [--repeat 3] [--record]

A table of files with an id, a shredded VARIANT, a point and its covering box. By the clock, from a warm file cache,
with all processors: planning a query that one file answers, by the log and by the footers of all files; looking up one
row, against the engines that can; reading everything where one row in a hundred is deleted by deletion vectors, against
deltalake; and appending JSON lines as a shredded table, against DuckDB and Spark writing plain Parquet. Spark runs on
two cores in a session that has written a thousand lines before, and reads with and without a schema.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import variant_documents
from deltalake import DeltaTable, QueryBuilder
from recording import Recording
from skipping import least

import pqext
from pqext import col, geo, tables, variant
from pqext.spark import local_session

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

PLAN, LOOKUP, SCAN, APPEND = 20, 5, 1.2, 2
"""Goals: how many times as long as pqext the others take."""
SCHEMA = pa.schema([("id", pa.int64()), variant.variant_field("v"), geo.geometry_field("at")])


DOCUMENTS = (
    "id BIGINT, ts STRING, event STRING, user STRUCT<uid: BIGINT, country: STRING, vip: BOOLEAN>, price DOUBLE, "
    "position STRUCT<lat: DOUBLE, lon: DOUBLE>, tags ARRAY<STRING>"
)
"""The schema of the JSON documents, as Spark takes it."""


def rows(part: int, size: int) -> pa.Table:
    """The rows of a file: consecutive ids, and points in a square of its own."""
    ids = np.arange(part * size, (part + 1) * size)
    documents = [f'{{"uid":{number},"kind":"k{number % 7}","mag":{number % 90 / 10}}}' for number in ids.tolist()]
    x, y = part % 40 * 4.0 - 80 + ids % 100 / 50, part // 40 * 4.0 - 80 + ids % 97 / 50
    return pa.table([pa.array(ids), variant.parse_json(documents), geo.from_points(x, y)], schema=SCHEMA)


def by_deltalake(folder: str, query: str) -> pa.Table:
    return pa.table(QueryBuilder().register("t", DeltaTable(folder)).execute(query))


def write_table(folder: str, files: int, size: int) -> None:
    for start in range(0, files, 50):
        for part in range(start, min(start + 50, files)):
            tables.append(
                f"delta:{folder}", rows(part, size), shredding={"v": "infer"}, allow_undeclared_shredding=True,
                geoparquet="1.1",
            )
        DeltaTable(folder).create_checkpoint()


def delete_rows(folder: str, size: int) -> None:
    """Delete one row in a hundred of each file of a table."""
    logs = importlib.import_module("tables.delta_logs")
    for path in logs.adds(folder):
        logs.delete_rows(folder, path, range(0, size, 100))


def json_jobs(spark: Any, source: Path, target: Path) -> dict[str, Callable[[], Any]]:
    """Spark writing JSON lines as plain Parquet: with the schema that it infers, and with one that is passed."""

    def job(reader: Any, lines: Path) -> None:
        reader.json(str(lines)).write.mode("overwrite").parquet(str(target))

    few = source.with_name("few.ndjson")
    with source.open(encoding="utf-8") as lines:
        few.write_text("".join(islice(lines, 1000)), "utf-8")
    readers = {"Spark": spark.read, "Spark with schema": spark.read.schema(DOCUMENTS)}
    for reader in readers.values():
        job(reader, few)
    return {engine: partial(job, reader, source) for engine, reader in readers.items()}


def append_json(source: Path, folder: str) -> None:
    batches = variant.read_json(source, shredding="infer")
    tables.append(f"delta:{folder}", batches, allow_undeclared_shredding=True)


def main() -> int:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--megabytes", type=float, default=230)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", help="a folder to keep the table in, or that has it already")
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    given = parser.parse_args()
    recording = Recording(f"a Delta table of {given.files:,} files of {given.rows:,} rows", "seconds")

    def report(case: str, goal: float, ours: Callable[[], Any], others: dict[str, Callable[[], Any]]) -> None:
        seconds = {engine: least(job, given.repeat) for engine, job in {"pqext": ours, **others}.items()}
        for engine, taken in seconds.items():
            recording.add(case, engine, taken)
        ratios = ", ".join(f"{engine} {seconds[engine] / seconds['pqext']:.2f}" for engine in others)
        print(f"{case}: pqext {seconds['pqext']:.4f} s; times as long: {ratios} (goal {goal})", flush=True)

    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or str(Path(scratch) / "table")
        if not Path(folder, "_delta_log").exists():
            write_table(folder, given.files, given.rows)
        name, files = f"delta:{folder}", sorted(map(str, Path(folder).glob("*.parquet")))
        number = given.files * given.rows // 2 + 123
        path = col("v").variant("$.uid", "int64") == number
        x, y = (float(side) for side in np.array(geo.to_shapely(rows(given.files // 2, 200)["at"])[123].coords[0]))
        box = col("at").intersects((x - 0.001, y - 0.001, x + 0.001, y + 0.001))
        for kind, condition in (("a variant path", path), ("a box", box)):
            scans = [partial(pqext.scan, source, filter=condition) for source in (name, files)]
            by_log, by_footers = (lambda scan=scan: scan().plan(pages=True) for scan in scans)
            report(f"plan by {kind}", PLAN, by_log, {"everything": by_footers})
        uris = DeltaTable(folder).file_uris()
        report(
            "look up by a variant path", LOOKUP, lambda: pqext.scan(name, ["id"], path).to_table(),
            {"DuckDB": lambda: duckdb.sql(
                f"SELECT id FROM read_parquet({uris}) WHERE v.uid::BIGINT = {number}").fetchall()},
        )
        report(
            "look up by a column", 1, lambda: pqext.scan(name, ["id"], col("id") == number).to_table(),
            {"deltalake": lambda: by_deltalake(folder, f"SELECT id FROM t WHERE id = {number}")},
        )
        deleted = str(Path(scratch) / "deleted")
        plain = pa.table({"id": pa.array(range(1_000_000)), "x": np.random.default_rng(0).random(1_000_000)})
        tables.append(f"delta:{deleted}", plain.slice(0, 0))
        for start in range(0, plain.num_rows, 100_000):
            tables.append(f"delta:{deleted}", plain.slice(start, 100_000))
        delete_rows(deleted, 100_000)
        report(
            "scan with 1 % deleted", SCAN, lambda: pqext.scan(f"delta:{deleted}").to_table(),
            {"deltalake": lambda: by_deltalake(deleted, "SELECT * FROM t")},
        )
        source = Path(scratch, "documents.ndjson")
        small = variant_documents.SMALL
        documents = variant_documents.generated(small, int(given.megabytes * 1e6 / small))
        source.write_text("\n".join(documents) + "\n", "utf-8")
        copy = f"COPY (FROM read_ndjson('{source}')) TO '{scratch}/plain.parquet' (FORMAT parquet)"
        targets = count()
        spark = local_session("benchmark", cores="local[2]")
        report(
            f"append {given.megabytes:g} MB of JSON", APPEND,
            lambda: append_json(source, str(Path(scratch) / f"json{next(targets)}")),
            {"DuckDB": lambda: duckdb.sql(copy), **json_jobs(spark, source, Path(scratch, "spark"))},
        )
        spark.stop()
    if given.record:
        recording.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
