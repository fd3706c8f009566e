"""A scan is narrowed step by step, never changes, stops at its limit, and frees what it holds when it is left."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import col, variant
from pqext.core.io.source import MemorySource
from pqext.dataset.scan_executor import ScanExecutor
from reference.effort import share

ROWS = [{"a": n, "s": f"text {n % 7}", "t": {"x": n % 3, "y": -n}} for n in range(1000)]
TABLE = pa.Table.from_pylist(ROWS)


class Counted(MemorySource):
    """A file in memory that counts the bytes of pages that are asked for, and notes that it is closed."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.pages = 0
        self.footer = len(data) - int.from_bytes(data[-8:-4], "little") - 8

    def _fetch(self, offset: int, length: int) -> Any:
        if 4 <= offset < self.footer - 2000:
            self.pages += length
        return super()._fetch(offset, length)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("narrowing") / "t.parquet"
    pqext.write_table(TABLE, path, row_group_rows=300, page_rows=50)
    return str(path)


def test_each_step_returns_a_new_scan(path: str) -> None:
    whole = pqext.scan(path)
    few = whole.filter(col("a") >= 990).select("a").limit(3, offset=2)
    assert few.to_table().to_pylist() == [{"a": n} for n in (992, 993, 994)]
    assert whole.to_table().equals(TABLE)
    assert few.schema.names == ["a"]
    assert whole.filter([("a", "<", 2)]).filter(col("s") == "text 1").to_table()["a"].to_pylist() == [1]
    assert whole.filter(col("a") < 5, col("a") > 2).select(["s", "a"]).to_table().to_pylist() == [
        {"s": row["s"], "a": row["a"]} for row in ROWS[3:5]
    ]
    assert whole.select("s").filter(col("a") == 7).to_table().to_pylist() == [{"s": "text 0"}]


@settings(max_examples=share(0.2))
@given(st.data())
def test_limits_match_polars(data: st.DataObject) -> None:
    numbers = st.integers(0, 1100) | st.integers(0, 4)
    low = data.draw(numbers)
    path = MemorySource(FILE)
    mine, theirs = pqext.scan(path, ["a"]), pl.DataFrame(TABLE).lazy().select("a")
    if data.draw(st.booleans()):
        mine, theirs = mine.filter(col("a") >= low), theirs.filter(pl.col("a") >= low)
    for _ in range(data.draw(st.integers(1, 3))):
        rows, offset = data.draw(st.none() | numbers), data.draw(numbers)
        mine, theirs = mine.limit(rows, offset), theirs.slice(offset, rows)
    expected = theirs.collect()["a"].to_list()
    assert mine.to_table()["a"].to_pylist() == expected
    assert mine.count() == len(expected)
    assert [one for batch in mine.to_batches(17) for one in batch["a"].to_pylist()] == expected
    assert mine.head(2)["a"].to_pylist() == expected[:2]


def _file() -> bytes:
    sink = pa.BufferOutputStream()
    pqext.write_table(TABLE, sink, row_group_rows=300, page_rows=50, compression="uncompressed")
    data: bytes = sink.getvalue().to_pybytes()
    return data


FILE = _file()


