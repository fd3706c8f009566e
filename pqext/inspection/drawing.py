"""Convert a file layout to the drawing of :mod:`pqext.report.to_scale`."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from pqext.core.base.text import format_size, shorten, with_noun
from pqext.core.io.sources.store_errors import redact_uri
from pqext.inspection.model import KINDS, Column, FileFacts, FileLayout, Part, RowGroup
from pqext.report.to_scale import SAID, DrawnBytes, Figures, LayoutPage, Strip

MAX_STRIPS = 24
"""Maximum number of row groups with separate drawings."""
MAX_GROUPS = 500
"""Maximum number of row groups in the table."""
MAX_ROWS = 100
"""Maximum number of columns in the table of a row group, and of row-group parts in the table after the data."""
_DATA = ("dictionary", "data", "pages", "second copy", "metadata copy")
_HEAD = (
    "column", "offset", "stored", "uncompressed", "codec", "encodings", "values", "nulls", "minimum", "maximum",
    "parts",
)  # fmt: skip
_Chunks = dict[tuple[int | None, int | None], list[Part]]


def build_page(layout: FileLayout) -> LayoutPage:
    """Return the contents of the page that draws a layout."""
    facts = layout.facts
    footer = sum(part.length for part in layout.parts if part.kind == "footer")
    return LayoutPage(
        title=_file_name(facts),
        facts=(
            ("size", format_size(facts.size)),
            ("rows", f"{facts.num_rows:,}"),
            ("row groups", f"{facts.num_row_groups:,}"),
            ("columns", f"{facts.num_columns:,}"),
            ("footer", f"{format_size(footer)}{_footer_format(facts)}"),
            ("written by", shorten(facts.created_by or "unknown", 60)),
        ),
        whole=Strip("The whole file", _draw_parts(layout.parts), _row_group_rows(facts)),
        kinds=_part_sizes(layout),
        strips=tuple(_strips(layout)),
        undrawn=max(0, len(facts.row_groups) - MAX_STRIPS),
        sizes=tuple((f"{format_size(s.least)} and more", s.count, s.bytes) for s in layout.page_sizes),
        savings=layout.savings,
        notes=layout.notes,
    )


def _file_name(facts: FileFacts) -> str:
    """Return the base name of the file; "file in memory" if the file has no path."""
    return "file in memory" if facts.path is None else os.path.basename(redact_uri(facts.path)) or facts.path


def _footer_format(facts: FileFacts) -> str:
    """Describe the format of the footer; empty for plain Thrift."""
    footer = facts.footer
    if footer.form == "flatbuffers":
        return " of FlatBuffers"
    beside = "a jump table" if footer.jump_table else "a FlatBuffers footer" if footer.flatbuffers else ""
    return f" with {beside}{'' if footer.agrees else ' that does not fit'}" if beside else ""


def _draw_parts(parts: Iterable[Part]) -> tuple[DrawnBytes, ...]:
    return tuple(DrawnBytes(part.kind, part.offset, part.length, part.row_group) for part in parts)


def _part_sizes(layout: FileLayout) -> Figures:
    counts: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for part in layout.parts:
        count, total = counts[part.kind]
        counts[part.kind] = count + 1, total + part.length
    rows = [
        (kind, f"{count:,}", format_size(total), total)
        for kind, (count, total) in ((kind, counts[kind]) for kind in KINDS if kind in counts)
    ]
    return Figures(("what", "how many", "bytes"), tuple(rows), layout.facts.size)


def _row_group_rows(facts: FileFacts) -> tuple[tuple[str, ...], ...]:
    rows = [
        (str(group.index), f"{group.rows:,}", format_size(group.compressed), format_size(group.uncompressed),
         ", ".join(group.sorting))
        for group in facts.row_groups[:MAX_GROUPS]
    ]  # fmt: skip
    return _append_omitted_count(rows, len(facts.row_groups) - len(rows), "row group", 5)


def _strips(layout: FileLayout) -> list[Strip]:
    chunks: _Chunks = defaultdict(list)
    groups: dict[int | None, list[Part]] = defaultdict(list)
    last = 0
    for part in layout.parts:
        if part.row_group is not None:
            chunks[part.row_group, part.column].append(part)
        if part.kind in _DATA:
            groups[part.row_group].append(part)
            last = part.stop
    strips = []
    for group in layout.facts.row_groups[:MAX_STRIPS]:
        parts = groups[group.index]
        named = f"Row group {group.index}: {with_noun(group.rows, 'row')}, {format_size(group.compressed)}"
        strips.append(Strip(named, _draw_parts(parts), _column_rows(group, chunks), _HEAD, column_starts(parts)))
    end = [part for part in layout.parts if part.offset >= last]
    if end:
        used = sum(part.length for part in end)
        rows = _end_part_rows(end, [".".join(field.path) for field in layout.facts.schema if field.column is not None])
        strips.append(
            Strip(f"After the data: {format_size(used)}", _draw_parts(end), rows, ("part", "offset", "bytes"))
        )
    return strips


def column_starts(parts: list[Part]) -> tuple[int, ...]:
    """Return the offsets at which a part of a different column starts."""
    return tuple(part.offset for before, part in pairwise(parts) if part.column != before.column)


def _end_part_rows(parts: list[Part], names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return table rows for the parts after the data. Adjacent indexes or filters of a row group share a table row.

    Only the ``MAX_ROWS`` largest rows of row groups are included.
    """
    runs = [list(run) for _, run in groupby(parts, lambda part: (part.kind, part.row_group, part.name))]
    lines = [(run, sum(part.length for part in run)) for run in runs]
    kept = [element for element in lines if element[0][0].row_group is None]
    kept += sorted((item for item in lines if item[0][0].row_group is not None), key=lambda entry: -entry[1])[:MAX_ROWS]
    kept.sort(key=lambda entry: entry[0][0].offset)
    rows = [(_name_run(run, names), f"{run[0].offset:,}", format_size(used)) for run, used in kept]
    return _append_omitted_count(rows, len(lines) - len(kept), "part", 3)


