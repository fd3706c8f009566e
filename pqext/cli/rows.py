"""Rows as tables for people, JSON lines, CSV, Arrow and Parquet, streamed batch by batch."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pqext.cli.files import print_shown, terminal_width
from pqext.cli.outputs import binary_output, opened
from pqext.cli.places import Place
from pqext.text import counted, shorten, visible

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1_000
"""Rows that are made text at a time."""
MAX_CELL = 120
"""Characters of a value in a table."""
MAX_COLUMNS = 50
"""Columns of a table."""
MAX_ROWS = 10_000
"""Rows of a table, whose columns are as wide as their widest value."""
_GAP = 2
_LEAST_WIDTH = 12
"""Blanks between columns of a table, and how narrow one is made at most, with them."""
_TO_QUOTE = re.compile('[",\r\n]|^$|^[ \t]|[ \t]$')


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


def write_rows(form: Form, schema: pa.Schema, batches: Iterable[pa.RecordBatch], dest: Place | None) -> None:
    """Write rows to the place ``dest``, or to standard output when it is None."""
    if form in (Form.json, Form.csv):
        lines = json_lines if form is Form.json else csv_lines
        if dest is None:
            found = lines(schema, batches)
            _print(map(_ascii, found) if form is Form.json and not _takes_all() else found)
        else:
            with opened(dest) as file:
                for text in lines(schema, batches):
                    file.write(text.encode())
    elif form is Form.parquet:
        from pqext.core.writer import ParquetWriter

        with ParquetWriter(binary_output("Parquet") if dest is None else dest, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    elif form is Form.arrow:
        _write_arrow(schema, batches, dest)
    else:
        print_table(schema, batches)


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


def _print(texts: Iterable[str]) -> None:
    """Print texts exactly, or made harmless where a terminal shows them."""
    shown = sys.stdout.isatty()
    for text in texts:
        sys.stdout.write("\n".join(map(visible, text.split("\n"))) if shown else text)
    sys.stdout.flush()


def _takes_all() -> bool:
    """Does standard output take every character?"""
    return (sys.stdout.encoding or "").lower().startswith("utf")


def _ascii(text: str) -> str:
    """JSON with escapes for all characters that are not ASCII; they stand within its strings only."""
    return re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], text)


def _cells(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[list[tuple[str | None, ...]]]:
    """The rows, some at a time, each value as JSON text."""
    from pqext.cli.cells import texts

    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            part = batch.slice(start, BATCH_ROWS)
            if schema.names:
                columns = (texts(column, field) for column, field in zip(part.columns, schema, strict=True))
                yield list(zip(*columns, strict=True))
            else:
                yield [()] * part.num_rows


def json_lines(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Rows as JSON objects, one a line, some at a time."""
    keys = [json.dumps(name, ensure_ascii=False) for name in schema.names]
    for rows in _cells(schema, batches):
        yield "".join(
            "{" + ", ".join(f"{key}: {cell or 'null'}" for key, cell in zip(keys, row, strict=True)) + "}\n"
            for row in rows
        )


def csv_lines(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Rows as CSV with a heading, some at a time: nothing for nulls, ``""`` for empty texts, JSON for nested values."""
    yield ",".join(map(_quoted, schema.names)) + "\n"
    alone = len(schema.names) == 1  # where a line without anything would be no row
    for rows in _cells(schema, batches):
        yield "".join(
            ",".join(_quoted(_plain(cell)) if cell is not None else '""' if alone else "" for cell in row) + "\n"
            for row in rows
        )


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _TO_QUOTE.search(text) else text


def _plain(cell: str) -> str:
    """A value without the quotes of a JSON string."""
    text: str = json.loads(cell) if cell.startswith('"') else cell
    return text


def print_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Print rows as a table for people: values as JSON in one line each, cut where they are long.

    A terminal is shown the first columns that it has room for.
    """
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    names = [Text(shorten(visible(name), MAX_CELL)) for name in schema.names[:MAX_COLUMNS]]
    rows = [[_shown(cell) for cell in row[:MAX_COLUMNS]] for part in _cells(schema, batches) for row in part]
    if not rows:
        print("no rows")
        return
    if not schema.names:
        print(counted(len(rows), "row"))
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
        print(f"and {counted(hidden, 'more column')}: choose with --select, or use --format json")


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

    return Text("null", style="dim") if cell is None else Text(shorten(visible(_plain(cell)), MAX_CELL))
