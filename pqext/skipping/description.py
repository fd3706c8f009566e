"""What a store holds, for people: its version, table, objects and indexes, and what is out of date."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.text import escape_text
from pqext.core.io.sources.locations import Location, locate
from pqext.core.options.encryption import FileDecryption
from pqext.dataset.files.sources import source_name
from pqext.skipping.format.identifiers import split_object_names
from pqext.skipping.format.names import OBJECT_NAME
from pqext.skipping.format.reading import NO_PART
from pqext.skipping.indexes.index import restored
from pqext.skipping.store.folders import SIDE, VERSION, all_parts, parts_of, within
from pqext.skipping.store.objects import objects_of
from pqext.skipping.store.store import Store, rows_about
from pqext.skipping.store.table import Table


@dataclass(frozen=True)
class IndexDescription:
    """One index of a store."""

    name: str
    """The kind."""
    columns: tuple[str, ...]
    """What it is on: a column, of a value within a VARIANT its path and type too."""
    params: Mapping[str, str]
    key: str | None
    """The label of the key that encrypts it."""
    is_understood: bool
    """Is it used? Kinds that nobody has made known are not."""
    is_original: bool
    """Do other readers of the format see it?"""

    def __str__(self) -> str:
        told = f"{self.name} of {' '.join(self.columns)}"
        told += f" ({', '.join(f'{name}={value}' for name, value in self.params.items())})" if self.params else ""
        told += "" if self.key is None else f", key {self.key}"
        return told if self.is_understood else f"{told}, not understood"


@dataclass(frozen=True)
class StoreDescription:
    """What a store holds; printed, it is text."""

    location: str
    version: int | None
    table: str | None
    """The identifier of the table."""
    objects: int
    """Paths that rows are about."""
    rows: int
    """Rows, more than objects where these changed or writers were at work at once."""
    parts: int
    bytes: int
    """Bytes of all parts."""
    partitions: tuple[str, ...]
    indexes: tuple[IndexDescription, ...]
    reason: str | None = None
    """Why no object may be skipped; None where some may."""
    fresh: int | None = None
    """Of the sources, those that the store knows as they are now."""
    unknown: int | None = None
    """Of the sources, those that are new or have changed; queries read them."""
    stale: int | None = None
    """Rows about earlier versions of the sources, or about objects that are gone."""

    def __str__(self) -> str:
        version = "without a version" if self.version is None else f"version {self.version}"
        lines = [
            f"{self.location}: {version}, of {self.table or 'an unknown table'}",
            f"  {self.objects:,} objects in {self.rows:,} rows, {self.parts:,} parts, {self.bytes:,} bytes",
        ]
        if self.reason is not None:
            lines.append(f"  not used: {self.reason}")
        if self.partitions:
            lines.append(f"  partition columns: {', '.join(self.partitions)}")
        lines += [f"  index {one}" for one in self.indexes]
        if self.fresh is not None:
            lines.append(
                f"  {self.fresh:,} files up to date, {self.unknown:,} to refresh, {self.stale:,} rows out of date"
            )
        return "\n".join(escape_text(line) for line in lines)

    def to_dict(self) -> dict[str, Any]:
        """The description as dictionaries, lists, strings, numbers and None."""
        found = asdict(self)
        found["partitions"] = list(self.partitions)
        found["indexes"] = [
            {**vars(one), "columns": list(one.columns), "params": dict(one.params)} for one in self.indexes
        ]
        return found


def describe(
    store: Any,
    sources: Any = None,
    *,
    decryption: FileDecryption | Mapping[str, bytes] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> StoreDescription:
    """What a store holds, of any version; with ``sources`` also what of these is out of date.

    Args:
        store: The folder of the store, a path or a URL.
        sources: Files of its table, as for :func:`build`.
        decryption: Keys of an encrypted store, by their labels.
        limits: Bounds on memory and counts, for stores of strangers.
        filesystem: A file system of pyarrow or fsspec, or a store of obstore, in which both are paths.
        storage_options: Credentials and other settings of the object store that URLs name.

    Returns:
        A :class:`StoreDescription`.

    Raises:
        FileNotFoundError: Where there is no store.
        CorruptFileError: For parts that are damaged, or of no store.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import skipping
        >>> pqext.write_table(pyarrow.table({"temp": [1.5, 2.5]}), "january.parquet")
        >>> summary = skipping.build("january.parquet", [skipping.MinMax("temp")], "store")
        >>> described = skipping.describe("store", "january.parquet")
        >>> print(described.objects, described.indexes[0], described.fresh, described.stale)
        1 minmax of temp (io.pqext.nan=max) 1 0
    """
    known = Store(locate(store, filesystem, storage_options), decryption, limits)
    table = None if sources is None else Table.of(sources, filesystem, storage_options)
    return _described(known, table)


def list_stores(
    base: Any,
    *,
    decryption: FileDecryption | Mapping[str, bytes] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> list[StoreDescription]:
    """The stores right below the folder ``base``, where stores lie by default, sorted by location.

    Arguments are as for :func:`describe`. A store that cannot be read is listed with the error as its ``reason``;
    folders of other Parquet files are passed over.

    Example:
        >>> import os, pqext, pyarrow
        >>> from pqext import skipping
        >>> pqext.write_table(pyarrow.table({"temp": [1.5, 2.5]}), "january.parquet")
        >>> summary = skipping.DataSkipping("january.parquet", base="stores").index_builder().add_min_max_index(
        ...     "temp"
        ... ).build()
        >>> [one.objects for one in skipping.list_stores("stores")]
        [1]
    """
    folder = locate(base, filesystem, storage_options)
    found = []
    for place in _folders(folder):
        try:
            if parts_of(place):
                found.append(_described(Store(place, decryption, limits), None))
        except (ParquetError, FileNotFoundError) as error:
            if isinstance(error, CorruptFileError) and error.message.startswith(NO_PART):
                continue
            found.append(_damaged(place, str(error)))
    return found


def _described(known: Store, table: Table | None) -> StoreDescription:
    about = known.metadata
    files, parts = known.listed(known.location, ())
    paths, _ = split_object_names(parts.table.column(OBJECT_NAME))
    counts: dict[str, int] = {}
    if table is not None:
        objects = objects_of(table.files)
        is_fresh = known.described(objects)
        stale = len(parts.table) - int(np.count_nonzero(table.may_keep(parts.table)))
        current = len(rows_about(parts.table, objects))
        counts = {
            "fresh": int(is_fresh.sum()), "unknown": int((~is_fresh).sum()),
            "stale": stale + max(0, current - int(is_fresh.sum())),
        }  # fmt: skip
    indexes = [
        IndexDescription(
            one.index, one.columns, dict(one.params), one.key,
            restored(one.index, one.columns, one.params) is not None, is_own,
        )
        for each, is_own in ((about, True), (known.side_metadata, False))
        for one in ([] if each is None else each.indexes)
        if one.name != VERSION
    ]  # fmt: skip
    every = [*files, *parts_of(within(known.location, SIDE))]
    return StoreDescription(
        source_name(known.location), about.version, about.table_identifier, len(paths.unique()), len(parts.table),
        len(files), sum(map(_bytes, every)), about.partitions, tuple(indexes), about.reason, **counts,
    )  # fmt: skip


def _damaged(place: Any, reason: str) -> StoreDescription:
    parts = all_parts(place)
    return StoreDescription(source_name(place), None, None, 0, 0, len(parts), sum(map(_bytes, parts)), (), (), reason)


def _bytes(part: Any) -> int:
    if isinstance(part, Location):
        return (part.listed.size if part.listed is not None else None) or 0
    return os.path.getsize(part) if os.path.exists(part) else 0


def _folders(base: Any) -> list[Any]:
    """The folders right below another."""
    if not isinstance(base, Location):
        return [one.path for one in sorted(os.scandir(base), key=lambda one: one.name) if one.is_dir()]
    inside = base.key.rstrip("/") + "/" if base.key.strip("/") else base.key
    names = {name for one in base.files() for name, slash, _ in [one.key.removeprefix(inside).partition("/")] if slash}
    return [within(base, name) for name in sorted(names)]
