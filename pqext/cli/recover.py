"""The command ``pqext recover``."""

from __future__ import annotations

import os
import re

import click

from pqext.cli.command import argument, command, flag, option
from pqext.cli.console import REPORT_FORMATS, progress
from pqext.cli.errors import usage_errors
from pqext.cli.locations import InputFile, Storage, check_overwrite, force_option, storage_options
from pqext.cli.reader_options import ReaderOptions, reading_options

NOTHING_RECOVERED = 1
CODECS = ("uncompressed", "snappy", "gzip", "brotli", "lz4", "lz4_raw", "zstd")


@command()
@argument("source", type=InputFile(), metavar="FILE", help="The corrupt file.")
@argument("dest", metavar="OUT", help="Output path.")
@option(
    "--schema", metavar="SIBLING|DDL",
    help="A file with the same columns, or DDL such as 'id BIGINT, name STRING'.",
)
@option("--codec", type=click.Choice(CODECS), help="Compression of the pages; all codecs are tried by default.")
@flag("--drop-columns", help="Drop columns with lost chunks instead of row groups with lost chunks.")
@flag("--null-columns", help="Replace lost chunks of optional columns with nulls.")
@option(
    "--row-group-rows", type=click.IntRange(min=1), metavar="N",
    help="Maximum number of rows per row group in FILE; used only if the pages alone do not determine the row "
    "groups.",
)
@option("--format", type=click.Choice(REPORT_FORMATS), default="text", help="Report format.")
@force_option
@reading_options
@storage_options
def recover(
    source: str, dest: str, schema: str | None, codec: str | None, drop_columns: bool, null_columns: bool,
    row_group_rows: int | None, format: str, force: bool, reading: ReaderOptions, storage: Storage,
) -> None:
    """Recover rows from a file that lost its footer or pages, and report recovered and lost data.

    FILE is not modified. OUT appears once it is complete. If FILE has no footer, --schema identifies the columns of
    its pages.

    Example: pqext recover cut.parquet rest.parquet --schema sibling.parquet
    """
    import json
    from dataclasses import replace

    from pqext.recovery import recover as recover_file
    from pqext.recovery.output import check_distinct

    with usage_errors():
        read, out, *sibling = storage.locate([source, dest, *([] if schema is None else [schema])])
        try:
            check_distinct(read, out)
        except ValueError as error:
            raise ValueError(_use_option_names(str(error))) from None
        if not isinstance(read, str) or os.path.exists(read):  # check for a missing file first
            check_overwrite(out, force)
    try:
        with progress("row groups") as bar:
            result = recover_file(
                read, out, schema=sibling[0] if sibling else None, codec=codec, drop_columns=drop_columns,
                null_columns=null_columns, row_group_rows=row_group_rows, limits=reading.limits, progress=bar,
            )
    except ValueError as error:
        if type(error) is ValueError:  # the error is about an argument, not about the file
            raise click.BadParameter(_use_option_names(str(error))) from None
        raise
    losses = tuple(replace(loss, reason=_use_option_names(loss.reason)) for loss in result.losses)
    result = replace(result, losses=losses, notes=tuple(map(_use_option_names, result.notes)))
    click.echo(json.dumps(result.to_dict(), indent=2) if format == "json" else str(result))
    if not result.written:
        raise click.exceptions.Exit(NOTHING_RECOVERED)


def _use_option_names(text: str) -> str:
    """Replace the names of Python parameters in a message with option names."""
    text = re.sub(r"^dest (?=is|must)", "OUT ", text)
    text = re.sub(r"^schema (?=is|must|needs|has)|\bschema=", "--schema ", text)
    text = re.sub(r"\brow_group_rows=?", "--row-group-rows ", text)
    text = re.sub(r"\b(drop|null)_columns\b", r"--\1-columns", text)
    return " ".join(text.split())
