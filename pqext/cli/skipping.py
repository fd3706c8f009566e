"""``pqext skipping``: data-skipping stores built, refreshed, described, merged, checked and dropped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import click

from pqext.cli.declarations import Argument, Option
from pqext.cli.files import as_options, refusals
from pqext.cli.locations import Anonymous, Storage, placed
from pqext.cli.progress import progress
from pqext.cli.reader_options import DEFAULTS, Reading
from pqext.cli.scan_arguments import Json
from pqext.core.base.suggestions import did_you_mean, join_names
from pqext.core.base.text import escape_text

if TYPE_CHECKING:
    from pqext.skipping import DataSkipping, Index

Sources = Annotated[
    list[str],
    Argument(metavar="SOURCE...", show_default=False, help="Parquet files of one table, folders or patterns."),
]
StoreOption = Annotated[
    str | None,
    Option(
        "--store",
        metavar="FOLDER",
        help="The folder of the store, a path or a URL.",
        show_default="_skipping in the table's folder",
    ),
]
Folder = Annotated[str, Argument(metavar="STORE", show_default=False, help="The folder of a store, a path or a URL.")]
KeyFile = Annotated[
    str | None,
    Option(
        "--keys",
        metavar="FILE",
        show_default=False,
        help="The keys of an encrypted store: a JSON file that maps labels to keys in hexadecimal.",
    ),
]
Threads = Annotated[int, Option("--threads", min=0, help="Files that are indexed at once, 0 for one per processor.")]
FootersOnly = Annotated[bool, Option("--footers-only", help="Read no rows: what footers do not prove stays unknown.")]


def build(
    sources: Sources,
    index: Annotated[
        list[str],
        Option(
            "--index",
            "-i",
            metavar="KIND:COLUMN[:PATH[::TYPE]]",
            help="What is kept of each file: minmax, valuelist, bloomfilter, prefix, nulls, count or box of a column, "
            "or of a value within a VARIANT column, as in minmax:event:$.mag::double; paths of a VARIANT column. "
            "infer:COLUMN takes the minmax of all paths that a sample shares. May be repeated.",
        ),
    ],
    store: StoreOption = None,
    force: Annotated[bool, Option("--force", "-f", help="Replace a store that is there.")] = False,
    footers_only: FootersOnly = False,
    keys: KeyFile = None,
    footer_key: Annotated[
        str | None,
        Option(
            "--footer-key",
            metavar="LABEL",
            help="Encrypt the store; of --keys this is the footer's.",
            show_default=False,
        ),
    ] = None,
    column_key: Annotated[
        list[str] | None,
        Option(
            "--column-key",
            metavar="COLUMN=LABEL",
            help="The key of the indexes on a column; may be repeated.",
            show_default="the footer's",
        ),
    ] = None,
    threads: Threads = 0,
    reading: Reading = DEFAULTS,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Build a data-skipping store: what each file holds, so that queries open only those they need.

    Queries use it by --skipping. It never costs a row: files that have changed since are read.

    Example: pqext skipping build logs --index minmax:time --index bloomfilter:user
    """
    with refusals():
        table = _table(sources, store, storage, anonymous, keys, reading, footer_key, column_key)
        builder = table.index_builder()
        for text in index:
            for one in _indexes(text, table.path):
                builder.add_custom_index(one)
    with progress("files") as show:
        summary = builder.build(data=not footers_only, overwrite=force, threads=threads, progress=show)
    _tell(f"{table.location}: {summary}", summary.failed)
    if summary.failed and not summary.added:
        raise click.exceptions.Exit(1)


