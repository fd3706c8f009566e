"""What the commands that look at one file share: the argument, lists of names, and how a report is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from pqext.text import visible

File = Annotated[Path, typer.Argument(help="A Parquet file, or a folder with one in it.", show_default=False)]


class Report(Protocol):
    """What can be printed on a console or as JSON."""

    def to_dict(self) -> dict[str, Any]:
        """The report as dictionaries, lists, strings, numbers and None."""
        ...


def one_file(path: Path) -> Path:
    """``path``, or the one Parquet file below the folder ``path``; ``ValueError`` names them when there are more."""
    if not path.is_dir():
        return path
    from pqext.core.suggest import listed
    from pqext.dataset.sources import find_sources

    files = [name for name in map(str, find_sources(path)) if name.endswith((".parquet", ".parq"))]
    if not files:
        raise ValueError(f"the folder {path} holds no file that ends in .parquet: name a file")
    if len(files) > 1:
        raise ValueError(f"the folder {path} holds {len(files)} Parquet files, name one of them: {listed(files)}")
    return Path(files[0])


def names(text: str | None) -> list[str] | None:
    """The names in ``a,b``; ``None``, for all, when nothing is given."""
    return None if text is None else [name.strip() for name in text.split(",")]


@contextmanager
def refusals() -> Iterator[None]:
    """A ``ValueError`` within is the user's argument; an error of the file is none of these."""
    from pqext.core.errors import ParquetError

    try:
        yield
    except ParquetError:
        raise
    except ValueError as error:
        raise typer.BadParameter(visible(str(error))) from None


def describe(error: Exception) -> str:
    """The error in one harmless line."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return visible(f"{error.filename}: {error.strerror}")
    return visible(" ".join(str(error).split())) or type(error).__name__


def show(report: Report, as_json: bool) -> None:
    """Print ``report`` for people, or as JSON."""
    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2))
        return
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console.width = 160  # a pipe has no width of its own
    console.print(report)
