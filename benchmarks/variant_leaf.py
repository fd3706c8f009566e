"""One leaf of a shredded VARIANT against the same values as a plain column, read by pqext in one run, as ratios.

    python benchmarks/variant_leaf.py [--rows 1000000] [--repeat 7]

Both files hold generated documents of about 230 bytes, with equal options: one the shredded VARIANT, the other each of
the leaves as a column of its own. A leaf is read by ``read_table(file, [col("v").variant(path, type)])``, a column by
its name. Times are of the processor, the least of the repeats, taken in turn. Fails when a leaf takes more than 1.2
times as long.
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

import pqext
from pqext import col, variant

GOAL = 1.2
SHREDDING = (
    "id BIGINT, ts STRING, event STRING, price DECIMAL(9,2), tags ARRAY<STRING>, "
    "user STRUCT<uid: BIGINT, country: STRING, vip: BOOLEAN>, position STRUCT<lat: DOUBLE, lon: DOUBLE>"
)
LEAVES = {
    "$.id": "int64",
    "$.event": "string",
    "$.price": "decimal(9,2)",
    "$.user.uid": "int64",
    "$.user.country": "string",
    "$.user.vip": "boolean",
    "$.position.lat": "double",
}


def in_turn(first: Callable[[], Any], second: Callable[[], Any], repeat: int) -> tuple[float, float]:
    """Processor seconds of the quickest call of each."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeat):
        for function, taken in zip((first, second), times, strict=True):
            start = time.process_time()
            function()
            taken.append(time.process_time() - start)
    return min(times[0]), min(times[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    rows = variant_documents.generated(variant_documents.SMALL, min(options.rows, 100_000))
    array = variant.parse_json(pa.array(rows), shredding=SHREDDING, numbers="double")
    columns = {path: variant.get(array, path, type) for path, type in LEAVES.items()}
    # Leaves of decimals hold nothing when all numbers are doubles: take these from the variants with decimals.
    decimals = variant.parse_json(pa.array(rows), shredding=SHREDDING)
    columns["$.price"] = variant.get(decimals, "$.price", LEAVES["$.price"])
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for path, type in LEAVES.items():
            source = decimals if path == "$.price" else array
            times = max(1, options.rows // len(rows))
            shredded, plain = Path(folder) / "shredded.parquet", Path(folder) / "plain.parquet"
            schema = pa.schema([pa.field("v", source.type)])
            pqext.write_table(pa.Table.from_batches([pa.record_batch([source], schema=schema)] * times), shredded)
            pqext.write_table(pa.table({"x": pa.chunked_array([columns[path]] * times)}), plain)
            wanted = [("x", col("v").variant(path, type))]
            assert pqext.read_table(shredded, wanted) == pqext.read_table(plain)
            leaf, column = in_turn(
                lambda: pqext.read_table(shredded, wanted),  # noqa: B023
                lambda: pqext.read_table(plain),  # noqa: B023
                options.repeat,
            )
            worst = max(worst, leaf / column)
            print(f"{path:16} column {column * 1000:7.1f} ms, leaf {leaf * 1000:7.1f} ms: {leaf / column:4.2f} times")
    return 0 if worst <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
