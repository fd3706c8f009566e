"""The commands, and what they share: the version, and errors as one line."""

from __future__ import annotations

import gc
import io
import os
import sys
import warnings
from typing import Any

import click

from pqext.cli.declarations import Place, Program
from pqext.cli.files import describe, notes_of
from pqext.cli.startup import without_pandas
from pqext.core.base.text import escape_text

GARBAGE = 100_000
"""New objects between two searches for cycles: importing makes many, and Python's own 700 cost a tenth of a command."""
EXIT_CODES = "Exit status: 0 done; 1 an input, a file or the machine is at fault; 2 wrong arguments; 130 interrupted."
VERIFY_CODES = (
    "Exit status: 0 all is well; 1 a file has faults, or could not be found; 2 wrong arguments; 3 no faults, but "
    "something could not be checked, because a key is missing, an encoding is not known, or a file cannot be read; "
    "130 interrupted."
)
_WRITE, _LOOK, _STORES = "Write", "Look into files", "Skip files that queries do not need"
COMMANDS = {
    name: Place(f"pqext.cli.{module}", function, panel, VERIFY_CODES if name == "verify" else EXIT_CODES)
    for name, module, function, panel in (
        ("convert", "convert", "command", _WRITE),
        ("reshred", "shredding", "reshred", _WRITE),
        ("unshred", "shredding", "unshred", _WRITE),
        ("repair", "shredding", "repair", _WRITE),
        ("recover", "recover", "command", _WRITE),
        ("rewrite-footer", "rewrite_footer", "command", _WRITE),
        ("query", "query", "query", _LOOK),
        ("head", "query", "head", _LOOK),
        ("count", "query", "count", _LOOK),
        ("schema", "schema", "command", _LOOK),
        ("inspect", "inspect", "command", _LOOK),
        ("verify", "verify", "command", _LOOK),
        ("map", "map", "command", _LOOK),
        ("skipping build", "skipping", "build", _STORES),
        ("skipping refresh", "skipping", "refresh", _STORES),
        ("skipping describe", "skipping", "describe", _STORES),
        ("skipping check", "skipping", "check", _STORES),
        ("skipping compact", "skipping", "compact", _STORES),
        ("skipping drop", "skipping", "drop", _STORES),
        ("metrics", "metrics", "command", _LOOK),
        ("demo", "demo", "command", "See it work"),
    )
}


def _version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from pqext.core.base.version import __version__

        click.echo(f"pqext {__version__}")
        ctx.exit()


app = Program(
    COMMANDS,
    name="pqext",
    help="Write, read, prune and inspect Parquet with VARIANT and geospatial columns, on one machine and on Spark.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    params=[
        click.Option(
            ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version,
            help="Show the version and exit.",
        )
    ],
)


def _warn(message: Warning | str, *_where: Any) -> None:
    """A warning is one line, without the place in the code that it comes from."""
    click.echo(f"pqext: {escape_text(' '.join(str(message).split()))}", err=True)


def main() -> None:
    """Run the command line; a fault of the arguments, the input or the machine is one line on stderr and status 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Windows gives pipes a code page, which lacks most characters: what is piped is UTF-8, as elsewhere.
            piped = os.name == "nt" and not stream.isatty()
            stream.reconfigure(encoding="utf-8" if piped else None, errors="backslashreplace")
    if sys.argv[1:2] != ["demo"]:
        without_pandas()
    gc.set_threshold(GARBAGE)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn  # type: ignore[assignment]
            sys.exit(app.main(prog_name="pqext", standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort as error:
        click.echo(f"Aborted{notes_of(error.__cause__)}.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has seen enough; nothing more may be written at exit.
        sys.stderr.close()
        sys.exit(1)
    except (ValueError, TypeError, ImportError, OSError, RuntimeError) as error:
        click.echo(f"pqext: {describe(error)}", err=True)
        sys.exit(1)
