"""The commands ``pqext reshred``, ``pqext unshred``, ``pqext repair`` and ``pqext rewrite-footer``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import click

from pqext.cli.command import argument, command, flag, option
from pqext.cli.console import REPORT_FORMATS, progress
from pqext.cli.errors import usage_errors
from pqext.cli.files import file_argument, find_single_file
from pqext.cli.locations import InputFile, Place, Storage, check_overwrite, display_name, force_option, storage_options
from pqext.cli.reader_options import ReaderOptions, reading_options
from pqext.core.base.text import escape_text, format_size, shorten, with_noun

if TYPE_CHECKING:
    from pqext.core.format.metadata import FileMetaData
    from pqext.variant.rewrite_report import Rewritten

MAX_TEXT = 2_000
FOOTER_FORMATS = ("thrift", "thrift+index", "thrift+flatbuffers", "flatbuffers")
_COLUMN_SCHEMA = re.compile(r"(?P<column>[^\s=<(,:`']+)=(?P<schema>.*)", re.S)
_FOOTER_NOTES: dict[str, str] = {
    "thrift": "",
    "thrift+index": ", with a jump table",
    "thrift+flatbuffers": ", with a second footer, in FlatBuffers",
    "flatbuffers": ", in FlatBuffers: only pqext can read the file now; --footer thrift restores it",
}

_source = argument("source", type=InputFile(), metavar="IN", help="The Parquet file to read; - is standard input.")
_dest = argument(
    "dest", metavar="OUT", help="Output path. It may be IN; without --force, IN is replaced only if no data is lost."
)
_on_corrupt = option(
    "--on-corrupt", type=click.Choice(["raise", "skip"]), default="raise",
    help="Raise an error on corrupt pages, or skip their rows.",
)
_invalid_values = option(
    "--invalid-values", type=click.Choice(["raise", "null"]), default="raise",
    help="Raise an error on values that cannot be decoded, or replace them with null.",
)
_format = option("--format", type=click.Choice(REPORT_FORMATS), default="text", help="Report format.")


@command()
@_source
@_dest
@option(
    "--shredding", metavar="[COLUMN=]infer|none|DDL", multiple=True, show_default="infer",
    help="Shredding schema: 'a INT, b STRING' for all VARIANT columns, or v='a INT' for one; may be repeated. infer "
    'derives it from the data; a JSON object sets options of this inference: '
    '\'{"max_fields": 50, "coerce": "json"}\'.',
)
@option(
    "--coerce", type=click.Choice(["equivalent", "exact", "json"]), default="equivalent",
    help="Values that a typed column accepts: equal values, values of exactly its type, or values with equal JSON.",
)
@_invalid_values
@_on_corrupt
@force_option
@_format
@reading_options
@storage_options
def reshred(
    source: str, dest: str, shredding: tuple[str, ...], coerce: Any, invalid_values: Any, on_corrupt: Any, force: bool,
    format: str, reading: ReaderOptions, storage: Storage,
) -> None:
    """Rewrite a file with another VARIANT shredding. Validates all values and repairs inconsistencies.

    Other columns, metadata, row groups and codecs are preserved. OUT appears once it is complete.

    Example: pqext reshred events.parquet events.parquet --shredding 'event=user STRUCT<id: BIGINT>'
    """
    from pqext.variant.rewriting import reshred_file
    from pqext.variant.shredding.schema import Untyped

    with usage_errors():
        path, out = storage.locate([source, dest])
        check_overwrite(out, force, path)
        decryption = reading.decryption
        schema = parse_shredding(shredding)
    if isinstance(schema, dict):
        schema = {column: Untyped() if choice is None else choice for column, choice in schema.items()}
    elif schema is None:
        schema = Untyped()
    with _force_advice(), _suppress_warnings(), progress() as show:
        result = reshred_file(
            path, out, schema, coerce=coerce, strict=reading.strict, limits=reading.limits, decryption=decryption,
            int96=reading.int96, **reading.text_and_calendar, invalid_values=invalid_values, on_corrupt=on_corrupt,
            progress=show, overwrite=force,
        )
    _report(out, result, format)


@command()
@_source
@_dest
@_invalid_values
@_on_corrupt
@force_option
@_format
@reading_options
@storage_options
def unshred(
    source: str, dest: str, invalid_values: Any, on_corrupt: Any, force: bool, format: str, reading: ReaderOptions,
    storage: Storage,
) -> None:
    """Write VARIANT columns unshredded, for readers without shredding support.

    Other columns, metadata, row groups and codecs are preserved. OUT appears once it is complete.

    Example: pqext unshred events.parquet whole.parquet
    """
    from pqext.variant.rewriting import unshred_file

    with usage_errors():
        path, out = storage.locate([source, dest])
        check_overwrite(out, force, path)
        decryption = reading.decryption
    with _force_advice(), _suppress_warnings(), progress() as show:
        result = unshred_file(
            path, out, strict=reading.strict, limits=reading.limits, decryption=decryption, int96=reading.int96,
            **reading.text_and_calendar, invalid_values=invalid_values, on_corrupt=on_corrupt, progress=show,
            overwrite=force,
        )
    _report(out, result, format)


@command()
@_source
@_dest
@_invalid_values
@force_option
@_format
@reading_options
@storage_options
def repair(
    source: str, dest: str, invalid_values: Any, force: bool, format: str, reading: ReaderOptions, storage: Storage
) -> None:
    """Write the readable data of a corrupt file, with correct statistics, and report lost rows.

    Shredding, codecs, row groups, sort keys and metadata are preserved. OUT appears once it is complete. Use pqext
    recover for files without a footer.

    Example: pqext repair damaged.parquet repaired.parquet
    """
    from pqext.variant.rewriting import repair as repair_file

    with usage_errors():
        path, out = storage.locate([source, dest])
        check_overwrite(out, force, path)
        decryption = reading.decryption
    with _force_advice(), progress() as show:
        result = repair_file(
            path, out, invalid_values=invalid_values, progress=show, overwrite=force, limits=reading.limits,
            decryption=decryption, int96=reading.int96, **reading.text_and_calendar,
        )
    _report(out, result, format)


@command()
@file_argument
@option("--output", "-o", metavar="PATH", help="Output path; FILE is modified in place by default.")
@option(
    "--footer", type=click.Choice(FOOTER_FORMATS), default="thrift",
    help="Footer format. thrift+index adds a jump table, which lets pqext open a few of many columns; "
    "thrift+flatbuffers adds a second footer, used if the first is damaged; flatbuffers stores only this second "
    "footer, which no other reader supports.",
)
@flag("--drop-extensions", help="Remove all footer extensions.")
@force_option
@reading_options
@storage_options
def rewrite_footer(
    file: str, output: str | None, footer: Any, drop_extensions: bool, force: bool, reading: ReaderOptions,
    storage: Storage,
) -> None:
    """Rewrite the footer of a file, optionally in another format. Data pages are not modified.

    Example: pqext rewrite-footer wide.parquet --footer thrift+index
    """
    from pqext.core.footer import writing
    from pqext.core.footer.reading import read_footer
    from pqext.core.footer.writing import footer_format_of
    from pqext.core.io.sources.locations import open_source

    with usage_errors():
        source, *dest = storage.locate([file] if output is None else [file, output])
        path = find_single_file(source)
        if dest:
            check_overwrite(dest[0], force, source)

    def change(metadata: FileMetaData) -> None:
        if drop_extensions:
            writing.drop_extensions(metadata)

    out = dest[0] if dest else path
    writing.rewrite_footer(path, change, dest[0] if dest else None, footer=footer, limits=reading.limits)
    with open_source(out) as opened:
        length = format_size(read_footer(opened).length)
        click.echo(f"{display_name(out)}: a footer of {length}{_FOOTER_NOTES[footer_format_of(opened)]}")


@contextmanager
def _force_advice() -> Iterator[None]:
    """Context manager that adds advice to pass --force to errors about data loss."""
    from pqext.variant.rewrite_report import LossError

    try:
        yield
    except LossError as error:
        raise LossError(error.lost, "pass --force to accept the loss") from None


@contextmanager
def _suppress_warnings() -> Iterator[None]:
    """Context manager that suppresses warnings about losses, because the report lists them."""
    from pqext.core.base.errors import CorruptDataWarning

    with catch_warnings():
        simplefilter("ignore", CorruptDataWarning)
        yield


def parse_shredding(texts: Sequence[str]) -> Any:
    """Parse ``--shredding``. Return a single choice for all columns, or a mapping from columns to choices.

    A choice is a schema, options, ``infer`` (the default), or None for ``none``.

    Raises:
        ValueError: If a text is invalid, if a column has two schemas, or if a schema for all columns is combined with
            schemas for single columns.
    """
    from pqext.variant.shredding.choice import parse_shredding

    choices: dict[str, str | None] = {}
    for text in texts or ["infer"]:
        match = _COLUMN_SCHEMA.fullmatch(text.strip())
        column, choice = (match["column"], match["schema"]) if match is not None else ("", text)
        choice = choice.strip()
        if column in choices:
            raise ValueError(f"--shredding: column {escape_text(column)!r} has two schemas; pass only one schema")
        if choice.lower() == "none":
            choices[column] = None
            continue
        try:
            parse_shredding(choice)
        except (ValueError, TypeError) as error:
            raise ValueError(f"--shredding: {error}") from None
        choices[column] = choice
    if "" in choices and len(choices) > 1:
        raise ValueError("--shredding: pass one schema for all columns, or COLUMN=DDL for each")
    return choices.get("", choices)


def _report(dest: Place, result: Rewritten, format: str) -> None:
    if format == "json":
        click.echo(json.dumps(result.to_dict(), indent=2))
        return
    rows, groups = with_noun(result.rows, "row"), with_noun(result.row_groups, "row group")
    click.echo(f"{display_name(dest)}: {rows} in {groups}")
    for column, schema in result.schemas.items():
        click.echo(f"  {escape_text(column)}: {shorten(escape_text(str(schema)), MAX_TEXT)}")
    if result.damage:
        from pqext.variant.rewrite_report import format_damage

        click.echo(f"  rows lost to {with_noun(len(result.damage), 'corrupt range')}:", err=True)
        for line in format_damage(result.damage):
            click.echo(f"    {line}", err=True)
    if result.invalid:
        click.echo(f"  {with_noun(result.invalid, 'value')} could not be read and became null")
