"""The table that a store is of: its files as they are now, and what their folders say."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.io.sources.locations import Location
from pqext.dataset.files.sources import common_root, find_sources, located, source_name
from pqext.dataset.table.partitions import Partitions, partitions_below, partitions_of
from pqext.skipping.format.identifiers import table_identifier
from pqext.skipping.store.objects import canonical, is_text, objects_of
from pqext.skipping.store.store import name_of, named_objects, rows_about

_NO_ROOT = "a store is of files with paths below one folder"


@dataclass(frozen=True)
class Table:
    """Files of a table, all of them or a part, below its root."""

    files: tuple[Any, ...]
    identifier: str
    partitions: Partitions
    whole: tuple[str, ...] = ()
    """The folders all of whose files are among these."""

    @classmethod
    def of(cls, sources: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None) -> Table:
        """The table of sources. Raises ``ValueError`` for files without paths, or without a folder in common."""
        files = find_sources(sources, filesystem, storage_options)
        _, identifier = root_of(sources, filesystem, storage_options)
        if any(name_of(file) is None for file in files):
            raise ValueError(_NO_ROOT)
        partitions = partitions_of(sources, files, filesystem=filesystem, storage_options=storage_options)
        whole = tuple(filter(None, map(_folder, located(sources, filesystem, storage_options))))
        return cls(files, identifier, partitions, whole)

    def within(self, identifier: str | None, store: str) -> Table:
        """These files as a part of the table that a store is of. Raises ``ValueError`` where they are of another."""
        if identifier is None:
            return self
        root = self.partitions.root
        for file in self.files:
            name = table_identifier(name_of(file) or "")
            if not (name == identifier or name.startswith(identifier.rstrip("/") + "/")):
                raise ValueError(
                    f"the store at {store} is of {identifier}, and {source_name(file)} is not in it: refresh it by "
                    "files of that table, or build another store"
                )
        above = self.identifier.removeprefix(identifier.rstrip("/"))
        if root is not None and above and root.endswith(above):
            root = root[: -len(above)] or os.sep
        elif root is not None and self.identifier == identifier:
            return self
        return replace(self, partitions=partitions_below(root, self.files))

    def typed(self, types: pa.Schema) -> Table:
        """These files with the partition columns in the types of a store."""
        return replace(self, partitions=self.partitions.typed(types))

    def may_keep(self, stored: pa.Table) -> NDArray[np.bool_]:
        """Which rows of a store are about these files as they are now, or about others."""
        objects = objects_of(self.files)
        now = np.zeros(len(stored), bool)
        now[rows_about(stored, objects)] = True
        paths, _ = named_objects(stored)
        others = ~np.asarray(pc.is_in(paths, value_set=objects.paths))
        for folder in self.whole:
            others &= ~np.asarray(pc.starts_with(paths, folder))
        kept: NDArray[np.bool_] = now | others
        return kept


def root_of(sources: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None) -> tuple[Any, str]:
    """The folder that the files of a table share, and the table's identifier.

    Raises ``ValueError`` for sources that are no paths or not of text, or lie on several drives or object stores.
    """
    root = common_root(sources, filesystem, storage_options)
    if root is None:
        raise ValueError(_NO_ROOT)
    places = (one for one in located(sources, filesystem, storage_options) if isinstance(one, Location))
    first = next(places, None)
    folder: Any = root if first is None else first.at(root.strip("/") if first.key[:1] != "/" else root)
    identifier = table_identifier(canonical(source_name(folder)))
    if not is_text(identifier):
        raise ValueError(f"a store is named after its table, and {identifier!r} is no Unicode text: rename the folder")
    return folder, identifier


def _folder(source: Any) -> str | None:
    """The name of a folder by which those of the files below begin; None for anything else."""
    if isinstance(source, Location):
        return None if source.is_file() or set("*?[{") & set(source.key) else canonical(source.path).rstrip("/") + "/"
    is_folder = isinstance(source, str) and os.path.isdir(source)
    return os.path.abspath(source).rstrip(os.sep) + os.sep if is_folder else None
