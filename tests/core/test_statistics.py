"""Statistics: others see the bounds we write, and we trust no more of theirs than is sound."""

from __future__ import annotations

import io
import math
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from core import tables
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext.core.format.metadata import (
    ColumnOrder,
    EnumType,
    GeometryType,
    JsonType,
    LogicalType,
    Statistics,
    StringType,
    Type,
    TypeDefinedOrder,
)
from pqext.core.format.predicate import Bounds, Comparison, IsIn, IsNotNull, IsNull, may_match
from pqext.core.schema import orders, statistics
from pqext.core.schema.types.logical import LeafType

ORDERED = ColumnOrder(TYPE_ORDER=TypeDefinedOrder())


def chunk(array: pa.Array, **options: Any) -> tuple[Bounds, Any, bytes]:
    out = io.BytesIO()
    pqext.write_table(pa.table({"c": array}), out, **options)
    data = out.getvalue()
    bounds = pqext.open(data).row_groups[0].chunk(0).bounds()
    return bounds, pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).statistics, data


@pytest.mark.parametrize("name", sorted(tables.LEAVES))
def test_pyarrow_reads_minimum_maximum_and_nulls_of_each_type(name: str) -> None:
    column = tables.fixed()[name].combine_chunks()
    _, theirs, _ = chunk(column)
    assert theirs.null_count == column.null_count
    if name in ("string", "binary"):
        return  # longer than the bounds kept: see below
    expected = pc.min_max(column)
    values = [pa.array([value], column.type)[0].as_py() for value in (theirs.min, theirs.max)]
    assert values == [expected["min"].as_py(), expected["max"].as_py()]


@pytest.mark.parametrize("rows", [5, 8, 13])
def test_boolean_bounds_follow_each_row_group(rows: int) -> None:
    column = pa.chunked_array([[False] * 16 + [True] * 21 + [False] * 3, [True] * 9 + [False] * 30])
    out = io.BytesIO()
    pqext.write_table(pa.table({"c": column}), out, row_group_rows=rows)
    metadata, first = pq.ParquetFile(out).metadata, 0
    for group in range(metadata.num_row_groups):
        found, count = metadata.row_group(group).column(0).statistics, metadata.row_group(group).num_rows
        assert {"min": found.min, "max": found.max} == pc.min_max(column.slice(first, count)).as_py()
        first += count


def test_nan_is_excluded_from_bounds_and_counted() -> None:
    bounds, theirs, _ = chunk(pa.array([1.0, math.nan, -3.0, None]))
    assert (bounds.minimum, bounds.maximum, bounds.has_nan, bounds.null_count) == (-3.0, 1.0, True, 1)
    assert (theirs.min, theirs.max) == (-3.0, 1.0)


def test_all_nan_column_has_no_bounds() -> None:
    bounds, _, _ = chunk(pa.array([math.nan, math.nan]))
    assert (bounds.minimum, bounds.maximum, bounds.has_nan) == (None, None, True)


def test_zero_bound_has_the_sign_that_widens_it() -> None:
    _, theirs, _ = chunk(pa.array([0.0, -0.0]))
    assert math.copysign(1, theirs.min) == -1
    assert math.copysign(1, theirs.max) == 1


@given(st.lists(st.text(min_size=60, max_size=75), min_size=1, max_size=5))
def test_long_strings_lie_within_truncated_bounds(values: list[str]) -> None:
    try:
        raw = [value.encode() for value in values]
    except UnicodeEncodeError:
        return
    bounds, _, _ = chunk(pa.array(values))
    assert bounds.minimum is not None
    assert bounds.maximum is not None
    assert bounds.minimum <= min(raw)
    assert bounds.maximum >= max(raw)
    assert bounds.minimum.decode()
    assert bounds.maximum.decode()


def test_maximum_that_cannot_be_incremented_is_not_truncated() -> None:
    bounds, _, _ = chunk(pa.array([b"\xff" * 100]))
    assert bounds.maximum == b"\xff" * 100
    text = "\U0010ffff" * 20
    assert chunk(pa.array([text]))[0].maximum == text.encode()


