"""What the commands that read rows ask for: sources, conditions and columns, as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pqext.cli.places import Place

if TYPE_CHECKING:
    from pqext.dataset.scan import Scan

Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...", show_default=False, help="Parquet files, folders or patterns, as pqext.scan takes them."
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where", "-w", metavar="CONDITION", show_default=False,
        help="Only rows such as \"mag >= 5 and event:$.type = 'quake'\" or 'st_intersects(geom, box(170, -30, -170, "
        "-10))', in SQL; given several times, all must be true.",
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select", "-s", metavar="a,b.c,...", show_default=False,
        help="Only these columns, fields of structs, and values within VARIANT columns, such as "
        "'name=event:$.user.name::string'. A name with commas or colons stands in double quotes.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

_WITHIN = re.compile(r"(?:(?P<name>[^=:]+)=)?(?P<column>[^:=]+):(?P<path>[^:].*?)(?:::(?P<type>[^:]+))?", re.S)

_OF_SQL = {"timestamp": "timestamp_ntz", "timestamptz": "timestamp"}
"""Types that SQL and so ``--where`` calls otherwise than ``pqext.col``."""


def asked(sources: list[Place], where: list[str] | None, select: list[str] | None) -> Scan:
    """The scan that the options ask for, within the limits for files of strangers."""
    from pqext.core.limits import Limits
    from pqext.dataset.notations.dnf import from_text
    from pqext.dataset.reading import scan

    conditions = [from_text(text) for text in where or ()]
    columns = None if select is None else [column for text in select for column in selection(text)]
    found = scan(sources, columns, limits=Limits.untrusted())
    return found.filter(*conditions) if conditions else found


def selection(text: str) -> list[Any]:
    """The columns that ``a,b.c,name=event:$.x::int`` stands for, as :func:`pqext.scan` takes them.

    >>> selection('a, "b,c"')
    ['a', 'b,c']
    """
    items = [item.strip() for item in _split(text)]
    if not all(items):
        raise ValueError(f"{text!r} names no columns: write a,b.c")
    return [_column(item) for item in items]


def _split(text: str) -> list[str]:
    """The parts between commas that stand neither in quotes nor in brackets."""
    parts, depth, quoted = [""], 0, False
    for character in text:
        quoted ^= character == '"'
        if not quoted:
            depth = max(0, depth + (character in "([<") - (character in ")]>"))
            if character == "," and not depth:
                parts.append("")
                continue
        parts[-1] += character
    return parts


def _column(item: str) -> Any:
    from pqext.dataset.expressions import col

    if len(item) > 1 and item[0] == item[-1] == '"':
        return item[1:-1].replace('""', '"')
    match = _WITHIN.fullmatch(item)
    if match is None:
        return item
    path = match["path"].strip()
    path = path if path.startswith("$") else "$." + path
    type = (match["type"] or "variant").strip()
    field = col(match["column"].strip()).variant(path, _OF_SQL.get(type.lower(), type))
    return field if match["name"] is None else (match["name"].strip(), field)
