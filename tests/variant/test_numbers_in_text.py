"""Exact numbers become the nearest double, whichever way they take there."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.variant.types import variant_type
from reference import variant_shred as reference

EMPTY = reference.encode_metadata([])


def cast(values: list[bytes], type: str) -> list[Any]:
    array = pa.array([{"metadata": EMPTY, "value": value} for value in values], variant_type())
    result: list[Any] = variant.get(array, "$", type).to_pylist()
    return result


# Numbers that lie halfway between doubles, or just beside, are the ones that go wrong.
halves = st.builds(
    lambda odd, shift, beside: ((2**53 + 2 * odd + 1) << shift) + beside,
    st.integers(0, 2**52 - 1),
    st.integers(0, 10),
    st.integers(-1, 1),
)
mantissas = st.one_of(halves, st.integers(0, 2**64), st.integers(0, 10**38 - 1))


@given(st.lists(st.tuples(mantissas, st.integers(0, 38), st.booleans()), max_size=50))
def test_decimals_and_text_are_cast_to_the_nearest_double(numbers: list[tuple[int, int, bool]]) -> None:
    signed = [(-unscaled if negative else unscaled, scale) for unscaled, scale, negative in numbers]
    wanted = [float(Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))) for unscaled, scale in signed]
    values = [reference.primitive("decimal16", number) for number in signed]
    texts = [reference.primitive("string", f"{unscaled}E{-scale}") for unscaled, scale in signed]
    assert cast(values, "double") == wanted
    assert cast(texts, "double") == wanted


@given(st.lists(st.tuples(st.one_of(st.integers(2**24, 2**30), mantissas), st.integers(-20, 30)), max_size=50))
def test_text_is_cast_to_the_nearest_float(numbers: list[tuple[int, int]]) -> None:
    texts = [reference.primitive("string", f"{unscaled}E{exponent}") for unscaled, exponent in numbers]
    found = cast(texts, "float")
    for (unscaled, exponent), number in zip(numbers, found, strict=True):
        exact = Decimal((0, tuple(map(int, str(unscaled))), exponent))
        with np.errstate(over="ignore"):
            near = np.float32(number)
            beside = [np.nextafter(near, np.float32(side * np.inf)) for side in (-1, 1)]
        if np.isfinite(near):
            with localcontext(prec=200):
                distance = abs(Decimal(float(near)) - exact)
                assert all(distance <= abs(Decimal(float(other)) - exact) for other in beside if np.isfinite(other))
        else:
            assert exact >= Decimal(float(np.finfo(np.float32).max))
