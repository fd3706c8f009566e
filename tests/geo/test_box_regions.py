"""Boxes on the globe a turn apart, at the poles and beyond the longitudes, held against exact decimal arithmetic."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext.geo import BoundingBox
from pqext.geo.predicates.boxes import Boxes, Region
from pqext.geo.summary import union

TENTHS = st.integers(-1799, 1799)


def region(xmin: Decimal, xmax: Decimal, ymin: float = -10, ymax: float = 10, globe: bool = True) -> Region:
    return Region(float(xmin), float(xmax), ymin, ymax, wraps=xmin > xmax, globe=globe)


def boxes(xmin: Decimal, xmax: Decimal, ymin: float = -10, ymax: float = 10) -> Boxes:
    return Boxes(*(np.array([float(bound)]) for bound in (xmin, xmax, ymin, ymax)))


@given(TENTHS, st.integers(1, 1700), st.integers(1, 1700), st.sampled_from([-360, 0, 360]))
def test_boxes_touching_after_a_turn_intersect_despite_rounding(start: int, width: int, other: int, turn: int) -> None:
    west, east = Decimal(start) / 10, Decimal(start + width) / 10
    beyond = east + Decimal(other) / 10
    assert region(west, east).may_intersect(boxes(east + turn, beyond + turn)).all()
    assert region(east, beyond).may_intersect(boxes(west + turn, east + turn)).all()
    away = Decimal("0.001")
    if width + other < 3590:
        assert not region(west, east).may_intersect(boxes(east + turn + away, beyond + turn)).any()


@given(TENTHS, st.integers(1, 1700), st.sampled_from([-360, 0, 360]))
def test_box_contains_itself_after_a_turn_despite_rounding(start: int, width: int, turn: int) -> None:
    west, east = Decimal(start) / 10, Decimal(start + width) / 10
    assert region(west, east).may_be_within(boxes(west + turn, east + turn)).all()
    assert not region(west, east).may_be_within(boxes(west + turn + Decimal("0.001"), east + turn)).any()


@given(TENTHS, st.integers(1, 1700), st.sampled_from([-540, -180, 180, 540]))
def test_normalised_longitudes_are_equal(start: int, width: int, shift: int) -> None:
    """As most programs bring longitudes between -180 and 180, which rounds them twice."""
    west, east = start / 10, (start + width) / 10
    ends = [np.mod(np.array([end + shift]), 360) - 180 for end in (west + 180 - shift, east + 180 - shift)]
    own = Region(west, east, -10, 10, wraps=False, globe=True)
    stored = Boxes(*ends, np.array([-10.0]), np.array([10.0]))
    assert own.may_be_within(stored).all()
    assert own.may_intersect(stored).all()


@pytest.mark.parametrize("turn", [0, 360])
def test_plane_does_not_wrap(turn: int) -> None:
    plane = region(Decimal(1), Decimal(2), globe=False)
    assert plane.may_intersect(boxes(Decimal(1 + turn), Decimal(2 + turn))).all() == (turn == 0)


@pytest.mark.parametrize("latitude", [-90, 90])
def test_boxes_at_one_pole_intersect_at_any_longitude(latitude: int) -> None:
    cap = sorted([latitude, latitude * 8 / 9])
    small = region(Decimal(10), Decimal(20), *cap)
    far = boxes(Decimal(100), Decimal(110), *cap)
    assert small.may_intersect(far).all()
    assert not small.may_intersect(boxes(Decimal(100), Decimal(110), *sorted([-latitude, -latitude * 8 / 9]))).any()
    assert not region(Decimal(10), Decimal(20), *cap, globe=False).may_intersect(far).any()


@pytest.mark.parametrize(
    ("xmin", "xmax", "geographic", "usable"),
    [
        (170, -170, True, True),
        (180, -180, True, True),
        (170, -170, False, False),  # only longitudes wrap
        (200, 190, True, False),
        (-190, -200, True, False),
        (200, -170, True, False),
        (10, 20, False, True),
        (370, 380, True, True),
    ],
)
def test_box_wraps_between_longitudes_only(xmin: int, xmax: int, geographic: bool, usable: bool) -> None:
    assert boxes(Decimal(xmin), Decimal(xmax)).usable(geographic).tolist() == [usable]


def test_planar_boxes_including_a_wrapping_one_have_no_union() -> None:
    plain, wrapping = BoundingBox(1, 2, 3, 4), BoundingBox(170, -170, 3, 4)
    assert union([plain, wrapping], geographic=False) is None
    assert union([wrapping], geographic=False) is None
    around = union([BoundingBox(175, 179, 3, 4), wrapping], geographic=True)
    assert around is not None
    assert (around.xmin, around.xmax) == (170, -170)


def test_union_of_wrapping_boxes_and_x_beyond_the_longitudes_ends_at_them() -> None:
    wrapping = BoundingBox(170, -170, 3, 4)
    for other, ends in ((BoundingBox(-190, -185, 3, 4), (-190, 180)), (BoundingBox(185, 190, 3, 4), (-180, 190))):
        around = union([other, wrapping], geographic=True)
        assert around is not None
        assert (around.xmin, around.xmax) == ends
