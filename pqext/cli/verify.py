"""``pqext verify FILE``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from pqext.cli.files import File, describe, names, one_file, refusals, show

if TYPE_CHECKING:
    from pqext.verification.run import Check


def command(
    file: File,
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
    memory_bytes: Annotated[
        int | None,
        typer.Option(
            "--memory-bytes", min=1, show_default=False,
            help="Hold so many bytes decoded at a time; 100 MiB, or 16 times the file's size where that is more.",
        ),
    ] = None,
) -> None:
    """Read all of a file and say where it breaks the rules: damage, false statistics, broken or contradictory variants.

    The status is 1 when there are faults, 3 when none were found but something could not be checked (a key is missing,
    an encoding is not known), and 0 when all is well.
    """
    from pqext.core.errors import EncryptionError, UnsupportedError
    from pqext.core.limits import Limits
    from pqext.verification import verify

    limits = Limits.untrusted() if memory_bytes is None else Limits.untrusted(memory_bytes=memory_bytes)
    wanted = cast("list[Check] | None", names(checks))  # verify refuses others
    try:
        with refusals():
            report = verify(one_file(file), columns=names(columns), checks=wanted, limit=limit, limits=limits)
    except (EncryptionError, UnsupportedError) as error:  # of the whole file
        typer.echo(f"pqext: {describe(error)}", err=True)
        raise typer.Exit(3) from None
    show(report, as_json)
    if report.counts:
        raise typer.Exit(1)
    if not report.complete:
        raise typer.Exit(3)
