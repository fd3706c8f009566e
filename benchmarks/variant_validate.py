"""Full validation of variants: GB of value bytes a second and core, and against decoding the same bytes with checks.

    python benchmarks/variant_validate.py [--megabytes 50] [--repeat 5] [FILE ...]

The documents are generated, of about 230 and 2,600 bytes, and the earthquakes that come with the package, or those of
FILES (JSON lines or one JSON array). Times are of the processor, the least of the repeats; the goal is 1 GB/s of value
bytes on the documents of about 2,600 bytes.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import pyarrow as pa
import variant_documents

from pqext import variant

GOAL = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    speeds = {}
    for name, rows in variant_documents.samples(options.files, options.megabytes).items():
        array = variant.parse_json(pa.array(rows))
        value, metadata = (array.field(part).nbytes / 1e9 for part in ("value", "metadata"))
        seconds = min(_seconds(array) for _ in range(options.repeat))
        speeds[name] = value / seconds
        print(
            f"{name:12} {len(rows):8,} documents: {value / seconds:5.2f} GB/s of value, "
            f"{(value + metadata) / seconds:5.2f} GB/s with metadata"
        )
    return 0 if min(speed for name, speed in speeds.items() if name != "230 bytes") >= GOAL else 1


def _seconds(array: pa.Array) -> float:
    start = time.process_time()
    assert variant.validate(array) is None
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
