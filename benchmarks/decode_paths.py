"""What each way of decoding a column chunk gains on the case that it is for.

    python benchmarks/decode_paths.py [--repeat 5] [--record]

Each case is read as it is and without its path, so that the next more general path decodes the chunks. ``small``:
chunks of some kilobytes, one call each; ``table``: ordinary pages, using a table of their headers; ``selected``: the
values of a few rows, without decoding the others. Times are processor seconds of one thread. A path whose gain is under
1.3 is not worth its code.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from recording import Recording
from timing import least

import pqext
from pqext.core.read.column import _PASSED_ROWS, ColumnReader
from pqext.core.read.small_chunks import SmallLeaves
from pqext.core.schema.row_ranges import cover_rows, flag_rows, intersection


@contextmanager
def instead(owner: Any, name: str, value: Any) -> Iterator[None]:
    """``owner.name`` is ``value`` for a while."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def table(rows: int) -> pa.Table:
    """Numbers, words that a dictionary holds, texts that differ, and lists of words."""
    numbers = np.random.default_rng(1).integers(0, 1 << 40, rows)
    words = pa.DictionaryArray.from_arrays(numbers % 100, [f"word {n}" for n in range(100)]).cast(pa.string())
    return pa.table({
        "id": numbers,
        "word": words,
        "text": pa.array(numbers).cast(pa.string()),
        "words": pa.ListArray.from_arrays(np.arange(0, rows + 1, dtype=np.int32), words),
    })


def cases(folder: Path) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """By name, the reading and the context that takes the way out."""
    whole, small = table(2_000_000), table(60_000).select(["id", "word", "text"])
    pqext.write_table(whole, folder / "whole.parquet", page_rows=20_000, row_group_rows=1 << 20)
    pqext.write_table(small, folder / "small.parquet", row_group_rows=10)
    pqext.write_table(whole.select(["id", "word", "text"]), folder / "pages.parquet", page_rows=1_000)
    numbers = np.arange(0, 500_000, 20_000)

    def read(name: str, columns: list[str] | None = None) -> Callable[[], Any]:
        def job() -> Any:
            with pqext.open(folder / name, threads=1) as file:
                return file.read(columns)

        return job

    def single(name: str, columns: list[str]) -> Callable[[], Any]:
        def job() -> Any:
            with pqext.open(folder / name, threads=1) as file:
                return list(file.iter_dictionary_batches(1 << 20, columns, 0, numbers, (), file.budget()))

        return job

    return {
        "small": (read("small.parquet"), lambda: instead(SmallLeaves, "_ranges", lambda *_: None)),
        "table": (read("pages.parquet"), lambda: instead(ColumnReader, "_by_table", False)),
        "selected": (single("whole.parquet", ["words"]), lambda: instead(ColumnReader, "read_at", _ranges)),
    }


def _ranges(reader: ColumnReader, numbers: Any) -> Any:
    """Rows by ranges around them, of which the others are decoded and cut away."""
    ranges = intersection(cover_rows(numbers, _PASSED_ROWS), reader._place.rows)
    return reader._select_flagged(reader.read(ranges), flag_rows(numbers, ranges))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    recording = Recording("Decoding column chunks with and without each way", unit="processor seconds")
    with tempfile.TemporaryDirectory() as folder:
        for name, (job, without) in cases(Path(folder)).items():
            job()
            quick = least(job, arguments.repeat)
            with without():
                slow = least(job, arguments.repeat)
            recording.add(name, "pqext", quick)
            recording.add_figure(name, slow / quick, "times", 1.3)
            print(f"{name:10} {quick:8.3f} s {slow:8.3f} s  {slow / quick:5.1f} times", flush=True)
    if arguments.record:
        recording.save()


if __name__ == "__main__":
    main()
