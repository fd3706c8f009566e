"""Stores made and kept up to date: built, and refreshed with what is new or has changed.

Both add parts with what they found; a store that takes the place of another is written beside it first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.workers import Workers
from pqext.core.io.sources.locations import locate
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.read_write import ReadOptions
from pqext.dataset.files.sources import source_name
from pqext.skipping.format.reading import part_files
from pqext.skipping.indexes.index import Index
from pqext.skipping.store.folders import all_parts, pending, remove, substitute
from pqext.skipping.store.keys import StoreKeys
from pqext.skipping.store.objects import objects_of
from pqext.skipping.store.store import Store
from pqext.skipping.store.table import Table
from pqext.skipping.upkeep.maintenance import opened, rewrite, withdraw
from pqext.skipping.upkeep.object_cells import Indexed, Indexer, Row, meet
from pqext.skipping.upkeep.part_layout import Layout, PartWriter

_AHEAD = 64
"""Objects that are looked at before the one whose row is written."""
_TRIED = 16
"""Objects that are looked at for the types of columns."""
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
    encryption: StoreKeys | None = None,
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
        overwrite: Replace a store that is there. It serves queries until the new one is whole.
        encryption: Encrypt the store (:class:`pqext.skipping.StoreKeys`).
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
    location = locate(store, filesystem, storage_options)
    return make(table, indexes, location, here, overwrite=overwrite, encryption=encryption)


def refresh(
    sources: Any,
    store: Any,
    *,
    data: bool = True,
    options: ReadOptions | None = None,
    limits: Limits = DEFAULT_LIMITS,
    decryption: FileDecryption | Mapping[str, bytes] | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Summary:
    """Index the objects of a table that are new or have changed since the store was made; arguments as :func:`build`.

    ``sources`` may be a part of the table, such as a folder of one partition; what the store knows of others stays.
    Rows of objects that are gone do no harm; they are dropped when parts are merged, as they are here once there are
    many (:func:`compact`). A store of version 1 to 3 becomes one of version 4. ``decryption`` are the keys of an
    encrypted store, by their labels.

    Raises ``FileNotFoundError`` where there is no store, ``UnsupportedError`` for one of a version that is not known,
    ``ValueError`` for files of another table, and otherwise as :func:`build`.

    Example:
        >>> import os, pqext, pyarrow
        >>> from pqext import skipping
        >>> os.mkdir("table")
        >>> pqext.write_table(pyarrow.table({"temp": [1.5, 2.5]}), "table/january.parquet")
        >>> summary = skipping.build("table", [skipping.MinMax("temp")], "table/_skipping")
        >>> pqext.write_table(pyarrow.table({"temp": [3.5]}), "table/february.parquet")
        >>> print(skipping.refresh("table", "table/_skipping"))
        2 objects: 1 indexed, 0 by reading rows; 1 kept
    """
    table = Table.of(sources, filesystem, storage_options)
    here = Here(as_stored(options), limits, data, threads, progress)
    known = Store(locate(store, filesystem, storage_options), decryption, limits)
    return renew(table, known, here)


def as_stored(options: ReadOptions | None) -> ReadOptions:
    """Options to read values in Parquet's own types, whatever Arrow types a writer noted."""
    return replace(options or ReadOptions(), arrow_schema=False, strings="string", on_corrupt="raise")


class Indexing(Protocol):
    """What looks at objects and adds their rows to a store: threads of this process, or tasks elsewhere."""

    def meet(self, indexes: Sequence[Index], source: Any) -> list[Indexed]:
        """The indexes with the types that their operands have; raises as
        :func:`pqext.skipping.upkeep.object_cells.meet`.
        """

    def add(self, table: Table, files: Sequence[Any], layout: Layout, location: Any) -> Summary:
        """Index ``files``, some of the table's, and write their rows as parts of the store at ``location``."""


def make(
    table: Table,
    indexes: Sequence[Index],
    location: Any,
    indexing: Indexing,
    *,
    overwrite: bool,
    encryption: StoreKeys | None = None,
) -> Summary:
    """A new store of a table; see :func:`build`."""
    old = all_parts(location)
    if old and not overwrite:
        raise FileExistsError(f"there is a store at {source_name(location)}: refresh it, or pass overwrite=True")
    if not indexes:
        raise ValueError("a store has one index at least")
    found = meet_any(indexing, indexes, table.files)
    known = [met or indexing.meet([one], table.files[0])[0] for one, met in zip(indexes, found, strict=True)]
    layout = Layout.of(known, table.identifier, table.partitions.schema, encryption)
    dest = pending(location) if old else location
    summary = indexing.add(table, table.files, layout, dest)
    if old and summary.failed and not summary.added:
        remove(all_parts(dest))
        path, reason = summary.failed[0]
        raise ValueError(f"no object can be indexed, so the store stays as it is; the first one, {path}: {reason}")
    if not summary.added:  # a store of no object is a store
        layout.write(dest, [], table.partitions.values([]))
    if old:  # which may contradict what is new
        substitute(location, old)
    elif withdraw(location, table.identifier, layout.keys):
        place = source_name(location)
        raise FileExistsError(f"another table's store was built at {place} meanwhile: take another folder")
    return summary


def renew(table: Table, known: Store, indexing: Indexing) -> Summary:
    """A store brought up to date; see :func:`refresh`."""
    opened(known)
    table = table.within(known.metadata.table_identifier, source_name(known.location)).typed(known.partition_types())
    objects = objects_of(table.files)
    if known.is_in_doubt(objects):
        rewrite(known, table)
    is_kept = known.described(objects)
    left = [table.files[at] for at in np.flatnonzero(~is_kept)]
    summary = Summary(0, 0, 0, 0)
    if left:
        layout = Layout.of_store(known, lambda indexes: meet_any(indexing, indexes, left))
        summary = indexing.add(table, left, layout, known.location)
    if len(part_files(known.location)) > _PARTS:
        rewrite(known, table)
    known.forget()
    return Summary(len(table.files), summary.added, int(is_kept.sum()), summary.read, summary.failed)


def meet_any(indexing: Indexing, indexes: Sequence[Index], files: Sequence[Any]) -> list[Indexed | None]:
    """The indexes with the types of their operands; None for one whose column none of the first files has."""
    found: list[Indexed | None] = [None] * len(indexes)
    for source in files[:_TRIED]:
        for at, index in enumerate(indexes):
            if found[at] is None:
                with suppress(OSError, ParquetError, TypeError, ValueError):
                    found[at] = indexing.meet([index], source)[0]
        if None not in found:
            break
    return found


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
