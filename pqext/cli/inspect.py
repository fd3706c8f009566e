"""The command ``pqext inspect``."""

from __future__ import annotations

from dataclasses import replace

import click

from pqext.cli.command import command, flag, option
from pqext.cli.console import REPORT_FORMATS, show
from pqext.cli.errors import usage_errors
from pqext.cli.files import file_argument, find_single_file, split_names
from pqext.cli.locations import (
    Place,
    Storage,
    check_overwrite,
    display_name,
    display_path,
    file_name,
    force_option,
    storage_options,
)
from pqext.cli.reader_options import ReaderOptions, reading_options
from pqext.core.base.text import format_size, with_noun


@command()
@file_argument
@option(
    "--format", type=click.Choice(REPORT_FORMATS), default="text",
    help="Output format: a text report, or the complete report as JSON.",
)
@option("--columns", metavar="a,b.c", help="Columns to describe.")
@option("--row-groups", metavar="0,4-7", help="Row groups to describe.")
@flag("--html", help="Write an HTML page that draws the layout of the file to scale.")
@option(
    "--output", "-o", metavar="PATH", help="Path of the HTML page; NAME.layout.html in the current folder by default."
)
@force_option
@reading_options
@storage_options
def inspect(
    file: str, format: str, columns: str | None, row_groups: str | None, html: bool, output: str | None, force: bool,
    reading: ReaderOptions, storage: Storage,
) -> None:
    """Show a file's schema with levels, row groups, encodings, sizes, bounds, bounding boxes and extensions.

    --html writes a page that draws pages, indexes and the sections of the footer to scale.

    Example: pqext inspect quakes.parquet --columns event --row-groups 0-3
    """
    from pqext.inspection import inspect as inspect_file
    from pqext.inspection.rendering import MAX_CHUNKS

    if html or output is not None:
        with usage_errors():
            if not html:
                raise ValueError("--output requires --html")
            if columns is not None or row_groups is not None or format != "text":
                raise ValueError("--html cannot be combined with --columns, --row-groups or --format")
            source, *dest = storage.locate([file] if output is None else [file, output])
            source = find_single_file(source)
            out = dest[0] if dest else f"{file_name(source)}.layout.html"
            check_overwrite(out, force)
        _write_page(source, out, reading)
        return
    limit = None if format == "json" else MAX_CHUNKS
    with usage_errors():
        source = find_single_file(*storage.locate([file]))
        report = inspect_file(
            source, columns=split_names(columns), row_groups=_parse_indexes(row_groups), max_chunks=limit,
            limits=reading.limits, decryption=reading.decryption,
        )
    show(replace(report, path=display_path(report.path)), format)


def _write_page(source: Place, out: Place, reading: ReaderOptions) -> None:
    from pqext.core.io.sink import Sink
    from pqext.inspection.file_layout import layout

    file_layout = layout(source, limits=reading.limits, decryption=reading.decryption)
    content = file_layout.to_html().encode()
    with Sink(out) as sink:
        sink.write(content)
    parts, file_size = with_noun(len(file_layout.parts), "part"), format_size(file_layout.facts.size)
    click.echo(f"{display_name(out)}: {parts} of {file_size}, {format_size(len(content))}")


def _parse_indexes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    indexes: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ValueError(f"--row-groups: {part!r} is not an index or a range such as 4-7")
        stop = int(last) if dash else int(first)
        if stop - int(first) > 1_000_000:
            raise ValueError(f"--row-groups: {part!r} spans more than 1,000,000 row groups; pass a shorter range")
        indexes += range(int(first), stop + 1)
    return indexes
