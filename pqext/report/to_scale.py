"""Draw a file to scale as a self-contained HTML page without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from pqext.core.base.text import format_size, with_noun
from pqext.report.markup import HEAD, SHEET, Markup, escape, format_number, join, rows_as_lists, table, tag

WIDTH = 1000.0
_HEIGHT = 40
_FINEST = 2.0
"""Width in units of the drawing below which neighbours share a cell of up to ``_CELL`` units."""
_CELL = 4.0
_GAP = 0.6
_WIDE = _CELL + _FINEST
"""Minimum width in units of a part that is followed by a gap; narrower parts are merged with their neighbours."""
_MOST_CUTS = 200
"""Maximum number of lines. If there are more, none are drawn, because they would hide the parts between them."""
_ABOUT = (
    "The parts of the file at their offsets, drawn to scale. Neighbours that are too small to distinguish are stacked, "
    "with heights in proportion to their sizes."
)
_COLOURS = {
    "dictionary": ("#8a5a00", "#f0b429"), "data": ("#0b6e8f", "#4cc3e6"), "pages": ("#3b7d5a", "#6fcf97"),
    "second copy": ("#4d5fb8", "#9fb0ff"), "metadata copy": ("#7f5f52", "#d7b8a8"),
    "column index": ("#7a3e9d", "#c792ea"), "offset index": ("#a33b6d", "#f48fb1"),
    "Bloom filter": ("#c2410c", "#ff9e64"),
    "checkpoint": ("#0f766e", "#5eead4"), "footer": ("#374151", "#cbd5e1"),
    "frame": ("#111827", "#f8fafc"), "other": ("#82898f", "#717c8b"),
}  # fmt: skip
SAID = {
    "dictionary": "dictionary pages", "data": "data pages", "pages": "pages that were not located one by one",
    "second copy": "second copies of columns", "metadata copy": "copies of column metadata",
    "column index": "column indexes", "offset index": "offset indexes", "Bloom filter": "Bloom filters",
    "checkpoint": "checkpoints and earlier footers", "footer": "parts of the footer",
    "frame": "magic numbers and the footer's length", "other": "bytes that neither footer nor indexes describe",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DrawnBytes:
    """A range of ``length`` bytes at ``offset``. ``row_group`` is None if the range is not in a row group."""

    kind: str
    offset: int
    length: int
    row_group: int | None = None


@dataclass(frozen=True, slots=True)
class Strip:
    """Consecutive parts drawn to the same scale. ``rows`` list them as a table with the header ``head``."""

    title: str
    parts: tuple[DrawnBytes, ...]
    rows: tuple[tuple[str, ...], ...]
    head: tuple[str, ...] = ("row group", "rows", "stored", "uncompressed", "sorted by")
    cuts: tuple[int, ...] = ()
    """Offsets at which a line is drawn."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Table of part types: name, count, formatted size and bytes of each type.

    ``whole`` is the size of the file in bytes.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, str, str, int], ...]
    whole: int


