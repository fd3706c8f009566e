"""What least and greatest values refuse, rule by rule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pqext.dataset.expressions import col
from pqext.dataset.expressions.visitors import push_down_not
from pqext.skipping.indexes.statistics import MinMax
from pqext.skipping.store.clauses import Evidence

C = col("c")
NAN = math.nan


def may(filter: Any, *ends: tuple[Any, Any], type: pa.DataType | None = None, shows_nan: bool = True) -> list[bool]:
    """Of which ranges a filter may be true."""
    cells = pa.array(
        [{"min": low, "max": high} for low, high in ends],
        pa.struct([("min", type), ("max", type)]) if type is not None else None,
    )
    found = MinMax("c", shows_nan).may_match(push_down_not(filter), cells)
    return [True] * len(ends) if found is None else [one is not False for one in found.to_pylist()]


BOUNDS = pa.struct([("min", pa.int64()), ("max", pa.int64())])
INTS = [(1, 3), (5, 5), (7, 9)]


@pytest.mark.spec("skipping.minmax.order")
@pytest.mark.parametrize(
    ("filter", "kept"),
    [
        (C < 5, [True, False, False]),
        (C <= 5, [True, True, False]),
        (C > 5, [False, False, True]),
        (C >= 5, [False, True, True]),
        (~(C > 5), [True, True, False]),
        (C < 1, [False, False, False]),
        (C >= 9, [False, False, True]),
        (C > 8.5, [False, False, True]),
    ],
)
def test_bound_beyond_the_literal_excludes_a_comparison(filter: Any, kept: list[bool]) -> None:
    assert may(filter, *INTS) == kept


@pytest.mark.spec("skipping.minmax.equal")
@pytest.mark.parametrize(
    ("filter", "kept"),
    [
        (C == 1, [True, False, False]),
        (C == 3, [True, False, False]),
        (C == 4, [False, False, False]),
        (C == 5.5, [False, False, False]),
        (C.isin([0, 5, 100]), [False, True, False]),
        (C.isin([2, 8]), [True, False, True]),
        (C.isin([]), [False, False, False]),
        (C.isin([*range(20, 1000), 8]), [False, False, True]),
    ],
)
def test_values_outside_the_bounds_are_excluded(filter: Any, kept: list[bool]) -> None:
    assert may(filter, *INTS) == kept


@pytest.mark.spec("skipping.minmax.differ")
@pytest.mark.parametrize(
    ("filter", "kept"),
    [
        (C != 5, [True, False, True]),
        (C != 1, [True, True, True]),
        (~(C == 5), [True, False, True]),
        (~C.isin([5, 8]), [True, False, True]),
        (~C.isin([1, 3]), [True, True, True]),
    ],
)
def test_only_a_constant_object_excludes_inequality(filter: Any, kept: list[bool]) -> None:
    assert may(filter, *INTS) == kept


@pytest.mark.spec("skipping.minmax.nan")
@pytest.mark.parametrize(
    ("filter", "kept"),
    [
        (C > 5.0, [False, True, True]),
        (C >= 5.0, [False, True, True]),
        (C < 5.0, [True, True, True]),
        (C == 5.0, [False, True, True]),
        (C == 0.5, [False, False, True]),
        (C != 2.0, [True, True, True]),
        (C == NAN, [False, True, True]),
        (C.isin([NAN]), [False, True, True]),
        (C >= NAN, [False, True, True]),
        (C > NAN, [False, False, False]),
        (~C.isin([1.0, NAN]), [True, True, True]),
    ],
)
def test_nan_sorts_above_every_number(filter: Any, kept: list[bool]) -> None:
    """A greatest value of NaN says that there is one, and nothing of the greatest number."""
    assert may(filter, (1.0, 3.0), (1.0, NAN), (None, NAN), type=pa.float64()) == kept


@pytest.mark.spec("skipping.minmax.nan-unknown")
@pytest.mark.parametrize(
    ("filter", "kept"),
    [(C > 5.0, True), (C >= 5.0, True), (C != 2.0, True), (C == NAN, True), (C == 5.0, False), (C < 1.0, False)],
)
def test_maximum_bounds_only_numbers_if_nan_is_unknown(filter: Any, kept: bool) -> None:
    assert may(filter, (2.0, 2.0), shows_nan=False) == [kept]
    assert may(filter, (2.0, 3.0), shows_nan=False) == [kept]


@pytest.mark.spec("skipping.minmax.nan-unknown")
def test_only_known_absence_of_nan_excludes_a_constant_number() -> None:
    assert may(~C.isin([2.0]), (2.0, 2.0), shows_nan=False) == [True]
    assert may(~C.isin([2.0]), (2.0, 2.0), shows_nan=True) == [False]
    assert may(C > 2, (2, 2), shows_nan=False) == [False]  # integers have no NaN


@pytest.mark.spec("skipping.unknown", "skipping.minmax.none")
@pytest.mark.parametrize(
    "filter", [C < 5, C == 5, C != 5, C > 5, C.isin([5]), ~C.isin([5]), C.is_null(), C.is_not_null()]
)
def test_null_bounds_exclude_nothing(filter: Any) -> None:
    assert may(filter, (None, None), type=pa.int64(), shows_nan=False) == [True]


@pytest.mark.spec("skipping.minmax.none")
@pytest.mark.parametrize("filter", [C < 5, C == 5, C != 5, C > 5, C.isin([5]), ~C.isin([5]), C.is_not_null()])
def test_null_bounds_in_a_present_cell_mean_no_values(filter: Any) -> None:
    cells = pa.array([{"min": None, "max": None}, None, {"min": 4, "max": 6}], BOUNDS)
    found = MinMax("c").may_match(push_down_not(filter), cells)
    assert found is not None
    assert [one is not False for one in found.to_pylist()] == [False, True, True]
    assert MinMax("c").may_match(C.is_null(), cells) is None


@pytest.mark.spec("skipping.minmax.none")
def test_nan_is_a_value() -> None:
    assert may(C > 5, (None, math.nan), type=pa.float64()) == [True]


@pytest.mark.spec("skipping.unknown")
def test_single_bound_excludes_values_beyond_it() -> None:
    assert may(C < 5, (7, None), type=pa.int64()) == [False]
    assert may(C == 5, (7, None), type=pa.int64()) == [False]
    assert may(C == 9, (7, None), type=pa.int64()) == [True]
    assert may(C != 7, (7, None), type=pa.int64()) == [True]


@pytest.mark.spec("skipping.minmax.pattern")
@pytest.mark.parametrize(
    ("filter", "kept"),
    [
        (C.starts_with("b"), [False, True, True, False]),
        (C.like("b%"), [False, True, True, False]),
        (C.like("bar"), [False, True, True, False]),
        (C.like("%b"), [True, True, True, True]),
        (~C.starts_with("b"), [True, False, True, True]),
        (~C.like("ba_%"), [True, True, True, True]),
        (~C.like("bar"), [True, True, True, True]),
        (C.starts_with("bb"), [False, False, True, False]),
    ],
)
def test_prefix_pattern_is_a_range(filter: Any, kept: list[bool]) -> None:
    assert may(filter, ("a", "azz"), ("ba", "bar"), ("a", "c"), ("c", "d")) == kept


@pytest.mark.spec("skipping.unknown")
@pytest.mark.parametrize("filter", [C == "x", C.like("x%"), C + 1 > 5, col("d") < C])
def test_unsuitable_conditions_exclude_nothing(filter: Any) -> None:
    index, cells = MinMax("c"), pa.array([{"min": 1, "max": 2}])
    found = Evidence(index, cells, np.array([0])).excluded_objects(push_down_not(filter), 1)
    assert found is None or not found.any()
