"""Maintain stores: merge parts, drop indexes, and upgrade old versions.

Every step first adds a part with the retained rows and then removes the parts that it replaces. Readers therefore see
all rows at any time. An interrupted step leaves the previous parts, and two concurrent steps leave duplicate rows. The
next :func:`compact` removes both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import ParquetError, UnsupportedError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.suggestions import join_names
from pqext.core.io.sources.locations import locate
from pqext.core.options.encryption import FileDecryption
from pqext.dataset.files.sources import source_name
from pqext.skipping.format.metadata import IndexColumn
from pqext.skipping.format.names import LATEST, OBJECT_NAME
from pqext.skipping.format.parts import part_files, read_parts
from pqext.skipping.indexes.index import Index
from pqext.skipping.maintenance.part_layout import write_merged
from pqext.skipping.store.folders import (
    EXTRA,
    VERSION,
    current_parts,
    join_location,
    list_all_parts,
    pending_folder,
    remove_parts,
    replace_parts,
)
from pqext.skipping.store.store import Store, versions_of
from pqext.skipping.store.table import Table


def compact(
    store: Any,
    sources: Any = None,
    *,
    decryption: FileDecryption | Mapping[str, bytes] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> int:
    """Merge the parts of a store into one, without duplicate rows.

    With ``sources``, the table's files as for :func:`build`, rows for earlier versions of these objects are also
    dropped, and so are rows of objects that were deleted from their folders. ``decryption`` contains the keys of an
    encrypted store, by their labels. Concurrent readers see either the old parts or the new one.

    Returns the number of dropped rows. Each row describes one object. Raises the errors of :func:`refresh`.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import skipping
        >>> pqext.write_table(pyarrow.table({"temp": [1.5, 2.5]}), "january.parquet")
        >>> summary = skipping.build("january.parquet", [skipping.MinMax("temp")], "store")
        >>> skipping.compact("store")
        0
    """
    opened = prepare_store(Store(locate(store, filesystem, storage_options), decryption, limits))
    table = None if sources is None else Table.from_sources(sources, filesystem, storage_options)
    return rewrite_store(opened, table)


def drop(
    store: Any,
    indexes: Sequence[Index] | None = None,
    *,
    decryption: FileDecryption | Mapping[str, bytes] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Drop ``indexes`` of a store, or the complete store if ``indexes`` is None.

    ``decryption`` contains the keys of an encrypted store, by their labels.

    Raises ``ValueError`` for an index that the store does not have, and the errors of :func:`refresh`.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import skipping
        >>> pqext.write_table(pyarrow.table({"temp": [1.5, 2.5]}), "january.parquet")
        >>> summary = skipping.build("january.parquet", [skipping.MinMax("temp")], "dropped")
        >>> skipping.drop("dropped")
        >>> skipping.is_indexed("dropped")
        False
    """
    location = locate(store, filesystem, storage_options)
    if indexes is None:
        remove_parts(list_all_parts(location))
        return
    opened = prepare_store(Store(location, decryption, limits))
    names = {(index.stored_name, index.columns) for index in indexes}
    stored = {(index.stored_name, index.columns) for index in opened.indexes}
    if names - stored:
        name, columns = min(names - stored)
        known = join_names(f"{name} on {', '.join(columns)}" for name, columns in sorted(stored)) or "no indexes"
        raise ValueError(f"the store has no {name} index on {', '.join(columns)}; it has {known}")
    rewrite_store(opened, None, lambda column: (column.index, column.columns) not in names)


def is_indexed(store: Any, *, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None) -> bool:
    """Return whether the folder ``store`` contains a store.

    Example:
        >>> from pqext import skipping
        >>> skipping.is_indexed("nowhere")
        False
    """
    return bool(current_parts(locate(store, filesystem, storage_options)))


def prepare_store(store: Store) -> Store:
    """Upgrade a store of an older version, or complete an interrupted replacement, and return the store.

    Raises ``FileNotFoundError`` if there is no store, and ``UnsupportedError`` for an unsupported version.
    """
    reason = store.metadata.reason
    if reason is not None:
        raise UnsupportedError(reason, feature="the version", path=source_name(store.location))
    if (store.metadata.version or 0) < LATEST:
        old, parts = store.list_parts(store.location)
        remove_parts(part_files(pending_folder(store.location)))
        write_merged(parts, pending_folder(store.location), lambda column: True, None, store.decryption)
        replace_parts(store.location, old)
    elif not part_files(store.location):
        replace_parts(store.location, [])
    store.clear_cache()
    return store


def rewrite_store(store: Store, table: Table | None, keep: Callable[[IndexColumn], bool] = lambda column: True) -> int:
    """Merge the parts of a store, retaining current rows and the indexes that ``keep`` selects.

    Returns the number of dropped rows. If several versions of an object have the same modification time, its rows in
    the store's own parts cannot be attributed to a version and are dropped.
    """
    extra = join_location(store.location, EXTRA)
    has_extra = store.extra_metadata is not None
    ambiguous = _ambiguous_objects(store.list_parts(extra)[1].table, table) if has_extra else pa.nulls(0, pa.string())
    dropped = 0
    for folder in [store.location, extra] if has_extra else [store.location]:
        old, parts = store.list_parts(folder)
        names = parts.table.column(OBJECT_NAME)
        is_current = np.ones(len(names), bool) if table is None else table.current_mask(parts.table)
        if folder is store.location:
            is_current &= ~np.asarray(pc.is_in(names, value_set=ambiguous))
        rows = write_merged(parts, folder, keep, np.flatnonzero(is_current), store.decryption)
        dropped += len(names) - rows if folder is store.location else 0
        remove_parts(old)
    store.clear_cache()
    return dropped


def withdraw_parts(location: Any, identifier: str, keys: Any) -> bool:
    """Remove the parts of the table ``identifier`` if the folder also has parts of other tables.

    Returns whether the folder has parts of other tables.

    Stores of two tables that are built concurrently in one folder are inconsistent. A builder that detects this removes
    its own parts, so at most one store remains.
    """
    own, is_alone = [], True
    for part in list_all_parts(location):
        try:
            stored = read_parts([part], (), keys, with_rows=False).metadata.table_identifier
        except FileNotFoundError:  # the other builder withdrew
            continue
        except ParquetError:  # the other store has other keys
            stored = None
        is_alone &= stored == identifier
        own += [part] if stored == identifier else []
    if not is_alone:
        remove_parts(own)
    return not is_alone


def _ambiguous_objects(extra_rows: pa.Table, table: Table | None) -> pa.Array:
    """Return the names of objects whose rows in the own parts may describe several or outdated versions.

    Returns all names if the extra parts do not record versions.
    """
    if VERSION not in extra_rows.column_names:
        return extra_rows.column(OBJECT_NAME).combine_chunks()
    names, (sizes, etags) = extra_rows.column(OBJECT_NAME).combine_chunks(), versions_of(extra_rows).flatten()
    versions = pa.table({"name": names, "size": sizes, "etag": etags}).group_by(["name", "size", "etag"]).aggregate([])
    counts = versions.group_by("name").aggregate([([], "count_all")])
    repeated = counts.filter(pc.greater(counts.column("count_all"), 1)).column("name")
    stale = []
    if table is not None:
        stale = extra_rows.column(OBJECT_NAME).filter(pa.array(~table.current_mask(extra_rows))).to_pylist()
    return pa.array([*repeated.to_pylist(), *stale], pa.string())
