"""The command ``pqext demo``."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pqext.cli.command import command, flag, option
from pqext.core.base.text import escape_text, format_size, shorten, with_noun

if TYPE_CHECKING:
    from rich.console import Console

    from pqext.report.model import Agreement, FilePicture, Question

MAX_ROWS = 15
NO_ROWS = "no row matches"
T = TypeVar("T")
_BAD_LINE = re.compile(r", line \d+, byte \d+: ")
_PATH = click.Path(path_type=Path)


@command()
@option("--input", type=_PATH, help="File with JSON lines to use instead of the bundled earthquakes.")
@option("--column", metavar="COLUMN", help="With --input: name of the VARIANT column, with one value per line.")
@option(
    "--geometry", metavar="lon,lat",
    help="With --input: paths of the two or three coordinates in each line, such as lon,lat or at.x,at.y,at.z.",
)
@option("--shredding", "schema", metavar="DDL", help="Shredding schema, such as 'mag DECIMAL(9,2), place STRING'.")
@option(
    "--output", "-o", type=_PATH, default=Path("pqext-demo"),
    help="Output folder; files of an earlier run are overwritten.",
)
@option("--report", type=_PATH, help="Path of the report; report.html in the output folder by default.")
@option(
    "--on-error", type=click.Choice(["stop", "null"]), default="stop",
    help="Stop at a line that is not JSON, or read it as null.",
)
@flag("--open", "show", help="Open the report in a browser at the end.")
def demo(
    input: Path | None, column: str | None, geometry: str | None, schema: str | None, output: Path,
    report: Path | None, on_error: str, show: bool,
) -> None:
    """Run a complete workflow on real data: JSON to shredded Parquet on Spark, queries, other readers, a report.

    Without --input it uses a week of earthquakes. Spark runs on this machine, with the installed Java or the Java of
    the extra spark.

    Example: pqext demo --input stations.ndjson --column station --geometry lon,lat --open
    """
    from rich.console import Console

    from pqext.core.base.errors import VariantError
    from pqext.demo.source import EXAMPLE_FILE, check_column, check_schema, describe_file, write_example

    if input is None and (column is not None or geometry is not None):
        raise click.BadParameter("--column and --geometry require --input")
    if input is not None and (column is None or geometry is None):
        raise click.BadParameter("--input requires --column COLUMN and --geometry lon,lat")
    _check("--shredding", check_schema, schema)
    page = report if report is not None else output / "report.html"
    if page.is_dir():
        raise click.BadParameter(f"{page} is a folder; name a file", param_hint="--report")
    _check_folder(output)
    if input is not None:
        _check("--column", check_column, column)
        source = _check("--geometry", describe_file, input, column, geometry, schema)

    from pqext.demo.job import Job, run

    console = Console()
    if not console.is_terminal:
        console.width = 120  # pipes have no width
    is_new = not output.exists()
    try:
        if input is None:
            source = write_example(output, schema)
        job = Job(source, output, page, "null" if on_error == "null" else "raise")
        result = run(job, Narrator(console))
    except BaseException as error:
        with suppress(OSError):  # only the first error is reported
            if is_new and output.is_dir() and {path.name for path in output.iterdir()} <= {EXAMPLE_FILE}:
                (output / EXAMPLE_FILE).unlink(missing_ok=True)
                output.rmdir()
        if on_error == "stop" and isinstance(error, VariantError) and _BAD_LINE.search(error.message):
            raise VariantError(f"{error.message} (--on-error null reads these lines as null)") from error
        raise
    for note in result.notes:
        console.print(escape_text(note), markup=False, highlight=False)
    console.print(f"Report: {escape_text(str(page))}", markup=False, highlight=False, soft_wrap=True)
    if show:
        import webbrowser

        webbrowser.open(page.absolute().as_uri())


def _check(option: str, function: Callable[..., T], *arguments: Any) -> T:
    """Call ``function`` and return its result. A ``ValueError`` is reported as an error of ``option``."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise click.BadParameter(escape_text(str(error)), param_hint=option) from None


def _check_folder(folder: Path) -> None:
    """Raise ``OSError`` if ``folder`` is not a folder, or if it cannot be created or written to."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    code = errno.ENOTDIR if not existing.is_dir() else errno.EACCES if not os.access(existing, os.W_OK | os.X_OK) else 0
    if code:
        raise OSError(code, os.strerror(code), str(existing))


class Narrator:
    """Output of the demo job: prints progress and results, and shows a spinner on a terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.number = 0

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Context manager that shows a step while it is running, and then its duration."""
        self.number += 1
        line = f"{self.number}. {escape_text(text)}"
        start = time.perf_counter()
        if self.console.is_terminal:
            from rich.text import Text

            with self.console.status(Text(line)):
                yield
        else:
            self._print_line(f"{line} ... ", end="")
            try:
                yield
            except BaseException:
                self._print_line("failed")
                raise
            line = "done"
        self._print_line(f"{line} ({time.perf_counter() - start:.1f} s)")

    def _print_line(self, text: str, end: str = "\n") -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True, end=end)
        self.console.file.flush()

    def show_file(self, file: FilePicture) -> None:
        """Print a file's shredding schema, row group and column counts, file size and footer size."""
        self._print_line(f"   {file.label}: {escape_text(file.schema)}")
        self._print_line(
            f"   {escape_text(file.name)}: {format_size(file.size)}, {with_noun(len(file.row_groups), 'row group')}, "
            f"{with_noun(len(file.columns), 'leaf column')}, footer {format_size(file.footer)}"
        )

    def show_result(self, question: Question) -> None:
        """Print a query, the rows of its result, and the amount of data read from each file."""
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
            self._print_line(f"{escape_text(question.title)}: {NO_ROWS}")
        if question.num_rows > MAX_ROWS:
            self._print_line(f"and {with_noun(question.num_rows - MAX_ROWS, 'row')} more")
        counts = Table(box=None, pad_edge=False, header_style="dim")
        counts.add_column("file")
        for heading in ("rows found", "row groups read", "bytes read, with the footer"):
            counts.add_column(heading, justify="right")
        for reading in question.readings:
            share = 100 * reading.bytes_read / reading.bytes_total if reading.bytes_total else 0.0
            counts.add_row(
                Text(escape_text(reading.file)),
                f"{question.num_rows:,}",
                f"{len(reading.row_groups)} of {reading.row_groups_total}",
                f"{format_size(reading.bytes_read)} of {format_size(reading.bytes_total)} ({share:.0f} %)",
            )
        self.console.print(counts)
        self.console.print()

    def show_agreements(self, agreements: tuple[Agreement, ...]) -> None:
        """Print, for each other reader and file, whether its results agree with the results of pqext."""
        from rich.table import Table
        from rich.text import Text

        words = {True: "agrees", False: "DIFFERS", None: "not queried"}
        table = Table(title=Text("Other readers on the same files", style="bold"), title_justify="left")
        for heading in ("reader", "file", "values and nulls", "", "row groups needed"):
            table.add_column(heading)
        for agreement in agreements:
            cells = (agreement.reader, agreement.file, words[agreement.agrees], agreement.note, agreement.pruned)
            table.add_row(*(Text(escape_text(cell)) for cell in cells))
        self.console.print(table)
