"""A store of a million objects that are not there: its size, and what planning through it takes.

    python benchmarks/skipping_million.py [--objects 1000000]

Rows of the store are made up, in parts of 50,000, as a job of Spark would write them: least and greatest of an id that
grows, a list of three of 1,000 places, a box of a degree, counts of nulls. By the clock, from a warm file cache, the
files' times and sizes known as from a listing: the first plan of a query that one object answers, the next one by the
same store, and one by the box; the memory that this takes at most, and merging all parts into one.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pqext import col, skipping
from pqext.dataset.expressions import Expression
from pqext.geo.types import GeospatialType
from pqext.skipping.format.names import object_name
from pqext.skipping.maintenance.object_cells import TypedIndex
from pqext.skipping.maintenance.part_layout import Layout, part_name, write_split_part
from pqext.skipping.store.clauses import exclusions
from pqext.skipping.store.folders import VERSION, VERSION_TYPE
from pqext.skipping.store.objects import Objects

PART = 50_000
AT = 1_700_000_000_000
SIZE = 128 << 20
BASE = "s3://bucket/table"


def layout() -> Layout:
    """The columns of the store."""
    indexes: list[tuple[skipping.Index, pa.DataType]] = [
        (skipping.MinMax("id"), pa.int64()), (skipping.ValueList("place"), pa.string()),
        (skipping.Box("at", GeospatialType()), pa.binary()), (skipping.NullCount("id"), pa.int64()),
    ]  # fmt: skip
    indexed = [TypedIndex(index, type, index.cell_type(type)) for index, type in indexes]
    return Layout.for_indexes(indexed, "/table", pa.schema([]))


def path_of(number: int) -> str:
    """The URL of an object, as long as Spark's are."""
    return f"{BASE}/day={number // 1000:05}/part-{number:08}-6d0244e6-5e37-4576-b237-483a35501517-c000.snappy.parquet"


def write(folder: Path, count: int) -> None:
    """The parts of the store."""
    made = layout()
    random = np.random.default_rng(5)
    for start in range(0, count, PART):
        numbers = np.arange(start, min(start + PART, count))
        rows = len(numbers)
        lists = pa.array([f"place {one}" for one in random.integers(0, 1000, rows * 3)])
        x, y = random.uniform(-180, 179, rows), random.uniform(-90, 89, rows)
        ends = {"xmin": x, "xmax": x + 1, "ymin": y, "ymax": y + 1, "zmin": [None] * rows, "zmax": [None] * rows}
        cells = {
            "minmax": pa.StructArray.from_arrays([pa.array(numbers * 1000 + end) for end in (0, 999)], ["min", "max"]),
            "valuelist": pa.ListArray.from_arrays(np.arange(0, 3 * rows + 1, 3, dtype=np.int32), lists),
            "box": pa.StructArray.from_arrays([pa.array(one, pa.float64()) for one in ends.values()], [*ends]),
            "nulls": pa.StructArray.from_arrays(
                [pa.array(np.full(rows, value)) for value in (1000, 0, 0)], ["rows", "nulls", "nans"]
            ),
        }
        names = pa.array([object_name(path_of(int(number)), AT + int(number)) for number in numbers])
        columns = {column.name: cells[column.index] for column, _ in made.columns}
        own = {one.name: columns[one.name] for one in made.own.indexes}
        extra = {one.name: columns[one.name] for one in made.extra.indexes if one.name != VERSION}
        described = ({"size": SIZE + int(number), "etag": f"{number:032x}"} for number in numbers)
        versions = pa.array(described, VERSION_TYPE)
        name = part_name(start // PART)
        extra_table = pa.table({"obj_name": names, VERSION: versions, **extra})
        write_split_part(str(folder / "_pqext"), extra_table, made.extra, None, name)
        write_split_part(str(folder), pa.table({"obj_name": names, **own}), made.own, None, name)


def listed(count: int) -> Objects:
    """The objects as a listing tells them."""
    numbers = np.arange(count)
    etags = pa.array([f"{number:032x}" for number in numbers])
    return Objects((None,) * count, pa.array(map(path_of, numbers.tolist())), AT + numbers, SIZE + numbers, etags)


def timed(what: str, job: Callable[[], Any]) -> Any:
    """Print what a job takes."""
    begin = time.perf_counter()
    found = job()
    print(f"| {what} | {time.perf_counter() - begin:.2f} s |", flush=True)
    return found


def main() -> int:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--objects", type=int, default=1_000_000)
    options = parser.parse_args()
    count = options.objects
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "store"
        begin = time.perf_counter()
        write(place, count)
        print(f"| {count:,} objects | |\n|---|---:|")
        print(f"| writing the parts | {time.perf_counter() - begin:.1f} s |")
        folders = place, place / "_pqext"
        sizes = [sum(one.stat().st_size for one in where.glob("*.parquet")) / 1e6 for where in folders]
        print(f"| size, own and further indexes | {sizes[0]:.0f} + {sizes[1]:.0f} MB |")
        objects = listed(count)
        store = skipping.open_store(place)
        point = col("id") == count * 500 + 5

        def left(filter: Expression) -> int:
            excluded = exclusions(filter, store.evidence(objects, filter), count)
            return count - sum(int(exclusion.objects.sum()) for exclusion in excluded)

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert timed("first plan, one id", lambda: left(point)) == 1
        assert timed("next plan, one id", lambda: left(point)) == 1
        print("| objects left by a box |", timed("plan, a box of two degrees", lambda: left(
            col("at").intersects((10, 10, 12, 12))
        )), "|")
        print("| objects left by a place |", timed("plan, one of 1,000 places", lambda: left(
            col("place") == "place 7"
        )), "|")
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"| memory of planning | {grown:.0f} MB |")
        timed("merging all parts into one", lambda: skipping.compact(place))
    return 0


if __name__ == "__main__":
    sys.exit(main())
