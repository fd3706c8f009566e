"""Describe a store: version, table, objects, indexes and outdated rows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.text import escape_text, with_noun
from pqext.core.io.sources.locations import Location, locate
from pqext.core.options.encryption import FileDecryption
from pqext.dataset.files.sources import source_name
from pqext.skipping.format.names import OBJECT_NAME, split_object_names
from pqext.skipping.format.parts import NO_PART
from pqext.skipping.indexes.index import restore_index
from pqext.skipping.store.folders import EXTRA, VERSION, current_parts, join_location, list_all_parts
from pqext.skipping.store.objects import current_objects
from pqext.skipping.store.store import Store, current_rows
from pqext.skipping.store.table import Table


@dataclass(frozen=True)
class IndexDescription:
    """Description of one index of a store."""

    name: str
    """The type of the index."""
    columns: tuple[str, ...]
    """The indexed column; for a value within a VARIANT also its path and type."""
    params: Mapping[str, str]
    key: str | None
    """Label of the key that encrypts the index; None if the index is not encrypted."""
    is_understood: bool
    """Whether queries use the index; index types that are not registered are ignored."""
    is_original: bool
    """Whether other readers of the format can use the index."""

    def __str__(self) -> str:
        text = f"{self.name} of {' '.join(self.columns)}"
        text += f" ({', '.join(f'{name}={value}' for name, value in self.params.items())})" if self.params else ""
        text += "" if self.key is None else f", key {self.key}"
        return text if self.is_understood else f"{text}, not understood"


@dataclass(frozen=True)
class StoreDescription:
    """Description of the contents of a store, which can be printed as text."""

    location: str
    version: int | None
    table: str | None
    """The identifier of the table."""
    objects: int
    """Number of distinct paths in the rows."""
    rows: int
    """Number of rows; exceeds ``objects`` if objects changed or several writers indexed them."""
    parts: int
    bytes: int
    """Bytes of all parts."""
    partitions: tuple[str, ...]
    indexes: tuple[IndexDescription, ...]
    reason: str | None = None
    """The reason that no object can be skipped; None if objects can be skipped."""
    fresh: int | None = None
    """Number of sources with up-to-date rows."""
    unknown: int | None = None
    """Number of new or changed sources, which queries read."""
    stale: int | None = None
    """Number of rows for earlier versions of the sources, or for deleted objects."""

    def __str__(self) -> str:
        version = "without a version" if self.version is None else f"version {self.version}"
        lines = [
            f"{self.location}: {version}, of {self.table or 'an unknown table'}",
            f"  {with_noun(self.objects, 'object')} in {with_noun(self.rows, 'row')}, {with_noun(self.parts, 'part')}, "
            f"{with_noun(self.bytes, 'byte')}",
        ]
        if self.reason is not None:
            lines.append(f"  not used: {self.reason}")
        if self.partitions:
            lines.append(f"  partition columns: {', '.join(self.partitions)}")
        lines += [f"  index {index}" for index in self.indexes]
        if self.fresh is not None:
            lines.append(
                f"  {with_noun(self.fresh, 'file')} up to date, {self.unknown:,} to refresh, "
                f"{with_noun(self.stale or 0, 'row')} out of date"
            )
        return "\n".join(escape_text(line) for line in lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the description as JSON-compatible dictionaries, lists and scalars."""
        result = asdict(self)
        result["partitions"] = list(self.partitions)
        result["indexes"] = [
            {**vars(index), "columns": list(index.columns), "params": dict(index.params)} for index in self.indexes
        ]
        return result


