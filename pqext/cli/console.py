"""Print reports, tables and progress on a console."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import click

from pqext.core.base.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console

REPORT_FORMATS = ("text", "json")


class Report(Protocol):
    """Interface of a report that can be printed on a console or as JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-compatible data."""
        ...


def show(report: Report, format: str) -> None:
    """Print ``report`` as text or JSON."""
    if format == "json":
        click.echo(json.dumps(_replace_non_finite(report.to_dict()), indent=2))
    else:
        print_rich(report)


def _replace_non_finite(value: Any) -> Any:
    """Replace NaN and infinite numbers, which JSON cannot represent, with text such as ``"NaN"``, at any depth."""
    if isinstance(value, dict):
        return {key: _replace_non_finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_non_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def terminal_width() -> int | None:
    """Return the line width of the terminal, or None if standard output is not a terminal."""
    terminal = console()
    return terminal.width if terminal.is_terminal else None


def print_rich(renderable: Any, width: int = 0) -> None:
    """Print a rich renderable.

    If standard output is not a terminal, the line width is at least ``width``, and trailing blanks are removed.
    """
    terminal = console()
    if terminal.is_terminal:
        terminal.print(renderable)
        return
    terminal.width = max(terminal.width, width)
    with terminal.capture() as captured:
        terminal.print(renderable)
    click.echo("\n".join(line.rstrip() for line in captured.get().split("\n")), nl=False)


def console() -> Console:
    """Return a rich console for standard output."""
    from rich.console import Console

    terminal = Console()
    if not terminal.is_terminal:
        terminal.width = 160  # pipes have no width
    return terminal


@contextmanager
def progress(unit: str = "rows", is_enabled: bool = True) -> Iterator[Progress]:
    """Context manager that shows a progress bar on standard error if it is a terminal.

    It yields the function that updates the bar. Nothing is shown unless ``is_enabled``.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    terminal = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), unit, TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=terminal, transient=True, disable=not (is_enabled and terminal.is_terminal)) as bar:
        task = bar.add_task(unit, total=None)

        def update(finished: int, total: int | None, /) -> None:
            bar.update(task, completed=finished, total=total)

        yield update
