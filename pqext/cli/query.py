"""``pqext query``, ``pqext head`` and ``pqext count``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import click

from pqext.cli.declarations import Option
from pqext.cli.files import refusals
from pqext.cli.locations import Anonymous, Place, Storage, placed
from pqext.cli.outputs import Force, check_new, named
from pqext.cli.progress import progress
from pqext.cli.reader_options import DEFAULTS, Reading
from pqext.cli.rows import BATCH_ROWS, BY_SUFFIX, MAX_ROWS, Form, write_rows
from pqext.cli.scan_arguments import (
    Geometry,
    IgnoreTableFormat,
    Invalid,
    Json,
    OnInvalid,
    OrderBy,
    PartitionTypes,
    Select,
    Skipping,
    Sources,
    Timezone,
    Union,
    Variants,
    Where,
    asked,
    formats_of,
    ordered,
)
from pqext.cli.standard_input import STREAM, without_path
from pqext.core.base.text import with_noun

if TYPE_CHECKING:
    import pyarrow as pa

    from pqext.dataset.presentation.columns import Formats
    from pqext.dataset.scan import Scan

TABLE_ROWS = 100
"""Rows of a table where no limit is given."""


class Shown(StrEnum):
    """How the first rows are shown."""

    table = "table"
    json = "json"
    csv = "csv"


def query(
    sources: Sources,
    where: Where = None,
    select: Select = None,
    order_by: OrderBy = None,
    union: Union = False,
    on_invalid: Invalid = OnInvalid.stop,
    partition_types: PartitionTypes = None,
    skipping: Skipping = None,
    ignore_table_format: IgnoreTableFormat = False,
    timezone: Timezone = "UTC",
    limit: Annotated[
        int | None,
        Option("--limit", "-n", min=0, help="At most so many rows; reading stops then.", show_default=False),
    ] = None,
    offset: Annotated[int, Option("--offset", min=0, help="Pass over so many rows first.")] = 0,
    form: Annotated[
        Form | None,
        Option(
            "--format", help="A table, one JSON object per row, CSV with a heading, Parquet, or Arrow.",
            show_default="by the end of --output, else table",
        ),
    ] = None,
    output: Annotated[
        str,
        Option(
            "--output", "-o", metavar="PATH", help="Where the rows go; the file appears when it is whole.",
            show_default="standard output",
        ),
    ] = STREAM,
    force: Force = False,
    variants: Variants = None,
    geometry: Geometry = None,
    explain: Annotated[
        bool, Option("--explain", help="Print what would be read and what is skipped, and read no rows.")
    ] = False,
    metrics: Annotated[
        bool, Option("--metrics", help="Print requests, bytes, pages and times on standard error in the end.")
    ] = False,
    as_json: Json = False,
    reading: Reading = DEFAULTS,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Print or write the rows of files for which a condition is true: variants as JSON, geometries as WKT.

    Row groups and pages that the condition rules out are not read, and rows are streamed in bounded memory.

    Example: pqext query 'logs/*.parquet' --where 'status >= 500' --select id,status --output bad.csv
    """
    with refusals():
        *places, store, out = placed([*sources, skipping or "", output], storage, anonymous)
        dest = None if output == STREAM else out
        chosen = _form(form, dest, as_json and not explain)
        if chosen is Form.table and (dest is not None or (limit or 0) > MAX_ROWS):
            raise ValueError(f"a table is shown, of at most {MAX_ROWS:,} rows: --format json, csv, parquet or arrow")
        found = asked(
            places, where, select, union, on_invalid, partition_types, store or None, timezone, reading,
            ignore_table_format,
        )  # fmt: skip
        found = ordered(found, order_by)
        if explain:
            click.echo(without_path(found.limit(limit, offset).explain("json" if as_json else "text")))
            return
        if dest is not None:
            check_new(dest, force)
        most = TABLE_ROWS + 1 if limit is None and chosen is Form.table else limit
        found = found.limit(most, offset)
        is_text = chosen in (Form.table, Form.json, Form.csv)
        formats = formats_of(variants, geometry, is_text)
        schema, batches = _started(found, BATCH_ROWS if is_text else None)
    with progress(shown=dest is not None or not sys.stdout.isatty()) as show:
        _write(chosen, schema, _told(batches, show), dest, formats, TABLE_ROWS if most != limit else None)
    if dest is not None:
        click.echo(f"{named(dest)}: {with_noun(_rows(found), 'row')}", err=True)
    if metrics:
        click.echo(repr(found.metrics), err=True)


