"""Chains of vertices that follow geodesic edges in a plane of longitudes and latitudes.

Edges become short chords that deviate by at most a tolerance. To compare a shape with another, only edges near the
other's border need that: an edge elsewhere and its chord are on the same side of the border.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import LimitError

if TYPE_CHECKING:
    from pyproj import Geod

_LONGEST = 1.0  # degrees: longer chords are always halved, because the chord may cross the edge at its midpoint
_ROUNDS = 24
_DIGITS = 7  # about a centimetre: rounding makes results independent of the other geometries in the call
_POLE = 90 - 1e-12
_NEARLY_ROUND = 0.02  # flattening below which edges bend nearly as on a sphere; the Earth's is 0.0034
_NARROW = 28.0
_RISE = 1.12e-3
"""An edge at most ``_NARROW`` degrees wide rises above its ends by at most ``_RISE`` times its squared width in
degrees; see ``geo.edges.rise`` in ``specs/geospatial.md``."""
_MARGIN = 1e-6  # degrees; more than the rounding of vertices

_Doubles = NDArray[np.float64]
_Shapes = NDArray[np.object_]
_Numbers = NDArray[np.int64]


class TooManyVerticesError(LimitError):
    """Following the edges requires more than the maximum number of vertices."""


class Border:
    """Border of an unrolled shape: the boundary of its areas, its lines and its points, repeated at every full turn."""

    def __init__(self, shape: Any) -> None:
        import shapely

        parts = shapely.get_parts([shape])
        while (shapely.get_type_id(parts) > 3).any():
            parts = shapely.get_parts(parts)
        west, _, east, _ = shapely.total_bounds(parts).tolist()
        self._middle = (west + east) / 2
        areas = shapely.get_dimensions(parts) == 2
        parts[areas] = shapely.boundary(parts[areas])
        turns = int(((east - west) / 2 + 180 + _NARROW) // 360)
        copies = [
            shapely.transform(parts, partial(np.add, np.array([360.0 * turn, 0.0])))
            for turn in range(-turns, turns + 1)
        ]
        self._shape = shapely.geometrycollections(np.concatenate(copies))
        shapely.prepare(self._shape)

    def is_near(self, x0: _Doubles, y0: _Doubles, x1: _Doubles, y1: _Doubles, geod: Geod | None) -> NDArray[np.bool_]:
        """Return a mask of edges that may touch the border, or whose chords may lie on the other side of the border.

        Edges wider than ``_NARROW`` degrees are always near.
        """
        import shapely

        width = np.abs(x1 - x0)
        stretched = width / np.sqrt(1 - max(geod.es, 0.0)) if geod is not None else width
        rise = _RISE * stretched**2 + _MARGIN
        middle = (x0 + x1) / 2
        middle -= 360.0 * np.round((middle - self._middle) / 360)
        half = width / 2 + _MARGIN
        near = stretched > _NARROW
        numbers = np.flatnonzero(~near)
        low, high = (np.minimum(y0, y1) - rise)[numbers], (np.maximum(y0, y1) + rise)[numbers]
        boxes = shapely.box((middle - half)[numbers], low, (middle + half)[numbers], high)
        near[numbers] = shapely.intersects(self._shape, boxes)
        return near


@dataclass(frozen=True, slots=True)
class Chains:
    """Vertices of several lines or rings. ``turn`` counts the full turns around the globe up to each vertex.

    It is separate from ``x``, so that a position has the same x in every turn, and shared borders remain identical.
    """

    x: _Doubles
    y: _Doubles
    number: _Numbers
    turn: _Doubles

    @property
    def unrolled_longitudes(self) -> _Doubles:
        """Continuous longitudes, which may exceed -180 to 180."""
        return self.x + 360.0 * self.turn

    def insert_vertices(self, indices: _Numbers, x: _Doubles, y: _Doubles, turn: _Doubles) -> Chains:
        """Insert vertices before the vertices at ``indices`` and return the new chains."""
        return Chains(
            np.insert(self.x, indices, x),
            np.insert(self.y, indices, y),
            np.insert(self.number, indices, self.number[indices]),
            np.insert(self.turn, indices, turn),
        )

    def spans(self, count: int) -> tuple[_Doubles, _Doubles, _Doubles]:
        """Return, for each chain, its least and greatest x, and the distance in x from its start to its end."""
        x = self.unrolled_longitudes
        starts = np.searchsorted(self.number, np.arange(count))
        stops = np.searchsorted(self.number, np.arange(count), side="right") - 1
        return np.minimum.reduceat(x, starts), np.maximum.reduceat(x, starts), x[stops] - x[starts]

    def shift_longitudes(self, shift: _Doubles) -> _Doubles:
        """Return the longitudes of all vertices, with each chain shifted by its number of turns."""
        return self.x + 360.0 * (self.turn + shift[self.number])


def follow_edges(
    lines: _Shapes, geod: Geod | None, tolerance: float, max_vertices: int | None = None, border: Border | None = None
) -> Chains:
    """Return the vertices of lines or rings, with vertices inserted so that chords follow the edges.

    Edges are geodesics of ``geod``, or great circles of a sphere if it is None. Chords deviate by at most ``tolerance``
    degrees, if ``border`` is passed only where edges come near it. Raises :class:`TooManyVerticesError` if more than
    ``max_vertices`` vertices would be inserted.
    """
    import shapely

    corners, number = shapely.get_coordinates(lines, return_index=True)
    result = _expand_poles(Chains(corners[:, 0], corners[:, 1], number, np.zeros(len(number))))
    turn = -np.round(np.diff(result.x, prepend=result.x[:1]) / 360)
    turn[np.flatnonzero(np.diff(result.number, prepend=-1))] = 0
    total = np.cumsum(turn)
    result = replace(result, turn=total - total[np.searchsorted(result.number, result.number)])
    fresh = np.arange(1, len(result.x))
    for _ in range(_ROUNDS):
        at, x, y = _find_edges_to_halve(result, fresh, geod, tolerance, border)
        if not len(at):
            break
        if max_vertices is not None and len(result.x) + len(at) - len(corners) > max_vertices:
            raise TooManyVerticesError(
                "the edges of a geometry are so long that following them over the globe needs more than "
                f"{max_vertices} points: read without this filter, or divide the geometry into several"
            )
        unrolled = result.unrolled_longitudes
        middle = (unrolled[at] + unrolled[at - 1]) / 2
        result = result.insert_vertices(at, x, y, np.round((middle - x) / 360))
        at += np.arange(len(at))
        fresh = np.column_stack([at, at + 1]).ravel()
    return result


def _expand_poles(chains: Chains) -> Chains:
    """Insert the pole at the longitudes of neighbouring vertices wherever an edge reaches or crosses a pole."""
    x, y = chains.x, chains.y
    inner = np.diff(chains.number) == 0
    pole = np.abs(y) >= _POLE
    # An edge to a pole runs along the meridian of its other end.
    leaves, enters = inner & pole[:-1] & ~pole[1:], inner & ~pole[:-1] & pole[1:]
    half = np.abs(np.mod(np.diff(x), 360) - 180) < 1e-9
    passes = inner & ~pole[:-1] & ~pole[1:] & half
    if not (leaves.any() or enters.any() or passes.any()):
        return chains
    nearer = np.where(y[:-1] + y[1:] >= 0, 90.0, -90.0)
    new = ((enters, x[:-1], y[1:]), (passes, x[:-1], nearer), (passes, x[1:], nearer), (leaves, x[1:], y[:-1]))
    places = np.concatenate([np.flatnonzero(flags) + 1 for flags, _, _ in new])
    order = np.argsort(places, kind="stable")
    longitudes = np.concatenate([longitude[flags] for flags, longitude, _ in new])
    latitudes = np.concatenate([latitude[flags] for flags, _, latitude in new])
    return chains.insert_vertices(places[order], longitudes[order], latitudes[order], np.zeros(len(places)))


def _find_edges_to_halve(
    chains: Chains, candidates: _Numbers, geod: Geod | None, tolerance: float, border: Border | None
) -> tuple[_Numbers, _Doubles, _Doubles]:
    """Find the edges to halve among the edges that end at ``candidates``. Returns their end vertices and midpoints."""
    x, y, number = chains.unrolled_longitudes, chains.y, chains.number
    x0, x1, y0, y1 = x[candidates - 1], x[candidates], y[candidates - 1], y[candidates]
    along_pole = (np.abs(y0) >= _POLE) & (np.abs(y1) >= _POLE)
    wide = np.abs(x1 - x0) > 1e-12
    retained = (number[candidates] == number[candidates - 1]) & ~along_pole & wide
    if geod is None or geod.f < _NEARLY_ROUND:
        retained &= ~_are_straight(x0, y0, x1, y1, tolerance)
    if border is not None:
        numbers = np.flatnonzero(retained)
        retained[numbers] = border.is_near(x0[numbers], y0[numbers], x1[numbers], y1[numbers], geod)
    at = candidates[retained]
    if not len(at):
        return at, x[:0], y[:0]
    x0, x1, y0, y1 = x0[retained], x1[retained], y0[retained], y1[retained]
    ends = chains.x[at - 1], y0, chains.x[at], y1
    found_x, found_y = (np.round(values, _DIGITS) for values in _midpoints(*ends, geod))
    across = found_x - (x0 + x1) / 2
    across -= 360.0 * np.round(across / 360)
    narrow = np.cos(np.radians(found_y))
    split = np.hypot(across * narrow, found_y - (y0 + y1) / 2) > tolerance
    split |= np.hypot((x1 - x0) * narrow, y1 - y0) > _LONGEST
    return at[split], found_x[split], found_y[split]


def _are_straight(x0: _Doubles, y0: _Doubles, x1: _Doubles, y1: _Doubles, tolerance: float) -> NDArray[np.bool_]:
    """Return a mask of the edges that are too short, and too far from the poles, to deviate by ``tolerance``.

    Along an edge, latitude bends by the square of the difference in longitude times sin y cos y. Longitude, in arc,
    bends by the product of both differences times 2 sin y. The midpoint deviates by an eighth of that; twice as much
    allows for higher orders.
    """
    along, up = np.abs(x1 - x0), np.abs(y1 - y0)
    far = np.radians(along * (along / 8 + up / 2))
    flags: NDArray[np.bool_] = (far < tolerance) & (np.maximum(along, up) < 0.1) & (np.abs(y0) < 80) & (np.abs(y1) < 80)
    return flags


def _midpoints(x0: _Doubles, y0: _Doubles, x1: _Doubles, y1: _Doubles, geod: Geod | None) -> tuple[_Doubles, _Doubles]:
    if geod is not None:
        azimuth, _, length = geod.inv(x0, y0, x1, y1)
        x, y, _ = geod.fwd(x0, y0, azimuth, np.asarray(length) / 2)
        return np.asarray(x), np.asarray(y)
    total = _unit_vectors(x0, y0) + _unit_vectors(x1, y1)
    return np.degrees(np.arctan2(total[1], total[0])), np.degrees(np.arctan2(total[2], np.hypot(total[0], total[1])))


def _unit_vectors(x: _Doubles, y: _Doubles) -> _Doubles:
    longitude, latitude = np.radians(x), np.radians(y)
    return np.stack([np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)])
