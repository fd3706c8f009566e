"""Orders of bounds: every bound holds for every value in the order that the footer names, and no other is believed."""

from __future__ import annotations

import datetime as dt
import io
import math
import struct
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core import tables
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.format.metadata import (
    ColumnOrder,
    DecimalType,
    Float16Type,
    IEEE754TotalOrder,
    Int96TimestampOrder,
    IntType,
    JsonType,
    LogicalType,
    Statistics,
    StringType,
    Type,
    TypeDefinedOrder,
)
from pqext.core.format.predicate import Bounds
from pqext.core.kernels.encode import page_statistics
from pqext.core.schema import orders, statistics
from pqext.core.schema.types import leaf as leaves
from pqext.core.schema.types.logical import LeafType
from reference.effort import share

TYPE = ColumnOrder(TYPE_ORDER=TypeDefinedOrder())
TOTAL = ColumnOrder(IEEE_754_TOTAL_ORDER=IEEE754TotalOrder())
INT96 = ColumnOrder(INT96_TIMESTAMP_ORDER=Int96TimestampOrder())
MOMENTS = st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1))
UNKNOWN = ColumnOrder(unknown=((9, 12, b"\0"),))
HALF = LeafType(Type.FIXED_LEN_BYTE_ARRAY, 2, LogicalType(FLOAT16=Float16Type()))
FLOATS = [LeafType(Type.FLOAT), LeafType(Type.DOUBLE), HALF]


