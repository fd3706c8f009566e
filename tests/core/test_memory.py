"""What was read is let go of at once: nothing waits for the garbage collector, whose turn may come after gigabytes."""

from __future__ import annotations

import gc
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.base.limits import Limits
from pqext.core.base.usage import Budget

ROWS = 40_000
KEY = b"0123456789012345"
TABLE = pa.table(
    {
        "number": np.arange(ROWS),
        "text": [str(i % 100) for i in range(ROWS)],
        "list": [[i, None] if i % 3 else None for i in range(ROWS)],
        "group": [{"leaf": i} if i % 5 else None for i in range(ROWS)],
    }
)


def written(**options: object) -> bytes:
    out = io.BytesIO()
    pqext.write_table(TABLE, out, row_group_rows=10_000, page_rows=1000, **options)
    return out.getvalue()


FILE = written(bloom_filters={"number": {"ndv": 10_000}})
ENCRYPTED = written(encryption=pqext.encryption.FileEncryption(KEY))


@contextmanager
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def read_all() -> None:
    pqext.open(FILE).read()


def read_batches() -> None:
    for _ in pqext.open(FILE).iter_batches(3000):
        pass


def stop_early() -> None:
    next(pqext.open(FILE).iter_batches(3000))


def read_some_rows() -> None:
    pqext.open(FILE).read(["number", "list"], rows={1: [range(5, 10), range(7000, 7004)]})


def read_leniently() -> None:
    pqext.open(FILE, on_corrupt="skip").read()


def read_encrypted() -> None:
    pqext.open(ENCRYPTED, decryption=pqext.encryption.FileDecryption(KEY)).read()


def scan() -> None:
    pqext.scan(FILE, filter=pqext.col("number") < 15_000).to_table()


def open_indexes() -> None:
    for group in pqext.open(FILE).row_groups:
        for chunk in group.chunks():
            chunk.page_bounds()
            _ = chunk.bloom_filter


def write() -> None:
    written()


@pytest.mark.parametrize(
    "act",
    [read_all, read_batches, stop_early, read_some_rows, read_leniently, read_encrypted, scan, open_indexes, write],
)
def test_reading_leaves_no_garbage_cycles(act: Callable[[], None]) -> None:
    act()  # what is made once, such as classes, may be circular
    with uncollected():
        act()
        assert gc.collect() == 0


def test_memory_does_not_grow_with_row_groups() -> None:
    """Batch by batch, the second half of a file takes no more than the first."""
    rows = 1 << 17
    table = pa.table({f"c{i}": np.random.default_rng(i).integers(0, 2**62, rows) for i in range(8)})
    out = io.BytesIO()
    with pqext.ParquetWriter(out, table.schema, row_group_rows=rows, dictionary=False) as writer:
        for _ in range(8):
            writer.write_table(table)
    held = []
    with uncollected():
        before = pa.total_allocated_bytes()
        for batch in pqext.open(out).iter_batches(1 << 14):
            held.append(pa.total_allocated_bytes() - before)
            del batch
    assert len(held) == 64
    assert max(held[32:]) <= max(held[:32]) * 1.1
    assert max(held) < 2 * table.nbytes


def test_batches_of_zero_byte_rows_have_a_size() -> None:
    budget = Budget(Limits(memory_bytes=1 << 20), 0)
    assert budget.max_rows(0) == budget.max_rows(1) == (1 << 20) // 4
    assert budget.max_rows(100) == (1 << 20) // 400


@pytest.mark.parametrize("rows", [7, 100, 896, 1000])
@pytest.mark.parametrize("type", [pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.binary(12)], ids=str)
def test_pages_that_decode_to_more_than_memory_bytes_are_rejected(type: pa.DataType, rows: int) -> None:
    values = pa.array([f"{i % 5:012}" for i in range(rows)]).cast(pa.binary())
    column = pa.array(range(rows), type) if type.num_buffers == 2 and type != pa.binary(12) else values.cast(type)
    table = pa.table({f"c{i}": column for i in range(40)})
    out = io.BytesIO()
    pqext.write_table(table, out)
    limits = Limits(memory_bytes=table.nbytes - 1, memory_expansion=0)
    with pytest.raises(pqext.LimitError, match="memory_bytes"):
        list(pqext.open(out.getvalue(), limits=limits).iter_batches())
    limits = Limits(memory_bytes=4 * table.nbytes + 4096, memory_expansion=0)
    assert pqext.read_table(out.getvalue(), limits=limits).equals(table)


