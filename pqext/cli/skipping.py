"""The command ``pqext skipping``: build, refresh, describe, compact, check and drop data-skipping stores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from pqext.cli.command import EXIT_CODES, Command, argument, flag, option
from pqext.cli.console import progress
from pqext.cli.errors import replace_arguments, usage_errors
from pqext.cli.locations import Storage, storage_options
from pqext.cli.reader_options import ReaderOptions, reading_options
from pqext.cli.scan_options import json_option
from pqext.core.base.suggestions import did_you_mean, join_names
from pqext.core.base.text import escape_text, with_noun

if TYPE_CHECKING:
    from pqext.skipping import DataSkipping, Index

_INDEX = "TYPE:COLUMN[:PATH::VALUE_TYPE]"
_sources = argument(
    "sources", nargs=-1, required=True, metavar="SOURCE...",
    help="Parquet files of one table, folders or glob patterns.",
)
_store = option(
    "--store", metavar="FOLDER", show_default="_skipping in the folder of the table",
    help="Folder of the store, a path or a URL.",
)
_store_folder = argument("store", metavar="STORE", help="Folder of a store, a path or a URL.")
_keys = option(
    "--keys", metavar="FILE", help="Keys of an encrypted store: a JSON file that maps key ids to keys in hexadecimal."
)
_threads = option(
    "--threads", type=click.IntRange(min=0), metavar="N", default=0,
    help="Number of files to index in parallel; 0 means one per processor.",
)
_footers_only = flag("--footers-only", help="Build indexes from footers only, without reading rows.")


@click.group(epilog=EXIT_CODES, no_args_is_help=True)
def skipping() -> None:
    """Build and maintain data-skipping stores, which let queries open only the files they need."""


@skipping.command(cls=Command)
@_sources
@option(
    "--index", "-i", metavar=_INDEX, multiple=True, required=True,
    help="Index to build, as TYPE:COLUMN, or as TYPE:COLUMN:PATH::VALUE_TYPE for a value inside a VARIANT column, such "
    "as minmax:event:$.mag::double. TYPE is minmax, valuelist, bloomfilter, prefix, nulls, count or box; or, for a "
    "complete VARIANT column, paths, which records the paths that occur in each file, or infer, which builds a minmax "
    "index for each common path in a sample. May be repeated.",
)
@_store
@flag("--force", "-f", help="Replace an existing store.")
@_footers_only
@_keys
@option("--footer-key", metavar="ID", help="Encrypt the store; id of the footer key in --keys.")
@option(
    "--column-key", metavar="COLUMN=ID", multiple=True, show_default="the footer key",
    help="Id of the key for the indexes of a column; may be repeated.",
)
@_threads
@reading_options
@storage_options
def build(
    sources: tuple[str, ...], index: tuple[str, ...], store: str | None, force: bool, footers_only: bool,
    keys: str | None, footer_key: str | None, column_key: tuple[str, ...], threads: int, reading: ReaderOptions,
    storage: Storage,
) -> None:
    """Build a data-skipping store that records the contents of each file of a table.

    Queries use it with --skipping. No rows are lost if files change later: queries read changed files.

    Example: pqext skipping build logs --index minmax:time --index bloomfilter:user
    """
    with usage_errors():
        table = _open_table(sources, store, storage, keys, reading, footer_key, column_key)
        builder = table.index_builder()
        for text in index:
            for definition in _parse_indexes(text, table.path):
                builder.add_custom_index(definition)
    with progress("files") as show:
        summary = builder.build(read_rows=not footers_only, overwrite=force, threads=threads, progress=show)
    _report(f"{table.location}: {summary}", summary.failed)
    if summary.failed and not summary.added:
        raise click.exceptions.Exit(1)


@skipping.command(cls=Command)
@_sources
@_store
@_footers_only
@_keys
@_threads
@reading_options
@storage_options
def refresh(
    sources: tuple[str, ...], store: str | None, footers_only: bool, keys: str | None, threads: int,
    reading: ReaderOptions, storage: Storage,
) -> None:
    """Index the files of a table that are new or have changed since its store was built.

    SOURCE may be a subset of the table, such as the folder of one partition, if --store is set.

    Example: pqext skipping refresh logs
    """
    with usage_errors():
        table = _open_table(sources, store, storage, keys, reading)
    with progress("files") as show:
        summary = table.refresh_index(read_rows=not footers_only, threads=threads, progress=show)
    _report(f"{table.location}: {summary}", summary.failed)


@skipping.command(cls=Command)
@_store_folder
@option(
    "--source", "sources", metavar="SOURCE", multiple=True,
    help="Files of the table; files with outdated entries are counted. May be repeated.",
)
@flag("--all", "is_parent", help="Describe all stores in the folders directly below STORE.")
@_keys
@json_option
@storage_options
def describe(
    store: str, sources: tuple[str, ...], is_parent: bool, keys: str | None, as_json: bool, storage: Storage
) -> None:
    """Show the version, the table, the files and the indexes of a store.

    Example: pqext skipping describe logs/_skipping --source logs
    """
    from pqext import skipping

    with usage_errors():
        location, *files = storage.locate([store, *sources])
        if is_parent and files:
            raise ValueError("--source applies to a single store and cannot be combined with --all")
        decryption = _read_keys(keys)
    stores = (
        skipping.list_stores(location, decryption=decryption)
        if is_parent
        else [skipping.describe(location, files or None, decryption=decryption)]
    )
    if as_json:
        descriptions = [description.to_dict() for description in stores]
        click.echo(json.dumps(descriptions if is_parent else descriptions[0], indent=2))
    else:
        click.echo("\n".join(map(str, stores)) if stores else f"no stores below {escape_text(str(location))}")


@skipping.command(cls=Command)
@_store_folder
@option(
    "--index", "-i", metavar=_INDEX, multiple=True, show_default="the complete store",
    help="Index to drop; may be repeated.",
)
@_keys
@storage_options
def drop(store: str, index: tuple[str, ...], keys: str | None, storage: Storage) -> None:
    """Drop a store, or some of its indexes. The files of the table are not modified.

    Example: pqext skipping drop logs/_skipping --index minmax:time
    """
    from pqext import skipping

    with usage_errors():
        (location,) = storage.locate([store])
        if not skipping.is_indexed(location):
            raise FileNotFoundError(f"no data-skipping store in {location}; build one with pqext skipping build")
        indexes = [_parse_index(text) for text in index] or None
        skipping.drop(location, indexes, decryption=_read_keys(keys))


@skipping.command(cls=Command)
@_store_folder
@option(
    "--source", "sources", metavar="SOURCE", multiple=True,
    help="Files of the table; entries for earlier versions and for deleted files are dropped. May be repeated.",
)
@_keys
@storage_options
def compact(store: str, sources: tuple[str, ...], keys: str | None, storage: Storage) -> None:
    """Merge the segments of a store into one, without duplicate rows.

    Example: pqext skipping compact logs/_skipping --source logs
    """
    from pqext import skipping

    with usage_errors():
        location, *files = storage.locate([store, *sources])
        decryption = _read_keys(keys)
    dropped = skipping.compact(location, files or None, decryption=decryption)
    click.echo(f"{escape_text(str(location))}: {with_noun(dropped, 'row')} dropped")


@skipping.command(cls=Command)
@_sources
@_store
@_keys
@reading_options
@storage_options
def check(
    sources: tuple[str, ...], store: str | None, keys: str | None, reading: ReaderOptions, storage: Storage
) -> None:
    """Check that a store covers the current version of every file of a table. The exit status is 1 if it does not.

    Example: pqext skipping check logs
    """
    with usage_errors():
        table = _open_table(sources, store, storage, keys, reading)
    description = table.describe_index()
    click.echo(str(description))
    if description.reason is not None or description.unknown:
        raise click.exceptions.Exit(1)


def _open_table(
    sources: Sequence[str], store: str | None, storage: Storage, keys: str | None, reading: ReaderOptions,
    footer_key: str | None = None, column_keys: Sequence[str] = (),
) -> DataSkipping:
    from pqext.skipping import DataSkipping, StoreKeys

    places = storage.locate([*sources, *([] if store is None else [store])])
    files, dest = (places, None) if store is None else (places[:-1], places[-1])
    decryption = _read_keys(keys)
    encryption = None
    if footer_key is not None:
        pairs = [text.partition("=") for text in column_keys]
        if decryption is None or not all(equals for _, equals, _ in pairs):
            raise ValueError("--footer-key requires --keys, and each --column-key must be COLUMN=ID")
        encryption = StoreKeys(decryption, footer_key, {name: key_id for name, _, key_id in pairs})
    elif column_keys:
        raise ValueError("--column-key requires --footer-key")
    table: Any = files[0] if len(files) == 1 else files
    return DataSkipping(
        table, dest, encryption=encryption, decryption=decryption, options=reading.options, limits=reading.limits
    )


def _read_keys(path: str | None) -> Mapping[str, bytes] | None:
    """Return the keys in a key file, by key id; None if ``path`` is None. Error messages omit the file's content."""
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            keys = json.load(file)
        return {str(key_id): bytes.fromhex(text) for key_id, text in keys.items()}
    except (ValueError, AttributeError, TypeError):
        raise ValueError(f"--keys: {path} must be a JSON object that maps key ids to hexadecimal keys") from None


