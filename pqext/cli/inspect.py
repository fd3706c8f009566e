"""``pqext inspect FILE``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pqext.text import visible


def command(
    file: Annotated[Path, typer.Argument(help="A Parquet file, or a folder with one in it.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole report as JSON.")] = False,
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="a,b.c", help="Describe only the chunks of these.", show_default=False),
    ] = None,
    row_groups: Annotated[
        str | None,
        typer.Option("--row-groups", metavar="0,4-7", help="Describe only these.", show_default=False),
    ] = None,
) -> None:
    """Show a file's schema with levels, its row groups, encodings, sizes, bounds, boxes and extensions."""
    # Imported here so that --help and --version answer at once.
    from rich.console import Console

    from pqext.core.errors import ParquetError
    from pqext.inspection import inspect
    from pqext.inspection.rendering import MAX_CHUNKS

    chosen = [name.strip() for name in columns.split(",")] if columns is not None else None
    try:
        limit = None if as_json else MAX_CHUNKS
        report = inspect(one_file(file), columns=chosen, row_groups=_indexes(row_groups), max_chunks=limit)
    except ParquetError:
        raise
    except ValueError as error:
        raise typer.BadParameter(visible(str(error))) from None
    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2, allow_nan=True))
        return
    console = Console()
    if not console.is_terminal:
        console.width = 160  # a pipe has no width of its own
    console.print(report)


def one_file(path: Path) -> Path:
    """``path``, or the one Parquet file below the folder ``path``; ``ValueError`` names them when there are more."""
    if not path.is_dir():
        return path
    from pqext.core.suggest import listed
    from pqext.dataset.sources import find_sources

    files = [name for name in map(str, find_sources(path)) if name.endswith((".parquet", ".parq"))]
    if not files:
        raise ValueError(f"the folder {path} holds no file that ends in .parquet: name a file")
    if len(files) > 1:
        raise ValueError(f"the folder {path} holds {len(files)} Parquet files, name one of them: {listed(files)}")
    return Path(files[0])


def _indexes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    chosen: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ValueError(f"{part!r} is neither an index nor a range such as 4-7")
        stop = int(last) if dash else int(first)
        if stop - int(first) > 1_000_000:
            raise ValueError(f"{part!r} is more row groups than a file has")
        chosen += range(int(first), stop + 1)
    return chosen
