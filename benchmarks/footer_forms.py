"""Sizes and times of every form of footer, for few to very many columns and row groups.

    python benchmarks/footer_forms.py [--columns 10 100 ...] [--row-groups 1 10 100] [--chunks 10000000] [--record]

For each number of columns and of row groups, with statistics and without, pqext writes a file once, of int64 columns in
row groups of ten rows, and gives it every form of footer there is. Measured are the bytes of the footer, opening the
file and reading one column of it, and opening it and asking every column chunk for its size; pyarrow does the same
where it can read the form. Each time is the least processor time of this process over repeats, from a warm page cache
and without anything kept between the openings; a case is repeated until it has taken ``SECONDS`` or seven times. Sizes
of more column chunks than ``--chunks`` are left out, and of more than ``EVERY`` the second time is not taken; both are
told. Ten million chunks take some twenty minutes and 10 GB, most of them pyarrow's: ``--chunks 1000000`` spares them.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from recording import RESULTS, Recording

import pqext
from pqext.core.footer.writing import footer_format_of, rewrite_footer
from pqext.core.io.sources.locations import open_source
from pqext.core.options.layout import FORMATS, FooterFormat

COLUMNS, ROW_GROUPS, CHUNKS = (10, 100, 1_000, 10_000, 100_000), (1, 10, 100), 10_000_000
LIMITS = pqext.Limits(footer_bytes=(1 << 32) - 1, metadata_elements=1 << 40)
"""Those by default refuse footers of half a gigabyte."""
ROWS = 10
EVERY = 100_000
"""Column chunks up to which every one is asked."""
SECONDS = 0.5
HEAD = (
    "| columns | row groups | statistics | footer | bytes | open | pyarrow | one column | pyarrow "
    "| every chunk | pyarrow |"
)
FOREIGN = ("thrift", "thrift+index", "thrift+flatbuffers")
"""Forms that other readers take."""


def least(function: Callable[[], Any]) -> float:
    """Seconds of the processor that the quickest call takes."""
    times: list[float] = []
    gc.collect()
    while not times or (len(times) < 7 and sum(times) < SECONDS):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times)


def write(path: Path, columns: int, row_groups: int, *, statistics: bool) -> None:
    """A file of ``columns`` int64 columns, with a plain footer and without page indexes."""
    values = np.arange(ROWS * row_groups)
    table = pa.Table.from_arrays([pa.array(values)] * columns, [f"column_{place}" for place in range(columns)])
    pqext.write_table(
        table, path, row_group_rows=ROWS, dictionary=False, arrow_schema=False, statistics=statistics,
        page_index=False, compression="uncompressed",
    )


def in_forms(plain: Path) -> Iterator[tuple[FooterFormat, Path]]:
    """The file with each form of footer, one at a time, but those that are too long for other readers."""
    other = plain.with_name("other.parquet")
    for form in FORMATS:
        if form == "thrift":
            yield form, plain
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of second footers that are left out for their length
            rewrite_footer(plain, lambda metadata: metadata, other, footer=form, limits=LIMITS)
        with open_source(other) as source:
            has_it = footer_format_of(source) == form
        if has_it:
            yield form, other
        other.unlink()


def footer_bytes(path: Path) -> int:
    """What stands behind the last page: the footer in all its parts, up to the end of the file."""
    with pqext.open(path, limits=LIMITS) as file:
        return os.path.getsize(path) - file.footer.offset


def opened(path: Path) -> None:
    """Open a file and ask nothing."""
    pqext.open(path, limits=LIMITS).close()


def one_column(path: Path, name: str) -> pa.Table:
    """Open a file for one column."""
    with pqext.open(path, pqext.ReadOptions(threads=1), limits=LIMITS) as file:
        return file.read([name])


def every_chunk(path: Path) -> int:
    """Open a file and add up what its column chunks take."""
    with pqext.open(path, limits=LIMITS) as file:
        leaves = range(len(file.schema.leaves))
        return sum(group.chunk(leaf).metadata.total_compressed_size for group in file.row_groups for leaf in leaves)


def one_by_pyarrow(path: Path, name: str) -> pa.Table:
    """As ``one_column``."""
    return pq.ParquetFile(path).read([name], use_threads=False)


def every_by_pyarrow(path: Path) -> int:
    """As ``every_chunk``."""
    metadata = pq.read_metadata(path)
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return sum(group.column(leaf).total_compressed_size for group in groups for leaf in range(metadata.num_columns))


def measure(recording: Recording, folder: Path, columns: int, row_groups: int, *, statistics: bool) -> Iterator[str]:
    """Record and print one size, a line of the table for each form."""
    plain, name = folder / "plain.parquet", f"column_{columns // 2}"
    write(plain, columns, row_groups, statistics=statistics)
    size = f"{columns:,} x {row_groups}" + ("" if statistics else ", no statistics")
    for form, path in in_forms(plain):
        jobs = {"open": (partial(opened, path), partial(pq.read_metadata, path))}
        jobs |= {"one column": (partial(one_column, path, name), partial(one_by_pyarrow, path, name))}
        if columns * row_groups <= EVERY:
            jobs["every chunk"] = (partial(every_chunk, path), partial(every_by_pyarrow, path))
        stored = footer_bytes(path)
        recording.add_size(f"{form}: {size}", stored)
        cells = []
        for job, (ours, theirs) in jobs.items():
            engines = {"pqext": ours, "pyarrow": theirs} if form in FOREIGN else {"pqext": ours}
            assert len(engines) < 2 or job == "open" or ours() == theirs()
            for engine, function in engines.items():
                seconds = least(function)
                if job != "open":
                    recording.add(f"{form}, {job}: {size}", engine, seconds)
                cells.append(f"{seconds * 1e3:.2f}")
            cells += [""] * (2 - len(engines))
        cells += [""] * (6 - len(cells))
        told = "with" if statistics else "without"
        line = f"| {columns:,} | {row_groups} | {told} | {form} | {stored:,} | {' | '.join(cells)} |"
        print(line, flush=True)
        yield line
    plain.unlink()


def main() -> int:
    """Print one line a form of a size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--columns", type=int, nargs="+", default=COLUMNS)
    parser.add_argument("--row-groups", type=int, nargs="+", default=ROW_GROUPS)
    parser.add_argument("--chunks", type=int, default=CHUNKS, help="column chunks of a file at most")
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    pqext.set_cache_bytes(0)  # each opening finds the structures anew
    recording = Recording("Forms of footers by columns and row groups")
    lines = [HEAD, "|---:|---:|---|---|" + "---:|" * 7]
    print("\n".join(lines))
    left_out = []
    with tempfile.TemporaryDirectory() as folder:
        for columns in options.columns:
            for row_groups in options.row_groups:
                if columns * row_groups > options.chunks:
                    left_out.append(f"{columns:,} x {row_groups}")
                    continue
                for statistics in (True, False):
                    lines += measure(recording, Path(folder), columns, row_groups, statistics=statistics)
    notes = f"Every chunk is asked of {EVERY:,} column chunks at most. "
    notes += "Second footers of more than 100 MB are not written."
    if left_out:
        notes += f" Left out, being more than {options.chunks:,} column chunks: {', '.join(left_out)}."
    print(notes)
    if options.record:
        recording.save()
        told = f"# Forms of footers\n\n`python benchmarks/footer_forms.py`, milliseconds of the processor. {notes}\n\n"
        (RESULTS / "footer_forms.md").write_text(told + "\n".join(lines) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
