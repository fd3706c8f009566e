"""How far a command is, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """Shows how many rows are done, of how many where that is known."""

    def __call__(self, done: int, total: int | None = None, /) -> None: ...


@contextmanager
def progress(of: str = "rows", shown: bool = True) -> Iterator[Progress]:
    """Shows on standard error how many are done of what is counted, where that is a terminal and it is ``shown``."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), of, TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as bar:
        task = bar.add_task(of, total=None)

        def show(done: int, total: int | None = None, /) -> None:
            bar.update(task, completed=done, total=total)

        yield show
