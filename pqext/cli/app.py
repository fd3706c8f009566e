"""The commands, and what they share: the version, and errors as one line."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from pqext.cli import convert, demo, inspect, map, query, schema, shredding, verify
from pqext.cli.alone import without_pandas
from pqext.cli.files import describe

EXIT_CODES = "Exit status: 0 done; 1 an input, a file or the machine is at fault; 2 wrong arguments; 130 interrupted."

app = typer.Typer(
    no_args_is_help=True,
    epilog=EXIT_CODES,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, command, panel in (
    ("convert", convert.command, "Write"),
    ("reshred", shredding.reshred, "Write"),
    ("unshred", shredding.unshred, "Write"),
    ("repair", shredding.repair, "Write"),
    ("query", query.query, "Look into files"),
    ("head", query.head, "Look into files"),
    ("count", query.count, "Look into files"),
    ("schema", schema.command, "Look into files"),
    ("inspect", inspect.command, "Look into files"),
    ("verify", verify.command, "Look into files"),
    ("map", map.command, "Look into files"),
    ("demo", demo.command, "See it work"),
):
    app.command(name, rich_help_panel=panel, epilog=verify.EPILOG if name == "verify" else EXIT_CODES)(command)


def _version(wanted: bool) -> None:
    if wanted:
        from pqext.core.version import __version__

        typer.echo(f"pqext {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Write, read, prune and inspect Parquet with VARIANT and geospatial columns, on one machine and on Spark."""


def main() -> None:
    """Run the command line; a fault of the arguments, the input or the machine is one line on stderr and status 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Windows gives pipes a code page, which lacks most characters: what is piped is UTF-8, as elsewhere.
            piped = os.name == "nt" and not stream.isatty()
            stream.reconfigure(encoding="utf-8" if piped else None, errors="backslashreplace")
    if sys.argv[1:2] != ["demo"]:
        without_pandas()
    try:
        app()
    except BrokenPipeError:
        # Whoever read our output has seen enough; nothing more may be written at exit.
        sys.stderr.close()
        sys.exit(1)
    except (ValueError, TypeError, ImportError, OSError, RuntimeError) as error:
        typer.echo(f"pqext: {describe(error)}", err=True)
        sys.exit(1)
