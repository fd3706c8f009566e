"""What other readers see of a leaf's statistics and page index, held against :mod:`reference.chunk_statistics`."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import pyarrow.types as is_

from reference.chunk_statistics import Expected, Leaf


def check_bounds(leaf: Leaf, found: tuple[bytes | None, bytes | None], expected: Expected, limit: int) -> None:
    """Bounds are the least and the greatest value; those of byte arrays beyond ``limit`` bytes are cut short."""
    low, high = found
    assert (low is None) == (expected.minimum is None)
    assert (high is None) == (expected.maximum is None)
    if low is None or high is None or expected.minimum is None or expected.maximum is None:
        return
    text = is_.is_string(leaf.type)
    if not text and not is_.is_binary(leaf.type):
        limit = 1000
    head = expected.minimum[:limit]
    if text and len(expected.minimum) > limit:
        head = head.decode(errors="ignore").encode()
    assert low == head
    if len(expected.maximum) <= limit:
        assert high == expected.maximum
    elif high != expected.maximum:  # as it is where it cannot be raised
        assert high > expected.maximum
        assert len(high) <= limit
        assert not text or high.decode()


def raw_bounds(statistics: Any) -> tuple[bytes | None, bytes | None]:
    """The bounds that pyarrow shows, as bytes."""
    if not statistics.has_min_max:
        return None, None
    low, high = (_raw(statistics.physical_type, bound) for bound in (statistics.min_raw, statistics.max_raw))
    return low, high


def _raw(physical: str, bound: Any) -> bytes:
    if isinstance(bound, bytes):
        return bound
    codes = {"BOOLEAN": "<?", "INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}
    return struct.pack(codes[physical], bound)


def check_order(leaf: Leaf, order: str, minima: list[bytes], maxima: list[bytes]) -> None:
    """The boundary order is the one in which the bounds stand."""
    ranks = [[leaf.rank(bound) for bound in side] for side in (minima, maxima)]
    orders = set()
    if all(one <= other for side in ranks for one, other in pairwise(side)):
        orders.add("ASCENDING")
    if all(one >= other for side in ranks for one, other in pairwise(side)):
        orders.add("DESCENDING")
    assert order in (orders or {"UNORDERED"})


def check_levels(leaf: Leaf, found: Any, expected: Expected) -> None:
    """Histograms of levels are there where nulls and entries alone do not tell them."""
    definition, repetition = found
    if leaf.max_definition > 1 or leaf.max_repetition:
        assert definition == expected.definition_levels
    if leaf.max_repetition:
        assert repetition == expected.repetition_levels
