"""``pqext head FILE...``."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pqext.cli.files import Files, console, names, refusals
from pqext.text import shorten, visible

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1_000
MAX_CELL = 120
"""Characters of a value in a table."""
MAX_COLUMNS = 50
"""Columns of a table."""


class Form(StrEnum):
    """How rows are shown."""

    table = "table"
    json = "json"
    csv = "csv"


def command(
    files: Files,
    rows: Annotated[int, typer.Option("--rows", "-n", min=0, help="How many rows are shown.")] = 10,
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="a,b.c", help="Show only these columns or fields.", show_default=False),
    ] = None,
    filter: Annotated[
        str | None,
        typer.Option(
            "--filter", metavar="CONDITION", show_default=False,
            help="Show only rows such as 'mag >= 5 and event.variant(\"$.type\", \"string\") == \"quake\"' or "
            "'geom.intersects((170, -30, -170, -10))'.",
        ),
    ] = None,
    form: Annotated[
        Form, typer.Option("--format", help="A table, one JSON object per row, or CSV with a heading.")
    ] = Form.table,
) -> None:
    """Show the first rows of files: variants as JSON, geometries as WKT.

    Row groups and pages that the filter rules out are not read.

    Example: [bold]pqext head logs.parquet -n 3 --filter 'event.variant("$.status", "int") == 500'[/bold]
    """
    from pqext.cli.conditions import parse_condition
    from pqext.core.limits import Limits
    from pqext.dataset.scan import scan

    with refusals():
        condition = None if filter is None else parse_condition(filter)
        found = scan(files, names(columns), condition, limits=Limits.untrusted())
        schema = found.schema
        every = found.to_batches(max(1, min(BATCH_ROWS, rows)))
        first = next(every, None) if rows else None  # columns of the filter are looked up now
    batches = iter(()) if first is None else _first(chain([first], every), rows)
    if form is Form.json:
        _print_json(schema, batches)
    elif form is Form.csv:
        _print_csv(schema, batches)
    else:
        _print_table(schema, batches)


def _first(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.slice(0, rows)
        rows -= batch.num_rows
        if rows <= 0:
            return


def _cells(schema: pa.Schema, batch: pa.RecordBatch) -> Iterator[tuple[str | None, ...]]:
    """The rows of a batch, each value as JSON text."""
    from pqext.cli.cells import texts

    if not schema.names:
        yield from [()] * batch.num_rows
        return
    yield from zip(*(texts(column, field) for column, field in zip(batch.columns, schema, strict=True)), strict=True)


def _print_json(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    keys = [json.dumps(name, ensure_ascii=False) for name in schema.names]
    for batch in batches:
        for row in _cells(schema, batch):
            pairs = (f"{key}: {cell or 'null'}" for key, cell in zip(keys, row, strict=True))
            _echo("{" + ", ".join(pairs) + "}")


def _echo(line: str) -> None:
    """Print a line exactly, or made harmless where a terminal shows it."""
    typer.echo(visible(line) if sys.stdout.isatty() else line)


def _plain(cell: str | None) -> str | None:
    """A value without the quotes of a JSON string."""
    text: str | None = json.loads(cell) if cell is not None and cell.startswith('"') else cell
    return text


def _print_csv(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    def line(cells: Iterable[str]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow(cells)
        _echo(text.getvalue())

    line(schema.names)
    for batch in batches:
        for row in _cells(schema, batch):
            line(_plain(cell) or "" for cell in row)


def _print_table(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in schema.names[:MAX_COLUMNS]:
        table.add_column(Text(visible(name)), overflow="ellipsis", no_wrap=True)
    count = 0
    for batch in batches:
        for row in _cells(schema, batch):
            count += 1
            table.add_row(*(_shown(cell) for cell in row[:MAX_COLUMNS]))
    if count:
        console().print(table)
    else:
        typer.echo("no rows")
    if len(schema.names) > MAX_COLUMNS:
        typer.echo(f"and {len(schema.names) - MAX_COLUMNS} more columns: choose with --columns, or use --format json")


def _shown(cell: str | None) -> Any:
    from rich.text import Text

    return Text("null", style="dim") if cell is None else Text(shorten(visible(str(_plain(cell))), MAX_CELL))
