"""Questions of scans against the best of pyarrow.dataset, polars, DuckDB and datafusion, all on the same files.

    python benchmarks/scan.py [--rows 2000000] [--repeat 7] [--folder F] [--only TEXT] [--engines A,B] [--record]

By the clock, with all processors, from a warm file cache, from opening the file to an Arrow table; the rounds of all
engines alternate and the least counts. Filters are pushed down wherever an engine can. A line's last number is the
time of the best peer over ours. Questions about VARIANT and GEOMETRY go to DuckDB alone: no other peer has the types.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import scan_files
from recording import Recording

import pqext
from pqext import col
from pqext.dataset.expressions import Expression

PEERS = ("pyarrow", "polars", "DuckDB", "datafusion")


@dataclass(frozen=True)
class Question:
    """One question: ``filter`` for us, ``arrow`` and ``frame`` for pyarrow and polars, ``sql`` for the others."""

    name: str
    file: str
    columns: list[str] | None
    filter: Expression
    sql: str
    arrow: Any = None
    frame: Any = None
    goal: float = 1.0
    most: float = math.inf
    """Seconds that we may take."""


def questions(rows: int) -> list[Question]:
    """The questions of a file of ``rows`` events."""
    a, p = ds.field, polars.col
    key, user = rows * 2 // 3 + 1, rows // 9 // 3
    low, high = rows // 2, rows // 2 + rows // 1000
    chance = np.random.default_rng(3)
    thousand = sorted(chance.choice(rows, 1000, replace=False).tolist())
    scattered = np.linspace(0, rows - 1, max(rows // 1000, 1)).astype(np.int64).tolist()
    listed = ", ".join(map(str, thousand))
    uid = 777
    box = (10.0, 10.0, 21.4, 15.7)
    ring = "{0} {1},{2} {1},{2} {3},{0} {3},{0} {1}".format(*box)
    return [
        Question("one id, sorted, all columns", "events", None, col("id") == key, f"id = {key}", a("id") == key,
                 p("id") == key),
        Question("one user, random, Bloom filter, all columns", "events", None, col("user") == user, f'"user" = {user}',
                 a("user") == user, p("user") == user),
        Question("0.1 % range, sorted, all columns", "events", None, (col("id") >= low) & (col("id") < high),
                 f"id >= {low} AND id < {high}", (a("id") >= low) & (a("id") < high),
                 (p("id") >= low) & (p("id") < high)),
        Question("m0 < 0.001, all columns", "events", None, col("m0") < 0.001, "m0 < 0.001", a("m0") < 0.001,
                 p("m0") < 0.001),
        Question("kind = 'kind7', one column", "events", ["m1"], col("kind") == "kind7", "kind = 'kind7'",
                 a("kind") == "kind7", p("kind") == "kind7"),
        Question("kind = 'kind7' and m0 < 0.01, the blob", "events", ["blob"],
                 (col("kind") == "kind7") & (col("m0") < 0.01), "kind = 'kind7' AND m0 < 0.01",
                 (a("kind") == "kind7") & (a("m0") < 0.01), (p("kind") == "kind7") & (p("m0") < 0.01)),
        Question("m0 < 0.5, one column", "events", ["m1"], col("m0") < 0.5, "m0 < 0.5", a("m0") < 0.5, p("m0") < 0.5),
        Question("variant path, random, all columns", "documents", None,
                 col("v").variant("$.user.uid", "int64") == uid, f"v.user.uid::BIGINT = {uid}", goal=3, most=0.06),
        Question("variant path, string, one other path", "documents", ["id"],
                 col("v").variant("$.user.country", "string") == "JP", "v.user.country::VARCHAR = 'JP'", goal=3),
        Question("a box of points, all columns", "points", None, col("geom").intersects(box),
                 f"geom && 'POLYGON(({ring}))'::GEOMETRY", goal=3),
        Question("nested s.x < 0.001, all columns", "nested", None, col("s.x") < 0.001, "s['x'] < 0.001",
                 a("s", "x") < 0.001, p("s").struct.field("x") < 0.001),
        Question("nested s.word equals, the list out", "nested", ["items"], col("s.word") == "word 7",
                 "s['word'] = 'word 7'", a("s", "word") == "word 7", p("s").struct.field("word") == "word 7"),
        Question("place starts with 'fj/7', two columns", "events", ["id", "place"],
                 col("place").starts_with("fj/7"), "place LIKE 'fj/7%'",
                 pc.starts_with(a("place"), "fj/7"), p("place").str.starts_with("fj/7")),
        Question("id in 1,000, all columns", "events", None, col("id").isin(thousand), f"id IN ({listed})",
                 a("id").isin(thousand), p("id").is_in(thousand)),
        Question("user in 1,000, two columns", "events", ["id", "user"], col("user").isin(thousand),
                 f'"user" IN ({listed})', a("user").isin(thousand), p("user").is_in(thousand)),
        Question("quantity is null, two columns", "events", ["id", "m1"], col("quantity").is_null(),
                 "quantity IS NULL", a("quantity").is_null(), p("quantity").is_null()),
        Question("m0 < 0.001 or few = 3 and m1 < 0.01, three columns", "events", ["id", "m2", "kind"],
                 (col("m0") < 0.001) | ((col("few") == 3) & (col("m1") < 0.01)),
                 "m0 < 0.001 OR (few = 3 AND m1 < 0.01)", (a("m0") < 0.001) | ((a("few") == 3) & (a("m1") < 0.01)),
                 (p("m0") < 0.001) | ((p("few") == 3) & (p("m1") < 0.01))),
        Question("0.1 % scattered rows, three columns", "events", ["id", "m3", "place"], col("id").isin(scattered),
                 f"id IN ({', '.join(map(str, scattered))})", a("id").isin(scattered), p("id").is_in(scattered)),
    ]  # fmt: skip


def engines(question: Question, path: Path, context: Any) -> dict[str, Callable[[], pa.Table]]:
    """The ways to ask a question, each from opening the file to an Arrow table."""
    columns = question.columns
    names = "*" if columns is None else ", ".join(columns)

    def by_polars() -> pa.Table:
        found = polars.scan_parquet(path).filter(question.frame)
        return (found if columns is None else found.select(columns)).collect().to_arrow()

    def by_datafusion() -> pa.Table:
        context.deregister_table("t")
        context.register_parquet("t", str(path))
        return context.sql(f"SELECT {names} FROM t WHERE {question.sql}").to_arrow_table()

    ways: dict[str, Callable[[], pa.Table]] = {
        "pqext": lambda: pqext.read_table(path, columns, question.filter),
        "DuckDB": lambda: duckdb.sql(
            f"SELECT {names} FROM read_parquet('{path}') WHERE {question.sql}").to_arrow_table(),
    }
    if question.arrow is not None:
        ways["pyarrow"] = lambda: ds.dataset(path).to_table(columns, filter=question.arrow)
        ways["polars"] = by_polars
        ways["datafusion"] = by_datafusion
    return ways


def pushing_down() -> Any:
    """A context of datafusion that pushes filters into Parquet files."""
    config = datafusion.SessionConfig()
    for option in ("pushdown_filters", "reorder_filters", "enable_page_index", "bloom_filter_on_read"):
        config = config.set(f"datafusion.execution.parquet.{option}", "true")
    return datafusion.SessionContext(config)


def in_turn(ways: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Least seconds of each."""
    least = dict.fromkeys(ways, math.inf)
    for _ in range(repeat):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            least[name] = min(least[name], time.perf_counter() - begin)
    return least


