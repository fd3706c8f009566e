"""A row group is refused only when none of its rows can match, and is refused when statistics show that."""

from __future__ import annotations

import io
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from dataset.strategies import expressions, tables
from hypothesis import given
from hypothesis import strategies as st

from pqext.core.read.reader import ParquetFile
from pqext.core.write.writer import write_table
from pqext.dataset.expressions import Expression, col
from pqext.dataset.pruning.binding import bind
from pqext.dataset.pruning.row_groups import prune_reason, row_group_may_match
from pqext.dataset.reading import read_table
from reference import evaluate as twin


def by_pyarrow(table: pa.Table, rows: int) -> bytes:
    """The table as pyarrow writes it, ``rows`` a row group."""
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=rows, store_schema=False)
    return sink.getvalue()


def by_pqext(table: pa.Table, rows: int) -> bytes:
    """The table as pqext writes it."""
    sink = io.BytesIO()
    write_table(table, sink, row_group_rows=rows, bloom_filters=True)
    return sink.getvalue()


WRITERS = [by_pyarrow, by_pqext]


@pytest.mark.spec("querying.row-groups")
@given(st.data(), st.sampled_from(WRITERS), st.integers(1, 4))
def test_pruned_row_groups_contain_no_matching_row(data: st.DataObject, writer: Any, rows: int) -> None:
    batch = data.draw(tables(min_rows=1))
    expression = data.draw(expressions(batch))
    with ParquetFile(writer(pa.Table.from_batches([batch]), rows)) as file:
        bound = bind(expression, file.schema)
        for row_group in file.row_groups:
            if not row_group_may_match(bound, row_group):
                start = row_group.index * rows
                assert True not in twin.truths(expression, batch.slice(start, rows))
            assert (prune_reason(bound, row_group) is None) == row_group_may_match(bound, row_group)


def matching_row_groups(table: pa.Table, expression: Expression, rows: int = 2, writer: Any = by_pyarrow) -> list[int]:
    """The row groups that may match."""
    with ParquetFile(writer(table, rows)) as file:
        bound = bind(expression, file.schema)
        return [row_group.index for row_group in file.row_groups if row_group_may_match(bound, row_group)]


NUMBERS = pa.table({"a": [1, 2, 3, 4, 5, 6, None, None], "b": [*"aabb", None, "c", "d", "e"]})


@pytest.mark.spec("querying.row-groups")
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("a") > 4, [2]),
        (~(col("a") > 4), [0, 1]),
        (col("a") == 3.5, [1]),
        (col("a") == 2.5, []),
        (col("a") != 3, [0, 1, 2]),
        (col("a").isin([1, 6, 100]), [0, 2]),
        (col("a").isin([]), []),
        (~col("a").isin([]), [0, 1, 2]),
        (~col("b").isin(["a", "z"]), [1, 2, 3]),
        (col("a").is_null(), [3]),
        (col("a").is_not_null(), [0, 1, 2]),
        (~col("b").is_null() & col("a").is_null(), [3]),
        ((col("a") < 2) | (col("b") == "e"), [0, 3]),
        (~((col("a") >= 2) & (col("b") != "e")), [0, 3]),
        (col("a") > 2**70, []),
        (col("a") < 2**70, [0, 1, 2]),
    ],
    ids=lambda value: str(value),
)
def test_statistics_exclude_all_they_can(writer: Any, expression: Expression, expected: list[int]) -> None:
    assert matching_row_groups(NUMBERS, expression, writer=writer) == expected


