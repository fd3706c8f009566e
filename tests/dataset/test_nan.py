"""Questions for NaN: the rows are pyarrow's, and ``nan_count`` alone lets them pass over row groups and pages."""

from __future__ import annotations

import io
import math
import operator as operators
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.dataset.expressions import Expression, col
from pqext.dataset.reading import read_table, scan
from reference.effort import share, some

FLOATS = [pa.float16(), pa.float32(), pa.float64()]
NAN = math.nan
COMPARISONS = {
    "==": operators.eq, "!=": operators.ne, "<": operators.lt, "<=": operators.le,
    ">": operators.gt, ">=": operators.ge,
}  # fmt: skip


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pqext.write_table(table, sink, **options)
    return sink.getvalue()


def check_filter(table: pa.Table, filter: Expression, mask: pa.ChunkedArray, data: bytes) -> None:
    assert read_table(data, ["row"], filter).equals(table.select(["row"]).filter(mask))
    assert scan(data, None, filter).count() == pc.sum(mask).as_py()


@pytest.mark.spec("querying.derived")
@pytest.mark.parametrize("operator", COMPARISONS)
def test_columns_with_nan_compare_like_in_duckdb(operator: str) -> None:
    values = [5.0, NAN, None, 1.0]
    pairs = some(list(product(product(values, values), repeat=2)), 3)  # two rows of x and y in each row group
    table = pa.table(
        {
            "row": pa.array(range(2 * len(pairs))),
            "x": pa.array([x for pair in pairs for x, _ in pair], pa.float64()),
            "y": pa.array([y for pair in pairs for _, y in pair], pa.float64()),
        }
    )
    compare = COMPARISONS[operator]
    sql_operator = "=" if operator == "==" else operator
    expected = duckdb.from_arrow(table).filter(f"x {sql_operator} y").project("row").to_arrow_table()
    data = written(table, row_group_rows=2)
    assert read_table(data, ["row"], compare(col("x"), col("y")))["row"].to_pylist() == expected["row"].to_pylist()
    computed = compare(col("x") + 0.5, col("y") + 0.5)
    assert read_table(data, ["row"], computed)["row"].to_pylist() == expected["row"].to_pylist()


@pytest.mark.spec("statistics.nan-count.pruning")
@given(st.data())
@settings(max_examples=share(0.5))
def test_rows_match_pyarrow(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(FLOATS))
    values = data.draw(
        st.lists(st.sampled_from([None, NAN, -NAN, 0.0, -0.0, 1.5, -math.inf, math.inf]), min_size=1, max_size=30)
    )
    table = pa.table({"row": pa.array(range(len(values))), "f": pa.array(values, kind)})
    size = data.draw(st.integers(1, 8))
    if data.draw(st.booleans()):
        order = data.draw(st.sampled_from(["type", "ieee754"]))
        stored = written(table, row_group_rows=3 * size, page_rows=size, float_order=order, dictionary=False)
    else:
        sink = io.BytesIO()
        pq.write_table(table, sink, row_group_size=size, write_page_index=True, store_schema=False)
        stored = sink.getvalue()
    wide = table["f"].cast(pa.float64())  # pyarrow compares no half floats
    is_nan = pc.is_nan(wide)
    number = col("f").is_nan()
    check_filter(table, number, pc.fill_null(is_nan, False), stored)
    check_filter(table, ~number, pc.fill_null(pc.invert(is_nan), False), stored)
    check_filter(table, number | (col("f") == 1.5), pc.fill_null(pc.or_(is_nan, pc.equal(wide, 1.5)), False), stored)
    check_filter(table, col("f").isin([NAN]), pc.fill_null(is_nan, False), stored)
    check_filter(table, col("f") > NAN, pc.equal(table["row"], -1), stored)
    check_filter(table, col("f") <= NAN, pc.is_valid(table["f"]), stored)


@pytest.mark.spec("statistics.nan-count.pruning")
@pytest.mark.parametrize("kind", FLOATS, ids=str)
@pytest.mark.parametrize("order", ["type", "ieee754"])
def test_row_groups_and_pages_without_nan_are_not_read(kind: pa.DataType, order: str) -> None:
    values = [float(row % 100) for row in range(4000)]
    values[1234] = NAN
    table = pa.table({"row": range(4000), "f": pa.array(values, kind)})
    data = written(table, row_group_rows=1000, page_rows=100, float_order=order)
    query = scan(data, ["row"], col("f").is_nan())
    (task,) = query.plan(pages=True)
    assert task.kept_row_groups == (1,)
    assert task.row_groups[1].rows == [range(200, 300)]
    assert query.to_table().to_pydict() == {"row": [1234]}
    assert "row group 0 skipped: f == nan is true for no row: no value is NaN" in query.explain()
    assert scan(data, ["row"], ~col("f").is_nan()).plan()[0].kept_row_groups == (0, 1, 2, 3)


@pytest.mark.spec("statistics.nan-count.pruning")
def test_row_groups_without_a_nan_count_are_read(tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"f": [1.0, NAN, 2.0, 3.0]}), sink, row_group_size=2, write_page_index=True)
    query = scan(sink.getvalue(), None, col("f").is_nan())
    assert query.plan(pages=True)[0].kept_row_groups == (0, 1)
    assert query.count() == 1


@pytest.mark.spec("statistics.nan-count.pruning")
def test_nan_counts_of_duckdb_are_used(tmp_path: Path) -> None:
    path = tmp_path / "duckdb.parquet"
    source = "select case when i = 5000 then 'nan'::double else i end f from range(8192) t(i)"
    duckdb.sql(f"copy ({source}) to '{path}' (row_group_size 2048)")
    query = scan(path, None, col("f").is_nan())
    assert query.plan()[0].kept_row_groups == (2,)
    assert query.count() == 1


def test_integer_and_decimal_columns_are_never_nan_and_text_is_an_error() -> None:
    table = pa.table({"i": [1, None], "d": pa.array([None, 2], pa.decimal128(5, 2)), "s": ["a", "nan"]})
    data = written(table)
    for name in ("i", "d"):
        assert read_table(data, filter=col(name).is_nan()).num_rows == 0
        assert read_table(data, filter=~col(name).is_nan()).num_rows == 1
    with pytest.raises(TypeError, match="column 's' contains string values"):
        read_table(data, filter=col("s").is_nan())


def test_variant_value_supports_is_nan() -> None:
    from pqext import variant

    values = [variant.Variant.from_python(value) for value in ({"f": NAN}, {"f": 1.0}, {"f": None}, {"f": "NaN"}, {})]
    column = pa.array([{"metadata": value.metadata, "value": value.value} for value in values], variant.variant_type())
    for options in ({}, {"shredding": {"v": "f DOUBLE"}}):
        schema = pa.schema([("row", pa.int64()), variant.variant_field("v")])
        data = written(pa.table([pa.array(range(5)), column], schema=schema), **options)
        field = col("v").variant("$.f", "float64")
        mask = pc.is_nan(variant.get(column, "$.f", "float64"))
        for filter, expected in ((field.is_nan(), mask), (~field.is_nan(), pc.invert(mask))):
            assert read_table(data, ["row"], filter)["row"].to_pylist() == pc.indices_nonzero(expected).to_pylist()
