"""Table of a store: the current files with their partition values."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.io.sources.locations import Location
from pqext.dataset.files.sources import common_root, find_sources, locate_sources, source_name
from pqext.dataset.table.partitions import Partitions, infer_partitions, partitions_of
from pqext.skipping.format.names import table_identifier
from pqext.skipping.store.objects import canonical_path, current_objects, is_valid_unicode
from pqext.skipping.store.store import current_rows, object_versions, source_path

_NO_ROOT = "a store needs files with paths below one folder"


@dataclass(frozen=True)
class Table:
    """Files of a table, with their partition values."""

    files: tuple[Any, ...]
    identifier: str
    partitions: Partitions
    complete_folders: tuple[str, ...] = ()
    """Folders whose files are all included."""

    @classmethod
    def from_sources(
        cls, sources: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None
    ) -> Table:
        """Locate the files of ``sources``. Raises ``ValueError`` for files without paths or without a common folder."""
        places = locate_sources(sources, filesystem, storage_options)
        files = find_sources(places)
        _, identifier = common_folder(places)
        if any(source_path(file) is None for file in files):
            raise ValueError(_NO_ROOT)
        partitions = partitions_of(places, files)
        folders = tuple(filter(None, map(_folder, places)))
        return cls(files, identifier, partitions, folders)

    def join_store(self, identifier: str | None, store: str) -> Table:
        """Return these files as files of the store's table. Raises ``ValueError`` for files of another table."""
        if identifier is None:
            return self
        root = self.partitions.root
        for file in self.files:
            name = table_identifier(source_path(file) or "")
            if not (name == identifier or name.startswith(identifier.rstrip("/") + "/")):
                raise ValueError(
                    f"the store at {store} belongs to {identifier}, but {source_name(file)} is not in it: refresh it "
                    "with files of that table, or build another store"
                )
        above = self.identifier.removeprefix(identifier.rstrip("/"))
        if root is not None and above and root.endswith(above):
            root = root[: -len(above)] or os.sep
        elif root is not None and self.identifier == identifier:
            return self
        return replace(self, partitions=infer_partitions(root, self.files))

    def cast_partitions(self, types: pa.Schema) -> Table:
        """Return these files with the partition columns cast to the types in a store."""
        return replace(self, partitions=self.partitions.cast(types))

    def current_mask(self, rows: pa.Table) -> NDArray[np.bool_]:
        """Return a mask of the ``rows`` of a store that may be current.

        True for rows that describe the current version of one of these files, or a file outside ``complete_folders``.
        """
        objects = current_objects(self.files)
        now = np.zeros(len(rows), bool)
        now[current_rows(rows, objects)] = True
        paths, _ = object_versions(rows)
        others = ~np.asarray(pc.is_in(paths, value_set=objects.paths))
        for folder in self.complete_folders:
            others &= ~np.asarray(pc.starts_with(paths, folder))
        current: NDArray[np.bool_] = now | others
        return current


def common_folder(sources: Sequence[Any]) -> tuple[Any, str]:
    """Return the common folder of a table's located files, and the identifier of the table.

    Raises ``ValueError`` for sources that are not text paths, or are on several drives or in several object stores.
    """
    root = common_root(sources)
    if root is None:
        raise ValueError(_NO_ROOT)
    first = next((source for source in sources if isinstance(source, Location)), None)
    folder: Any = root if first is None else first.with_key(root.strip("/") if first.key[:1] != "/" else root)
    identifier = table_identifier(canonical_path(source_name(folder)))
    if not is_valid_unicode(identifier):
        raise ValueError(f"the path {identifier!r} is not valid Unicode and cannot identify a store: rename the folder")
    return folder, identifier


def _folder(source: Any) -> str | None:
    """Return the prefix that all file names in a folder share; None if the source is not a folder."""
    if isinstance(source, Location):
        is_folder = not source.is_file() and not set("*?[{") & set(source.key)
        return canonical_path(source.path).rstrip("/") + "/" if is_folder else None
    is_folder = isinstance(source, str) and os.path.isdir(source)
    return os.path.abspath(source).rstrip(os.sep) + os.sep if is_folder else None
