"""Evaluation on Arrow data agrees with a twin that goes row by row, and with other engines."""

from __future__ import annotations

import io
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from dataset.strategies import tables_and_expressions
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.format.predicate import COMPARE, Operator
from pqext.dataset.evaluation import evaluate as evaluation
from pqext.dataset.evaluation.evaluate import evaluate
from pqext.dataset.expressions import Comparison, Expression, col
from pqext.dataset.expressions.visitors import push_down_not
from reference import evaluate as twin
from reference.effort import share


@given(tables_and_expressions(), st.integers(0, 12))
def test_arbitrary_expression_matches_row_by_row_evaluation(case: tuple[pa.RecordBatch, Expression], cut: int) -> None:
    batch, expression = case
    expected = twin.truths(expression, batch)
    assert evaluate(expression, batch).to_pylist() == expected
    assert evaluate(expression, batch.slice(cut)).to_pylist() == expected[cut:]
    chunked = pa.Table.from_batches([batch.slice(0, cut), batch.slice(cut)])
    assert evaluate(expression, chunked).to_pylist() == expected
    assert twin.truths(push_down_not(expression), batch) == expected  # pushing Not down changes no row


def mask(expression: Expression, **columns: pa.Array) -> list[bool | None]:
    return evaluate(expression, pa.record_batch(columns)).to_pylist()


def test_integers_beyond_double_precision_compare_exactly() -> None:
    column = pa.array([2**53, 2**53 + 1, 2**63 - 1])
    assert mask(col("a") == 2.0**53, a=column) == [True, False, False]
    assert mask(col("a") < 2.0**63, a=column) == [True, True, True]
    assert mask(col("a") > 2**63, a=column) == [False, False, False]


def test_single_precision_values_compare_by_exact_value() -> None:
    column = pa.array([0.1, 0.5], pa.float32())
    assert mask(col("a") == 0.1, a=column) == [False, False]
    assert mask(col("a") == 0.5, a=column) == [False, True]
    assert mask(col("a") > 0.1, a=column) == [True, True]
    assert mask(col("a") == np.float32(0.1), a=column) == [True, False]


def test_nan_is_greater_than_every_number_and_equal_to_itself() -> None:
    column = pa.array([1.0, math.nan, math.inf, None])
    assert mask(col("a") > 5, a=column) == [False, True, True, None]
    assert mask(col("a") == math.nan, a=column) == [False, True, False, None]
    assert mask(~(col("a") <= math.inf), a=column) == [False, True, False, None]
    assert mask(col("a").isin([math.nan, 1]), a=column) == [True, True, False, None]


@settings(max_examples=share(0.33))
@given(
    st.lists(st.sampled_from([math.nan, None, -math.inf, -1.0, -0.0, 0.0, 2.5, math.inf]), max_size=8),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    st.sampled_from([math.nan, 0.0, 2.5, math.inf, -math.inf]),
    st.booleans(),
)
def test_nan_order_in_filters_matches_polars_and_duckdb(
    values: list[float | None], operator: Operator, literal: float, negated: bool
) -> None:
    table = pa.table({"f": pa.array(values, pa.float64()), "row": pa.array(range(len(values)), pa.int64())})
    compared = COMPARE[operator](pl.col("f"), literal)
    expected = pl.from_arrow(table).filter(~compared if negated else compared)["row"].to_list()
    asked = Comparison(col("f"), operator, literal)
    for own in (True, False):
        sink = io.BytesIO()
        if own:
            pqext.write_table(table, sink, row_group_rows=3, page_rows=2)
        else:  # which leaves no count of NaN
            pq.write_table(table, sink, row_group_size=3, write_page_index=True)
        found = pqext.read_table(sink, filter=~asked if negated else asked)
        assert found["row"].to_pylist() == expected
    sql = f"SELECT row FROM rows WHERE {'NOT' if negated else ''} f {operator} '{literal}'::DOUBLE ORDER BY row"
    with duckdb.connect() as connection:
        connection.register("rows", table)
        assert [row for (row,) in connection.sql(sql).fetchall()] == expected


def test_zeros_of_both_signs_are_equal() -> None:
    column = pa.array([0.0, -0.0])
    assert mask(col("a").isin([0]), a=column) == [True, True]
    assert mask(col("a") >= 0.0, a=column) == [True, True]


