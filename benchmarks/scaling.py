"""How much quicker two threads are than one: pqext beside pyarrow's reading, by the clock on the wall.

    python benchmarks/scaling.py [--rows 4000000] [--repeat 5]

Needs an idle machine with two processors at least. A figure is the least time with one thread over the least time
with two, so 2 is ideal. pyarrow writes with one thread only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import read_write

import pqext


def tables(rows: int) -> dict[str, pa.Table]:
    """Tables of many columns."""
    generator = np.random.default_rng(0)
    numbers = {f"n{i}": pa.array(generator.integers(0, 2**62, rows // 4)) for i in range(16)}
    return {
        "16 x int64": pa.table(numbers),
        "flights": read_write.flights(rows),
        "events": read_write.events(rows // 4),
    }


def speed_up(function: Callable[[int], Any], repeat: int, remove: Path | None = None) -> float:
    """Least seconds of one thread over those of two, in turns; the file ``remove`` goes before each."""
    least = {1: 1e9, 2: 1e9}
    for _ in range(repeat):
        for threads in least:
            if remove is not None:
                remove.unlink(missing_ok=True)
            begin = time.perf_counter()
            function(threads)
            least[threads] = min(least[threads], time.perf_counter() - begin)
    return least[1] / least[2]


def main() -> int:
    """Print one line a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()

    def by_pyarrow(threads: int) -> pa.Table:
        pa.set_cpu_count(threads)
        return pq.read_table(path, use_threads=threads > 1)

    print(f"{'':14}{'codec':>8}{'read':>8}{'pyarrow':>9}{'write':>8}")
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "read", Path(folder) / "written"
        for name, table in tables(options.rows).items():
            for codec in ("snappy", "zstd"):
                pq.write_table(table, path, compression=codec, row_group_size=1 << 20)

                def write(threads: int, table: pa.Table = table, codec: str = codec) -> None:
                    pqext.write_table(table, out, compression=codec, threads=threads)

                reading = speed_up(lambda threads: pqext.read_table(path, threads=threads), options.repeat)
                theirs = speed_up(by_pyarrow, options.repeat)
                writing = speed_up(write, options.repeat, out)
                print(f"{name:14}{codec:>8}{reading:8.2f}{theirs:9.2f}{writing:8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
