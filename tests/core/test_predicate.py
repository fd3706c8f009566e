"""The rules by which ranges exclude predicates, against every set of values that the ranges allow."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pqext.core.format.predicate import COMPARE, Bounds, Comparison, IsIn, may_match, may_relate
from pqext.core.indexes.page_index import NumberBounds
from pqext.dataset.expressions import Comparison as Condition
from pqext.dataset.expressions import col
from pqext.skipping.indexes.ranges import Ranges

NAN = math.nan
NUMBERS = (0.0, 1.0, 2.0)
RANGES = [(low, high, has_nan) for low in NUMBERS for high in NUMBERS if low <= high for has_nan in (False, True)]
LITERALS = (*NUMBERS, -1.0, 0.5, 3.0, NAN)
PREDICATES: list[Any] = [Comparison(operator, value) for operator in COMPARE for value in LITERALS]
PREDICATES += [IsIn(values, ascending=True) for n in range(3) for values in itertools.combinations((*NUMBERS, NAN), n)]


def holds(value: float, operator: str, other: float) -> bool:
    """Compare two numbers; NaN equals itself and is above every other number."""
    left, right = ((one != one, 0.0 if one != one else one) for one in (value, other))
    return COMPARE[operator](left, right)  # type: ignore[index]


def can_match(predicate: Any, low: float, high: float, has_nan: bool) -> bool:
    """Whether a value that the range allows satisfies the predicate; halves stand for what lies between numbers."""
    values = [value / 2 for value in range(7) if low <= value / 2 <= high] + [NAN] * has_nan
    if isinstance(predicate, IsIn):
        return any(holds(value, "==", listed) for value in values for listed in predicate.values)
    return any(holds(value, predicate.operator, predicate.value) for value in values)


EXPECTED = [[can_match(predicate, *ends) for ends in RANGES] for predicate in PREDICATES]


@pytest.mark.spec("querying.row-groups")
def test_bounds_exclude_exactly_the_unsatisfiable() -> None:
    bounds = [Bounds(low, high, 0, 9, has_nan) for low, high, has_nan in RANGES]
    assert [[may_match(predicate, each) for each in bounds] for predicate in PREDICATES] == EXPECTED


@pytest.mark.spec("page-index.search")
def test_page_arrays_exclude_exactly_the_unsatisfiable() -> None:
    low, high, has_nan = (np.array(side) for side in zip(*RANGES, strict=True))
    pages = NumberBounds(low, high, has_nan)
    for predicate, expected in zip(PREDICATES, EXPECTED, strict=True):
        assert pages.matching_pages(predicate) in (None, np.flatnonzero(expected).tolist())


@pytest.mark.spec("skipping.minmax.equal")
def test_store_excludes_exactly_the_unsatisfiable() -> None:
    """A maximum of NaN hides the greatest number, so only ranges without NaN are exact."""
    low, high, has_nan = zip(*RANGES, strict=True)
    tops = [NAN if nan else top for top, nan in zip(high, has_nan, strict=True)]
    ranges = Ranges(pa.array(low), pa.array(tops), shows_nan=True)
    for predicate, expected in zip(PREDICATES, EXPECTED, strict=True):
        if isinstance(predicate, IsIn):
            found = ranges.may_match(col("c").isin(list(predicate.values)))
        else:
            found = ranges.may_match(Condition(col("c"), predicate.operator, predicate.value))
        assert found is not None
        for may, expect, nan in zip(found.to_pylist(), expected, has_nan, strict=True):
            assert may == expect or (nan and may)


@pytest.mark.spec("querying.derived")
@pytest.mark.parametrize("operator", COMPARE)
def test_unknown_bounds_exclude_no_possible_value(operator: Any) -> None:
    """A range with an unknown end may match if it may with any end in its place, and operands likewise."""
    ends = [None, *NUMBERS]
    ranges = [Bounds(low, high, 0, 9, nan) for low in ends for high in ends for nan in (None, True, False)]
    valid = [each for each in ranges if None in (each.minimum, each.maximum) or each.minimum <= each.maximum]
    known = [each for each in valid if None not in (each.minimum, each.maximum, each.has_nan)]

    def includes(wide: Bounds, narrow: Bounds) -> bool:
        low = wide.minimum is None or wide.minimum <= narrow.minimum
        high = wide.maximum is None or wide.maximum >= narrow.maximum
        return low and high and (wide.has_nan is not False or narrow.has_nan is False)

    for left, right in itertools.product(known, known):
        values = [
            [value / 2 for value in range(7) if side.minimum <= value / 2 <= side.maximum] + [NAN] * bool(side.has_nan)
            for side in (left, right)
        ]
        if any(holds(one, operator, other) for one in values[0] for other in values[1]):
            wider = [[wide for wide in valid if includes(wide, side)] for side in (left, right)]
            assert all(may_relate(one, operator, other) for one in wider[0] for other in wider[1])
        else:
            assert not may_relate(left, operator, right)
