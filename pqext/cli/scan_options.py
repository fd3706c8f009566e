"""Arguments and options of commands that read rows: sources, conditions, columns and formats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from pqext.cli.command import argument, flag, option, option_group
from pqext.cli.locations import TABLES, InputFile, Place, Storage
from pqext.cli.reader_options import ReaderOptions

if TYPE_CHECKING:
    from pqext.dataset.notations.column_text import Names
    from pqext.dataset.presentation.columns import Formats
    from pqext.dataset.scan import Scan


def parse_order_by(text: str, fields: Names = tuple) -> tuple[list[Any], list[bool], list[bool]]:
    """Parse ``a desc nulls first, b * 2`` into lists of columns, descending flags and nulls-first flags.

    >>> parse_order_by("mag desc, id")
    (['mag', 'id'], [True, False], [False, False])
    """
    from pqext.core.options.layout import sort_keys
    from pqext.dataset.notations.column_text import EXPRESSION, column_from_text, split_at_commas

    items = [item.strip() for item in split_at_commas(text)]
    if not all(items):
        raise ValueError(f"--order-by {text!r} contains an empty column; expected a list such as mag desc, id")
    keys = [sort_keys([item])[0] for item in items]
    for item, key in zip(items, keys, strict=True):
        name, *words = key.path.split()
        if words and not EXPRESSION.search(key.path) and name in fields() and key.path not in fields():
            raise ValueError(f"--order-by {item!r}: after {name} write asc or desc, then nulls first or nulls last")
    columns = [column_from_text(key.path, fields) for key in keys]
    values = [column[1] if isinstance(column, tuple) else column for column in columns]
    return values, [key.descending for key in keys], [key.nulls_first for key in keys]


@dataclass(frozen=True)
class ScanOptions:
    """Values of the options that select the files and rows of a command."""

    sources: tuple[str, ...]
    where: tuple[str, ...]
    union: bool
    on_invalid: Literal["raise", "skip"]
    partition_types: str | None
    skipping: str | None
    ignore_table_format: bool
    timezone: str
    table_version: int | None
    timestamp: str | None

    def scan(
        self, locations: Sequence[Place], store: Place | None, reading: ReaderOptions, storage: Storage,
        select: Sequence[str] = (),
    ) -> Scan:
        """Return a scan of ``locations`` with these options, the columns ``select`` and the limits for untrusted files.

        ``store`` is a data-skipping store. A single location may be the name of a table.
        """
        from pqext.dataset.notations.dnf import from_text
        from pqext.dataset.reading import scan

        conditions = [from_text(text) for text in self.where]
        skipping = None
        if store:
            from pqext.skipping import open_store

            skipping = open_store(store, limits=reading.limits)
        table = find_table(locations)
        with _suggest_where():
            rows = scan(
                locations if table is None else table, schema="union" if self.union else None, limits=reading.limits,
                on_invalid=self.on_invalid,
                partition_types=_parse_types(self.partition_types), skipping=skipping, timezone=self.timezone,
                options=reading.options, ignore_table_format=self.ignore_table_format, version=self.table_version,
                timestamp=self.timestamp, storage_options=None if table is None else storage.options() or None,
            )
        rows = rows.filter(*conditions) if conditions else rows  # names refer to the files, as in SQL
        return rows.select([column for text in select for column in _parse_selection(text, rows)]) if select else rows


@contextmanager
def _suggest_where() -> Iterator[None]:
    """Context manager that adds a note to the error for a missing source if the source looks like a condition."""
    try:
        yield
    except FileNotFoundError as error:
        if _CONDITION.search(str(error.filename)):
            error.add_note("if it is a condition on rows, pass it with --where")
        raise


_CONDITION = re.compile(r"[\w\"')\]]\s*(<|>|!=|==|\s=\s)|\s(is|in|like|ilike|between)\s|^\w+\(", re.I)


def find_table(locations: Sequence[Place]) -> str | None:
    """Return the name of the table if the only location is a table; None if all locations are files.

    Raises ``ValueError`` if there are further locations.
    """
    names = [place for place in locations if isinstance(place, str) and place.startswith(TABLES)]
    if names and len(locations) > 1:
        raise ValueError(f"the table {names[0]} cannot be combined with other sources; omit the other sources")
    return names[0] if names else None


sources_argument = argument(
    "sources", type=InputFile(), nargs=-1, required=True, metavar="SOURCE...",
    help="Parquet files, folders or glob patterns, as in pqext.scan, or one table, such as delta:PATH; - is standard "
    "input.",
)
ignore_table_format_option = flag(
    "--ignore-table-format",
    help="Read all files in the folder of a Delta, Iceberg or Hudi table, including files removed from the table.",
)
scan_options = option_group(
    "scan",
    ScanOptions,
    sources_argument,
    option(
        "--where", "-w", metavar="CONDITION", multiple=True,
        help="SQL condition on rows, such as \"mag >= 5 and event:$.type = 'quake'\" or 'st_intersects(geom, box(170, "
        "-30, -170, -10))'; may be repeated, and all conditions must be true.",
    ),
    flag("--union", help="Match the columns of files by name; missing columns are null."),
    option(
        "--on-invalid", type=click.Choice(["raise", "skip"]), default="raise",
        help="Raise an error on files that are not Parquet, or skip them.",
    ),
    option(
        "--partition-types", metavar="NAME=TYPE,...",
        help="Types of partition columns, such as zip=string,day=date; inferred as integer, date or string by default.",
    ),
    option(
        "--skipping", metavar="STORE",
        help="Data-skipping store of the files (see pqext skipping build); files that it rules out are not opened.",
    ),
    ignore_table_format_option,
    option(
        "--timezone", metavar="ZONE", default="UTC",
        help="Time zone of local times in casts, such as Europe/Paris or +02:00.",
    ),
    option(
        "--table-version", type=click.IntRange(min=0), metavar="N", show_default="the current version",
        help="Version of a table to read: a Delta version number or an Iceberg snapshot ID.",
    ),
    option("--timestamp", metavar="TIME", help="Time of the table version to read, such as 2026-11-30T12:00:00Z."),
)
select_option = option(
    "--select", "-s", metavar="a,b.c,...", multiple=True,
    help="Columns to return: names, * for all, struct fields, values within VARIANT columns and SQL expressions, as in "
    "'id, price * 2 as twice, event:$.user.name::string as user'. Quote names with commas or colons: \"a,b\".",
)
order_by_option = option(
    "--order-by", metavar="a,b...",
    help="Sort rows by these columns or values, as in SQL: 'mag desc nulls first, id'. With --limit, row groups "
    "without any of the first rows are skipped; otherwise all rows are sorted in memory.",
)
variants_option = option(
    "--variants", type=click.Choice(["json", "binary"]),
    show_default="binary in Parquet and Arrow, otherwise json",
    help="Format of VARIANT values: JSON, or the binary metadata and value.",
)
geometry_option = option(
    "--geometry", type=click.Choice(["wkt", "wkb"]), show_default="wkb in Parquet and Arrow, otherwise wkt",
    help="Format of geometries.",
)
json_option = flag("--json", "as_json", help="Print machine-readable JSON.")


def order_rows(scan: Scan, order_by: str | None) -> Scan:
    """Return the scan sorted by ``--order-by``; unchanged if the option is None."""
    if order_by is None:
        return scan
    from pqext.dataset.notations.column_text import dotted_names

    columns, descending, nulls_first = parse_order_by(order_by, lambda: dotted_names(scan.schema))
    return scan.order_by(*columns, descending=descending, nulls_first=nulls_first)


def _parse_types(text: str | None) -> dict[str, str] | None:
    """Parse ``name=type`` pairs. Commas within parentheses are part of a type, as in ``DECIMAL(9,2)``."""
    if text is None:
        return None
    pairs = [pair.partition("=") for pair in re.split(r",(?![^(]*\))", text)]
    if not all(name and equals and type for name, equals, type in pairs):
        raise ValueError(f"--partition-types must be NAME=TYPE pairs such as zip=string,day=date, not {text!r}")
    return {name.strip(): type.strip() for name, _, type in pairs}


def formats_of(variants: str | None, geometry: str | None, is_text: bool) -> Formats:
    """Return the formats of VARIANT and geometry columns. By default, text if ``is_text``, otherwise binary."""
    from pqext.dataset.presentation.columns import SHOWN, Formats

    default = SHOWN if is_text else Formats()
    variant_format: Any = variants or default.variants
    geometry_format: Any = geometry or default.geometry
    return Formats(variant_format, geometry_format)


def _parse_selection(text: str, scan: Scan) -> list[Any]:
    from pqext.dataset.notations.column_text import dotted_names, parse_selection

    return parse_selection(text, lambda: scan.schema.names, lambda: dotted_names(scan.schema))
