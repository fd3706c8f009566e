"""Long pages of a few runs: split into batches, they return the same values or errors as in one piece."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.raw_files import OPTIONAL, REQUIRED, Column, leaf, write

import pqext
from pqext.core.format.metadata import Encoding, Type
from pqext.core.read.column import ColumnReader
from pqext.core.read.pages import page_decoder

LONG = 40_000  # more than twice the entries from which a page is split


def uleb(value: int) -> bytes:
    return b"" if not value else bytes([value & 0x7F | (0x80 if value > 0x7F else 0)]) + uleb(value >> 7)


def repeated(count: int, value: bytes = b"\1") -> bytes:
    return uleb(count << 1) + value


def packed(groups: int, data: bytes) -> bytes:
    return uleb(groups << 1 | 1) + data



def with_size(data: bytes) -> bytes:
    return len(data).to_bytes(4, "little") + data


def required(runs: bytes, count: int = LONG) -> bytes:
    """A page of booleans with these runs."""
    column = Column(with_size(runs), count, encoding=Encoding.RLE)
    return write([leaf("v", REQUIRED, Type.BOOLEAN)], [column], count)


def optional(runs: bytes) -> bytes:
    """A page of optional booleans whose definition levels have these runs, and whose values are equal."""
    column = Column(with_size(runs) + with_size(repeated(LONG)), LONG, encoding=Encoding.RLE)
    return write([leaf("v", OPTIONAL, Type.BOOLEAN)], [column], LONG)


RUNS = {
    "one run": repeated(LONG),
    "two runs": repeated(LONG - 5) + repeated(5, b"\0"),
    "packed group at the end": repeated(LONG - 8) + packed(1, b"\xa5"),
    "packed groups at the end": repeated(LONG - 16) + packed(2, b"\xa5\x0f"),
    "part of a packed group": repeated(LONG - 13) + packed(2, b"\xa5\x0f"),
    "packed groups in the middle": repeated(100) + packed(2, b"\xa5\x0f") + repeated(LONG - 116),
}
SHORT_RUNS = {
    "packed group without its byte": repeated(LONG - 8) + packed(1, b""),
    "packed groups without the last byte": repeated(LONG - 16) + packed(2, b"\xa5"),
    "part of a packed group without its byte": repeated(LONG - 13) + packed(2, b"\xa5"),
    "run without its value": repeated(LONG - 8) + repeated(8, b""),
    "runs of too few values": repeated(LONG - 1),
    "runs of no values": repeated(LONG - 1) + repeated(0) + b"",
}


def batches(data: bytes, **options: Any) -> pa.Table:
    with pqext.open(data, **options) as file:
        return pa.Table.from_batches(file.iter_batches(1000))


@pytest.mark.parametrize("write_page", [required, optional])
@pytest.mark.parametrize("runs", RUNS.values(), ids=RUNS)
def test_batches_of_a_long_page_match_pyarrow(runs: bytes, write_page: Any) -> None:
    data = write_page(runs)
    expected = pq.read_table(io.BytesIO(data))
    assert batches(data).equals(expected)
    assert pqext.read_table(data).equals(expected)


@pytest.mark.parametrize("write_page", [required, optional])
@pytest.mark.parametrize("runs", SHORT_RUNS.values(), ids=SHORT_RUNS)
def test_short_runs_of_a_long_page_are_an_error(runs: bytes, write_page: Any) -> None:
    data = write_page(runs)
    with pytest.raises(OSError, match=r"\w"):
        pq.read_table(io.BytesIO(data))
    for read in (batches, pqext.read_table):
        with pytest.raises(pqext.CorruptFileError):
            read(data)


def of_bytes(size: int) -> tuple[bytes, int]:
    """Runs of a page with this size and their number of values. A run of 500 values takes three bytes, of 9000 four."""
    longer = (size - 4) % 3
    counts = [500] * ((size - 4) // 3 - longer) + [9_000] * longer
    return b"".join(map(repeated, counts)), sum(counts)


def by_pyarrow(values: pa.Array, **options: Any) -> bytes:
    out = io.BytesIO()
    pages = {"data_page_size": 1 << 30, "write_batch_size": 1 << 20, "max_rows_per_page": 1 << 20}
    pq.write_table(pa.table({"v": values}), out, **pages, **options)
    return out.getvalue()


PAGES: dict[str, Callable[[int], bytes]] = {
    "booleans": lambda count: required(repeated(count), count),
    "optional booleans": lambda count: by_pyarrow(
        pa.array([True] * count), data_page_version="2.0", use_dictionary=False, column_encoding={"v": "RLE"}
    ),
    "dictionary": lambda count: by_pyarrow(pa.array(["x"] * count)),
    "dictionary in a page of version 2": lambda count: by_pyarrow(pa.array(["x"] * count), data_page_version="2.0"),
    "compressed nulls": lambda count: by_pyarrow(pa.nulls(count, pa.int64()), compression="zstd"),
    "nulls in a page of version 2": lambda count: by_pyarrow(pa.nulls(count, pa.int64()), data_page_version="2.0"),
}
BOUNDARIES = [
    *((name, make, count, 1000, count > 32_768) for name, make in PAGES.items() for count in (32_768, 32_769)),
    *(("requested rows", PAGES["booleans"], count, 20_000, count > 40_000) for count in (40_000, 40_001)),
    *(("bytes", lambda _, size=size: required(*of_bytes(size)), size, 1000, size <= 256) for size in (256, 257)),
]


@pytest.mark.parametrize("by_table", [True, False])
@pytest.mark.parametrize(("name", "make", "size", "rows", "is_split"), BOUNDARIES)
def test_exactly_the_long_pages_of_few_bytes_are_split(
    name: str, make: Callable[[int], bytes], size: int, rows: int, is_split: bool, by_table: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, split, splits = make(size), page_decoder.split_page, []

    def record(*arguments: Any) -> Any:
        splits.append(split(*arguments))
        return splits[-1]

    monkeypatch.setattr(page_decoder, "split_page", record)
    monkeypatch.setattr(ColumnReader, "_by_table", by_table)
    with pqext.open(data) as file:
        batches = list(file.iter_batches(rows))
    assert pa.Table.from_batches(batches).equals(pq.read_table(io.BytesIO(data)))
    assert (not splits or None in splits) is not is_split
