"""Find the delete files that apply to a data file.

Spec: Apache Iceberg, "Scan Planning", "Row-level Deletes".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.manifest import DataFileContent, FileFormat

from pqext.core.base.errors import CorruptFileError
from pqext.core.io.sources.store_errors import redact_uri
from pqext.tables.iceberg.manifests import TableFile

PATH_ID, POSITION_ID = 2147483546, 2147483545
"""Field ids of the columns of position delete files."""


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Location of a delete file, and the ids of the fields that an equality delete file compares.

    ``blob_range`` is the offset and size of a deletion vector; None for Parquet files.
    """

    source: Any
    equality_ids: tuple[int, ...] = ()
    blob_range: tuple[int, int] | None = None


@dataclass(slots=True)
class DeleteIndex:
    """Index of a snapshot's delete files by the data file or partition to which each delete file applies."""

    by_path: dict[str, list[TableFile]] = field(default_factory=lambda: defaultdict(list))
    by_partition: dict[tuple[int, tuple[Any, ...]], list[TableFile]] = field(default_factory=lambda: defaultdict(list))
    equality: dict[tuple[int, tuple[Any, ...]] | None, list[TableFile]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Equality delete files by partition. The key None has the files that apply to all partitions."""
    vectors: dict[str, TableFile] = field(default_factory=dict)

    @classmethod
    def build(cls, files: Iterable[TableFile], unpartitioned: Collection[int], name: str) -> DeleteIndex:
        """Index the delete files ``files``. ``unpartitioned`` are the ids of partition specs without fields.

        Raises ``CorruptFileError`` if a file has two deletion vectors, or a delete file lacks required metadata.
        """
        index = cls()
        for file in files:
            if file.file.content == DataFileContent.EQUALITY_DELETES:
                if not file.file.equality_ids:
                    raise CorruptFileError(f"an equality delete file of {name} lists no columns", path=_location(file))
                key = None if file.file.spec_id in unpartitioned else file.partition_key
                index.equality[key].append(file)
            elif file.file.file_format == FileFormat.PUFFIN:
                path = file.referenced_file
                if path is None or file.blob_range is None:
                    raise CorruptFileError(f"a deletion vector of {name} is incomplete", path=_location(file))
                if path in index.vectors:
                    raise CorruptFileError(f"{name} has two deletion vectors for one file", path=redact_uri(path))
                index.vectors[path] = file
            else:
                path = file.referenced_file or _only_path(file)
                (index.by_partition[file.partition_key] if path is None else index.by_path[path]).append(file)
        return index

    def files_for(self, data: TableFile) -> list[TableFile]:
        """Return the delete files that apply to a data file, without duplicates."""
        sequence = data.sequence_number
        vector = self.vectors.get(data.path)
        if vector is not None and sequence <= vector.sequence_number:
            positions = [vector]
        else:
            candidates = [*self.by_path.get(data.path, ()), *self.by_partition.get(data.partition_key, ())]
            positions = [file for file in candidates if sequence <= file.sequence_number and _may_name(file, data.path)]
        equality = [*self.equality.get(None, ()), *self.equality.get(data.partition_key, ())]
        return [*positions, *(file for file in equality if sequence < file.sequence_number)]


def _location(file: TableFile) -> str:
    return redact_uri(file.path)


def _path_bounds(file: TableFile) -> tuple[bytes | None, bytes | None]:
    bounds: tuple[Mapping[int, bytes] | None, ...] = (file.file.lower_bounds, file.file.upper_bounds)
    low, high = ((each or {}).get(PATH_ID) for each in bounds)
    return low, high


def _only_path(file: TableFile) -> str | None:
    """Return the only data file path in a position delete file; None unless the bounds of the paths are equal.

    Truncated bounds differ, because upper bounds are rounded up.
    """
    low, high = _path_bounds(file)
    return low.decode("utf-8", "replace") if low is not None and low == high else None


def _may_name(file: TableFile, path: str) -> bool:
    """Return whether a position delete file may contain ``path``, according to the bounds of the path column."""
    low, high = _path_bounds(file)
    return (low is None or low <= path.encode()) and (high is None or path.encode() <= high)
