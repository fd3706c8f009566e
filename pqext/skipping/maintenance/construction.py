"""Build stores, and refresh them with new and changed objects.

Both operations add parts with the new entries. A store that replaces another store is first written next to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.progress import Progress
from pqext.core.base.text import with_noun
from pqext.core.base.threads import Workers
from pqext.core.io.sources.locations import locate
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.read_write import ReadOptions
from pqext.dataset.files.sources import source_name
from pqext.skipping.format.parts import part_files
from pqext.skipping.indexes.index import Index
from pqext.skipping.maintenance.compaction import prepare_store, rewrite_store, withdraw_parts
from pqext.skipping.maintenance.object_cells import Indexer, Row, TypedIndex, resolve_indexes
from pqext.skipping.maintenance.part_layout import Layout, PartWriter
from pqext.skipping.store.folders import list_all_parts, pending_folder, remove_parts, replace_parts
from pqext.skipping.store.keys import StoreKeys
from pqext.skipping.store.objects import current_objects
from pqext.skipping.store.store import Store
from pqext.skipping.store.table import Table

_AHEAD = 64
"""Maximum number of objects that are indexed ahead of the object whose row is being written."""
_TRIED = 16
"""Maximum number of objects that are inspected to determine the types of columns."""
_PARTS = 8
"""Maximum number of parts; a refresh merges more."""


@dataclass(frozen=True)
class Summary:
    """Result of building or refreshing a store, as numbers of objects."""

    objects: int
    """Number of all objects in the sources."""
    added: int
    """Number of new and changed objects that were indexed."""
    kept: int
    """Number of objects whose rows were up to date."""
    read: int
    """Number of indexed objects whose rows were read because their footers did not suffice for every index."""
    failed: tuple[tuple[str, str], ...] = ()
    """Objects that could not be indexed, with the reason; every query reads them."""

    def __str__(self) -> str:
        objects = with_noun(self.objects, "object")
        text = f"{objects}: {self.added:,} indexed, {self.read:,} by reading rows; {self.kept:,} kept"
        return text + (f"; {len(self.failed):,} failed, first {': '.join(self.failed[0])}" if self.failed else "")


def build(
    sources: Any,
    indexes: Sequence[Index],
    store: Any,
    *,
    read_rows: bool = True,
    overwrite: bool = False,
    encryption: StoreKeys | None = None,
    options: ReadOptions | None = None,
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Summary:
    """Index the objects of a table, and write the entries as a data-skipping store.

    Args:
        sources: The Parquet files, as for :func:`pqext.scan`: a folder, a pattern, or a list.
        indexes: The indexes to build, such as ``MinMax("temp")`` or ``Box("geometry")``.
        store: The folder of the store, a path or a URL; it is created.
        read_rows: False to read only footers. Entries that footers do not prove remain unknown.
        overwrite: Replace an existing store. It serves queries until the new store is complete.
        encryption: Keys to encrypt the store (:class:`pqext.skipping.StoreKeys`).
        options: Options to read the files, including keys.
        limits: Limits on memory and counts for untrusted files.
        filesystem: A file system of pyarrow or fsspec, or an obstore store, for ``sources`` and ``store``.
        storage_options: Credentials and other settings of the object store of a URL.
        threads: Objects to index concurrently, 0 for one per processor.
        progress: Called after each object with the number of finished objects and of all objects.

    Returns:
        A :class:`Summary`.

    Raises:
        FileExistsError: If a store exists and ``overwrite`` is false.
        FileNotFoundError: If a source does not exist.
        ValueError: If ``indexes`` is empty, a column does not exist, or two indexes are equal.
        TypeError: If an index does not support the type of its column.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import skipping
        >>> pqext.write_table(pyarrow.table({"temp": [1.5, 2.5]}), "january.parquet")
        >>> print(skipping.build("january.parquet", [skipping.MinMax("temp")], "store"))
        1 object: 1 indexed, 0 by reading rows; 0 kept
    """
    table = Table.from_sources(sources, filesystem, storage_options)
    indexing = LocalIndexing(storage_type_options(options), limits, read_rows, threads, progress)
    location = locate(store, filesystem, storage_options)
    return create_store(table, indexes, location, indexing, overwrite=overwrite, encryption=encryption)


def refresh(
    sources: Any,
    store: Any,
    *,
    read_rows: bool = True,
    options: ReadOptions | None = None,
    limits: Limits = DEFAULT_LIMITS,
    decryption: FileDecryption | Mapping[str, bytes] | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Summary:
    """Index new and changed objects of a table. For the arguments, see :func:`build`.

    ``sources`` may be a subset of the table, such as the folder of one partition; rows of other objects are unchanged.
    Rows of deleted objects are harmless. They are dropped when parts are merged (:func:`compact`), which a refresh does
    if there are many parts. Stores of versions 1 to 3 are upgraded to version 4. ``decryption`` contains the keys of an
    encrypted store, by their labels.

    Raises ``FileNotFoundError`` if there is no store, ``UnsupportedError`` for an unsupported version, ``ValueError``
    for files of another table, and the errors of :func:`build`.

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
    table = Table.from_sources(sources, filesystem, storage_options)
    indexing = LocalIndexing(storage_type_options(options), limits, read_rows, threads, progress)
    opened = Store(locate(store, filesystem, storage_options), decryption, limits)
    return refresh_store(table, opened, indexing)


