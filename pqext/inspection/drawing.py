"""A layout as what :mod:`pqext.report.to_scale` draws."""

from __future__ import annotations

import os
from collections import defaultdict
from itertools import pairwise

from pqext.core.sources.secrets import shown
from pqext.inspection.model import KINDS, Column, FileFacts, FileLayout, Part, RowGroup
from pqext.report.to_scale import Drawn, Figures, LayoutPage, Strip
from pqext.text import counted, shorten, size

MAX_STRIPS = 24
"""Row groups that get a drawing of their own."""
MAX_ROWS = 100
"""Columns that a table of a row group has, the largest."""
_HEAD = (
    "column", "at", "stored", "uncompressed", "codec", "encodings", "values", "nulls", "least", "greatest", "also has",
)  # fmt: skip


def page(layout: FileLayout) -> LayoutPage:
    """The page of a layout."""
    facts = layout.facts
    footer = sum(part.length for part in layout.parts if part.kind == "footer")
    return LayoutPage(
        title=_file_name(facts),
        facts=(
            ("size", size(facts.size)),
            ("rows", f"{facts.num_rows:,}"),
            ("row groups", f"{facts.num_row_groups:,}"),
            ("columns", f"{facts.num_columns:,}"),
            ("footer", size(footer)),
            ("written by", shorten(facts.created_by or "not told", 60)),
        ),
        whole=Strip("The whole file", tuple(_drawn(part) for part in layout.parts), _row_groups(layout)),
        kinds=_kinds(layout),
        strips=tuple(_strips(layout)),
        sizes=tuple((f"{size(s.least)} and more", s.count, s.bytes) for s in layout.page_sizes),
        savings=layout.savings,
        notes=layout.notes,
    )


def _file_name(facts: FileFacts) -> str:
    """The file's name without its folder, or that it has none."""
    return "file in memory" if facts.path is None else os.path.basename(shown(facts.path)) or facts.path


def _drawn(part: Part) -> Drawn:
    return Drawn(part.kind, part.offset, part.length, part.row_group)


def _kinds(layout: FileLayout) -> Figures:
    counts: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for part in layout.parts:
        count, total = counts[part.kind]
        counts[part.kind] = count + 1, total + part.length
    rows = [(kind, f"{counts[kind][0]:,}", size(counts[kind][1]), counts[kind][1]) for kind in KINDS if kind in counts]
    return Figures(("what", "how many", "bytes"), tuple(rows), layout.facts.size)


def _row_groups(layout: FileLayout) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (str(group.index), f"{group.rows:,}", size(group.compressed), size(group.uncompressed),
         ", ".join(group.sorting) or "")
        for group in layout.facts.row_groups[:500]
    )  # fmt: skip


def _strips(layout: FileLayout) -> list[Strip]:
    inside: dict[int, list[Part]] = defaultdict(list)
    last = 0
    for part in layout.parts:
        if part.row_group is not None and part.kind in ("dictionary", "data", "pages"):
            inside[part.row_group].append(part)
            last = max(last, part.stop)
    strips = []
    for group in layout.facts.row_groups[:MAX_STRIPS]:
        parts = inside.get(group.index, [])
        named = f"Row group {group.index}: {counted(group.rows, 'row')}, {size(group.compressed)}"
        strips.append(Strip(named, tuple(_drawn(part) for part in parts), _columns(group), _HEAD, by_column(parts)))
    end = [part for part in layout.parts if part.offset >= last and part.kind != "other"]
    if end:
        taken = sum(part.length for part in end)
        rows = tuple((_named(part), f"{part.offset:,}", size(part.length)) for part in _largest(end))
        strips.append(Strip(
            f"Behind the data: {size(taken)}", tuple(_drawn(part) for part in end), rows, ("what", "at", "bytes")
        ))  # fmt: skip
    return strips


def by_column(parts: list[Part]) -> tuple[int, ...]:
    """Where the pages of another column begin."""
    return tuple(part.offset for before, part in pairwise(parts) if part.column != before.column)


def _largest(parts: list[Part]) -> list[Part]:
    kept = sorted(parts, key=lambda part: -part.length)[:MAX_ROWS]
    return sorted(kept, key=lambda part: part.offset)


def _named(part: Part) -> str:
    place = "" if part.row_group is None else f" of row group {part.row_group}, column {part.column}"
    return f"{part.kind}: {part.name}" if part.name else f"{part.kind}{place}"


def _columns(group: RowGroup) -> tuple[tuple[str, ...], ...]:
    kept = sorted(group.columns, key=lambda column: -column.compressed)[:MAX_ROWS]
    rows = [_column(column) for column in sorted(kept, key=lambda column: column.column)]
    more = group.num_chunks - len(kept)
    if more > 0:
        rows.append((f"and {counted(more, 'other column')}", *[""] * (len(_HEAD) - 1)))
    return tuple(rows)


def _column(column: Column) -> tuple[str, ...]:
    name = shorten(".".join(column.path), 120)
    if not column.codec:
        return (name, *[""] * (len(_HEAD) - 2), "encrypted, its key is missing")
    also = [
        *(["encrypted"] if column.encrypted else []),
        *(["dictionary"] if column.dictionary else []),
        *(["column index"] if column.column_index else []),
        *(["offset index"] if column.offset_index else []),
        *(["Bloom filter"] if column.bloom_filter else []),
        *(name for name, _ in column.extensions),
    ]
    box = column.bounding_box
    if box:
        also.append("box " + ", ".join(f"{key} {value:g}" for key, value in box.items()))
    return (
        name, f"{column.offset:,}", size(column.compressed), size(column.uncompressed), column.codec,
        ", ".join(column.encodings), f"{column.num_values:,}",
        "" if column.null_count is None else f"{column.null_count:,}",
        _bound(column.minimum), _bound(column.maximum), ", ".join(also),
    )  # fmt: skip


def _bound(value: str | None) -> str:
    return "" if value is None else shorten(value, 60)
