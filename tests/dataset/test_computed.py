"""Columns of the result that are computed: what DuckDB computes, whatever the layout and however rows are chosen."""

from __future__ import annotations

import io
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from dataset.strategies import expressions, tables
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pqext
from pqext import col
from pqext.dataset.evaluation.evaluate import value_of
from pqext.dataset.expressions import ARITHMETIC, Arithmetic, Column, Constant, Value
from pqext.dataset.notations.sql import value_from_sql
from reference import computed as twin
from reference.effort import share
from reference.evaluate import truths

ROWS = pa.table(
    {
        "i": pa.array([1, 2, None, 4, -5, 0], pa.int32()),
        "f": [0.5, None, 2.0, -1.0, math.inf, 0.0],
        "d": pa.array([Decimal(text) for text in ("0.25", "1.00", "-2.50", "2.50", "5.00")] + [None]),
        "s": ["1", "x", "", None, "-7", "2.5"],
        "p": [{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}, {"x": 4, "y": None}, {"x": 5, "y": "c"}, {"x": 0}],
        "l": [[1], [], None, [1, 2], [None], [3, 4, 5]],
        "m": pa.array([[("a", 1)], [], None, [("b", 2), ("c", 3)], [], []], pa.map_(pa.string(), pa.int64())),
    }
)  # fmt: skip


def stored(table: pa.Table, rows: int = 2, **options: Any) -> bytes:
    sink = io.BytesIO()
    pqext.write_table(table, sink, row_group_rows=rows, **options)
    return sink.getvalue()


FILE = stored(ROWS)


@pytest.mark.parametrize(
    "text",
    ["i + 1", "i * f", "i - d", "d * d", "-i", "-d", "i / 2", "d / 4", "i % 3", "f % 2", "d + 1.5", "p.x * 2",
     "len(l)", "cardinality(m)", "i::double", "i::varchar", "try_cast(s as double)", "p.y", "d::decimal(9, 1)",
     "i::tinyint + 1", "len(l) * i", "d::varchar", "(d * d)::varchar", "(d / 4)::decimal(12, 9)::varchar"],
)  # fmt: skip
@pytest.mark.parametrize("where", [None, "i > 0", "s <> 'x' or p is null"])
def test_values_match_duckdb(text: str, where: str | None) -> None:
    connection = duckdb.connect()
    connection.register("data", ROWS)
    expected = connection.sql(f"select {text} as found from data" + (f" where {where}" if where else ""))
    value = value_from_sql(text)
    read = pqext.read_table(FILE, ["i", ("found", value)], where)
    assert repr(list(map(plain, read["found"].to_pylist()))) == repr([plain(one) for (one,) in expected.fetchall()])
    alone = pqext.scan(FILE, [value.alias("found")], where).to_table()
    assert repr(alone["found"].to_pylist()) == repr(read["found"].to_pylist())


def plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value) + 0.0  # Arrow's decimals have one zero
    return float(value) if isinstance(value, int) else value


@given(st.data(), st.sampled_from([pa.decimal32, pa.decimal64, pa.decimal128]), st.integers(0, 9))
def test_decimals_as_text_preserve_their_scale(data: st.DataObject, kind: Any, scale: int) -> None:
    unscaled = st.sampled_from([0, 10, -130, 500_000]) | st.integers(-(10**9) + 1, 10**9 - 1)
    values = data.draw(st.lists(st.none() | unscaled.map(lambda digits: Decimal(digits).scaleb(-scale)), max_size=4))
    array = pa.array(values, kind(9, scale))
    for start in range(len(values) + 1):
        batch = pa.record_batch({"d": array.slice(start)})
        found = value_of(col("d").cast("string"), batch).to_pylist()
        assert found == [None if value is None else format(value, "f") for value in values[start:]]


def test_filter_on_decimals_as_text_preserves_trailing_zeros() -> None:
    prices = stored(pa.table({"price": pa.array([Decimal("1.30"), Decimal("2.00")], pa.decimal128(9, 2))}))
    assert pqext.read_table(prices, filter="cast(price as string) = '1.30'").num_rows == 1


def test_columns_and_fields_can_be_renamed() -> None:
    read = pqext.read_table(FILE, [col("p").field("x"), col("p").alias("q"), ("i", col("i") + 1), col("l")])
    assert read.schema.names == ["p.x", "q", "i", "l"]
    assert read["q"].to_pylist() == ROWS["p"].to_pylist()
    assert read["l"].to_pylist() == ROWS["l"].to_pylist()
    assert read["i"].to_pylist() == [2, 3, None, 5, -4, 1]
    assert read["p.x"].to_pylist() == [row and row["x"] for row in ROWS["p"].to_pylist()]


def test_later_filters_refer_to_computed_columns_by_name() -> None:
    scan = pqext.scan(FILE, [("twice", col("i") * 2), ("q", col("p"))]).filter("twice > 2 and q.x is not null")
    assert scan.to_table().to_pylist() == [{"twice": 8, "q": {"x": 4, "y": None}}]


