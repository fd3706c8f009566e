"""Geometries on the globe compared the slow way: edges as a thousand points, in a stereographic projection.

The projection keeps what meets what, has no antimeridian and no poles, and is centred on the two shapes compared, so
that the one point it loses lies on the other side of the globe. It takes shapes within :data:`CAP` of some point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import shapely
from pyproj import Geod

CAP = 55.0
"""Degrees from its centre within which a shape must lie."""

WGS84 = Geod(ellps="WGS84")


def unit(x: Any, y: Any) -> Any:
    """Directions, one a row, of longitudes and latitudes in degrees."""
    x, y = np.radians(x), np.radians(y)
    return np.stack([np.cos(y) * np.cos(x), np.cos(y) * np.sin(x), np.sin(y)], axis=-1)


def edge(one: Any, other: Any, edges: str, points: int, geod: Geod = WGS84) -> Any:
    """Directions of points along an edge, both ends among them."""
    share = np.linspace(0, 1, points)[:, None]
    if edges == "parallel":
        corners = np.asarray(one) * (1 - share) + np.asarray(other) * share
        return unit(corners[:, 0], corners[:, 1])
    a, b = unit(*one), unit(*other)
    angle = math.atan2(float(np.linalg.norm(np.cross(a, b))), float(a @ b))
    if angle == 0:
        return np.stack([a, b])
    if edges == "spherical":
        return (np.sin((1 - share) * angle) * a + np.sin(share * angle) * b) / math.sin(angle)
    inner = geod.npts(*one, *other, points - 2)
    return np.vstack([a, unit(*np.array(inner).T), b])


def path(corners: Any, edges: str, points: int = 1000, geod: Geod = WGS84) -> Any:
    """Directions along a line or ring."""
    if len(corners) == 1:
        return unit(*np.asarray(corners).T)
    pieces = [edge(one, other, edges, points, geod) for one, other in pairwise(corners)]
    return np.vstack(pieces)


def paths(shape: Any) -> list[Any]:
    """Corners of a shape's points, lines and rings."""
    if hasattr(shape, "geoms"):
        return [corners for part in shape.geoms for corners in paths(part)]
    if shape.geom_type == "Polygon":
        return [np.array(ring.coords) for ring in (shape.exterior, *shape.interiors)]
    return [np.array(shape.coords)]


def box(xmin: float, ymin: float, xmax: float, ymax: float) -> Any:
    """A box of meridians and parallels as a polygon whose edges are straight in degrees, eastward from xmin."""
    return shapely.box(xmin, ymin, xmax if xmax >= xmin else xmax + 360, ymax)


class Projection:
    """The plane in which shapes, each with how its edges run, are compared."""

    def __init__(self, *shapes: tuple[Any, str]) -> None:
        directions = [path(corners, edges, 30) for shape, edges in shapes for corners in paths(shape)]
        centres = [d.mean(axis=0) / np.linalg.norm(d.mean(axis=0)) for d in directions]
        centre = np.sum(centres, axis=0)
        self.centre = centre / np.linalg.norm(centre)
        if min(float((d @ self.centre).min()) for d in directions) < math.cos(math.radians(170)):
            raise ValueError("the shapes are too large")
        side = np.cross(self.centre, [0.0, 0.0, 1.0] if abs(self.centre[2]) < 0.9 else [1.0, 0.0, 0.0])
        self.x = side / np.linalg.norm(side)
        self.y = np.cross(self.centre, self.x)

    def corners(self, corners: Any, edges: str) -> Any:
        found = path(corners, edges)
        scale = 1 + found @ self.centre
        return np.column_stack([found @ self.x / scale, found @ self.y / scale])

    def shape(self, shape: Any, edges: str) -> Any:
        """The shape in the plane."""
        if hasattr(shape, "geoms"):
            parts = [self.shape(part, edges) for part in shape.geoms]
            return shapely.union_all(parts) if shape.geom_type == "MultiPolygon" else type(shape)(parts)
        if shape.geom_type == "Polygon":
            shell, *holes = (self.corners(np.array(r.coords), edges) for r in (shape.exterior, *shape.interiors))
            return shapely.Polygon(shell, holes)
        return type(shape)(self.corners(np.array(shape.coords), edges))


def relations(operations: Iterable[str], row: Any, row_edges: str, query: Any, query_edges: str) -> dict[str, bool]:
    """How the row stands to the query, by shapely's names; neither is empty."""
    plane = Projection((row, row_edges), (query, query_edges))
    one, other = plane.shape(row, row_edges), plane.shape(query, query_edges)
    return {operation: bool(getattr(shapely, operation)(one, other)) for operation in operations}


def distance(row: Any, row_edges: str, query: Any, query_edges: str, points: int = 400) -> float:
    """Metres between two shapes that do not meet, by all pairs of points along their edges."""
    one = np.vstack([path(corners, row_edges, points) for corners in paths(row)])
    other = np.vstack([path(corners, query_edges, points) for corners in paths(query)])
    x0, y0 = np.degrees(np.arctan2(one[:, 1], one[:, 0])), np.degrees(np.arcsin(np.clip(one[:, 2], -1, 1)))
    x1, y1 = np.degrees(np.arctan2(other[:, 1], other[:, 0])), np.degrees(np.arcsin(np.clip(other[:, 2], -1, 1)))
    products = one @ other.T
    count = min(200, products.size)
    near = np.flatnonzero(products >= np.partition(products, -count, axis=None)[-count])
    i, j = np.unravel_index(near, (len(one), len(other)))
    return float(np.min(WGS84.inv(x0[i], y0[i], x1[j], y1[j])[2]))