def head(
    sources: Sources,
    rows: Annotated[int, Option("--rows", "-n", min=0, max=MAX_ROWS, help="How many rows are shown.")] = 10,
    select: Select = None,
    where: Where = None,
    union: Union = False,
    on_invalid: Invalid = OnInvalid.stop,
    partition_types: PartitionTypes = None,
    skipping: Skipping = None,
    ignore_table_format: IgnoreTableFormat = False,
    timezone: Timezone = "UTC",
    form: Annotated[
        Shown, Option("--format", help="A table, one JSON object per row, or CSV with a heading.")
    ] = Shown.table,
    variants: Variants = None,
    geometry: Geometry = None,
    as_json: Json = False,
    reading: Reading = DEFAULTS,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Show the first rows of files: variants as JSON, geometries as WKT.

    Example: pqext head logs.parquet -n 3 --where 'event:$.status = 500'
    """
    with refusals():
        *places, store = placed([*sources, skipping or ""], storage, anonymous)
        found = asked(
            places, where, select, union, on_invalid, partition_types, store or None, timezone, reading,
            ignore_table_format,
        )  # fmt: skip
        schema, batches = _started(found.limit(rows), BATCH_ROWS)
    formats = formats_of(variants, geometry, True)
    write_rows(Form.json if as_json else Form(form.value), schema, batches, None, formats)


def count(
    sources: Sources,
    where: Where = None,
    union: Union = False,
    on_invalid: Invalid = OnInvalid.stop,
    partition_types: PartitionTypes = None,
    skipping: Skipping = None,
    ignore_table_format: IgnoreTableFormat = False,
    timezone: Timezone = "UTC",
    as_json: Json = False,
    reading: Reading = DEFAULTS,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Count the rows of files, or those for which a condition is true.

    Without a condition only footers are read.

    Example: pqext count 'logs/*.parquet' --where 'status >= 500'
    """
    with refusals():
        *places, store = placed([*sources, skipping or ""], storage, anonymous)
        found = asked(
            places, where, None, union, on_invalid, partition_types, store or None, timezone, reading,
            ignore_table_format,
        )  # fmt: skip
        rows = found.count()
    click.echo(json.dumps({"rows": rows}) if as_json else str(rows))


def _form(form: Form | None, dest: Place | None, as_json: bool) -> Form:
    """The form of the output; ``ValueError`` where a name does not tell it."""
    if as_json:
        if form not in (None, Form.json):
            raise ValueError(f"--json and --format {form} are two forms")
        return Form.json
    if form is not None:
        return form
    if dest is None:
        return Form.table
    suffix = os.path.splitext(str(dest))[1].lower()
    if suffix not in BY_SUFFIX:
        raise ValueError(f"{named(dest)!r} has no known file extension; pass --format json, csv, parquet or arrow")
    return BY_SUFFIX[suffix]


def _started(found: Scan, batch_rows: int | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema and the batches, the first one read: what is wrong with the arguments shows now."""
    schema = found.schema
    every = iter(found) if batch_rows is None else found.to_batches(batch_rows)
    first = next(every, None)
    return schema, iter(()) if first is None else chain([first], every)


def _told(batches: Iterator[pa.RecordBatch], show: object) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in batches:
        yield batch
        done += batch.num_rows
        if callable(show):
            show(done)


def _write(
    form: Form, schema: pa.Schema, batches: Iterator[pa.RecordBatch], dest: Place | None, formats: Formats,
    shown: int | None,
) -> None:
    """Write the rows, of a table only those ``shown``, and say whether there are more."""
    if shown is None:
        write_rows(form, schema, batches, dest, formats)
        return
    every = list(batches)
    more = sum(batch.num_rows for batch in every) > shown
    write_rows(form, schema, _first(every, shown), dest, formats)
    if more:
        click.echo(f"and more rows: --limit shows more than {shown}, --output writes all", err=True)


def _first(batches: list[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if rows > 0:
            yield batch.slice(0, rows)
        rows -= batch.num_rows


def _rows(found: Scan) -> int:
    return 0 if found.metrics is None else found.metrics.rows
