"""Bounding boxes, with x ranges that may wrap around the antimeridian.

Spec: "Bounding Box" (Geospatial.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pqext.geo.kernels.edges import WORTH_WRAPPING

if TYPE_CHECKING:
    from pqext.core.format import metadata


@dataclass(frozen=True, slots=True)
class BoundingBox:
    """Bounding box: inclusive ranges of X and Y and, if present, of Z and M.

    If ``xmin > xmax``, the box :attr:`wraps`: it contains x >= xmin and x <= xmax, in degrees of longitude. A box read
    from a file can have any values; check :attr:`usable` before pruning with it.

    >>> BoundingBox(170, -170, -20, -10).intersects(BoundingBox(-175, -172, -15, 0))
    True
    """

    xmin: float
    xmax: float
    ymin: float
    ymax: float
    zmin: float | None = None
    zmax: float | None = None
    mmin: float | None = None
    mmax: float | None = None

    @property
    def wraps(self) -> bool:
        """Whether the box crosses the antimeridian."""
        return self.xmin > self.xmax

    @property
    def usable(self) -> bool:
        """Whether the box can prune: X and Y are finite, Y is not inverted, and an inverted X has longitudes."""
        finite = all(math.isfinite(value) for value in (self.xmin, self.xmax, self.ymin, self.ymax))
        if not finite or self.ymin > self.ymax:
            return False
        return not self.wraps or (self.xmin <= 180 and self.xmax >= -180)

    @property
    def width(self) -> float:
        """Extent along X, measured across the antimeridian if the box wraps."""
        return self.xmax - self.xmin + (360 if self.wraps else 0)

    def intersects(self, other: BoundingBox) -> bool:
        """Return whether the boxes share a point in X and Y; True if either box is not usable."""
        if not (self.usable and other.usable):
            return True
        if self.ymin > other.ymax or other.ymin > self.ymax:
            return False
        if self.wraps and other.wraps:
            return True
        if self.wraps or other.wraps:
            return other.xmax >= self.xmin or other.xmin <= self.xmax
        return other.xmax >= self.xmin and other.xmin <= self.xmax

    def contains(self, other: BoundingBox) -> bool:
        """Return whether ``other`` lies within this box in X and Y; False if either box is not usable."""
        if not (self.usable and other.usable and self.ymin <= other.ymin and other.ymax <= self.ymax):
            return False
        if self.wraps and not other.wraps:
            return other.xmin >= self.xmin or other.xmax <= self.xmax
        if other.wraps and not self.wraps:
            return self.xmin <= -180 and self.xmax >= 180
        return self.xmin <= other.xmin and other.xmax <= self.xmax

    def union(self, other: BoundingBox, *, longitudes: bool = False) -> BoundingBox:
        """Return a box that contains both boxes.

        If either box wraps, the result wraps or covers all longitudes. With ``longitudes``, the result also wraps if
        that makes it narrower by at least a tenth of the globe.
        """
        xmin, xmax = _union_x(self, other, longitudes)
        return BoundingBox(
            xmin,
            xmax,
            min(self.ymin, other.ymin),
            max(self.ymax, other.ymax),
            _optional_min(self.zmin, other.zmin),
            _optional_max(self.zmax, other.zmax),
            _optional_min(self.mmin, other.mmin),
            _optional_max(self.mmax, other.mmax),
        )

    def wrap_around(self, gap: tuple[float, float] | None) -> BoundingBox:
        """Return the box that wraps around ``gap``, an empty range of longitudes.

        Returns the box itself if ``gap`` is None, the box wraps already, or the result would not be narrower by at
        least a tenth of the globe.
        """
        if gap is None or self.wraps or 360 - (gap[1] - gap[0]) > self.width - WORTH_WRAPPING:
            return self
        return replace(self, xmin=gap[1], xmax=gap[0])

    def to_metadata(self) -> metadata.BoundingBox:
        """Return the box as a Thrift structure."""
        from pqext.core.format import metadata

        return metadata.BoundingBox(
            xmin=self.xmin,
            xmax=self.xmax,
            ymin=self.ymin,
            ymax=self.ymax,
            zmin=self.zmin,
            zmax=self.zmax,
            mmin=self.mmin,
            mmax=self.mmax,
        )

    @classmethod
    def from_metadata(cls, box: metadata.BoundingBox) -> BoundingBox:
        """Create a box from a Thrift structure, without validation."""
        return cls(box.xmin, box.xmax, box.ymin, box.ymax, box.zmin, box.zmax, box.mmin, box.mmax)


def _union_x(first: BoundingBox, second: BoundingBox, longitudes: bool) -> tuple[float, float]:
    if first.wraps and second.wraps:
        west, east = min(first.xmin, second.xmin), max(first.xmax, second.xmax)
        return (west, east) if west > east else (-180.0, 180.0)
    if first.wraps or second.wraps:
        wrapped, plain = (first, second) if first.wraps else (second, first)
        if plain.xmin >= wrapped.xmin or plain.xmax <= wrapped.xmax:
            return wrapped.xmin, wrapped.xmax
        # Widen the nearer side; a box that reaches both sides covers all longitudes.
        west, east = min(wrapped.xmin, plain.xmin), max(wrapped.xmax, plain.xmax)
        if wrapped.xmin - west <= east - wrapped.xmax and west > wrapped.xmax:
            return west, wrapped.xmax
        return (wrapped.xmin, east) if east < wrapped.xmin else (min(-180.0, west), max(180.0, east))
    plain = BoundingBox(min(first.xmin, second.xmin), max(first.xmax, second.xmax), 0, 0)
    if longitudes and plain.xmin >= -180 and plain.xmax <= 180:
        west_box, east_box = sorted((first, second), key=lambda box: box.xmin)
        if west_box.xmax < east_box.xmin:
            plain = plain.wrap_around((west_box.xmax, east_box.xmin))
    return plain.xmin, plain.xmax


def _optional_min(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else min(a, b)


def _optional_max(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else max(a, b)