def test_aggregates_refer_to_computed_columns_by_name() -> None:
    sink = io.BytesIO()
    pqext.write_table(pa.table({"a": [1, 2, 3], "b": [10, 20, None]}), sink)
    selected = pqext.scan(sink.getvalue()).select(("twice", col("a") * 2), ("a", col("b")), ("b", col("a")))
    assert (selected.min("twice").as_py(), selected.max("twice").as_py(), selected.null_count("twice")) == (2, 6, 0)
    assert (selected.min("a").as_py(), selected.null_count("a"), selected.max("b").as_py()) == (10, 1, 3)
    assert selected.filter(col("twice") > 2).min("twice").as_py() == 4
    later = selected.select(("again", col("twice") + col("a")))
    expected = duckdb.sql("select a * 2 + b from (values (1, 10), (2, 20), (3, null)) t(a, b)").fetchall()
    assert later.to_table()["again"].to_pylist() == [row[0] for row in expected]


def test_dictionary_columns_remain_dictionaries() -> None:
    table = pa.table({"s": pa.array(["a", "b", "a"]).dictionary_encode(), "n": [1, 2, 3]})
    read = pqext.read_table(stored(table), [("t", col("s"))], filter="s = 'a' and n > 1")
    assert read["t"].type == table["s"].type
    assert read["t"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ([col("i") + 1], r"needs a name in the result: \(col\('i'\) \+ 1\).alias"), ([("x", 3)], "not \\('x', 3\\)"),
        ([(col("j") + 1).alias("q")], "no column 'j'"), ([(col("s") + 1).alias("q")], "is not numeric"),
        ([col("p").field("z")], "no column 'p.z'"), ([col("i").list_length().alias("q")], "not lists"),
        ([col("l").cast("string").alias("q")], "cannot be cast"), ([("i", col("i")), "i"], "twice"),
        ([("q", "i + 1")], "write 'i \\+ 1 as q' in Scan.select"), ([("a b", "s")], "'s as \"a b\"' in"),
        ([(3, col("i"))], "name must be a string"), ([("x", col("i") > 2)], "a condition cannot be a column"),
    ],
)  # fmt: skip
def test_unsupported_computation_is_reported(columns: list[Any], told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        pqext.read_table(FILE, columns)


def test_partition_columns_are_not_usable_in_computations(tmp_path: Any) -> None:
    (tmp_path / "y=1").mkdir()
    pqext.write_table(pa.table({"x": [1]}), tmp_path / "y=1" / "f.parquet")
    with pytest.raises(TypeError, match="is a partition column"):
        pqext.read_table(tmp_path, [(col("y") + 1).alias("z")])


@pytest.mark.parametrize("option", ["include_row_numbers", "include_file_paths"])
def test_included_columns_are_not_usable_in_computations(tmp_path: Any, option: str) -> None:
    pqext.write_table(pa.table({"x": [1]}), path := tmp_path / "f.parquet")
    with pytest.raises(TypeError, match=f"column 'r' is the column of {option}, .*; pass another name to {option}"):
        pqext.scan(path, **{option: "r"}).select({"n": "r"})
    with pytest.raises(TypeError, match=f"column 'r' is the column of {option}, not a VARIANT"):
        pqext.scan(path, **{option: "r"}).filter(col("r").variant("$.a", "int64") > 1).to_table()


def test_files_with_other_types_are_cast() -> None:
    tables = pa.table({"x": pa.array([1], pa.int32())}), pa.table({"x": [2.5]}), pa.table({"z": [1]})
    files = list(map(stored, tables))
    read = pqext.read_table(files, [(col("x") * 2).alias("y")], schema="union")
    assert read["y"].to_pylist() == [2.0, 5.0, None]


LITERALS = st.sampled_from([2, -3, 0, 2**62, 0.5, Decimal("0.25")])
NUMBERS = ["i8", "i32", "i64", "u32", "u64", "f32", "f64", "d5", "d15"]


@settings(max_examples=share(0.6))
@given(st.data(), st.integers(1, 4), st.sampled_from(ARITHMETIC), LITERALS)
def test_computed_columns_of_matching_rows_match_the_rows(
    data: st.DataObject, rows: int, operator: Any, literal: Any
) -> None:
    batch = data.draw(tables(min_rows=1))
    names = [name for name in batch.schema.names if name in NUMBERS]
    assume(names)
    expression = data.draw(expressions(batch))
    value: Value = Arithmetic(operator, (Column((data.draw(st.sampled_from(names)),)), Constant(literal)))
    file = stored(pa.Table.from_batches([batch]), rows, page_rows=2)
    read = pqext.read_table(file, [("found", value)], expression)
    kept = [row for row, truth in enumerate(truths(expression, batch)) if truth]
    expected = [twin.value(value, batch, row) for row in kept]
    assert [repr(plain(one)) for one in read["found"].to_pylist()] == [repr(plain(one)) for one in expected]



def test_columns_may_be_a_mapping_of_names(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pqext.write_table(pa.table({"i": [1, 2], "s": [{"x.y": 3, "z": 5}, {"x.y": 4, "z": 6}]}), path)
    columns = {"twice": col("i") * 2, "i": "i", "other": "i", "z": "s.z", "xy": col(["s", "x.y"])}
    expected = {"twice": [2, 4], "i": [1, 2], "other": [1, 2], "z": [5, 6], "xy": [3, 4]}
    assert pqext.read_table(path, columns).to_pydict() == expected
    assert pqext.scan(path).select(columns).to_table().to_pydict() == expected
    with pytest.raises(TypeError, match=r"not \('a', 3\)"):
        pqext.scan(path, {"a": 3})
