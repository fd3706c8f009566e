"""Draw boxes and geometries on maps as inline SVG, in the coordinates of their CRS.

A map is a part of a page and takes its colours from the style sheet. The small map for notebooks has a limited size and
contains its colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pqext.core.base.text import format_size
from pqext.report.land import land
from pqext.report.markup import Markup, format_number, join, tag
from pqext.report.model import Box, DemoReport, FilePicture, Question, Reading
from pqext.report.projection import Projection, is_drawable

MAX_BYTES = 40_000
"""Maximum size of a small map; geometries are simplified, then sampled, until they fit."""
_COARSEST = 1e5
"""Tolerance beyond which no geometries are drawn; a drawing is about 1,000 units wide."""
_SMALL_WIDTH = 420
_INK = "currentColor"
_ATTRIBUTES = {
    'class="area"': 'fill="#2596be" fill-opacity=".35" stroke="#2596be"',
    'class="line"': 'fill="none" stroke="#2596be"',
    'class="dot"': 'stroke="#2596be" stroke-width="6" stroke-linecap="round"',
    'class="shapes"': 'stroke-width="2"',
    'class="graticule"': f'fill="{_INK}" stroke="{_INK}" stroke-opacity=".25" font-size="24" font-family="sans-serif"',
    "<text ": '<text stroke="none" ',
}


def draw(report: DemoReport) -> Markup:
    """Draw a map with one layer for each query and file. The controls of the page show one layer at a time."""
    import pyproj

    groups = [group for picture in report.files for group in picture.row_groups]
    boxes = [group.box for group in groups if group.box is not None]
    boxes += [question.box for question in report.questions if question.box is not None]
    projection = Projection.from_boxes(boxes, pyproj.CRS("OGC:CRS84"))
    layers = [
        _draw_layer(projection, question, q, picture, f, _find_reading(question, picture))
        for f, picture in enumerate(report.files)
        for q, question in enumerate(report.questions)
    ]
    return tag(
        "svg",
        tag(
            "rect",
            class_="sea",
            x=0,
            y=0,
            width=format_number(projection.width),
            height=format_number(projection.height),
        ),
        draw_land(projection),
        tag("path", class_="rows", d=_dots_path(projection, report.points)),
        *layers,
        draw_graticule(projection),
        class_="map",
        viewBox=f"0 0 {format_number(projection.width)} {format_number(projection.height)}",
        role="img",
        aria_label="Map of the bounding boxes of the row groups",
    )


def _find_reading(question: Question, picture: FilePicture) -> Reading | None:
    return next((reading for reading in question.readings if reading.file == picture.label), None)


def _draw_layer(
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
        drawn.append(draw_box(projection, group.box, "read" if read else "skipped", text))
    if question.box is not None:
        drawn.append(draw_box(projection, question.box, "asked", "the box of the question"))
    drawn.append(tag("path", class_="hits", d=_dots_path(projection, question.points)))
    return tag("g", *drawn, class_=f"layer q{q} f{f}")


def draw_box(projection: Projection, box: Box, class_name: str, text: str) -> Markup:
    """Draw a box, as two rectangles if it wraps around the antimeridian; ``text`` is the tooltip."""
    title = tag("title", *_tooltip_lines(text))
    parts = []
    for xmin, xmax in projection.spans(box):
        # A box with only one point must be visible.
        width = max((xmax - xmin) * projection.scale, 2.0)
        height = max((box.ymax - box.ymin) * projection.scale, 2.0)
        parts.append(
            tag(
                "rect",
                x=format_number(projection.x(xmin)),
                y=format_number(projection.y(box.ymax)),
                width=format_number(width),
                height=format_number(height),
            )
        )
    return tag("g", title, *parts, class_=class_name)


def _tooltip_lines(text: str) -> list[Markup]:
    # Lines are escaped separately: a line break within a name must not be shown as one of the tooltip.
    lines: list[Markup] = []
    for line in text.split("\n"):
        lines += [join([line]), Markup("\n")]
    return lines[:-1]


def _dots_path(projection: Projection, points: Sequence[tuple[float, float]]) -> str:
    return "".join(
        f"M{format_number(projection.x(x))} {format_number(projection.y(y))}h0"
        for x, y in points
        if abs(x) < 1e12 and abs(y) < 1e12
    )


def draw_land(projection: Projection) -> Markup:
    """Draw the land. Return empty markup if the CRS is unknown, or if the map is too small for a coarse outline."""
    area = land(projection)
    return Markup("") if area is None else tag("path", class_="land", d=svg_path(projection, area))


def svg_path(projection: Projection, geometries: Any) -> str:
    """Return shapely geometries as SVG path data. Points become lines of length 0."""
    import shapely

    parts = shapely.get_parts(shapely.get_parts(geometries))
    polygons = shapely.get_type_id(parts) == shapely.GeometryType.POLYGON
    drawn = []
    for part in [*parts[~polygons], *shapely.get_rings(parts[polygons])]:
        points = [
            f"{format_number(projection.x(x))} {format_number(projection.y(y))}"
            for x, y in shapely.get_coordinates(part)
            if abs(x) < 1e12 and abs(y) < 1e12
        ]
        if points:
            ring = part.geom_type == "LinearRing"
            drawn.append("M" + ("L".join(points[:-1]) + "Z" if ring else "L".join(points) + "h0" * (len(points) == 1)))
    return "".join(drawn)


def draw_graticule(projection: Projection, font_size: float = 12.0) -> Markup:
    """Draw grid lines at round x and y values, with labels of size ``font_size`` that fit on the map."""
    extent = projection.extent
    step = _choose_grid_step((extent.xmax - extent.xmin) * font_size / 12)
    lines, labels = [], []
    for k in range(math.ceil(extent.xmin / step), math.floor(extent.xmax / step) + 1):
        x, text = projection.x(k * step), format_coordinate(_wrap_longitude(k * step, projection), step)
        lines.append(f"M{format_number(x)} 0V{format_number(projection.height)}")
        # The corner belongs to neither axis.
        if 4 * font_size <= x <= projection.width - font_size * len(text) * 0.6 - 4:
            labels.append(tag("text", text, x=format_number(x + 2), y=format_number(projection.height - 4)))
    for k in range(math.ceil(extent.ymin / step), math.floor(extent.ymax / step) + 1):
        y = projection.y(k * step)
        lines.append(f"M0 {format_number(y)}H{format_number(projection.width)}")
        if 2 * font_size <= y <= projection.height - 2.5 * font_size:
            labels.append(tag("text", format_coordinate(k * step, step), x=3, y=format_number(y - 2)))
    return tag("g", tag("path", d="".join(lines)), *labels, class_="graticule")


def _wrap_longitude(x: float, projection: Projection) -> float:
    """Wrap a longitude to the range from -180 to 180. Return other coordinates unchanged."""
    if projection.crs is None or not projection.crs.is_geographic or -180 <= x <= 180:
        return x
    return (x + 180) % 360 - 180


def format_coordinate(value: float, step: float) -> str:
    """Format a coordinate with thousands separators, and with as many decimals as multiples of ``step`` have."""
    if not abs(value) < 1e15 or step <= 1e-9:
        return f"{value:.6g}"
    decimals = max(0, -math.floor(math.log10(step * 1.0001)))
    text = f"{value + 0.0:,.{decimals}f}"  # not -0
    return text.rstrip("0").rstrip(".") if decimals else text


def format_ranges(box: Box, step: float) -> str:
    """Format the x and y ranges of a box; see :func:`format_coordinate`."""
    xmin, xmax, ymin, ymax = (format_coordinate(value, step) for value in (box.xmin, box.xmax, box.ymin, box.ymax))
    return f"x {xmin} to {xmax}, y {ymin} to {ymax}"


def _choose_grid_step(extent: float) -> float:
    if 180 < extent <= 500:  # probably degrees of longitude and latitude
        return 30.0
    rough = extent / 8
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= rough)


@dataclass(frozen=True, slots=True)
class Shapes:
    """Array of shapely geometries. If ``on_globe``, edges follow the shorter direction around the globe."""

    geometries: Any
    on_globe: bool = False

    @property
    def vertices(self) -> int:
        """Number of vertices of all geometries."""
        import shapely

        return int(shapely.get_num_coordinates(self.geometries).sum())


def draw_shapes(projection: Projection, shapes: Shapes) -> Markup:
    """Draw geometries as SVG paths: one for all polygons, one for all lines and one for all points."""
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
            tag("path", class_=name, d=svg_path(projection, parts[dimensions == dimension]))
            for dimension, name in ((2, "area"), (1, "line"), (0, "dot"))
            if (dimensions == dimension).any()
        ),
        class_="shapes",
    )


def _unwrap(part: Any) -> Any:
    """Return a geometry with continuous longitudes. Rings around a pole are closed at the pole."""
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


def draw_small_map(
    projection: Projection, label: str, shapes: Shapes | None, boxes: Iterable[tuple[Box, bool]] = ()
) -> str:
    """Draw geometries and boxes of row groups as an SVG of at most ``MAX_BYTES``.

    Geometries are simplified, or omitted, to fit. Boxes paired with False are dashed. ``label`` is the text for screen
    readers.
    """
    import shapely

    fitted, tolerance = shapes, 1.0
    while True:
        if tolerance > _COARSEST:
            fitted = None
        parts = [] if fitted is None else [draw_shapes(projection, fitted)]
        drawing = _draw_small(projection, label, tolerance, parts, boxes)
        if len(drawing.encode()) <= MAX_BYTES or fitted is None:
            return drawing
        tolerance *= 2
        geometries = shapely.simplify(fitted.geometries, tolerance / projection.scale)
        fitted = Shapes(geometries if tolerance < 10 else shapely.get_parts(geometries)[::2], fitted.on_globe)


def _draw_small(
    projection: Projection, label: str, tolerance: float, parts: list[Markup], boxes: Iterable[tuple[Box, bool]]
) -> str:
    import shapely

    area = land(projection)
    if area is not None:
        ground = svg_path(projection, shapely.simplify(area, 2 * tolerance / projection.scale))
        parts = [tag("path", d=ground, fill=_INK, fill_opacity=".15"), *parts]
    drawn = [
        tag(
            "rect", x=format_number(projection.x(left)), y=format_number(projection.y(box.ymax)),
            width=format_number(max(2.0, projection.x(right) - projection.x(left))),
            height=format_number(max(2.0, projection.y(box.ymin) - projection.y(box.ymax))),
            fill="#2596be", fill_opacity=".2" if is_read else "0", stroke="#2596be" if is_read else _INK,
            stroke_width=2, stroke_dasharray=None if is_read else "6 6",
        )
        for box, is_read in boxes
        for left, right in projection.spans(box)
    ]  # fmt: skip
    svg = tag(
        "svg", *parts, *drawn, draw_graticule(projection, 24.0), role="img", aria_label=label,
        viewBox=f"0 0 {format_number(projection.width)} {format_number(projection.height)}", width=_SMALL_WIDTH,
        style="display:block;max-width:100%;height:auto;border:1px solid",
    )  # fmt: skip
    for name, attributes in _ATTRIBUTES.items():
        svg = Markup(svg.replace(name, attributes))
    return str(tag("figure", svg, tag("figcaption", label), style="margin:4px 0"))