@pytest.mark.parametrize(
    "value",
    [{"a": 1}, {"a": {"b": 1, "c": None}}, [1, 2], [[1], []], [{"a": 1}], {"a": [1], "b": {"c": "text"}}],
    ids=str,
)
@pytest.mark.parametrize("rows", [200, 20_000])
def test_nested_tables_need_at_most_five_times_their_size(value: Any, rows: int) -> None:
    table = pa.table({"a": pa.array([value, None, value, value] * (rows // 4))})
    pq.write_table(table, out := io.BytesIO())
    limits = Limits(memory_bytes=table.nbytes - 1, memory_expansion=0)
    with pytest.raises(pqext.LimitError, match="memory_bytes"):
        pqext.read_table(out, limits=limits)
    limits = Limits(memory_bytes=5 * table.nbytes + 4096, memory_expansion=0)
    assert pqext.read_table(out, limits=limits) == table


@pytest.mark.parametrize("type", [pa.int32(), pa.int64(), pa.float64(), pa.binary(3), pa.binary(16)], ids=str)
@pytest.mark.parametrize("share_of_table", [0.6, 0.8])
def test_batches_of_dictionary_encoded_values_fit_into_less_than_the_table(
    type: pa.DataType, share_of_table: float
) -> None:
    if pa.types.is_fixed_size_binary(type):
        values = pa.array([f"{row % 50:0{type.byte_width}}".encode() for row in range(200_000)], type)
    else:
        values = pa.array(np.arange(200_000) % 50).cast(type)
    table = pa.table({"a": values})
    pq.write_table(table, out := io.BytesIO())
    limits = Limits(memory_bytes=int(share_of_table * table.nbytes), memory_expansion=0)
    with pqext.open(out, limits=limits) as file:
        assert pa.Table.from_batches(file.iter_batches(200_000)) == table


@pytest.mark.parametrize("encoding", ["plain", "delta_length_byte_array"])
@pytest.mark.parametrize("length", [12, 30])
def test_page_and_its_values_count_against_memory_bytes_together(encoding: str, length: int) -> None:
    table = pa.table({"a": [f"{i % 7}" * length for i in range(20_000)]})
    out = io.BytesIO()
    options = {"dictionary": False, "encodings": encoding, "page_bytes": 1 << 22, "page_rows": 20_000}
    pqext.write_table(table, out, compression="zstd", **options)  # type: ignore[arg-type]
    page_bytes = pq.read_metadata(io.BytesIO(out.getvalue())).row_group(0).column(0).total_uncompressed_size
    limits = Limits(memory_bytes=page_bytes + table.nbytes - 1, memory_expansion=0)
    with pytest.raises(pqext.LimitError, match="memory_bytes"):
        next(pqext.open(out.getvalue(), limits=limits).iter_batches(100))


@pytest.mark.parametrize(("rows", "pages"), [(100, 3), (75, 2)], ids=["whole pages", "part of a page"])
def test_joined_pages_count_in_addition_to_their_copy(rows: int, pages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pages are joined. Whether the second ends with a row of lists is known once the third is decoded."""
    table = pa.table({"a": [[b"%1000d" % row] * (12, 6, 2, 2, 2, 2)[row // 50] for row in range(300)]})
    out = io.BytesIO()
    pqext.write_table(table, out, page_rows=50, page_bytes=1 << 22, dictionary=False)
    held = [0]
    add = Budget.add

    def recorded(budget: Budget, size: int) -> None:
        add(budget, size)
        held.append(held[-1] + size)

    monkeypatch.setattr(Budget, "add", recorded)
    batch = next(pqext.open(out.getvalue()).iter_batches(rows))
    assert pa.Table.from_batches([batch]).equals(table.slice(0, rows))
    decoded, joined = (table.slice(0, 50 * count)["a"].combine_chunks().flatten().nbytes for count in (pages, 2))
    assert max(held) >= decoded + joined
