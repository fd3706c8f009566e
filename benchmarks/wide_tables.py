"""The fixed cost of a column chunk: wide tables and tiny row groups, pqext against pyarrow, in one run, as ratios.

    python benchmarks/wide_tables.py [--columns 5000] [--row-groups 2000] [--widest 100000] [--repeat 3]

Three tables: ``--columns`` of 100 rows in one row group, int64 and string by turns; five columns of 10 rows a row group
in ``--row-groups`` of these; ``--widest`` columns of 10 rows, written and read once, which shows what grows faster
than the number of columns (0 leaves it out). pyarrow writes what pqext writes without being asked: page indexes and
checksums. Each reads its own file. Figures are the least processor time of all threads over the repeats, in
microseconds a column chunk, and what pqext takes of pyarrow's time: less is better.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import timing

import pqext


def wide(columns: int, rows: int) -> pa.Table:
    """Columns of int64 and of strings by turns."""
    generator = np.random.default_rng(0)
    kinds: tuple[Callable[[], pa.Array], ...] = (
        lambda: pa.array(generator.integers(0, 1 << 40, rows)),
        lambda: pa.array([f"value {number}" for number in generator.integers(0, 1000, rows)]),
    )
    return pa.table([kinds[i % 2]() for i in range(columns)], names=[f"column_{i}" for i in range(columns)])


def narrow(rows: int) -> pa.Table:
    """Five columns, three of numbers and two of strings."""
    generator = np.random.default_rng(0)
    return pa.table(
        {
            "id": generator.integers(0, 1 << 40, rows),
            "name": [f"value {number}" for number in generator.integers(0, 1000, rows)],
            "share": generator.normal(size=rows),
            "count": generator.integers(0, 100, rows).astype(np.int32),
            "kind": [f"kind {number}" for number in generator.integers(0, 10, rows)],
        }
    )


def compare(name: str, table: pa.Table, row_group_rows: int, repeat: int) -> None:
    """Print one line: both write ``table`` and read what they wrote."""
    chunks = table.num_columns * -(-len(table) // row_group_rows)
    ours, theirs = io.BytesIO(), io.BytesIO()

    def writes() -> None:
        ours.seek(0)
        pqext.write_table(table, ours, row_group_rows=row_group_rows)

    def pyarrow_writes() -> None:
        theirs.seek(0)
        pq.write_table(
            table, theirs, row_group_size=row_group_rows, write_page_index=True, write_page_checksum=True,
            store_schema=False,
        )

    def reads() -> Any:
        return pqext.read_table(ours.getbuffer())

    def pyarrow_reads() -> Any:
        return pq.read_table(io.BytesIO(theirs.getbuffer()), page_checksum_verification=True)

    ways = (writes, pyarrow_writes, reads, pyarrow_reads)
    taken = [timing.least(way, repeat) * 1e6 / chunks for way in ways]
    assert reads() == pyarrow_reads() == table
    print(
        f"{name:34}{chunks:8,}{taken[0]:9.0f}{taken[1]:9.0f}{taken[0] / taken[1]:7.2f}"
        f"{taken[2]:9.0f}{taken[3]:9.0f}{taken[2] / taken[3]:7.2f}", flush=True,
    )


def main() -> int:
    """Print one line a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--columns", type=int, default=5000)
    parser.add_argument("--row-groups", type=int, default=2000)
    parser.add_argument("--widest", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    print(f"{'':34}{'chunks':>8}{'write':>9}{'pyarrow':>9}{'ratio':>7}{'read':>9}{'pyarrow':>9}{'ratio':>7}")
    compare(f"{options.columns:,} columns x 100 rows", wide(options.columns, 100), 100, options.repeat)
    compare(f"5 columns x {options.row_groups:,} row groups", narrow(10 * options.row_groups), 10, options.repeat)
    if options.widest:
        compare(f"{options.widest:,} columns x 10 rows", wide(options.widest, 10), 10, 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
