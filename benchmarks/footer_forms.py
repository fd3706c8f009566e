"""Sizes of footers in each form, and the time to open a file and read one column by them, beside pyarrow.

    python benchmarks/footer_forms.py [--repeat 3] [--chunks 1000000] [--record]

Columns are int64, of one row in each row group. Shapes of more than ``--chunks`` column chunks are left out. Times are
the least of some runs after one for warmth, on one thread, the file being in the system's cache.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from recording import RESULTS, Recording

import pqext

COLUMNS = (10, 100, 1_000, 10_000, 100_000)
ROW_GROUPS = (1, 10, 100)
FORMS = ("thrift", "thrift+index")


def least(call: Callable[[], Any], repeat: int) -> float:
    """Seconds of the quickest of ``repeat`` calls after one for warmth."""
    call()
    taken = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def write(path: Path, columns: int, row_groups: int, form: Any, statistics: bool) -> None:
    """A file of this shape."""
    table = pa.table({f"column_{at}": pa.array([at], pa.int64()) for at in range(columns)})
    with pqext.ParquetWriter(
        path, table.schema, footer=form, statistics=statistics, page_index=False, dictionary=False, threads=1,
        arrow_schema=False,
    ) as writer:
        for _ in range(row_groups):
            writer.write_table(table)
            writer.end_row_group()


def main() -> int:
    """Print a table, and record it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--chunks", type=int, default=1_000_000)
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    recording = Recording("one column by each form of the footer", "seconds")
    lines = [
        "| columns | row groups | statistics | form | bytes | open, ms | one column, ms | pyarrow, ms | ratio |",
        "|---:|---:|---|---|---:|---:|---:|---:|---:|",
    ]
    shapes = [(c, r) for c in COLUMNS for r in ROW_GROUPS if c * r <= options.chunks]
    for (columns, groups), statistics in [(shape, flag) for shape in shapes for flag in (True, False)]:
        name = f"column_{columns // 2}"
        for form in FORMS:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "wide.parquet"
                write(path, columns, groups, form, statistics)
                with path.open("rb") as file:
                    file.seek(-8, 2)
                    size = int.from_bytes(file.read(4), "little")

                def ours(path: Path = path, name: str = name) -> pa.Table:
                    with pqext.open(path, threads=1) as file:
                        return file.read([name])

                def theirs(path: Path = path, name: str = name) -> pa.Table:
                    return pq.ParquetFile(path).read([name], use_threads=False)

                assert ours().equals(theirs())
                opened = least(lambda path=path: pqext.open(path).close(), options.repeat)
                taken, other = least(ours, options.repeat), least(theirs, options.repeat)
            told = "with" if statistics else "without"
            lines.append(
                f"| {columns:,} | {groups} | {told} | {form} | {size:,} | {opened * 1e3:.2f} | {taken * 1e3:.2f} "
                f"| {other * 1e3:.2f} | {other / taken:.1f} |"
            )
            print(lines[-1], flush=True)
            if statistics:
                case = f"{columns:,} x {groups}, {form}"
                recording.add(case, "pqext", taken)
                recording.add(case, "pyarrow", other)
    if options.record:
        recording.save()
        head = f"# Footers in their forms\n\n`python benchmarks/footer_forms.py`, {len(shapes)} shapes; ratio: "
        told = "pyarrow's time for one column over ours by the same file.\n\n"
        (RESULTS / "footer_forms.md").write_text(head + told + "\n".join(lines) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
