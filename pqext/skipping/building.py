"""Stores made and kept up to date: built, refreshed, merged into one part, and indexes dropped.

Every step first adds a part with what is new and then, where that is its purpose, removes parts whose rows that holds.
So a reader finds all that was known at any moment, a step that is broken off leaves what was there, and two that run at
once leave rows twice, which :func:`compact` mends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from pqext.core.errors import UnsupportedError
from pqext.core.limits import DEFAULT_LIMITS, Limits
from pqext.core.options import ReadOptions
from pqext.core.sources.locate import locate
from pqext.core.workers import Workers
from pqext.dataset.files.sources import common_root, find_sources, source_name
from pqext.dataset.one_table.partitions import Partitions, partitions_of
from pqext.skipping.format.identifiers import table_identifier
from pqext.skipping.format.reading import part_files
from pqext.skipping.indexes.index import Index
from pqext.skipping.indexing import Indexed, Indexer, Row, meet
from pqext.skipping.layout import Layout, PartWriter, rewritten
from pqext.skipping.objects import Objects, canonical, objects_of
from pqext.skipping.store import SIDE, Store, within

_AHEAD = 64
"""Objects that are looked at before the one whose row is written."""
_PARTS = 8
"""Parts that a store has before a refresh merges them."""

Progress = Callable[[int, int], None]
"""Told after each object how many are done, and of how many."""


@dataclass(frozen=True)
class Summary:
    """What building or refreshing a store did, in numbers of objects."""

    objects: int
    """All that were asked about."""
    added: int
    """Indexed now: those that are new or have changed."""
    kept: int
    """Whose rows were up to date."""
    read: int
    """Of the added ones those whose rows were read, because their footers did not prove every index."""
    failed: tuple[tuple[str, str], ...] = ()
    """Objects that could not be indexed, with the reason; every query reads them."""

    def __str__(self) -> str:
        told = f"{self.objects:,} objects: {self.added:,} indexed, {self.read:,} by reading rows; {self.kept:,} kept"
        return told + (f"; {len(self.failed):,} failed, first {': '.join(self.failed[0])}" if self.failed else "")


def build(
    sources: Any,
    indexes: Sequence[Index],
    store: Any,
    *,
    data: bool = True,
    overwrite: bool = False,
    options: ReadOptions | None = None,
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Summary:
    """Index the objects of a table, and write what is found as a data-skipping store.

    Args:
        sources: The Parquet files, as :func:`pqext.scan` takes them: a folder, a pattern, or a list.
        indexes: What is kept of each, such as ``MinMax("temp")`` or ``Box("geometry")``.
        store: The folder of the store, a path or a URL; it is made.
        data: False indexes by footers alone; what they do not prove stays unknown.
        overwrite: Replace a store that is there.
        options: How the files are read, keys among it.
        limits: Bounds on memory and counts, for files of strangers.
        filesystem: A file system of pyarrow or fsspec, or a store of obstore, in which ``sources`` and ``store`` are
            paths.
        storage_options: Credentials and other settings of the object store that URLs name.
        threads: Objects that are indexed at once, 0 for one per processor.
        progress: Called after each object with how many are done, and of how many.

    Returns:
        A :class:`Summary`.

    Raises:
        FileExistsError: Where there is a store already.
        FileNotFoundError: For sources that do not exist.
        ValueError: For a column that is not there, and two indexes that are one.
        TypeError: For values that an index is not made for.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import skipping
        >>> pqext.write_table(pyarrow.table({"temp": [1.5, 2.5]}), "january.parquet")
        >>> print(skipping.build("january.parquet", [skipping.MinMax("temp")], "store"))
        1 objects: 1 indexed, 0 by reading rows; 0 kept
    """
    table = Table.of(sources, filesystem, storage_options)
    here = Here(as_stored(options), limits, data, threads, progress)
    return make(table, indexes, locate(store, filesystem, storage_options), here, overwrite=overwrite)


def refresh(
    sources: Any,
    store: Any,
    *,
    data: bool = True,
    options: ReadOptions | None = None,
    limits: Limits = DEFAULT_LIMITS,
    decryption: Any = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Summary:
    """Index the objects of a table that are new or have changed since the store was made; arguments as :func:`build`.

    Rows of objects that are gone do no harm; they are dropped when parts are merged, as they are here once there are
    many (:func:`compact`). A store of version 1 to 3 becomes one of version 4. ``decryption`` are the keys of an
    encrypted store, by their labels.

    Raises ``FileNotFoundError`` where there is no store, ``UnsupportedError`` for one of a version that is not known,
    and otherwise as :func:`build`.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import skipping
        >>> pqext.write_table(pyarrow.table({"temp": [1.5, 2.5]}), "table/january.parquet")
        >>> summary = skipping.build("table", [skipping.MinMax("temp")], "store")
        >>> pqext.write_table(pyarrow.table({"temp": [3.5]}), "table/february.parquet")
        >>> print(skipping.refresh("table", "store"))
        2 objects: 1 indexed, 0 by reading rows; 1 kept
    """
    table = Table.of(sources, filesystem, storage_options)
    here = Here(as_stored(options), limits, data, threads, progress)
    known = Store(locate(store, filesystem, storage_options), decryption, limits)
    return renew(table, known, here)


def compact(
    store: Any,
    sources: Any = None,
    *,
    decryption: Any = None,
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> int:
    """Merge the parts of a store into one, each row once; with ``sources`` only rows of these as they are now.

    Returns the number of rows that were dropped. Raises as :func:`refresh` does. What is read meanwhile finds the old
    parts or the new one.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import skipping
        >>> pqext.write_table(pyarrow.table({"temp": [1.5, 2.5]}), "january.parquet")
        >>> summary = skipping.build("january.parquet", [skipping.MinMax("temp")], "store")
        >>> skipping.compact("store")
        0
    """
    location = locate(store, filesystem, storage_options)
    known = Store(location, decryption, limits)
    if known.metadata.reason is not None:
        raise UnsupportedError(known.metadata.reason, feature="the version", path=source_name(location))
    objects = None if sources is None else objects_of(find_sources(sources, filesystem, storage_options))
    return _rewrite(known, objects, lambda one: True)


def drop(
    store: Any,
    indexes: Sequence[Index] | None = None,
    *,
    decryption: Any = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Drop ``indexes`` of a store, or the whole store.

    Raises ``ValueError`` for an index that the store does not have, and otherwise as :func:`refresh` does.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import skipping
        >>> pqext.write_table(pyarrow.table({"temp": [1.5, 2.5]}), "january.parquet")
        >>> summary = skipping.build("january.parquet", [skipping.MinMax("temp")], "store")
        >>> skipping.drop("store")
        >>> skipping.is_indexed("store")
        False
    """
    location = locate(store, filesystem, storage_options)
    known = Store(location, decryption)
    if indexes is None:
        remove(all_parts(location))
        return
    names = {(one.stored_name, one.columns) for one in indexes}
    missing = names - {(one.stored_name, one.columns) for one in known.indexes}
    if missing:
        name, columns = min(missing)
        raise ValueError(f"the store has no index {name} of {', '.join(columns)}")
    _rewrite(known, None, lambda one: (one.index, one.columns) not in names)


