"""Errors of the command line: one line each, with option names instead of Python arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import click

from pqext.cli.locations import hide_temporary_path
from pqext.core.base.text import escape_text
from pqext.core.base.usage import ADVICE, RAISE_LIMIT

_OPTIONS = (
    ('schema="union"', "--union"), ('on_invalid="skip"', "--on-invalid skip"),
    ('check_range="clamp"', "--check-range clamp"), ("check_range=False", "--check-range keep"),
    ("correct the column's crs", "set --crs"),
    ("pass overwrite=True", "pass --force"), ("omit skipping=", "omit --skipping"),
    (', or on_foreign="ignore" when opening it', ""),
    ("pass ignore_table_format=True", "pass --ignore-table-format"),
    ("ignore_table_format=True writes a file that you add to the table yourself", ""),
    (ADVICE, "raise it with --memory-bytes"), (RAISE_LIMIT, "raise the limit with --memory-bytes"),
    ('read with int96="us"', "pass --int96 us"),
    ('pass invalid_utf8="replace" or "binary"', "pass --invalid-utf8 replace or binary"),
    ('pass legacy_timezone="...", or legacy_calendar="stored" for instants as stored', "pass --legacy-timezone"),
    ('pass legacy_timezone="..."', "pass --legacy-timezone"),
    ('read with int96="ms"', "pass --int96 ms"), ("schema_depth=", "--max-depth "),
    ("than max_depth", "than --max-depth"),
    (" with columns=, or set its type with schema=pyarrow.schema(...)", " with --select"),
    ("pass properties=NAME", "pass --properties NAME"),
    ("use pqext count or Scan.count()", "use pqext count"),
    ("use Scan.min(column)", "use pqext query --limit 1 with --order-by"),
    ("use Scan.max(column)", "use pqext query --limit 1 with --order-by"),
    (" or .alias('other')", ""),
    ("order_by keeps all rows of its result in memory: call limit(n) after it or select fewer columns",
     "--order-by keeps all rows of its result in memory: pass --limit, or --select fewer columns"),
    ("query Scan.to_dataset() with DuckDB, or Scan.to_polars()", "query the file with DuckDB"),
)
"""Python arguments in error messages, and their options."""
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_OPTION_COLUMN = re.compile(r"(\w+)(?= has column )")
_VARIANT_VALUE = re.compile(
    r"""col\((['"])(?P<column>.*?)\1\)\.variant\('(?P<path>[^']*)', '\w+'\)"""
    r"(, on the command line (?P=column):(?P=path))?"
)
"""A value inside a VARIANT in Python, and its equivalent on the command line if the message has both."""


@contextmanager
def usage_errors() -> Iterator[None]:
    """Context manager that reports a ``ValueError`` or ``TypeError`` as a usage error, unless a file caused it."""
    from pqext.core.base.errors import ParquetError

    try:
        yield
    except ParquetError:
        raise
    except (ValueError, TypeError) as error:
        context = click.get_current_context(silent=True)
        text = replace_arguments(str(error), None if context is None else context.command)
        raise click.BadParameter("\n".join(map(escape_text, text.split("\n")))) from None


def describe(error: Exception) -> str:
    """Return an error and its notes as one line without control characters."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return escape_text(hide_temporary_path(f"{error.filename}: {error.strerror}")) + notes_of(error)
    text = hide_temporary_path(replace_arguments(" ".join(str(error).split()), getattr(error, "command", None)))
    return (escape_text(text) or type(error).__name__) + notes_of(error)


def notes_of(error: BaseException | None) -> str:
    """Return the notes of an error as text to append to its message."""
    return escape_text("".join(f"; {note}" for note in getattr(error, "__notes__", ())))


def replace_arguments(text: str, command: click.Command | None = None) -> str:
    """Replace the Python arguments in an error message with command-line options.

    Remedies with options that ``command`` does not have are removed, unless they name another command.
    """
    known = None if command is None else {option for parameter in command.params for option in parameter.opts}
    first, line_break, lines = text.partition("\n")
    problem, *remedies = first.split("; ")
    for argument, option in _OPTIONS:
        if argument not in first:
            continue
        names = set() if "pqext " in option else set(_OPTION.findall(option))
        if known is not None and not names <= known:
            remedies = [remedy for remedy in remedies if argument not in remedy]
        problem, *remedies = (part.replace(argument, option) for part in (problem, *remedies))
    if known is not None and (match := _OPTION_COLUMN.match(problem)):
        option = f"--{match[1].replace('_', '-')}"
        problem = problem if option not in known else option + problem[match.end() :]
    text = "; ".join((problem, *filter(None, remedies))) + line_break + lines
    return _VARIANT_VALUE.sub(r"\g<column>:\g<path>, with a type \g<column>:\g<path>::double", text)
