"""``pqext reshred IN OUT`` and ``pqext unshred IN OUT``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pqext.text import counted, shorten, visible

if TYPE_CHECKING:
    from pqext.variant.rewriting import Rewritten

_NAMED = re.compile(r"(?P<column>[^\s=<(,:`']+)=(?P<schema>.*)", re.S)
_MAX_TEXT = 2_000


class Coerce(StrEnum):
    """Which values go to typed columns."""

    equivalent = "equivalent"
    exact = "exact"
    json = "json"


class OnInvalid(StrEnum):
    """What becomes of a value that cannot be read."""

    stop = "raise"
    null = "null"


Source = Annotated[Path, typer.Argument(metavar="IN", help="The Parquet file to read.", show_default=False)]
Dest = Annotated[
    Path, typer.Argument(metavar="OUT", help="The file to write; it may be the same.", show_default=False)
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse what is otherwise mended: where value contradicts typed_value.")
]
Invalid = Annotated[
    OnInvalid, typer.Option("--on-invalid", help="A value that cannot be read stops the work or becomes null.")
]


def reshred(
    source: Source,
    dest: Dest,
    schema: Annotated[
        list[str] | None,
        typer.Option(
            "--shredding",
            metavar="[COLUMN=]DDL",
            help="Such as 'a INT, b STRING' for all VARIANT columns, or v='a INT' for one, given once a column; "
            'infer looks at the data, \'{"max_fields": 50, "coerce": "json"}\' as it says.',
            show_default="infer",
        ),
    ] = None,
    coerce: Annotated[
        Coerce,
        typer.Option(help="Values that a typed column takes: equal ones, those of its very type, or of the same JSON."),
    ] = Coerce.equivalent,
    strict: Strict = False,
    on_invalid: Invalid = OnInvalid.stop,
) -> None:
    """Shred the VARIANT columns of a file anew. Every value is checked, and what can be mended is.

    Other columns, metadata, row groups and codecs stay as they are. OUT appears when it is whole.
    """
    from pqext.variant.rewriting import reshred_file

    wanted = _schemas(schema or ["infer"])
    with _progress() as progress:
        done = reshred_file(
            source, dest, wanted, coerce=coerce.value, strict=strict, on_invalid=on_invalid.value, progress=progress
        )
    _tell(dest, done)


def unshred(source: Source, dest: Dest, strict: Strict = False, on_invalid: Invalid = OnInvalid.stop) -> None:
    """Write the VARIANT columns of a file whole, for readers that know no shredding.

    Other columns, metadata, row groups and codecs stay as they are. OUT appears when it is whole.
    """
    from pqext.variant.rewriting import unshred_file

    with _progress() as progress:
        done = unshred_file(source, dest, strict=strict, on_invalid=on_invalid.value, progress=progress)
    _tell(dest, done)


def _schemas(given: list[str]) -> Any:
    """One schema for all columns, or a mapping from columns to schemas; raises for what is neither."""
    from pqext.variant.shredding.choice import shredding

    named: dict[str, str] = {}
    for text in given:
        match = _NAMED.fullmatch(text.strip())
        column, ddl = (match["column"], match["schema"]) if match is not None else ("", text)
        ddl = ddl.strip()
        if column in named:
            raise typer.BadParameter(f"column {visible(column)!r} has two schemas", param_hint="--shredding")
        try:
            shredding(ddl)
        except (ValueError, TypeError) as error:
            raise typer.BadParameter(visible(str(error)), param_hint="--shredding") from None
        named[column] = ddl
    if "" in named and len(named) > 1:
        raise typer.BadParameter("give one schema for all columns, or COLUMN=DDL for each", param_hint="--shredding")
    return named.get("", named)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Shows the rows done on a terminal, and nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), "rows", TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task("rows", total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def _tell(dest: Path, done: Rewritten) -> None:
    rows, groups = counted(done.rows, "row"), counted(done.row_groups, "row group")
    typer.echo(f"{visible(str(dest))}: {rows} in {groups}")
    for column, schema in done.schemas.items():
        typer.echo(f"  {visible(column)}: {shorten(visible(str(schema)), _MAX_TEXT)}")
    if done.invalid:
        typer.echo(f"  {counted(done.invalid, 'value')} could not be read and became null")
