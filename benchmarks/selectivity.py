"""Reading by a filter against reading everything and filtering then: from no row to all, and from 1 column to 100.

    python benchmarks/selectivity.py [--rows 1000000] [--repeat 5] [--record]

By the clock, with all processors, from a warm file cache. A figure is the time with the filter over the time of reading
all rows of the same columns and of the filter's, and choosing from them with Arrow; none may exceed 1.1.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from recording import Recording

import pqext
from pqext import col

SHARES = (0, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
WIDTHS = (1, 3, 10, 30, 100)
GOAL = 1.1


def table(rows: int, width: int) -> pa.Table:
    """A key at random, and columns of numbers, of words that repeat, and of text."""
    chance = np.random.default_rng(9)
    words = np.array([f"word {i}" for i in range(300)], object)
    columns = {"key": pa.array(chance.random(rows))}
    for number in range(width):
        match number % 3:
            case 0:
                columns[f"c{number}"] = pa.array(chance.normal(size=rows))
            case 1:
                columns[f"c{number}"] = pa.array(words[chance.integers(0, 300, rows)])
            case _:
                columns[f"c{number}"] = pa.array(chance.integers(0, 2**40, rows)).cast(pa.string())
    return pa.table(columns)


def in_turn(first: Callable[[], pa.Table], second: Callable[[], pa.Table], repeat: int) -> tuple[float, float]:
    """Least seconds of both."""
    least = [math.inf, math.inf]
    for _ in range(repeat + 1):
        for place, way in enumerate((first, second)):
            begin = time.perf_counter()
            way()
            least[place] = min(least[place], time.perf_counter() - begin)
    return least[0], least[1]


def main() -> int:
    """Print a line for each width; 1 when a figure exceeds the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    recording, worst = Recording("A filter against reading everything", "seconds by the clock"), 0.0
    print(f"{'columns':>8}" + "".join(f"{share:>9.1%}" for share in SHARES))
    with tempfile.TemporaryDirectory() as folder:
        for width in WIDTHS:
            path, names = Path(folder) / "table.parquet", [f"c{number}" for number in range(width)]
            rows = options.rows if width < 30 else options.rows // 4
            pqext.write_table(table(rows, width), path, compression="zstd", row_group_rows=rows // 3)
            line = f"{width:>8}"
            for share in SHARES:

                def everything(names: list[str] = names, share: float = share, path: Path = path) -> pa.Table:
                    found = pqext.read_table(path, ["key", *names])
                    return found.filter(pc.less(found["key"], share)).select(names)

                def filtered(names: list[str] = names, share: float = share, path: Path = path) -> pa.Table:
                    return pqext.read_table(path, names, col("key") < share)

                assert filtered().num_rows == everything().num_rows
                ours, theirs = in_turn(filtered, everything, options.repeat)
                recording.add(f"{width} columns, {share:.1%}", "pqext", ours)
                recording.add(f"{width} columns, {share:.1%}", "everything", theirs)
                worst = max(worst, ours / theirs)
                line += f"{ours / theirs:9.2f}"
            print(line, flush=True)
    if options.record:
        recording.save()
    print(f"worst: {worst:.2f} (goal: {GOAL})")
    return 0 if worst <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
