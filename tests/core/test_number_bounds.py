"""Bounds of pages as arrays: the pages that looking at each one finds, and nothing told of unusual indexes."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.format.metadata import ColumnIndex
from pqext.core.format.predicate import COMPARE, Comparison, IsIn, IsNotNull, may_match
from pqext.core.indexes.page_index import NumberBounds
from reference.effort import share

TYPES = {
    "int32": pa.int32(), "int64": pa.int64(), "uint32": pa.uint32(), "uint64": pa.uint64(), "int8": pa.int8(),
    "float": pa.float32(), "double": pa.float64(), "date": pa.date32(), "micros": pa.timestamp("us"),
    "nanos": pa.timestamp("ns"), "time": pa.time32("ms"),
}  # fmt: skip
EDGES: list[Any] = [0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**64, 0.1, -0.0, 1e300, math.inf, math.nan, True]


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_floating(kind):
        return st.floats(width=32 if kind == pa.float32() else 64) | st.integers(-3, 3).map(float)
    if pa.types.is_time(kind):
        return st.integers(0, 86_399_999)
    bits = min(kind.bit_width, 62) - 1
    most = (1 << bits) - 1
    return st.integers(0 if pa.types.is_unsigned_integer(kind) else -most, most) | st.integers(0, 9)


def pages_of(array: pa.Array) -> Any:
    out = io.BytesIO()
    pqext.write_table(pa.table({"c": array}), out, page_rows=3)
    return pqext.open(out.getvalue()).row_groups[0].chunk(0).pages


@pytest.mark.spec("page-index.search")
@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=share(0.6))
@given(data=st.data())
def test_selected_pages_match_page_by_page_evaluation(name: str, data: st.DataObject) -> None:
    kind = TYPES[name]
    held = data.draw(st.lists(values(kind) | (st.none() if data.draw(st.booleans()) else values(kind)), min_size=1))
    stored = pa.array(held, kind if pa.types.is_floating(kind) or pa.types.is_integer(kind) else None)
    if stored.type != kind:
        stored = stored.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    pages = pages_of(stored)
    if pages is None or pages.number_bounds is None:
        return
    asked = st.sampled_from(EDGES) | values(kind) | st.sampled_from([b.minimum for b in pages.bounds])
    operator = data.draw(st.sampled_from(sorted(COMPARE)))
    listed = data.draw(st.lists(values(kind), min_size=1).map(lambda found: tuple(sorted(set(found) - {math.nan}))))
    for question in (Comparison(operator, data.draw(asked)), IsIn(listed, ascending=True)):
        found = pages.number_bounds.matching_pages(question)
        if found is not None:
            assert found == [page for page, bounds in enumerate(pages.bounds) if may_match(question, bounds)]


@pytest.mark.parametrize("name", TYPES)
def test_ordinary_columns_use_the_fast_path(name: str) -> None:
    stored = pa.int64() if name in ("micros", "nanos") else pa.int32()
    pages = pages_of(pa.array(range(10), stored).cast(TYPES[name]))
    assert pages.number_bounds is not None
    value = pages.bounds[1].minimum
    assert pages.number_bounds.matching_pages(Comparison("==", value)) == [1]
    assert pages.number_bounds.matching_pages(IsIn((value,), ascending=True)) == [1]
    assert pages.number_bounds.matching_pages(IsNotNull()) is None


def test_number_between_two_single_precision_values_equals_neither() -> None:
    """Rounded to the column's type, 0.1 would be 0.1 as single precision has it, which is more."""
    single = float(np.float32(0.1))
    assert single > 0.1
    numbers = pages_of(pa.array([single] * 3, pa.float32())).number_bounds
    assert numbers.matching_pages(Comparison("<=", 0.1)) == []
    assert numbers.matching_pages(Comparison("==", single)) == [0]


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 1.0, 0.5, True, "1", b"1"])
def test_noninteger_literals_use_the_generic_path(value: Any) -> None:
    numbers = pages_of(pa.array([1, 2, 3, 4])).number_bounds
    assert numbers.matching_pages(Comparison("==", value)) is None
    assert numbers.matching_pages(IsIn((value,), ascending=True)) is None


@pytest.mark.parametrize(
    "change",
    [
        {"null_pages": [False, True]},
        {"min_values": [b"\0" * 8, b""]},
        {"max_values": [b"\0" * 8, b"\0" * 4]},
        {"min_values": [b"\0" * 8, b"\xff" * 7 + b"\x7f"]},
    ],
)
def test_unusual_index_uses_the_generic_path(change: dict[str, Any]) -> None:
    pages = pages_of(pa.array([1, 2, 3, 4]))
    index = ColumnIndex(
        null_pages=[False] * 2, min_values=[b"\0" * 8] * 2, max_values=[b"\0" * 8] * 2, boundary_order=0
    )
    assert NumberBounds.from_index(pages._order, index) is not None
    for name, other in change.items():
        setattr(index, name, other)
    assert NumberBounds.from_index(pages._order, index) is None


def test_times_beyond_64_bit_nanoseconds_use_the_generic_path() -> None:
    assert pages_of(pa.array([2**61, 1], pa.timestamp("us"))).number_bounds is None
    assert pages_of(pa.array([2**52, 1], pa.timestamp("us"))).number_bounds is not None
