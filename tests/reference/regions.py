"""Any two shapes on the globe compared the slow way, holes, parts, poles and windows of meridians among them.

Edges are chains of a thousand points. All shapes lie in one stereographic plane, which loses a single point, chosen far
from every edge. The inside of a ring is the side that holds fewer of points spread evenly over the globe, that of a
window the side of its middle. An answer is certain if it stays the same when the query is turned a little any way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import shapely
from pyproj import Geod

from reference.globe import WGS84, path, unit

TURN = math.radians(1e-4)
"""How little: some eleven metres. Chains leave edges of 100 degrees by a fifth of that."""

RELATIONS = ("intersects", "within", "contains", "touches", "crosses", "overlaps", "covers", "covered_by", "equals")
AXES = [sign * TURN * axis for axis in np.eye(3) for sign in (1, -1)]
Window = tuple[float, float, float, float]


class UnclearError(ValueError):
    """The twin cannot say which side of a ring is smaller, or finds no plane."""


def spread(count: int) -> Any:
    """Directions spread evenly over the globe."""
    number = np.arange(count) + 0.5
    return unit(np.degrees(number * math.pi * (3 - math.sqrt(5))), np.degrees(np.arcsin(1 - 2 * number / count)))


def turned(directions: Any, by: Any) -> Any:
    """Directions turned about an axis, by radians that are its length."""
    angle = np.linalg.norm(by)
    if angle == 0:
        return directions
    axis = by / angle
    along = (directions @ axis)[:, None] * axis
    return along + math.cos(angle) * (directions - along) + math.sin(angle) * np.cross(axis, directions)


class Chains:
    """A shape with its edges as directions: points and lines, and areas as rings with their holes."""

    def __init__(self, shape: Any, edges: str, geod: Geod = WGS84) -> None:
        self.lines: list[Any] = []
        self.areas: list[list[tuple[Any, Any]]] = []
        """Rings, shell first, each with a direction on its inside, or None for the smaller side."""
        self.whole = False
        if isinstance(shape, tuple):
            self._window(shape)
        else:
            self._add(shape, edges, geod)

    def _add(self, shape: Any, edges: str, geod: Geod) -> None:
        if hasattr(shape, "geoms"):
            for part in shape.geoms:
                self._add(part, edges, geod)
        elif shape.geom_type == "Polygon" and not shape.is_empty:
            rings = (np.array(ring.coords) for ring in (shape.exterior, *shape.interiors))
            self.areas.append([(path(ring, edges, 1000, geod), None) for ring in rings])
        elif not shape.is_empty:
            self.lines.append(path(np.array(shape.coords), edges, 1000, geod))

    def _window(self, box: Window) -> None:
        """The region eastward from xmin to xmax; all around where these are 360 degrees apart."""
        xmin, ymin, xmax, ymax = box
        xmax += 360 if xmax < xmin else 0
        if xmax - xmin >= 360 and ymin < ymax:
            self.whole = True
            rings = []
            for y, pole in ((ymin, -90), (ymax, 90)):
                if abs(y) < 90:
                    rings.append((path([(-180, y), (180, y)], "parallel", 4000), unit(0, pole)))
            self.areas.append(rings)
        elif xmin < xmax and ymin < ymax:
            corners = [(xmin, ymin), (xmax, ymin), (xmax, ymax), (xmin, ymax), (xmin, ymin)]
            self.areas.append([(path(corners, "parallel", 4000), unit((xmin + xmax) / 2, (ymin + ymax) / 2))])
        else:
            self.lines.append(path([(xmin, ymin), (xmax, ymax)], "parallel", 4000))

    def all(self) -> Any:
        """Directions of all points."""
        rings = [ring for area in self.areas for ring, _ in area]
        return np.vstack([np.empty((0, 3)), *self.lines, *rings])


class Plane:
    """Where shapes are compared; ``extent`` is farther out than all of them."""

    def __init__(self, shapes: list[Chains]) -> None:
        points = np.vstack([shape.all()[::7] for shape in shapes])
        places = spread(400)
        nearest = (places @ points.T).max(axis=1)
        away = math.degrees(math.acos(np.clip(nearest.min(), -1, 1)))
        if away < 1.5:
            raise UnclearError("edges are everywhere")
        self.centre = -places[nearest.argmin()]
        self.x = np.cross(self.centre, np.eye(3)[np.abs(self.centre).argmin()])
        self.x /= np.linalg.norm(self.x)
        self.y = np.cross(self.centre, self.x)
        extent = 2 / math.tan(math.radians(away / 2))
        self.world = shapely.box(-extent, -extent, extent, extent)
        self.spread = self.corners(spread(3000))

    def corners(self, directions: Any) -> Any:
        scale = 1 + directions @ self.centre
        return np.column_stack([directions @ self.x / scale, directions @ self.y / scale])

    def shape(self, chains: Chains, by: Any = (0.0, 0.0, 0.0)) -> Any:
        """The shape in the plane, turned ``by`` so much before."""
        parts = [self._area(area, chains.whole, np.asarray(by)) for area in chains.areas]
        if len(parts) > 1:
            parts = [shapely.union_all(parts)]
        for line in chains.lines:
            corners = self.corners(turned(line, np.asarray(by)))
            parts.append(shapely.Point(corners[0]) if len(np.unique(corners, axis=0)) == 1 else corners)
        lines = [part for part in parts if isinstance(part, np.ndarray)]
        rest = [part for part in parts if not isinstance(part, np.ndarray)]
        if len(lines) > 1:
            rest.append(shapely.MultiLineString(lines))
        elif lines:
            rest.append(shapely.LineString(lines[0]))
        if len(rest) > 1 and all(part.geom_type == "Point" for part in rest):
            return shapely.MultiPoint(rest)
        return rest[0] if len(rest) == 1 else shapely.GeometryCollection(rest)

    def _area(self, rings: list[tuple[Any, Any]], whole: bool, by: Any) -> Any:
        sides = [
            self._side(turned(ring, by), inside if inside is None else turned(inside[None], by))
            for ring, inside in rings
        ]
        shell, holes = (self.world, sides) if whole else (sides[0], sides[1:])
        return shapely.difference(shell, shapely.union_all(holes)) if holes else shell

    def _side(self, ring: Any, inside: Any) -> Any:
        corners = self.corners(ring)
        # Two edges may compute the vertex between them a bit apart, and then cross there.
        corners = corners[np.append(True, np.hypot(*np.diff(corners, axis=0).T) > 1e-12)]
        corners[-1] = corners[0]
        found = shapely.Polygon(corners)
        if not found.is_valid:
            raise UnclearError("a ring crosses itself")
        shapely.prepare(found)
        if inside is not None:
            return found if shapely.contains_xy(found, *self.corners(inside)[0]) else self.world.difference(found)
        share = shapely.contains_xy(found, *self.spread.T).mean()
        if abs(share - 0.5) < 0.04:
            raise UnclearError("half of the globe")
        return found if share < 0.5 else self.world.difference(found)


def relations_of(matrix: str, row: int, query: int) -> dict[str, bool]:
    """The relations that a DE-9IM matrix tells of shapes of these dimensions."""
    ii, ib, ie, bi, bb, be, ei, eb, _ = (None if one == "F" else int(one) for one in matrix)
    meets = any(one is not None for one in (ii, ib, bi, bb))
    inner = ii is not None
    in_query, in_row = ie is None and be is None, ei is None and eb is None
    if row == query:
        crosses = row == 1 and ii == 0
        overlaps = (ii == row if row == 1 else inner) and ie is not None and ei is not None
    else:
        crosses, overlaps = inner and (ie if row < query else ei) is not None, False
    return {
        "intersects": meets, "within": inner and in_query, "contains": inner and in_row, "touches": meets and not inner,
        "crosses": crosses, "overlaps": overlaps, "covers": meets and in_row, "covered_by": meets and in_query,
        "equals": inner and in_query and in_row,
    }  # fmt: skip


def compare(rows: list[Any], query: Any, edges: str, geod: Geod = WGS84) -> list[tuple[dict[str, bool], set[str]]]:
    """How each row stands to the query, a shape or a window, and which of the answers are not certain.

    Rows are shapes or None; of one that is None or empty nothing is said but that it meets nothing.
    """
    asked = Chains(query, edges, geod)
    chains = [None if row is None or row.is_empty else Chains(row, edges, geod) for row in rows]
    plane = Plane([asked, *(one for one in chains if one is not None)])
    queries = [plane.shape(asked, by) for by in ((0, 0, 0), *AXES)]
    around = shapely.total_bounds(queries)
    found = []
    for one in chains:
        nothing: tuple[dict[str, bool], set[str]] = (dict.fromkeys(RELATIONS, False), set())
        if one is None:
            found.append(nothing)
            continue
        try:
            shape = plane.shape(one)
        except UnclearError:
            found.append((nothing[0], set(RELATIONS)))
            continue
        sides = shape.bounds
        margin = 1e-3
        if (
            sides[0] > around[2] + margin or sides[2] < around[0] - margin
            or sides[1] > around[3] + margin or sides[3] < around[1] - margin
        ):  # fmt: skip
            found.append(nothing)
            continue
        dimension = shapely.get_dimensions(shape)
        answers = [
            relations_of(shapely.relate(shape, other), dimension, shapely.get_dimensions(other)) for other in queries
        ]
        unsure = {name for name in RELATIONS if len({one[name] for one in answers}) > 1}
        found.append((answers[0], unsure))
    return found


def distance(row: Any, query: Any, edges: str, geod: Geod = WGS84) -> tuple[float, float]:
    """Metres between two shapes that do not meet, by every tenth point along their edges, and how much less it may be.
    """
    ends, steps = [], []
    for shape in (row, query):
        chains = Chains(shape, edges, geod)
        pieces = [*chains.lines, *(ring for area in chains.areas for ring, _ in area)]
        pieces = [np.vstack([piece[:-1:10], piece[-1:]]) for piece in pieces]
        steps.append(max(float(np.linalg.norm(np.diff(piece, axis=0), axis=1).max(initial=0)) for piece in pieces))
        ends.append(np.vstack(pieces))
    longitudes = [np.degrees(np.arctan2(end[:, 1], end[:, 0])) for end in ends]
    latitudes = [np.degrees(np.arcsin(np.clip(end[:, 2], -1, 1))) for end in ends]
    places = []
    for end, y in zip(ends, latitudes, strict=True):
        normal = (geod.a / np.sqrt(1 - geod.es * np.sin(np.radians(y)) ** 2))[:, None]
        places.append(end * normal * [1, 1, 1 - geod.es])
    chords = np.sqrt(np.maximum(((places[0][:, None] - places[1][None]) ** 2).sum(axis=2), 0))
    i, j = np.nonzero(chords <= chords.min() * 1.01 + 1)
    kept = np.argsort(chords[i, j])[:20000]
    i, j = i[kept], j[kept]
    metres = np.asarray(geod.inv(longitudes[0][i], latitudes[0][i], longitudes[1][j], latitudes[1][j])[2])
    return float(metres.min()), sum(steps) / 2 * geod.a * 1.01
