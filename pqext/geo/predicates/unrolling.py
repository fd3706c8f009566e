"""Unroll geometries on the globe into a plane of longitudes and latitudes, where shapely can compare them.

Edges become chains of short chords that deviate by at most :data:`TOLERANCE`. Longitudes continue across the
antimeridian, so that neighbouring vertices are less than half a turn apart, and x may exceed -180 to 180. A ring around
a pole contains the pole if that is on its smaller side, and is closed beyond the pole. An edge of half a turn passes
through a pole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.geo.predicates.geodesic_chains import Border, follow_edges

if TYPE_CHECKING:
    from pyproj import Geod

TOLERANCE = 1e-5
"""Maximum deviation of chords from edges in degrees, about a metre."""

BEYOND_POLE = 91.0
"""Latitude in the plane at which rings around a pole are closed, so that the pole lies inside."""

WINDOW = (-540.0, -BEYOND_POLE, 540.0, BEYOND_POLE)
"""Region of the plane over which areas around a pole are repeated."""

_HALF = 1e-9  # degrees: a ring this close to half a turn wide may be exactly half of the globe
_OVERLAPS, _OVERLAPS_EACH = 16_384, 16
"""Maximum number of pairs of overlapping areas to unite, plus a number per area."""
_NEAR, _NEAR_EACH = 1_000_000, 64
"""Maximum number of pairs of overlapping areas to inspect, plus a number per area."""

_Doubles = NDArray[np.float64]
_Shapes = NDArray[np.object_]
_Numbers = NDArray[np.int64]


def unroll(
    geometries: _Shapes, geod: Geod | None, middle: float = 0.0, tolerance: float = TOLERANCE,
    max_vertices: int | None = None, border: Border | None = None,
) -> _Shapes:  # fmt: skip
    """Unroll geometries into the plane, placing each part where it is nearest to longitude ``middle``.

    Edges are geodesics of ``geod``, or great circles of a sphere if it is None. Polygons of the same geometry are
    united. ``geometries`` are in longitudes and latitudes, and none is missing. Chords deviate from edges by at most
    ``tolerance`` degrees. If ``border`` is passed, they do so only where edges come near it. Such geometries have the
    same relation to the border's shape, unless their rings cross themselves. Raises :class:`TooManyVerticesError` if
    lines or rings need more than ``max_vertices`` additional vertices.
    """
    import shapely

    parts, owners = explode(geometries)
    kinds = shapely.get_type_id(parts)
    placed = np.empty(len(parts), dtype=object)
    points = np.flatnonzero(kinds == 0)
    coordinates = shapely.get_coordinates(parts[points])
    x = coordinates[:, 0] + 360.0 * _nearest_turns(coordinates[:, 0], middle)
    placed[points] = shapely.points(x, coordinates[:, 1])
    lines = np.flatnonzero((kinds == 1) | (kinds == 2))
    placed[lines] = _unroll_lines(parts[lines], geod, middle, tolerance, max_vertices, border)
    polygons = np.flatnonzero(kinds == 3)
    placed[polygons] = _unroll_polygons(parts[polygons], geod, middle, tolerance, max_vertices, border)
    if (shapely.get_type_id(placed[polygons]) != 3).any():  # some were split into several parts
        placed, whose = explode(placed)
        owners = owners[whose]
    return _collect(placed, owners, len(geometries))


def explode(geometries: _Shapes) -> tuple[_Shapes, _Numbers]:
    """Split geometries into non-empty parts that are not collections.

    Returns the parts and the index of each part's geometry.
    """
    import shapely

    parts, owners = shapely.get_parts(geometries, return_index=True)
    while (shapely.get_type_id(parts) > 3).any():
        parts, inner = shapely.get_parts(parts, return_index=True)
        owners = owners[inner]
    retained = ~shapely.is_empty(parts)
    return parts[retained], owners[retained]


def split_into_chains(shapes: _Shapes) -> tuple[_Shapes, _Numbers]:
    """Split ``shapes`` into points, lines and polygon rings.

    Returns these parts and the index of the shape that each part belongs to.
    """
    import shapely

    parts, owners = explode(shapes)
    areas = shapely.get_type_id(parts) == 3
    rings, inner = shapely.get_rings(parts[areas], return_index=True)
    return np.concatenate([parts[~areas], rings]), np.concatenate([owners[~areas], owners[areas][inner]])


def _collect(parts: _Shapes, owners: _Numbers, count: int) -> _Shapes:
    import shapely

    result = np.full(count, shapely.GeometryCollection(), dtype=object)
    order = np.argsort(owners, kind="stable")
    parts, owners = parts[order], owners[order]
    numbers, starts, counts = np.unique(owners, return_index=True, return_counts=True)
    single = counts == 1
    result[numbers[single]] = parts[starts[single]]
    for number, start, length in zip(numbers[~single], starts[~single], counts[~single], strict=True):
        some = parts[start : start + length]
        dimension = shapely.get_dimensions(some)
        if (dimension == 2).all():
            whole = shapely.multipolygons(some)
            result[number] = whole if shapely.is_valid(whole) else unite(some)
        elif (dimension == dimension[0]).all():
            result[number] = shapely.multipoints(some) if dimension[0] == 0 else shapely.multilinestrings(some)
        else:
            result[number] = shapely.geometrycollections(some)
    return result


def shift_east(shapes: Any, distance: float) -> Any:
    """Move shapes east by ``distance`` degrees."""
    import shapely

    return shapes if distance == 0 else shapely.transform(shapes, lambda corners: corners + np.array([distance, 0.0]))


def unite(areas: Any, axis: int | None = None) -> Any:
    """Return the union of areas, repairing areas that cross themselves if necessary.

    Raises GeometryError if ``axis`` is None and so many areas overlap that the union would take quadratic time.
    """
    import shapely

    if axis is None:
        _check_overlaps(np.asarray(areas, dtype=object))
    try:
        return shapely.union_all(areas, axis=axis)
    except shapely.errors.GEOSException:
        return shapely.union_all(shapely.make_valid(areas), axis=axis)


def _check_overlaps(areas: _Shapes) -> None:
    import shapely

    tree, count = shapely.STRtree(areas), len(areas)
    near, overlaps = _NEAR + _NEAR_EACH * count, _OVERLAPS + _OVERLAPS_EACH * count
    step = max(1, _NEAR // max(count, 1))
    for start in range(0, count, step):
        some = areas[start : start + step]
        near -= len(tree.query(some)[0])
        overlaps -= len(tree.query(some, predicate="intersects")[0]) if near >= 0 else 0
        if near < 0 or overlaps < 0:
            raise GeometryError(
                f"too many of a geometry's {count} areas overlap to compute their union; simplify the geometry"
            )


def _nearest_turns(x: Any, middle: Any) -> Any:
    """Return, for each ``x``, the number of full turns that brings the value closest to ``middle``."""
    return -np.round((x - middle) / 360)


def _unroll_lines(
    lines: _Shapes, geod: Geod | None, middle: float, tolerance: float, max_vertices: int | None,
    border: Border | None,
) -> _Shapes:  # fmt: skip
    import shapely

    if not len(lines):
        return lines
    chains = follow_edges(lines, geod, tolerance, max_vertices, border)
    low, high, _ = chains.spans(len(lines))
    x = chains.shift_longitudes(_nearest_turns((low + high) / 2, middle))
    result: _Shapes = shapely.linestrings(np.column_stack([x, chains.y]), indices=chains.number)
    return result


def _unroll_polygons(
    polygons: _Shapes, geod: Geod | None, middle: float, tolerance: float, max_vertices: int | None,
    border: Border | None,
) -> _Shapes:  # fmt: skip
    import shapely

    if not len(polygons):
        return polygons
    rings, owners = shapely.get_rings(polygons, return_index=True)
    chains = follow_edges(rings, geod, tolerance, max_vertices, border)
    low, high, net = chains.spans(len(rings))
    shell = np.diff(owners, prepend=-1) > 0
    # Place holes near their shell; for an area around a pole, which repeats, near its nearest copy.
    centre = np.where(np.abs(net) > 180, middle, (low + high) / 2)
    anchor = centre[shell] + 360.0 * _nearest_turns(centre[shell], middle)
    turns = _nearest_turns(centre, anchor[owners])
    x, y, chain = chains.shift_longitudes(turns), chains.y, chains.number
    wide = np.zeros(len(polygons), dtype=np.bool_)
    np.logical_or.at(wide, owners, (np.abs(net) > 180) | (high - low >= 180 - _HALF))
    wide |= _has_outer_hole(rings, owners, shell)
    result = np.empty(len(polygons), dtype=object)
    plain = ~wide[owners]
    if plain.any():
        retained, numbers = plain[chain], np.cumsum(plain) - 1
        linear = shapely.linearrings(np.column_stack([x[retained], y[retained]]), indices=numbers[chain[retained]])
        result[~wide] = shapely.polygons(linear, indices=(np.cumsum(~wide) - 1)[owners[plain]])
    if border is not None and wide.any():  # which side is inside depends on the whole edges
        result[wide] = _unroll_polygons(polygons[wide], geod, middle, tolerance, max_vertices, None)
        return result
    stops = np.searchsorted(chain, np.arange(len(rings) + 1))
    for number in np.flatnonzero(wide).tolist():
        areas = []
        for ring in range(*np.searchsorted(owners, [number, number + 1]).tolist()):
            at = slice(stops[ring], stops[ring + 1])
            areas.append(_interior(chains.x[at], chains.turn[at] + turns[ring], y[at], net[ring]))
        outer, *holes = areas
        result[number] = _subtract_holes(outer, holes) if holes else outer
    return result


def _has_outer_hole(rings: _Shapes, owners: _Numbers, shell: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask of the polygons with a hole that exceeds the box of their shell and may lie outside the shell."""
    import shapely

    holes = np.flatnonzero(~shell)
    result = np.zeros(int(shell.sum()), dtype=np.bool_)
    inner, outer = shapely.bounds(rings[holes]), shapely.bounds(rings[shell])[owners[holes]]
    beyond = (inner[:, :2] < outer[:, :2]).any(axis=1) | (inner[:, 2:] > outer[:, 2:]).any(axis=1)
    result[owners[holes[beyond]]] = True
    return result


