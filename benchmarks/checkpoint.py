"""What checkpoints cost: bytes and time of a file of 100 row groups with one after every 16, against none.

    python benchmarks/checkpoint.py [--repeat 7] [--rows 20000] [--columns 20] [--record]

Both ways are timed in turn; the figures are medians, and the median of the differences within a pair.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from recording import Recording

import pqext

_GROUPS = 100
_MOST_BYTES, _MOST_TIME = 1.0, 2.0
"""Percent that checkpoints may add."""


def timed(path: Path, part: pa.Table, every: int | None) -> float:
    """Seconds that a file takes."""
    start = time.perf_counter()
    with pqext.ParquetWriter(path, part.schema, checkpoint=every, row_group_rows=len(part)) as writer:
        for _ in range(_GROUPS):
            writer.write_table(part)
    return time.perf_counter() - start


def main() -> int:
    """Print bytes and seconds of both."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    draw = np.random.default_rng(1)
    part = pa.table({f"c{i}": draw.integers(0, 1 << 30, options.rows) for i in range(options.columns)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        timed(path, part, None)
        plain, safe, sizes = [], [], [0, 0]
        for _ in range(options.repeat):
            plain.append(timed(path, part, None))
            sizes[0] = path.stat().st_size
            safe.append(timed(path, part, 16))
            sizes[1] = path.stat().st_size
    added = median(b - a for a, b in zip(plain, safe, strict=True)) / median(plain)
    print(f"bytes {sizes[0]:,} and {sizes[1]:,}: {sizes[1] / sizes[0] - 1:+.3%}")
    print(f"seconds {median(plain):.3f} and {median(safe):.3f}: {added:+.2%} within pairs")
    if options.record:
        recording = Recording("Checkpoints: writing 100 row groups", "seconds by the clock")
        recording.add("no checkpoints", "pqext", median(plain))
        recording.add("a checkpoint after every 16", "pqext", median(safe))
        recording.add_figure("bytes added", 100 * (sizes[1] / sizes[0] - 1), "percent", _MOST_BYTES)
        recording.add_figure("time added", 100 * added, "percent", _MOST_TIME)
        recording.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