def test_timestamp_literal_finer_than_the_column_falls_between_values() -> None:
    column = pa.array([datetime(2020, 1, 1), datetime(2020, 1, 1, 0, 0, 0, 1000)], pa.timestamp("ms"))
    literal = pa.scalar(pa.scalar(datetime(2020, 1, 1)).value * 1000 + 1, pa.timestamp("ns"))
    assert mask(col("a") == literal, a=column) == [False, False]
    assert mask(col("a") > literal, a=column) == [False, True]


def test_date_compares_as_its_midnight_with_local_timestamps() -> None:
    column = pa.array([datetime(2020, 1, 1), datetime(2020, 1, 1, 1)])
    assert mask(col("a") <= date(2020, 1, 1), a=column) == [True, False]
    with pytest.raises(TypeError, match="column 'a' contains timestamp in UTC values"):
        mask(col("a") <= date(2020, 1, 1), a=column.cast(pa.timestamp("us", "UTC")))


@pytest.mark.parametrize(
    "type", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_every_text_layout_compares_equally(type: pa.DataType) -> None:
    column = pa.array(["a", None, "é"]).cast(type)
    assert mask(col("a") < "b", a=column) == [True, None, False]
    assert mask(col("a").isin(["é"]), a=column) == [False, None, True]


def test_dictionary_entries_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    compare = evaluation.compare

    def record(array: pa.Array, operator: Operator, value: Any) -> pa.Array:
        lengths.append(len(array))
        return compare(array, operator, value)

    monkeypatch.setattr(evaluation, "compare", record)
    entries = pa.array(["a", None, "b", "é"])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None] * 20, pa.int8()), entries)
    assert mask(col("a") < "b", a=column) == [True, None, False, False, None] * 20
    assert mask(col("a") < "b", a=column.slice(3, 7)) == ([True, None, False, False, None] * 20)[3:10]
    assert lengths == [4, 4]
    assert mask(~col("a").isin(["é", "x"]), a=column) == [True, None, True, False, None] * 20
    assert mask(col("a") < "b", a=column.slice(0, 2)) == [True, None]  # fewer rows than entries


@pytest.mark.parametrize("type", [pa.decimal32(4, 2), pa.decimal64(9, 2), pa.decimal128(9, 2), pa.decimal256(40, 2)])
def test_every_decimal_width_compares_equally(type: pa.DataType) -> None:
    column = pa.array([Decimal("1.10"), Decimal("-2.25"), None], type)
    assert mask(col("a") > 1.1, a=column) == [False, False, None]
    assert mask(col("a") == 1.1, a=column) == [True, False, None]
    assert mask(col("a") <= 1.099, a=column) == [False, True, None]
    assert mask(col("a") >= Decimal("1.1"), a=column) == [True, False, None]
    assert mask(col("a") < -2.2, a=column) == [False, True, None]
    assert mask(col("a").isin([Decimal("-2.250"), Decimal("1.101")]), a=column) == [False, True, None]


def test_other_layouts_are_decoded() -> None:
    half = pa.array([np.float16(1.5), None], pa.float16())
    assert mask(col("a") == 1.5, a=half) == [True, None]
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], ["x", "y"])
    assert mask(col("a") == "x", a=runs) == [True, True, False]
    assert mask(col("a").is_null(), a=pa.RunEndEncodedArray.from_arrays([2, 3], ["x", None])) == [False, False, True]
    codes = pa.DictionaryArray.from_arrays([0, 1, None], ["x", None])
    assert mask(col("a").is_null(), a=codes) == [False, True, True]
    identifiers = pa.array([UUID(int=1), None], pa.uuid())
    assert mask(col("a") == UUID(int=1), a=identifiers) == [True, None]
    assert mask(col("a").is_null(), a=identifiers) == [False, True]
    assert mask(col("a") == 1, a=pa.nulls(2)) == [None, None]
    assert mask(col("a").isin([1]), a=pa.nulls(2)) == [None, None]
    days = pa.array([date(2020, 1, 1), date(2020, 1, 2)], pa.date64())
    assert mask(col("a") > date(2020, 1, 1), a=days) == [False, True]


def test_fields_of_a_null_struct_are_null() -> None:
    column = pa.array([{"x": {"y": 1}}, {"x": None}, None])
    assert mask(col("s.x.y") == 1, s=column) == [True, None, None]
    assert mask(col("s.x").is_null(), s=column) == [False, True, True]


def test_missing_columns_are_named() -> None:
    with pytest.raises(ValueError, match="column 'b' is missing or ambiguous"):
        mask(col("b") == 1, a=pa.array([1]))
    with pytest.raises(ValueError, match=r"column 'a\.x': field 'x' is missing or ambiguous in int64"):
        mask(col("a.x") == 1, a=pa.array([1]))
    with pytest.raises(ValueError, match=r"column 's\.y': field 'y' is missing"):
        mask(col("s.y") == 1, s=pa.array([{"x": 1}]))