def _subtract_holes(shell: Any, holes: list[Any]) -> Any:
    """Return the symmetric difference of shell and holes, as in S2. Holes that cross the shell are clipped to it."""
    import shapely

    areas = [
        area if area.is_valid else shapely.make_valid(area, method="structure", keep_collapsed=False)
        for area in (shell, *holes)
    ]
    spans = [_spans_window(area) for area in areas]
    if any(spans):
        parts = [[area] if is_complete else _repeat_area(area) for area, is_complete in zip(areas, spans, strict=True)]
        areas = [unite(parts[0]), *(area for part in parts[1:] for area in part)]
    shell, holes = areas[0], areas[1:]
    shapely.prepare(shell)
    astray = shapely.overlaps(shell, holes)
    holes = [shapely.intersection(shell, hole) if over else hole for hole, over in zip(holes, astray, strict=True)]
    result = shapely.symmetric_difference(shell, unite(holes))
    return shapely.clip_by_rect(result, *WINDOW) if any(spans) else result


def _spans_window(area: Any) -> bool:
    """Return whether the area extends across :data:`WINDOW` from west to east."""
    west, _, east, _ = area.bounds or (0, 0, 0, 0)
    return bool(west <= WINDOW[0] and east >= WINDOW[2])


def _repeat_area(area: Any) -> list[Any]:
    """Repeat an area that is narrower than a full turn across :data:`WINDOW`."""
    if area.is_empty:
        return [area]
    west, _, east, _ = area.bounds
    middle = round((west + east) / 720)
    return [shift_east(area, 360.0 * (turn - middle)) for turn in range(-2, 3)]


