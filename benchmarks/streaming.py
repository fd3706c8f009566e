"""Memory of reading a large file batch by batch: the peak of a process of its own, pqext beside pyarrow.

    python benchmarks/streaming.py [--megabytes 2000] [--batch-rows 65536]

The file has row groups of about 256 MB, as large as the whole reading may hold. Fails when pqext's peak, Python and
all libraries included, reaches 300 MB.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

LIMIT = 300
ROWS = 1 << 20

READ = {
    "pqext": "import pqext; batches = pqext.open(path).iter_batches(rows)",
    "pyarrow": "import pyarrow.parquet as pq; batches = pq.ParquetFile(path).iter_batches(rows)",
}
MEASURE = """
import sys, time
path, rows = sys.argv[1], int(sys.argv[2])
{}
begin, count, size = time.perf_counter(), 0, 0
for batch in batches:
    count += batch.num_rows
    size += batch.nbytes
# The peak of this program alone: what getrusage says begins with that of the process which started it.
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak) // 1024, count, size // 10**6, time.perf_counter() - begin)
"""


def write(path: Path, megabytes: int) -> int:
    """A file of random numbers, texts and lists of at least ``megabytes``; returns its rows."""
    generator = np.random.default_rng(0)
    rows = 0
    texts = pa.array([f"{value:x}" * 2 for value in generator.integers(0, 2**62, ROWS)])
    offsets = pa.array(np.arange(0, 2 * ROWS + 1, 2, dtype=np.int32))
    table = pa.table(
        {
            **{f"n{i}": pa.array(generator.integers(0, 2**62, ROWS)) for i in range(22)},
            "text": texts,
            "list": pa.ListArray.from_arrays(offsets, pa.array(generator.integers(0, 2**62, 2 * ROWS))),
        }
    )
    with pq.ParquetWriter(path, table.schema, use_dictionary=False, compression="snappy") as writer:
        while not path.exists() or path.stat().st_size < megabytes * 10**6:
            writer.write_table(table, row_group_size=ROWS)
            rows += ROWS
    return rows


def main() -> int:
    """Print one line a library; 1 when the limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--batch-rows", type=int, default=65_536)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.parquet"
        rows = write(path, options.megabytes)
        print(f"{path.stat().st_size / 1e6:.0f} MB in {pq.ParquetFile(path).num_row_groups} row groups, {rows} rows")
        peaks = {}
        for name, opening in READ.items():
            command = [sys.executable, "-c", MEASURE.format(opening), str(path), str(options.batch_rows)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            assert int(out[1]) == rows
            peaks[name] = int(out[0])
            print(f"{name:8} peak {out[0]:>6} MB for {out[2]} MB of batches in {float(out[3]):.1f} s")
    if peaks["pqext"] >= LIMIT:
        print(f"missed: {LIMIT} MB")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
