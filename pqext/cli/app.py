"""The ``pqext`` command: its subcommands and one-line error messages."""

from __future__ import annotations

import gc
import io
import os
import sys
import warnings
from typing import Any

import click

from pqext.cli.command import EXIT_CODES, LazyCommand, LazyGroup
from pqext.cli.errors import describe, notes_of
from pqext.core.base.text import escape_text

IS_ALONE = "pyarrow" not in sys.modules
"""Whether the process runs a single command; False if other code has imported pyarrow before."""
GARBAGE_THRESHOLD = 100_000
"""Number of new objects between garbage collections. Python's default of 700 takes a tenth of the time."""
_WRITE, _INSPECT, _SKIP = "Write", "Inspect", "Skip files that queries do not need"
COMMANDS = {
    name: LazyCommand(panel, f"pqext.cli.{module}", attribute)
    for name, panel, module, attribute in (
        ("convert", _WRITE, "convert", "convert"),
        ("reshred", _WRITE, "rewrite", "reshred"),
        ("unshred", _WRITE, "rewrite", "unshred"),
        ("repair", _WRITE, "rewrite", "repair"),
        ("recover", _WRITE, "recover", "recover"),
        ("rewrite-footer", _WRITE, "rewrite", "rewrite_footer"),
        ("query", _INSPECT, "query", "query"),
        ("head", _INSPECT, "query", "head"),
        ("count", _INSPECT, "query", "count"),
        ("schema", _INSPECT, "schema", "schema"),
        ("inspect", _INSPECT, "inspect", "inspect"),
        ("verify", _INSPECT, "verify", "verify"),
        ("map", _INSPECT, "map", "map_"),
        ("metrics", _INSPECT, "metrics", "metrics"),
        ("skipping", _SKIP, "skipping", "skipping"),
        ("tables", "Maintain tables", "tables", "tables"),
        ("demo", "Demo", "demo", "demo"),
    )
}


def _print_version(ctx: click.Context, parameter: click.Parameter, is_requested: bool) -> None:
    if is_requested:
        from pqext.core.base.version import __version__

        click.echo(f"pqext {__version__}")
        ctx.exit()


@click.group(
    "pqext", cls=LazyGroup, lazy=COMMANDS, hints={"explain": "pqext query --explain"}, epilog=EXIT_CODES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120, "show_default": True},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Show the version and exit.",
)
def app() -> None:
    """Write, read, prune and inspect Parquet with VARIANT and geospatial columns, on one machine and on Spark."""


class _PandasBlocker:
    """Import finder that hides pandas, because pyarrow would import it for the first array, which takes 0.3 s."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pqext commands do not import pandas", name=fullname)


def _print_warning(message: Warning | str, *_location: Any) -> None:
    """Print a warning on one line, without its source location."""
    click.echo(f"pqext: {escape_text(' '.join(str(message).split()))}", err=True)


def main() -> None:
    """Run the command line. Errors are printed to standard error and determine the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Windows opens pipes in a legacy code page; write UTF-8 as on other systems.
            is_windows_pipe = os.name == "nt" and not stream.isatty()
            stream.reconfigure(encoding="utf-8" if is_windows_pipe else None, errors="backslashreplace")
    if sys.argv[1:2] != ["demo"] and IS_ALONE and "pandas" not in sys.modules:
        sys.meta_path.insert(0, _PandasBlocker())
    gc.set_threshold(GARBAGE_THRESHOLD)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning  # type: ignore[assignment]
            sys.exit(app.main(prog_name="pqext", standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort as error:
        click.echo(f"Aborted{notes_of(error.__cause__)}.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of the output has closed it; nothing may be written at exit.
        sys.stderr.close()
        sys.exit(1)
    except (ValueError, TypeError, ImportError, OSError, RuntimeError) as error:
        click.echo(f"pqext: {describe(error)}", err=True)
        sys.exit(1)
