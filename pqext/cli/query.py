"""The commands ``pqext query``, ``pqext head`` and ``pqext count``."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, repeat
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pqext.cli.command import command, flag, option
from pqext.cli.console import print_rich, progress, terminal_width
from pqext.cli.errors import usage_errors
from pqext.cli.locations import (
    STREAM,
    Place,
    Storage,
    binary_output,
    check_overwrite,
    display_name,
    force_option,
    hide_temporary_path,
    open_output,
    storage_options,
)
from pqext.cli.reader_options import ReaderOptions, reading_options
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
from pqext.core.base.text import escape_text, shorten, with_noun

if TYPE_CHECKING:
    import pyarrow as pa

    from pqext.dataset.presentation.columns import Formats
    from pqext.dataset.scan import Scan

BATCH_ROWS = 65_536
"""Rows in a batch that is converted to text."""
MAX_CELL = 120
"""Maximum characters of a value in a table."""
MAX_COLUMNS = 50
"""Maximum columns of a table."""
MAX_ROWS = 10_000
"""Maximum rows of a table, which is held in memory to compute column widths."""
_GAP = 2
_MIN_WIDTH = 12
"""Minimum width of a table column, including the gap."""


FORMATS = ("table", "json", "csv", "parquet", "arrow")
FORMAT_BY_SUFFIX = {
    ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv", ".parquet": "parquet", ".parq": "parquet",
    ".arrow": "arrow", ".arrows": "arrow", ".feather": "arrow", ".ipc": "arrow",
}


def write_rows(
    format: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], dest: Place | None,
    formats: Formats | None = None,
) -> None:
    """Write rows in one of ``FORMATS`` to ``dest``, or to standard output if it is None.

    ``formats`` sets the format of VARIANT and geometry columns. The default is JSON and WKT in text formats, and the
    stored binary values in Parquet and Arrow.
    """
    if format in ("json", "csv"):
        lines = _text_chunks(format, schema, batches, formats)
        if dest is None:
            _print(lines, format == "json")
        else:
            with open_output(dest) as file:
                for text in lines:
                    file.write(text)
        return
    if format == "table":
        print_table(schema, batches, formats)
        return
    if formats is not None:
        batches, schema = map(formats.convert_batch, batches, repeat(schema)), formats.schema(schema)
    if format == "parquet":
        from pqext.core.write.writer import ParquetWriter

        with ParquetWriter(binary_output("Parquet") if dest is None else dest, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    else:
        _write_arrow(schema, batches, dest)


def _write_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch], dest: Place | None) -> None:
    """Write an Arrow stream to standard output and to paths that end in ``.arrows``, otherwise an Arrow file."""
    import pyarrow as pa

    if dest is None:
        with pa.ipc.new_stream(binary_output("Arrow"), schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
        return
    make: Callable[..., Any] = pa.ipc.new_stream if str(dest).lower().endswith(".arrows") else pa.ipc.new_file
    with open_output(dest) as file, make(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _print(texts: Iterable[bytes | memoryview], is_json: bool) -> None:
    """Print text. Control characters are escaped on a terminal, non-ASCII JSON characters if output is not UTF-8."""
    out = sys.stdout
    is_terminal, buffer = out.isatty(), getattr(out, "buffer", None)
    is_utf8 = (out.encoding or "").lower().startswith("utf")
    if not is_terminal and buffer is not None and (is_utf8 or not is_json):
        out.flush()
        for data in texts:
            buffer.write(data)
        buffer.flush()
        return
    for data in texts:
        text = str(data, "utf-8")
        if is_json and not is_utf8:
            text = _escape_non_ascii(text)
        out.write("\n".join(map(escape_text, text.split("\n"))) if is_terminal else text)
    out.flush()


def _escape_non_ascii(text: str) -> str:
    """Escape non-ASCII characters in JSON text, where they occur only in strings."""
    return re.sub(r"[^\x00-\x7f]+", lambda match: json.dumps(match[0])[1:-1], text)


def _text_chunks(
    format: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], formats: Formats | None
) -> Iterator[bytes | memoryview]:
    """Yield rows as text, in chunks of JSON lines or of CSV lines with a header."""
    from pqext.dataset.presentation.columns import SHOWN
    from pqext.dataset.presentation.row_text import csv_heading, csv_lines, json_lines

    if format == "csv":
        yield csv_heading(schema)
    lines = json_lines if format == "json" else csv_lines
    for batch in batches:
        yield from lines(batch, schema, formats or SHOWN)


def print_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch], formats: Formats | None = None) -> None:
    """Print rows as a table, with one line per row and truncated values.

    On a terminal, only the first columns that fit into its width are shown.
    """
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    from pqext.dataset.presentation.columns import SHOWN

    names = [Text(shorten(escape_text(name), MAX_CELL)) for name in schema.names[:MAX_COLUMNS]]
    rows = [[_cell_text(cell) for cell in row] for batch in batches for row in _cells(schema, batch, formats or SHOWN)]
    if not rows:
        print("no rows")
        return
    if not schema.names:
        print(with_noun(len(rows), "row"))
        return
    widths = [max(cell_len(text.plain) for text in texts) + _GAP for texts in zip(names, *rows, strict=True)]
    if (available := terminal_width()) is not None:
        widths = _fit_widths(widths, available)
    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="bold")
    for name, width in zip(names, widths, strict=False):
        table.add_column(name, overflow="ellipsis", no_wrap=True, width=width - _GAP)
    for row in rows:
        table.add_row(*row[: len(widths)])
    print_rich(table, sum(widths))
    if hidden := len(schema.names) - len(widths):
        print(f"and {with_noun(hidden, 'more column')}; use --select or --format json")


def _cells(schema: pa.Schema, batch: pa.RecordBatch, formats: Formats) -> Iterable[tuple[str | None, ...]]:
    """Yield the text of the values of the first columns, row by row."""
    from pqext.dataset.presentation.row_text import texts

    columns = [
        texts(column, field, formats).to_pylist()
        for column, field in zip(batch.columns[:MAX_COLUMNS], list(schema)[:MAX_COLUMNS], strict=True)
    ]
    return zip(*columns, strict=True) if columns else [()] * batch.num_rows


def _fit_widths(widths: list[int], available: int) -> list[int]:
    """Return column widths that add up to ``available`` characters. Wide columns are narrowed, last columns dropped.

    >>> _fit_widths([4, 50, 30, 9], 50)
    [4, 18, 18, 9]
    """
    fitting = sum(needed <= available for needed in accumulate(min(width, _MIN_WIDTH) for width in widths))
    first = widths[: max(1, fitting)]
    limit = max(first)
    while limit > _GAP + 1 and sum(min(width, limit) for width in first) > available:
        limit -= 1
    return [min(width, limit) for width in first]


def _cell_text(cell: str | None) -> Any:
    from rich.text import Text

    return Text("null", style="dim") if cell is None else Text(shorten(escape_text(cell), MAX_CELL))


TABLE_ROWS = 100
"""Rows of a table if no limit is set."""


@command()
@scan_options
@select_option
@order_by_option
@option("--limit", "-n", type=click.IntRange(min=0), metavar="N", help="Maximum number of rows; reading stops there.")
@option("--offset", type=click.IntRange(min=0), metavar="N", default=0, help="Number of rows to skip at the start.")
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
    metrics: bool, as_json: bool, reading: ReaderOptions, storage: Storage,
) -> None:
    """Print or write the rows that match a condition: variants as JSON, geometries as WKT.

    Row groups and pages that the condition rules out are not read. Rows are streamed in bounded memory.

    Example: pqext query 'logs/*.parquet' --where 'status >= 500' --select id,status --output bad.csv
    """
    with usage_errors():
        *places, store, out = storage.locate([*scan.sources, scan.skipping or "", output])
        dest = None if output == STREAM else out
        chosen = _output_format(format, dest, as_json and not explain)
        if chosen == "table" and (dest is not None or (limit or 0) > MAX_ROWS):
            raise ValueError(
                f"--format table prints at most {MAX_ROWS:,} rows and cannot write a file; use --format json, csv, "
                "parquet or arrow"
            )
        rows = order_rows(scan.scan(places, store or None, reading, storage, select), order_by)
        if explain:
            click.echo(hide_temporary_path(rows.limit(limit, offset).explain("json" if as_json else "text")))
            return
        if dest is not None:
            check_overwrite(dest, force)
        is_table_page = limit is None and chosen == "table"
        rows = rows.limit(TABLE_ROWS + 1 if is_table_page else limit, offset)
        is_text = chosen in ("table", "json", "csv")
        formats = formats_of(variants, geometry, is_text)
        schema, batches = _start_scan(rows, BATCH_ROWS if is_text else None)
    with progress(is_enabled=dest is not None or not sys.stdout.isatty()) as show:
        counted_batches = _report_rows(batches, show)
        if is_table_page:
            _print_first_page(schema, list(counted_batches), formats)
        else:
            write_rows(chosen, schema, counted_batches, dest, formats)
    if dest is not None:
        click.echo(
            f"{display_name(dest)}: {with_noun(0 if rows.metrics is None else rows.metrics.rows, 'row')}", err=True
        )
    if metrics:
        click.echo(repr(rows.metrics), err=True)


@command()
@scan_options
@select_option
@option("--rows", "-n", type=click.IntRange(0, MAX_ROWS), metavar="N", default=10, help="Number of rows.")
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
    as_json: bool, reading: ReaderOptions, storage: Storage,
) -> None:
    """Show the first rows of files: variants as JSON, geometries as WKT.

    Example: pqext head logs.parquet -n 3 --where 'event:$.status = 500'
    """
    with usage_errors():
        *places, store = storage.locate([*scan.sources, scan.skipping or ""])
        first = scan.scan(places, store or None, reading, storage, select).limit(rows)
        schema, batches = _start_scan(first, BATCH_ROWS)
    write_rows("json" if as_json else format, schema, batches, None, formats_of(variants, geometry, True))


@command()
@scan_options
@json_option
@reading_options
@storage_options
def count(scan: ScanOptions, as_json: bool, reading: ReaderOptions, storage: Storage) -> None:
    """Count the rows of files, or the rows that match a condition.

    Without a condition only footers are read.

    Example: pqext count 'logs/*.parquet' --where 'status >= 500'
    """
    with usage_errors():
        rows = _count_in_footer(scan.sources, reading)
        if rows is None:
            *places, store = storage.locate([*scan.sources, scan.skipping or ""])
            rows = scan.scan(places, store or None, reading, storage).count()
    click.echo(json.dumps({"rows": rows}) if as_json else str(rows))


def _count_in_footer(sources: Sequence[str], reading: ReaderOptions) -> int | None:
    """Return the number of rows of one ordinary local file if no option changes how it is read; otherwise None.

    Most of the time that it takes to count the rows of a file with a scan is spent importing the scan's modules.
    """
    context = click.get_current_context()
    passed = [name for name in context.params if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
    if not {"sources", "as_json"}.issuperset(passed) or len(sources) != 1 or not os.path.isfile(sources[0]):
        return None
    if os.path.basename(sources[0]).startswith("_"):  # a summary file: its rows are in other files
        return None
    from pqext.core.footer.row_count import count_rows

    return count_rows(sources[0], reading.limits)


def _output_format(format: str | None, dest: Place | None, as_json: bool) -> str:
    """Determine the output format from the options and the extension of ``dest``.

    Raises ``ValueError`` if the extension of ``dest`` is unknown, or if ``format`` conflicts with ``--json``.
    """
    if as_json:
        if format not in (None, "json"):
            raise ValueError(f"--json and --format {format} are mutually exclusive")
        suffix = "" if dest is None else os.path.splitext(str(dest))[1].lower()
        if FORMAT_BY_SUFFIX.get(suffix, "json") != "json":
            raise ValueError(f"--json contradicts the extension {suffix} of the output; omit --json")
        return "json"
    if format is not None:
        return format
    if dest is None:
        return "table"
    suffix = os.path.splitext(str(dest))[1].lower()
    if suffix not in FORMAT_BY_SUFFIX:
        raise ValueError(
            f"{display_name(dest)!r} has no known file extension; pass --format json, csv, parquet or arrow"
        )
    return FORMAT_BY_SUFFIX[suffix]


def _start_scan(scan: Scan, batch_rows: int | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches. The first batch is read eagerly, so that invalid arguments raise an error."""
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


def _print_first_page(schema: pa.Schema, batches: list[pa.RecordBatch], formats: Formats) -> None:
    """Print the first ``TABLE_ROWS`` rows as a table, and a note if there are more rows."""
    write_rows("table", schema, _first_rows(batches, TABLE_ROWS), None, formats)
    if sum(batch.num_rows for batch in batches) > TABLE_ROWS:
        click.echo(f"and more rows: --limit prints more than {TABLE_ROWS}, --output writes all", err=True)


def _first_rows(batches: list[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if rows > 0:
            yield batch.slice(0, rows)
        rows -= batch.num_rows