@dataclass(frozen=True, slots=True)
class LayoutPage:
    """Contents of the page. ``sizes`` lists the label, page count and total bytes of each size class of data pages.

    ``undrawn`` is the number of row groups without a strip.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    whole: Strip
    kinds: Figures
    strips: tuple[Strip, ...]
    undrawn: int
    sizes: tuple[tuple[str, int, int], ...]
    savings: tuple[str, ...]
    notes: tuple[str, ...]


def render(page: LayoutPage) -> str:
    """Render the page as self-contained HTML text."""
    facts = tag("dl", join(tag("div", tag("dt", name), tag("dd", value)) for name, value in page.facts))
    body = tag(
        "main",
        tag("header", tag("h1", page.title), tag("p", _ABOUT), facts),
        _titled_list("Possible savings", page.savings, "No part of the file is obviously too large."),
        tag(
            "section", tag("h2", "The file from its first byte to its last"), _draw_strip(page.whole),
            _part_table(page.kinds),
        ),
        tag("section", tag("h2", "Sizes of data pages"), _page_size_table(page.sizes)),
        tag("section", tag("h2", "Row groups"), _row_group_table(page.whole),
            join(_details(strip) for strip in page.strips), _undrawn_note(page.undrawn)),
        _titled_list("Notes", page.notes, None),
        tag("footer", "Written by pqext."),
    )  # fmt: skip
    head = tag(
        "head",
        HEAD,
        tag("title", f"{page.title}: layout"),
        tag("style", Markup(SHEET + _style_sheet())),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, tag("body", body), lang="en") + "\n"


def merge_narrow_parts(parts: Sequence[DrawnBytes], scale: float) -> Iterator[tuple[int, int, dict[str, int]]]:
    """Merge parts into cells, and yield offset, length and bytes by type of each cell. Narrow parts share a cell."""
    bytes_of: dict[str, int] = {}
    start = stop = 0
    for part in parts:
        alone = part.length * scale >= _FINEST
        if bytes_of and (alone or part.offset != stop or (stop - start) * scale >= _CELL):
            yield start, stop - start, bytes_of
            bytes_of = {}
        if not bytes_of:
            start = part.offset
        bytes_of[part.kind] = bytes_of.get(part.kind, 0) + part.length
        stop = part.offset + part.length
        if alone:
            yield start, stop - start, bytes_of
            bytes_of = {}
    if bytes_of:
        yield start, stop - start, bytes_of


def _draw_strip(strip: Strip) -> Markup:
    if not strip.parts:
        return tag("p", "None of its pages is shown.")
    first = min(part.offset for part in strip.parts)
    length = max(part.offset + part.length for part in strip.parts) - first
    scale = WIDTH / length
    shapes: list[Markup] = []
    cells = list(merge_narrow_parts(strip.parts, scale))
    followers = [offset for offset, _, _ in cells[1:]]
    for (offset, count, bytes_of), follower in zip_longest(cells, followers):
        width = count * scale
        if follower == offset + count:
            # Narrow cells extend below the next one, so that no seam is visible; wide cells leave a gap.
            width += -_GAP if width >= _WIDE else _GAP
        shapes += _draw_cell(format_number((offset - first) * scale), format_number(max(width, 0.2)), bytes_of)
    last = -1.0
    for cut in strip.cuts if len(strip.cuts) <= _MOST_CUTS else ():
        x = (cut - first) * scale
        if x - last >= 2:
            shapes.append(
                tag("rect", class_="cut", x=format_number(x - _GAP), y=0, width=format_number(2 * _GAP), height=_HEIGHT)
            )
            last = x
    shapes += _underline_row_groups(strip.parts, first, scale)
    sums: dict[str, int] = {}
    for part in strip.parts:
        sums[part.kind] = sums.get(part.kind, 0) + part.length
    message = ", ".join(f"{SAID[kind]} {format_size(count)}" for kind, count in sums.items())
    return tag(
        "svg", *shapes, class_="scale", viewBox=f"0 0 {format_number(WIDTH)} 52", preserveAspectRatio="none",
        role="img", aria_label=f"{strip.title}, drawn to scale: {message}",
    )  # fmt: skip


def _draw_cell(x: str, width: str, bytes_by_type: dict[str, int]) -> Iterator[Markup]:
    """Yield the stacked rectangles of a cell's part types, with heights in proportion to their bytes."""
    if list(bytes_by_type) == ["other"]:
        yield tag("rect", class_=_css_class("other"), x=x, y=12, width=width, height=16)
        return
    whole, before = sum(bytes_by_type.values()), 0
    for kind in sorted(bytes_by_type, key=list(_COLOURS).index):
        y = _HEIGHT * before / whole
        yield tag(
            "rect", class_=_css_class(kind), x=x, y=format_number(y), width=width, height=format_number(_HEIGHT - y)
        )
        before += bytes_by_type[kind]


def _underline_row_groups(parts: Iterable[DrawnBytes], first: int, scale: float) -> list[Markup]:
    """Draw a line under each row group."""
    spans: dict[int, tuple[int, int]] = {}
    for part in parts:
        if part.row_group is not None and part.kind in ("dictionary", "data", "pages"):
            low, high = spans.get(part.row_group, (part.offset, part.offset))
            spans[part.row_group] = min(low, part.offset), max(high, part.offset + part.length)
    if len(spans) < 2 or len(spans) > WIDTH / 2:
        return []
    return [
        tag("rect", class_=f"under g{place % 2}", x=format_number((low - first) * scale), y=44,
            width=format_number(max((high - low) * scale, 0.2)), height=8)
        for place, (low, high) in enumerate(spans.values())
    ]  # fmt: skip