@pytest.mark.parametrize(
    ("values", "literal"),
    [
        (pa.array([date(2020, 1, day) for day in (1, 2, 3, 4)]), date(2020, 1, 3)),
        (pa.array([datetime(2020, 1, day) for day in (1, 2, 3, 4)], pa.timestamp("ms")), datetime(2020, 1, 3)),
        (pa.array([datetime(2020, 1, day) for day in (1, 2, 3, 4)], pa.timestamp("ns")), date(2020, 1, 3)),
        (pa.array([1, 2, 3, 4], pa.timestamp("us", "UTC")), datetime(1970, 1, 1, 0, 0, 0, 3, tzinfo=UTC)),
        (pa.array([1, 2, 3, 4], pa.time64("ns")), pa.scalar(3, pa.time64("ns"))),
        (pa.array([1, 2, 2**63, 2**64 - 1], pa.uint64()), 2**63),
        (pa.array([1, 2, 3, 4], pa.decimal128(5, 2)), Decimal("3.00")),
        (pa.array([1, 2, 3, 4], pa.decimal128(30, 2)), 3.0),
        (pa.array([b"a", b"b", b"\xff", b"\xff\xff"]), b"\xff"),
        (pa.array([UUID(int=value).bytes for value in (1, 2, 3, 4)], pa.uuid()), UUID(int=3)),
        (pa.array([0.5, 1.0, 1.5, 2.0], pa.float32()), 1.5),
        (pa.array([False, False, True, True]), True),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_every_column_type_is_pruned_by_its_bounds(values: pa.Array, literal: Any) -> None:
    table = pa.table({"a": values})
    assert matching_row_groups(table, col("a") < literal) == [0]
    assert matching_row_groups(table, col("a") == literal) == [1]


def test_nan_is_considered_where_possible() -> None:
    table = pa.table({"a": [1.0, math.nan, 1.0, 2.0]})
    assert matching_row_groups(table, col("a") > 5) == [0, 1]  # pyarrow leaves no count of NaN
    assert matching_row_groups(table, col("a") > 5, writer=by_pqext) == [0]
    assert matching_row_groups(table, ~(col("a") <= 5), writer=by_pqext) == [0]
    assert matching_row_groups(table, col("a") == 5, writer=by_pqext) == []


def test_null_conditions_apply_to_structs_and_their_fields() -> None:
    type = pa.struct([("x", pa.int64()), ("y", pa.string())])
    table = pa.table({"s": pa.array([{"x": 1}, {"x": 2}, {"x": None}, None], type)})
    assert matching_row_groups(table, col("s.x") > 1) == [0]
    assert matching_row_groups(table, col("s.x").is_null()) == [1]
    assert matching_row_groups(table, col("s").is_null()) == [1]
    assert matching_row_groups(table, col("s").is_not_null()) == [0, 1]
    assert matching_row_groups(table, col("s.y").is_not_null()) == []


def test_pages_of_null_fields_may_contain_nonnull_structs() -> None:
    type = pa.struct([("x", pa.int64()), pa.field("y", pa.struct([pa.field("z", pa.int64(), nullable=False)]))])
    rows = [{"x": None, "y": None}, {"x": None, "y": {"z": 1}}, None, None, {"x": 1, "y": None}, {"x": 2, "y": None}]
    table = pa.table({"row": range(6), "s": pa.array(rows, type)})
    out = io.BytesIO()
    write_table(table, out, page_rows=2)
    for path in ("s", "s.x", "s.y", "s.y.z"):
        values = table["s"]
        for name in path.split(".")[1:]:
            values = pc.struct_field(values, name)
        null = pc.is_null(values)
        for condition, mask in ((col(path).is_null(), null), (col(path).is_not_null(), pc.invert(null))):
            found = read_table(out.getvalue(), ["row"], condition)
            assert found["row"].to_pylist() == table["row"].filter(mask).to_pylist()


def test_struct_with_a_required_field_is_null_with_the_field() -> None:
    type = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    table = pa.table({"s": pa.array([{"x": 1}, {"x": 2}, None, None], type)})
    assert matching_row_groups(table, col("s").is_null()) == [1]
    assert matching_row_groups(table, col("s").is_not_null()) == [0]


def test_lists_are_never_pruned() -> None:
    table = pa.table({"l": [[1], None, [2], []]})
    assert matching_row_groups(table, col("l").is_null()) == [0, 1]
    assert matching_row_groups(table, col("l").is_not_null()) == [0, 1]


def test_columns_without_statistics_may_match() -> None:
    sink = io.BytesIO()
    pq.write_table(NUMBERS, sink, row_group_size=2, write_statistics=False)
    with ParquetFile(sink.getvalue()) as file:
        bound = bind(col("a") > 100, file.schema)
        assert all(row_group_may_match(bound, row_group) for row_group in file.row_groups)


def test_reasons_name_the_condition_and_the_statistics() -> None:
    with ParquetFile(by_pyarrow(NUMBERS, 2)) as file:
        groups = file.row_groups
        either = bind((col("a") > 100) | (col("b") == "z"), file.schema)
        assert prune_reason(either, groups[0]) == (
            "a > 100 is true for no row: values lie between 1 and 2; "
            "b == 'z' is true for no row: values lie between 'a' and 'a'"
        )
        both = bind((col("a") > 0) & (col("b") == "z"), file.schema)
        assert prune_reason(both, groups[0]) == "b == 'z' is true for no row: values lie between 'a' and 'a'"
        assert prune_reason(both, groups[3]) == "a > 0 is true for no row: all values are null"
        assert prune_reason(bind(col("a") > 0, file.schema), groups[0]) is None


MAP = pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))
NESTED = pa.table({"total": [1], "s": [{"x": 1}], "l": [[{"x": 1}]], "m": MAP})


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        (col("total.x") > 1, ValueError, "no column 'total.x': 'total' is a plain column without fields"),
        (col("totl") > 1, ValueError, "no column 'totl'; did you mean 'total'"),
        (col("zzz").is_null(), ValueError, "no column 'zzz'; the columns are 'total', 's', 'l', 'm'"),
        (col("s.y") > 1, ValueError, "no column 's.y'; the columns are 's.x'"),
        (col("s") > 1, TypeError, "column 's' can only be compared with null"),
        (col("l") > 1, TypeError, "column 'l' can only be compared with null"),
        (col("l.list.element.x") > 1, TypeError, r"column 'l\.list\.element\.x' is inside a list"),
        (col("m.key_value.key").is_null(), TypeError, r"column 'm\.key_value\.key' is inside a list or map"),
        (col("total") > "1", TypeError, "column 'total' contains integer values, which cannot be compared with '1'"),
        (col("total").isin([1, "1"]), TypeError, "column 'total' contains integer"),
        (col("total").variant("$.a", "int64") > 1, TypeError, "column 'total' is not a VARIANT"),
        (col("total").intersects((0, 0, 1, 1)), TypeError, "column 'total' contains no geometries"),
        (col("s").within((0, 0, 1, 1)), TypeError, "column 's' contains no geometries"),
    ],
    ids=str,
)
def test_errors_are_reported_before_reading(expression: Expression, error: type, message: str) -> None:
    with ParquetFile(by_pyarrow(NESTED, 1)) as file, pytest.raises(error, match=message):
        bind(~expression, file.schema)


