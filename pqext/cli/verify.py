"""The command ``pqext verify``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import click

from pqext.cli.command import command, option
from pqext.cli.console import REPORT_FORMATS, progress, show
from pqext.cli.errors import describe, replace_arguments, usage_errors
from pqext.cli.files import expand_files, files_argument, split_names
from pqext.cli.locations import Place, Storage, display_path, hide_temporary_path, storage_options
from pqext.cli.reader_options import ReaderOptions, reading_options
from pqext.core.base.text import escape_text, with_noun

if TYPE_CHECKING:
    from pqext.verification.report import Report
    from pqext.verification.run import Check

FAULTS = 1
UNCHECKED = 3
_EXIT_CODES = (
    "Exit status: 0 no faults; 1 a file has faults, or was not found; 2 usage error; 3 no faults, but some data could "
    "not be checked, because of a missing key, an unknown encoding or an unreadable file; 130 interrupted."
)


@command(epilog=_EXIT_CODES)
@files_argument
@option(
    "--format", type=click.Choice(REPORT_FORMATS), default="text",
    help="Report format: text, or JSON with an object for one file and a list for several.",
)
@option("--columns", metavar="a,b", help="Top-level columns to check.")
@option("--checks", metavar="chunks,sorting,variants,geometries", help="Checks to run; all by default.")
@option(
    "--limit", type=click.IntRange(min=0), metavar="N", default=100,
    help="Maximum faults to list per file; all are counted.",
)
@reading_options
@storage_options
def verify(
    files: tuple[str, ...], format: str, columns: str | None, checks: str | None, limit: int, reading: ReaderOptions,
    storage: Storage,
) -> None:
    """Read files completely and report faults: corruption, wrong statistics, invalid or inconsistent variants.

    With several files, each is summarised on one line, followed by its report if it has faults.

    Example: pqext verify 'lake/**/*.parquet' --format json
    """
    from pqext.core.io.sources.store_errors import redact_uri
    from pqext.verification import verify as verify_file

    selected = cast("list[Check] | None", split_names(checks))  # verify_file rejects unknown checks

    def check(path: Place) -> Report:
        with usage_errors(), progress("column chunks") as bar:
            report = verify_file(
                path, columns=split_names(columns), checks=selected, limit=limit, limits=reading.limits,
                decryption=decryption, progress=bar,
            )
            return _use_option_names(report)

    with usage_errors():
        decryption = reading.decryption
        places = storage.locate(files)
        paths = expand_files(places)
    is_single = len(paths) == 1 and (format == "text" or str(paths[0]) == redact_uri(str(places[0])))
    status = _report_file(paths[0], check, format) if is_single else _report_files(paths, check, format)
    if status:
        raise click.exceptions.Exit(status)


def _use_option_names(report: Report) -> Report:
    """Replace Python arguments in a report with option names, and the temporary path with "standard input"."""
    unchecked = tuple(replace(item, reason=replace_arguments(item.reason)) for item in report.unchecked)
    return replace(report, unchecked=unchecked, path=display_path(report.path))


def _status(report: Report) -> int:
    return FAULTS if report.counts else 0 if report.complete else UNCHECKED


def _check_file(path: Place, check: Callable[[Place], Report]) -> Report | str:
    """Check a file; return the report, or the reason that the file cannot be read."""
    from pqext.core.base.errors import EncryptionError, UnsupportedError

    try:
        return check(path)
    except (EncryptionError, UnsupportedError, OSError) as error:
        return describe(error)


def _report_file(path: Place, check: Callable[[Place], Report], format: str) -> int:
    report = _check_file(path, check)
    if isinstance(report, str):
        click.echo(f"pqext: {report}", err=True)
        return UNCHECKED
    show(report, format)
    return _status(report)


def _report_files(paths: list[Place], check: Callable[[Place], Report], format: str) -> int:
    """Print a line per file and the reports of files with faults; return the highest exit status."""
    statuses: list[int] = []
    results: list[dict[str, Any]] = []
    for path in paths:
        report = _check_file(path, check)
        statuses.append(UNCHECKED if isinstance(report, str) else _status(report))
        if format == "json":
            name = hide_temporary_path(str(path))
            results.append(_describe_unreadable(name, report) if isinstance(report, str) else report.to_dict())
        else:
            click.echo(f"{escape_text(hide_temporary_path(str(path)))}: {_describe_result(report)}")
            if not isinstance(report, str) and not report.ok:
                show(report, format)
    if format == "json":
        click.echo(json.dumps(results, indent=2))
    else:
        sound, faulty = statuses.count(0), statuses.count(FAULTS)
        click.echo(
            f"{with_noun(len(paths), 'file')}: {sound} sound, {faulty} with faults, "
            f"{len(paths) - sound - faulty} not checked in full"
        )
    return FAULTS if FAULTS in statuses else max(statuses)


def _describe_result(report: Report | str) -> str:
    if isinstance(report, str):
        return f"could not be checked: {report}"
    if report.counts:
        return with_noun(report.total, "fault")
    return "no faults" if report.complete else "no faults in the checked data"


def _describe_unreadable(path: str, reason: str) -> dict[str, Any]:
    """Return the JSON object for a file that cannot be read."""
    return {"ok": False, "complete": False, "path": path, "error": reason}
