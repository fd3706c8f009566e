"""Rows as tables for people, JSON lines, CSV, Arrow and Parquet, streamed batch by batch."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any

from pqext.cli.files import print_shown, terminal_width
from pqext.cli.locations import Place
from pqext.cli.outputs import binary_output, opened
from pqext.core.base.text import escape_text, shorten, with_noun

if TYPE_CHECKING:
    import pyarrow as pa

    from pqext.dataset.presentation.columns import Formats

BATCH_ROWS = 65_536
"""Rows that are read at a time, where they become text."""
MAX_CELL = 120
"""Characters of a value in a table."""
MAX_COLUMNS = 50
"""Columns of a table."""
MAX_ROWS = 10_000
"""Rows of a table, whose columns are as wide as their widest value."""
_GAP = 2
_LEAST_WIDTH = 12
"""Blanks between columns of a table, and how narrow one is made at most, with them."""


class Form(StrEnum):
    """How rows are written."""

    table = "table"
    json = "json"
    csv = "csv"
    parquet = "parquet"
    arrow = "arrow"


BY_SUFFIX = {
    ".json": Form.json, ".jsonl": Form.json, ".ndjson": Form.json, ".csv": Form.csv, ".parquet": Form.parquet,
    ".parq": Form.parquet, ".arrow": Form.arrow, ".arrows": Form.arrow, ".feather": Form.arrow, ".ipc": Form.arrow,
}
"""Forms by the ends of names."""


def write_rows(
    form: Form, schema: pa.Schema, batches: Iterable[pa.RecordBatch], dest: Place | None, formats: Formats | None = None
) -> None:
    """Write rows to the place ``dest``, or to standard output when it is None.

    Values of VARIANT and geometry columns are in ``formats``: by default JSON and WKT as text, and as they are stored
    in Parquet and Arrow.
    """
    if form in (Form.json, Form.csv):
        lines = _lines(form, schema, batches, formats)
        if dest is None:
            _print(lines, form is Form.json)
        else:
            with opened(dest) as file:
                for text in lines:
                    file.write(text)
        return
    if form is Form.table:
        print_table(schema, batches, formats)
        return
    if formats is not None:
        batches, schema = map(formats.batch, batches, repeat(schema)), formats.schema(schema)
    if form is Form.parquet:
        from pqext.core.write.writer import ParquetWriter

        with ParquetWriter(binary_output("Parquet") if dest is None else dest, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    else:
        _write_arrow(schema, batches, dest)


def _write_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch], dest: Place | None) -> None:
    """An Arrow stream to standard output or a path that ends in ``.arrows``, an Arrow file to any other."""
    import pyarrow as pa

    if dest is None:
        with pa.ipc.new_stream(binary_output("Arrow"), schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
        return
    make: Callable[..., Any] = pa.ipc.new_stream if str(dest).lower().endswith(".arrows") else pa.ipc.new_file
    with opened(dest) as file, make(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _print(texts: Iterable[bytes | memoryview], is_json: bool) -> None:
    """Print texts exactly, or made harmless where a terminal shows them."""
    out = sys.stdout
    is_shown, buffer = out.isatty(), getattr(out, "buffer", None)
    is_utf8 = (out.encoding or "").lower().startswith("utf")
    if not is_shown and buffer is not None and (is_utf8 or not is_json):
        out.flush()
        for data in texts:
            buffer.write(data)
        buffer.flush()
        return
    for data in texts:
        text = str(data, "utf-8")
        if is_json and not is_utf8:
            text = _ascii(text)
        out.write("\n".join(map(escape_text, text.split("\n"))) if is_shown else text)
    out.flush()


def _ascii(text: str) -> str:
    """JSON with escapes for all characters that are not ASCII; they stand within its strings only."""
    return re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], text)


def _lines(
    form: Form, schema: pa.Schema, batches: Iterable[pa.RecordBatch], formats: Formats | None
) -> Iterator[bytes | memoryview]:
    """Rows as JSON objects, one a line, or as CSV with a heading, some at a time."""
    from pqext.dataset.presentation.columns import SHOWN
    from pqext.dataset.presentation.row_text import csv_heading, csv_lines, json_lines

    if form is Form.csv:
        yield csv_heading(schema)
    lines = json_lines if form is Form.json else csv_lines
    for batch in batches:
        yield from lines(batch, schema, formats or SHOWN)


def print_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch], formats: Formats | None = None) -> None:
    """Print rows as a table for people: values in one line each, cut where they are long.

    A terminal is shown the first columns that it has room for.
    """
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    from pqext.dataset.presentation.columns import SHOWN

    names = [Text(shorten(escape_text(name), MAX_CELL)) for name in schema.names[:MAX_COLUMNS]]
    rows = [[_shown(cell) for cell in row] for batch in batches for row in _cells(schema, batch, formats or SHOWN)]
    if not rows:
        print("no rows")
        return
    if not schema.names:
        print(with_noun(len(rows), "row"))
        return
    widths = [max(cell_len(text.plain) for text in texts) + _GAP for texts in zip(names, *rows, strict=True)]
    if (room := terminal_width()) is not None:
        widths = _fitted(widths, room)
    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="bold")
    for name, width in zip(names, widths, strict=False):
        table.add_column(name, overflow="ellipsis", no_wrap=True, width=width - _GAP)
    for row in rows:
        table.add_row(*row[: len(widths)])
    print_shown(table, sum(widths))
    if hidden := len(schema.names) - len(widths):
        print(f"and {with_noun(hidden, 'more column')}: choose with --select, or use --format json")


def _cells(schema: pa.Schema, batch: pa.RecordBatch, formats: Formats) -> Iterable[tuple[str | None, ...]]:
    """The text of each value, row by row, of the first columns."""
    from pqext.dataset.presentation.row_text import texts

    columns = [
        texts(column, field, formats).to_pylist()
        for column, field in zip(batch.columns[:MAX_COLUMNS], list(schema)[:MAX_COLUMNS], strict=True)
    ]
    return zip(*columns, strict=True) if columns else [()] * batch.num_rows


def _fitted(widths: list[int], room: int) -> list[int]:
    """How wide the first columns are that fit into the ``room``: the wide ones are made narrower first.

    >>> _fitted([4, 50, 30, 9], 50)
    [4, 18, 18, 9]
    """
    fitting = sum(needed <= room for needed in accumulate(min(width, _LEAST_WIDTH) for width in widths))
    first = widths[: max(1, fitting)]
    most = max(first)
    while most > _GAP + 1 and sum(min(width, most) for width in first) > room:
        most -= 1
    return [min(width, most) for width in first]


def _shown(cell: str | None) -> Any:
    from rich.text import Text

    return Text("null", style="dim") if cell is None else Text(shorten(escape_text(cell), MAX_CELL))
