"""How many requests reading from a store takes, and of which bytes: counted where they are answered."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pqext
from pqext import col
from pqext.core.io.sources import store

from .conftest import BUCKET, S3

ROWS = 40_000


def table(rows: int = ROWS) -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table({
        "id": np.arange(rows),
        "user": random.integers(0, 1 << 40, rows),
        "text": [f"text {number:x} of some length" for number in random.integers(0, 1 << 60, rows)],
        "value": random.random(rows),
    })


TABLE = table()


def stored(**options: Any) -> bytes:
    sink = io.BytesIO()
    settings: dict[str, Any] = {"row_group_rows": 5_000, "page_rows": 500, "bloom_filters": {"user": True}}
    pqext.write_table(TABLE, sink, **{**settings, **options})
    return sink.getvalue()


FILE = stored()


@pytest.fixture
def small_tails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the file that is fetched at first holds nearly the footer: files here are small."""
    monkeypatch.setattr(store, "FIRST_TAIL", 4 << 10)
    monkeypatch.setattr(store, "LEAST_TAIL", 4 << 10)
    monkeypatch.setattr(store, "FIRST_GAP", 1 << 10)
    monkeypatch.setattr(store, "LEAST_GAP", 1 << 10)
    monkeypatch.setattr(store, "MOST_GAP", 1 << 10)


def fetched(s3: S3, size: int) -> list[range]:
    """The bytes of each GET request."""
    found = []
    for asked in s3.ranges():
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", asked or "")
        assert match is not None, f"a request without a range: {asked}"
        if not match[1]:
            found.append(range(max(size - int(match[2]), 0), size))
        else:
            found.append(range(int(match[1]), int(match[2]) + 1))
    return found


def check_ranges(s3: S3, size: int) -> list[range]:
    """No byte twice, none behind the file's end."""
    found = fetched(s3, size)
    ordered = sorted(found, key=lambda one: one.start)
    assert all(one.stop <= size for one in found)
    assert all(one.stop <= following.start for one, following in pairwise(ordered)), ordered
    return found


def by_arrow(s3: S3) -> dict[str, Any]:
    return {"sources": f"s3://{BUCKET}/x.parquet", "storage_options": s3.options}


def by_obstore(s3: S3) -> dict[str, Any]:
    return {"sources": "x.parquet", "filesystem": s3.obstore()}


WAYS = pytest.mark.parametrize("way", [by_arrow, by_obstore])


@pytest.mark.spec("querying.round-trips", "querying.once")
@WAYS
def test_cold_point_lookup_takes_three_round_trips(s3: S3, way: Callable[[S3], dict[str, Any]]) -> None:
    s3.put("x.parquet", FILE)
    found = pqext.scan(**way(s3), filter=col("id") == 31_234).to_table()
    assert found.equals(TABLE.slice(31_234, 1))
    whole = sum(map(len, check_ranges(s3, len(FILE))))
    sequential = [method for method, _, _ in s3.asked].count("GET") + (way is by_arrow)
    assert sequential <= 3
    assert whole <= len(FILE)