def is_indexed(
    store: Any, *, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None
) -> bool:
    """Is there a store in the folder ``store``?

    Example:
        >>> from pqext import skipping
        >>> skipping.is_indexed("nowhere")
        False
    """
    return bool(part_files(locate(store, filesystem, storage_options)))


def as_stored(options: ReadOptions | None) -> ReadOptions:
    """Options to read values in Parquet's own types, whatever Arrow types a writer noted."""
    return replace(options or ReadOptions(), arrow_schema=False, strings="string", on_corrupt="raise")


@dataclass(frozen=True)
class Table:
    """The objects of a table, and what their folders say."""

    files: tuple[Any, ...]
    identifier: str
    partitions: Partitions

    @classmethod
    def of(cls, sources: Any, filesystem: Any, storage_options: Mapping[str, Any] | None) -> Table:
        files = find_sources(sources, filesystem, storage_options)
        root = common_root(sources, filesystem, storage_options)
        if root is None:
            raise ValueError("a store is of files with paths below one folder")
        partitions = partitions_of(sources, files, filesystem=filesystem, storage_options=storage_options)
        return cls(files, table_identifier(canonical(root)), partitions)


class Indexing(Protocol):
    """What looks at objects and adds their rows to a store: threads of this process, or tasks elsewhere."""

    def meet(self, indexes: Sequence[Index], source: Any) -> list[Indexed]:
        """The indexes with the types that their operands have; raises as :func:`pqext.skipping.indexing.meet`."""

    def add(self, table: Table, files: Sequence[Any], layout: Layout, location: Any) -> Summary:
        """Index ``files``, some of the table's, and write their rows as parts of the store at ``location``."""


