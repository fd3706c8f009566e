"""Draw the map of a geometry column's boxes as a PNG image, with Pillow."""

from __future__ import annotations

import colorsys
import io
from typing import Any

from pqext.core.base.text import escape_text, with_noun
from pqext.report.boxes import HUES, LEGEND, BoxMap, assign_hues, select_boxes
from pqext.report.land import land
from pqext.report.model import Box
from pqext.report.projection import Projection

_SCALE = 1.6
_MARGIN = 12
_LINE = 22
_QUERY = (210, 84, 27)
_PAPER, _SEA, _LAND, _INK, _FAINT = "#fbfbf9", "#eef3f6", "#dfe3dc", "#22262b", "#6c747d"


def render(boxes: BoxMap) -> bytes:
    """Return the image as PNG bytes. Raises ImportError if Pillow is not installed."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise ImportError(
            "a PNG map requires Pillow: pip install 'pqext[map]', or write an .html map instead"
        ) from None
    projection = boxes.projection
    width, height = round(projection.width * _SCALE), round(projection.height * _SCALE)
    lines = _text_lines(boxes)
    # Long names do not widen the image; they are cut off at its edge.
    image = Image.new("RGB", (max(width, 640) + 2 * _MARGIN, height + 2 * _MARGIN + _LINE * len(lines) + 6), _PAPER)
    font: Any = ImageFont.load_default(size=15)
    pen = ImageDraw.Draw(image)
    for row, (text, colour) in enumerate(lines):
        pen.text((_MARGIN, _MARGIN + _LINE * row), text, fill=colour, font=font)
    hue_of = assign_hues(select_boxes(boxes.row_groups))
    _draw_legend(pen, font, _MARGIN + _LINE * (len(lines) - 1))
    drawing = Image.new("RGB", (max(width, 1), max(height, 1)), _SEA)
    _draw_land(ImageDraw.Draw(drawing), projection)
    for level, parts in ((0, boxes.row_groups), (1, boxes.pages)):
        veil = Image.new("RGBA", drawing.size, (0, 0, 0, 0))
        brush = ImageDraw.Draw(veil)
        for part in select_boxes(parts):
            outline = _colour(hue_of.get(part.row_group or 0, (part.row_group or 0) % len(HUES)))
            _draw_box(brush, projection, part.box, level, outline)
        drawing.paste(veil, (0, 0), veil)
    for query in boxes.queries:
        _draw_box(ImageDraw.Draw(drawing, "RGBA"), projection, query, 0, _QUERY)
    image.paste(drawing, (_MARGIN, _MARGIN + _LINE * len(lines) + 6))
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def _text_lines(boxes: BoxMap) -> list[tuple[str, str]]:
    counts = f"{with_noun(len(boxes.row_groups), 'row group')}, {with_noun(len(boxes.pages), 'page')}"
    head, *rows = boxes.figures
    figures = ["  ".join(f"{name} {value}" for name, value in zip(head[1:], row[1:], strict=True)) for row in rows]
    return [
        (escape_text(f"{boxes.title}: {counts}"), _INK),
        (escape_text(boxes.caption), _FAINT),
        *((escape_text(f"{row[0]}: {text}"), _FAINT) for row, text in zip(rows, figures, strict=True)),
        ("", _FAINT),  # the legend
    ]


def _draw_land(pen: Any, projection: Projection) -> None:
    import shapely

    area = land(projection)
    for ring in [] if area is None else shapely.get_exterior_ring(shapely.get_parts(area)):
        points = [] if ring is None else [(projection.x(x) * _SCALE, projection.y(y) * _SCALE) for x, y in ring.coords]
        if points:
            pen.polygon(points, fill=_LAND)


def _colour(hue: int) -> tuple[int, int, int]:
    red, green, blue = colorsys.hls_to_rgb(HUES[hue] / 360, 0.42, 0.7)
    return round(255 * red), round(255 * green), round(255 * blue)


def _draw_legend(pen: Any, font: Any, y: int) -> None:
    """Draw a swatch and a name for each level, on the last line of text."""
    x = _MARGIN
    for level, name in enumerate(LEGEND):
        pen.rectangle((x, y + 3, x + 22, y + 17), fill=(_SEA, "#a9cbdb")[level], outline=_colour(0), width=2 - level)
        pen.text((x + 30, y), name, fill=_FAINT, font=font)
        x += 60 + round(pen.textlength(name, font=font))


def _draw_box(
    pen: Any, projection: Projection, box: Box | None, level: int, colour: tuple[int, int, int]
) -> None:
    if box is None:
        return
    y0, y1 = projection.y(box.ymax) * _SCALE, projection.y(box.ymin) * _SCALE
    for xmin, xmax in projection.spans(box):
        x0, x1 = projection.x(xmin) * _SCALE, projection.x(xmax) * _SCALE
        # A box with only one point must be visible.
        corners = (x0, y0, max(x1, x0 + 1), max(y1, y0 + 1))
        pen.rectangle(corners, fill=(*colour, (26, 40)[level]), outline=(*colour, (255, 150)[level]), width=2 - level)