def write(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def chunk(values: pa.Array, metadata: dict[bytes, bytes] | None = None, **options: Any) -> Any:
    schema = pa.schema([pa.field("c", values.type, metadata=metadata)])
    return pqext.open(write(pa.table([values], schema=schema), **options)).row_groups[0].chunk(0)


def total(raw: bytes) -> tuple[int, int]:
    """Where a float's bytes stand in IEEE 754's total order: negative numbers the other way round."""
    bits = int.from_bytes(raw, "little")
    top = 1 << (8 * len(raw) - 1)
    return (0, -(bits - top)) if bits & top else (1, bits)


def is_nan(raw: bytes) -> bool:
    value = struct.unpack({2: "<e", 4: "<f", 8: "<d"}[len(raw)], raw)[0]
    return bool(value != value)


def patterns(width: int) -> st.SearchStrategy[bytes]:
    code = {2: "<e", 4: "<f", 8: "<d"}[width]
    special = [0.0, -0.0, math.inf, -math.inf, 1.0, -1.5]
    nans = [bytes(width - 2) + tail for tail in (b"\x00\x7e", b"\xf8\x7f", b"\xf8\xff", b"\xff\x7f", b"\xff\xff")]
    return st.one_of(
        st.sampled_from([struct.pack(code, value) for value in special] + [raw for raw in nans if is_nan(raw)]),
        st.binary(min_size=width, max_size=width),
    )


@pytest.mark.spec("statistics.total-order", "statistics.type-order-floats", "statistics.zeros", "statistics.nan-count")
@pytest.mark.parametrize("leaf", FLOATS, ids=lambda leaf: str(leaf.width))
@given(data=st.data())
def test_float_bounds_are_valid_in_both_orders(leaf: LeafType, data: st.DataObject) -> None:
    width = leaf.width or 0
    pages = data.draw(st.lists(st.lists(patterns(width), max_size=6), min_size=1, max_size=4))
    raws = [raw for page in pages for raw in page]
    physical = pa.Array.from_buffers(pa.binary(width), len(raws), [None, pa.py_buffer(b"".join(raws))])
    starts = np.cumsum([0, *map(len, pages)])
    for kind in ("type", "ieee754"):
        order = orders.written_order(leaf, kind)  # type: ignore[arg-type]
        found = statistics.page_extremes(order, physical, starts)
        for page, low, high, nans in zip(pages, found.minima, found.maxima, found.nan_counts or (), strict=True):
            numbers = [raw for raw in page if not is_nan(raw)]
            assert nans == len(page) - len(numbers)
            among = numbers or (page if kind == "ieee754" else [])
            assert (low is None) == (high is None) == (not among)
            if low is None or high is None:
                continue
            if kind == "ieee754":
                assert (low, high) == (min(among, key=total), max(among, key=total))
            else:
                values = [order.value(raw) for raw in among]
                assert (order.value(low), order.value(high)) == (min(values), max(values))  # type: ignore[type-var]
                zero = struct.pack({2: "<e", 4: "<f", 8: "<d"}[width], 0.0)
                assert low != zero
                assert high != zero[:-1] + b"\x80"
        whole = statistics.chunk_statistics(order, found, 0)
        assert whole.nan_count == sum(map(is_nan, raws))
        one = statistics.chunk_statistics(order, statistics.page_extremes(order, physical, np.array([0, len(raws)])), 0)
        assert (whole.min_value, whole.max_value) == (one.min_value, one.max_value), "merged pages are the chunk"


@pytest.mark.spec("statistics.total-order")
@pytest.mark.parametrize("leaf", FLOATS, ids=lambda leaf: str(leaf.width))
@given(data=st.data())
def test_total_order_keys_sort_every_bit_pattern(leaf: LeafType, data: st.DataObject) -> None:
    raws = data.draw(st.lists(patterns(leaf.width or 0), max_size=8))
    order = orders.written_order(leaf, "ieee754")
    assert sorted(raws, key=order.key) == sorted(raws, key=total)


@pytest.mark.spec("statistics.nan-count")
def test_duckdb_reads_the_nan_count(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for order in ("type", "ieee754"):
        pqext.write_table(pa.table({"c": [1.0, math.nan, None], "d": [1.0, 2.0, 3.0]}), path, float_order=order)
        found = duckdb.sql(f"select stats_nan_count from parquet_metadata('{path}')").fetchall()
        assert [row[0] for row in found] == [1, 0]


@pytest.mark.spec("statistics.nan-count")
def test_all_nan_chunk_has_bounds_only_in_the_total_order() -> None:
    values = pa.array([math.nan, math.nan])
    assert chunk(values).metadata.statistics.min_value is None
    written = chunk(values, float_order="ieee754").metadata.statistics
    assert is_nan(written.min_value)
    assert is_nan(written.max_value)
    assert chunk(values, float_order="ieee754").bounds() == Bounds(null_count=0, num_values=2, has_nan=True)


@pytest.mark.spec("statistics.column-orders")
def test_files_of_every_order_are_read_by_other_libraries(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    moments = pa.array([dt.datetime(2020, 1, 3), dt.datetime(1900, 1, 1), None], pa.timestamp("us"))
    stamp = pa.field("t", pa.timestamp("us"), metadata={b"PARQUET:physical_type": b"INT96"})
    schema = pa.schema([stamp, ("f", pa.float64())])
    table = pa.table([moments, pa.array([1.0, None, -2.0])], schema=schema)
    pqext.write_table(table, path, float_order="ieee754")
    members = [order.member for order in pqext.open(path).metadata.column_orders or []]
    assert members == ["INT96_TIMESTAMP_ORDER", "IEEE_754_TOTAL_ORDER"]
    assert pq.read_table(path)["f"].to_pylist() == [1.0, None, -2.0]
    assert duckdb.sql(f"select t from '{path}' where f = -2").fetchall() == [(None,)]
    assert duckdb.sql(f"select f from '{path}' where t = '1900-01-01'").fetchall() == [(None,)]
    assert pl.read_parquet(path)["f"].to_list() == [1.0, None, -2.0]


@pytest.mark.spec("statistics.int96")
@given(st.lists(MOMENTS | st.none(), min_size=1, max_size=9), st.integers(1, 4))
@example([None, None, dt.datetime(2000, 1, 1)], 2)
def test_int96_bounds_are_chronological(moments: list[dt.datetime | None], page_rows: int) -> None:
    values = pa.array(moments, pa.timestamp("us"))
    found = chunk(values, {b"PARQUET:physical_type": b"INT96"}, page_rows=page_rows)
    stamps = [None if stamp is None else int(stamp) * 1000 for stamp in values.cast(pa.int64()).to_pylist()]

    def extremes(held: list[int | None]) -> tuple[int | None, int | None]:
        present = [stamp for stamp in held if stamp is not None]
        return (min(present), max(present)) if present else (None, None)

    assert (found.bounds().minimum, found.bounds().maximum) == extremes(stamps)
    for page, bounds in enumerate(found.page_bounds()):
        held = stamps[page * page_rows : (page + 1) * page_rows]
        assert (bounds.minimum, bounds.maximum) == extremes(held)


MOMENTS_OF_TWO_YEARS = pa.array([dt.datetime(2000, 1, 1), dt.datetime(2001, 1, 1)], pa.timestamp("us"))
OF_EACH_TYPE: dict[str, tuple[pa.Array, dict[bytes, bytes]]] = {
    "INT32": (pa.array([1, 2], pa.int32()), {}),
    "UINT64": (pa.array([1, 2], pa.uint64()), {}),
    "BOOLEAN": (pa.array([True, False]), {}),
    "DOUBLE": (pa.array([0.5, 2.0]), {}),
    "FLOAT16": (pa.array([0.5, 2.0], pa.float16()), {}),
    "STRING": (pa.array(["a", "b"]), {}),
    "fixed length": (pa.array([b"a", b"b"], pa.binary(1)), {}),
    "DECIMAL": (pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal128(30, 1)), {}),
    "TIMESTAMP": (MOMENTS_OF_TWO_YEARS, {}),
    "INT96": (MOMENTS_OF_TWO_YEARS, {b"PARQUET:physical_type": b"INT96"}),
}


@pytest.mark.parametrize("name", OF_EACH_TYPE)
def test_only_a_page_of_nulls_has_no_bounds(name: str) -> None:
    values, metadata = OF_EACH_TYPE[name]
    for null_page in range(3):
        pages = [values, values]
        pages.insert(null_page, pa.nulls(2, values.type))
        found = chunk(pa.concat_arrays(pages), metadata, page_rows=2, dictionary=False)
        is_null = [page == null_page for page in range(3)]
        assert found.column_index.null_pages == is_null
        bounds = [(item.minimum, item.maximum) for item in found.page_bounds()]
        assert [extremes == (None, None) for extremes in bounds] == is_null
        assert len(set(bounds)) == 2


@pytest.mark.spec("statistics.int96", "statistics.column-orders", "statistics.undefined")
@pytest.mark.parametrize(
    ("leaf", "order", "kind"),
    [
        (LeafType(Type.INT32), TYPE, "type"),
        (LeafType(Type.INT32), None, "undefined"),
        (LeafType(Type.INT32), UNKNOWN, "undefined"),
        (LeafType(Type.INT32), TOTAL, "undefined"),
        (LeafType(Type.INT32), INT96, "undefined"),
        (LeafType(Type.DOUBLE), TOTAL, "total"),
        (LeafType(Type.DOUBLE), TYPE, "type"),
        (HALF, TOTAL, "total"),
        (LeafType(Type.INT96), INT96, "chronological"),
        (LeafType(Type.INT96), TYPE, "undefined"),
        (LeafType(Type.INT96), None, "undefined"),
        (LeafType(Type.BYTE_ARRAY, logical=LogicalType(unknown=((90, 12, b"\0"),))), TYPE, "undefined"),
    ],
)
def test_only_orders_valid_for_the_type_are_used(leaf: LeafType, order: ColumnOrder | None, kind: str) -> None:
    assert orders.declared_order(leaf, order).kind == kind
    width = leaf.width or 3
    raw = Statistics(min_value=bytes(width), max_value=bytes(width), null_count=0)
    assert (statistics.to_bounds(leaf, raw, 2, order).minimum is None) == (kind == "undefined")


@pytest.mark.spec("statistics.undefined")
def test_intervals_have_no_bounds_and_no_column_index() -> None:
    found = chunk(pa.array([(1, 2, 3_000_000)], pa.month_day_nano_interval()))
    assert found.metadata.statistics == Statistics(null_count=0)
    assert found.column_index is None
    assert found.offset_index is not None
    given = Statistics(min_value=bytes(12), max_value=bytes(12))
    assert statistics.to_bounds(found.node.leaf_type, given, 1, TYPE).minimum is None


@pytest.mark.spec("statistics.bounds")
@pytest.mark.parametrize("name", sorted(tables.LEAVES))
@settings(max_examples=share(0.3))
@given(data=st.data())
def test_every_bound_applies_to_every_value(name: str, data: st.DataObject) -> None:
    kind, values = tables.LEAVES[name]
    column = pa.array(data.draw(st.lists(st.one_of(st.none(), values), min_size=1, max_size=12)), kind)
    found = chunk(column, page_rows=data.draw(st.integers(1, 5)), bound_bytes=data.draw(st.integers(1, 9)))
    leaf, present = found.node.leaf_type, column.drop_null()
    order = orders.written_order(leaf)
    raws = leaves.to_physical(present.cast(pa.string()) if pa.types.is_large_string(kind) else present, leaf)
    width = leaf.width or 0
    plain = [_plain(value, raws.type, width) for value in raws.to_pylist()]
    comparable = [order.value(raw) for raw in plain]
    bounds = [found.bounds(), *found.page_bounds()]
    assert all(value is not None for value in comparable)
    starts = np.cumsum([0, *(b.num_values - b.null_count for b in bounds[1:])])
    held = [comparable, *(comparable[a:b] for a, b in pairwise(starts))]
    for bound, some in zip(bounds, held, strict=True):
        assert (bound.minimum is None) == (not some)
        assert not some or bound.minimum <= min(some) <= max(some) <= bound.maximum
    stored = found.metadata.statistics
    for raw, exact in ((stored.min_value, stored.is_min_value_exact), (stored.max_value, stored.is_max_value_exact)):
        assert raw is None or exact == (order.value(raw) in comparable)


def _plain(value: Any, kind: pa.DataType, width: int) -> bytes:
    if isinstance(value, bytes):
        return value
    if pa.types.is_boolean(kind):
        return bytes([value])
    if pa.types.is_floating(kind):
        return struct.pack("<f" if width == 4 else "<d", value)
    return int(value).to_bytes(width, "little", signed=True)


SIGNED = st.binary(max_size=5)


@pytest.mark.spec("statistics.bounds")
@given(st.lists(st.lists(SIGNED, max_size=5), min_size=1, max_size=4), st.booleans())
def test_byte_arrays_compare_as_bytes_or_as_numbers(pages: list[list[bytes]], signed: bool) -> None:
    values = [value for page in pages for value in page]
    array = pa.array([b"before", *values], pa.binary())[1:]
    logical = LogicalType(DECIMAL=DecimalType(scale=0, precision=9)) if signed else LogicalType(JSON=JsonType())
    order = orders.BoundOrder(LeafType(Type.BYTE_ARRAY, logical=logical), "type")
    found = statistics.page_extremes(order, array, np.cumsum([0, *map(len, pages)]))

    def key(raw: bytes) -> Any:
        return int.from_bytes(raw, "big", signed=True) if signed else raw

    for page, low, high in zip(pages, found.minima, found.maxima, strict=True):
        if not page:
            assert (low, high) == (None, None)
        elif signed:
            assert (key(low or b""), key(high or b"")) == (min(map(key, page)), max(map(key, page)))
        else:
            assert (low, high) == (min(page), max(page))


@pytest.mark.spec("statistics.truncation")
@given(st.binary(max_size=12), st.integers(1, 8))
def test_truncated_bytes_bound_the_full_values(value: bytes, size: int) -> None:
    for leaf in (LeafType(Type.BYTE_ARRAY), LeafType(Type.BYTE_ARRAY, logical=LogicalType(JSON=JsonType()))):
        low, low_exact = statistics.truncate_lower(leaf, value, size)
        high, high_exact = statistics.truncate_upper(leaf, value, size)
        assert low <= value <= high
        assert (low == value) == low_exact
        assert (high == value) == high_exact
        assert len(low) <= size
        assert len(high) <= size or high == value


@pytest.mark.spec("statistics.truncation")
@given(st.text(max_size=12), st.integers(1, 8))
@example("\ud7ff above it are surrogates", 3)
def test_truncated_text_remains_valid_text(value: str, size: int) -> None:
    leaf = LeafType(Type.BYTE_ARRAY, logical=LogicalType(STRING=StringType()))
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        return
    low, high = statistics.truncate_lower(leaf, raw, size)[0], statistics.truncate_upper(leaf, raw, size)[0]
    assert low.decode() <= value
    assert low <= raw <= high
    assert high.decode() or not raw


@pytest.mark.spec("statistics.type-order-floats")
@pytest.mark.parametrize("leaf", FLOATS, ids=str)
def test_nan_bound_is_ignored(leaf: LeafType) -> None:
    code = {2: "<e", 4: "<f", 8: "<d"}[leaf.width or 8]
    one, nan = struct.pack(code, 1.0), struct.pack(code, math.nan)
    for low, high in ((nan, one), (one, nan), (nan, nan)):
        found = statistics.to_bounds(leaf, Statistics(min_value=low, max_value=high, nan_count=1), 5, TYPE)
        assert (found.minimum, found.maximum) == (None, None)


@pytest.mark.spec("statistics.truncation")
def test_decimals_and_fixed_lengths_are_never_truncated() -> None:
    decimals = pa.array([Decimal(10**37)], pa.decimal128(38, 0))
    stored = chunk(decimals, {b"PARQUET:physical_type": b"BYTE_ARRAY"}, bound_bytes=2).metadata.statistics
    assert stored.min_value == (10**37).to_bytes(16, "big")
    assert chunk(pa.array([b"x" * 100], pa.binary(100)), bound_bytes=2).metadata.statistics.min_value == b"x" * 100
    assert chunk(pa.array([b"x" * 2000], pa.binary(2000))).metadata.statistics == Statistics(null_count=0)


@pytest.mark.spec("statistics.distinct-count")
def test_distinct_values_are_counted_if_a_dictionary_contains_all() -> None:
    values = pa.array([str(i % 7) for i in range(1000)] + [None])
    assert chunk(values).metadata.statistics.distinct_count == 7
    assert chunk(values, dictionary=False).metadata.statistics.distinct_count is None
    assert chunk(pa.array([0.0, -0.0] * 500)).metadata.statistics.distinct_count is None, "how many zeros are there?"


@pytest.mark.spec("statistics.deprecated")
def test_deprecated_fields_are_never_written() -> None:
    for name in sorted(tables.LEAVES):
        stored = chunk(tables.fixed()[name].combine_chunks()).metadata.statistics
        assert (stored.min, stored.max) == (None, None)


@pytest.mark.spec("statistics.deprecated")
def test_deprecated_fields_are_ignored_for_unsigned_values() -> None:
    old = Statistics(min=b"\1\0\0\0", max=b"\2\0\0\0")
    unsigned = LeafType(Type.INT32, logical=LogicalType(INTEGER=IntType(bitWidth=32, isSigned=False)))
    assert statistics.to_bounds(unsigned, old, 2, TYPE).minimum is None
    both = Statistics(min=b"\1\0\0\0", max=b"\2\0\0\0", min_value=b"\0\0\0\0", max_value=b"\3\0\0\0")
    assert statistics.to_bounds(LeafType(Type.INT32), both, 2, TYPE).maximum == 3


@pytest.mark.spec("statistics.untrusted")
@pytest.mark.parametrize(
    ("leaf", "low", "high"),
    [
        (LeafType(Type.DOUBLE), struct.pack("<d", math.nan), struct.pack("<d", 1.0)),
        (LeafType(Type.BOOLEAN), b"\2", b"\2"),
        (LeafType(Type.FIXED_LEN_BYTE_ARRAY, 3), b"ab", b"abcd"),
        (LeafType(Type.FIXED_LEN_BYTE_ARRAY, 3), b"abd", b"abc"),
        (LeafType(Type.BYTE_ARRAY, logical=LogicalType(DECIMAL=DecimalType(scale=0, precision=5))), b"", bytes(100)),
        (LeafType(Type.INT64), b"\1\0\0\0", b"\2\0\0\0"),
        (HALF, b"\0\0\0\0", b"\0\0\0\0"),
        (LeafType(Type.FIXED_LEN_BYTE_ARRAY, 3, LogicalType(DECIMAL=DecimalType(scale=0, precision=5))), b"a", b"ab"),
    ],
)
def test_implausible_bounds_are_unknown(leaf: LeafType, low: bytes, high: bytes) -> None:
    found = statistics.to_bounds(leaf, Statistics(min_value=low, max_value=high, nan_count=-1), 5, TYPE)
    assert (found.minimum, found.maximum) == (None, None)
    assert found.has_nan is (None if leaf in (HALF, LeafType(Type.DOUBLE)) else False)


@pytest.mark.spec("statistics.untrusted")
@pytest.mark.parametrize(("stored", "known"), [(-1, None), (0, 0), (5, 5), (6, None), (2**40, None)])
def test_implausible_null_counts_are_unknown(stored: int, known: int | None) -> None:
    assert statistics.to_bounds(LeafType(Type.INT32), Statistics(null_count=stored), 5, TYPE).null_count == known


@pytest.mark.spec("statistics.nan-count")
@pytest.mark.parametrize(("count", "has_nan"), [(None, None), (0, False), (2, True), (9, None), (-1, None)])
def test_nan_is_possible_without_a_plausible_count(count: int | None, has_nan: bool | None) -> None:
    assert statistics.to_bounds(LeafType(Type.FLOAT), Statistics(nan_count=count), 5, TYPE).has_nan is has_nan


def test_statistics_are_omitted_if_disabled() -> None:
    file = pqext.open(write(pa.table({"a": [1], "b": [2]}), statistics={"a": False}))
    assert [chunk.metadata.statistics is None for chunk in file.row_groups[0].chunks()] == [True, False]
    for wrong in ({"statistics": 3}, {"statistics": {"a": 1}}, {"float_order": "ieee"}, {"bound_bytes": 0}):
        with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
            write(pa.table({"a": [1]}), **wrong)
    with pytest.raises(ValueError, match="'x'"):
        write(pa.table({"a": [1]}), statistics={"x": True})


NUMBERS = st.sampled_from([np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64])


@given(NUMBERS, st.data())
def test_kernel_extremes_match_numpy(kind: Any, data: st.DataObject) -> None:
    pages = data.draw(st.lists(st.lists(st.integers(0, 200), max_size=12), min_size=1, max_size=4))
    values = np.array([value for page in pages for value in page], kind)
    if np.issubdtype(kind, np.floating) and len(values):
        values[data.draw(st.lists(st.integers(0, len(values) - 1)))] = np.nan
    starts = np.cumsum([0, *map(len, pages)])
    low, high, nans = np.zeros(len(pages), kind), np.zeros(len(pages), kind), np.zeros(len(pages), np.int64)
    page_statistics.extremes(values, starts, low, high, nans)
    for page in range(len(pages)):
        held = values[starts[page] : starts[page + 1]]
        assert nans[page] == np.isnan(held.astype(float)).sum()
        numbers = held[~np.isnan(held.astype(float))]
        assert not len(numbers) or (low[page], high[page]) == (numbers.min(), numbers.max())


def test_kernels_reject_pages_outside_their_values() -> None:
    one = np.zeros(1, np.int64)
    for starts in ([0, 4], [2, 1], [-1, 1], []):
        with pytest.raises(ValueError, match="page"):
            page_statistics.extremes(np.zeros(3, np.int64), np.array(starts, np.int64), one, one.copy(), one.copy())
    for offsets in ([0, 9], [3, 1], [-1, 0]):
        with pytest.raises(ValueError, match="outside"):
            page_statistics.byte_extremes(
                np.zeros(3, np.uint8), np.array(offsets, np.int32), 0, False, np.array([0, 1]), one, one.copy()
            )
    with pytest.raises(ValueError, match="level"):
        page_statistics.level_counts(np.array([3], np.int16), np.array([0, 1]), 2, np.zeros((1, 3), np.int64))