BOUNDARIES = "".join(map(chr, (0x61, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF)))
"""The last and the first character of each length in UTF-8."""


TEXT_TYPES = {
    "STRING": LogicalType(STRING=StringType()), "JSON": LogicalType(JSON=JsonType()),
    "ENUM": LogicalType(ENUM=EnumType()),
}  # fmt: skip


@pytest.mark.spec("statistics.truncation")
@pytest.mark.parametrize("member", TEXT_TYPES)
@given(text=st.text(BOUNDARIES, min_size=1, max_size=12), size=st.integers(1, 12))
def test_truncated_text_is_valid_utf8_within_the_requested_size(member: str, text: str, size: int) -> None:
    leaf, bound = LeafType(Type.BYTE_ARRAY, None, TEXT_TYPES[member]), text.encode()
    low, exact_low = statistics.truncate_lower(leaf, bound, size)
    high, exact_high = statistics.truncate_upper(leaf, bound, size)
    assert low <= bound <= high
    assert (exact_low, exact_high) == (low == bound, high == bound)
    for shortened in (low, high):
        assert shortened.decode() is not None
        assert shortened == bound or len(shortened) <= size


@pytest.mark.spec("statistics.truncation")
@pytest.mark.parametrize("code", [0, 0x61, 0x7E, 0x7F, 0x80, 0x7FE, 0x7FF, 0xD7FE, 0xD7FF, 0xE000, 0xFFFE, 0xFFFF,
                                  0x10000, 0x10FFFD, 0x10FFFE, 0x10FFFF])  # fmt: skip
def test_truncated_maximum_increments_the_last_character(code: int) -> None:
    leaf, character = LeafType(Type.BYTE_ARRAY, None, TEXT_TYPES["STRING"]), chr(code)
    size = len(character.encode())
    later = (chr(number) for number in range(code + 1, 0x110000) if not 0xD800 <= number <= 0xDFFF)
    following = next(later, "")
    expected = "b" + following if len(following.encode()) == size else "c"
    high, is_exact = statistics.truncate_upper(leaf, f"b{character}z".encode(), 1 + size)
    assert (high.decode(), is_exact) == (expected, False)


def test_truncated_bounds_are_marked_inexact() -> None:
    _, _, data = chunk(pa.array(["a" * 100, "b"]))
    written = pqext.open(data).row_groups[0].chunk(0).metadata.statistics
    assert written.is_min_value_exact is False
    assert written.is_max_value_exact is True


def test_unordered_types_have_no_bounds() -> None:
    leaf = LeafType(Type.BYTE_ARRAY, logical=LogicalType(GEOMETRY=GeometryType()))
    order = orders.written_order(leaf)
    pages = statistics.page_extremes(order, pa.array([b"a", b"b"]), np.array([0, 2]))
    assert statistics.chunk_statistics(order, pages, 0) == Statistics(null_count=0)
    found = statistics.to_bounds(leaf, Statistics(min_value=b"a", max_value=b"b", null_count=0), 2, ORDERED)
    assert (found.minimum, found.maximum) == (None, None)


def test_bounds_without_a_column_order_are_ignored() -> None:
    stats = Statistics(min_value=b"\1\0\0\0", max_value=b"\2\0\0\0", null_count=0)
    assert statistics.to_bounds(LeafType(Type.INT32), stats, 2, None).minimum is None
    assert statistics.to_bounds(LeafType(Type.INT32), stats, 2, ORDERED).minimum == 1


def test_deprecated_fields_are_used_for_signed_types_only() -> None:
    old = Statistics(min=b"\1\0\0\0", max=b"\2\0\0\0")
    assert statistics.to_bounds(LeafType(Type.INT32), old, 2, None).maximum == 2
    assert statistics.to_bounds(LeafType(Type.BYTE_ARRAY), Statistics(min=b"a", max=b"b"), 2, None).maximum is None


