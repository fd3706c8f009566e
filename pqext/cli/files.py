"""What the commands that look at one file share: the argument, lists of names, and how a report is shown."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import click

from pqext.cli.declarations import Argument
from pqext.cli.locations import Place
from pqext.cli.standard_input import without_path
from pqext.core.base.budget import ADVICE
from pqext.core.base.text import escape_text

if TYPE_CHECKING:
    from rich.console import Console

Files = Annotated[
    list[str],
    Argument(
        metavar="FILE...", help="Parquet files, patterns, or folders of them; - is standard input.", show_default=False,
        is_file=True,
    ),
]
PARQUET = (".parquet", ".parq")
"""How the names of Parquet files in folders end."""


class Form(StrEnum):
    """How a report is shown."""

    text = "text"
    json = "json"


File = Annotated[
    str,
    Argument(help="A Parquet file, or a folder with one in it; - is standard input.", show_default=False, is_file=True),
]


class Report(Protocol):
    """What can be printed on a console or as JSON."""

    def to_dict(self) -> dict[str, Any]:
        """The report as dictionaries, lists, strings, numbers and None."""
        ...


def one_file(path: Place) -> Place:
    """``path``, or the one Parquet file below the folder ``path``; ``ValueError`` names them when there are more."""
    if not isinstance(path, str) or not os.path.isdir(path):
        return path
    from pqext.core.base.suggestions import join_names
    from pqext.dataset.files.sources import find_sources

    files = [name for name in map(str, find_sources(path, ignore_table_format=True)) if name.endswith(PARQUET)]
    if not files:
        raise _no_parquet(path)
    if len(files) > 1:
        raise ValueError(f"the folder {path} holds {len(files)} Parquet files, name one of them: {join_names(files)}")
    return files[0]


def every_file(given: Sequence[Place]) -> list[Place]:
    """The files that paths, patterns and folders name, each once; of folders those whose names end as Parquet's do.

    Raises ``FileNotFoundError`` for a folder without any, and for a path or pattern that names nothing.
    """
    from pqext.dataset.files.sources import find_sources

    found: dict[Any, Place] = {}
    for path in given:
        below: list[Place] = [*find_sources(path, ignore_table_format=True)]  # files are looked at, not tables
        if isinstance(path, str) and os.path.isdir(path):
            below = [one for one in below if str(one).endswith(PARQUET)]
            if not below:
                raise _no_parquet(path)
        found |= {_identity(one): one for one in below}
    return list(found.values())


def _no_parquet(folder: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "No file in this folder ends in .parquet; name a file", folder)


def _identity(place: Place) -> Any:
    """What tells places apart, which URLs as messages show them, without a query, do not."""
    return place if isinstance(place, str) else (place.store.number, place.key)


def names(text: str | None) -> list[str] | None:
    """The names in ``a,b``; ``None``, for all, when nothing is given."""
    return None if text is None else [name.strip() for name in text.split(",")]


_OPTIONS = (
    ('on_invalid="skip"', "--on-invalid skip"), ('check_range="clamp"', "--check-range clamp"),
    ("check_range=False", "--check-range keep"), ("set the column's crs", "set --crs"),
    ("pass overwrite=True", "pass --force"), ("leave out skipping=", "leave out --skipping"),
    (', or on_foreign="ignore" when opening it', ""),
    ("pass ignore_table_format=True", "pass --ignore-table-format"),
    ("; ignore_table_format=True writes a file that you add to the table yourself", ""),
    (ADVICE, "raise it with --memory-bytes"), ('read with int96="us"', "pass --int96 us"),
    ('pass invalid_utf8="replace" or "binary"', "pass --invalid-utf8 replace or binary"),
    ('pass legacy_timezone="...", or legacy_calendar="stored" for instants as stored', "pass --legacy-timezone"),
    ('pass legacy_timezone="..."', "pass --legacy-timezone"),
    ('read with int96="ms"', "pass --int96 ms"), ("schema_depth=", "--max-depth "),
    ("than max_depth", "than --max-depth"),
    (" with columns=, or give the type to read it as in schema=pyarrow.schema(...)", " with --select"),
    ("pass properties= with the name of", "pass --properties with the name of"),
)
"""Arguments of Python that errors name, and what they are as options."""


@contextmanager
def refusals() -> Iterator[None]:
    """A ``ValueError`` or ``TypeError`` within is the user's argument; an error of the file is none of these."""
    from pqext.core.base.errors import ParquetError

    try:
        yield
    except ParquetError:
        raise
    except (ValueError, TypeError) as error:
        raise click.BadParameter("\n".join(map(escape_text, as_options(str(error)).split("\n")))) from None


def describe(error: Exception) -> str:
    """The error in one harmless line, with its notes."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return escape_text(without_path(f"{error.filename}: {error.strerror}")) + notes_of(error)
    text = without_path(as_options(" ".join(str(error).split())))
    return (escape_text(text) or type(error).__name__) + notes_of(error)


def notes_of(error: BaseException | None) -> str:
    """The notes on an error, as they are told behind it."""
    return escape_text("".join(f"; {note}" for note in getattr(error, "__notes__", ())))


def as_options(text: str) -> str:
    """The arguments of Python that an error names, as options."""
    for argument, option in _OPTIONS:
        text = text.replace(argument, option)
    return text


def show(report: Report, form: Form) -> None:
    """Print ``report`` for people, or as JSON."""
    if form is Form.json:
        click.echo(json.dumps(_finite(report.to_dict()), indent=2))
    else:
        print_shown(report)


def _finite(value: Any) -> Any:
    """Plain data in which numbers that JSON has none for are text, such as ``"NaN"``."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def terminal_width() -> int | None:
    """The characters of a line of the terminal that shows standard output; None where none does."""
    terminal = console()
    return terminal.width if terminal.is_terminal else None


def print_shown(shown: Any, width: int = 0) -> None:
    """Print what rich lays out, without the blanks behind its lines where no terminal shows them.

    There lines have the ``width`` at least.
    """
    terminal = console()
    if not terminal.is_terminal:
        terminal.width = max(terminal.width, width)
    if terminal.is_terminal:
        terminal.print(shown)
        return
    with terminal.capture() as captured:
        terminal.print(shown)
    click.echo("\n".join(line.rstrip() for line in captured.get().split("\n")), nl=False)


def console() -> Console:
    """Standard output for rich."""
    from rich.console import Console

    made = Console()
    if not made.is_terminal:
        made.width = 160  # a pipe has no width of its own
    return made
