"""The command ``pqext map``."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import click

from pqext.cli.command import command, option
from pqext.cli.errors import usage_errors
from pqext.cli.files import expand_files, file_argument
from pqext.cli.locations import Place, Storage, check_overwrite, display_name, file_name, force_option, storage_options
from pqext.cli.reader_options import ReaderOptions, reading_options
from pqext.core.base.text import escape_text, format_size, with_noun

if TYPE_CHECKING:
    from pqext.geo.box import BoundingBox
    from pqext.geo.layout.explain import BoxLayout, Layout, Part
    from pqext.geo.predicates.predicate import SpatialPredicate
    from pqext.report.boxes import BoxMap, DrawnBox
    from pqext.report.map import Shapes
    from pqext.report.model import Box


@command("map")
@file_argument
@option("--column", metavar="geom", help="Geometry column; required if the file has several.")
@option("--output", "-o", metavar="PATH", help="Output path, .html or .png; FILE.map.html by default.")
@option(
    "--query", type=click.FloatRange(0.0, 1.0), metavar="N", default=0.001,
    help="Area of the simulated query, as a fraction of the extent.",
)
@option(
    "--bbox", type=float, nargs=4, multiple=True, metavar="XMIN YMIN XMAX YMAX",
    help="Box of a query to draw, in the CRS of the column; repeatable.",
)
@option(
    "--vertices", type=click.IntRange(0), metavar="N", default=20_000,
    help="Draw the geometries if they have at most N vertices; 0 draws only boxes.",
)
@force_option
@reading_options
@storage_options
def map_(
    file: str, column: str | None, output: str | None, query: float,
    bbox: tuple[tuple[float, float, float, float], ...], vertices: int, force: bool, reading: ReaderOptions,
    storage: Storage,
) -> None:
    """Draw the bounding boxes of row groups and pages, with their overlap and the expected cost of queries.

    The page zooms by buttons, keys and touch, and loads nothing. The row groups of all files in a folder are numbered
    consecutively. If the geometries are few, they are read and drawn too.

    Example: pqext map quakes.parquet --output quakes.png
    """
    from pqext.geo.predicates.predicate import SpatialPredicate

    with usage_errors():
        queries = [SpatialPredicate("intersects", box) for box in bbox]
        source, *dest = storage.locate([file] if output is None else [file, output])
        paths = expand_files([source])
        title = file_name(paths[0] if len(paths) == 1 else source)
        out = dest[0] if dest else f"{title}.map.html"
        suffix = os.path.splitext(str(out))[1].lower()
        if suffix not in (".html", ".htm", ".png"):
            raise ValueError(f"--output must end in .html or .png, not {file_name(out)}")
        check_overwrite(out, force)
    try:
        boxes = _build_map(paths, title, column, query, reading, queries, vertices)
    except KeyError as error:
        raise click.BadParameter(escape_text(str(error.args[0]))) from None
    from pqext.core.io.sink import Sink

    if suffix == ".png":
        from pqext.report import picture

        content = picture.render(boxes)
    else:
        from pqext.report.boxes import render

        content = render(boxes).encode()
    with Sink(out) as sink:
        sink.write(content)
    click.echo(
        f"{display_name(out)}: {with_noun(len(boxes.row_groups), 'row group')}, {with_noun(len(boxes.pages), 'page')}, "
        f"{format_size(len(content))}"
    )


def _build_map(
    paths: list[Place], title: str, column: str | None, query: float, reading: ReaderOptions,
    queries: list[SpatialPredicate], vertices: int,
) -> BoxMap:  # fmt: skip
    from pqext.core.read.reader import ParquetFile
    from pqext.geo.layout.explain import count_matches, explain_layout, geometry_leaf, parts_of
    from pqext.geo.layout.map_content import column_crs, join_shapes, read_shapes
    from pqext.geo.summary import union
    from pqext.report.boxes import BoxMap, DrawnBox
    from pqext.report.map import format_coordinate
    from pqext.report.model import Box

    groups: list[Part] = []
    pages: list[Part] = []
    names: list[str] = []
    drawn_files: list[DrawnBox] = []
    crs: list[Any] = []
    shapes: list[Shapes | None] = []
    matches = [(0, 0) for _ in queries]

    def files() -> Generator[ParquetFile, None, None]:
        """Yield the files. Each file is closed before the next file is opened."""
        for path in paths:
            with ParquetFile(path, reading.options, limits=reading.limits) as file:
                node = geometry_leaf(file, column)
                file_groups, file_pages = parts_of(file, node, len(groups))
                crs.append(column_crs(file, node))
                if len(paths) > 1:
                    name, geographic = file_name(path), crs[-1] is not None and crs[-1].is_geographic
                    boxes = [part.box for part in file_groups if part.box is not None]
                    is_known = all(part.box or part.has_no_coordinates for part in file_groups)
                    whole = union(boxes, geographic) if is_known else None
                    rows, size = (sum(getattr(part, key) for part in file_groups) for key in ("rows", "bytes"))
                    drawn_files.append(DrawnBox(None, rows, size, _draw_box(whole), file=name))
                    names.extend([name] * len(file_groups))
                if None not in shapes:
                    used = sum(part.vertices for part in shapes if part is not None)
                    shapes.append(read_shapes(file, node, vertices - used))
                for number, predicate in enumerate(queries):
                    counts = count_matches(file, node, predicate)
                    matches[number] = (matches[number][0] + counts[0], matches[number][1] + counts[1])
                groups.extend(file_groups)
                pages.extend(file_pages)
                yield file

    layout = explain_layout(files(), column, query)
    the_crs = crs[0] if all(each == crs[0] for each in crs) else None
    width, height = layout.query_width, layout.query_height
    size = f"{format_coordinate(width, width / 1e3)} by {format_coordinate(height, height / 1e3)}"
    notes = [
        f"Expected: the amount that a query of {size} at a random location in the extent reads. "
        "Bytes are bytes of this column."
    ]
    for number, counts in enumerate(matches, 1):
        of_groups, of_pages = with_noun(len(groups), "row group"), with_noun(len(pages), "page")
        notes.append(f"Query {number} reads {counts[0]:,} of {of_groups} and {counts[1]:,} of {of_pages}.")
    return BoxMap(
        title=title,
        column=layout.column,
        facts=_facts(layout),
        row_groups=tuple(_draw_part(part, None, names) for part in groups),
        pages=_draw_pages(pages, names),
        figures=(
            ("", "boxes over a point", "covered", "overlap", "expected", "rows", "bytes"),
            _figures("row groups", layout.row_groups),
            _figures("pages", layout.pages),
        ),
        notes=(*notes, *layout.suggestions),
        files=tuple(drawn_files),
        crs=the_crs,
        queries=tuple(Box(box.xmin, box.xmax, box.ymin, box.ymax) for each in queries if (box := each.box)),
        shapes=join_shapes(shapes),
    )


def _facts(layout: Layout) -> tuple[tuple[str, str], ...]:
    from pqext.report.map import format_coordinate

    extent = layout.extent
    extent_text = "none"
    if extent is not None:
        wraps = " (wraps around)" if extent.wraps else ""
        step = max(extent.width, extent.ymax - extent.ymin) / 1e4
        x, y = ((format_coordinate(low, step), format_coordinate(high, step)) for low, high in (
            (extent.xmin, extent.xmax), (extent.ymin, extent.ymax)))
        extent_text = f"{x[0]} to {x[1]}{wraps}, {y[0]} to {y[1]}"
    return (
        ("rows", f"{layout.rows:,}"),
        ("row groups", f"{layout.row_groups.count:,}"),
        ("pages", f"{layout.pages.count:,}"),
        ("column", format_size(layout.bytes)),
        ("extent, x and y", extent_text),
    )


def _figures(name: str, boxes: BoxLayout) -> tuple[str, ...]:
    return (
        name,
        f"{boxes.depth:.2f}",
        f"{boxes.covered:.0%}",
        f"{boxes.overlap:.2f}",
        f"{boxes.read:,.1f} of {boxes.count:,}",
        f"{boxes.rows_read:,.0f}",
        format_size(round(boxes.bytes_read)),
    )


def _draw_box(box: BoundingBox | None) -> Box | None:
    from pqext.report.model import Box

    return None if box is None else Box(box.xmin, box.xmax, box.ymin, box.ymax)


def _draw_part(part: Part, page: int | None, names: list[str]) -> DrawnBox:
    from pqext.report.boxes import DrawnBox

    file = names[part.row_group] if names else ""
    return DrawnBox(part.row_group, part.rows, part.bytes, _draw_box(part.box), page, file)


def _draw_pages(pages: list[Part], names: list[str]) -> tuple[DrawnBox, ...]:
    numbered = []
    first = 0
    for index, part in enumerate(pages):
        if index and part.row_group != pages[index - 1].row_group:
            first = index
        numbered.append(_draw_part(part, index - first, names))
    return tuple(numbered)