@pytest.mark.spec("querying.round-trips")
@WAYS
def test_indexes_and_filters_of_all_row_groups_are_fetched_together(
    s3: S3, way: Callable[[S3], dict[str, Any]], small_tails: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where they lie before the end that came first: its end, the indexes, the pages; by pyarrow its size before."""
    monkeypatch.setattr(store, "FIRST_GAP", 1 << 20)
    monkeypatch.setattr(store, "MOST_GAP", 1 << 20)
    monkeypatch.setattr(store, "LEAST_GAP", 16 << 10)
    s3.put("x.parquet", FILE)
    user = TABLE["user"][17_777].as_py()
    found = pqext.scan(**way(s3), filter=col("user") == user).to_table()
    assert found.equals(TABLE.slice(17_777, 1))
    ranges = check_ranges(s3, len(FILE))
    assert len(ranges) <= 5, ranges


@WAYS
def test_query_without_rows_reads_no_data_page(
    s3: S3, way: Callable[[S3], dict[str, Any]], small_tails: None
) -> None:
    s3.put("x.parquet", FILE)
    assert pqext.scan(**way(s3), filter=(col("id") == -1)).to_table().num_rows == 0
    assert pqext.scan(**way(s3), filter=(col("user") == -1)).to_table().num_rows == 0
    with pqext.open(FILE) as file:
        pages = [chunk.byte_range for group in file.row_groups for chunk in group.chunks()]
    stop = max(offset + length for offset, length in pages)
    assert all(one.start >= stop for one in fetched(s3, len(FILE)))


@pytest.mark.spec("querying.once")
@WAYS
def test_column_scan_reads_no_byte_twice(
    s3: S3, way: Callable[[S3], dict[str, Any]], small_tails: None
) -> None:
    s3.put("x.parquet", FILE)
    found = pqext.scan(**way(s3), columns=["id", "value"]).to_table()
    assert found.equals(TABLE.select(["id", "value"]))
    ranges = check_ranges(s3, len(FILE))
    with pqext.open(FILE) as file:
        wanted = sum(
            group.chunk(name).byte_range[1] for group in file.row_groups for name in ("id", "value")
        )
    assert sum(map(len, ranges)) <= wanted + (64 << 10)


@pytest.mark.spec("querying.once")
@WAYS
def test_selective_large_filter_reads_no_byte_twice(
    s3: S3, way: Callable[[S3], dict[str, Any]], small_tails: None
) -> None:
    s3.put("x.parquet", FILE)
    found = pqext.scan(**way(s3), filter=col("value") < 0.001).to_table()
    assert found.equals(TABLE.filter(pa.compute.less(TABLE["value"], 0.001)))
    check_ranges(s3, len(FILE))


@pytest.mark.spec("querying.cache")
@WAYS
def test_footers_and_indexes_are_cached_for_the_next_scan(s3: S3, way: Callable[[S3], dict[str, Any]]) -> None:
    s3.put("x.parquet", FILE)
    given = way(s3)
    for _ in range(2):
        s3.forget()
        assert pqext.scan(**given, filter=col("id") == 5).count() == 1
    start = FILE_FOOTER
    assert all(one.stop <= start or not len(one) for one in fetched(s3, len(FILE)) if one.stop < len(FILE))
    assert sum(map(len, fetched(s3, len(FILE)))) < len(FILE) // 10
    before = pqext.set_cache_bytes(0)
    try:
        s3.forget()
        assert pqext.scan(**given, filter=col("id") == 5).count() == 1
        assert any(one.stop == len(FILE) for one in fetched(s3, len(FILE)))
    finally:
        assert pqext.set_cache_bytes(before) == 0


with pqext.open(FILE) as _file:
    FILE_FOOTER = _file.footer.offset


@pytest.mark.spec("querying.cache")
@WAYS
def test_rewritten_file_is_never_read_by_its_old_footer(
    s3: S3, way: Callable[[S3], dict[str, Any]]
) -> None:
    given = way(s3)
    for rows in (10, 20, 10):
        pqext.write_table(TABLE.slice(rows, rows), f"s3://{BUCKET}/x.parquet", storage_options=s3.options)
        assert pqext.scan(**given).to_table().equals(TABLE.slice(rows, rows))
    s3.put("x.parquet", FILE)  # by others
    assert pqext.scan(**given).count() == ROWS


@pytest.mark.spec("querying.versions")
@WAYS
def test_file_replaced_while_open_is_reported(
    s3: S3, way: Callable[[S3], dict[str, Any]], small_tails: None
) -> None:
    s3.put("x.parquet", FILE)
    given = way(s3)
    with pqext.open(given.pop("sources"), **given) as file:
        s3.put("x.parquet", FILE[:4] + bytes(reversed(FILE[4:-8])) + FILE[-8:])
        with pytest.raises(pqext.ChangedFileError, match=r"was replaced while it was read.*etag") as told:
            file.read(["text"])
        s3.arrow().delete_file(f"{BUCKET}/x.parquet")
        with pytest.raises(pqext.ChangedFileError, match="removed"):
            file.read(["value"])
    assert told.value.path == f"s3://{BUCKET}/x.parquet"


@pytest.mark.spec("querying.once")
@WAYS
def test_page_shared_by_two_row_windows_is_fetched_once(
    s3: S3, way: Callable[[S3], dict[str, Any]], small_tails: None
) -> None:
    random = np.random.default_rng(2)
    wide = pa.table({name: random.random(150_000) for name in "abc"})
    sink = io.BytesIO()
    pqext.write_table(wide, sink, compression="uncompressed")
    s3.put("x.parquet", sink.getvalue())
    found = pa.Table.from_batches(pqext.scan(**way(s3), filter=col("a") < 0.2).to_batches(30_000))
    assert found.equals(wide.filter(pa.compute.less(wide["a"], 0.2)))
    check_ranges(s3, len(sink.getvalue()))
