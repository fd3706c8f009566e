"""Integers of a list found among others: as Python's sets find them, at the ends of their range too."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext.core.kernels.hash import membership
from pqext.dataset.evaluation import evaluate
from reference.effort import share

EDGES = [-(2**63), 2**63 - 1, -(2**31), 2**31 - 1, 0, 1, -1]


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.sampled_from(EDGES) | st.integers(-20, 20), min_size=1, max_size=40),
    st.lists(st.integers(-30, 30) | st.sampled_from(EDGES), max_size=60), st.booleans(),
)  # fmt: skip
@settings(max_examples=share(0.5))
def test_membership_matches_a_set(listed: list[int], values: list[int], short: bool) -> None:
    if short:
        listed, values = ([value for value in one if -(2**31) <= value < 2**31] for one in (listed, values))
    array = pa.array([*values, None], pa.int32() if short else pa.int64())[: len(values)]
    found = evaluate.is_in(array, tuple(listed * 8))
    assert found.to_pylist() == [value in set(listed) for value in values]
    assert evaluate.is_in(pa.array([None, 5], array.type), tuple(range(9))).to_pylist() == [None, True]


def test_lookup_table_of_a_wrong_size_is_rejected() -> None:
    keys, used = np.zeros(8, np.int64), np.zeros(8, np.uint8)
    values = np.arange(9)
    with pytest.raises(ValueError, match="too small"):
        membership.fill(values, keys, used)
    with pytest.raises(ValueError, match="power of two"):
        membership.fill(values[:2], keys[:6], used[:6])
    with pytest.raises(ValueError, match="too small"):
        membership.holds(keys, used, 0, 9, values, np.zeros(1, np.uint8))
    membership.fill(values[:7], keys, used)
    bits = np.zeros(2, np.uint8)
    membership.holds(keys, np.ones(8, np.uint8), 0, 99, np.array([50, 3]), bits)  # a full table ends too
    assert bits.tolist() == [2, 0]


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.lists(st.integers(-2, 12) | st.none(), max_size=40))
@settings(max_examples=share(0.3))
def test_flags_of_places(flags: list[bool], places: list[int | None]) -> None:
    bits = np.zeros((len(places) + 7) // 8, np.uint8)
    values = np.array([place or 0 for place in places], np.int32)
    membership.look_up(np.array(flags, np.uint8), values, bits)
    expected = [0 <= place < len(flags) and flags[place] for place in values.tolist()]
    assert np.unpackbits(bits, bitorder="little")[: len(places)].astype(bool).tolist() == expected
    if places:
        with pytest.raises(ValueError, match="too small"):
            membership.look_up(np.array(flags, np.uint8), values, bits[:-1])
