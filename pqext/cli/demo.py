"""``pqext demo``."""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pqext.text import shorten, size, visible

if TYPE_CHECKING:
    from rich.console import Console

    from pqext.report.model import Agreement, Question

MAX_ROWS = 15


class OnError(StrEnum):
    """What becomes of a line that is not JSON."""

    stop = "stop"
    null = "null"


def command(
    input: Annotated[
        Path | None,
        typer.Option(help="JSON lines of your own instead of the example's earthquakes.", show_default=False),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(help="With --input: the name for the VARIANT column.", metavar="COLUMN", show_default=False),
    ] = None,
    geometry: Annotated[
        str | None,
        typer.Option(
            help="With --input: paths of two or three coordinates within each line.",
            metavar="lon,lat",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            help="The chosen shredding schema, such as 'mag DECIMAL(9,2), place STRING'.",
            metavar="DDL",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("pqext-demo"),
    report: Annotated[
        Path | None, typer.Option(help="The report, by default report.html in the output folder.", show_default=False)
    ] = None,
    on_error: Annotated[
        OnError, typer.Option(help="A line that is not JSON stops the job or becomes null.")
    ] = OnError.stop,
    show: Annotated[bool, typer.Option("--open", help="Open the report in a browser at the end.")] = False,
) -> None:
    """See the main job on real data: JSON to shredded Parquet on Spark, three questions, other readers, a report.

    Without --input it works on a week of earthquakes. Spark starts on this machine, with the Java that is
    there or the one that pqext\\[spark] brings.
    """
    from rich.console import Console

    from pqext.demo.source import example, own

    if input is None and (variant is not None or geometry is not None):
        raise typer.BadParameter("--variant and --geometry describe a file given with --input")
    if input is not None and (variant is None or geometry is None):
        raise typer.BadParameter("--input needs --variant COLUMN and --geometry lon,lat")
    output.mkdir(parents=True, exist_ok=True)
    if input is None:
        source = example(output, schema)
    else:
        try:
            source = own(input, variant or "", geometry or "", schema)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    from pqext.demo.job import Job, run

    console = Console()
    if not console.is_terminal:
        console.width = 120  # a pipe has no width of its own
    page = report if report is not None else output / "report.html"
    job = Job(source, output, page, "null" if on_error is OnError.null else "raise")
    result = run(job, Narrator(console))
    for note in result.notes:
        console.print(visible(note), markup=False, highlight=False)
    console.print(f"Report: {visible(str(page))}", markup=False, highlight=False, soft_wrap=True)
    if show:
        webbrowser.open(page.absolute().as_uri())


class Narrator:
    """Tells the job's progress: with a spinner on a terminal, line by line elsewhere."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.number = 0

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Show that a step runs, and how long it took."""
        self.number += 1
        line = f"{self.number}. {visible(text)}"
        began = time.perf_counter()
        if self.console.is_terminal:
            from rich.text import Text

            with self.console.status(Text(line)):
                yield
        else:
            self._say(f"{line} ... ", end="")
            try:
                yield
            except BaseException:
                self._say("failed")
                raise
            line = "done"
        self._say(f"{line} ({time.perf_counter() - began:.1f} s)")

    def _say(self, text: str, end: str = "\n") -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True, end=end)
        self.console.file.flush()

    def asked(self, question: Question) -> None:
        """Print an answer's rows, and what each file gave for it."""
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(visible(question.title), style="bold"), title_justify="left")
        for column in question.columns:
            table.add_column(Text(visible(column)))
        for row in question.rows[:MAX_ROWS]:
            table.add_row(*(Text(shorten(visible(value), 60)) for value in row))
        self.console.print()
        self.console.print(Text(visible(question.expression), style="dim"), soft_wrap=True)
        self.console.print(table)
        if question.num_rows > MAX_ROWS:
            self._say(f"and {question.num_rows - MAX_ROWS} rows more")
        for reading in question.readings:
            share = 100 * reading.bytes_read / reading.bytes_total if reading.bytes_total else 0.0
            self._say(
                f"{reading.file}: {question.num_rows} rows from {len(reading.row_groups)} of "
                f"{reading.row_groups_total} row groups, {size(reading.bytes_read)} of {size(reading.bytes_total)} "
                f"({share:.0f} %)"
            )
        self.console.print()

    def agreed(self, agreements: tuple[Agreement, ...]) -> None:
        """Print what other readers made of the files."""
        from rich.table import Table
        from rich.text import Text

        words = {True: "agrees", False: "DIFFERS", None: "not asked"}
        table = Table(title=Text("Other readers on the same files", style="bold"), title_justify="left")
        for heading in ("reader", "file", "values and nulls", "", "row groups needed"):
            table.add_column(heading)
        for one in agreements:
            cells = (one.reader, one.file, words[one.agrees], one.note, one.pruned)
            table.add_row(*(Text(visible(cell)) for cell in cells))
        self.console.print(table)
