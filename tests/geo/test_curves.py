"""The Hilbert curve visits every cell once, step by step, and rows are sorted along it."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
import shapely

from pqext import geo
from pqext.geo import BoundingBox

UNIT = BoundingBox(0, 1, 0, 1)


def curve(order: int) -> list[tuple[int, int]]:
    """The cells of a curve through a square of 2^order cells a side, by its recursive definition."""
    if order == 0:
        return [(0, 0)]
    half, inner = 1 << (order - 1), curve(order - 1)
    side = 2 * half - 1
    return [
        *((y, x) for x, y in inner),
        *((x, y + half) for x, y in inner),
        *((x + half, y + half) for x, y in inner),
        *((side - y, half - 1 - x) for x, y in inner),
    ]


@pytest.mark.parametrize("order", [1, 2, 3, 5, 7])
def test_the_position_of_a_cell_is_its_place_on_the_curve(order: int) -> None:
    cells = np.array(curve(order))
    assert (np.abs(np.diff(cells, axis=0)).sum(axis=1) == 1).all()  # the twin is a curve: neighbour after neighbour
    x, y = ((cells + 0.5) / (1 << order)).T
    found = geo.hilbert_index(x, y, UNIT) >> np.uint64(64 - 2 * order)
    assert found.tolist() == list(range(4**order))


def test_points_outside_the_bounds_count_as_at_the_edge() -> None:
    inside = geo.hilbert_index([0, 1, 0.5, 0], [0, 1, 1, 0.5], UNIT)
    outside = geo.hilbert_index([-9, math.inf, 0.5, math.nan], [-math.inf, 7, 2, 0.5], UNIT)
    assert inside.tolist() == outside.tolist()
    assert geo.hilbert_index([3, 4], [5, 6], BoundingBox(3, 3, 5, 5)).tolist() == [0, 0]


def test_bounds_that_wrap_or_lengths_that_differ_are_refused() -> None:
    for bounds in (BoundingBox(170, -170, 0, 1), BoundingBox(math.nan, 0, 0, 1)):
        with pytest.raises(ValueError, match="bounds"):
            geo.hilbert_index([0], [0], bounds)
    with pytest.raises(ValueError, match="same length"):
        geo.hilbert_index([0], [0, 1], UNIT)


def test_rows_are_sorted_by_the_centres_of_their_boxes_and_the_rest_comes_last() -> None:
    shapes = [
        shapely.box(90, 10, 92, 12),
        None,
        shapely.Point(1, 1),
        shapely.Point(),
        shapely.LineString([(0, 0), (4, 4)]),
        shapely.Point(99, 99),
    ]
    array = geo.from_shapely(shapes)
    order = geo.sort_indices(array).to_pylist()
    assert order[4:] == [1, 3]
    centres = {0: (91, 11), 2: (1, 1), 4: (2, 2), 5: (99, 99)}
    x, y = zip(*centres.values(), strict=True)
    places = geo.hilbert_index(x, y, BoundingBox(1, 99, 1, 99))
    assert order[:4] == [row for _, row in sorted(zip(places.tolist(), centres, strict=True))]
    chunked = pa.chunked_array([array[:2], array[2:3], array[3:]])
    assert geo.sort_indices(chunked).to_pylist() == order
    assert geo.sort_indices(array[:0]).to_pylist() == []
    assert geo.sort_indices(pa.chunked_array([], pa.binary())).to_pylist() == []


def test_sorted_rows_make_small_boxes() -> None:
    generator = np.random.default_rng(7)
    points = geo.from_points(generator.uniform(-180, 180, 20_000), generator.uniform(-90, 90, 20_000))
    ordered = points.take(geo.sort_indices(points))

    def area(array: pa.Array) -> float:
        boxes = [geo.statistics(array[start : start + 500], crs="EPSG:3857").bbox for start in range(0, 20_000, 500)]
        return sum((box.xmax - box.xmin) * (box.ymax - box.ymin) for box in boxes if box is not None)

    assert area(ordered) < area(points) / 20
