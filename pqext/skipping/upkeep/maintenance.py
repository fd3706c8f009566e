"""Stores kept in order: parts merged into one, indexes dropped, old versions made new.

Every step first adds a part with what is kept and then removes the parts whose rows that holds. So a reader finds all
that was known at any moment, a step that is broken off leaves what was there, and two that run at once leave rows
twice, which the next :func:`compact` mends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import ParquetError, UnsupportedError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.io.sources.locations import locate
from pqext.core.options.encryption import FileDecryption
from pqext.dataset.files.sources import source_name
from pqext.skipping.format.metadata import IndexColumn
from pqext.skipping.format.names import LATEST, OBJECT_NAME
from pqext.skipping.format.reading import part_files, read_parts
from pqext.skipping.indexes.index import Index
from pqext.skipping.store.folders import SIDE, VERSION, all_parts, parts_of, pending, remove, substitute, within
from pqext.skipping.store.store import Store
from pqext.skipping.store.table import Table
from pqext.skipping.upkeep.part_layout import rewritten


def compact(
    store: Any,
    sources: Any = None,
    *,
    decryption: FileDecryption | Mapping[str, bytes] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> int:
    """Merge the parts of a store into one, each row once.

    With ``sources``, which are as for :func:`build`, rows of these as they were before are dropped too, and rows of
    objects that are gone from the folders among them. ``decryption`` are the keys of an encrypted store, by their
    labels.

    Returns the number of rows that were dropped, of one object each. Raises as :func:`refresh` does. What is read
    meanwhile finds the old parts or the new one.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import skipping
        >>> pqext.write_table(pyarrow.table({"temp": [1.5, 2.5]}), "january.parquet")
        >>> summary = skipping.build("january.parquet", [skipping.MinMax("temp")], "store")
        >>> skipping.compact("store")
        0
    """
    known = opened(Store(locate(store, filesystem, storage_options), decryption, limits))
    return rewrite(known, None if sources is None else Table.of(sources, filesystem, storage_options))


def drop(
    store: Any,
    indexes: Sequence[Index] | None = None,
    *,
    decryption: FileDecryption | Mapping[str, bytes] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Drop ``indexes`` of a store, or the whole store; ``decryption`` are the keys of an encrypted one, by labels.

    Raises ``ValueError`` for an index that the store does not have, and otherwise as :func:`refresh` does.

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
        remove(all_parts(location))
        return
    known = opened(Store(location, decryption, limits))
    names = {(one.stored_name, one.columns) for one in indexes}
    missing = names - {(one.stored_name, one.columns) for one in known.indexes}
    if missing:
        name, columns = min(missing)
        raise ValueError(f"the store has no index {name} of {', '.join(columns)}")
    rewrite(known, None, lambda one: (one.index, one.columns) not in names)


def is_indexed(store: Any, *, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None) -> bool:
    """Is there a store in the folder ``store``?

    Example:
        >>> from pqext import skipping
        >>> skipping.is_indexed("nowhere")
        False
    """
    return bool(parts_of(locate(store, filesystem, storage_options)))


def opened(known: Store) -> Store:
    """A store to be written to, of the latest version: one of an older version is upgraded.

    Raises ``FileNotFoundError`` where there is none, and ``UnsupportedError`` for a version that is not known.
    """
    reason = known.metadata.reason
    if reason is not None:
        raise UnsupportedError(reason, feature="the version", path=source_name(known.location))
    if (known.metadata.version or 0) < LATEST:
        old, parts = known.listed(known.location)
        remove(part_files(pending(known.location)))
        rewritten(parts, pending(known.location), lambda one: True, None, known.decryption)
        substitute(known.location, old)
    elif not part_files(known.location):
        substitute(known.location, [])
    known.forget()
    return known


def rewrite(known: Store, table: Table | None, keep: Callable[[IndexColumn], bool] = lambda one: True) -> int:
    """One part with the rows and the indexes that are kept; gives the rows dropped.

    Of objects of which several versions have the same time, the own rows cannot tell which they are about: they go.
    """
    side = within(known.location, SIDE)
    has_side = known.side_metadata is not None
    ambiguous = _ambiguous(known.listed(side)[1].table, table) if has_side else pa.nulls(0, pa.string())
    dropped = 0
    for folder in [known.location, side] if has_side else [known.location]:
        old, parts = known.listed(folder)
        names = parts.table.column(OBJECT_NAME)
        kept = np.ones(len(names), bool) if table is None else table.may_keep(parts.table)
        if folder is known.location:
            kept &= ~np.asarray(pc.is_in(names, value_set=ambiguous))
        rows = rewritten(parts, folder, keep, np.flatnonzero(kept), known.decryption)
        dropped += len(names) - rows if folder is known.location else 0
        remove(old)
    known.forget()
    return dropped


def withdraw(location: Any, identifier: str, keys: Any) -> bool:
    """Remove the parts of the table ``identifier`` where there are others beside them; was that so?

    Stores of two tables that are built in one folder at once contradict each other. Whoever finds that gives way, so
    that at most one of them is there in the end.
    """
    own, is_alone = [], True
    for part in all_parts(location):
        try:
            found = read_parts([part], (), keys, rows=False).metadata.table_identifier
        except FileNotFoundError:  # the other one gave way
            continue
        except ParquetError:  # of a store with other keys
            found = None
        is_alone &= found == identifier
        own += [part] if found == identifier else []
    if not is_alone:
        remove(own)
    return not is_alone


def _ambiguous(side: pa.Table, table: Table | None) -> pa.Array:
    """The names of objects of which versions other than one are known."""
    if VERSION not in side.column_names:
        return side.column(OBJECT_NAME).combine_chunks()
    versions = side.select([OBJECT_NAME, VERSION]).flatten().combine_chunks()
    versions = versions.rename_columns(["name", "size", "etag"]).group_by(["name", "size", "etag"]).aggregate([])
    counts = versions.group_by("name").aggregate([([], "count_all")])
    several = counts.filter(pc.greater(counts.column("count_all"), 1)).column("name")
    stale = [] if table is None else side.column(OBJECT_NAME).filter(pa.array(~table.may_keep(side))).to_pylist()
    return pa.array([*several.to_pylist(), *stale], pa.string())
