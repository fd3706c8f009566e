"""Scans of plain and nested columns with filters, against pyarrow, and files written by several threads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from stress.cases import ROW_GROUP_ROWS, Case

import pqext
from pqext import col

ROWS = 6_000
CODECS = ("zstd", "snappy", "gzip", "lz4_raw", "brotli", "uncompressed")


def columns() -> pa.Table:
    generator = np.random.default_rng(7)
    numbers = generator.integers(0, 10_000, ROWS)
    start = datetime(2026, 5, 1, tzinfo=UTC)
    texts = pa.array([None if number % 17 == 0 else f"text {number % 300}" for number in numbers.tolist()])
    lists = [None if number % 19 == 0 else list(range(number % 6)) for number in numbers.tolist()]
    return pa.table(
        {
            "id": np.arange(ROWS),
            "number": pa.array(numbers, mask=numbers % 13 == 0),
            "double": generator.normal(size=ROWS),
            "text": texts,
            "word": texts.dictionary_encode(),
            "blob": [bytes([number % 256]) * (number % 90) for number in numbers.tolist()],
            "amount": pa.array([Decimal(number) / 100 for number in numbers.tolist()], pa.decimal128(12, 2)),
            "time": pa.array(
                [start + timedelta(minutes=number) for number in numbers.tolist()], pa.timestamp("us", "UTC")
            ),
            "list": pa.array(lists, pa.list_(pa.int32())),
            "nested": [None if n % 23 == 0 else {"a": n, "b": {"c": f"c{n % 50}"}} for n in numbers.tolist()],
        }
    )


def cases(folder: Path) -> Iterator[Case]:
    table = columns()
    for codec in CODECS:
        path = folder / f"{codec}.parquet"
        pqext.write_table(
            table, path, row_group_rows=ROW_GROUP_ROWS, compression=codec, page_bytes=2048, bloom_filters={"text": True}
        )
        yield Case(f"{codec}: all columns", partial(read_table, path), plain(table))
        yield Case(f"{codec}: written", partial(written, table, codec), plain(table))
    path = folder / "zstd.parquet"
    conditions = {
        "number": (col("number") < 300, pc.less(table["number"], 300)),
        "text": (col("text") == "text 7", pc.equal(table["text"], "text 7")),
        "absent text": (col("text") == "nothing", pc.equal(table["text"], "nothing")),
        "double": (col("double") > 2.5, pc.greater(table["double"], 2.5)),
        "ids": (col("id").isin([3, 4000, ROWS - 1]), pc.is_in(table["id"], pa.array([3, 4000, ROWS - 1]))),
        "both": (
            (col("number") > 9000) & (col("word") == "text 8"),
            pc.and_kleene(pc.greater(table["number"], 9000), pc.equal(table["text"], "text 8")),
        ),
        "nested": (col("nested.b.c") == "c3", pc.equal(pc.struct_field(table["nested"], ["b", "c"]), "c3")),
        "amount": (col("amount") >= Decimal("99.5"), pc.greater_equal(table["amount"], Decimal("99.5"))),
    }
    for name, (condition, mask) in conditions.items():
        expected = plain(table.filter(mask))
        yield Case(f"filter by {name}", partial(read_table, path, condition=condition), expected)
        yield Case(f"batches by {name}", partial(batches, path, condition), expected["id"].to_pylist())
        yield Case(f"count by {name}", partial(counted, path, condition), expected.num_rows)
        shared = pqext.scan(path, ["id", "text"], condition, threads=4)
        yield Case(f"one scan of all threads by {name}", partial(run, shared), expected.select(["id", "text"]))
    file = pqext.open(path, threads=4)
    yield Case(
        "one file of all threads",
        lambda _: pa.Table.from_batches(file.iter_batches(700, ["id", "list"])),
        table.select(["id", "list"]),
    )
    for name in ("number", "double", "text", "amount", "time"):
        ends = pc.min_max(table[name]).as_py()
        yield Case(f"ends of {name}", partial(least_and_greatest, path, name), (ends["min"], ends["max"]))
    yield Case(
        "limit",
        lambda threads: pqext.scan(path, ["id"], threads=threads).limit(700, 1234).to_table(),
        table.select(["id"]).slice(1234, 700),
    )


def read_table(path: Path, threads: int, condition: Any = None) -> pa.Table:
    return plain(pqext.read_table(path, filter=condition, threads=threads))


def plain(table: pa.Table) -> pa.Table:
    """The table with the dictionary column as text, so that it equals one with another dictionary."""
    at = table.schema.get_field_index("word")
    return table if at < 0 else table.set_column(at, "word", table["word"].cast(pa.string()))


def written(table: pa.Table, codec: Any, threads: int) -> pa.Table:
    sink = pa.BufferOutputStream()
    pqext.write_table(table, sink, row_group_rows=ROW_GROUP_ROWS, compression=codec, threads=threads)
    return plain(pqext.read_table(sink.getvalue().to_pybytes(), threads=threads))


def batches(path: Path, condition: Any, threads: int) -> list[int]:
    found = pqext.scan(path, filter=condition, threads=threads).to_batches(batch_rows=123)
    return [number for batch in found for number in batch["id"].to_pylist()]


def counted(path: Path, condition: Any, threads: int) -> int:
    return pqext.scan(path, filter=condition, threads=threads).count()


def run(scan: pqext.Scan, _: int) -> pa.Table:
    return scan.to_table()


def least_and_greatest(path: Path, name: str, threads: int) -> tuple[Any, Any]:
    scan = pqext.scan(path, threads=threads)
    return scan.min(name).as_py(), scan.max(name).as_py()