def make(table: Table, indexes: Sequence[Index], location: Any, indexing: Indexing, *, overwrite: bool) -> Summary:
    """A new store of a table; see :func:`build`."""
    old = all_parts(location)
    if old and not overwrite:
        raise FileExistsError(f"there is a store at {source_name(location)}: refresh it, or pass overwrite=True")
    if not indexes:
        raise ValueError("a store has one index at least")
    layout = Layout.of(indexing.meet(indexes, table.files[0]), table.identifier, table.partitions.schema)
    summary = indexing.add(table, table.files, layout, location)
    if not summary.added:  # a store of no object is a store
        layout.write(location, [], table.partitions.values([]))
    remove(old)
    return summary


def renew(table: Table, known: Store, indexing: Indexing) -> Summary:
    """A store brought up to date; see :func:`refresh`."""
    location = known.location
    if known.metadata.reason is not None:
        raise UnsupportedError(known.metadata.reason, feature="the version", path=source_name(location))
    is_kept = known.described(objects_of(table.files))
    left = [table.files[at] for at in np.flatnonzero(~is_kept)]
    layout = Layout.of_store(known, partial(indexing.meet, source=left[0] if left else table.files[0]))
    summary = indexing.add(table, left, layout, location) if left else Summary(0, 0, 0, 0)
    if known.metadata.version != layout.own.version or len(part_files(location)) > _PARTS:
        compact(location, sources=table.files, decryption=known.decryption, limits=known.limits)
    return Summary(len(table.files), summary.added, int(is_kept.sum()), summary.read, summary.failed)


@dataclass(frozen=True)
class Here:
    """Indexing by threads of this process."""

    options: ReadOptions
    limits: Limits = DEFAULT_LIMITS
    data: bool = True
    threads: int = 0
    progress: Progress | None = None

    def meet(self, indexes: Sequence[Index], source: Any) -> list[Indexed]:
        return meet(indexes, source, self.options, self.limits)

    def add(self, table: Table, files: Sequence[Any], layout: Layout, location: Any) -> Summary:
        """Index ``files``, several at once, each in one thread."""
        indexer = Indexer(layout.indexed, self.options, self.limits, self.data)
        failed: list[tuple[str, str]] = []
        read = 0
        writer = PartWriter(layout, location, table.partitions)
        with (
            Workers(self.threads, len(files)) as workers,
            closing(workers.map_ahead(indexer.attempt, files, _AHEAD)) as found,
        ):
            for at, row in enumerate(found):
                if self.progress is not None:
                    self.progress(at + 1, len(files))
                if isinstance(row, Row):
                    read += row.read
                    writer.add(files[at], row)
                else:
                    failed.append((source_name(files[at]), row))
        return Summary(len(files), writer.finish(), 0, read, tuple(failed))


def _rewrite(known: Store, objects: Objects | None, keep: Callable[[Any], bool]) -> int:
    """One part with the rows and the indexes that are kept, in the latest version; gives the rows dropped."""
    dropped = 0
    for is_side in (False, True):
        folder = within(known.location, SIDE) if is_side else known.location
        old = part_files(folder)
        if not old:
            continue
        parts = known.all_rows(old)
        kept = rewritten(parts, folder, keep, None if objects is None else known.rows_of(parts.table, objects))
        dropped += parts.table.num_rows - kept
        remove(old)
    return dropped


def all_parts(location: Any) -> list[Any]:
    """All parts of a store, the own ones last: without these there is no store."""
    return [*part_files(within(location, SIDE)), *part_files(location)]


def remove(parts: Sequence[Any]) -> None:
    """Delete parts, those that are gone already passed over."""
    for part in parts:
        if isinstance(part, str):
            with suppress(FileNotFoundError):
                os.remove(part)
        else:
            part.remove()