def _name_run(run: list[Part], names: list[str]) -> str:
    part = run[0]
    if part.row_group is None or part.column is None:
        return f"{part.kind}: {part.name}" if part.name else SAID[part.kind] if part.kind == "other" else part.kind
    if len(run) > 1:
        return f"{SAID[part.kind]} of row group {part.row_group}, {with_noun(len(run), 'column')}"
    return f"{part.kind} of row group {part.row_group}, column {shorten(names[part.column], 120)}"


def _append_omitted_count(rows: Sequence[tuple[str, ...]], other_count: int, noun: str, width: int) -> tuple[
    tuple[str, ...], ...
]:
    """Append a row that states the number of omitted rows, unless it is 0."""
    if other_count <= 0:
        return tuple(rows)
    return (*rows, (f"and {with_noun(other_count, f'other {noun}')}", *[""] * (width - 1)))


def _column_rows(group: RowGroup, chunks: _Chunks) -> tuple[tuple[str, ...], ...]:
    kept = sorted(group.columns, key=lambda column: -column.compressed)[:MAX_ROWS]
    rows = [
        _column_row(column, chunks[group.index, column.column])
        for column in sorted(kept, key=lambda column: column.column)
    ]
    return _append_omitted_count(rows, group.num_chunks - len(kept), "column", len(_HEAD))


def _column_row(column: Column, parts: list[Part]) -> tuple[str, ...]:
    name = shorten(".".join(column.path), 120) or "(no name)"
    if not column.codec:
        return (name, *[""] * (len(_HEAD) - 2), "encrypted, its key is missing")
    return (
        name, f"{column.offset:,}", format_size(column.compressed), format_size(column.uncompressed), column.codec,
        ", ".join(column.encodings), f"{column.num_values:,}",
        "" if column.null_count is None else f"{column.null_count:,}",
        _format_bound(column.minimum), _format_bound(column.maximum), ", ".join(_describe_chunk(column, parts)),
    )  # fmt: skip


def _describe_chunk(column: Column, parts: list[Part]) -> Iterator[str]:
    """Yield descriptions of a chunk: the sizes of its parts, and properties from the footer."""
    if column.encrypted:
        yield "encrypted"
    if column.file_path is not None:
        yield f"in {shorten(column.file_path, 60)}"
    stated = {
        "dictionary": column.dictionary, "column index": column.column_index, "offset index": column.offset_index,
        "Bloom filter": column.bloom_filter,
    }  # fmt: skip
    for kind in KINDS:
        lengths = [part.length for part in parts if part.kind == kind]
        if kind == "data" and lengths:
            yield with_noun(len(lengths), "data page")
        elif lengths and kind != "pages":
            yield f"{kind} {format_size(sum(lengths))}"
        elif stated.get(kind):
            yield kind
    yield from (f"{name} {format_size(length)}" for name, length in column.extensions)
    if column.nan_count:
        yield f"{column.nan_count:,} NaN"
    if column.distinct_count is not None:
        yield f"{with_noun(column.distinct_count, 'distinct value')}"
    if column.bounding_box:
        yield "box " + ", ".join(f"{key} {value:g}" for key, value in column.bounding_box.items())
    yield from column.geometry_types or ()


def _format_bound(value: str | None) -> str:
    return "" if value is None else shorten(value, 60)