def _parse_indexes(text: str, sources: Any) -> list[Index]:
    from pqext import skipping

    name, _, column = text.partition(":")
    return skipping.variant_indexes(sources, column) if name == "infer" else [_parse_index(text)]


def _parse_index(text: str) -> Index:
    """Parse ``TYPE:COLUMN`` or ``TYPE:COLUMN:PATH::VALUE_TYPE`` into an index."""
    from pqext.dataset.expressions import col
    from pqext.skipping.indexes.index import built_in_types, index_type_named

    name, colon, operand = text.partition(":")
    index_type = index_type_named(name)
    if not colon or not operand:
        raise ValueError(f"--index {text!r}: expected TYPE:COLUMN, such as minmax:time")
    if index_type is None:
        names = [*built_in_types(), "infer"]
        hint = did_you_mean(name, names)
        raise ValueError(f"--index {text!r}: unknown index type {name!r}{hint}; known types: {join_names(names)}")
    column, colon, rest = operand.partition(":$")
    path, typed, type = rest.rpartition("::")
    if colon and not typed:
        raise ValueError(f"--index {text!r}: the type of the value is missing, as in minmax:event:$.mag::double")
    return index_type(col(column).variant(f"${path}", type) if colon else col(column))


def _report(text: str, failures: Sequence[tuple[str, str]]) -> None:
    click.echo(escape_text(replace_arguments(text)), err=True)
    for path, reason in failures[1:5]:
        click.echo(escape_text(replace_arguments(f"{path}: {reason}")), err=True)
