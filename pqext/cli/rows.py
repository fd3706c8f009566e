"""Write rows as tables, JSON lines, CSV, Arrow or Parquet, batch by batch."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any

from pqext.cli.console import print_rich, terminal_width
from pqext.cli.locations import Place, binary_output, open_output
from pqext.core.base.text import escape_text, shorten, with_noun

if TYPE_CHECKING:
    import pyarrow as pa

    from pqext.dataset.presentation.columns import Formats

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
        lines = _lines(format, schema, batches, formats)
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
        batches, schema = map(formats.batch, batches, repeat(schema)), formats.schema(schema)
    if format == "parquet":
        from pqext.core.write.writer import ParquetWriter

        with ParquetWriter(binary_output("Parquet") if dest is None else dest, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    else:
        _write_arrow(schema, batches, dest)


def _write_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch], dest: Place | None) -> None:
    """Write an Arrow stream to standard output or a path ending in ``.arrows``, an Arrow file to other paths."""
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
    """Print texts unchanged, or with escaped control characters on a terminal."""
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
            text = _ascii(text)
        out.write("\n".join(map(escape_text, text.split("\n"))) if is_terminal else text)
    out.flush()


def _ascii(text: str) -> str:
    """Escape the characters of JSON text that are not ASCII; they occur in strings only."""
    return re.sub(r"[^\x00-\x7f]+", lambda match: json.dumps(match[0])[1:-1], text)


def _lines(
    format: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], formats: Formats | None
) -> Iterator[bytes | memoryview]:
    """Yield chunks of JSON lines, or of CSV with a header row."""
    from pqext.dataset.presentation.columns import SHOWN
    from pqext.dataset.presentation.row_text import csv_heading, csv_lines, json_lines

    if format == "csv":
        yield csv_heading(schema)
    lines = json_lines if format == "json" else csv_lines
    for batch in batches:
        yield from lines(batch, schema, formats or SHOWN)


def print_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch], formats: Formats | None = None) -> None:
    """Print rows as a table, with one line per row and truncated values.

    A terminal shows the first columns that fit into its width.
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
    """Return the text of the values of the first columns, row by row."""
    from pqext.dataset.presentation.row_text import texts

    columns = [
        texts(column, field, formats).to_pylist()
        for column, field in zip(batch.columns[:MAX_COLUMNS], list(schema)[:MAX_COLUMNS], strict=True)
    ]
    return zip(*columns, strict=True) if columns else [()] * batch.num_rows


def _fit_widths(widths: list[int], available: int) -> list[int]:
    """Return the widths of the first columns that fit into ``available`` characters, narrowing wide columns first.

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
