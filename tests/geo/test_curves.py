"""Curves visit every cell once, Hilbert's step by step, and rows are sorted along them."""

from __future__ import annotations

import math
from typing import Any

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
def test_cell_index_is_its_position_on_the_curve(order: int) -> None:
    cells = np.array(curve(order))
    assert (np.abs(np.diff(cells, axis=0)).sum(axis=1) == 1).all()  # the twin is a curve: neighbour after neighbour
    x, y = ((cells + 0.5) / (1 << order)).T
    found = geo.hilbert_index(x, y, UNIT) >> np.uint64(64 - 2 * order)
    assert found.tolist() == list(range(4**order))


def curve_position(x: int, y: int) -> int:
    """The place of a cell of 2^32 by 2^32, quadrant by quadrant, as textbooks have it."""
    place, side = 0, 1 << 31
    while side:
        right, upper = bool(x & side), bool(y & side)
        place += side * side * ((3 * right) ^ upper)
        if not upper:
            if right:
                x, y = (1 << 32) - 1 - x, (1 << 32) - 1 - y
            x, y = y, x
        side >>= 1
    return place


def test_positions_are_exact_to_the_last_bit() -> None:
    cells = np.random.default_rng(4).integers(0, 1 << 32, (2, 300))
    found = geo.hilbert_index(*((cells + 0.5) / (1 << 32)), UNIT)
    assert found.tolist() == [curve_position(x, y) for x, y in cells.T.tolist()]


def test_z_order_interleaves_the_bits_of_y_and_x() -> None:
    generator = np.random.default_rng(3)
    cells = generator.integers(0, 1 << 32, (2, 50))
    x, y = (cells + 0.5) / (1 << 32)
    twin = [int("".join(b + a for a, b in zip(f"{i:032b}", f"{j:032b}", strict=True)), 2) for i, j in cells.T.tolist()]
    assert geo.zorder_index(x, y, UNIT).tolist() == twin


def test_points_outside_the_bounds_are_clamped_to_the_edge() -> None:
    inside = geo.hilbert_index([0, 1, 0.5, 0], [0, 1, 1, 0.5], UNIT)
    outside = geo.hilbert_index([-9, math.inf, 0.5, math.nan], [-math.inf, 7, 2, 0.5], UNIT)
    assert inside.tolist() == outside.tolist()
    assert geo.hilbert_index([3, 4], [5, 6], BoundingBox(3, 3, 5, 5)).tolist() == [0, 0]


def test_wrapping_bounds_and_mismatched_lengths_are_rejected() -> None:
    for bounds in (BoundingBox(170, -170, 0, 1), BoundingBox(math.nan, 0, 0, 1)):
        with pytest.raises(ValueError, match="bounds"):
            geo.hilbert_index([0], [0], bounds)
    with pytest.raises(ValueError, match="same length"):
        geo.hilbert_index([0], [0, 1], UNIT)


def test_rows_are_sorted_by_box_centres_with_the_rest_last() -> None:
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


@pytest.mark.parametrize(("curve", "share"), [("hilbert", 1 / 20), ("zorder", 1 / 9)])
def test_sorted_rows_have_small_boxes(curve: Any, share: float) -> None:
    generator = np.random.default_rng(7)
    points = geo.from_points(generator.uniform(-180, 180, 20_000), generator.uniform(-90, 90, 20_000))
    ordered = points.take(geo.sort_indices(points, curve=curve))

    def area(array: pa.Array) -> float:
        boxes = [geo.statistics(array[start : start + 500], crs="EPSG:3857").bbox for start in range(0, 20_000, 500)]
        return sum((box.xmax - box.xmin) * (box.ymax - box.ymin) for box in boxes if box is not None)

    assert area(ordered) < area(points) * share


def test_unknown_order_is_rejected() -> None:
    with pytest.raises(ValueError, match="'hilbert' or 'zorder', not 'peano'"):
        geo.sort_indices(geo.from_points([0], [0]), curve="peano")  # type: ignore[arg-type]


def test_tables_are_sorted_by_a_column_or_struct_field() -> None:
    generator = np.random.default_rng(8)
    points = geo.from_points(generator.uniform(0, 9, 500), generator.uniform(0, 9, 500))
    masked = pa.array([None if row % 50 == 3 else value for row, value in enumerate(points.to_pylist())], pa.binary())
    table = pa.table({"n": range(500), "g": masked, "s": pa.StructArray.from_arrays([masked], ["g"])})
    table = pa.concat_tables([table[:7], table[7:7], table[7:300], table[300:]])
    expected = table.take(geo.sort_indices(table["g"], curve="zorder"))
    for column in ("g", "s.g"):
        found = geo.sort(table, column, curve="zorder")
        found.validate(full=True)
        assert found.equals(expected)
    assert found["n"].to_pylist()[-10:] == list(range(3, 500, 50))
    assert geo.sort(table[:0], "g").num_rows == 0
    for column in ("x", "s.x", "g.x"):
        with pytest.raises(KeyError, match=column):
            geo.sort(table, column)
    with pytest.raises(TypeError, match="WKB"):
        geo.sort(table, "n")
    with pytest.raises(TypeError, match="Table"):
        geo.sort(points, "g")  # type: ignore[arg-type]


def test_geography_across_the_antimeridian_is_sorted_at_its_position() -> None:
    field = geo.geometry_field("g", edges="spherical")
    shapes = [shapely.Point(x, 0) for x in range(-180, 180, 10)] + [shapely.LineString([(178, 0), (-178, 0)])]
    table = pa.table([geo.from_shapely(shapes).cast(field.type)], schema=pa.schema([field]))
    found = geo.to_shapely(geo.sort(table, "g")["g"])
    place = next(row for row, shape in enumerate(found) if shape.geom_type == "LineString")
    assert place in (0, len(found) - 1)
    planar = pa.table({"g": table["g"]})
    found = geo.to_shapely(geo.sort(planar, "g")["g"])
    assert found[place - 1].geom_type == found[place].geom_type == "Point" or place == 0
    assert next(row for row, shape in enumerate(found) if shape.geom_type == "LineString") in range(15, 22)


@pytest.mark.parametrize("values", [[b"x"], ["one"], [[1], [2, 3]], [object()]])
def test_coordinates_that_are_not_numbers_are_rejected(values: list[object]) -> None:
    for index in (geo.hilbert_index, geo.zorder_index):
        with pytest.raises(ValueError, match="must be numbers"):
            index([0] * len(values), values, UNIT)