def describe(
    store: Any,
    sources: Any = None,
    *,
    decryption: FileDecryption | Mapping[str, bytes] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> StoreDescription:
    """Describe a store of any version. With ``sources``, also count outdated files and rows.

    Args:
        store: The folder of the store, a path or a URL.
        sources: Files of the store's table, as for :func:`build`.
        decryption: Keys of an encrypted store, by their labels.
        limits: Limits on memory and counts for untrusted stores.
        filesystem: A file system of pyarrow or fsspec, or an obstore store, for both paths.
        storage_options: Credentials and other settings of the object store of a URL.

    Returns:
        A :class:`StoreDescription`.

    Raises:
        FileNotFoundError: If there is no store.
        CorruptFileError: If a part is corrupt or does not belong to a store.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import skipping
        >>> pqext.write_table(pyarrow.table({"temp": [1.5, 2.5]}), "january.parquet")
        >>> summary = skipping.build("january.parquet", [skipping.MinMax("temp")], "store")
        >>> described = skipping.describe("store", "january.parquet")
        >>> print(described.objects, described.indexes[0], described.fresh, described.stale)
        1 minmax of temp (io.pqext.nan=max) 1 0
    """
    opened = Store(locate(store, filesystem, storage_options), decryption, limits)
    table = None if sources is None else Table.from_sources(sources, filesystem, storage_options)
    return _describe(opened, table)


def list_stores(
    base: Any,
    *,
    decryption: FileDecryption | Mapping[str, bytes] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> list[StoreDescription]:
    """Describe the stores directly below the folder ``base``, sorted by location.

    For the arguments, see :func:`describe`. If a store cannot be read, its ``reason`` contains the error. Folders
    with other Parquet files are skipped.

    Example:
        >>> import os, pqext, pyarrow
        >>> from pqext import skipping
        >>> pqext.write_table(pyarrow.table({"temp": [1.5, 2.5]}), "january.parquet")
        >>> summary = skipping.DataSkipping("january.parquet", base="stores").index_builder().add_min_max_index(
        ...     "temp"
        ... ).build()
        >>> [store.objects for store in skipping.list_stores("stores")]
        [1]
    """
    folder = locate(base, filesystem, storage_options)
    stores = []
    for location in _folders(folder):
        try:
            if current_parts(location):
                stores.append(_describe(Store(location, decryption, limits), None))
        except (ParquetError, FileNotFoundError) as error:
            if isinstance(error, CorruptFileError) and error.message.startswith(NO_PART):
                continue
            stores.append(_describe_unreadable(location, str(error)))
    return stores


def _describe(store: Store, table: Table | None) -> StoreDescription:
    metadata = store.metadata
    files, parts = store.list_parts(store.location, ())
    paths, _ = split_object_names(parts.table.column(OBJECT_NAME))
    counts: dict[str, int] = {}
    if table is not None:
        objects = current_objects(table.files)
        is_fresh = store.is_fresh(objects)
        stale = len(parts.table) - int(np.count_nonzero(table.current_mask(parts.table)))
        current = len(current_rows(parts.table, objects))
        counts = {
            "fresh": int(is_fresh.sum()), "unknown": int((~is_fresh).sum()),
            "stale": stale + max(0, current - int(is_fresh.sum())),
        }  # fmt: skip
    indexes = [
        IndexDescription(
            column.index, column.columns, dict(column.params), column.key,
            restore_index(column.index, column.columns, column.params) is not None, is_original,
        )
        for each, is_original in ((metadata, True), (store.extra_metadata, False))
        for column in ([] if each is None else each.indexes)
        if column.name != VERSION
    ]  # fmt: skip
    parts_on_disk = [*files, *current_parts(join_location(store.location, EXTRA))]
    return StoreDescription(
        source_name(store.location), metadata.version, metadata.table_identifier, len(paths.unique()),
        len(parts.table), len(files), sum(map(_bytes, parts_on_disk)), metadata.partitions, tuple(indexes),
        metadata.reason,
        **counts,
    )  # fmt: skip


def _describe_unreadable(location: Any, reason: str) -> StoreDescription:
    parts = list_all_parts(location)
    size = sum(map(_bytes, parts))
    return StoreDescription(source_name(location), None, None, 0, 0, len(parts), size, (), (), reason)


def _bytes(part: Any) -> int:
    if isinstance(part, Location):
        return (part.listed.size if part.listed is not None else None) or 0
    return os.path.getsize(part) if os.path.exists(part) else 0


def _folders(base: Any) -> list[Any]:
    """Return the folders directly below the folder ``base``, sorted by name."""
    if not isinstance(base, Location):
        return [entry.path for entry in sorted(os.scandir(base), key=lambda entry: entry.name) if entry.is_dir()]
    prefix = base.key.rstrip("/") + "/" if base.key.strip("/") else base.key
    keys = (file.key.removeprefix(prefix) for file in base.files())
    names = {name for name, slash, _ in (key.partition("/") for key in keys) if slash}
    return [join_location(base, name) for name in sorted(names)]
