"""The command ``pqext map``."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TYPE_CHECKING

import click

from pqext.cli.command import command, option
from pqext.cli.errors import usage_errors
from pqext.cli.files import expand_files, file_argument
from pqext.cli.locations import Place, Storage, check_overwrite, display_name, file_name, force_option, storage_options
from pqext.cli.reader_options import Reading, reading_options
from pqext.core.base.text import escape_text, format_size, with_noun

if TYPE_CHECKING:
    from pqext.geo.layout.explain import BoxLayout, Layout, Part
    from pqext.report.boxes import BoxMap, DrawnBox


@command("map")
@file_argument
@option("--column", metavar="geom", help="Geometry column; required if the file has several.")
@option("--output", "-o", help="Output path, .html or .png; FILE.map.html by default.")
@option(
    "--query", type=click.FloatRange(0.0, 1.0), metavar="N", default=0.001,
    help="Area of the simulated query, as a fraction of the extent.",
)
@force_option
@reading_options
@storage_options
def map_(
    file: str, column: str | None, output: str | None, query: float, force: bool, reading: Reading, storage: Storage
) -> None:
    """Draw the bounding boxes of row groups and pages, with their overlap and the expected cost of queries.

    The row groups of all files in a folder are numbered consecutively.

    Example: pqext map quakes.parquet --output quakes.png
    """
    with usage_errors():
        source, *dest = storage.locate([file] if output is None else [file, output])
        paths = expand_files([source])
        title = file_name(paths[0] if len(paths) == 1 else source)
        out = dest[0] if dest else f"{title}.map.html"
        suffix = os.path.splitext(str(out))[1].lower()
        if suffix not in (".html", ".htm", ".png"):
            raise ValueError(f"--output must end in .html or .png, not {file_name(out)}")
        check_overwrite(out, force)
    try:
        boxes = _map(paths, title, column, query, reading)
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


def _map(paths: list[Place], title: str, column: str | None, query: float, reading: Reading) -> BoxMap:
    from pqext.core.read.reader import ParquetFile
    from pqext.geo.layout.explain import explain_layout, geometry_leaf, parts_of
    from pqext.report.boxes import BoxMap

    groups: list[Part] = []
    pages: list[Part] = []

    def files() -> Generator[ParquetFile, None, None]:
        """Yield the files; each is closed before the next one is opened."""
        for path in paths:
            with ParquetFile(path, reading.options, limits=reading.limits) as file:
                file_groups, file_pages = parts_of(file, geometry_leaf(file, column), len(groups))
                groups.extend(file_groups)
                pages.extend(file_pages)
                yield file

    layout = explain_layout(files(), column, query)
    return BoxMap(
        title=title,
        column=layout.column,
        facts=_facts(layout),
        row_groups=tuple(_draw_part(part, None) for part in groups),
        pages=_draw_pages(pages),
        figures=(
            ("", "boxes over a point", "covered", "overlap", "expected", "rows", "bytes"),
            _figures("row groups", layout.row_groups),
            _figures("pages", layout.pages),
        ),
        notes=(
            f"Expected: the amount that a query of {layout.query_width:.4g} by {layout.query_height:.4g} at "
            "a random location in the extent reads. Bytes are those of this column.",
            *layout.suggestions,
        ),
    )


def _facts(layout: Layout) -> tuple[tuple[str, str], ...]:
    extent = layout.extent
    extent_text = "none"
    if extent is not None:
        wraps = " (wraps around)" if extent.wraps else ""
        extent_text = f"{extent.xmin:g} to {extent.xmax:g}{wraps}, {extent.ymin:g} to {extent.ymax:g}"
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


def _draw_part(part: Part, page: int | None) -> DrawnBox:
    from pqext.report.boxes import DrawnBox
    from pqext.report.model import Box

    box = part.box
    drawn = None if box is None else Box(box.xmin, box.xmax, box.ymin, box.ymax)
    return DrawnBox(part.row_group, part.rows, part.bytes, drawn, page)


def _draw_pages(pages: list[Part]) -> tuple[DrawnBox, ...]:
    numbered = []
    first = 0
    for index, part in enumerate(pages):
        if index and part.row_group != pages[index - 1].row_group:
            first = index
        numbered.append(_draw_part(part, index - first))
    return tuple(numbered)
