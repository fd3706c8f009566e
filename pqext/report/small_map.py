"""Small map for notebooks: an SVG of limited size without style sheet, script or loads, in the colours of the page."""

from __future__ import annotations

from collections.abc import Iterable

from pqext.report.land import land
from pqext.report.map import graticule, path
from pqext.report.markup import Markup, number, tag
from pqext.report.model import Box
from pqext.report.projection import Projection
from pqext.report.shapes import Shapes, draw_shapes

MAX_BYTES = 40_000
"""Maximum size of the SVG; geometries are simplified, then sampled, until they fit."""
_COARSEST = 1e5
"""Tolerance beyond which no geometries are drawn; a drawing is about 1,000 units wide."""
_WIDTH = 420
_INK = "currentColor"
_ATTRIBUTES = {
    'class="area"': 'fill="#2596be" fill-opacity=".35" stroke="#2596be"',
    'class="line"': 'fill="none" stroke="#2596be"',
    'class="dot"': 'stroke="#2596be" stroke-width="6" stroke-linecap="round"',
    'class="shapes"': 'stroke-width="2"',
    'class="graticule"': f'fill="{_INK}" stroke="{_INK}" stroke-opacity=".25" font-size="24" font-family="sans-serif"',
    "<text ": '<text stroke="none" ',
}


def small_map(projection: Projection, label: str, shapes: Shapes | None, boxes: Iterable[tuple[Box, bool]] = ()) -> str:
    """Draw geometries and boxes of row groups; boxes with False are dashed. ``label`` is the caption."""
    import shapely

    fitted, tolerance = shapes, 1.0
    while True:
        if tolerance > _COARSEST:
            fitted = None
        parts = [] if fitted is None else [draw_shapes(projection, fitted)]
        drawing = _draw(projection, label, tolerance, parts, boxes)
        if len(drawing.encode()) <= MAX_BYTES or fitted is None:
            return drawing
        tolerance *= 2
        geometries = shapely.simplify(fitted.geometries, tolerance / projection.scale)
        fitted = Shapes(geometries if tolerance < 10 else shapely.get_parts(geometries)[::2], fitted.on_globe)


def _draw(
    projection: Projection, label: str, tolerance: float, parts: list[Markup], boxes: Iterable[tuple[Box, bool]]
) -> str:
    import shapely

    area = land(projection)
    if area is not None:
        ground = path(projection, shapely.simplify(area, 2 * tolerance / projection.scale))
        parts = [tag("path", d=ground, fill=_INK, fill_opacity=".15"), *parts]
    drawn = [
        tag(
            "rect", x=number(projection.x(left)), y=number(projection.y(box.ymax)),
            width=number(max(2.0, projection.x(right) - projection.x(left))),
            height=number(max(2.0, projection.y(box.ymin) - projection.y(box.ymax))),
            fill="#2596be", fill_opacity=".2" if is_read else "0", stroke="#2596be" if is_read else _INK,
            stroke_width=2, stroke_dasharray=None if is_read else "6 6",
        )
        for box, is_read in boxes
        for left, right in projection.spans(box)
    ]  # fmt: skip
    svg = tag(
        "svg", *parts, *drawn, graticule(projection, 24.0), role="img", aria_label=label,
        viewBox=f"0 0 {number(projection.width)} {number(projection.height)}", width=_WIDTH,
        style="display:block;max-width:100%;height:auto;border:1px solid",
    )  # fmt: skip
    for name, attributes in _ATTRIBUTES.items():
        svg = Markup(svg.replace(name, attributes))
    return str(tag("figure", svg, tag("figcaption", label), style="margin:4px 0"))