def refresh(
    sources: Sources,
    store: StoreOption = None,
    footers_only: FootersOnly = False,
    keys: KeyFile = None,
    threads: Threads = 0,
    reading: Reading = DEFAULTS,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Index the files of a table that are new or have changed since its store was built.

    SOURCE may be a part of the table, such as the folder of one partition, with --store.

    Example: pqext skipping refresh logs
    """
    with refusals():
        table = _table(sources, store, storage, anonymous, keys, reading)
    with progress("files") as show:
        summary = table.refresh_index(data=not footers_only, threads=threads, progress=show)
    _tell(f"{table.location}: {summary}", summary.failed)


def describe(
    store: Folder,
    sources: Annotated[
        list[str] | None,
        Option(
            "--source",
            metavar="SOURCE",
            show_default=False,
            help="Files of its table: count those that are out of date; may be repeated.",
        ),
    ] = None,
    below: Annotated[bool, Option("--all", help="Describe all stores in the folders right below STORE.")] = False,
    keys: KeyFile = None,
    as_json: Json = False,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Show the version, the table, the objects and the indexes of a store.

    Example: pqext skipping describe logs/_skipping --source logs
    """
    from pqext import skipping

    with refusals():
        place, *files = placed([store, *(sources or ())], storage, anonymous)
        if below and files:
            raise ValueError("--all describes several stores, and --source is of one table")
        labels = _keys(keys)
    found = (
        skipping.list_stores(place, decryption=labels)
        if below
        else [skipping.describe(place, files or None, decryption=labels)]
    )
    if as_json:
        told = [one.to_dict() for one in found]
        click.echo(json.dumps(told if below else told[0], indent=2))
    else:
        click.echo("\n".join(map(str, found)) if found else f"no stores below {escape_text(str(place))}")


def drop(
    store: Folder,
    index: Annotated[
        list[str] | None,
        Option(
            "--index",
            "-i",
            metavar="KIND:COLUMN[:PATH[::TYPE]]",
            help="Drop this index only; may be repeated.",
            show_default="the whole store",
        ),
    ] = None,
    keys: KeyFile = None,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Drop a store, or some of its indexes. The files of the table stay as they are.

    Example: pqext skipping drop logs/_skipping --index minmax:time
    """
    from pqext import skipping

    with refusals():
        (place,) = placed([store], storage, anonymous)
        if not skipping.is_indexed(place):
            raise FileNotFoundError(f"there is no store in {place}")
        skipping.drop(place, [_index(text) for text in index] if index else None, decryption=_keys(keys))


def compact(
    store: Folder,
    sources: Annotated[
        list[str] | None,
        Option(
            "--source",
            metavar="SOURCE",
            show_default=False,
            help="Files of its table: drop what is known of earlier versions, and of files that are gone; may be "
            "repeated.",
        ),
    ] = None,
    keys: KeyFile = None,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Merge the parts of a store into one, each row once.

    Example: pqext skipping compact logs/_skipping --source logs
    """
    from pqext import skipping

    with refusals():
        place, *files = placed([store, *(sources or ())], storage, anonymous)
        labels = _keys(keys)
    dropped = skipping.compact(place, files or None, decryption=labels)
    click.echo(f"{escape_text(str(place))}: {dropped:,} rows dropped")


def check(
    sources: Sources,
    store: StoreOption = None,
    keys: KeyFile = None,
    reading: Reading = DEFAULTS,
    storage: Storage = None,
    anonymous: Anonymous = False,
) -> None:
    """Tell whether a store knows every file of a table as it is now; if not, the exit status is 1.

    Example: pqext skipping check logs
    """
    with refusals():
        table = _table(sources, store, storage, anonymous, keys, reading)
    found = table.describe_index()
    click.echo(str(found))
    if found.reason is not None or found.unknown:
        raise click.exceptions.Exit(1)


def _table(
    sources: Sequence[str],
    store: str | None,
    storage: Sequence[str] | None,
    anonymous: bool,
    keys: str | None,
    reading: Reading,
    footer_key: str | None = None,
    column_keys: Sequence[str] | None = None,
) -> DataSkipping:
    from pqext.skipping import DataSkipping, StoreKeys

    places = placed([*sources, *([] if store is None else [store])], storage, anonymous)
    files, dest = (places, None) if store is None else (places[:-1], places[-1])
    labels = _keys(keys)
    encryption = None
    if footer_key is not None:
        pairs = [text.partition("=") for text in column_keys or ()]
        if labels is None or not all(equals for _, equals, _ in pairs):
            raise ValueError("--footer-key takes --keys, and --column-key COLUMN=LABEL")
        encryption = StoreKeys(labels, footer_key, {name: label for name, _, label in pairs})
    elif column_keys:
        raise ValueError("--column-key takes --footer-key")
    given: Any = files[0] if len(files) == 1 else files
    return DataSkipping(
        given, dest, encryption=encryption, decryption=labels, options=reading.options, limits=reading.limits
    )  # fmt: skip


def _keys(file: str | None) -> Mapping[str, bytes] | None:
    """The keys in a file, whose content no message shows."""
    if file is None:
        return None
    try:
        with open(file, encoding="utf-8") as opened:
            found = json.load(opened)
        return {str(label): bytes.fromhex(text) for label, text in found.items()}
    except (ValueError, AttributeError, TypeError):
        raise ValueError(f"--keys: {file} is no JSON object of labels and keys in hexadecimal") from None


def _indexes(text: str, sources: Any) -> list[Index]:
    from pqext import skipping

    kind, _, column = text.partition(":")
    return skipping.variant_indexes(sources, column) if kind == "infer" else [_index(text)]


def _index(text: str) -> Index:
    """The index that ``KIND:COLUMN`` or ``KIND:COLUMN:PATH::TYPE`` stands for."""
    from pqext.dataset.expressions import col
    from pqext.skipping.indexes.index import kind_called, own_kinds

    kind, colon, operand = text.partition(":")
    found = kind_called(kind)
    if not colon or not operand:
        raise ValueError(f"--index {text!r}: write KIND:COLUMN, minmax:time for example")
    if found is None:
        kinds = [*own_kinds(), "infer"]
        raise ValueError(
            f"--index {text!r}: {kind!r} is no kind of index{did_you_mean(kind, kinds)}: {join_names(kinds)}"
        )
    column, colon, rest = operand.partition(":$")
    path, typed, type = rest.rpartition("::")
    if colon and not typed:
        raise ValueError(f"--index {text!r}: write the type of the value too, minmax:event:$.mag::double for example")
    return found(col(column).variant(f"${path}", type) if colon else col(column))


def _tell(text: str, failed: Sequence[tuple[str, str]]) -> None:
    click.echo(escape_text(as_options(text)), err=True)
    for path, reason in failed[1:5]:
        click.echo(escape_text(as_options(f"{path}: {reason}")), err=True)
