"""Arguments and options of commands that read rows: sources, conditions, columns and formats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from pqext.cli.command import argument, flag, option, options_as
from pqext.cli.locations import InputFile, Place
from pqext.cli.reader_options import Reading

if TYPE_CHECKING:
    from pqext.dataset.presentation.columns import Formats
    from pqext.dataset.scan import Scan

_ALIAS = re.compile(r"(?P<value>.*\S)\s+as\s+(?P<name>\w+|\"(?:[^\"]|\"\")+\")", re.S | re.I)
_STAR = re.compile(
    r"\*(?:\s+(?:exclude|except)\s*(?:\((?P<names>.+)\)|(?P<name>[\w.]+|\"(?:[^\"]|\"\")+\")))?", re.S | re.I
)
_RENAMED = re.compile(r"(?P<value>\S+)\s+(?P<name>\w+)")
_NAMED = re.compile(r"(?P<name>[^=<>!:'\"()]*[^=<>!:'\"()\s])\s*=\s*(?P<value>[^=\s].*)", re.S)
_EXPRESSION = re.compile(r"[-+*/%()`:\"']")
"""Characters that are rare in names and present in every expression."""

Names = Callable[[], Iterable[str]]
"""Returns the names of columns and the dotted names of struct fields."""


def selection(text: str, all_columns: Names = tuple, fields: Names = tuple) -> list[Any]:
    """Parse ``a,b.c,name=event:$.x::int,a * 2 as twice`` into columns for :func:`pqext.scan`.

    Args:
        text: Comma-separated columns and expressions.
        all_columns: Returns the columns that ``*`` selects; ``* exclude (a, b)`` omits some of them.
        fields: Returns names that are never parsed as expressions.

    Raises:
        ValueError: If an item is neither a name nor an expression.

    >>> selection('a, "b,c"')
    ['a', 'b,c']
    >>> *names, (name, value) = selection("*, a * 2 as twice", lambda: ["a", "b"])
    >>> names, name, str(value)
    (['a', 'b'], 'twice', 'a * 2')
    """
    items = [item.strip() for item in _split_at_commas(text)]
    if not all(items):
        raise ValueError(f"column list {text!r} has an empty entry; expected a comma-separated list such as a,b.c")
    columns: list[Any] = []
    stars: set[str] = set()
    for item in items:
        star = _STAR.fullmatch(item)
        if star is None:
            columns.append(_column(item, fields))
        else:
            stars.update(selected := _expand_star(star["names"] or star["name"], list(all_columns())))
            columns += selected
    for name, count in Counter(column for column in columns if isinstance(column, str)).items():
        if count > 1 and name in stars:
            raise ValueError(
                f"column {name!r} is selected twice; rename one, as in \"{name} as other\", "
                f"or exclude it from *, as in \"* exclude ({name})\""
            )
    return columns


def ordering(text: str, fields: Names = tuple) -> tuple[list[Any], list[bool], list[bool]]:
    """Parse ``a desc nulls first, b * 2`` into lists of columns, descending flags and nulls-first flags.

    >>> ordering("mag desc, id")
    (['mag', 'id'], [True, False], [False, False])
    """
    from pqext.core.options.indexes import sort_keys

    items = [item.strip() for item in _split_at_commas(text)]
    if not all(items):
        raise ValueError(f"--order-by {text!r} lacks a column; write, for example, mag desc, id")
    keys = [sort_keys([item])[0] for item in items]
    for item, key in zip(items, keys, strict=True):
        name, *words = key.path.split()
        if words and not _EXPRESSION.search(key.path) and name in fields() and key.path not in fields():
            raise ValueError(f"--order-by {item!r}: after {name} write asc or desc, then nulls first or nulls last")
    columns = [_column(key.path, fields) for key in keys]
    values = [column[1] if isinstance(column, tuple) else column for column in columns]
    return values, [key.descending for key in keys], [key.nulls_first for key in keys]


def _expand_star(exclusion: str | None, names: list[str]) -> list[str]:
    """Return ``names`` without the comma-separated names in ``exclusion``. Raises ``ValueError`` for unknown names."""
    excluded = [_unquote(item.strip()) for item in _split_at_commas(exclusion or "") if exclusion]
    for name in excluded:
        if name not in names:
            from pqext.core.base.suggestions import unknown_column_message

            raise ValueError(unknown_column_message(name, names))
    return [name for name in names if name not in excluded]


def _split_at_commas(text: str) -> list[str]:
    """Split text at commas that are not within quotes or brackets."""
    items, depth, quote, path_offsets = [""], 0, "", _path_offsets(text)
    for offset, character in enumerate(text):
        if offset in path_offsets:
            pass
        elif quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        else:
            depth = max(0, depth + (character in "([<") - (character in ")]>"))
            if character == "," and not depth:
                items.append("")
                continue
        items[-1] += character
    return items


_QUOTES = "\"'`"


def _path_offsets(text: str) -> set[int]:
    """Return the offsets that are within VARIANT paths. Quotes and brackets at these offsets are not syntax."""
    if ":" not in text:
        return set()
    from pqext.dataset.notations.sql_paths import PathError, path_spans

    try:
        return {offset for span in path_spans(text) for offset in range(span.start, span.stop)}
    except PathError:  # the error is reported when the column is parsed
        return set()


def _column(item: str, fields: Names) -> Any:
    if re.fullmatch(r'"(?:[^"]|"")*"', item):
        return _unquote(item)
    plain = not _EXPRESSION.search(item)
    match = _ALIAS.fullmatch(item) or _NAMED.fullmatch(item)
    if plain and match is None:
        renamed = _RENAMED.fullmatch(item)
        if renamed is not None and renamed["value"] in fields() and item not in fields():
            name = "name" if renamed["name"].lower() == "as" else renamed["name"]
            raise ValueError(f"no column {item!r}; to rename a column, write {renamed['value']} as {name}")
        return item
    if item in fields():
        return item
    if match is None:
        value = _value(item)
        return (item, value) if _needs_name(value) else value
    return (_unquote(match["name"].strip()), _value(match["value"]))


def _unquote(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _value(text: str) -> Any:
    from pqext.dataset.notations.sql import value_from_sql

    return value_from_sql(text)


def _needs_name(value: Any) -> bool:
    """Return whether an expression needs a name. Columns and VARIANT fields have one."""
    from pqext.dataset.expressions import Column, VariantField

    return not isinstance(value, Column | VariantField)


def dotted_names(fields: Iterable[Any], prefix: Sequence[str] = ()) -> set[str]:
    """Return the names of Arrow fields, and the dotted names of fields within structs."""
    import pyarrow as pa

    names = set()
    for field in fields:
        path = (*prefix, field.name)
        names.add(".".join(path))
        if pa.types.is_struct(field.type):
            names |= dotted_names(field.type, path)
    return names


@dataclass(frozen=True)
class ScanOptions:
    """Options of a command that select files and rows."""

    sources: tuple[str, ...]
    where: tuple[str, ...]
    union: bool
    on_invalid: Literal["raise", "skip"]
    partition_types: str | None
    skipping: str | None
    ignore_table_format: bool
    timezone: str

    def scan(self, locations: list[Place], store: Place | None, reading: Reading, select: Sequence[str] = ()) -> Scan:
        """Return a scan of ``locations`` with the limits for untrusted files; ``store`` is a data-skipping store."""
        from pqext.dataset.notations.dnf import from_text
        from pqext.dataset.reading import scan

        conditions = [from_text(text) for text in self.where]
        skipping = None
        if store:
            from pqext.skipping import open_store

            skipping = open_store(store, limits=reading.limits)
        rows = scan(
            locations, schema="union" if self.union else None, limits=reading.limits, on_invalid=self.on_invalid,
            partition_types=_types_of(self.partition_types), skipping=skipping, timezone=self.timezone,
            options=reading.options, ignore_table_format=self.ignore_table_format,
        )
        if select:
            rows = rows.select([column for text in select for column in _select(text, rows)])
        return rows.filter(*conditions) if conditions else rows


sources_argument = argument(
    "sources", type=InputFile(), nargs=-1, required=True, metavar="SOURCE...",
    help="Parquet files, folders or glob patterns, as in pqext.scan; - is standard input.",
)
ignore_table_format_option = flag(
    "--ignore-table-format",
    help="Read all files in the folder of a Delta, Iceberg or Hudi table, including files removed from the table.",
)
scan_options = options_as(
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
    columns, descending, nulls_first = ordering(order_by, lambda: dotted_names(scan.schema))
    return scan.order_by(*columns, descending=descending, nulls_first=nulls_first)


def _types_of(text: str | None) -> dict[str, str] | None:
    """Parse ``name=type`` pairs. Commas within parentheses are part of a type, as in ``DECIMAL(9,2)``."""
    if text is None:
        return None
    pairs = [pair.partition("=") for pair in re.split(r",(?![^(]*\))", text)]
    if not all(name and equals and type for name, equals, type in pairs):
        raise ValueError(f"--partition-types must be NAME=TYPE pairs such as zip=string,day=date, not {text!r}")
    return {name.strip(): type.strip() for name, _, type in pairs}


def formats_of(variants: str | None, geometry: str | None, is_text: bool) -> Formats:
    """Return the formats of VARIANT and geometry columns; the defaults depend on the output format."""
    from pqext.dataset.presentation.columns import SHOWN, Formats

    default = SHOWN if is_text else Formats()
    variant_format: Any = variants or default.variants
    geometry_format: Any = geometry or default.geometry
    return Formats(variant_format, geometry_format)


def _select(text: str, scan: Scan) -> list[Any]:
    return selection(text, lambda: scan.schema.names, lambda: dotted_names(scan.schema))
