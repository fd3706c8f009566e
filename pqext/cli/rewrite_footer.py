"""``pqext rewrite-footer FILE``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import click

from pqext.cli.choices import FooterForm
from pqext.cli.declarations import Option
from pqext.cli.files import File, one_file, refusals
from pqext.cli.locations import Anonymous, Storage, placed
from pqext.cli.outputs import Force, check_new, named
from pqext.cli.reader_options import DEFAULTS, Reading
from pqext.core.base.text import format_size

if TYPE_CHECKING:
    from pqext.core.format.metadata import FileMetaData


def command(
    file: File,
    output: Annotated[
        str | None,
        Option("--output", "-o", help="Where the file with the other footer goes; FILE is changed by default.",
                     show_default=False),
    ] = None,
    footer: Annotated[
        FooterForm,
        Option(
            "--footer",
            help="thrift+index adds a jump table, by which pqext opens few of many columns; thrift+flatbuffers adds a "
            "second footer, by which a file opens whose first is damaged; flatbuffers leaves only that, which no other "
            "reader knows.",
        ),
    ] = FooterForm.thrift,
    drop_extensions: Annotated[
        bool, Option("--drop-extensions", help="Drop all extensions, which are for readers that know them.")
    ] = False,
    force: Force = False,
    reading: Reading = DEFAULTS,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Rewrite the footer of a file in the same or another format. Pages stay as they are.

    Example: pqext rewrite-footer wide.parquet --footer thrift+index
    """
    from pqext.core.footer import rewrite
    from pqext.core.footer.reading import read_footer
    from pqext.core.footer.writing import form_of
    from pqext.core.io.sources.source_factory import open_source

    with refusals():
        source, *dest = placed([file] if output is None else [file, output], storage, anonymous)
        path = one_file(source)
        if dest:
            check_new(dest[0], force, source)

    def changed(metadata: FileMetaData) -> None:
        if drop_extensions:
            rewrite.drop_extensions(metadata)

    out = dest[0] if dest else path
    rewrite.rewrite_footer(path, changed, dest[0] if dest else None, footer=footer.value, limits=reading.limits)
    with open_source(out) as opened:
        click.echo(f"{named(out)}: a footer of {format_size(read_footer(opened).length)}{_TOLD[form_of(opened)]}")


_TOLD: dict[str, str] = {
    "thrift": "",
    "thrift+index": ", with a jump table",
    "thrift+flatbuffers": ", with a second footer, in FlatBuffers",
    "flatbuffers": ", in FlatBuffers: only pqext reads the file now, and --footer thrift turns it back",
}
"""What a footer is beyond an ordinary one, by its form."""
