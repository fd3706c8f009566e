"""Draw a map of the row groups' boxes as inline SVG, in longitude and latitude (or x and y) without a projection."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pqext.core.base.text import format_size
from pqext.report.land import outlines
from pqext.report.markup import Markup, join, number, tag
from pqext.report.model import Box, DemoReport, FilePicture, Question, Reading

WIDTH = 1000.0
_MAX_HEIGHT = 620.0
_CORNER = 34.0


@dataclass(frozen=True, slots=True)
class Projection:
    """Projection of coordinates to the drawing, whose y axis points downwards."""

    extent: Box
    scale: float

    @classmethod
    def from_boxes(cls, boxes: Iterable[Box]) -> Projection:
        """Return a projection that shows all boxes: the world if they span more than half of it."""
        spans = [(x, box) for box in boxes for x in box.spans()]
        if not spans:
            return cls(Box(-180, 180, -90, 90), WIDTH / 360)
        xmin, xmax = min(x[0] for x, _ in spans), max(x[1] for x, _ in spans)
        ymin, ymax = min(box.ymin for _, box in spans), max(box.ymax for _, box in spans)
        if xmin >= -180 and xmax <= 180 and ymin >= -90 and ymax <= 90 and xmax - xmin > 180:
            return cls(Box(-180, 180, -90, 90), WIDTH / 360)
        margin = 0.06 * max(xmax - xmin, ymax - ymin) or 1.0
        extent = Box(xmin - margin, xmax + margin, ymin - margin, ymax + margin)
        return cls(extent, min(WIDTH / (extent.xmax - extent.xmin), _MAX_HEIGHT / (extent.ymax - extent.ymin)))

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


def draw(report: DemoReport) -> Markup:
    """Draw the map with one layer for each query and file; the page's controls show one layer at a time."""
    groups = [group for picture in report.files for group in picture.row_groups]
    boxes = [group.box for group in groups if group.box is not None]
    boxes += [question.box for question in report.questions if question.box is not None]
    projection = Projection.from_boxes(box for box in boxes if is_drawable(box))
    layers = [
        _layer(projection, question, q, picture, f, _reading(question, picture))
        for f, picture in enumerate(report.files)
        for q, question in enumerate(report.questions)
    ]
    return tag(
        "svg",
        tag("rect", class_="sea", x=0, y=0, width=number(projection.width), height=number(projection.height)),
        coast(projection),
        graticule(projection),
        tag("path", class_="rows", d=_dots(projection, report.points)),
        *layers,
        class_="map",
        viewBox=f"0 0 {number(projection.width)} {number(projection.height)}",
        role="img",
        aria_label="Map of the bounding boxes of the row groups",
    )


def _reading(question: Question, picture: FilePicture) -> Reading | None:
    return next((reading for reading in question.readings if reading.file == picture.label), None)


def _layer(
    projection: Projection, question: Question, q: int, picture: FilePicture, f: int, reading: Reading | None
) -> Markup:
    read_groups = reading.row_groups if reading is not None else frozenset()
    drawn = []
    for group in sorted(picture.row_groups, key=lambda group: group.index in read_groups):
        if group.box is None or not is_drawable(group.box):
            continue
        read = group.index in read_groups
        text = (
            f"row group {group.index}: {'read' if read else 'skipped'}\n{group.rows} rows, {format_size(group.bytes)}\n"
            f"x {group.box.xmin:g} to {group.box.xmax:g}, y {group.box.ymin:g} to {group.box.ymax:g}"
        )
        drawn.append(box_shape(projection, group.box, "read" if read else "skipped", text))
    if question.box is not None:
        drawn.append(box_shape(projection, question.box, "asked", "the box of the question"))
    drawn.append(tag("path", class_="hits", d=_dots(projection, question.points)))
    return tag("g", *drawn, class_=f"layer q{q} f{f}")


def box_shape(projection: Projection, box: Box, class_name: str, text: str) -> Markup:
    """Draw a box with an SVG class, in two halves if it wraps around; ``text`` is the tooltip."""
    title = tag("title", *_lines(text))
    parts = []
    for xmin, xmax in box.spans():
        # A box with only one point must be visible.
        width = max((xmax - xmin) * projection.scale, 2.0)
        height = max((box.ymax - box.ymin) * projection.scale, 2.0)
        parts.append(
            tag(
                "rect",
                x=number(projection.x(xmin)),
                y=number(projection.y(box.ymax)),
                width=number(width),
                height=number(height),
            )
        )
    return tag("g", title, *parts, class_=class_name)


def _lines(text: str) -> list[Markup]:
    # Lines are escaped separately: a line break within a name must not be shown as one of the tooltip.
    lines: list[Markup] = []
    for line in text.split("\n"):
        lines += [join([line]), Markup("\n")]
    return lines[:-1]


def _dots(projection: Projection, points: Sequence[tuple[float, float]]) -> str:
    return "".join(
        f"M{number(projection.x(x))} {number(projection.y(y))}h0" for x, y in points if abs(x) < 1e12 and abs(y) < 1e12
    )


def coast(projection: Projection) -> Markup:
    """Draw the coastlines if :func:`has_land` is true; otherwise return empty markup."""
    if not has_land(projection):
        return Markup("")
    rings = (
        "M" + "L".join(f"{number(projection.x(x))} {number(projection.y(y))}" for x, y in ring) + "Z"
        for ring in outlines()
    )
    return tag("path", class_="land", d="".join(rings))


def has_land(projection: Projection) -> bool:
    """Return whether the coordinates seem to be degrees, and the map is large enough for the coarse outlines."""
    extent = projection.extent
    if extent.xmax - extent.xmin < 60:
        return False
    return extent.xmin >= -200 and extent.xmax <= 200 and extent.ymin >= -100 and extent.ymax <= 100


def graticule(projection: Projection) -> Markup:
    """Draw grid lines at round x and y values, with labels."""
    extent = projection.extent
    step = _step(max(extent.xmax - extent.xmin, extent.ymax - extent.ymin))
    parts = []
    for k in range(math.ceil(extent.xmin / step), math.floor(extent.xmax / step) + 1):
        x = projection.x(k * step)
        parts.append(tag("path", d=f"M{number(x)} 0V{number(projection.height)}"))
        if _CORNER <= x <= projection.width - _CORNER:  # the corners belong to neither axis
            parts.append(tag("text", f"{k * step:g}", x=number(x + 2), y=number(projection.height - 4)))
    for k in range(math.ceil(extent.ymin / step), math.floor(extent.ymax / step) + 1):
        y = projection.y(k * step)
        parts.append(tag("path", d=f"M0 {number(y)}H{number(projection.width)}"))
        if _CORNER <= y <= projection.height - _CORNER:
            parts.append(tag("text", f"{k * step:g}", x=3, y=number(y - 2)))
    return tag("g", *parts, class_="graticule")


def _step(extent: float) -> float:
    if 180 < extent <= 500:  # probably degrees of longitude and latitude
        return 30.0
    rough = extent / 8
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= rough)


def is_drawable(box: Box) -> bool:
    """Return whether the coordinates of the box are small enough to be drawn."""
    return all(abs(value) < 1e12 for value in (box.xmin, box.xmax, box.ymin, box.ymax))
