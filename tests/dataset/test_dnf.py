"""Lists of tuples mean what they mean to pyarrow."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pqext.dataset.expressions import col
from pqext.dataset.notations.dnf import as_expression, from_dnf
from pqext.dataset.reading import read_table

TABLE = pa.table(
    {
        "a": pa.array([*range(20), None, -5], pa.int64()),
        "b": [f"k{row % 7}" if row % 5 else None for row in range(22)],
        "c": pa.array([row / 4 for row in range(22)], pa.float32()),
        "d": [date(2020, 1, 1 + row) for row in range(22)],
        "e": pa.array([Decimal(row) / 10 for row in range(22)], pa.decimal128(9, 2)),
        "s": [{"x": row % 3, "y": str(row)} if row % 4 else None for row in range(22)],
    }
)


@pytest.mark.parametrize(
    "filters",
    [
        [("a", ">", 3), ("b", "in", ["k1", "k2"])],
        [[("a", ">", 3), ("b", "in", ["k1", "k2"])], [("a", "=", -5)]],
        [[("a", "<=", 3)], [("c", ">=", 4.5), ("d", "!=", date(2020, 1, 20))]],
        [("a", "not in", [1, 2, 3])],
        [("a", "==", 7)],
        [("e", "<", Decimal("0.75"))],
        [[(("s", "x"), "=", 2)]],
        [("d", "in", {date(2020, 1, 5)})],
        [("a", ">", 100)],
    ],
    ids=str,
)
def test_pyarrow_keeps_the_same_rows(tmp_path: Path, filters: Any) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(TABLE, path, row_group_size=5)
    # What pyarrow keeps of nulls under "not in" is its own rule; SQL's is that null is not true.
    expected = pq.read_table(path, filters=filters)
    if ("a", "not in", [1, 2, 3]) in filters:
        expected = expected.filter(pa.compute.is_valid(expected["a"]))
    assert read_table(path, filter=filters).equals(expected)


def test_tuples_become_expressions() -> None:
    assert from_dnf([("a", "=", 1)]) == (col("a") == 1)
    assert from_dnf([("a.b", "in", [1]), ("c", "not in", (2,))]) == col("a.b").isin([1]) & ~col("c").isin([2])
    assert from_dnf([[("a", "<", 1)], [("b", ">", 2), ("c", "!=", 3)]]) == (
        (col("a") < 1) | ((col("b") > 2) & (col("c") != 3))
    )
    assert from_dnf([[("a", "<", 1)]]) == (col("a") < 1)


@pytest.mark.parametrize(
    "filters",
    [
        [], [[]], "a > 1", [("a", ">")], [("a", "like", "x")], [["a", ">", 1]], [("a", ">", 1), [("b", ">", 2)]],
        [("a", "==", None)], [("a", "in", [1, None])], {("a", ">", 1)},
    ],
    ids=str,
)  # fmt: skip
def test_malformed_filters_are_refused(filters: Any) -> None:
    with pytest.raises(ValueError, match=r"filters are|condition is|is not one of|is_null"):
        from_dnf(filters)


def test_readers_take_expressions_lists_or_nothing() -> None:
    expression = col("a") > 1
    assert as_expression(expression) is expression
    assert as_expression([("a", ">", 1)]) == expression
    assert as_expression(None) is None
    assert as_expression("a > 1") == expression
    with pytest.raises(ValueError, match="not an expression: Expecting"):
        as_expression("{a > 1}")
    with pytest.raises(TypeError, match="not Column"):
        as_expression(col("a"))


@pytest.mark.parametrize("given", [pa.compute.field("a") > 5, pl.col("a") > 5], ids=["pyarrow", "polars"])
def test_expressions_of_other_libraries_are_answered_with_ours(given: Any) -> None:
    with pytest.raises(TypeError, match=r"of pqext, like pqext\.col\('a'\) > 5, .* not (pyarrow|polars)\."):
        as_expression(given)
