"""Draw geometries on a map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pqext.report.map import path
from pqext.report.markup import Markup, tag
from pqext.report.projection import Projection


@dataclass(frozen=True, slots=True)
class Shapes:
    """Geometries as an array of shapely; with ``on_globe``, their edges take the short way around the globe."""

    geometries: Any
    on_globe: bool = False

    @property
    def vertices(self) -> int:
        """Number of vertices of all geometries."""
        import shapely

        return int(shapely.get_num_coordinates(self.geometries).sum())


def draw_shapes(projection: Projection, shapes: Shapes) -> Markup:
    """Draw polygons, lines and points, each as one path."""
    import shapely

    parts = shapely.get_parts(shapely.get_parts(shapes.geometries))  # collections contain multipolygons
    if shapes.on_globe:
        parts = [shapely.get_parts(_unwrap(part)) for part in parts]
        parts = np.concatenate(parts) if parts else np.array([], object)
    if projection.crs is not None and projection.crs.is_geographic:
        turns = (np.array([turn, 0]) for turn in (-360, 0, 360))
        parts = np.concatenate([shapely.transform(parts, turn.__add__) for turn in turns])
    extent = projection.extent
    visible = shapely.box(extent.xmin, extent.ymin, extent.xmax, extent.ymax)
    parts = parts[shapely.intersects(shapely.envelope(parts), visible)]
    dimensions = shapely.get_dimensions(parts)
    return tag(
        "g",
        *(
            tag("path", class_=name, d=path(projection, parts[dimensions == dimension]))
            for dimension, name in ((2, "area"), (1, "line"), (0, "dot"))
            if (dimensions == dimension).any()
        ),
        class_="shapes",
    )


def _unwrap(part: Any) -> Any:
    """Return a geometry whose longitudes do not jump; rings around a pole are closed over it."""
    import shapely

    if part.geom_type == "Point" or part.is_empty or not np.isfinite(shapely.get_coordinates(part)).all():
        return part
    rings = shapely.get_rings(part) if part.geom_type == "Polygon" else [part]
    results = []
    for ring in rings:
        points = shapely.get_coordinates(ring)
        points[:, 0] = np.unwrap(points[:, 0], period=360)
        if part.geom_type == "Polygon" and abs(points[-1, 0] - points[0, 0]) > 180:
            pole = float(np.copysign(90, points[:, 1].mean()))
            points = np.vstack([points, [points[-1, 0], pole], [points[0, 0], pole]])
        results.append(points)
    if part.geom_type != "Polygon":
        return shapely.linestrings(results[0])
    return shapely.polygons(results[0], [shapely.linearrings(hole) for hole in results[1:]] or None)
