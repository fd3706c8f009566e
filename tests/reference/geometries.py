"""Hypothesis strategies for geometries as trees of :mod:`reference.wkb` and as shapely objects."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from reference import wkb
from reference.wkb import Geometry

ANY_DOUBLE = st.one_of(
    st.floats(-200, 200), st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7e308]), st.floats()
)
LONGITUDE = st.one_of(st.floats(-180, 180), st.sampled_from([-180.0, 180.0, 179.5, -179.5, 0.0]))
LATITUDE = st.floats(-90, 90)


@st.composite
def trees(draw: st.DrawFn, values: Any = ANY_DOUBLE, mixed: bool = True, depth: int = 3) -> Geometry:
    """Any geometry of the seven types, empty ones too; ``mixed`` headers: byte order and form differ by part."""
    dims = draw(st.integers(0, 3))
    little, extended = draw(st.booleans()), draw(st.booleans())

    def make(base: int, left: int) -> Geometry:
        def coordinates(low: int, high: int) -> list[wkb.Coordinate]:
            one = st.tuples(*[values] * wkb.width(dims))
            return draw(st.lists(one, min_size=low, max_size=high))

        if base == wkb.POINT:
            content: list[Any] = coordinates(1, 1)
        elif base == wkb.LINE_STRING:
            content = coordinates(0, 6)
        elif base == wkb.POLYGON:
            content = []
            for _ in range(draw(st.integers(0, 3))):
                ring = coordinates(0, 5)
                if len(ring) >= 3 and draw(st.integers(0, 9)):
                    ring.append(ring[0])
                content.append(ring)
        else:
            count = draw(st.integers(0, 3 if left else 0))
            bases = st.integers(1, 7) if base == wkb.COLLECTION else st.just(base - 3)
            content = [make(draw(bases), left - 1) for _ in range(count)]
        written = (draw(st.booleans()), draw(st.booleans())) if mixed else (little, extended)
        srid = draw(st.sampled_from([None, 4326])) if written[1] else None
        if srid is None and dims == 0:
            written = (written[0], False)  # without flags it is an ISO header
        return Geometry(base, dims, content, *written, srid=srid)

    return make(draw(st.integers(1, 7)), depth)


def _apart(one: float, other: float) -> tuple[float, float]:
    """Both in order, and not so close that a rectangle between them has no area; towards zero, so within range."""
    low, high = min(one, other), max(one, other)
    if high - low >= 1e-3:
        return low, high
    return (low - 1e-3, high) if low > 0 else (low, high + 1e-3)


def for_geos(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[float]:
    """The numbers to nine digits: GEOS multiplies differences, and of smaller ones it keeps nothing."""
    return numbers.map(lambda number: round(number, 9))


@st.composite
def shapes(draw: st.DrawFn, x: Any = LONGITUDE, y: Any = LATITUDE) -> Any:
    """A shapely point, line, polygon or multi geometry; sometimes empty. Polygons are valid."""
    import shapely

    x, y = for_geos(x), for_geos(y)
    kind = draw(st.integers(0, 6))
    point = st.tuples(x, y)
    if kind == 0:
        return shapely.Point(draw(point))
    if kind == 1:
        return shapely.LineString(draw(st.lists(point, min_size=2, max_size=5)))
    if kind == 2:
        return shapely.MultiPoint(draw(st.lists(point, max_size=5)))
    if kind == 3:
        lines = draw(st.lists(st.lists(point, min_size=2, max_size=4), max_size=3))
        return shapely.MultiLineString(lines)
    if kind == 4:
        return shapely.MultiPoint(draw(st.lists(point, min_size=3, max_size=6))).convex_hull
    if kind == 5:
        (x0, y0), (x1, y1) = draw(point), draw(point)
        (west, east), (south, north) = _apart(x0, x1), _apart(y0, y1)
        return shapely.box(west, south, east, north)
    return shapely.GeometryCollection([shapely.Point(draw(point)), shapely.LineString([draw(point), draw(point)])])