def _interior(x: _Doubles, turn: _Doubles, y: _Doubles, net: float) -> Any:
    """Return the smaller of the two areas that a ring divides the globe into; the left area if they are equal.

    Sides that contain a pole are repeated across :data:`WINDOW`.
    """
    import shapely

    unrolled = x + 360.0 * turn
    area = equator_area(unrolled, y)
    if abs(net) <= 180:
        ring = shapely.Polygon(np.column_stack([unrolled, y]))
        if area < 0 if _is_half(area) else abs(area) <= 2 * np.pi:
            return ring
        return shapely.difference(shapely.box(*WINDOW), unite(_repeat_area(ring)))
    # The area between the ring and the north pole is a full turn minus the area below.
    above = 2 * np.pi - area if net > 0 else 2 * np.pi + area
    north = net > 0 if _is_half(above) else above <= 2 * np.pi
    pole = BEYOND_POLE if north else -BEYOND_POLE
    # The meridian from this point to the pole does not intersect the ring again.
    first, step = int(np.argmin(np.abs(pole - y))), np.round(net / 360)
    x, y = np.append(x[first:-1], x[: first + 1]), np.append(y[first:-1], y[: first + 1])
    turn = np.append(turn[first:-1], turn[: first + 1] + step)
    before = np.floor((WINDOW[0] - unrolled.max()) / 360) - abs(step)
    after = np.ceil((WINDOW[2] - unrolled.min()) / 360) + 1
    laps = np.arange(before, after, abs(step))[:: 1 if net > 0 else -1]
    # Add full turns to a longitude in one step, so that a position has one x per turn, whichever vertex is first.
    turn = np.append((turn[:-1] + laps[:, None]).ravel(), turn[-1] + laps[-1])
    x, y = np.append(np.tile(x[:-1], len(laps)), x[-1]) + 360.0 * turn, np.append(np.tile(y[:-1], len(laps)), y[-1])
    corners = np.column_stack([np.append(x, [x[-1], x[0]]), np.append(y, [pole, pole])])
    return shapely.clip_by_rect(shapely.Polygon(corners), *WINDOW)


def equator_area(x: _Doubles, y: _Doubles) -> float:
    """Return the area between a chain and the equator on the unit sphere, positive if it runs eastward in the north."""
    turn, half = np.tan(np.radians(np.diff(x)) / 2), np.tan(np.radians(y) / 2)
    start, stop = half[:-1], half[1:]
    return float(2 * np.arctan2(turn * (start + stop), 1 + start * stop).sum())


def _is_half(area: float) -> bool:
    """Return whether the area is half of the globe, within a tolerance of a metre along its border."""
    return bool(abs(abs(area) - 2 * np.pi) < 2 * np.pi * np.radians(TOLERANCE))
