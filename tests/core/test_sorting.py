"""Sort keys: noted in the file as others know them, and never noted of rows that are not sorted so."""

from __future__ import annotations

import io
import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext.core.options.layout import SortKey, sort_keys
from pqext.core.write import row_order


def write(table: pa.Table, sorting: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, sorting=sorting, **options)
    return out.getvalue()


@pytest.mark.spec("sorting.recorded")
def test_pyarrow_reads_sort_keys() -> None:
    table = pa.table({"a": [1, 1, 2], "s": [{"x": "b"}, {"x": "a"}, {"x": None}], "z": [3, 1, 2]})
    raw = write(table, ["a", SortKey("s.x", descending=True)], row_group_rows=2)
    group = pq.ParquetFile(io.BytesIO(raw)).metadata.row_group(0)
    assert [key.to_dict() for key in group.sorting_columns] == [
        {"column_index": 0, "descending": False, "nulls_first": False},
        {"column_index": 1, "descending": True, "nulls_first": False},
    ]
    assert pqext.open(raw).row_groups[1].metadata.sorting_columns[1].column_idx == 1
    assert pqext.open(write(table, ())).row_groups[0].metadata.sorting_columns is None


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("a", SortKey("a")),
        ("a.b desc", SortKey("a.b", descending=True)),
        ("a ASC nulls first", SortKey("a", nulls_first=True)),
        ("a desc NULLS LAST", SortKey("a", descending=True)),
        ("descriptions", SortKey("descriptions")),
    ],
)
def test_sort_keys_are_written_like_in_sql(text: str, key: SortKey) -> None:
    assert sort_keys([text]) == (key,)


@pytest.mark.parametrize(
    ("sorting", "error"),
    [
        (["b"], "'b'"),
        (["l.list.element"], "several values"),
        (["a", "a desc"], "twice"),
        ("a", "list of columns"),
        ([3], "as text or SortKey"),
    ],
)
def test_invalid_sort_keys_are_rejected(sorting: Any, error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        write(pa.table({"a": [1], "l": [[1]]}), sorting)


@pytest.mark.spec("sorting.checked")
def test_unsorted_rows_are_rejected_and_nothing_is_written() -> None:
    out = io.BytesIO()
    writer = pqext.ParquetWriter(out, pa.schema({"a": pa.int64()}), sorting=["a"], row_group_rows=3)
    writer.write_table(pa.table({"a": [1, 2, 3]}))
    with pytest.raises(ValueError, match=r"row group 1 is not sorted by 'a': its row 2 sorts before row 1"):
        writer.write_table(pa.table({"a": [1, 5, 4]}))


VALUES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int8(), st.integers(-3, 3)),
    (pa.uint64(), st.sampled_from([0, 1, 2**63, 2**64 - 1])),
    (pa.float64(), st.sampled_from([-math.inf, -1.0, -0.0, 0.0, 2.5, math.inf])),
    (pa.string(), st.sampled_from(["", "a", "ab", "b", "\u00e9", "\U0001f600"])),
    (pa.binary(2), st.sampled_from([b"aa", b"a\xff", b"\x00b"])),
    (pa.bool_(), st.booleans()),
    (pa.decimal128(20, 1), st.sampled_from([Decimal("-1.5"), Decimal("0.0"), Decimal("99.9")])),
]


def order(value: Any, key: SortKey) -> tuple[Any, ...]:
    if value is None:
        return (0,) if key.nulls_first else (2,)
    if isinstance(value, str):
        value = value.encode()
    return (1, value)


def is_sorted(rows: list[tuple[Any, ...]], keys: list[SortKey]) -> bool:
    for before, after in pairwise(rows):
        for one, other, key in zip(before, after, keys, strict=True):
            first, second = order(one, key), order(other, key)
            if first == second:
                continue
            ascending = first < second
            if (first[0] == second[0] == 1 and key.descending) == ascending:
                return False
            break
    return True


@pytest.mark.spec("sorting.checked")
@given(st.data())
def test_exactly_unsorted_tables_are_rejected(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=2))
    count = data.draw(st.integers(0, 5))
    columns, keys = {}, []
    for place, (kind, values) in enumerate(kinds):
        drawn = data.draw(st.lists(st.one_of(st.none(), values), min_size=count, max_size=count))
        if place == 0 and data.draw(st.booleans()):
            drawn.sort(key=lambda value: (value is None, b"" if value is None else order(value, SortKey(""))))
        columns[f"c{place}"] = pa.array(drawn, kind)
        keys.append(SortKey(f"c{place}", data.draw(st.booleans()), data.draw(st.booleans())))
    table = pa.table(columns)
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    if is_sorted(rows, keys):
        write(table, keys)
    else:
        with pytest.raises(ValueError, match="not sorted"):
            write(table, keys)


@pytest.mark.spec("sorting.checked")
def test_later_key_orders_only_rows_equal_in_all_earlier_keys() -> None:
    rows = {"a": [0, 0, 1], "b": [0, 0, 0], "c": [0, 1, 0]}
    write(pa.table(rows), ["a", "b", "c"])
    with pytest.raises(ValueError, match="not sorted by 'c'"):
        write(pa.table(rows | {"a": [0, 0, 0]}), ["a", "b", "c"])


@pytest.mark.spec("sorting.checked")
@pytest.mark.parametrize("descending", [False, True])
def test_later_key_is_ignored_if_an_earlier_one_changes_to_or_from_null(descending: bool) -> None:
    rows = {"a": [None, 1], "b": [5, 3]}
    write(pa.table(rows), [SortKey("a", descending, nulls_first=True), "b"])
    write(pa.table(rows).take([1, 0]).set_column(1, "b", pa.array([5, 3])), [SortKey("a", descending), "b"])
    for nulls_first in (True, False):
        wrong = pa.table(rows).take([1, 0] if nulls_first else [0, 1])
        with pytest.raises(ValueError, match="not sorted by 'a'"):
            write(wrong, [SortKey("a", descending, nulls_first=nulls_first), "b"])


@pytest.mark.spec("sorting.floats")
def test_nan_sorts_after_numbers_and_zeros_are_equal() -> None:
    write(pa.table({"a": [0.0, -0.0, 1.0, math.nan, math.nan]}), ["a"])
    with pytest.raises(ValueError, match="not sorted"):
        write(pa.table({"a": [math.nan, 1.0]}), ["a"])
    with pytest.raises(ValueError, match="not sorted"):
        write(pa.table({"a": [0.0, -0.0]}), ["a"], float_order="ieee754")
    write(pa.table({"a": [-0.0, 0.0]}), ["a"], float_order="ieee754")


def test_column_is_selected_by_name_or_path_through_structs() -> None:
    inner = pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int32())]))
    table = pa.table({"s": pa.StructArray.from_arrays([inner], ["t"]), "s.t": [7, 8, 9]})
    for name, expected in (("s.t", [7, 8, 9]), ("s.t.x", [1, None, None]), ("s", inner.to_pylist())):
        field, values = row_order.find_column(table, name)
        found = values.to_pylist()
        assert (field.type, found) == (values.type, [{"t": one} for one in expected] if name == "s" else expected)
    for missing in ("s.x", "s.t.x.y", "t"):
        with pytest.raises(KeyError, match="no column"):
            row_order.find_column(table, missing)
