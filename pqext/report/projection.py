"""Projection of the coordinates of a CRS to a drawing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pqext.report.model import Box

WIDTH = 1000.0
_NARROWEST, _WIDEST = 1.25, 3.0
"""Limits of the ratio of width to height of a drawing."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Conversion from coordinates of a CRS to positions in a drawing, whose y axis points downwards.

    ``crs`` is a ``pyproj.CRS``, or None if it is unknown. Longitudes repeat every 360 degrees.
    """

    extent: Box
    scale: float
    crs: Any = None

    @classmethod
    def from_boxes(cls, boxes: Iterable[Box], crs: Any = None) -> Projection:
        """Create a projection whose extent contains all boxes; the world if they span more than 180 degrees.

        Longitudes may be centred on the antimeridian. The shape of the drawing is limited.
        """
        drawn = [box for box in boxes if is_drawable(box)]
        is_geographic = crs is not None and crs.is_geographic
        spans = [x for box in drawn for x in box.spans()]
        world = cls(Box(-180, 180, -90, 90), WIDTH / 360, crs)
        if not spans:
            return world
        xmin, xmax = min(x[0] for x in spans), max(x[1] for x in spans)
        ymin, ymax = min(box.ymin for box in drawn), max(box.ymax for box in drawn)
        if is_geographic and xmin >= -180 and xmax <= 180 and xmax - xmin > 180:
            spans = [(box.xmin % 360, box.xmin % 360 + _width(box)) for box in drawn]
            xmin, xmax = min(x[0] for x in spans), max(x[1] for x in spans)
            if xmax - xmin > 180:
                return world
        margin = 0.06 * max(xmax - xmin, ymax - ymin) or 1.0
        width, height = xmax - xmin + 2 * margin, ymax - ymin + 2 * margin
        width, height = max(width, _NARROWEST * height), max(height, width / _WIDEST)
        x, y = (xmin + xmax) / 2, (ymin + ymax) / 2
        return cls(Box(x - width / 2, x + width / 2, y - height / 2, y + height / 2), WIDTH / width, crs)

    def spans(self, box: Box) -> Sequence[tuple[float, float]]:
        """Return the x ranges of the box within the extent."""
        if self.crs is None or not self.crs.is_geographic:
            return box.spans()
        copies = [(box.xmin + turn, box.xmin + turn + _width(box)) for turn in (-360, 0, 360)]
        west, east = self.extent.xmin, self.extent.xmax
        return [(max(left, west), min(right, east)) for left, right in copies if left <= east and right >= west]

    @property
    def width(self) -> float:
        """Width of the drawing."""
        return (self.extent.xmax - self.extent.xmin) * self.scale

    @property
    def height(self) -> float:
        """Height of the drawing."""
        return (self.extent.ymax - self.extent.ymin) * self.scale

    def x(self, x: float) -> float:
        """Return the horizontal position of a coordinate in the drawing."""
        return (x - self.extent.xmin) * self.scale

    def y(self, y: float) -> float:
        """Return the vertical position of a coordinate in the drawing."""
        return (self.extent.ymax - y) * self.scale


def is_drawable(box: Box) -> bool:
    """Return whether the coordinates of the box are small enough to be drawn."""
    return all(abs(value) < 1e12 for value in (box.xmin, box.xmax, box.ymin, box.ymax))


def _width(box: Box) -> float:
    return box.xmax - box.xmin + (360 if box.xmin > box.xmax else 0)
