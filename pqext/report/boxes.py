"""Draw boxes of row groups and pages on a map, as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pqext.core.base.text import format_size, with_noun
from pqext.report.map import Projection, box_shape, coast, graticule, is_drawable
from pqext.report.markup import Markup, join, number, table, tag
from pqext.report.model import Box
from pqext.report.style import SHEET

MAX_DRAWN = 20_000
"""Maximum number of boxes of a level that are drawn; if there are more, only every second or third is drawn."""
HUES = (198, 24, 96, 282, 48, 330, 160, 232)
"""Hues of row groups and their pages; neighbours on the map have different hues."""
LEGEND = ("row group", "page, in the colour of its row group")
_NEARBY = 0.02
"""Boxes are neighbours if they are closer than this fraction of the extent."""


@dataclass(frozen=True, slots=True)
class DrawnBox:
    """A row group or page on the map. ``box`` is None if the file contains no box for it."""

    row_group: int
    rows: int
    bytes: int
    box: Box | None
    page: int | None = None

    @property
    def text(self) -> str:
        """Description of the box in two or three lines."""
        name = f"row group {self.row_group}" + ("" if self.page is None else f", page {self.page}")
        lines = [name, f"{with_noun(self.rows, 'row')}, {format_size(self.bytes)}"]
        if self.box is not None:
            lines.append(f"x {self.box.xmin:g} to {self.box.xmax:g}, y {self.box.ymin:g} to {self.box.ymax:g}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class BoxMap:
    """Contents of a map of boxes; ``figures`` is a table whose first row is the header."""

    title: str
    column: str
    facts: tuple[tuple[str, str], ...]
    row_groups: tuple[DrawnBox, ...]
    pages: tuple[DrawnBox, ...]
    figures: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def projection(self) -> Projection:
        """The projection of coordinates to the drawing."""
        return Projection.from_boxes(box.box for box in self.row_groups if box.box is not None and is_drawable(box.box))


def select_boxes(boxes: tuple[DrawnBox, ...]) -> tuple[DrawnBox, ...]:
    """Return the boxes to draw, evenly sampled if there are too many."""
    known = tuple(box for box in boxes if box.box is not None and is_drawable(box.box))
    return known[:: -(-len(known) // MAX_DRAWN) or 1]


def hues(row_groups: Sequence[DrawnBox]) -> dict[int, int]:
    """Return the index in ``HUES`` of the hue of each row group.

    Neighbours have different hues if there are enough hues. Otherwise, a row group gets the hue that the fewest of its
    neighbours have.
    """
    groups, spans = [], []
    for part in row_groups:
        if part.box is not None and is_drawable(part.box):
            spans += [(xmin, part.box.ymin, xmax, part.box.ymax) for xmin, xmax in part.box.spans()]
            groups += [part.row_group] * len(part.box.spans())
    boxes, owners = np.array(spans).reshape(-1, 4), np.array(groups)
    margin = _NEARBY * np.ptp(boxes.reshape(-1, 2), axis=0) if len(boxes) else np.zeros(2)
    chosen_hues = np.full(len(boxes), -1)
    uses = np.zeros(len(HUES))
    hue_of = {part.row_group: part.row_group % len(HUES) for part in row_groups}
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


_HEAD = Markup("""
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
""")

_SHEET = """
.level rect{fill:hsl(var(--hue) 70% 50%/.10);stroke:hsl(var(--hue) 70% 42%);stroke-width:1.6;
vector-effect:non-scaling-stroke}
.pages rect{fill-opacity:.6;stroke-width:.5}
.level g:hover rect{stroke-width:3;fill:hsl(var(--hue) 70% 50%/.45)}
#groups:not(:checked)~.map .groups,#pages:not(:checked)~.map .pages{display:none}
.shown{margin-right:18px}
.key.group{border:2px solid hsl(198 70% 42%);background:hsl(198 70% 50%/.10)}
.key.page{border:1px solid hsl(198 70% 42%);background:hsl(198 70% 50%/.45)}
""" + "".join(f".h{index}{{--hue:{hue}}}" for index, hue in enumerate(HUES))


def render(boxes: BoxMap) -> str:
    """Render the page as HTML text, to be encoded as UTF-8."""
    projection = boxes.projection
    hue_of = hues(select_boxes(boxes.row_groups))
    levels = [("groups", "row groups", boxes.row_groups), ("pages", "pages", boxes.pages)]
    controls: list[Markup] = []
    layers: list[Markup] = []
    for name, label, parts in levels:
        drawn = select_boxes(parts)
        controls += (
            Markup(f'<input type="checkbox" id="{name}" checked>'),
            tag("label", f" {_drawn_count(len(drawn), len(parts), label)}", for_=name, class_="shown"),
        )
        layers.append(tag("g", *(_shape(projection, part, hue_of) for part in drawn), class_=f"level {name}"))
    drawing = tag(
        "svg",
        tag("rect", class_="sea", x=0, y=0, width=number(projection.width), height=number(projection.height)),
        coast(projection),
        graticule(projection),
        *layers,
        class_="map",
        viewBox=f"0 0 {number(projection.width)} {number(projection.height)}",
        role="img",
        aria_label="Map of the bounding boxes of row groups and pages",
    )
    facts = tag("dl", join(tag("div", tag("dt", name), tag("dd", value)) for name, value in boxes.facts))
    head, *rows = boxes.figures
    body = tag(
        "main",
        tag("header", tag("h1", boxes.title), tag("p", f"Boxes of column {boxes.column}"), facts),
        tag("section", tag("h2", "Where the boxes lie"), *controls, _legend(), drawing),
        tag("section", tag("h2", "What they cost"), table(head, rows, frozenset(range(1, len(head))))),
        tag("section", *(tag("p", note) for note in boxes.notes)),
        tag("footer", "Written by pqext. The coast is a coarse drawing for orientation; boxes are the file's own."),
    )
    title = tag("head", _HEAD, tag("title", boxes.title), tag("style", Markup(SHEET + _SHEET)))
    return "<!DOCTYPE html>\n" + tag("html", title, tag("body", body), lang="en") + "\n"


def _drawn_count(drawn_count: int, count: int, label: str) -> str:
    named = f"{count:,} {label.removesuffix('s') if count == 1 else label}"
    return named if drawn_count == count else f"{named}, of which {drawn_count:,} are drawn"


def _legend() -> Markup:
    group, page = LEGEND
    return tag(
        "p", tag("span", class_="key group"), f"{group} ", tag("span", class_="key page"), f"{page}. ",
        "Neighbouring row groups have different colours. Point at a box for its rows, bytes and bounds.",
        class_="legend",
    )  # fmt: skip


def _shape(projection: Projection, part: DrawnBox, hues: dict[int, int]) -> Markup:
    assert part.box is not None
    return box_shape(projection, part.box, f"h{hues.get(part.row_group, part.row_group % len(HUES))}", part.text)
