"""The command ``pqext tables``: describe, append to, overwrite, compact, recluster, reshred and clean tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from pqext.cli.command import EXIT_CODES, Command, Size, argument, flag, option, option_group
from pqext.cli.console import progress
from pqext.cli.errors import usage_errors
from pqext.cli.locations import Storage, storage_options
from pqext.cli.reader_options import ReaderOptions, reading_options
from pqext.cli.rewrite import parse_shredding
from pqext.cli.scan_options import ScanOptions, json_option, scan_options, select_option
from pqext.core.base.text import escape_text

if TYPE_CHECKING:
    import pyarrow as pa

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_table = argument("table", metavar="TABLE", help="A table: delta:PATH, delta:URL or iceberg:CATALOG.NAMESPACE.TABLE.")
_file_size = option(
    "--file-size", type=Size(), metavar="SIZE", default="128MiB", help="Approximate size of new files, such as 256MB."
)
_partitions = option(
    "--where", "-w", metavar="CONDITION", help="SQL condition on partition columns that selects the files to rewrite."
)
_dry_run = flag("--dry-run", help="Report what would be rewritten, without writing.")
_shredding_help = (
    "Shredding schema: 'a INT, b STRING' for all VARIANT columns, or v='a INT' for one, or infer; may be repeated. It "
    "needs --allow-undeclared-shredding."
)
_allow = flag(
    "--allow-undeclared-shredding",
    help="Write shredded files even if the table cannot declare them. pqext and Spark's Parquet reader read these "
    "files; readers that check Delta's feature variantShredding reject them.",
)


@dataclass(frozen=True)
class _NewFiles:
    """Option values that control the files added to a table."""

    partition_by: str | None
    sort_by: str | None
    file_size: int
    shredding: tuple[str, ...]
    allow_undeclared_shredding: bool

    def write(
        self, write: Callable[..., Any], table: str, scan: ScanOptions, select: tuple[str, ...], reading: ReaderOptions,
        storage: Storage, **arguments: Any,
    ) -> None:
        """Write the rows of a scan to a table with the function ``write``, and print a description of the commit."""
        with usage_errors():
            rows = scan.scan(storage.locate(scan.sources), None, reading, storage, select)
            choice = _parse_shredding(self.shredding, rows.schema)
        with progress() as show:
            result = write(
                table, rows, partition_by=_split(self.partition_by), sort_by=_split(self.sort_by),
                target_file_bytes=self.file_size, shredding=choice,
                allow_undeclared_shredding=self.allow_undeclared_shredding, progress=show,
                storage_options=storage.options() or None, **arguments,
            )
        click.echo(escape_text(str(result)))


_new_files = option_group(
    "new_files",
    _NewFiles,
    option("--partition-by", metavar="a,b...", help="Partition columns of a new table."),
    option("--sort-by", metavar="a,b...", help="Columns to sort the rows by."),
    _file_size,
    option("--shredding", metavar="[COLUMN=]infer|none|DDL", multiple=True, help=_shredding_help),
    _allow,
)


class Age(click.ParamType):  # type: ignore[type-arg]
    """Parameter type for a duration: ``90m``, ``12h``, ``7d``, or ``0``."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        text = str(value).strip()
        match = re.fullmatch(r"(\d{1,9})([smhd])", "0s" if text == "0" else text)
        if match is None:
            self.fail(f"{value!r} is not a duration; write, for example, 90m, 12h or 7d", param, ctx)
        return timedelta(**{_UNITS[match[2]]: int(match[1])})


_older_than = option(
    "--older-than", type=Age(), metavar="AGE", default="7d",
    help="Minimum age of leftovers, the files without references; it must exceed the duration of the longest write.",
)


@click.group(epilog=EXIT_CODES, no_args_is_help=True)
def tables() -> None:
    """Describe, write and maintain Delta and Iceberg tables. query, head, count and schema accept the same names."""


@tables.command(cls=Command)
@_table
@_older_than
@json_option
@storage_options
def describe(table: str, older_than: timedelta, as_json: bool, storage: Storage) -> None:
    """Show version, files, protocol and leftovers of a table.

    Example: pqext tables describe delta:lake/events
    """
    from pqext import tables

    with usage_errors():
        options = storage.options()
    found = tables.describe(table, older_than=older_than, storage_options=options or None)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=2))
        return
    for name, value in asdict(found).items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{key}: {item}" for key, item in value.items())
        elif isinstance(value, tuple):
            value = ", ".join(value)
        elif isinstance(value, int):
            value = f"{value:,}"
        click.echo(escape_text(f"{name.replace('_', ' ')}: {'unknown' if value is None else value or '-'}"))


@tables.command(cls=Command)
@_table
@scan_options
@select_option
@_new_files
@reading_options
@storage_options
def append(
    table: str, scan: ScanOptions, select: tuple[str, ...], new_files: _NewFiles, reading: ReaderOptions,
    storage: Storage,
) -> None:
    """Append the rows of files to a table in one commit; the table is created if it does not exist.

    Example: pqext tables append delta:lake/events 'logs/*.parquet' --partition-by day
    """
    from pqext import tables

    new_files.write(tables.append, table, scan, select, reading, storage)


