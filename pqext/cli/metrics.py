"""``pqext metrics FILE``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import click

from pqext.cli.declarations import Option
from pqext.cli.files import File, one_file, refusals
from pqext.cli.locations import Anonymous, Storage, placed
from pqext.cli.reader_options import DEFAULTS, Reading

MODE = "truncate(16)"


class TableFormat(StrEnum):
    """For which kind of table metrics are."""

    iceberg = "iceberg"
    delta = "delta"


def command(
    file: File,
    form: Annotated[
        TableFormat,
        Option(
            "--format",
            help="For a manifest of Iceberg: counts, sizes and offsets, bounds in hex, all by field id. "
            "For the log of Delta: the statistics of an add action.",
        ),
    ],
    exact: Annotated[
        bool,
        Option("--exact", help="Read all values, instead of giving what the footer proves."),
    ] = False,
    mode: Annotated[
        str,
        Option(
            "--mode", metavar="MODE",
            help="Which metrics columns have in Iceberg: none, counts, truncate(N) (bounds too, of text and binary cut "
            "to N), or full.",
        ),
    ] = MODE,
    schema: Annotated[
        str | None,
        Option(
            "--schema", metavar="JSON", show_default=False,
            help="A file with the schema of the Iceberg table: its columns alone, by their ids and types.",
        ),
    ] = None,
    reading: Reading = DEFAULTS,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Show the metrics of a data file for a table format, as JSON: for a manifest of Iceberg or the log of Delta.

    Example: pqext metrics quakes.parquet --format iceberg --exact
    """
    with refusals():
        if form is TableFormat.delta and (mode != MODE or schema is not None):
            raise ValueError("--mode and --schema are for --format iceberg")
        source = one_file(*placed([file], storage, anonymous))
        if form is TableFormat.delta:
            click.echo(_delta(source, exact, reading))
        else:
            click.echo(_iceberg(source, exact, reading, mode, schema))


def _delta(source: object, exact: bool, reading: Reading) -> str:
    from pqext.table_metrics import delta

    return delta(source, exact, limits=reading.limits, decryption=reading.decryption).to_json()


def _iceberg(source: object, exact: bool, reading: Reading, mode: str, schema: str | None) -> str:
    from pathlib import Path

    from pqext.table_metrics import iceberg

    told = None if schema is None else Path(schema).read_text("utf-8")
    found = iceberg(
        source, exact, schema=told, mode=mode, limits=reading.limits, decryption=reading.decryption
    )  # fmt: skip
    return found.to_json(indent=2)
