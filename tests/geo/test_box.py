"""Bounding boxes as sets of points: what they hold, share and span, around the antimeridian too."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext import geo
from pqext.core.format import metadata
from pqext.geo import BoundingBox, GeospatialType, SpatialPredicate
from pqext.geo.predicates.boxes import OPERATIONS
from reference.effort import share

GRID = [-180.0, -179.0, -120.0, -60.0, -1.0, 0.0, 1.0, 60.0, 120.0, 179.0, 180.0]
BETWEEN = sorted([*GRID, *(v + 0.5 for v in GRID[:-1]), *(v - 0.5 for v in GRID[1:])])


@st.composite
def boxes(draw: st.DrawFn) -> BoundingBox:
    """Boxes on a coarse grid, a third of them wrapping."""
    xmin, xmax = draw(st.sampled_from(GRID)), draw(st.sampled_from(GRID))
    if draw(st.integers(0, 2)):
        xmin, xmax = min(xmin, xmax), max(xmin, xmax)
    ymin, ymax = sorted([draw(st.integers(-3, 3)), draw(st.integers(-3, 3))])
    return BoundingBox(xmin, xmax, ymin, ymax)


def holds(box: BoundingBox, x: float, y: float) -> bool:
    """The format's own words: x >= xmin OR x <= xmax where xmin > xmax."""
    across = x >= box.xmin or x <= box.xmax if box.xmin > box.xmax else box.xmin <= x <= box.xmax
    return across and box.ymin <= y <= box.ymax


def points(box: BoundingBox) -> set[tuple[float, float]]:
    return {(x, y) for x in BETWEEN for y in range(-3, 4) if holds(box, x, y)}


@pytest.mark.spec("geo.box.wraparound")
@given(boxes(), boxes())
def test_boxes_intersect_if_they_share_a_point(one: BoundingBox, other: BoundingBox) -> None:
    assert one.intersects(other) == bool(points(one) & points(other))
    assert one.intersects(other) == other.intersects(one)


@pytest.mark.spec("geo.box.wraparound")
@given(boxes(), boxes())
def test_box_contains_another_if_it_contains_all_its_points(one: BoundingBox, other: BoundingBox) -> None:
    # What lies beyond 180 is not tested here: a wrapping box goes on, one that ends at 180 does not.
    assert one.contains(other) == (points(other) <= points(one))


@pytest.mark.spec("geo.box.wraparound")
@given(boxes(), boxes(), st.booleans())
def test_union_contains_both_boxes_and_wraps_only_if_allowed(
    one: BoundingBox, other: BoundingBox, longitudes: bool
) -> None:
    union = one.union(other, longitudes=longitudes)
    assert points(one) | points(other) <= points(union)
    assert not union.wraps or longitudes or one.wraps or other.wraps
    if not (one.wraps or other.wraps):
        planar = max(one.xmax, other.xmax) - min(one.xmin, other.xmin)
        assert union.width <= planar


@pytest.mark.spec("geo.box.wraparound")
def test_union_with_a_wrapping_box_is_the_narrowest_that_wraps() -> None:
    ends = [-180.0, -120.0, 0.0, 60.0, 180.0]
    ranges = [BoundingBox(west, east, 0, 0) for west in ends for east in ends]
    circle = [BoundingBox(-180, 180, 0, 0)]
    for one, other in product(ranges, ranges):
        assert one.intersects(other) == bool(points(one) & points(other))
        if one.wraps or other.wraps:
            both = points(one) | points(other)
            fitting = [box for box in ranges if box.wraps and both <= points(box)] or circle
            union = one.union(other)
            assert both <= points(union)
            assert union.width == min(box.width for box in fitting), (one, other)


def test_union_preserves_ranges_of_either_box() -> None:
    flat, deep = BoundingBox(0, 1, 0, 1), BoundingBox(2, 3, -1, 0, zmin=5, zmax=6)
    assert flat.union(deep) == BoundingBox(0, 3, -1, 1, zmin=5, zmax=6)
    assert deep.union(BoundingBox(0, 0, 0, 0, 4, 5, 1, 1)) == BoundingBox(0, 3, -1, 0, 4, 6, 1, 1)


@pytest.mark.parametrize(
    "box",
    [
        BoundingBox(math.nan, 1, 0, 1),
        BoundingBox(0, 1, 0, math.nan),
        BoundingBox(-math.inf, math.inf, 0, 1),
        BoundingBox(0, 1, 1, 0),
        BoundingBox(math.inf, -math.inf, math.inf, -math.inf),
        BoundingBox(200, 190, 0, 1),
        BoundingBox(1e308, -1e308, 0, 1),
    ],
)
def test_invalid_box_prunes_nothing(box: BoundingBox) -> None:
    world, nowhere = BoundingBox(-180, 180, -90, 90), BoundingBox(5, 6, 50, 60)
    assert not box.usable
    for other in (world, nowhere):
        assert box.intersects(other)
        assert other.intersects(box)
        assert not box.contains(other)
        assert not other.contains(box)


@pytest.mark.spec("geo.box.wraparound_only")
@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        ((-170.0, 170.0), (170.0, -170.0)),
        ((0.0, 35.0), (-180.0, 180.0)),
        ((0.0, 37.0), (37.0, 0.0)),
        (None, (-180.0, 180.0)),
    ],
)
def test_box_wraps_around_a_gap_only_if_it_becomes_smaller(
    gap: tuple[float, float] | None, expected: tuple[float, float]
) -> None:
    box = BoundingBox(-180, 180, 0, 1)
    found = box.wrap_around(gap)
    assert (found.xmin, found.xmax) == expected
    if gap is not None:
        parts = BoundingBox(-180, gap[0], 0, 1), BoundingBox(gap[1], 180, 0, 1)
        for first, second in (parts, parts[::-1]):
            assert first.union(second, longitudes=True) == found
            assert first.union(second) == box
    narrow = BoundingBox(-10, 10, 0, 1)
    assert narrow.wrap_around((-5.0, 5.0)) == narrow


def test_box_round_trips_through_metadata() -> None:
    box = BoundingBox(170, -170, -1, 1, zmin=3, zmax=4)
    assert BoundingBox.from_metadata(box.to_metadata()) == box
    assert box.to_metadata() == metadata.BoundingBox(xmin=170, xmax=-170, ymin=-1, ymax=1, zmin=3, zmax=4)


@pytest.mark.parametrize("type", [GeospatialType(), GeospatialType("EPSG:3857")])
@pytest.mark.parametrize("operation", OPERATIONS)
@settings(max_examples=share(0.3))
@given(box=boxes(), query=boxes())
def test_single_box_result_equals_the_vectorised_result(
    operation: Any, type: GeospatialType, box: BoundingBox, query: BoundingBox
) -> None:
    predicate = SpatialPredicate(operation, query, 0.5 if operation == "dwithin" else None)
    bounds = (np.array([bound, bound]) for bound in (box.xmin, box.xmax, box.ymin, box.ymax))
    xmin, xmax, ymin, ymax = bounds
    assert {int(predicate.answer(box, type))} == set(predicate.answers(xmin, xmax, ymin, ymax, type).tolist())


def test_public_names_exist() -> None:
    assert {name for name in geo.__all__ if not hasattr(geo, name)} == set()
    assert set(geo.__all__) <= set(dir(geo))
    with pytest.raises(AttributeError, match="no attribute"):
        _ = geo.nothing
