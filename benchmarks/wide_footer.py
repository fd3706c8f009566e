"""Wide footers: opening a file of many columns for one of them, pqext against its peers, in one run, as ratios.

    python benchmarks/wide_footer.py [--columns 5000] [--row-groups 10] [--repeat 7] [--indexed FILE] [--record]

Each figure is the least processor time of this process over the repeats, of which short calls have many, so that a busy
machine disturbs it little; the file is in the page cache. ``pyarrow, all`` parses the whole footer and is what the
others are measured by. The goals, checked for 5,000 columns or more: one column opened and read in 25/55 of that time,
and an index of all column chunks in 15/55 of it (0.3 microseconds a chunk where pyarrow takes 55 ms for 50,000). Of the
same columns written by pqext with a jump table (``footer="thrift+index"``), without a note of the Arrow schema, one is
to be opened and read in 1/50 of what pyarrow takes for that file. ``fresh`` is by the clock the first opening and
reading in a process that has read only a small file before, so that all code is loaded and nothing is known of these
columns: one column without a table is to be had in 1/6 of pyarrow's time. Fails when a goal is missed. ``--indexed``
keeps that file for later.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from recording import Recording
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

import pqext
from pqext.core.footer.reading import read_footer
from pqext.core.format.metadata import FileMetaData
from pqext.core.io.sources.locations import open_source

SECONDS = 0.5
ONE_COLUMN, INDEX, BY_TABLE, FRESH = 25 / 55, 15 / 55, 1 / 50, 1 / 6
FIRST = """
import sys, time, pqext, pyarrow.parquet as pq
engine, small, path, name = sys.argv[1:]
def read(path, name):
    if engine == "pyarrow":
        return pq.ParquetFile(path).read([name], use_threads=False)
    with pqext.open(path, threads=1) as file:
        return file.read([name])
read(small, "a")
begin = time.perf_counter()
read(path, name)
print(time.perf_counter() - begin)
"""


def least(function: Callable[[], Any], repeat: int) -> float:
    """Milliseconds of the quickest call, of so many and of as many as take half a second."""
    times: list[float] = []
    while len(times) < repeat or sum(times) < SECONDS:
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times) * 1e3


def fresh(engine: str, small: str, path: str, name: str, repeat: int) -> float:
    """Milliseconds of one column, what a process reads first but for a small file; of the quickest process."""
    command = [sys.executable, "-c", FIRST, engine, small, path, name]
    return min(float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(repeat)) * 1e3


def write(path: str, columns: int, row_groups: int, indexed: str) -> None:
    """Ten rows a row group, half of the columns int64 and half double, written by pyarrow, and with a jump table."""
    generator = np.random.default_rng(0)
    rows = 10 * row_groups
    kinds = (lambda: generator.integers(0, 1000, rows), lambda: generator.normal(size=rows))
    table = pa.table({f"column_{i}": kinds[i % 2]() for i in range(columns)})
    pq.write_table(table, path, row_group_size=10, use_dictionary=False)
    if not os.path.exists(indexed):
        pqext.write_table(
            table, indexed, row_group_rows=10, dictionary=False, arrow_schema=False, footer="thrift+index"
        )


TTYPES = {
    "bool": TType.BOOL, "i8": TType.BYTE, "i16": TType.I16, "i32": TType.I32, "i64": TType.I64, "double": TType.DOUBLE,
    "binary": TType.STRING, "string": TType.STRING,
}


def spec_of(cls: Any) -> list[Any]:
    """A class without fields of its own and its ``thrift_spec``, by which the package makes objects."""
    spec: list[Any] = [None] * (cls.fields[-1].id + 1 if cls.fields else 0)
    for one in cls.fields:
        arguments: Any = {"string": "UTF8", "binary": "BINARY"}.get(one.type) if isinstance(one.type, str) else None
        if isinstance(one.type, str):
            kind = TTYPES[one.type]
        elif issubclass(one.type, IntEnum):
            kind = TType.I32
        else:
            kind, arguments = TType.STRUCT, spec_of(one.type)
        if one.is_list:
            kind, arguments = TType.LIST, (kind, arguments, False)
        spec[one.id] = (one.id, kind, one.name, arguments, None)
    return [type(cls.__name__, (), {}), tuple(spec)]


SPEC = spec_of(FileMetaData)


def by_thrift(path: str) -> Any:
    """The whole footer as objects, through the thrift package's accelerated protocol."""
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[-8:-4], "little")
    transport = TMemoryBuffer(data[-8 - length : -8])
    protocol = TCompactProtocolAccelerated(transport, fallback=False)
    return protocol._fast_decode(SPEC[0](), protocol, SPEC)


