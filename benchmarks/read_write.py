"""Reading and writing whole files: pqext beside pyarrow, DuckDB and polars, in one run, as ratios.

    python benchmarks/read_write.py [--rows 2000000] [--repeat 5] [--threads 1] [--clock cpu] [--only int32]

A ratio is the peer's least time over ours, so above 1 we are quicker. Everyone reads the same file, which pyarrow
wrote, from a warm file cache into Arrow, and writes the same Arrow table with the same codec, row groups and
dictionary; pyarrow is asked for the page index and the checksums that pqext writes by default, the others have none.
``--clock cpu`` counts the processor time of the whole process, which a busy machine disturbs little;
``wall`` is what two threads are measured by. Each case is run once before it is timed, and the rounds of the
libraries alternate. A cell is empty where a library cannot read or write the type. Fails when the geometric mean
over pyarrow is below 1 or a case is below 0.6 of it.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from recording import Recording

import pqext

MEAN, WORST = 1.0, 0.6
PEERS = ("pyarrow", "duckdb", "polars")
NAMES = {"duckdb": "DuckDB"}


def with_nulls(array: pa.Array, generator: np.random.Generator) -> pa.Array:
    """Every tenth value null, at random."""
    mask = pa.array(generator.random(len(array)) < 0.1)
    return pa.compute.if_else(mask, pa.scalar(None, array.type), array)


def columns(rows: int) -> dict[str, pa.Array]:
    """One array a physical type, of few and of many distinct values."""
    generator = np.random.default_rng(1)
    few = generator.integers(0, 1000, rows)
    words = np.array([f"word {i:05d} of the list" for i in range(1000)], object)
    cents = pa.array(generator.integers(0, 10**15, rows)).cast(pa.decimal128(19, 0))
    steps = np.cumsum(generator.integers(0, 10**6, rows))
    return {
        "boolean": pa.array(generator.random(rows) < 0.3),
        "int32": pa.array(generator.integers(-(2**31), 2**31, rows).astype(np.int32)),
        "int32 few": pa.array(few.astype(np.int32)),
        "int64": pa.array(generator.integers(-(2**62), 2**62, rows)),
        "int64 few": pa.array(few),
        "float": pa.array(generator.normal(size=rows).astype(np.float32)),
        "double": pa.array(generator.normal(size=rows)),
        "double few": pa.array(few / 8),
        "string": pa.array([f"{value:x} and some more" for value in generator.integers(0, 2**60, rows)]),
        "string few": pa.array(words[few]),
        "timestamp": pa.array(1_700_000_000_000_000 + steps, pa.timestamp("us")),
        "decimal(20)": cents.cast(pa.decimal128(20, 2)),
        "fixed(16)": pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(16), rows, [None, pa.py_buffer(generator.bytes(16 * rows))]
        ),
    }


def nested(rows: int) -> dict[str, pa.Array]:
    """Lists, structs and maps over ``rows`` leaf values."""
    generator = np.random.default_rng(2)
    values = pa.array(generator.integers(0, 2**60, rows))
    cuts = np.sort(generator.integers(0, rows, rows // 5 - 1))
    offsets = pa.array(np.concatenate([[0], cuts, [rows]]).astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, values)
    struct = pa.StructArray.from_arrays(
        [values, with_nulls(values, generator)], fields=[pa.field("a", pa.int64()), pa.field("b", pa.int64())],
        mask=pa.array(generator.random(rows) < 0.1),
    )
    keys = pa.array([f"key {i % 97}" for i in range(rows)])
    return {
        "list<int64>": lists,
        "list<int64> nulls": pa.ListArray.from_arrays(offsets, with_nulls(values, generator)),
        "list<list<int64>>": pa.ListArray.from_arrays(
            pa.array(np.arange(0, len(lists) + 1, 4, dtype=np.int32)), lists[: len(lists) // 4 * 4]
        ),
        "struct<int64,int64>": struct,
        "map<string,int64>": pa.MapArray.from_arrays(offsets, keys, values),
    }


def flights(rows: int) -> pa.Table:
    """Departures: a few strings of few values, counts with nulls, a time that rises."""
    generator = np.random.default_rng(3)
    airports = np.array([f"{a}{b}{c}" for a in "ABCDEFG" for b in "OPQRS" for c in "XYZ"], object)
    departed = np.sort(generator.integers(0, 10**13, rows)) + 1_600_000_000_000_000
    delay = with_nulls(pa.array(generator.integers(-20, 300, rows).astype(np.int32)), generator)
    return pa.table(
        {
            "departed": pa.array(departed, pa.timestamp("us")),
            "carrier": pa.array(np.array(["AA", "BB", "CC", "DD", "EE"], object)[generator.integers(0, 5, rows)]),
            "flight": pa.array(generator.integers(1, 9999, rows).astype(np.int32)),
            "origin": pa.array(airports[generator.integers(0, len(airports), rows)]),
            "destination": pa.array(airports[generator.integers(0, len(airports), rows)]),
            "delay": delay,
            "distance": pa.array(generator.integers(80, 5000, rows).astype(np.float32)),
            "cancelled": pa.array(generator.random(rows) < 0.02),
        }
    )


def events(rows: int) -> pa.Table:
    """Web events: identifiers, a payload of text, tags and a nested location."""
    generator = np.random.default_rng(4)
    identifiers = [f"{value:016x}" for value in generator.integers(0, 2**62, rows)]
    kinds = np.array(["view", "click", "purchase", "login"], object)[generator.integers(0, 4, rows)]
    tags = pa.array([f"tag{i}" for i in generator.integers(0, 40, rows)])
    cuts = np.minimum(np.arange(rows + 1) * 2, rows).astype(np.int32)
    cents = pa.array(generator.integers(0, 10**6, rows)).cast(pa.decimal128(19, 0))
    return pa.table(
        {
            "id": pa.array(identifiers),
            "kind": pa.array(kinds),
            "at": pa.array(np.sort(generator.integers(0, 10**15, rows)), pa.timestamp("us", "UTC")),
            "amount": with_nulls(cents.cast(pa.decimal128(21, 2)), generator),
            "payload": pa.array([f'{{"n": {i}, "path": "/a/b/{i % 977}"}}' for i in range(rows)]),
            "tags": pa.ListArray.from_arrays(pa.array(cuts), tags),
            "where": pa.StructArray.from_arrays(
                [pa.array(generator.uniform(-180, 180, rows)), pa.array(generator.uniform(-90, 90, rows))], ["x", "y"]
            ),
        }
    )


def cases(rows: int) -> Iterator[tuple[str, pa.Table, bool, str]]:
    """(name, table, dictionary, codec) of every case."""
    generator = np.random.default_rng(5)
    for name, array in columns(rows).items():
        dictionary = name.endswith("few")
        required = pa.table([array], schema=pa.schema([pa.field("c", array.type, nullable=False)]))
        yield name, required, dictionary, "snappy"
        yield f"{name}, nulls", pa.table({"c": with_nulls(array, generator)}), dictionary, "zstd"
    for name, array in nested(rows).items():
        for codec in ("snappy", "zstd"):
            yield name, pa.table({"c": array}), False, codec
    for codec in ("snappy", "zstd"):
        yield "flights", flights(rows // 4), True, codec
        yield "events", events(rows // 8), True, codec


def readers(path: str, threads: int) -> dict[str, Callable[[], Any]]:
    """How each library reads a whole file into Arrow."""
    return {
        "pqext": lambda: pqext.read_table(path, threads=threads),
        "pyarrow": lambda: pq.read_table(path, use_threads=threads > 1),
        "duckdb": lambda: duckdb.sql(f"FROM read_parquet('{path}')").to_arrow_table(),
        "polars": lambda: polars.read_parquet(path),
    }


def writers(table: pa.Table, folder: Path, codec: str, dictionary: bool, threads: int) -> dict[str, Callable[[], Any]]:
    """How each library writes the table."""
    frame: Any = None
    try:
        frame = polars.from_arrow(table)
    except Exception:  # a type that polars lacks
        frame = None
    duckdb.register("benched", table)
    return {
        "pqext": lambda: pqext.write_table(
            table, folder / "pqext", compression=codec, dictionary=dictionary, threads=threads
        ),
        "pyarrow": lambda: pq.write_table(
            table, folder / "pyarrow", compression=codec, use_dictionary=dictionary,
            write_page_index=True, write_page_checksum=True,
        ),
        "duckdb": lambda: duckdb.sql("FROM benched").write_parquet(
            str(folder / "duckdb"), compression=codec, row_group_size=1 << 20
        ),
        "polars": lambda: frame.write_parquet(folder / "polars", compression=codec, row_group_size=1 << 20),
    }


def compare(
    functions: dict[str, Callable[[], Any]], repeat: int, clock: Callable[[], float], written: dict[str, Path]
) -> dict[str, float]:
    """Least seconds of each library that can do it; the rounds alternate. What was ``written`` is removed between."""
    least = {}
    for name, function in functions.items():
        try:
            function()
            least[name] = math.inf
        except Exception as error:
            if name in ("pqext", "pyarrow"):
                raise
            print(f"  {name}: {type(error).__name__}", file=sys.stderr)
    for _ in range(repeat):
        for name in least:
            if name in written:
                written[name].unlink()
            begin = clock()
            functions[name]()
            least[name] = min(least[name], clock() - begin)
    return least


def main() -> int:
    """Print one line a case; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--only", default="")
    parser.add_argument("--kinds", default="read,write")
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    os.environ["POLARS_MAX_THREADS"] = str(options.threads)
    global duckdb, polars
    import duckdb
    import polars

    duckdb.sql(f"SET threads = {options.threads}")
    pa.set_cpu_count(options.threads)
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    peers = options.peers.split(",")
    missed = []
    recording = Recording("Whole files")
    kinds = options.kinds.split(",")
    ratios: dict[str, list[float]] = {kind: [] for kind in kinds}
    print(f"{'':32}{'MB':>6}" + "".join(f"{kind + ' ms':>10}" + "".join(f"{p:>9}" for p in peers) for kind in kinds))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path = str(folder / "read.parquet")
        for name, table, dictionary, codec in cases(options.rows):
            label = f"{name} {codec}{' dictionary' if dictionary else ''}"
            if options.only not in label:
                continue
            pq.write_table(table, path, compression=codec, use_dictionary=dictionary, row_group_size=1 << 20)
            assert pqext.read_table(path).equals(table.cast(pqext.read_table(path).schema)), label
            line = f"{label:32}{table.nbytes / 1e6:6.0f}"
            for kind in kinds:
                if kind == "read":
                    functions = readers(path, options.threads)
                else:
                    functions = writers(table, folder, codec, dictionary, options.threads)
                targets = {k: folder / k for k in functions} if kind == "write" else {}
                chosen = {k: f for k, f in functions.items() if k in ("pqext", *peers)}
                times = compare(chosen, options.repeat, clock, targets)
                line += f"{times['pqext'] * 1e3:10.1f}"
                for name_of, seconds in times.items():
                    recording.add(f"{kind}: {label}", NAMES.get(name_of, name_of), seconds)
                for peer in peers:
                    line += f"{times[peer] / times['pqext']:9.2f}" if peer in times else " " * 9
                ratio = times["pyarrow"] / times["pqext"]
                ratios[kind].append(ratio)
                if ratio < WORST:
                    missed.append(f"{kind} {label}: {ratio:.2f} of pyarrow")
            print(line, flush=True)
    for kind, found in ratios.items():
        mean = math.exp(sum(map(math.log, found)) / len(found))
        print(f"{kind}: geometric mean {mean:.2f} over pyarrow, {len(found)} cases")
        if mean < MEAN:
            missed.append(f"{kind}: geometric mean {mean:.2f}")
    if options.record:
        recording.save()
    for line in missed:
        print("missed:", line)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
