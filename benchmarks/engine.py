"""Where the work around the values shows: whole tables, nulls, nesting, wide and tiny tables, pages, leaves.

    python benchmarks/engine.py [--rows 2000000] [--repeat 5] [--json 0] [--only read] [--record]

By the clock, on an idle machine, every library with all processors, from a warm file cache; the rounds alternate and
the least counts. ``--json 230`` adds so many megabytes of JSON documents to shredded Parquet. A figure is the peer's
time over ours unless its line says otherwise; the goal stands beside it.
"""

from __future__ import annotations

import argparse
import io
import math
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import variant_documents
import wide_tables
from recording import Recording

import pqext
from pqext import col, variant

Jobs = dict[str, Callable[[], Any]]
THREE_ROWS = pa.table({"a": [1, 2, 3], "b": ["x", "y", None], "c": [0.5, None, 1.5]})
SHREDDING = "id BIGINT, event STRING, price DECIMAL(9,2)"


def lineitem(rows: int) -> pa.Table:
    """Thirteen columns like those of TPC-H: keys, quantities, prices, flags of few values, dates, a comment."""
    generator = np.random.default_rng(7)

    def few(words: list[str]) -> pa.Array:
        return pa.array(np.array(words, object)[generator.integers(0, len(words), rows)])

    words = np.array([f"{word}ly" for word in "abcdefghijkl"], object)
    first, second, third = (words[generator.integers(0, len(words), rows)] for _ in range(3))
    dates = pa.array(generator.integers(8000, 10500, rows).astype(np.int32))
    return pa.table(
        {
            "orderkey": np.sort(generator.integers(0, rows * 4, rows)),
            "partkey": generator.integers(0, 200_000, rows),
            "suppkey": generator.integers(0, 10_000, rows),
            "linenumber": generator.integers(1, 8, rows).astype(np.int32),
            "quantity": generator.integers(1, 51, rows).astype(np.float64),
            "extendedprice": np.round(generator.uniform(900, 105_000, rows), 2),
            "discount": generator.integers(0, 11, rows) / 100,
            "tax": generator.integers(0, 9, rows) / 100,
            "returnflag": few(["A", "N", "R"]),
            "linestatus": few(["F", "O"]),
            "shipdate": dates.cast(pa.date32()),
            "shipmode": few(["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]),
            "comment": pa.array(first + " " + second + " " + third),
        }
    )


def with_nulls(table: pa.Table, share: float) -> pa.Table:
    """Values null at random."""
    generator = np.random.default_rng(8)
    columns = []
    for column in table.columns:
        array = column.combine_chunks()
        columns.append(pa.compute.if_else(pa.array(generator.random(len(array)) >= share), array, None))
    return pa.table(columns, names=table.column_names)


def lists_of_structs(rows: int) -> pa.Table:
    """A list of about three structs a row: a number, a double, a word."""
    generator = np.random.default_rng(9)
    offsets = np.concatenate([[0], np.cumsum(generator.integers(0, 7, rows))]).astype(np.int32)
    count = int(offsets[-1])
    structs = pa.StructArray.from_arrays(
        [
            pa.array(generator.integers(0, 2**40, count)), pa.array(generator.normal(size=count)),
            pa.array(np.array([f"word {i}" for i in range(500)], object)[generator.integers(0, 500, count)]),
        ],
        ["n", "x", "word"],
    )
    return pa.table({"items": pa.ListArray.from_arrays(pa.array(offsets), structs), "id": np.arange(rows)})


def in_turn(jobs: Jobs, repeat: int) -> dict[str, float]:
    """Least seconds of each job."""
    least = dict.fromkeys(jobs, math.inf)
    for job in jobs.values():
        job()
    for _ in range(repeat):
        for name, job in jobs.items():
            begin = time.perf_counter()
            job()
            least[name] = min(least[name], time.perf_counter() - begin)
    return least


class Bench:
    """Prints a line a case and keeps its times."""

    def __init__(self, repeat: int, only: str) -> None:
        self.repeat = repeat
        self.only = only
        self.recording = Recording("The engine", "seconds by the clock")
        self.missed: list[str] = []

    def compare(self, case: str, jobs: Jobs, goals: dict[str, float], repeat: int | None = None) -> dict[str, float]:
        """Time ``jobs`` in turn; ``goals`` are the least peer / ours for each peer."""
        if self.only not in case:
            return {}
        times = in_turn(jobs, repeat or self.repeat)
        for engine, seconds in times.items():
            self.recording.add(case, engine, seconds)
        line = f"{case:44} {times['pqext'] * 1e3:9.1f} ms"
        for engine, seconds in times.items():
            if engine != "pqext":
                goal = goals.get(engine)
                ratio = seconds / times["pqext"]
                line += f"  {engine} {ratio:5.2f}" + (f" (goal {goal:g})" if goal else "")
                if goal and ratio < goal:
                    self.missed.append(f"{case}: {engine} {ratio:.2f} of {goal:g}")
        print(line, flush=True)
        return times

    def figure(self, case: str, measure: Callable[[], float], unit: str, goal: float, above: bool) -> None:
        """Print a figure that is to be ``above`` its goal or below."""
        if self.only not in case:
            return
        found = measure()
        self.recording.add_figure(case, found, unit, goal)
        print(f"{case:44} {found:9.2f} {unit} (goal {goal:g})", flush=True)
        if found < goal if above else found > goal:
            self.missed.append(f"{case}: {found:.2f} of {goal:g}")


def whole_tables(bench: Bench, rows: int, folder: Path) -> None:
    """The same tables read and written by everyone."""
    tables = {
        "lineitem": (lineitem(rows), 1.5), "lineitem, 30 % nulls": (with_nulls(lineitem(rows // 2), 0.3), 1.5),
        "lists of structs": (lists_of_structs(rows // 4), 1.5),
    }
    for name, (table, goal) in tables.items():
        path = str(folder / "read.parquet")
        pq.write_table(table, path, compression="snappy", row_group_size=1 << 20)
        assert pqext.read_table(path).equals(table.cast(pqext.read_table(path).schema))
        jobs: Jobs = {
            "pqext": lambda path=path: pqext.read_table(path),
            "pyarrow": lambda path=path: pq.read_table(path),
            "polars": lambda path=path: polars.read_parquet(path),
            "DuckDB": lambda path=path: duckdb.sql(f"FROM read_parquet('{path}')").to_arrow_table(),
        }
        bench.compare(f"read: {name}", jobs, {"pyarrow": goal})
        if "strings" in pqext.ReadOptions.__dataclass_fields__:
            jobs["pqext"] = lambda path=path: pqext.read_table(path, strings="view")
            bench.compare(f"read: {name}, views", jobs, {"pyarrow": 2, "polars": 0.8})
        out = folder / "written.parquet"
        writers: Jobs = {
            "pqext": partial(pqext.write_table, table, out),
            "pyarrow": partial(
                pq.write_table, table, out, compression="snappy", write_page_index=True, write_page_checksum=True
            ),
        }
        bench.compare(f"write: {name}", writers, {"pyarrow": 2})


def wide(bench: Bench) -> None:
    """5,000 columns in ten row groups of 100 rows, and a table of three rows."""
    for name, table, rows, goals in (
        ("5,000 columns x 10 row groups", wide_tables.wide(5000, 1000), 100, (1 / 1.5, 1 / 1.2, 10.0)),
        ("3 rows", THREE_ROWS, 3, (1 / 1.2, 1 / 0.8, 0.0)),
    ):
        ours, theirs = io.BytesIO(), io.BytesIO()

        def write(table: pa.Table = table, out: io.BytesIO = ours, rows: int = rows) -> None:
            out.seek(0)
            pqext.write_table(table, out, row_group_rows=rows)

        def pyarrow_write(table: pa.Table = table, out: io.BytesIO = theirs, rows: int = rows) -> None:
            out.seek(0)
            pq.write_table(table, out, row_group_size=rows, write_page_index=True, write_page_checksum=True)

        write()
        pyarrow_write()
        raw, raw_theirs = ours.getvalue(), theirs.getvalue()
        repeat = 3 if rows > 3 else 200
        bench.compare(f"write: {name}", {"pqext": write, "pyarrow": pyarrow_write}, {"pyarrow": goals[0]}, repeat)
        reads: Jobs = {
            "pqext": lambda raw=raw: pqext.read_table(raw),
            "pyarrow": lambda raw=raw_theirs: pq.read_table(io.BytesIO(raw)),
        }
        bench.compare(f"read: {name}", reads, {"pyarrow": goals[1]}, repeat)
        if goals[2]:
            one: Jobs = {
                "pqext": lambda raw=raw: pqext.read_table(raw, ["column_4000"]),
                "pyarrow": lambda raw=raw_theirs: pq.read_table(io.BytesIO(raw), columns=["column_4000"]),
            }
            bench.compare(f"read: one of {name}", one, {"pyarrow": goals[2]}, repeat)


def _read_half(path: str, columns: list[str], repeat: int, together: Any, seconds: Any) -> None:
    """Seconds of reading some columns while another process reads the others, of each round."""
    taken = []
    for _ in range(repeat + 1):
        together.wait()
        begin = time.perf_counter()
        pqext.read_table(path, columns, threads=1)
        taken.append(time.perf_counter() - begin)
    seconds.put(taken)


def two_processes(path: str, repeat: int) -> float:
    """Seconds that two processes take, each for half of the work: no threads of one process can take less."""
    names = pqext.open(path).schema.root.child_names
    alone = in_turn({name: partial(pqext.read_table, path, [name], threads=1) for name in names}, 3)
    halves: tuple[list[str], list[str]] = ([], [])
    for name in sorted(names, key=alone.__getitem__, reverse=True):
        min(halves, key=lambda half: sum(alone[one] for one in half)).append(name)
    context = multiprocessing.get_context("spawn")
    together, seconds = context.Barrier(2), context.SimpleQueue()
    processes = [
        context.Process(target=_read_half, args=(path, half, 4 * repeat, together, seconds)) for half in halves
    ]
    for process in processes:
        process.start()
    rounds = zip(*[seconds.get() for _ in processes], strict=True)
    for process in processes:
        process.join()
    return min(map(max, rounds))


def threads(bench: Bench, rows: int, folder: Path) -> None:
    """How much quicker two threads read than one, and two processes, which share nothing but the machine."""
    generator = np.random.default_rng(0)
    for name, table, goal in (
        ("16 x int64", pa.table({f"n{i}": generator.integers(0, 2**62, rows) for i in range(16)}), 1.8),
        ("lineitem", lineitem(rows), 1.9),
    ):
        case = f"threads: {name}"
        if bench.only not in case:
            continue
        path = str(folder / "threads.parquet")
        pq.write_table(table, path, compression="snappy", row_group_size=1 << 20)
        jobs: Jobs = {str(n): lambda n=n, path=path: pqext.read_table(path, threads=n) for n in (1, 2)}
        times = in_turn(jobs, 4 * bench.repeat)
        most = times["1"] / two_processes(path, bench.repeat)
        bench.figure(f"{case}, two processes over one", lambda most=most: most, "times", 1, above=True)
        bench.figure(
            f"{case}, two over one", lambda times=times: times["1"] / times["2"], "times", min(goal, 0.95 * most),
            above=True,
        )


def leaves(bench: Bench, rows: int, folder: Path) -> None:
    """One leaf of a shredded variant: summed, and compared with a constant."""
    documents = variant_documents.generated(variant_documents.SMALL, min(rows, 100_000))
    events = variant.parse_json(pa.array(documents), shredding=SHREDDING)
    table = pa.Table.from_batches(
        [pa.record_batch([events], schema=pa.schema([pa.field("v", events.type)]))] * max(1, rows // len(documents))
    )
    path, plain = str(folder / "leaves.parquet"), str(folder / "plain.parquet")
    pqext.write_table(table, path)
    duckdb.sql("SET threads = 2")
    arrow = pa.table({"event": pa.chunked_array([variant.get(events, "$.event", "string")] * (rows // len(documents)))})
    duckdb.register("plain", arrow)
    duckdb.sql("FROM plain").write_parquet(plain)

    def total(type: str) -> Any:
        return pa.compute.sum(pqext.read_table(path, [("x", col("v").variant("$.price", type))])["x"])

    for type in ("double", "decimal(9,2)"):

        def measure(type: str = type) -> float:
            return in_turn({"pqext": lambda: total(type)}, bench.repeat)["pqext"] * 1e3

        bench.figure(f"leaf: sum of a DECIMAL as {type}", measure, "ms", 10, above=False)
    scan = pqext.scan(path, filter=col("v").variant("$.event", "string") == "view")
    query = f"SELECT count(*) FROM read_parquet('{plain}') WHERE event = 'view'"
    assert duckdb.sql(query).fetchall() == [(scan.count(),)]
    counts: Jobs = {
        "pqext": scan.count,
        "DuckDB": lambda: duckdb.sql(query).fetchall(),
    }
    bench.compare("leaf: count where a string equals", counts, {"DuckDB": 1.1})


def pages(bench: Bench) -> None:
    """What a page costs beyond its values: many small ones against few."""
    rows, small = 1_000_000, 500
    table = pa.table({"n": np.random.default_rng(1).integers(0, 2**62, rows)})
    options: dict[str, Any] = {"compression": "uncompressed", "dictionary": False}

    def written(page_rows: int) -> bytes:
        out = io.BytesIO()
        pqext.write_table(table, out, page_rows=page_rows, **options)
        return out.getvalue()

    many, few = written(small), written(rows // 10)

    def extra(jobs: Jobs) -> float:
        times = in_turn(jobs, bench.repeat)
        return (times["many"] - times["few"]) * 1e6 / (rows / small)

    reads: Jobs = {"many": lambda: pqext.read_table(many), "few": lambda: pqext.read_table(few)}
    writes: Jobs = {"many": lambda: written(small), "few": lambda: written(rows // 10)}
    bench.figure("read: a page", lambda: extra(reads), "us", 3, above=False)
    bench.figure("write: a page", lambda: extra(writes), "us", 8, above=False)


def json(bench: Bench, megabytes: int, folder: Path) -> None:
    """JSON lines to shredded Parquet, compressed by zstd."""
    source = folder / "documents.ndjson"
    rows = variant_documents.generated(variant_documents.SMALL, int(megabytes * 1e6 / variant_documents.SMALL))
    source.write_text("\n".join(rows) + "\n", "utf-8")
    ours, theirs = folder / "ours.parquet", folder / "theirs.parquet"
    select = f"SELECT json::VARIANT AS value FROM read_ndjson_objects('{source}')"
    jobs: Jobs = {
        "pqext": lambda: pqext.write_table(
            variant.read_json(source, shredding="infer"), ours, compression="zstd", encodings="auto"
        ),
        "DuckDB": lambda: duckdb.sql(f"COPY ({select}) TO '{theirs}' (FORMAT parquet, COMPRESSION zstd)"),
    }
    bench.compare(f"json: {megabytes} MB shredded, zstd", jobs, {"DuckDB": 4}, 2)
    if ours.exists():
        decimals = ours.stat().st_size / 1e6
        documents = variant.read_json(source, shredding="infer", numbers="double")
        pqext.write_table(documents, ours, compression="zstd", encodings="auto")
        doubles, goal = ours.stat().st_size / 1e6, theirs.stat().st_size / 1e6
        # DuckDB reads numbers as doubles; decimals keep every digit of the text.
        bench.figure(f"json: {megabytes} MB shredded, numbers as doubles", lambda: doubles, "MB", goal, above=False)
        print(f"{'':44} {decimals:9.1f} MB with every digit, as decimals")


def main() -> int:
    """Print one line a case; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=int, default=0, metavar="MEGABYTES")
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    bench = Bench(options.repeat, options.only)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        whole_tables(bench, options.rows, folder)
        wide(bench)
        threads(bench, options.rows // 2, folder)
        leaves(bench, options.rows // 2, folder)
        pages(bench)
        if options.json:
            json(bench, options.json, folder)
    if options.record:
        bench.recording.save()
    for line in bench.missed:
        print("missed:", line)
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
