"""Byte arrays that are looked up in a dictionary equal its entries, and indices beyond it are rejected."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pqext.core.base.buffers import allocate
from pqext.core.base.errors import CorruptFileError
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("longest", [1, 20, 300])
@pytest.mark.parametrize("has_nulls", [False, True])
def test_lookups_equal_the_entries(seed: int, longest: int, has_nulls: bool) -> None:
    random = np.random.default_rng(seed)
    lengths = random.integers(0, longest + 1, random.integers(1, 9))
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    data = random.bytes(int(ends[-1]))
    entries = [data[start:stop] for start, stop in pairwise(ends.tolist())]
    present = (random.random(60) < 0.7 if has_nulls else np.ones(60)).astype(np.uint8)
    builder, expected = ByteArrayBuilder(None, 1 << 20, allocate, 0, 60), []
    for _ in range(3):
        places = random.integers(0, len(entries), int(present.sum())).astype(np.int32)
        builder.append_lookup(data, ends, places, present if has_nulls else b"", 60)
        following = iter(places.tolist())
        expected += [entries[next(following)] if flag else b"" for flag in present]
    offsets, values, count = builder.finish()
    bounds = np.frombuffer(offsets, np.int32).tolist()
    assert [bytes(values[start:stop]) for start, stop in pairwise(bounds)] == expected
    assert count == 180


@pytest.mark.parametrize("place", [3, -1, 2**31 - 1])
def test_lookups_beyond_the_dictionary_are_rejected(place: int) -> None:
    ends = np.array([0, 1, 3, 6], np.int32)
    for flags in (b"", b"\1\1"):
        with pytest.raises(CorruptFileError, match="dictionary"):
            ByteArrayBuilder().append_lookup(b"abcdef", ends, np.array([0, place], np.int32), flags, 2)


@pytest.mark.parametrize(("count", "most"), [(0, 100), (10, 1000), (1000, 20_000)])
def test_memory_follows_the_values_and_not_the_null_slots(count: int, most: int) -> None:
    """A page with few values among many nulls must not reserve the size of values for all following slots."""
    sizes: list[int] = []
    builder = ByteArrayBuilder(None, 1 << 30, lambda size: sizes.append(size) or allocate(size), 0, 1000)
    present = (np.arange(1000) < count).astype(np.uint8)
    builder.append_lookup(b"x" * 16, np.array([0, 16], np.int32), np.zeros(count, np.int32), present, 1000)
    data_sizes = [size for size in sizes if size != 4 * 1001]
    assert 16 * count <= max(data_sizes) <= most
