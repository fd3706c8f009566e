"""Lists of tuples mean what they mean to pyarrow."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pqext import scan, write_table
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
def test_pyarrow_returns_the_same_rows(tmp_path: Path, filters: Any) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(TABLE, path, row_group_size=5)
    # What pyarrow keeps of nulls under "not in" is its own rule; SQL's is that null is not true.
    expected = pq.read_table(path, filters=filters)
    if ("a", "not in", [1, 2, 3]) in filters:
        expected = expected.filter(pa.compute.is_valid(expected["a"]))
    assert read_table(path, filter=filters).equals(expected)


def test_tuples_are_converted_to_expressions() -> None:
    assert from_dnf([("a", "=", 1)]) == (col("a") == 1)
    assert from_dnf([("a.b", "in", [1]), ("c", "not in", (2,))]) == col("a.b").isin([1]) & ~col("c").isin([2])
    assert from_dnf([[("a", "<", 1)], [("b", ">", 2), ("c", "!=", 3)]]) == (
        (col("a") < 1) | ((col("b") > 2) & (col("c") != 3))
    )
    assert from_dnf([[("a", "<", 1)]]) == (col("a") < 1)


def test_tuples_may_be_nested_or_single() -> None:
    assert from_dnf((("a", ">", 1),)) == (col("a") > 1)
    assert from_dnf((("a", ">", 1), ("b", "<", 2), ("c", "=", 3))) == (col("a") > 1) & (col("b") < 2) & (col("c") == 3)
    assert from_dnf(("a", "in", (1, 2))) == col("a").isin([1, 2])
    assert from_dnf((["s", "x"], "not in", ("u", "v"))) == ~col(["s", "x"]).isin(["u", "v"])


@pytest.mark.parametrize(
    "filters",
    [
        [], [[]], "a > 1", [("a", ">")], [("a", "like", "x")], [["a", ">", 1]], [("a", ">", 1), [("b", ">", 2)]],
        [("a", "==", None)], {("a", ">", 1)}, ("a", "like", "x"), ("a", ">"), [col("a") > 1, ["b", ">", 2]],
    ],
    ids=str,
)  # fmt: skip
def test_malformed_filters_are_rejected(filters: Any) -> None:
    problems = "filters must be|a filter must be|a condition must be|unknown operator|is_null"
    with pytest.raises(ValueError, match=problems):
        from_dnf(filters)


def test_tuple_without_its_own_brackets_is_shown_in_the_error() -> None:
    with pytest.raises(ValueError, match=r"list of tuples such as \('id', '>', 1\) .* not \['a', '>', 1\]"):
        from_dnf(["a", ">", 1])


def test_readers_accept_expressions_lists_or_none() -> None:
    expression = col("a") > 1
    assert as_expression(expression) is expression
    assert as_expression([("a", ">", 1)]) == expression
    assert as_expression(None) is None
    assert as_expression("a > 1") == expression
    with pytest.raises(ValueError, match="not the JSON text of an expression: Expecting"):
        as_expression("{a > 1}")


def test_expressions_are_accepted_in_place_of_tuples() -> None:
    flag, more, few = col("flag"), col("a") > 1, col("a") < 9
    is_set = flag == True  # noqa: E712
    assert as_expression(flag) == as_expression([flag]) == is_set
    assert as_expression([more, few, flag]) == as_expression((more, few, flag)) == more & few & is_set
    assert as_expression([more, ("a", "<", 9)]) == more & few
    assert as_expression([[more, few], [flag]]) == (more & few) | is_set


def test_bare_tuple_is_a_condition() -> None:
    assert as_expression(("a", ">", 1)) == (col("a") > 1)
    assert as_expression((("s", "x"), "in", [1])) == col("s.x").isin([1])
    assert as_expression((("a", ">", 1), ("b", "=", 2))) == (col("a") > 1) & (col("b") == 2)


FLAGS = pa.table({"flag": [True, False, None], "id": [1, 2, None], "n": [0, 1, 2]})


@pytest.mark.parametrize(
    ("filter", "theirs"),
    [
        (col("flag"), pl.col("flag")), (~col("flag"), ~pl.col("flag")), ("flag", pl.col("flag")),
        (col("flag") | (col("n") == 1), pl.col("flag") | (pl.col("n") == 1)),
        ((col("n") == 1) | col("flag"), (pl.col("n") == 1) | pl.col("flag")),
        ((col("n") < 2) & ~col("flag"), (pl.col("n") < 2) & ~pl.col("flag")),
        (~(col("flag") & col("flag")), ~(pl.col("flag") & pl.col("flag"))),
        ([col("flag"), col("n") == 0], pl.col("flag") & (pl.col("n") == 0)), (("n", ">", 0), pl.col("n") > 0),
    ],
    ids=str,
)  # fmt: skip
def test_polars_returns_the_same_rows(filter: Any, theirs: pl.Expr, tmp_path: Path) -> None:
    frame = pl.from_arrow(FLAGS)
    assert isinstance(frame, pl.DataFrame)
    for rows in (1, 3):
        write_table(FLAGS, tmp_path / "flags.parquet", row_group_rows=rows)
        found = read_table(tmp_path / "flags.parquet", filter=filter)
        assert found.to_pylist() == frame.filter(theirs).to_dicts()
        assert scan(tmp_path / "flags.parquet", filter=filter).count() == found.num_rows


@pytest.mark.parametrize("given", [pa.compute.field("a") > 5, pl.col("a") > 5], ids=["pyarrow", "polars"])
def test_expressions_of_other_libraries_suggest_ours(given: Any) -> None:
    with pytest.raises(TypeError, match=r"of pqext, like pqext\.col\('a'\) > 5, .* not (pyarrow|polars)\."):
        as_expression(given)


@pytest.mark.parametrize(
    ("filter", "text"),
    [
        (col("id").isin([1, None]), "id in (1, null)"), (~col("id").isin([1, None]), "id not in (1, null)"),
        (("id", "in", [2, None]), "id in (2, null)"), (("id", "not in", [2, None]), "id not in (2, null)"),
        (col("id").isin([None]), "id in (null)"), (col("id").isin([pa.scalar(None, pa.int64())]), "id in (null)"),
        (~(col("id").isin([1, None]) & (col("n") > 5)), "not (id in (1, null) and n > 5)"),
    ],
    ids=str,
)  # fmt: skip
def test_null_in_a_list_matches_duckdb(filter: Any, text: str, tmp_path: Path) -> None:
    path = tmp_path / "flags.parquet"
    for rows in (1, 3):
        write_table(FLAGS, path, row_group_rows=rows)
        expected = duckdb.sql(f"select * from '{path}' where {text}").fetchall()
        for condition in (filter, text):
            found = read_table(path, filter=condition)
            assert [tuple(row.values()) for row in found.to_pylist()] == expected
            assert scan(path, filter=condition).count() == len(expected)
