"""Diagram of a file's layout: a cell for each leaf column in each row group, shaded by size."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pqext.core.base.text import format_size, shorten
from pqext.report.markup import Markup, join, number, tag
from pqext.report.model import Chunk, FilePicture, Question

_LABEL = 360.0
_MAX_LABEL = 52
"""Maximum number of characters of a label, each 6.5 units wide, so that it ends within the picture."""
_BAR = 150.0
_CELLS = 640.0
_ROW = 15.0
_TOP = 22.0
_MAX_COLUMNS = 120
_MAX_ROW_GROUPS = 320


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the diagram: a leaf column, or the total of the columns that are too small to be shown."""

    label: str
    sizes: tuple[int, ...]
    chunks: tuple[Chunk, ...] | None


def draw(picture: FilePicture, f: int, questions: tuple[Question, ...]) -> Markup:
    """Draw the layout of file number ``f``. For each query, a layer dims the row groups that the query skipped."""
    groups = picture.row_groups[:_MAX_ROW_GROUPS]
    lines = _lines(picture, len(groups))
    cell = max(2.0, min(26.0, _CELLS / max(len(groups), 1)))
    largest = max((count for line in lines for count in line.sizes), default=1) or 1
    longest = max((sum(line.sizes) for line in lines), default=1) or 1
    right = _LABEL + cell * len(groups)
    height = _TOP + _ROW * len(lines)
    parts = [
        tag("text", str(group.index), x=number(_LABEL + cell * (i + 0.5)), y=14, class_="head")
        for i, group in enumerate(groups)
        if cell >= 16 or i % max(1, round(24 / cell)) == 0
    ]
    for n, line in enumerate(lines):
        y = _TOP + _ROW * n
        parts.append(tag("text", _front(line.label), tag("title", line.label), x=number(_LABEL - 8), y=number(y + 11)))
        parts += [
            _cell(picture, line, i, _LABEL + cell * i, y, cell, count / largest) for i, count in enumerate(line.sizes)
        ]
        total = sum(line.sizes)
        parts.append(
            tag(
                "rect",
                class_="bar",
                x=number(right + 10),
                y=number(y + 2),
                width=number(_BAR * total / longest),
                height=number(_ROW - 4),
            )
        )
        parts.append(
            tag(
                "text", format_size(total), class_="total",
                x=number(right + 14 + _BAR * total / longest), y=number(y + 11),
            )
        )
    veils = []
    for q, question in enumerate(questions):
        reading = next((reading for reading in question.readings if reading.file == picture.label), None)
        if reading is not None:
            skipped = [i for i, group in enumerate(groups) if group.index not in reading.row_groups]
            veils.append(
                tag(
                    "g",
                    join(
                        tag(
                            "rect",
                            x=number(_LABEL + cell * i),
                            y=0,
                            width=number(cell),
                            height=number(height),
                        )
                        for i in skipped
                    ),
                    class_=f"layer veil q{q} f{f}",
                )
            )
    return tag(
        "svg",
        *parts,
        *veils,
        class_="layout",
        viewBox=f"0 0 {number(right + _BAR + 90)} {number(height + 2)}",
        role="img",
        aria_label=f"Bytes of each column in each row group of {picture.name}",
    )


def _lines(picture: FilePicture, groups: int) -> list[_Line]:
    shown = picture.row_groups[:groups]
    totals = [sum(group.chunks[c].compressed for group in shown) for c in range(len(picture.columns))]
    retained = set(sorted(range(len(totals)), key=lambda c: -totals[c])[:_MAX_COLUMNS])
    lines = []
    for c, column in enumerate(picture.columns):
        if c in retained:
            chunks = tuple(group.chunks[c] for group in shown)
            lines.append(_Line(column, tuple(chunk.compressed for chunk in chunks), chunks))
    rest = [c for c in range(len(totals)) if c not in retained]
    if rest:
        sums = tuple(sum(group.chunks[c].compressed for c in rest) for group in shown)
        lines.append(_Line(f"{len(rest)} smaller columns", sums, None))
    return lines


def _cell(picture: FilePicture, line: _Line, i: int, x: float, y: float, width: float, share: float) -> Markup:
    return tag(
        "rect",
        tag("title", Markup("\n").join(join([text]) for text in _facts(picture, line, i))),
        class_="cell",
        x=number(x),
        y=number(y),
        width=number(max(width - 1, 1.5)),
        height=number(_ROW - 1),
        fill_opacity=number(0.06 + 0.94 * math.sqrt(share)),
    )


def _facts(picture: FilePicture, line: _Line, i: int) -> list[str]:
    facts = [line.label, f"row group {picture.row_groups[i].index}: {format_size(line.sizes[i])}"]
    if line.chunks is None:
        return facts
    chunk = line.chunks[i]
    facts[1] += f" ({format_size(chunk.uncompressed)} uncompressed, {chunk.codec})"
    facts.append(", ".join(chunk.encodings))
    if chunk.minimum is not None or chunk.maximum is not None:
        facts.append(f"{_bound(chunk.minimum)} to {_bound(chunk.maximum)}")
    if chunk.null_count is not None:
        facts.append(f"{chunk.null_count} nulls")
    return facts


def _bound(value: str | None) -> str:
    return "?" if value is None else shorten(value, 40)


def _front(label: str) -> str:
    # The end of a path distinguishes columns.
    return label if len(label) <= _MAX_LABEL else "…" + label[1 - _MAX_LABEL :]
