"""How fast a file without any footer is recovered, its schema given.

    python benchmarks/recover.py [--megabytes 1000] [--repeat 3] [--writer pqext|pyarrow]

Every page is found by its header, its checksum compared, decoded and copied.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pqext

_GROUP = 500_000
"""Rows of a row group."""


def make(path: Path, size: int, writer: str) -> pa.Schema:
    """Write a file of about ``size`` bytes before its footer, which is cut off."""
    draw = np.random.default_rng(1)

    def rows() -> pa.Table:
        return pa.table({
            "id": draw.integers(0, 1 << 40, _GROUP), "price": draw.normal(size=_GROUP),
            "name": pa.array(draw.integers(0, 1 << 30, _GROUP)).cast(pa.string()),
            "kind": draw.integers(0, 999, _GROUP),
        })

    table, one = rows(), io.BytesIO()
    kinds: dict[str, Any] = {"pqext": pqext.ParquetWriter, "pyarrow": pq.ParquetWriter}
    with kinds[writer](one, table.schema) as file:
        file.write_table(table)
    with kinds[writer](path, table.schema) as file:
        for _ in range(max(size // len(one.getvalue()), 1)):
            file.write_table(rows())
    with path.open("r+b") as whole:
        whole.seek(-8, 2)
        end = whole.tell() - int.from_bytes(whole.read(4), "little")
        whole.truncate(end)
    return table.schema


def main() -> int:
    """Print the speed of each call."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--writer", choices=("pqext", "pyarrow"), default="pqext")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "lost.parquet", Path(folder) / "out.parquet"
        schema = make(path, options.megabytes * 1_000_000, options.writer)
        for _ in range(options.repeat):
            begin, ran = time.perf_counter(), time.process_time()
            report = pqext.recover(path, out, schema=schema)
            seconds, processor = time.perf_counter() - begin, time.process_time() - ran
            megabytes = path.stat().st_size / 1e6
            print(
                f"{options.writer}: {megabytes:.0f} MB, {report.rows:,} rows in {seconds:.2f} s, "
                f"{megabytes / seconds:.0f} MB/s ({processor:.2f} s of processors)", flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