def main() -> int:
    """Print one line a question; 1 when a goal is missed. Fails where engines find different rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="keep the files here, and take them from here")
    parser.add_argument("--only", default="", help="questions whose name has this")
    parser.add_argument("--engines", default="", help="only these, separated by commas")
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    recording = Recording("Questions of scans", "seconds by the clock")
    context, missed = pushing_down(), []
    print(f"{'ms':52}{'pqext':>9}" + "".join(f"{peer:>11}" for peer in PEERS) + "   best / pqext")
    with tempfile.TemporaryDirectory() as temporary:
        files = scan_files.make(options.folder or Path(temporary), options.rows)
        for question in questions(options.rows):
            if options.only not in question.name:
                continue
            ways = engines(question, files[question.file], context)
            if options.engines:
                ways = {name: way for name, way in ways.items() if name in options.engines.split(",")}
            counts = {name: way().num_rows for name, way in ways.items()}
            assert len(set(counts.values())) == 1, (question.name, counts)
            times = in_turn(ways, options.repeat)
            for name, seconds in times.items():
                recording.add(question.name, name, seconds)
            line = f"{question.name:52}{times.get('pqext', math.nan) * 1e3:9.1f}"
            line += "".join(f"{times[peer] * 1e3:11.1f}" if peer in times else f"{'':11}" for peer in PEERS)
            best = min((seconds for name, seconds in times.items() if name != "pqext"), default=math.nan)
            ratio = best / times.get("pqext", math.nan)
            print(f"{line}{ratio:11.2f}" + (f" of {question.goal:g}" if question.goal != 1 else ""), flush=True)
            if ratio < question.goal or times.get("pqext", 0) > question.most:
                missed.append(question.name)
    if options.record:
        recording.save()
    for name in missed:
        print("missed:", name)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