@pytest.mark.parametrize(
    "stats",
    [
        Statistics(min_value=b"\1\0\0", max_value=b"\2"),
        Statistics(min_value=b"\5\0\0\0", max_value=b"\2\0\0\0"),
        Statistics(null_count=-1),
        Statistics(null_count=3),
    ],
)
def test_implausible_statistics_are_unknown(stats: Statistics) -> None:
    found = statistics.to_bounds(LeafType(Type.INT32), stats, 2, ORDERED)
    assert found == Bounds(num_values=2)


@pytest.mark.parametrize(
    ("null_count", "nan_count", "has_nan"),
    [(0, 0, False), (3, 1, True), (0, 4, True), (3, 2, None), (4, 1, None), (None, 5, None), (None, -1, None)],
)
def test_nan_count_above_value_count_is_unknown(null_count: int | None, nan_count: int, has_nan: bool | None) -> None:
    stats = Statistics(null_count=null_count, nan_count=nan_count)
    assert statistics.to_bounds(LeafType(Type.DOUBLE), stats, 4, ORDERED).has_nan is has_nan


@pytest.mark.parametrize("has_nan", [True, False, None])
@pytest.mark.parametrize("operator", ["==", "!=", "<", "<=", ">", ">="])
def test_nan_compares_with_bounds_like_in_duckdb(operator: Any, has_nan: bool | None) -> None:
    values = [1.0, math.nan] if has_nan is not False else [1.0]
    rows = pa.table({"x": values})
    sql_operator = "=" if operator == "==" else operator
    matches = duckdb.from_arrow(rows).filter(f"x {sql_operator} 'nan'::double").fetchall()
    assert may_match(Comparison(operator, math.nan), Bounds(1.0, 1.0, 0, 2, has_nan)) == bool(matches)


VALUES = st.one_of(st.integers(-5, 5), st.sampled_from([-0.0, 0.5, math.inf, math.nan]))
QUESTIONS = st.one_of(
    st.builds(Comparison, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), VALUES),
    st.builds(IsIn, st.lists(VALUES, max_size=3).map(tuple)),
    st.just(IsNull()),
    st.just(IsNotNull()),
)


def satisfies(question: Any, value: Any) -> bool:
    if isinstance(question, IsNull | IsNotNull):
        return (value is None) == isinstance(question, IsNull)
    if value is None:
        return False
    if isinstance(question, IsIn):
        return value in question.values
    return {
        "==": value == question.value,
        "!=": value != question.value,
        "<": value < question.value,
        "<=": value <= question.value,
        ">": value > question.value,
        ">=": value >= question.value,
    }[question.operator]


@given(st.lists(st.one_of(st.none(), VALUES), max_size=5), QUESTIONS, st.booleans(), st.integers(0, 2))
def test_matching_value_is_never_excluded(values: list[Any], question: Any, nulls: bool, slack: int) -> None:
    numbers = [value for value in values if value is not None and value == value]
    bounds = Bounds(
        minimum=min(numbers) - slack if numbers else None,
        maximum=max(numbers) + slack if numbers else None,
        null_count=values.count(None) if nulls else None,
        num_values=len(values),
        has_nan=any(value is not None and value != value for value in values),
    )
    if any(satisfies(question, value) for value in values):
        assert may_match(question, bounds)


def test_values_outside_the_bounds_are_pruned() -> None:
    bounds = Bounds(minimum=3, maximum=7, null_count=0, num_values=4)
    for question in (
        Comparison("==", 2), Comparison("==", 8), Comparison("<", 3), Comparison("<=", 2.5), Comparison(">", 7),
        Comparison(">=", 7.5), IsIn((1, 9)), IsIn(()), IsNull(),
    ):
        assert not may_match(question, bounds), question
    assert not may_match(Comparison("!=", 3), Bounds(minimum=3, maximum=3, null_count=0, num_values=4))
    assert not may_match(IsNotNull(), Bounds(null_count=4, num_values=4))
    assert may_match(Comparison("==", "text"), bounds), "values that do not compare are left to the reader"
