"""Render the inspection report for a terminal. Text from the file is escaped before it is rendered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from pqext.core.base.text import escape_text, format_size, shorten
from pqext.core.schema.arrow_schema.stored_schema import KEY
from pqext.inspection.model import Column, Field, FileFacts, FooterFacts, RowGroup

MAX_FIELDS = 400
MAX_CHUNKS = 200
MAX_ROW_GROUPS = 200
MAX_TYPES = 8
_MAX_VALUE = 200


def render(report: FileFacts) -> Iterator[RenderableType]:
    """Yield the sections of the report, from the file down to its column chunks."""
    yield _file(report)
    yield _schema(report.schema)
    yield _row_groups(report)
    yield from _chunks(report.row_groups)
    if report.extensions:
        yield _extensions(report)
    if report.key_value_metadata:
        yield _key_values(report)


def _to_plain_text(value: object, limit: int = _MAX_VALUE) -> Text:
    return Text(shorten(escape_text(str(value)), limit))


def _dotted_path(path: tuple[str, ...]) -> str:
    return ".".join(path)


def _table(title: str, *columns: str, right: Iterable[int] = ()) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    numeric = set(right)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i in numeric else "left", no_wrap=i in numeric, overflow="fold")
    return table


def _file(report: FileFacts) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name, value in (
        ("file", report.path if report.path is not None else "in memory"),
        ("size", f"{format_size(report.size)} ({report.size} bytes)"),
        ("format version", report.version),
        ("created by", report.created_by if report.created_by is not None else "unknown"),
        ("rows", report.num_rows),
        ("row groups", report.num_row_groups),
        ("columns", report.num_columns),
        ("footer", _footer(report.footer)),
    ):
        grid.add_row(Text(name, style="dim"), _to_plain_text(value, 1000))
    return Group(grid, "")


def _footer(footer: FooterFacts) -> str:
    kind = "FlatBuffers" if footer.form == "flatbuffers" else "Thrift"
    message = f"{format_size(footer.length)} at {footer.offset}, {'encrypted' if footer.encrypted else kind}"
    if footer.jump_table is not None:
        about = "which fits it" if footer.agrees else "which belongs to another footer: readers ignore it"
        return f"{message}, with a jump table of {format_size(footer.jump_table)}, {about}"
    if footer.flatbuffers is not None:
        about = "which agrees with it" if footer.agrees else "which disagrees with it: readers use the Thrift footer"
        if footer.read_by == "flatbuffers":
            about = "which is used because the Thrift footer is damaged"
        return f"{message}, with a FlatBuffers footer of {format_size(footer.flatbuffers)}, {about}"
    return message


def _schema(fields: tuple[Field, ...]) -> RenderableType:
    tree = Tree(Text("schema", style="bold"), guide_style="dim")
    branches: dict[tuple[str, ...], Tree] = {(): tree}
    for field in fields[:MAX_FIELDS]:
        parent = branches.get(field.path[:-1], tree)
        branches[field.path] = parent.add(_field(field))
    if len(fields) > MAX_FIELDS:
        tree.add(Text(f"and {len(fields) - MAX_FIELDS} more", style="dim"))
    return Group(tree, "")


def _field(field: Field) -> Text:
    text = Text(escape_text(field.path[-1]), style="bold")
    text.append(f" {field.repetition}", style="not bold dim")
    if field.physical_type is not None:
        text.append(f" {field.physical_type}", style="not bold")
    if field.logical_type is not None:
        text.append(f" {shorten(escape_text(field.logical_type), 80)}", style="not bold cyan")
    text.append(f"  D{field.max_definition_level} R{field.max_repetition_level}", style="not bold dim")
    if field.field_id is not None:
        text.append(f" id {field.field_id}", style="not bold dim")
    return text


def _row_groups(report: FileFacts) -> RenderableType:
    table = _table("row groups", "#", "rows", "stored", "uncompressed", "sorted by", right=(0, 1, 2, 3))
    for group in report.row_groups[:MAX_ROW_GROUPS]:
        sorting = _to_plain_text(", ".join(group.sorting))
        sizes = format_size(group.compressed), format_size(group.uncompressed)
        table.add_row(str(group.index), str(group.rows), *sizes, sorting)
    return Group(table, *_omitted_line(len(report.row_groups) - MAX_ROW_GROUPS), "")


def _chunks(groups: tuple[RowGroup, ...]) -> Iterator[RenderableType]:
    room = MAX_CHUNKS
    left = 0
    for group in groups:
        shown = group.columns[:room]
        left += group.num_chunks - len(shown)
        room -= len(shown)
        if not shown:
            continue
        table = _table(f"row group {group.index}", "column", "stored", "values", "nulls", "about", right=(1, 2, 3))
        for column in shown:
            table.add_row(
                _to_plain_text(_dotted_path(column.path)),
                format_size(column.compressed),
                str(column.num_values),
                "?" if column.null_count is None else str(column.null_count),
                Text("\n".join(_describe_column(column))),
            )
        yield Group(table, "")
    if left:
        yield Group(
            *_omitted_line(left, "column chunks; choose with --columns and --row-groups, or use --format json"), ""
        )


def _describe_column(column: Column) -> Iterator[str]:
    if column.encodings:
        encodings = ", ".join(column.encodings)
        yield f"{encodings}; {column.codec} from {format_size(column.uncompressed)}; at {column.offset}"
    extras = _extras(column)
    if extras:
        yield "with " + ", ".join(extras)
    if column.minimum is not None or column.maximum is not None:
        low, high = (
            "?" if value is None else shorten(escape_text(value), 40) for value in (column.minimum, column.maximum)
        )
        yield f"{low} to {high}"
    if column.bounding_box is not None:
        box = column.bounding_box
        wraps = " (wraps around)" if box.get("xmin", 0) > box.get("xmax", 0) else ""
        axes = [f"{axis} {box[axis + 'min']:g} to {box[axis + 'max']:g}" for axis in "xyzm" if f"{axis}min" in box]
        yield ", ".join(axes) + wraps
    if column.geospatial_types and column.geometry_types:
        pairs = zip(column.geometry_types[:MAX_TYPES], column.geospatial_types, strict=False)
        shown = ", ".join(f"{name} ({code})" for name, code in pairs)
        yield f"geometry types {shown}" + (", …" if len(column.geospatial_types) > MAX_TYPES else "")


def _extras(column: Column) -> list[str]:
    present = {
        "dictionary": column.dictionary,
        "column index": column.column_index,
        "offset index": column.offset_index,
        "Bloom filter": column.bloom_filter,
        "encryption": column.encrypted,
    }
    names = [name for name, there in present.items() if there]
    names += [f"{name} ({format_size(length)})" for name, length in column.extensions]
    return names if column.file_path is None else [*names, f"its data in {shorten(escape_text(column.file_path), 60)}"]


def _extensions(report: FileFacts) -> RenderableType:
    table = _table("extensions", "in", "length", "holds", right=(1,))
    for extension in report.extensions[:MAX_CHUNKS]:
        known = ", ".join(f"{name} ({format_size(length)})" for name, length in extension.holds)
        content = known or f"begins with {extension.beginning}"
        table.add_row(_to_plain_text(extension.place), format_size(extension.length), content)
    return Group(table, *_omitted_line(len(report.extensions) - MAX_CHUNKS), "")


def _key_values(report: FileFacts) -> RenderableType:
    table = _table("key-value metadata", "key", "value")
    for key, value in report.key_value_metadata[:MAX_CHUNKS]:
        if value is not None and key == KEY:
            shown = Text(f"an Arrow schema, {len(value):,} characters of base64", style="dim")
        else:
            shown = Text("none", style="dim") if value is None else _to_plain_text(value)
        table.add_row(_to_plain_text(key), shown)
    return Group(table, *_omitted_line(len(report.key_value_metadata) - MAX_CHUNKS), "")


def _omitted_line(count: int, noun: str = "more") -> list[RenderableType]:
    return [Text(f"and {count} {noun}", style="dim")] if count > 0 else []
