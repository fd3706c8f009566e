"""``pqext query``, ``pqext head`` and ``pqext count``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import click

from pqext.cli.command import command, flag, option
from pqext.cli.console import progress
from pqext.cli.errors import usage_errors
from pqext.cli.locations import (
    STREAM,
    Place,
    Storage,
    check_new,
    force_option,
    named,
    storage_options,
    without_path,
)
from pqext.cli.reader_options import Reading, reading_options
from pqext.cli.rows import BATCH_ROWS, FORMAT_BY_SUFFIX, FORMATS, MAX_ROWS, write_rows
from pqext.cli.scan_options import (
    ScanOptions,
    formats_of,
    geometry_option,
    json_option,
    order_by_option,
    order_rows,
    scan_options,
    select_option,
    variants_option,
)
from pqext.core.base.progress import Progress
from pqext.core.base.text import with_noun

if TYPE_CHECKING:
    import pyarrow as pa

    from pqext.dataset.presentation.columns import Formats
    from pqext.dataset.scan import Scan

TABLE_ROWS = 100
"""Rows of a table if no limit is set."""


@command()
@scan_options
@select_option
@order_by_option
@option("--limit", "-n", type=click.IntRange(min=0), help="Maximum number of rows; reading stops there.")
@option("--offset", type=click.IntRange(min=0), default=0, help="Number of rows to skip before the first row returned.")
@option(
    "--format", type=click.Choice(FORMATS), show_default="by the extension of --output, otherwise table",
    help="Output format: a table, one JSON object per row, CSV with a header row, Parquet, or Arrow.",
)
@option(
    "--output", "-o", metavar="PATH", default=STREAM, show_default="standard output",
    help="Output path. The file appears once it is complete.",
)
@force_option
@variants_option
@geometry_option
@flag("--explain", help="Print what would be read and skipped, without reading rows.")
@flag("--metrics", help="Print requests, bytes, pages and times on standard error at the end.")
@json_option
@reading_options
@storage_options
def query(
    scan: ScanOptions, select: tuple[str, ...], order_by: str | None, limit: int | None, offset: int,
    format: str | None, output: str, force: bool, variants: str | None, geometry: str | None, explain: bool,
    metrics: bool, as_json: bool, reading: Reading, storage: Storage,
) -> None:
    """Print or write the rows of files that match a condition: variants as JSON, geometries as WKT.

    Row groups and pages that the condition rules out are not read. Rows are streamed in bounded memory.

    Example: pqext query 'logs/*.parquet' --where 'status >= 500' --select id,status --output bad.csv
    """
    with usage_errors():
        *places, store, out = storage.locate([*scan.sources, scan.skipping or "", output])
        dest = None if output == STREAM else out
        chosen = _output_format(format, dest, as_json and not explain)
        if chosen == "table" and (dest is not None or (limit or 0) > MAX_ROWS):
            raise ValueError(f"tables are printed, up to {MAX_ROWS:,} rows; use --format json, csv, parquet or arrow")
        rows = order_rows(scan.scan(places, store or None, reading, select), order_by)
        if explain:
            click.echo(without_path(rows.limit(limit, offset).explain("json" if as_json else "text")))
            return
        if dest is not None:
            check_new(dest, force)
        is_table_page = limit is None and chosen == "table"
        rows = rows.limit(TABLE_ROWS + 1 if is_table_page else limit, offset)
        is_text = chosen in ("table", "json", "csv")
        formats = formats_of(variants, geometry, is_text)
        schema, batches = _start(rows, BATCH_ROWS if is_text else None)
    with progress(enabled=dest is not None or not sys.stdout.isatty()) as show:
        counted_batches = _report_rows(batches, show)
        if is_table_page:
            _write_page(schema, list(counted_batches), formats)
        else:
            write_rows(chosen, schema, counted_batches, dest, formats)
    if dest is not None:
        click.echo(f"{named(dest)}: {with_noun(0 if rows.metrics is None else rows.metrics.rows, 'row')}", err=True)
    if metrics:
        click.echo(repr(rows.metrics), err=True)


@command()
@scan_options
@select_option
@option("--rows", "-n", type=click.IntRange(0, MAX_ROWS), default=10, help="Number of rows.")
@option(
    "--format", type=click.Choice(["table", "json", "csv"]), default="table",
    help="Output format: a table, one JSON object per row, or CSV with a header row.",
)
@variants_option
@geometry_option
@json_option
@reading_options
@storage_options
def head(
    scan: ScanOptions, select: tuple[str, ...], rows: int, format: str, variants: str | None, geometry: str | None,
    as_json: bool, reading: Reading, storage: Storage,
) -> None:
    """Show the first rows of files: variants as JSON, geometries as WKT.

    Example: pqext head logs.parquet -n 3 --where 'event:$.status = 500'
    """
    with usage_errors():
        *places, store = storage.locate([*scan.sources, scan.skipping or ""])
        schema, batches = _start(scan.scan(places, store or None, reading, select).limit(rows), BATCH_ROWS)
    write_rows("json" if as_json else format, schema, batches, None, formats_of(variants, geometry, True))


@command()
@scan_options
@json_option
@reading_options
@storage_options
def count(scan: ScanOptions, as_json: bool, reading: Reading, storage: Storage) -> None:
    """Count the rows of files, or the rows that match a condition.

    Without a condition only footers are read.

    Example: pqext count 'logs/*.parquet' --where 'status >= 500'
    """
    with usage_errors():
        *places, store = storage.locate([*scan.sources, scan.skipping or ""])
        rows = scan.scan(places, store or None, reading).count()
    click.echo(json.dumps({"rows": rows}) if as_json else str(rows))


def _output_format(format: str | None, dest: Place | None, as_json: bool) -> str:
    """Return the output format; raise ``ValueError`` if the extension of ``dest`` is unknown."""
    if as_json:
        if format not in (None, "json"):
            raise ValueError(f"--json and --format {format} are mutually exclusive")
        return "json"
    if format is not None:
        return format
    if dest is None:
        return "table"
    suffix = os.path.splitext(str(dest))[1].lower()
    if suffix not in FORMAT_BY_SUFFIX:
        raise ValueError(f"{named(dest)!r} has no known file extension; pass --format json, csv, parquet or arrow")
    return FORMAT_BY_SUFFIX[suffix]


def _start(scan: Scan, batch_rows: int | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches, having read the first, which reports errors in the arguments."""
    schema = scan.schema
    batches = iter(scan) if batch_rows is None else scan.to_batches(batch_rows)
    first = next(batches, None)
    return schema, iter(()) if first is None else chain([first], batches)


def _report_rows(batches: Iterator[pa.RecordBatch], show: Progress) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in batches:
        yield batch
        rows += batch.num_rows
        show(rows, None)


def _write_page(schema: pa.Schema, batches: list[pa.RecordBatch], formats: Formats) -> None:
    """Print the first ``TABLE_ROWS`` rows as a table, and report whether more rows follow."""
    write_rows("table", schema, _first_rows(batches, TABLE_ROWS), None, formats)
    if sum(batch.num_rows for batch in batches) > TABLE_ROWS:
        click.echo(f"and more rows: --limit shows more than {TABLE_ROWS}, --output writes all", err=True)


def _first_rows(batches: list[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if rows > 0:
            yield batch.slice(0, rows)
        rows -= batch.num_rows
