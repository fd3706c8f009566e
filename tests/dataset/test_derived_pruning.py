"""Row groups and pages are skipped by what the bounds of columns say of what is computed of them."""

from __future__ import annotations

import io
import math
import operator
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from itertools import combinations, product
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from dataset.strategies import expressions, tables
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import col
from pqext.core.format.predicate import Bounds, IsIn, may_match, restrict_to_bounds
from pqext.core.indexes import reading
from pqext.core.read.reader import ParquetFile
from pqext.core.write.writer import write_table
from pqext.dataset.expressions import Expression
from pqext.dataset.notations.sql import from_sql
from pqext.dataset.pruning.binding import bind
from pqext.dataset.pruning.row_groups import row_group_may_match, rows_that_may_match
from reference import evaluate as twin
from reference.effort import share

ROWS = pa.table(
    {
        "a": pa.array([1, 2, 11, 12, 21, 22, None, None], pa.int64()),
        "b": pa.array([5, 6, 5, 6, 5, 6, 5, 6], pa.int32()),
        "f": [0.5, 1.0, 10.0, 20.0, math.nan, 5.0, 1.0, 1.0],
        "d": pa.array([Decimal(n) for n in (1, 2, 3, 4, 5, 6, 7, 8)], pa.decimal128(5, 2)),
        "s": ["apple", "apricot", "banana", "bank", "cherry", "citrus", None, "\U0010ffff"],
        "day": [date(2024, month, 1) for month in range(1, 9)],
        "at": [datetime(2024, 5, day) for day in range(1, 9)],
        "u": pa.array([0, 1, 2, 3, 2**63, 2**64 - 1, 5, 6], pa.uint64()),
    }
)


