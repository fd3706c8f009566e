"""``pqext demo``."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import click

from pqext.cli.declarations import Option
from pqext.core.base.text import escape_text, format_size, shorten, with_noun

if TYPE_CHECKING:
    from rich.console import Console

    from pqext.report.model import Agreement, FilePicture, Question

MAX_ROWS = 15
NO_ROWS = "no row of the data answers this"
T = TypeVar("T")
_BAD_LINE = re.compile(r", line \d+, byte \d+: ")


class OnError(StrEnum):
    """What becomes of a line that is not JSON."""

    stop = "stop"
    null = "null"


def command(
    input: Annotated[
        Path | None,
        Option(help="JSON lines of your own instead of the example's earthquakes.", show_default=False),
    ] = None,
    variant: Annotated[
        str | None,
        Option(
            help="With --input: the name that the new VARIANT column gets, one value of it a line.",
            metavar="COLUMN",
            show_default=False,
        ),
    ] = None,
    geometry: Annotated[
        str | None,
        Option(
            help="With --input: paths of two or three numbers within each line, such as lon,lat or at.x,at.y,at.z.",
            metavar="lon,lat",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        str | None,
        Option(
            "--shredding",
            help="The chosen shredding schema, such as 'mag DECIMAL(9,2), place STRING'.",
            metavar="DDL",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path, Option("--output", "-o", help="Folder for the files; those of an earlier run are replaced.")
    ] = Path("pqext-demo"),
    report: Annotated[
        Path | None, Option(help="The report, by default report.html in the output folder.", show_default=False)
    ] = None,
    on_error: Annotated[
        OnError, Option(help="A line that is not JSON stops the job or becomes null.")
    ] = OnError.stop,
    show: Annotated[bool, Option("--open", help="Open the report in a browser at the end.")] = False,
) -> None:
    """See the main job on real data: JSON to shredded Parquet on Spark, three questions, other readers, a report.

    Without --input it works on a week of earthquakes. Spark starts on this machine, with the Java that is
    there or the one that pqext[spark] brings.

    Example: pqext demo --input stations.ndjson --variant station --geometry lon,lat --open
    """
    from rich.console import Console

    from pqext.core.base.errors import VariantError
    from pqext.demo.source import EXAMPLE_FILE, check_column, check_schema, example, own

    if input is None and (variant is not None or geometry is not None):
        raise click.BadParameter("--variant and --geometry describe a file given with --input")
    if input is not None and (variant is None or geometry is None):
        raise click.BadParameter("--input needs --variant COLUMN and --geometry lon,lat")
    _checked("--shredding", check_schema, schema)
    page = report if report is not None else output / "report.html"
    if page.is_dir():
        raise click.BadParameter(f"{page} is a folder: name a file", param_hint="--report")
    _check_folder(output)
    if input is not None:
        _checked("--variant", check_column, variant)
        source = _checked("--geometry", own, input, variant, geometry, schema)

    from pqext.demo.job import Job, run

    console = Console()
    if not console.is_terminal:
        console.width = 120  # a pipe has no width of its own
    is_new = not output.exists()
    try:
        if input is None:
            source = example(output, schema)
        job = Job(source, output, page, "null" if on_error is OnError.null else "raise")
        result = run(job, Narrator(console))
    except BaseException as error:
        with suppress(OSError):  # the error is what the user must see
            if is_new and output.is_dir() and {one.name for one in output.iterdir()} <= {EXAMPLE_FILE}:
                (output / EXAMPLE_FILE).unlink(missing_ok=True)
                output.rmdir()
        if on_error is OnError.stop and isinstance(error, VariantError) and _BAD_LINE.search(error.message):
            raise VariantError(f"{error.message} (with --on-error null such lines become null)") from error
        raise
    for note in result.notes:
        console.print(escape_text(note), markup=False, highlight=False)
    console.print(f"Report: {escape_text(str(page))}", markup=False, highlight=False, soft_wrap=True)
    if show:
        import webbrowser

        webbrowser.open(page.absolute().as_uri())


def _checked(option: str, function: Callable[..., T], *arguments: Any) -> T:
    """The function's result; what it finds wrong is the fault of ``option``."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise click.BadParameter(escape_text(str(error)), param_hint=option) from None


def _check_folder(folder: Path) -> None:
    """Raise ``OSError`` when ``folder`` is none, or can be neither made nor written to."""
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    code = errno.ENOTDIR if not there.is_dir() else errno.EACCES if not os.access(there, os.W_OK | os.X_OK) else 0
    if code:
        raise OSError(code, os.strerror(code), str(there))


class Narrator:
    """Tells the job's progress: with a spinner on a terminal, line by line elsewhere."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.number = 0

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Show that a step runs, and how long it took."""
        self.number += 1
        line = f"{self.number}. {escape_text(text)}"
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

    def wrote(self, file: FilePicture) -> None:
        """Print by which schema a file is shredded, and how large it is."""
        self._say(f"   {file.label}: {escape_text(file.schema)}")
        self._say(
            f"   {escape_text(file.name)}: {format_size(file.size)}, {with_noun(len(file.row_groups), 'row group')}, "
            f"{with_noun(len(file.columns), 'leaf column')}, footer {format_size(file.footer)}"
        )

    def asked(self, question: Question) -> None:
        """Print an answer's rows, and what each file gave for it."""
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(escape_text(question.title), style="bold"), title_justify="left")
        for column in question.columns:
            table.add_column(Text(escape_text(column)))
        for row in question.rows[:MAX_ROWS]:
            table.add_row(*(Text(shorten(escape_text(value), 60)) for value in row))
        self.console.print()
        self.console.print(Text(escape_text(question.expression), style="dim"), soft_wrap=True)
        if question.rows:
            self.console.print(table)
        else:
            self._say(f"{escape_text(question.title)}: {NO_ROWS}")
        if question.num_rows > MAX_ROWS:
            self._say(f"and {with_noun(question.num_rows - MAX_ROWS, 'row')} more")
        for reading in question.readings:
            share = 100 * reading.bytes_read / reading.bytes_total if reading.bytes_total else 0.0
            self._say(
                f"{reading.file}: {with_noun(question.num_rows, 'row')} from {len(reading.row_groups)} of "
                f"{reading.row_groups_total} row groups, {format_size(reading.bytes_read)} of "
                f"{format_size(reading.bytes_total)} "
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
            table.add_row(*(Text(escape_text(cell)) for cell in cells))
        self.console.print(table)
