"""What the commands that read rows ask for: sources, conditions and columns, as text."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from pqext.cli.declarations import Argument, Option
from pqext.cli.locations import Place
from pqext.cli.reader_options import Reading

if TYPE_CHECKING:
    from pqext.dataset.presentation.columns import Formats
    from pqext.dataset.scan import Scan



class OnInvalid(StrEnum):
    """What becomes of files that are no Parquet."""

    stop = "raise"
    skip = "skip"


class VariantOutput(StrEnum):
    """Format in which VARIANT values are printed or written."""

    json = "json"
    binary = "binary"


class GeometryOutput(StrEnum):
    """Format in which geometries are printed or written."""

    wkt = "wkt"
    wkb = "wkb"


Sources = Annotated[
    list[str],
    Argument(
        metavar="SOURCE...", show_default=False, is_file=True,
        help="Parquet files, folders or patterns, as pqext.scan takes them; - is standard input.",
    ),
]
Where = Annotated[
    list[str] | None,
    Option(
        "--where", "-w", metavar="CONDITION", show_default=False,
        help="Only rows such as \"mag >= 5 and event:$.type = 'quake'\" or 'st_intersects(geom, box(170, -30, -170, "
        "-10))', in SQL; given several times, all must be true.",
    ),
]
Select = Annotated[
    list[str] | None,
    Option(
        "--select", "-s", metavar="a,b.c,...", show_default=False,
        help="Only these columns, * for all, fields of structs, values within VARIANT columns and what is computed, as "
        "in SQL: 'id, price * 2 as twice, event:$.user.name::string as user'. A name with commas or colons stands in "
        "double quotes.",
    ),
]
OrderBy = Annotated[
    str | None,
    Option(
        "--order-by", metavar="a,b...", show_default=False,
        help="Rows in the order of these columns or values, as in SQL: 'mag desc nulls first, id'. With --limit, row "
        "groups that hold none of the first rows are skipped; without it all rows are sorted in memory.",
    ),
]
Union = Annotated[
    bool, Option("--union", help="Match the columns of files by name; a file that lacks one has nulls there.")
]
Invalid = Annotated[
    OnInvalid,
    Option("--on-invalid", help="Files that are no Parquet stop the work, or are left out.", show_default=True),
]
PartitionTypes = Annotated[
    str | None,
    Option(
        "--partition-types", metavar="NAME=TYPE,...", show_default=False,
        help="Types of columns that folders name, such as zip=string,day=date; by default integers, dates or text.",
    ),
]
Skipping = Annotated[
    str | None,
    Option(
        "--skipping", metavar="STORE", show_default=False,
        help="A data-skipping store of these files (pqext skipping build): those that it refuses are not opened.",
    ),
]
IgnoreTableFormat = Annotated[
    bool,
    Option(
        "--ignore-table-format",
        help="Read every file of the folder of a Delta, Iceberg or Hudi table, also those that the table has removed.",
    ),
]
Timezone = Annotated[
    str,
    Option(
        "--timezone", metavar="ZONE",
        help="The time zone of local times in casts, such as Europe/Paris or +02:00.",
    ),
]
Variants = Annotated[
    VariantOutput | None,
    Option(
        "--variants", help="VARIANT values as JSON, or as the bytes of metadata and value.",
        show_default="binary in Parquet and Arrow, else json",
    ),
]
Geometry = Annotated[
    GeometryOutput | None,
    Option("--geometry", help="Geometries as WKT or WKB.", show_default="wkb in Parquet and Arrow, else wkt"),
]
Json = Annotated[bool, Option("--json", help="Print JSON for programs.")]


def asked(
    sources: list[Place], where: list[str] | None, select: list[str] | None, union: bool,
    on_invalid: OnInvalid, partition_types: str | None, skipping: Place | None, timezone: str, reading: Reading,
    ignore_table_format: bool,
) -> Scan:
    """The scan that the options ask for, within the limits for files of strangers."""
    from pqext.dataset.notations.dnf import from_text
    from pqext.dataset.reading import scan

    conditions = [from_text(text) for text in where or ()]
    store = None
    if skipping is not None:
        from pqext.skipping import open_store

        store = open_store(skipping, limits=reading.limits)
    found = scan(
        sources, schema="union" if union else None, limits=reading.limits, on_invalid=on_invalid.value,
        partition_types=_types_of(partition_types), skipping=store, timezone=timezone, options=reading.options,
        ignore_table_format=ignore_table_format,
    )  # fmt: skip
    if select is not None:
        found = found.select([column for text in select for column in _selected(text, found)])
    return found.filter(*conditions) if conditions else found


def ordered(found: Scan, order_by: str | None) -> Scan:
    """The scan with its rows in the order that the option asks for."""
    if order_by is None:
        return found
    from pqext.cli.selection import dotted, ordering

    columns, descending, nulls_first = ordering(order_by, lambda: dotted(found.schema))
    return found.order_by(*columns, descending=descending, nulls_first=nulls_first)


def _types_of(text: str | None) -> dict[str, str] | None:
    """Read ``name=type`` pairs. Commas within parentheses belong to a type, such as ``DECIMAL(9,2)``."""
    if text is None:
        return None
    pairs = [pair.partition("=") for pair in re.split(r",(?![^(]*\))", text)]
    if not all(name and equals and type for name, equals, type in pairs):
        raise ValueError(f"--partition-types takes pairs such as zip=string,day=date, not {text!r}")
    return {name.strip(): type.strip() for name, _, type in pairs}


def formats_of(variants: VariantOutput | None, geometry: GeometryOutput | None, is_text: bool) -> Formats:
    """The formats of VARIANT and geometry columns that the options, or the format of the output, name."""
    from pqext.dataset.presentation.columns import SHOWN, Formats

    default = SHOWN if is_text else Formats()
    return Formats(
        default.variants if variants is None else variants.value,
        default.geometry if geometry is None else geometry.value,
    )


def _selected(text: str, found: Scan) -> list[Any]:
    from pqext.cli.selection import dotted, selection

    return selection(text, lambda: found.schema.names, lambda: dotted(found.schema))
