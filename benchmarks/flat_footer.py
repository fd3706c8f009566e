"""A FlatBuffers footer of very many columns: made, verified whole, and opened for one column.

    python benchmarks/flat_footer.py [--columns 5000 100000] [--row-groups 10] [--repeat 7] [--record]

The file is that of ``footer_forms.py`` with statistics. Times are the least of the repeats by the clock, everything in
memory or in the page cache. Verifying 100,000 columns by 10 row groups is to take 50 milliseconds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from footer_forms import one_column, write
from recording import Recording

import pqext
from pqext.core.footer.flatbuffers.reading import encode_tables
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.thrift import encode
from pqext.core.kernels.flatbuffers.verify import verify


def least(function: Callable[[], Any], repeat: int) -> float:
    """Seconds of the quickest call."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> int:
    """Print a line a size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--columns", type=int, nargs="+", default=[5_000, 100_000])
    parser.add_argument("--row-groups", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    recording = Recording("FlatBuffers footers of very many columns", "seconds by the clock")
    with tempfile.TemporaryDirectory() as folder:
        plain, flat = Path(folder) / "plain.parquet", Path(folder) / "flat.parquet"
        for columns in options.columns:
            write(plain, columns, options.row_groups, statistics=True)
            rewrite_footer(plain, lambda metadata: None, flat, footer="flatbuffers")
            with pqext.open(plain) as file:
                serialised = encode(file.metadata)
            payload = encode_tables(serialised)
            size = f"{columns:,} x {options.row_groups}"
            recording.add_size(f"tables: {size}", len(payload))
            for job, function in {
                "made from Thrift": lambda data=serialised: encode_tables(data),
                "verified": lambda data=payload: verify(data),
                "one column": lambda name=f"column_{columns // 2}": one_column(flat, name),
            }.items():
                seconds = least(function, options.repeat)
                recording.add(f"{job}: {size}", "pqext", seconds)
                print(f"{size}: {job} {seconds * 1e3:.2f} ms", flush=True)
    if options.record:
        recording.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