def main() -> int:
    """Print one line a way of reading; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--columns", type=int, default=5000)
    parser.add_argument("--row-groups", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--indexed", help="the file with a jump table, which is written where it is not there")
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    pqext.set_cache_bytes(0)  # each opening finds the structures anew
    name = f"column_{options.columns // 2}"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "wide.parquet")
        indexed = options.indexed or os.path.join(folder, "indexed.parquet")
        write(path, options.columns, options.row_groups, indexed)
        footer = pq.read_metadata(path).serialized_size
        chunks = options.columns * options.row_groups
        print(f"{options.columns:,} columns x {options.row_groups} row groups, {footer / 1e6:.1f} MB of footer")

        def ours(path: str = path) -> pa.Table:
            with pqext.open(path, pqext.ReadOptions(threads=1)) as file:
                return file.read([name])

        def bounds(path: str = path) -> list[Any]:
            with pqext.open(path) as file:
                leaf = file.schema.find(name)
                assert leaf is not None
                return [group.chunk(leaf).bounds() for group in file.row_groups]

        def through_duckdb() -> Any:
            connection = duckdb.connect(config={"threads": 1})
            return connection.execute(f"select {name} from read_parquet(?)", [path]).fetchall()

        expected = pq.read_table(path, columns=[name])
        assert ours() == ours(indexed) == expected
        ways: dict[str, Callable[[], Any]] = {
            "pyarrow, all": lambda: pq.read_metadata(path),
            "pyarrow, one column": lambda: pq.ParquetFile(path).read([name], use_threads=False),
            "polars, one column": lambda: pl.scan_parquet(path).select(name).collect(),
            "duckdb, one column": through_duckdb,
            "thrift package, all": lambda: by_thrift(path),
            "pqext, index of all": lambda: read_footer(open_source(path)),
            "pqext, open": lambda: pqext.open(path).close(),
            "pqext, bounds of one": bounds,
            "pqext, one column": ours,
            "pyarrow, jump table": lambda: pq.ParquetFile(indexed).read([name], use_threads=False),
            "bounds, jump table": lambda: bounds(indexed),
            "pqext, jump table": lambda: ours(indexed),
        }
        taken = {way: least(function, options.repeat) for way, function in ways.items()}
        small = os.path.join(folder, "small.parquet")
        pqext.write_table(pa.table({"a": [*range(100)]}), small, footer="thrift+index", row_group_rows=10)
        first = {
            (kind, engine): fresh(engine, small, file, name, options.repeat)
            for kind, file in (("Thrift", path), ("jump table", indexed))
            for engine in ("pyarrow", "pqext")
        }
    whole = taken["pyarrow, all"]
    print(f"{'':22}{'ms':>9}{'of pyarrow':>12}{'us a chunk':>12}")
    for way, time_ in taken.items():
        print(f"{way:22}{time_:9.1f}{time_ / whole:12.2f}{time_ * 1e3 / chunks:12.3f}")
    for (kind, engine), time_ in first.items():
        print(f"{f'{engine}, {kind}, fresh':22}{time_:9.1f}{time_ / whole:12.2f}")
    by_table, theirs = taken["pqext, jump table"], taken["pyarrow, jump table"]
    by_fresh = first["Thrift", "pyarrow"] / first["Thrift", "pqext"]
    if options.record:
        recording = Recording(f"One of {options.columns:,} columns in {options.row_groups} row groups")
        for case, engines in {
            "Thrift": {engine: taken[f"{engine}, one column"] for engine in ("pqext", "pyarrow", "polars", "duckdb")},
            "jump table": {"pqext": by_table, "pyarrow": theirs},
            "Thrift, fresh process": {engine: first["Thrift", engine] for engine in ("pqext", "pyarrow")},
            "jump table, fresh process": {engine: first["jump table", engine] for engine in ("pqext", "pyarrow")},
        }.items():
            for engine, time_ in engines.items():
                recording.add(case, {"duckdb": "DuckDB"}.get(engine, engine), time_ / 1e3)
        recording.add_figure("fresh process, Thrift: pyarrow's time by ours", by_fresh, "times", 1 / FRESH)
        recording.add_figure("jump table: pyarrow's time by ours", theirs / by_table, "times", 1 / BY_TABLE)
        recording.save()
    if options.columns < 5000:
        return 0
    missed = [
        f"{way}: {taken[way] / whole:.2f} of pyarrow's time, more than {goal:.2f}"
        for way, goal in (("pqext, one column", ONE_COLUMN), ("pqext, index of all", INDEX))
        if taken[way] / whole > goal
    ]
    if by_fresh < 1 / FRESH:
        missed.append(f"in a fresh process: 1/{by_fresh:.1f} of pyarrow's time, more than 1/{1 / FRESH:.0f}")
    if by_table / theirs > BY_TABLE:
        missed.append(f"by the jump table: 1/{theirs / by_table:.0f} of pyarrow's time, more than 1/{1 / BY_TABLE:.0f}")
    for line in missed:
        print("missed:", line)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
