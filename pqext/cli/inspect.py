"""``pqext inspect FILE``."""

from __future__ import annotations

from typing import Annotated

from pqext.cli.declared import Option
from pqext.cli.files import File, Form, names, one_file, refusals, show
from pqext.cli.places import Anonymous, Storage, placed


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
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Show a file's schema with levels, its row groups, encodings, sizes, bounds, boxes and extensions.

    Example: pqext inspect quakes.parquet --columns event --row-groups 0-3
    """
    # Imported here so that --help and --version answer at once.
    from pqext.core.limits import Limits
    from pqext.inspection import inspect
    from pqext.inspection.rendering import MAX_CHUNKS

    limit = None if form is Form.json else MAX_CHUNKS
    with refusals():
        source = one_file(*placed([file], storage, anonymous))
        report = inspect(
            source, columns=names(columns), row_groups=_indexes(row_groups), max_chunks=limit,
            limits=Limits.untrusted(),
        )
    show(report, form)


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