@given(
    st.lists(st.one_of(st.integers(-9, 9), st.floats(-9, 9), st.just(math.nan)), max_size=6),
    st.lists(st.integers(-9, 9), min_size=1, max_size=4),
)
def test_long_lists_prune_like_short_ones(literals: list[Any], values: list[int]) -> None:
    table = pa.table({"a": pa.array(values, pa.int64())})
    within = any(min(values) <= literal <= max(values) for literal in literals)  # no integer is NaN
    assert matching_row_groups(table, col("a").isin(literals), rows=4) == ([0] if within else [])


@pytest.mark.spec("querying.bloom")
def test_bloom_filters_exclude_absent_values_within_the_bounds() -> None:
    table = pa.table({"n": range(0, 4000, 2), "s": [f"name {n}" for n in range(0, 4000, 2)]})
    sink = io.BytesIO()
    write_table(table, sink, row_group_rows=500, bloom_filters={"n": {"fpp": 0.001}, "s": True}, dictionary=False)
    with ParquetFile(sink.getvalue()) as file:

        def matching_row_groups(expression: Expression) -> list[int]:
            bound = bind(expression, file.schema)
            return [group.index for group in file.row_groups if row_group_may_match(bound, group)]

        assert matching_row_groups(col("n") == 1200) == [1]
        assert matching_row_groups(col("n") == 1201) == []
        reason = prune_reason(bind(col("n") == 1201, file.schema), file.row_groups[1])
        assert reason is not None
        assert reason.endswith("its Bloom filter does not hold the value")
        assert matching_row_groups(col("n").isin([1201, 3998])) == [3]
        assert matching_row_groups(col("s") == "name 2")[:1] == [0]
        assert len(matching_row_groups(col("s") == "name 1999")) < 4
        assert matching_row_groups(col("n") > 1201) == [1, 2, 3]
