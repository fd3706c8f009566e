"""Evaluate a spatial predicate on the box around geometries, with the result no, yes or maybe.

*No* means that no geometry within the box satisfies the predicate, not even an empty one. *Yes* means that every
geometry within the box that has X and Y does. Everything else is *maybe*, in particular boxes that are not usable. On
the globe, -180 and 180 are the same meridian and a pole is one point. Spec: "Bounding Box" (Geospatial.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pqext.geo.box import BoundingBox

Operation = Literal[
    "intersects",
    "disjoint",
    "within",
    "contains",
    "touches",
    "crosses",
    "overlaps",
    "covers",
    "covered_by",
    "equals",
    "dwithin",
]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)

Flags: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.float64]

NEAR = 1e-9
"""Maximum difference in degrees, a tenth of a millimetre, between longitudes that are treated as equal."""


class Answer(IntEnum):
    """Result of a predicate on a box: no geometry in the box satisfies it, every geometry does, or either is possible.
    """

    NO = 0
    YES = 1
    MAYBE = 2


@dataclass(frozen=True, slots=True)
class Boxes:
    """Arrays of boxes without NaN. A box with ``xmin > xmax`` wraps around the antimeridian."""

    xmin: Numbers
    xmax: Numbers
    ymin: Numbers
    ymax: Numbers

    @property
    def wraps(self) -> Flags:
        """Mask of the boxes that wrap around the antimeridian."""
        return self.xmin > self.xmax

    @property
    def spans_globe(self) -> Flags:
        """Mask of the boxes that span all longitudes."""
        return ~self.wraps & (self.xmax - self.xmin >= 360)

    def usable(self, geographic: bool) -> Flags:
        """Return a mask of the boxes that are finite, have ordered y, and wrap only in longitudes."""
        finite = np.isfinite(self.xmin) & np.isfinite(self.xmax) & np.isfinite(self.ymin) & np.isfinite(self.ymax)
        wrapped = (self.xmin <= 180) & (self.xmax >= -180) & geographic
        return finite & (self.ymin <= self.ymax) & (~self.wraps | wrapped)


@dataclass(frozen=True, slots=True)
class Region:
    """Query box, or box around the query geometry, that :class:`Boxes` are compared with. Bounds may be infinite.

    If ``wraps``, the region contains x >= xmin and x <= xmax. If ``globe``, longitudes are angles and a pole is one
    point.
    """

    xmin: float
    xmax: float
    ymin: float
    ymax: float
    wraps: bool
    globe: bool

    @classmethod
    def from_box(cls, box: BoundingBox, globe: bool) -> Region:
        """Create the region of a box."""
        return cls(box.xmin, box.xmax, box.ymin, box.ymax, box.wraps, globe)

    @property
    def spans_globe(self) -> bool:
        """Whether the region contains every longitude."""
        return not self.wraps and self.xmax - self.xmin >= 360

    @property
    def has_area(self) -> bool:
        return self.ymin < self.ymax and (self.wraps or self.xmin < self.xmax)

    def may_intersect(self, boxes: Boxes) -> Flags:
        """Return a mask of the boxes that may intersect the region. False is definitive."""
        wraps = boxes.wraps
        if self.wraps:
            x = wraps | (boxes.xmax >= self.xmin) | (boxes.xmin <= self.xmax)
        else:
            west, east = boxes.xmax >= self.xmin, boxes.xmin <= self.xmax
            x = np.where(wraps, west | east, west & east)
        y = (boxes.ymin <= self.ymax) & (boxes.ymax >= self.ymin)
        if not self.globe:
            return x & y
        if self.spans_globe:
            return y
        own = 360 + self.xmax - self.xmin if self.wraps else self.xmax - self.xmin
        theirs = np.where(wraps, 360 + boxes.xmax - boxes.xmin, boxes.xmax - boxes.xmin)
        turn = np.mod(boxes.xmin - self.xmin, 360)
        x |= boxes.spans_globe | (turn <= own + NEAR) | (360 - turn <= theirs + NEAR)
        return (x & y) | self._share_pole(boxes)

    def contains(self, boxes: Boxes, strictly: bool = False) -> Flags:
        """Return a mask of the boxes that lie in the region, or in its interior if ``strictly``."""
        less = np.less if strictly else np.less_equal
        wraps = boxes.wraps
        if self.spans_globe and self.globe:
            x = np.ones(len(wraps), dtype=np.bool_)
        elif self.wraps:
            west, east = less(self.xmin, boxes.xmin), less(boxes.xmax, self.xmax)
            x = np.where(wraps, west & east, west | east)
        else:
            x = ~wraps & less(self.xmin, boxes.xmin) & less(boxes.xmax, self.xmax)
        poles = self.spans_globe and self.globe  # a cap around a pole contains the pole
        south = less(self.ymin, boxes.ymin) | (poles and self.ymin <= -90)
        north = less(boxes.ymax, self.ymax) | (poles and self.ymax >= 90)
        return x & south & north

    def may_be_within(self, boxes: Boxes) -> Flags:
        """Return a mask of the boxes that may contain the region. False is definitive."""
        wraps = boxes.wraps
        if self.wraps:
            x = np.where(wraps, (boxes.xmin <= self.xmin) & (boxes.xmax >= self.xmax), False)
            x |= ~wraps & (boxes.xmin <= -180) & (boxes.xmax >= 180)
        else:
            whole = (boxes.xmin <= self.xmin) & (boxes.xmax >= self.xmax)
            x = np.where(wraps, (boxes.xmin <= self.xmin) | (boxes.xmax >= self.xmax), whole)
        y = (boxes.ymin <= self.ymin) & (boxes.ymax >= self.ymax)
        if not self.globe:
            return x & y
        own = 360 + self.xmax - self.xmin if self.wraps else self.xmax - self.xmin
        theirs = np.where(wraps, 360 + boxes.xmax - boxes.xmin, boxes.xmax - boxes.xmin)
        turn = np.mod(self.xmin - boxes.xmin + NEAR, 360) - NEAR
        x |= boxes.spans_globe | (turn + own <= theirs + NEAR)
        return (x & y) | (self._share_pole(boxes) & y)

    def _share_pole(self, boxes: Boxes) -> Flags:
        """Return a mask of the boxes that reach a pole that the region also reaches."""
        north = boxes.ymax >= 90 - NEAR if self.ymax >= 90 - NEAR else np.zeros(len(boxes.ymax), dtype=np.bool_)
        return north | (boxes.ymin <= NEAR - 90) if self.ymin <= NEAR - 90 else north


@dataclass(frozen=True, slots=True)
class BoxTest:
    """Test of ``operation`` on boxes.

    ``outer`` is a box around the query and ``inner`` a box within it. No geometry outside ``reach`` satisfies
    ``dwithin`` with ``distance``. ``outer`` is None if the query is empty, and ``inner`` is None if no box within the
    query is known.
    """

    operation: Operation
    outer: Region | None
    inner: Region | None
    reach: Region | None
    distance: float
    geographic: bool

    def is_far_from(self, box: BoundingBox) -> bool:
        """Return whether a single planar box is clearly disjoint from the query, without the overhead of arrays.

        Returns False for some disjoint boxes; :meth:`answers` returns the exact result.
        """
        reach = self.reach or self.outer
        if reach is None or reach.wraps or reach.globe or box.wraps or not box.usable:
            return False
        return (
            box.xmax < reach.xmin or box.xmin > reach.xmax or box.ymax < reach.ymin or box.ymin > reach.ymax
        )

    def answers(self, boxes: Boxes) -> NDArray[np.uint8]:
        """Return an :class:`Answer` for each box."""
        no, yes = self._proofs(boxes)
        result = np.where(no, Answer.NO, np.where(yes, Answer.YES, Answer.MAYBE)).astype(np.uint8)
        result[~boxes.usable(self.geographic)] = Answer.MAYBE
        return result

    def _proofs(self, boxes: Boxes) -> tuple[Flags, Flags]:
        """Return two masks: boxes where no geometry satisfies the operation, and boxes where every geometry does."""
        never = np.zeros(len(boxes.xmin), dtype=np.bool_)
        outer, inner, operation = self.outer, self.inner, self.operation
        if outer is None:  # only empty geometries equal an empty one
            return (never if operation in ("disjoint", "equals") else ~never), (
                ~never if operation == "disjoint" else never
            )
        apart = ~(self.reach or outer).may_intersect(boxes)
        held = never if inner is None else inner.contains(boxes)
        inside = never if inner is None or not inner.has_area else inner.contains(boxes, strictly=True)
        match operation:
            case "intersects" | "covered_by":
                return apart, held
            case "disjoint":
                return never, apart
            case "within":
                return apart, inside
            case "contains" | "covers" | "equals":
                return apart | ~outer.may_be_within(boxes), never
            case "touches":
                return apart | inside, never
            case "crosses" | "overlaps":
                return apart | inside, never
        near = never if inner is None else self._is_near_everywhere(inner, boxes)
        return apart, held | near

    def _is_near_everywhere(self, inner: Region, boxes: Boxes) -> Flags:
        """Return a mask of the boxes that lie completely within ``distance`` of ``inner`` in the plane."""
        if inner.globe or inner.wraps:
            return np.zeros(len(boxes.xmin), dtype=np.bool_)
        x = np.maximum(np.maximum(inner.xmin - boxes.xmin, boxes.xmax - inner.xmax), 0)
        y = np.maximum(np.maximum(inner.ymin - boxes.ymin, boxes.ymax - inner.ymax), 0)
        return ~boxes.wraps & (np.hypot(x, y) * (1 + 1e-12) <= self.distance)
