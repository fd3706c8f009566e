"""The command ``pqext metrics``."""

from __future__ import annotations

import click

from pqext.cli.command import command, flag, option
from pqext.cli.errors import usage_errors
from pqext.cli.files import file_argument, find_single_file
from pqext.cli.locations import Storage, storage_options
from pqext.cli.reader_options import ReaderOptions, reading_options

DEFAULT_MODE = "truncate(16)"


@command()
@file_argument
@option(
    "--format", type=click.Choice(["iceberg", "delta"]), required=True,
    help="Table format: counts, sizes, offsets and hexadecimal bounds by field id for an Iceberg manifest, or the "
    "statistics of an add action for the Delta log.",
)
@flag("--exact", help="Read all values instead of deriving metrics from the footer.")
@option(
    "--mode", metavar="MODE", default=DEFAULT_MODE,
    help="Iceberg metrics mode: none, counts, truncate(N) (with bounds of text and binary truncated to N), or full.",
)
@option(
    "--schema", metavar="JSON",
    help="File with the schema of the Iceberg table; metrics cover only its columns, by their ids and types.",
)
@reading_options
@storage_options
def metrics(
    file: str, format: str, exact: bool, mode: str, schema: str | None, reading: ReaderOptions, storage: Storage
) -> None:
    """Print the metrics of a data file as JSON, for an Iceberg manifest or the Delta log.

    Example: pqext metrics quakes.parquet --format iceberg --exact
    """
    with usage_errors():
        if format == "delta" and (mode != DEFAULT_MODE or schema is not None):
            raise ValueError("--mode and --schema require --format iceberg")
        source = find_single_file(*storage.locate([file]))
        if format == "delta":
            click.echo(_delta_json(source, exact, reading))
        else:
            click.echo(_iceberg_json(source, exact, reading, mode, schema))


def _delta_json(source: object, exact: bool, reading: ReaderOptions) -> str:
    from pqext.table_metrics import delta

    return delta(source, exact, limits=reading.limits, decryption=reading.decryption).to_json()


def _iceberg_json(source: object, exact: bool, reading: ReaderOptions, mode: str, schema: str | None) -> str:
    from pathlib import Path

    from pqext.table_metrics import iceberg

    schema_text = None if schema is None else Path(schema).read_text("utf-8")
    metrics = iceberg(
        source, exact, schema=schema_text, mode=mode, limits=reading.limits, decryption=reading.decryption
    )
    return metrics.to_json(indent=2)
