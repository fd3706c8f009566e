"""``pqext inspect FILE``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import click

from pqext.cli.declarations import Option
from pqext.cli.files import File, Form, names, one_file, refusals, show
from pqext.cli.locations import Anonymous, Place, Storage, placed
from pqext.cli.outputs import Force, check_new, file_name, named
from pqext.cli.reader_options import DEFAULTS, Reading
from pqext.cli.standard_input import shown_path
from pqext.core.base.text import format_size, with_noun


def command(
    file: File,
    form: Annotated[
        Form, Option("--format", help="A report for people, or the whole of it as JSON.")
    ] = Form.text,
    columns: Annotated[
        str | None,
        Option("--columns", metavar="a,b.c", help="Describe only the chunks of these.", show_default=False),
    ] = None,
    row_groups: Annotated[
        str | None,
        Option("--row-groups", metavar="0,4-7", help="Describe only these.", show_default=False),
    ] = None,
    html: Annotated[
        bool, Option("--html", help="Write a page that draws to scale what lies where in the file.")
    ] = False,
    output: Annotated[
        str | None,
        Option(
            "--output", "-o", show_default=False,
            help="Where the page goes; NAME.layout.html in the current folder by default.",
        ),
    ] = None,
    force: Force = False,
    reading: Reading = DEFAULTS,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Show a file's schema with levels, its row groups, encodings, sizes, bounds, boxes and extensions.

    --html writes a page instead, which draws pages, indexes and the parts of the footer to scale.

    Example: pqext inspect quakes.parquet --columns event --row-groups 0-3
    """
    # Imported here so that --help and --version answer at once.
    from pqext.inspection import inspect
    from pqext.inspection.rendering import MAX_CHUNKS

    if html or output is not None:
        with refusals():
            if not html:
                raise ValueError("--output is for the page that --html writes")
            if columns is not None or row_groups is not None or form is not Form.text:
                raise ValueError("--html draws the whole file: leave out --columns, --row-groups and --format")
            source, *dest = placed([file] if output is None else [file, output], storage, anonymous)
            source = one_file(source)
            out = dest[0] if dest else f"{file_name(source)}.layout.html"
            check_new(out, force)
        _write_page(source, out, reading)
        return
    limit = None if form is Form.json else MAX_CHUNKS
    with refusals():
        source = one_file(*placed([file], storage, anonymous))
        report = inspect(
            source, columns=names(columns), row_groups=_indexes(row_groups), max_chunks=limit,
            limits=reading.limits, decryption=reading.decryption,
        )
    show(replace(report, path=shown_path(report.path)), form)


def _write_page(source: Place, out: Place, reading: Reading) -> None:
    from pqext.core.io.sink import Sink
    from pqext.inspection.file_layout import layout

    found = layout(source, limits=reading.limits, decryption=reading.decryption)
    content = found.to_html().encode()
    with Sink(out) as sink:
        sink.write(content)
    click.echo(
        f"{named(out)}: {with_noun(len(found.parts), 'part')} of {format_size(found.facts.size)}, "
        f"{format_size(len(content))}"
    )


def _indexes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    chosen: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ValueError(f"{part!r} is neither an index nor a range such as 4-7")
        stop = int(last) if dash else int(first)
        if stop - int(first) > 1_000_000:
            raise ValueError(f"{part!r} is more row groups than a file has")
        chosen += range(int(first), stop + 1)
    return chosen
