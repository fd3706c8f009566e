"""Draw boxes of files, row groups and pages on a map, as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pqext.core.base.text import format_size, with_noun
from pqext.report.map import Shapes, draw_box, draw_graticule, draw_land, draw_shapes, format_ranges
from pqext.report.markup import SHEET, Markup, format_number, join, table, tag
from pqext.report.model import Box
from pqext.report.projection import Projection, is_drawable
from pqext.report.zoom import SCRIPT, ZOOM_HEAD, ZOOM_SHEET, zoom_buttons

MAX_DRAWN = 20_000
"""Maximum number of boxes of a level that are drawn; if there are more, only every second or third is drawn."""
MAX_FILES = 100
"""Maximum number of files in the table of files."""
HUES = (198, 24, 96, 282, 48, 330, 160, 232)
"""Hues of row groups and their pages; neighbours on the map have different hues."""
LEGEND = ("row group", "page, in the colour of its row group")
_NEARBY = 0.02
"""Boxes are neighbours if they are closer than this fraction of the extent."""


@dataclass(frozen=True, slots=True)
class DrawnBox:
    """A file, row group or page on the map. ``box`` is None if the file stores no bounding box for this item.

    ``row_group`` is None for a file. ``file`` is empty if the map shows a single file.
    """

    row_group: int | None
    rows: int
    bytes: int
    box: Box | None
    page: int | None = None
    file: str = ""

    def describe(self, step: float) -> str:
        """Describe the box in two or three lines. Coordinates have as many decimals as ``step``."""
        name = "" if self.row_group is None else f"row group {self.row_group}"
        name += "" if self.page is None else f", page {self.page}"
        lines = [" in ".join(filter(None, (name, self.file)))]
        lines.append(f"{with_noun(self.rows, 'row')}, {format_size(self.bytes)}")
        if self.box is not None:
            lines.append(format_ranges(self.box, step))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class BoxMap:
    """Contents of a map of boxes.

    ``figures`` is a table whose first row is the header. ``crs`` is a ``pyproj.CRS``, or None if it is unknown.
    ``files`` is empty for a single file.
    """

    title: str
    column: str
    facts: tuple[tuple[str, str], ...]
    row_groups: tuple[DrawnBox, ...]
    pages: tuple[DrawnBox, ...]
    figures: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    files: tuple[DrawnBox, ...] = ()
    crs: Any = None
    queries: tuple[Box, ...] = ()
    shapes: Shapes | None = None

    @property
    def projection(self) -> Projection:
        """Projection from coordinates to the drawing."""
        boxes = (*(part.box for part in self.row_groups), *self.queries)
        return Projection.from_boxes((box for box in boxes if box is not None), self.crs)

    @property
    def caption(self) -> str:
        """Name of the column, and name and unit of its CRS."""
        return f"Boxes of column {self.column}, in {describe_crs(self.crs)}"


def describe_crs(crs: Any) -> str:
    """Return the name, identifier and unit of a ``pyproj.CRS``. None represents an unknown CRS."""
    if crs is None:
        return "an unknown CRS and unit"
    unit = crs.axis_info[0].unit_name if crs.axis_info else "unknown unit"
    authority = crs.to_json_dict().get("id")
    identifier = f" ({authority['authority']}:{authority['code']})" if authority else ""
    return f"{crs.name}{identifier}, {unit}s" if unit in ("metre", "degree") else f"{crs.name}{identifier}, {unit}"


def select_boxes(boxes: tuple[DrawnBox, ...]) -> tuple[DrawnBox, ...]:
    """Return the boxes to draw, evenly sampled if there are too many."""
    known = tuple(box for box in boxes if box.box is not None and is_drawable(box.box))
    return known[:: -(-len(known) // MAX_DRAWN) or 1]


def assign_hues(row_groups: Sequence[DrawnBox]) -> dict[int, int]:
    """Assign a colour to each row group: the index of a hue in ``HUES``.

    Neighbours have different hues if there are enough hues. Otherwise, a row group gets the hue that the fewest of its
    neighbours have.
    """
    groups, spans = [], []
    for part in row_groups:
        if part.box is not None and is_drawable(part.box):
            spans += [(xmin, part.box.ymin, xmax, part.box.ymax) for xmin, xmax in part.box.spans()]
            groups += [part.row_group or 0] * len(part.box.spans())
    boxes, owners = np.array(spans).reshape(-1, 4), np.array(groups)
    margin = _NEARBY * np.ptp(boxes.reshape(-1, 2), axis=0) if len(boxes) else np.zeros(2)
    chosen_hues = np.full(len(boxes), -1)
    uses = np.zeros(len(HUES))
    hue_of = {part.row_group or 0: (part.row_group or 0) % len(HUES) for part in row_groups}
    for group in dict.fromkeys(groups):
        near = np.zeros(len(boxes), bool)
        for box in boxes[owners == group]:
            near |= ((boxes[:, :2] <= box[2:] + margin) & (boxes[:, 2:] >= box[:2] - margin)).all(axis=1)
        neighbours = np.bincount(chosen_hues[near & (chosen_hues >= 0)], minlength=len(HUES))
        hue = int(np.lexsort((uses, neighbours))[0])
        hue_of[group] = hue
        uses[hue] += 1
        chosen_hues[owners == group] = hue
    return hue_of


_SHEET = """
:root{--edge:42%}@media (prefers-color-scheme:dark){:root{--edge:66%}}
.map rect,.map path{vector-effect:non-scaling-stroke}
.level rect{fill:hsl(var(--hue) 70% 50%/.10);stroke:hsl(var(--hue) 70% var(--edge));stroke-width:1.6}
.files rect{fill:none;stroke:var(--ink);stroke-width:1.2;stroke-dasharray:2 3}
.area{fill:var(--read);fill-opacity:.3;stroke:var(--read);stroke-width:.8}.line{fill:none;stroke:var(--read)}
.dot{stroke:var(--read);stroke-width:4;stroke-linecap:round}.shapes{pointer-events:none}
.pages rect{fill-opacity:.6;stroke-width:.5}
.level g:hover rect{stroke-width:3;fill:hsl(var(--hue) 70% 50%/.45)}
section:has(#files:not(:checked)) .files,section:has(#groups:not(:checked)) .groups,
section:has(#pages:not(:checked)) .pages,section:has(#shapes:not(:checked)) .shapes{display:none}
.shown{margin-right:18px;white-space:nowrap}
.shown{display:inline-block;padding:6px 0}
.key.group{border:2px solid hsl(198 70% var(--edge));background:hsl(198 70% 50%/.10)}
.key.page{border:1px solid hsl(198 70% var(--edge));background:hsl(198 70% 50%/.45)}
""" + "".join(f".h{index}{{--hue:{hue}}}" for index, hue in enumerate(HUES))


def render(boxes: BoxMap) -> str:
    """Render the page as HTML text, to be encoded as UTF-8."""
    projection = boxes.projection
    step = (projection.extent.xmax - projection.extent.xmin) / 1e4
    hue_of = assign_hues(select_boxes(boxes.row_groups))
    levels = [("groups", "row groups", boxes.row_groups), ("pages", "pages", boxes.pages)]
    if boxes.files:
        levels.insert(0, ("files", "files", boxes.files))
    controls: list[Markup] = []
    layers: list[Markup] = []
    for name, label, parts in levels:
        drawn = select_boxes(parts)
        count = _drawn_count(len(drawn), len(parts), label)
        controls.append(_checkbox(name, count, not boxes.files or name != "pages"))
        layers.append(tag("g", *(_draw_box(projection, part, hue_of, step) for part in drawn), class_=f"level {name}"))
    if boxes.shapes is not None:
        controls.append(_checkbox("shapes", f"geometries ({len(boxes.shapes.geometries):,})", True))
        layers.insert(0, draw_shapes(projection, boxes.shapes))
    layers += [
        tag("g", draw_box(projection, box, "asked", f"query\n{format_ranges(box, step)}"), class_="queries")
        for box in boxes.queries
    ]
    land = draw_land(projection)
    turn = int(boxes.crs is not None and boxes.crs.is_geographic)
    drawing = tag(
        "svg",
        tag(
            "rect",
            class_="sea",
            x=0,
            y=0,
            width=format_number(projection.width),
            height=format_number(projection.height),
        ),
        land,
        *layers,
        draw_graticule(projection),
        class_="map",
        viewBox=f"0 0 {format_number(projection.width)} {format_number(projection.height)}",
        role="group",
        tabindex=0,
        data_frame=f"{projection.extent.xmin!r} {projection.extent.ymax!r} {projection.scale!r} {turn}",
        aria_label="Map of the bounding boxes of row groups and pages. Zoom with plus and minus, pan with the arrows.",
    )
    facts = tag("dl", join(tag("div", tag("dt", name), tag("dd", value)) for name, value in boxes.facts))
    head, *rows = boxes.figures
    note = "Land: Natural Earth, 1:110m, for orientation; boxes are the file's own." if land else ""
    body = tag(
        "main",
        tag("header", tag("h1", boxes.title), tag("p", boxes.caption), facts),
        tag(
            "section", tag("h2", "Where the boxes lie"), *controls, _legend(bool(boxes.queries)), zoom_buttons(),
            drawing, tag("output"),
        ),
        tag("section", tag("h2", "What they cost"), table(head, rows, frozenset(range(1, len(head))))),
        tag("section", *(tag("p", note) for note in boxes.notes)),
        _file_table(boxes.files, step),
        tag("footer", f"Written by pqext. {note}".strip()),
    )  # fmt: skip
    title = tag("head", ZOOM_HEAD, tag("title", boxes.title), tag("style", Markup(SHEET + _SHEET + ZOOM_SHEET)))
    return "<!DOCTYPE html>\n" + tag("html", title, tag("body", body, tag("script", Markup(SCRIPT))), lang="en") + "\n"


def _checkbox(name: str, label: str, is_checked: bool) -> Markup:
    box = Markup(f'<input type="checkbox" id="{name}"{" checked" if is_checked else ""}>')
    return tag("label", box, f" {label} ", class_="shown")


def _file_table(files: tuple[DrawnBox, ...], step: float) -> Markup:
    if not files:
        return Markup("")
    rows = [
        (
            part.file,
            f"{part.rows:,}",
            format_size(part.bytes),
            "" if part.box is None else format_ranges(part.box, step),
        )
        for part in files[:MAX_FILES]
    ]
    more = f" The first {MAX_FILES} of {len(files):,} files." if len(files) > MAX_FILES else ""
    listed = table(("file", "rows", "bytes", "extent"), rows, frozenset({1, 2}))
    return tag("section", tag("h2", "Files"), tag("p", f"Bytes of this column.{more}"), listed)


def _drawn_count(drawn_count: int, count: int, label: str) -> str:
    named = f"{count:,} {label.removesuffix('s') if count == 1 else label}"
    return named if drawn_count == count else f"{named}, of which {drawn_count:,} are drawn"


def _legend(has_queries: bool) -> Markup:
    group, page = LEGEND
    query = (" ", tag("span", class_="key asked"), "query") if has_queries else ()
    return tag(
        "p", tag("span", class_="key group"), f"{group} ", tag("span", class_="key page"), page, *query,
        ". Neighbouring row groups have different colours. Select a box for its rows, bytes and bounds.",
        class_="legend",
    )  # fmt: skip


def _draw_box(projection: Projection, part: DrawnBox, hues: dict[int, int], step: float) -> Markup:
    assert part.box is not None
    group = part.row_group or 0
    return draw_box(projection, part.box, f"h{hues.get(group, group % len(HUES))}", part.describe(step))
