"""Byte arrays that are looked up in a dictionary equal its entries, and indices beyond it are rejected."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext.core.base.buffers import allocate
from pqext.core.base.errors import CorruptFileError
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder
from reference.effort import share


@given(
    st.lists(st.binary(max_size=40), min_size=1, max_size=8), st.lists(st.integers(0, 7), max_size=60),
    st.lists(st.booleans(), min_size=60, max_size=60) | st.none(), st.integers(1, 3),
)  # fmt: skip
@settings(max_examples=share(0.5))
def test_lookups_equal_the_entries(
    entries: list[bytes], places: list[int], flags: list[bool] | None, calls: int
) -> None:
    ends = np.cumsum([0, *map(len, entries)]).astype(np.int32)
    places = [place % len(entries) for place in places]
    builder = ByteArrayBuilder(None, 1 << 20, allocate, 0, len(places))
    present = np.array(flags or [], np.uint8)
    slots = len(places) if flags is None else int(np.searchsorted(np.cumsum(present), len(places)) + 1)
    if slots > len(present) and flags is not None:
        return
    indices = np.array(places, np.int32)
    for _ in range(calls):
        builder.append_lookup(b"".join(entries), ends, indices, present[:slots], slots if places else 0)
    offsets, data, count = builder.finish()
    bounds = np.frombuffer(offsets, np.int32)
    values = [bytes(data[start:stop]) for start, stop in pairwise(bounds.tolist())]
    rest = iter(places)
    row = [entries[next(rest)] if flag else b"" for flag in (flags or [True] * slots)[:slots]] if places else []
    assert (values, count) == (row * calls, len(row) * calls)


@pytest.mark.parametrize("place", [3, -1, 2**31 - 1])
def test_lookups_beyond_the_dictionary_are_rejected(place: int) -> None:
    ends = np.array([0, 1, 3, 6], np.int32)
    for flags in (b"", b"\1\1"):
        with pytest.raises(CorruptFileError, match="dictionary"):
            ByteArrayBuilder().append_lookup(b"abcdef", ends, np.array([0, place], np.int32), flags, 2)