def _part_table(figures: Figures) -> Markup:
    rows = [
        (join([tag("span", class_=f"swatch {_css_class(kind)}"), " ", escape(SAID[kind])]), count, size,
         _share(used, figures.whole))
        for kind, count, size, used in figures.rows
    ]  # fmt: skip
    return _table((*figures.head, "share"), rows, frozenset({1, 2}))


def _share(part: int, total: int) -> Markup:
    percent = 100 * part / total if total else 0.0
    bar = tag("b", tag("i", style=f"width:{percent:.1f}%"))
    return tag("span", bar, " ", f"{percent:.1f} %", class_="share")


def _page_size_table(sizes: tuple[tuple[str, int, int], ...]) -> Markup:
    if not sizes:
        return tag("p", "There are no data pages with known offsets.")
    most, all_of_them = max(count for _, count, _ in sizes), sum(count for _, count, _ in sizes)
    rows = [(name, f"{count:,}", format_size(used), _bar(count, most, all_of_them)) for name, count, used in sizes]
    return _table(("data pages of", "pages", "bytes", "share of pages"), rows, frozenset({1, 2}))


def _bar(count: int, max_count: int, total_count: int) -> Markup:
    bar = tag("b", tag("i", style=f"width:{100 * count / max_count:.1f}%"))
    return tag("span", bar, f" {100 * count / total_count:.1f} %", class_="share wide")


def _row_group_table(strip: Strip) -> Markup:
    if not strip.rows:
        return tag("p", "The file has no row groups.")
    return _table(strip.head, strip.rows, frozenset({1, 2, 3}))


def _details(strip: Strip) -> Markup:
    numeric = frozenset(range(1, len(strip.head))) if len(strip.head) == 3 else frozenset({1, 2, 3, 6, 7})
    table = _table(strip.head, strip.rows, numeric, strip.title if len(strip.head) > 3 else None)
    return tag("details", tag("summary", strip.title), _draw_strip(strip), table)


def _table(
    head: Iterable[object], rows: Iterable[Iterable[object]], numeric: frozenset[int], label: str | None = None
) -> Markup:
    return table(head, rows, numeric, row_heads=True, label=label)


def _undrawn_note(count: int) -> Markup:
    return tag("p", f"{with_noun(count, 'other row group')} without a drawing") if count else Markup("")


def _titled_list(title: str, lines: tuple[str, ...], empty_text: str | None) -> Markup:
    if not lines:
        return Markup("") if empty_text is None else tag("section", tag("h2", title), tag("p", empty_text))
    return tag("section", tag("h2", title), tag("ul", join(tag("li", line) for line in lines)))


def _css_class(category: str) -> str:
    return "k-" + category.lower().replace(" ", "-")


def _style_sheet() -> str:
    light = "".join(f".{_css_class(kind)}{{fill:{a};background:{a}}}" for kind, (a, _) in _COLOURS.items())
    dark = "".join(f".{_css_class(kind)}{{fill:{b};background:{b}}}" for kind, (_, b) in _COLOURS.items())
    return (
        f"{light}@media (prefers-color-scheme:dark){{{dark}}}"
        ".scale{height:56px;margin:10px 0;border:1px solid var(--line);border-radius:6px;background:var(--card)}"
        ".cut{fill:var(--card)}.under.g0{fill:var(--ink)}.under.g1{fill:var(--faint)}"
        ".swatch{display:inline-block;width:12px;height:12px;border-radius:3px;vertical-align:-1px}"
        ".swatch,.share b,.share i{forced-color-adjust:none;print-color-adjust:exact}"
        ".share.wide b{width:min(180px,30vw)}"
        "details{border-top:1px solid var(--line);padding:4px 0}summary{cursor:pointer;padding:6px 0}"
        "summary:focus-visible{outline:2px solid var(--read);outline-offset:2px}"
        ".n{white-space:nowrap}.many tbody th,.many td:nth-child(9),.many td:nth-child(10){overflow-wrap:anywhere}"
        ".many tbody th{min-width:16ch}.many td:nth-child(9),.many td:nth-child(10){min-width:9ch}"
        ".many td:nth-child(11){min-width:20ch}"
        "@media (max-width:1100px){"
        + rows_as_lists(".many ")
        + ".many tr{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),1fr));column-gap:20px}}"
    )
