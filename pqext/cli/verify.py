"""``pqext verify FILE...``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, cast

import click

from pqext.cli.declarations import Option
from pqext.cli.files import Files, Form, as_options, describe, every_file, names, refusals, show
from pqext.cli.locations import Anonymous, Place, Storage, placed
from pqext.cli.reader_options import DEFAULTS, Reading
from pqext.cli.standard_input import shown_path, without_path
from pqext.core.base.text import escape_text, with_noun

if TYPE_CHECKING:
    from pqext.verification.report import Report
    from pqext.verification.run import Check

FAULTS = 1
UNCHECKED = 3


def command(
    files: Files,
    form: Annotated[
        Form, Option("--format", help="A report for people, or JSON: an object for one file, a list for several.")
    ] = Form.text,
    columns: Annotated[
        str | None,
        Option("--columns", metavar="a,b", help="Check only these top-level columns.", show_default=False),
    ] = None,
    checks: Annotated[
        str | None,
        Option(
            "--checks", metavar="chunks,sorting,variants,geometries", help="Look only for this.", show_default=False
        ),
    ] = None,
    limit: Annotated[int, Option(min=0, help="List so many faults of each file; all are counted.")] = 100,
    reading: Reading = DEFAULTS,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Read all of a file and say where it breaks the rules: damage, false statistics, broken or contradictory variants.

    Several files get one line each, followed by the report of those with faults.

    Example: pqext verify 'lake/**/*.parquet' --format json
    """
    from pqext.core.io.sources.secrets import shown
    from pqext.verification import verify

    wanted = cast("list[Check] | None", names(checks))  # verify refuses others

    def check(path: Place) -> Report:
        with refusals():
            found = verify(
                path, columns=names(columns), checks=wanted, limit=limit, limits=reading.limits, decryption=decryption
            )
            return _for_the_command(found)

    with refusals():
        decryption = reading.decryption
        given = placed(files, storage, anonymous)
        paths = every_file(given)
    is_one = len(paths) == 1 and (form is Form.text or str(paths[0]) == shown(str(given[0])))
    status = _one(paths[0], check, form) if is_one else _all(paths, check, form)
    if status:
        raise click.exceptions.Exit(status)


def _for_the_command(report: Report) -> Report:
    """``report`` with advice for the command line where the memory was too little, and the name of standard input."""
    unchecked = tuple(replace(one, reason=as_options(one.reason)) for one in report.unchecked)
    return replace(report, unchecked=unchecked, path=shown_path(report.path))


def _status(report: Report) -> int:
    return FAULTS if report.counts else 0 if report.complete else UNCHECKED


def _attempt(path: Place, check: Callable[[Place], Report]) -> Report | str:
    """The report, or why there is none."""
    from pqext.core.base.errors import EncryptionError, UnsupportedError

    try:
        return check(path)
    except (EncryptionError, UnsupportedError, OSError) as error:  # of the whole file
        return describe(error)


def _one(path: Place, check: Callable[[Place], Report], form: Form) -> int:
    found = _attempt(path, check)
    if isinstance(found, str):
        click.echo(f"pqext: {found}", err=True)
        return UNCHECKED
    show(found, form)
    return _status(found)


def _all(paths: list[Place], check: Callable[[Place], Report], form: Form) -> int:
    """A line for each file, and what is wrong with it; the worst status of all."""
    statuses: list[int] = []
    told: list[dict[str, Any]] = []
    for path in paths:
        found = _attempt(path, check)
        statuses.append(UNCHECKED if isinstance(found, str) else _status(found))
        if form is Form.json:
            told.append(_unreadable(without_path(str(path)), found) if isinstance(found, str) else found.to_dict())
        else:
            click.echo(f"{escape_text(without_path(str(path)))}: {_verdict(found)}")
            if not isinstance(found, str) and not found.ok:
                show(found, form)
    if form is Form.json:
        click.echo(json.dumps(told, indent=2))
    else:
        sound, faulty = statuses.count(0), statuses.count(FAULTS)
        click.echo(
            f"{with_noun(len(paths), 'file')}: {sound} sound, {faulty} with faults, "
            f"{len(paths) - sound - faulty} not checked in full"
        )
    return FAULTS if FAULTS in statuses else max(statuses)


def _verdict(found: Report | str) -> str:
    if isinstance(found, str):
        return f"could not be checked: {found}"
    if found.counts:
        return with_noun(found.total, "fault")
    return "no faults" if found.complete else "no faults in what could be checked"


def _unreadable(path: str, reason: str) -> dict[str, Any]:
    """What the JSON says of a file that has no report."""
    return {"ok": False, "complete": False, "path": path, "error": reason}
