"""Typed columns cast whole give what their values give one by one, and what Python gives."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext import variant
from pqext.variant.access.targets import widen_column
from reference.effort import share

DECIMALS = [(9, 2), (4, 0), (9, 9), (15, 15), (16, 3), (18, 18), (18, 0)]


@st.composite
def decimals(draw: st.DrawFn) -> pa.Array:
    precision, scale = draw(st.sampled_from(DECIMALS))
    most = 10**precision - 1
    numbers = st.one_of(st.none(), st.integers(-most, most), st.integers(-9, 9))
    values = [None if n is None else Decimal(n).scaleb(-scale) for n in draw(st.lists(numbers))]
    return pa.array(values, pa.decimal128(precision, scale)).slice(draw(st.integers(0, 3)))


INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]


@st.composite
def integers(draw: st.DrawFn) -> pa.Array:
    kind = draw(st.sampled_from(INTEGERS))
    most = 2 ** (kind.bit_width - 1)
    return pa.array(draw(st.lists(st.one_of(st.none(), st.integers(-most, most - 1)))), kind)


@settings(max_examples=share(1.0))
@given(decimals() | integers() | st.lists(st.none() | st.floats(width=32)).map(lambda v: pa.array(v, pa.float32())))
def test_doubles_match_the_single_values(typed: pa.Array) -> None:
    found = widen_column(typed, pa.float64())
    one_by_one = [None if value is None else float(value) for value in typed.to_pylist()]
    assert repr(variant.get(variant.from_arrow(typed), (), "double").to_pylist()) == repr(one_by_one)
    if found is None:
        assert any(abs(value.scaleb(18)) > 2**53 for value in typed.to_pylist() if value) or not len(typed)
    else:
        found.validate(full=True)
        assert repr(found.to_pylist()) == repr(one_by_one)


@settings(max_examples=share(0.5))
@given(integers(), st.sampled_from(INTEGERS))
def test_integers_are_widened_only(typed: pa.Array, target: pa.DataType) -> None:
    found = widen_column(typed, target)
    if target.bit_width < typed.type.bit_width:
        assert found is None
    else:
        assert found is not None
        assert found.type == target
        assert found.to_pylist() == typed.to_pylist()


@pytest.mark.parametrize("type", ["double", "int64"])
@pytest.mark.parametrize("values", [["1.25", None, "-3.50"], ["1.25", '"2.5"', "7", "1e300", "[]"]])
def test_shredded_column_matches_the_plain_values(type: str, values: list[Any]) -> None:
    plain = variant.parse_json(values)
    for schema in ("decimal(9,2)", "decimal(18,2)", "int", "smallint"):
        shredded = variant.shred(plain, schema)
        assert variant.get(shredded, "$", type).equals(variant.get(plain, "$", type))