def test_limit_reads_no_row_group_after_it() -> None:
    every, few = Counted(FILE), Counted(FILE)
    pqext.scan(every).to_table()
    assert pqext.scan(few).limit(250).to_table().num_rows == 250
    assert 0 < few.pages < every.pages / 2
    none = Counted(FILE)
    assert pqext.scan(none).limit(0).to_table().num_rows == 0
    assert none.pages == 0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda scan: scan.limit(-1), ValueError, "rows must not be negative, but is -1"),
        (lambda scan: scan.limit(1, -1), ValueError, "offset must not be negative"),
        (lambda scan: scan.limit("5"), TypeError, "rows must be a number of rows, not str"),
        (lambda scan: scan.limit(True), TypeError, "not bool"),
        (lambda scan: scan.limit(5).filter(col("a") > 1), ValueError, "call filter"),
        (lambda scan: scan.filter(), TypeError, "filter requires conditions"),
        (lambda scan: scan.filter(None), TypeError, "filter requires conditions"),
        (lambda scan: scan.filter(5), TypeError, "a filter must be an expression"),
        (lambda scan: scan.select("a").select("s"), ValueError, "no column 's'; the scan has a"),
        (lambda scan: scan.select("text").to_table(), ValueError, "text"),
        (lambda scan: scan.select(5), TypeError, "a column must be a name"),
        (lambda scan: scan.select("a", "a"), ValueError, "selected twice"),
    ],
)
def test_invalid_steps_are_rejected(path: str, change: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        change(pqext.scan(path))


def test_parts_of_selected_columns_can_be_selected(path: str) -> None:
    assert pqext.scan(path).select("t").select("t.x").limit(1).to_table().to_pylist() == [{"t": {"x": 0}}]
    assert pqext.scan(path).select("t.x", "a").select("t").limit(1).to_table().to_pylist() == [{"t": {"x": 0}}]
    with pytest.raises(ValueError, match=r"no column 't\.y'"):
        pqext.scan(path).select("t.x").select("t.y")


def test_filter_refers_to_values_by_their_selected_names(tmp_path: Path) -> None:
    events = variant.parse_json([json.dumps({"n": n}) for n in range(10)])
    pqext.write_table(pa.table({"event": events}), tmp_path / "e.parquet", shredding={"event": "infer"})
    n = ("n", col("event").variant("$.n", "int64"))
    found = pqext.scan(tmp_path / "e.parquet").select(n).filter((col("n") > 3) & ~col("n").isin([5]))
    assert found.limit(3).to_table().to_pylist() == [{"n": 4}, {"n": 6}, {"n": 7}]


def test_async_batches_do_not_block_the_event_loop(path: str) -> None:
    async def rows() -> list[int]:
        scan = pqext.scan(path, ["a"])
        assert [batch.num_rows async for batch in scan.to_async_batches(400)]
        return [one async for batch in scan for one in batch["a"].to_pylist()]

    assert asyncio.run(rows()) == TABLE["a"].to_pylist()

    async def failing() -> None:
        async for _ in pqext.scan(path, ["nope"]):
            pass

    with pytest.raises(ValueError, match="nope"):
        asyncio.run(failing())


class Opened:
    """How many files of pqext are open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        enter, leave = pqext.ParquetFile.__enter__, pqext.ParquetFile.__exit__

        def entered(file: Any) -> Any:
            self.now += 1
            return enter(file)

        def left(file: Any, *error: Any) -> Any:
            self.now -= 1
            return leave(file, *error)

        monkeypatch.setattr(pqext.ParquetFile, "__enter__", entered)
        monkeypatch.setattr(pqext.ParquetFile, "__exit__", left)


def test_abandoned_batches_close_the_file_immediately(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Opened(monkeypatch)
    scan = pqext.scan(path)
    batches = scan.to_batches(10)
    next(batches)
    assert opened.now == 1
    del batches
    assert opened.now == 0
    with scan.to_reader(10) as reader:
        reader.read_next_batch()
        assert opened.now == 1
    assert opened.now == 0  # though there is a name for it still
    reader = scan.to_reader(10)
    reader.read_next_batch()
    del reader
    assert opened.now == 0

    async def read_first() -> None:
        batches = scan.to_async_batches(10)
        await anext(batches)  # type: ignore[arg-type]
        await batches.aclose()  # type: ignore[attr-defined]

    asyncio.run(read_first())
    assert opened.now == 0


def test_reader_is_accepted_by_duckdb_and_other_libraries(path: str, tmp_path: Path) -> None:
    stream = pqext.scan(path).filter(col("a") >= 500).to_reader(64)
    (row,) = duckdb.from_arrow(stream).aggregate("count(*), sum(a), max(t.y)").fetchall()
    assert row == (500, sum(range(500, 1000)), -500)
    scan = pqext.scan(path)
    assert duckdb.sql("SELECT min(a), max(s) FROM scan").fetchall() == [(0, "text 6")]
    with pq.ParquetWriter(tmp_path / "copy.parquet", scan.schema) as writer, scan.to_reader() as reader:
        for batch in reader:
            writer.write_batch(batch)
    assert pq.read_table(tmp_path / "copy.parquet").equals(TABLE)


def test_interrupt_within_a_reader_is_not_reported_as_a_file_error(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, scan = Opened(monkeypatch), pqext.scan(path)
    batches = ScanExecutor.batches

    def interrupted(executor: ScanExecutor, batch_rows: int) -> Any:
        yield next(batches(executor, batch_rows))
        raise KeyboardInterrupt

    monkeypatch.setattr(ScanExecutor, "batches", interrupted)
    reader = scan.to_reader(100)
    assert reader.read_next_batch().num_rows == 100
    with pytest.raises(OSError, match="reading was interrupted from the keyboard") as told:
        reader.read_all()
    assert not isinstance(told.value, ValueError)
    with pytest.raises(KeyboardInterrupt):
        list(scan.to_batches(100))
    del reader
    assert opened.now == 0


def test_error_within_a_reader_preserves_its_message(path: str, tmp_path: Path) -> None:
    data = bytearray(Path(path).read_bytes())
    with pqext.open(path) as file:
        start, length = file.row_groups[-1].chunk("a").byte_range
    data[start : start + length] = b"\xff" * length
    with pqext.scan(bytes(data)).to_reader(100) as reader, pytest.raises(ValueError, match="row group 3"):
        reader.read_all()
