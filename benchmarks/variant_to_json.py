"""Shredded Parquet files to JSON text, whole: pqext against DuckDB on the same files, in one run, as ratios.

    python benchmarks/variant_to_json.py [--megabytes 20] [--repeat 3] [FILE ...]

The documents are generated, of about 230 and 2,600 bytes, and the earthquakes that come with the package, or those of
FILES (JSON lines, one JSON array, or GeoJSON); each is shredded by the schema that pqext infers and written once.
pqext reads with ``read_table(file, shredded=True)`` and writes text with ``to_json``, DuckDB casts the column to JSON
and adds up the lengths, both on one thread. Beside it the same text by way of whole binary values. Times are of the
processor, the least of the repeats. Fails when pqext is not twice as fast as DuckDB.
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
import variant_documents
from recording import Recording

import pqext
from pqext import variant

GOAL = 2.0


def least(function: Callable[[], Any], repeat: int) -> float:
    """Processor seconds of the quickest call."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def duckdb_seconds(path: Path, repeat: int) -> float | None:
    """DuckDB on one thread, None when it is not installed."""
    try:
        import duckdb
    except ImportError:
        return None
    connection = duckdb.connect(config={"threads": 1})
    query = f"SELECT sum(strlen(v::JSON::VARCHAR)) FROM '{path}'"
    return least(lambda: connection.execute(query).fetchall(), repeat)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    ratios = []
    recording = Recording("Shredded files to JSON text")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "documents.parquet"
        for name, rows in variant_documents.samples(options.files, options.megabytes).items():
            array = variant.parse_json(pa.array(rows))
            shredded = variant.shred(array, variant.infer_schema(array))
            pqext.write_table(pa.table([shredded], schema=pa.schema([pa.field("v", shredded.type)])), path)
            texts = variant.to_json(array)
            megabytes = texts.nbytes / 1e6
            fused = least(lambda: variant.to_json(read(path)), options.repeat)
            assert variant.to_json(read(path)).combine_chunks() == texts
            whole = least(lambda: variant.to_json(variant.unshred(read(path))), options.repeat)
            print(
                f"{name:12} {len(rows):8,} documents, {megabytes:.0f} MB: pqext {megabytes / fused:5.0f} MB/s, ", end=""
            )
            print(f"{whole / fused:.1f} times as fast as by whole values", end="")
            theirs = duckdb_seconds(path, options.repeat)
            if theirs is not None:
                ratios.append(theirs / fused)
                recording.add(name, "pqext", fused)
                recording.add(name, "DuckDB", theirs)
                print(f", {theirs / fused:.1f} times as fast as DuckDB", end="")
            print()
    if options.record:
        recording.save()
    return 0 if min(ratios, default=GOAL) >= GOAL else 1


def read(path: Path) -> pa.ChunkedArray:
    return pqext.read_table(path, shredded=True, threads=1)["v"]


if __name__ == "__main__":
    sys.exit(main())