def matching_pairs(text: str, by_pages: bool) -> list[int]:
    """The pairs of rows that may match, as row groups or as pages of one row group."""
    sink = io.BytesIO()
    write_table(ROWS, sink, row_group_rows=8 if by_pages else 2, page_rows=2)
    with ParquetFile(sink.getvalue()) as file:
        bound = bind(from_sql(text), file.schema)
        if not by_pages:
            return [group.index for group in file.row_groups if row_group_may_match(bound, group)]
        found = rows_that_may_match(bound, file.row_groups[0])
        return sorted({row // 2 for rows in found for row in rows})


@pytest.mark.spec("querying.derived", "querying.prefix")
@pytest.mark.parametrize("by_pages", [False, True], ids=["row groups", "pages"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > b", [1, 2]), ("a < b", [0]), ("b = a", []), ("a <> a", [0, 1, 2]), ("a + 100 > 120", [2]),
        ("a - b between 4 and 7", [1]), ("-a > -3", [0]), ("a * b > 100", [2]), ("a * -1 >= -2", [0]),
        ("2 - a > 0", [0]), ("a * 2 = 22", [1]), ("a * 2 in (4, 44)", [0, 2]), ("(a + 1) is null", [0, 1, 2, 3]),
        ("(a + 1) is not null", [0, 1, 2]), ("f * 2 < 1.5", [0]), ("f + 1 < 3", [0, 3]), ("f < b", [0, 2, 3]),
        ("f > b", [1, 2]), ("100 / f > 300", [2]), ("a / 2 > 10", [2]), ("d * 2 > 12", [3]), ("d + a < 6", [0]),
        ("d / 2 < 1.4", [0]), ("f > d", [1, 2]), ("a::double > 20", [2]), ("a::string = '1'", [0, 1, 2]),
        ("f::bigint = 5", [0, 1, 2, 3]), ("day::timestamp < timestamp '2024-02-15'", [0]),
        ("at::date = date '2024-05-03'", [1]), ("day > at", [2, 3]), ("day = at", [2]), ("u > a", [2]),
        ("u::bigint + 1 > 5", [2, 3]), ("s like 'b%'", [1]), ("starts_with(s, 'ap')", [0]), ("s like 'ci_r%'", [2]),
        ("s not like 'b%'", [0, 2, 3]), ("s not like 'b%k'", [0, 1, 2, 3]), ("s like 'bank'", [1]),
        ("s like '%a'", [0, 1, 2, 3]), ("s ilike 'B%'", [0, 1, 2, 3]),
        ("not starts_with(s, 'a')", [1, 2, 3]), ("s like '%'", [0, 1, 2, 3]),
        ("a > b and s like 'c%'", [2]), ("a < b or s like 'c%'", [0, 2]), ("not (a > b)", [0]), ("s > s", [0, 1, 2]),
        ("a % 5 = 7", [0, 1, 2]), ("a + 9223372036854775807 > 0", [0, 1, 2]),
        ("at < day", [2, 3]), ("at >= day", [0, 1, 2]),
    ],
)  # fmt: skip
def test_bounds_exclude_all_they_can(text: str, expected: list[int], by_pages: bool) -> None:
    assert matching_pairs(text, by_pages) == expected


@pytest.mark.spec("querying.derived")
def test_constant_row_groups_are_skipped_if_columns_must_differ() -> None:
    sink = io.BytesIO()
    rows = pa.table({"a": [1, 1, 2, 2, 3, 4], "b": [1, 1, 5, 5, 3, 3]})
    write_table(rows, sink, row_group_rows=2)
    for text in ("a <> b", "b <> a", "not (a = b)"):
        scan = pqext.scan(sink.getvalue()).filter(from_sql(text))
        assert [len(task.kept_row_groups) for task in scan.plan()] == [2]
        assert scan.count() == len(duckdb.sql(f"FROM rows WHERE {text}").fetchall()) == 3


@pytest.mark.spec("querying.derived")
@pytest.mark.parametrize("type", [pa.int64(), pa.float64(), pa.decimal128(6, 1)], ids=str)
@pytest.mark.parametrize("compute", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_pages_with_results_are_never_pruned(type: pa.DataType, compute: Callable[[Any, Any], Any]) -> None:
    """Both columns of a page have two values each, in all pairs, so that each end of the bounds meets both others."""
    sides = [*combinations((-3, -1, 2, 4), 2)]
    pages = [[*product(one, other)] for one, other in product(sides, sides)]
    x, y = zip(*(pair for page in pages for pair in page), strict=True)
    sink = io.BytesIO()
    columns = {name: pa.array(values, pa.float64()).cast(type) for name, values in (("x", x), ("y", y))}
    write_table(pa.table(columns), sink, page_rows=4)
    results = [{compute(*pair) for pair in page} for page in pages]
    with ParquetFile(sink.getvalue()) as file:
        for value in set().union(*results):
            bound = bind(compute(col("x"), col("y")) == value, file.schema)
            found = {row // 4 for rows in rows_that_may_match(bound, file.row_groups[0]) for row in rows}
            assert {number for number, page in enumerate(results) if value in page} <= found


@settings(max_examples=share(0.6))
@given(st.data(), st.integers(1, 3))
def test_pruned_pages_contain_no_matching_row(data: st.DataObject, rows: int) -> None:
    batch = data.draw(tables(min_rows=1))
    expression: Expression = data.draw(expressions(batch))
    sink = io.BytesIO()
    write_table(pa.Table.from_batches([batch]), sink, page_rows=rows)
    with ParquetFile(sink.getvalue()) as file:
        found = {row for part in rows_that_may_match(bind(expression, file.schema), file.row_groups[0]) for row in part}
    matching = {row for row, truth in enumerate(twin.truths(expression, batch)) if truth}
    assert matching <= found


@pytest.mark.spec("querying.undefined")
def test_failed_computation_is_null_in_every_order_of_conditions() -> None:
    table = pa.table({"a": [2**63 - 1, 1, 5, -(2**63)], "z": [0, 1, 0, 2], "s": ["x", "7", "y", "300"]})
    sink = io.BytesIO()
    pqext.write_table(table, sink, row_group_rows=1)
    data = sink.getvalue()

    def rows(filter: Any) -> list[int]:
        return pqext.read_table(data, ["z"], filter)["z"].to_pylist()

    pairs = ("z <> 0", "a % z = 0"), ("s <> 'x'", "s::tinyint > 0"), ("a < 100", "a + 1 < 100"), ("z > 0", "-a < 0")
    for one, other in pairs:
        assert rows(f"{one} and {other}") == rows(f"{other} and {one}")
    assert rows((col("a") + 1).is_null()) == [0]
    assert rows((-col("a")).is_null()) == [2]
    assert rows((col("a") % col("z")).is_null()) == [0, 0]
    assert rows(col("s").cast("int8").is_null()) == [0, 0, 2]


@settings(max_examples=share(0.6))
@given(st.lists(st.integers(-9, 9) | st.floats(-9, 9)), st.integers(-9, 9), st.integers(0, 5), st.booleans())
def test_list_condition_uses_values_within_the_bounds(values: Any, low: int, wide: int, with_nan: bool) -> None:
    listed = (*sorted(values), *([math.nan] if with_nan else []))
    asked, bounds = IsIn(listed, ascending=True), Bounds(low, low + wide, has_nan=None)
    narrowed = restrict_to_bounds(asked, bounds)
    assert isinstance(narrowed, IsIn)
    assert narrowed.ascending
    assert {value for value in listed if low <= value <= low + wide} <= set(narrowed.values) <= set(listed)
    assert may_match(narrowed, bounds) == may_match(asked, bounds)
    if not with_nan:
        assert all(low <= value <= low + wide for value in narrowed.values)


def test_bloom_filter_is_queried_only_for_values_within_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = io.BytesIO()
    write_table(pa.table({"a": list(range(0, 2000, 2))}), sink, row_group_rows=500, bloom_filters=True)
    asked: list[int] = []
    original = reading.may_contain

    def counted(question: Any, might_contain: Any) -> bool:
        asked.append(len(question.values))
        return original(question, might_contain)

    monkeypatch.setattr(reading, "may_contain", counted)
    odd = [*range(1, 3000, 2)]
    assert pqext.scan(sink.getvalue(), filter=col("a").isin(odd)).count() == 0
    assert sum(asked) <= 1000
