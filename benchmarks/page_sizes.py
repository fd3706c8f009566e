"""What page and row group sizes cost: file size, writing, reading all and reading one row, as ratios to the defaults.

    python benchmarks/page_sizes.py [--rows 2000000] [--repeat 3]

The format recommends pages of 8 KB and row groups of 512 MB to 1 GB; the defaults of ``WriteOptions`` were chosen by
this table. One row costs the pages that hold it, one of each column, by the offset index.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import read_write

import pqext
from pqext.core.options.read_write import WriteOptions

ANY = 1 << 40
PAGES = [
    (ANY, 8 << 10), (ANY, 64 << 10), (5_000, 256 << 10), (20_000, 256 << 10), (20_000, 1 << 20), (100_000, 1 << 20),
    (ANY, 8 << 20),
]
GROUPS = [16 << 10, 128 << 10, 1 << 20, 4 << 20]


def least(function: Callable[[], Any], repeat: int) -> float:
    """Seconds of the quickest call."""
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times)


def one_row(path: Path) -> float:
    """Mean stored bytes of the pages of a row."""
    total = rows = 0
    with pqext.open(path) as file:
        for group in file.row_groups:
            rows += group.num_rows
            for chunk in group.chunks():
                index = chunk.offset_index
                assert index is not None
                places = index.page_locations
                firsts = [place.first_row_index for place in places] + [group.num_rows]
                dictionary = chunk.byte_range[0] + chunk.byte_range[1] - sum(p.compressed_page_size for p in places)
                extra = max(dictionary - chunk.byte_range[0], 0)
                for place, first, last in zip(places, firsts, firsts[1:], strict=False):
                    total += (last - first) * (place.compressed_page_size + extra)
    return total / rows


def measure(table: Any, path: Path, repeat: int, **options: Any) -> tuple[float, float, float, float]:
    """(bytes, seconds to write, seconds to read, bytes of a row)."""
    write = least(lambda: pqext.write_table(table, path, compression="zstd", **options), repeat)
    read = least(lambda: pqext.read_table(path), repeat)
    return path.stat().st_size, write, read, one_row(path)


def main() -> int:
    """Print one line a size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    defaults = WriteOptions()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        tables = {"flights": read_write.flights(options.rows), "events": read_write.events(options.rows // 2)}
        for name, table in tables.items():
            base = measure(table, path, options.repeat)
            times = f"write {base[1]:.2f} s, read {base[2]:.2f} s"
            print(f"{name}: {base[0] / 1e6:.1f} MB, {times}, one row {base[3] / 1e3:.0f} KB")
            print(f"{'':44}{'size':>7}{'write':>7}{'read':>7}{'one row':>9}")
            sizes = [{"page_rows": rows, "page_bytes": size} for rows, size in PAGES]
            sizes += [{"row_group_rows": rows} for rows in GROUPS]
            for size in sizes:
                found = measure(table, path, options.repeat, **size)
                label = ", ".join(f"{key}={value}" for key, value in size.items() if value < ANY)
                mark = " *" if all(getattr(defaults, key) == value for key, value in size.items()) else ""
                ratios = [ours / theirs for ours, theirs in zip(found, base, strict=True)]
                print(f"{label + mark:44}{ratios[0]:7.2f}{ratios[1]:7.2f}{ratios[2]:7.2f}{ratios[3]:9.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
