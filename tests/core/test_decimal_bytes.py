"""Decimals narrowed to the bytes of their stored form, and held to their precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext.core.kernels.encodings.decimals import narrow, quotients, widen_integers
from pqext.core.schema.types.logical import max_precision
from reference.decimals import stored


@given(st.data(), st.sampled_from([16, 32]))
def test_numbers_are_narrowed_like_in_the_reference(data: st.DataObject, width: int) -> None:
    length = data.draw(st.integers(1, 34))
    precision = min(max_precision(length), 38 if width == 16 else 76)
    limit = 10**precision - 1
    numbers = data.draw(st.lists(st.integers(-limit, limit), max_size=20))
    words = b"".join(number.to_bytes(width, "little", signed=True) for number in numbers)
    out = np.empty(len(numbers) * length, np.uint8)
    narrow(words, width, length, precision, out)
    assert out.tobytes() == b"".join(stored(number, length) for number in numbers)


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("number", [100, -100, 1 << 100, -(1 << 127)])
def test_numbers_beyond_their_precision_are_rejected(width: int, number: int) -> None:
    words = number.to_bytes(width, "little", signed=True)
    with pytest.raises(ValueError, match="more than the 2 digits of its type"):
        narrow(words, width, 0, 2, np.empty(0, np.uint8))
    both = (99).to_bytes(width, "little") + (-99).to_bytes(width, "little", signed=True)
    narrow(both, width, 1, 2, np.empty(2, np.uint8))


def test_output_of_a_wrong_size_is_rejected() -> None:
    with pytest.raises(ValueError, match="16 or 32 bytes per number"):
        narrow(bytes(16), 16, 3, 5, np.empty(2, np.uint8))


@given(st.data(), st.sampled_from([np.int32, np.int64]))
def test_stored_integers_are_widened_and_overflow_is_reported(data: st.DataObject, kind: type) -> None:
    limits = np.iinfo(kind)
    numbers = data.draw(st.lists(st.integers(int(limits.min), int(limits.max))))
    most = data.draw(st.integers(0, int(limits.max)))
    out = np.empty(2 * len(numbers), np.int64)
    assert widen_integers(np.array(numbers, kind), most, out) == all(abs(number) <= most for number in numbers)
    assert out.tobytes() == b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)


@given(st.lists(st.integers(-(2**60), 2**60)), st.integers(0, 2**60), st.integers(0, 22))
def test_quotients_match_double_division(numbers: list[int], most: int, scale: int) -> None:
    words = np.array([half for number in numbers for half in (number, number >> 63)], np.int64)
    out = np.empty(len(numbers))
    assert quotients(words, most, 10.0**scale, out) == all(abs(number) <= most for number in numbers)
    assert out.tolist() == [float(number) / 10.0**scale for number in numbers]


def test_word_and_number_counts_must_match() -> None:
    with pytest.raises(ValueError, match="the output must have"):
        widen_integers(np.empty(2, np.int32), 9, np.empty(2, np.int64))
    with pytest.raises(ValueError, match="the output must have"):
        quotients(np.empty(2, np.int64), 9, 1.0, np.empty(2))