@tables.command(cls=Command)
@_table
@scan_options
@select_option
@option(
    "--replace-where", metavar="CONDITION", show_default="all rows",
    help="SQL condition on partition columns that selects the rows to replace; all new rows must satisfy it.",
)
@_new_files
@reading_options
@storage_options
def overwrite(
    table: str, scan: ScanOptions, select: tuple[str, ...], replace_where: str | None, new_files: _NewFiles,
    reading: ReaderOptions, storage: Storage,
) -> None:
    """Replace the rows of a table, or of some partitions, with the rows of files in one commit.

    Example: pqext tables overwrite delta:lake/events day.parquet --replace-where "day = date '2026-11-30'"
    """
    from pqext import tables

    new_files.write(tables.overwrite, table, scan, select, reading, storage, filter=replace_where)


@tables.command(cls=Command)
@_table
@_partitions
@_file_size
@_dry_run
@storage_options
def compact(table: str, where: str | None, file_size: int, dry_run: bool, storage: Storage) -> None:
    """Combine small files of each partition in one commit.

    Example: pqext tables compact delta:lake/events --file-size 256MB
    """
    from pqext import tables

    with usage_errors():
        options = storage.options()
    with progress() as show:
        result = tables.compact(
            table, target_file_bytes=file_size, filter=where, dry_run=dry_run, progress=show,
            storage_options=options or None,
        )
    click.echo(escape_text(str(result)))


@tables.command(cls=Command)
@_table
@option(
    "--by", metavar="COLUMN", multiple=True, required=True,
    help="Sort key: a column, a value within a VARIANT column such as event:$.user.id::bigint, or a geometry column, "
    "whose rows are sorted along a Hilbert curve. May be repeated.",
)
@_partitions
@_file_size
@_dry_run
@storage_options
def recluster(
    table: str, by: tuple[str, ...], where: str | None, file_size: int, dry_run: bool, storage: Storage
) -> None:
    """Sort the rows of each partition in one commit, so that filters skip more files.

    Example: pqext tables recluster delta:lake/events --by 'event:$.time::timestamp'
    """
    from pqext import tables

    with usage_errors():
        options = storage.options()
    with progress() as show:
        result = tables.recluster(
            table, by, target_file_bytes=file_size, filter=where, dry_run=dry_run, progress=show,
            storage_options=options or None,
        )
    click.echo(escape_text(str(result)))


@tables.command(cls=Command)
@_table
@option("--shredding", metavar="[COLUMN=]infer|none|DDL", multiple=True, required=True, help=_shredding_help)
@_allow
@_partitions
@_dry_run
@storage_options
def reshred(
    table: str, shredding: tuple[str, ...], allow_undeclared_shredding: bool, where: str | None, dry_run: bool,
    storage: Storage,
) -> None:
    """Rewrite each file with another shredding of its VARIANT columns, in one commit.

    Example: pqext tables reshred delta:lake/events --shredding 'event=user STRING' --allow-undeclared-shredding
    """
    from pqext import tables
    from pqext.dataset.reading import scan

    with usage_errors():
        options = storage.options() or None
        choice = _parse_shredding(shredding, scan(table, storage_options=options).schema)
    with progress() as show:
        result = tables.reshred(
            table, choice, allow_undeclared_shredding=allow_undeclared_shredding, filter=where, dry_run=dry_run,
            progress=show, storage_options=options,
        )
    click.echo(escape_text(str(result)))


@tables.command(cls=Command)
@_table
@_older_than
@flag("--remove", help="Remove the leftovers; by default they are only listed.")
@storage_options
def clean(table: str, older_than: timedelta, remove: bool, storage: Storage) -> None:
    """List or remove leftovers: data files of killed writers that no version of the table refers to.

    Example: pqext tables clean delta:lake/events --older-than 2d --remove
    """
    from pqext import tables

    with usage_errors():
        options = storage.options()
    result = tables.clean(table, older_than=older_than, dry_run=not remove, storage_options=options or None)
    for path in result.files:
        click.echo(escape_text(path))
    click.echo(escape_text(str(result)), err=True)


def _split(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(name.strip() for name in text.split(","))


def _parse_shredding(texts: tuple[str, ...], schema: pa.Schema) -> dict[str, Any]:
    """Return a mapping from columns to shredding schemas. A schema without a column applies to all VARIANT columns."""
    from pqext.variant.shredding.schema import Untyped
    from pqext.variant.types import is_marked

    if not texts:
        return {}
    choice = parse_shredding(texts)
    if not isinstance(choice, Mapping):
        choice = {field.name: choice for field in schema if is_marked(field)}
        if not choice:
            raise ValueError("--shredding requires a VARIANT column, but the rows have none; omit it")
    return {column: Untyped() if spec is None else spec for column, spec in choice.items()}