def test_unordered_columns_compare_with_null_only() -> None:
    column = pa.array([[1], None])
    assert mask(col("a").is_null(), a=column) == [False, True]
    with pytest.raises(TypeError, match="column 'a' of type list"):
        mask(col("a") == 1, a=column)


def test_table_without_batches_returns_an_empty_mask() -> None:
    table = pa.schema([("a", pa.int64())]).empty_table()
    assert evaluate(col("a") > 1, table).to_pylist() == []


ENGINE_TABLE = pa.table(
    {
        "i": pa.array([1, None, 3, -(2**63), 2**63 - 1, 0], pa.int64()),
        "f": [1.5, math.nan, None, -math.inf, 0.0, -0.0],
        "t": ["a", None, "é", "", "b", "\U0001f600"],
        "d": pa.array([Decimal("1.10"), None, Decimal("-2.25"), 0, Decimal("999.99"), 3], pa.decimal128(5, 2)),
        "day": [date(2020, 1, 1), None, date(1969, 12, 31), date.max, date(1, 1, 1), date(2020, 1, 2)],
        "at": pa.array([datetime(2020, 1, 1, tzinfo=UTC), None, *[datetime(1969, 1, 1, tzinfo=UTC)] * 4]),
    }
)
SQL = [
    (col("i") > 2.5, "i > 2.5"),
    (~(col("i") > 1), "NOT i > 1"),
    (col("i").isin([1, 3]) | (col("f") > 1), "i IN (1, 3) OR f > 1"),
    (~col("i").isin([1, 3]), "i NOT IN (1, 3)"),
    (col("f") > 1, "f > 1"),
    (~(col("f") < math.inf), "NOT f < 'inf'::DOUBLE"),
    (col("f") == math.nan, "f = 'nan'::DOUBLE"),
    (col("f") == 0, "f = 0"),
    (col("t") >= "b", "t >= 'b'"),
    (~(col("t").is_null() & (col("i") == 1)), "NOT (t IS NULL AND i = 1)"),
    (col("d") <= Decimal("1.1"), "d <= 1.1"),
    (col("d") == 1.1, "d = 1.1::DOUBLE"),
    (col("d").isin([-2.25, 999.99]), "d IN (-2.25::DOUBLE, 999.99::DOUBLE)"),
    (col("d").is_not_null() & (col("d") != 0), "d IS NOT NULL AND d <> 0"),
    (col("day") < date(2020, 1, 2), "day < DATE '2020-01-02'"),
    (col("at") >= datetime(2020, 1, 1, tzinfo=UTC), "\"at\" >= TIMESTAMPTZ '2020-01-01 00:00:00+00'"),
]


@pytest.mark.parametrize(("expression", "sql"), SQL, ids=[sql for _, sql in SQL])
def test_sql_conditions_match(expression: Expression, sql: str) -> None:
    connection = duckdb.connect()
    connection.register("rows", ENGINE_TABLE)
    expected = [value for (value,) in connection.sql(f"SELECT {sql} FROM rows").fetchall()]
    assert evaluate(expression, ENGINE_TABLE).to_pylist() == expected


ARROW = [
    (col("i") > 2, pc.field("i") > 2),
    (~(col("i") > 1), ~(pc.field("i") > 1)),
    ((col("i") > 1) | (col("t") == "a"), (pc.field("i") > 1) | (pc.field("t") == "a")),
    ((col("i") > 1) & (col("t") < "b"), (pc.field("i") > 1) & (pc.field("t") < "b")),
    (col("t").is_null(), pc.field("t").is_null()),
    (col("day") < date(2020, 1, 2), pc.field("day") < date(2020, 1, 2)),
    (col("at") == datetime(2020, 1, 1, tzinfo=UTC), pc.field("at") == datetime(2020, 1, 1, tzinfo=UTC)),
]


@pytest.mark.parametrize(("expression", "arrow"), ARROW, ids=[str(arrow) for _, arrow in ARROW])
def test_arrow_filters_return_the_same_rows(expression: Expression, arrow: pc.Expression) -> None:
    numbered = ENGINE_TABLE.append_column("row", pa.array(range(ENGINE_TABLE.num_rows)))
    assert numbered.filter(evaluate(expression, numbered))["row"].equals(numbered.filter(arrow)["row"])
