"""``pqext verify FILE``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pqext.text import visible


def command(
    file: Annotated[Path, typer.Argument(help="A Parquet file, or a folder with one in it.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="a,b", help="Check only these top-level columns.", show_default=False),
    ] = None,
    checks: Annotated[
        str | None,
        typer.Option(
            "--checks", metavar="chunks,sorting,variants,geometries", help="Look only for this.", show_default=False
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="List so many faults; all are counted.")] = 100,
) -> None:
    """Read all of a file and say where it breaks the rules: damage, false statistics, broken or contradictory variants.

    The status is 1 when there are faults, 3 when none were found but something could not be checked (a key is missing,
    an encoding is not known), and 0 when all is well.
    """
    from rich.console import Console

    from pqext.cli.inspect import one_file
    from pqext.core.errors import ParquetError
    from pqext.verification import verify

    chosen = [name.strip() for name in columns.split(",")] if columns is not None else None
    wanted = [name.strip() for name in checks.split(",")] if checks is not None else None
    try:
        report = verify(one_file(file), columns=chosen, checks=wanted, limit=limit)  # type: ignore[arg-type]
    except ParquetError:
        raise
    except ValueError as error:
        raise typer.BadParameter(visible(str(error))) from None
    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2))
    else:
        console = Console()
        if not console.is_terminal:
            console.width = 160  # a pipe has no width of its own
        console.print(report)
    if not report.ok:
        raise typer.Exit(1)
    if report.unchecked:
        raise typer.Exit(3)