def storage_type_options(options: ReadOptions | None) -> ReadOptions:
    """Return options that ignore the stored Arrow schema, so that values have the types of the Parquet schema."""
    return replace(options or ReadOptions(), arrow_schema=False, strings="string", on_corrupt="raise")


class Indexing(Protocol):
    """Strategy for indexing objects and adding their rows to a store: local threads, or tasks of a cluster."""

    def resolve(self, indexes: Sequence[Index], source: Any) -> list[TypedIndex]:
        """Resolve the indexes against the schema of an object. Return each index with its value type and entry type."""

    def add(self, table: Table, files: Sequence[Any], layout: Layout, location: Any) -> Summary:
        """Index ``files`` of the table, and add their rows to the store at ``location``."""


def create_store(
    table: Table,
    indexes: Sequence[Index],
    location: Any,
    indexing: Indexing,
    *,
    overwrite: bool,
    encryption: StoreKeys | None = None,
) -> Summary:
    """Create a store of a table; see :func:`build`."""
    old = list_all_parts(location)
    if old and not overwrite:
        raise FileExistsError(f"{source_name(location)} already has a store: refresh it, or pass overwrite=True")
    if not indexes:
        raise ValueError("a store needs at least one index: pass indexes, such as [MinMax('temp')]")
    resolved = resolve_from_files(indexing, indexes, table.files)
    complete = [
        item or indexing.resolve([index], table.files[0])[0] for index, item in zip(indexes, resolved, strict=True)
    ]
    layout = Layout.for_indexes(complete, table.identifier, table.partitions.schema, encryption)
    dest = pending_folder(location) if old else location
    summary = indexing.add(table, table.files, layout, dest)
    if old and summary.failed and not summary.added:
        remove_parts(list_all_parts(dest))
        path, reason = summary.failed[0]
        raise ValueError(f"no object can be indexed, so the store is unchanged; first error: {path}: {reason}")
    if not summary.added:  # write an empty store
        layout.write(dest, [], table.partitions.values([]))
    if old:  # they may be inconsistent with the new store
        replace_parts(location, old)
    elif withdraw_parts(location, table.identifier, layout.keys):
        folder = source_name(location)
        raise FileExistsError(f"a store of another table was built at {folder} concurrently: use another folder")
    return summary


def refresh_store(table: Table, store: Store, indexing: Indexing) -> Summary:
    """Refresh a store; see :func:`refresh`."""
    prepare_store(store)
    table = table.join_store(store.metadata.table_identifier, source_name(store.location)).cast_partitions(
        store.partition_types()
    )
    objects = current_objects(table.files)
    if store.has_ambiguous_versions(objects):
        rewrite_store(store, table)
    is_fresh = store.is_fresh(objects)
    outdated = [table.files[at] for at in np.flatnonzero(~is_fresh)]
    summary = Summary(0, 0, 0, 0)
    if outdated:
        layout = Layout.from_store(store, lambda indexes: resolve_from_files(indexing, indexes, outdated))
        summary = indexing.add(table, outdated, layout, store.location)
    if len(part_files(store.location)) > _PARTS:
        rewrite_store(store, table)
    store.clear_cache()
    return Summary(len(table.files), summary.added, int(is_fresh.sum()), summary.read, summary.failed)


def resolve_from_files(indexing: Indexing, indexes: Sequence[Index], files: Sequence[Any]) -> list[TypedIndex | None]:
    """Resolve each index against the schemas of the first few ``files``, until one of the files has the column.

    The result contains None for an index that no file can resolve.
    """
    resolved: list[TypedIndex | None] = [None] * len(indexes)
    for source in files[:_TRIED]:
        for at, index in enumerate(indexes):
            if resolved[at] is None:
                with suppress(OSError, ParquetError, TypeError, ValueError):
                    resolved[at] = indexing.resolve([index], source)[0]
        if None not in resolved:
            break
    return resolved


@dataclass(frozen=True)
class LocalIndexing:
    """Strategy for indexing objects with threads of this process."""

    options: ReadOptions
    limits: Limits = DEFAULT_LIMITS
    read_rows: bool = True
    threads: int = 0
    progress: Progress | None = None

    def resolve(self, indexes: Sequence[Index], source: Any) -> list[TypedIndex]:
        return resolve_indexes(indexes, source, self.options, self.limits)

    def add(self, table: Table, files: Sequence[Any], layout: Layout, location: Any) -> Summary:
        """Index ``files`` concurrently, each in one thread, and write their rows in order."""
        indexer = Indexer(layout.indexed, self.options, self.limits, self.read_rows)
        failed: list[tuple[str, str]] = []
        read = 0
        writer = PartWriter(layout, location, table.partitions)
        with (
            Workers(self.threads, len(files)) as workers,
            closing(workers.map_ahead(indexer.try_row, files, _AHEAD)) as rows,
        ):
            for at, row in enumerate(rows):
                if self.progress is not None:
                    self.progress(at + 1, len(files))
                if isinstance(row, Row):
                    read += row.read
                    writer.add(files[at], row)
                else:
                    failed.append((source_name(files[at]), row))
        return Summary(len(files), writer.finish(), 0, read, tuple(failed))
