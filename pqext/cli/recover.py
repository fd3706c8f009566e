"""``pqext recover FILE -o OUT``."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from typing import Annotated

import click

from pqext.cli.declarations import Argument, Option
from pqext.cli.files import Form, refusals
from pqext.cli.locations import Anonymous, Storage, placed
from pqext.cli.outputs import Force, check_new
from pqext.cli.reader_options import DEFAULTS, Reading

NOTHING = 1


class Codec(StrEnum):
    """How pages are compressed."""

    uncompressed = "uncompressed"
    snappy = "snappy"
    gzip = "gzip"
    brotli = "brotli"
    lz4 = "lz4"
    lz4_raw = "lz4_raw"
    zstd = "zstd"


def command(
    source: Annotated[str, Argument(metavar="FILE", help="The damaged file.", show_default=False, is_file=True)],
    dest: Annotated[
        str, Option("--out", "--output", "-o", metavar="OUT", help="The file to write.", show_default=False)
    ],
    schema: Annotated[
        str | None,
        Option(
            "--schema", metavar="SIBLING|DDL", show_default=False,
            help="A file with the same columns, or their types, like 'id BIGINT, name STRING'.",
        ),
    ] = None,
    codec: Annotated[
        Codec | None, Option("--codec", help="How pages are compressed; all are tried.", show_default=False)
    ] = None,
    drop_columns: Annotated[
        bool, Option("--drop-columns", help="Leave out columns that lost a chunk, not the row groups that did.")
    ] = False,
    null_columns: Annotated[
        bool, Option("--null-columns", help="Put nulls in the place of lost chunks of optional columns.")
    ] = False,
    row_group_rows: Annotated[
        int | None,
        Option(
            "--row-group-rows", min=1, show_default=False,
            help="Rows of a row group at most, where pages can be split in several ways.",
        ),
    ] = None,
    form: Annotated[Form, Option("--format", help="A report for people, or JSON.")] = Form.text,
    force: Force = False,
    reading: Reading = DEFAULTS,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Recover rows of a file without a valid footer or with lost pages, and report what was recovered.

    FILE is never touched; OUT appears when it is whole. Without any footer, pages are told apart by a schema.

    Example: pqext recover cut.parquet -o rest.parquet --schema sibling.parquet
    """
    import json
    from dataclasses import replace

    from pqext.recovery import recover
    from pqext.recovery.output import check_distinct

    with refusals():
        read, out, *sibling = placed([source, dest, *([] if schema is None else [schema])], storage, anonymous)
        try:
            check_distinct(read, out)
        except ValueError as error:
            raise ValueError(_in_options(str(error))) from None
        if not isinstance(read, str) or os.path.exists(read):  # that it is not there is told first
            check_new(out, force)
    try:
        done = recover(
            read, out, schema=sibling[0] if sibling else None, codec=None if codec is None else codec.value,
            drop_columns=drop_columns, null_columns=null_columns, row_group_rows=row_group_rows,
            limits=reading.limits,
        )
    except ValueError as error:
        if type(error) is ValueError:  # all of these are arguments
            raise click.BadParameter(_in_options(str(error))) from None
        raise
    losses = tuple(replace(loss, reason=_in_options(loss.reason)) for loss in done.losses)
    done = replace(done, losses=losses, notes=tuple(map(_in_options, done.notes)))
    click.echo(json.dumps(done.to_dict(), indent=2) if form is Form.json else str(done))
    if not done.written:
        raise click.exceptions.Exit(NOTHING)


def _in_options(text: str) -> str:
    """Text about parameters, about the options in their place."""
    text = re.sub(r"^dest (?=is|must)", "OUT ", text)
    text = re.sub(r"^schema (?=is|must|needs)|\bschema=", "--schema ", text)
    text = re.sub(r"\brow_group_rows=?", "--row-group-rows ", text)
    text = re.sub(r"\b(drop|null)_columns\b", r"--\1-columns", text)
    return " ".join(text.split())
