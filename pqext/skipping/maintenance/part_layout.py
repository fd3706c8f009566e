"""Layout of a store's parts: own parts as specified, and extra parts for index types that only pqext supports."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError
from pqext.dataset.table.partitions import Partitions
from pqext.skipping.format import spark_schema
from pqext.skipping.format.metadata import IndexColumn, StoreMetadata
from pqext.skipping.format.names import LATEST, OBJECT_NAME, check_names, index_column, object_name, partition_column
from pqext.skipping.format.parts import UNSEEN, Parts, write_part
from pqext.skipping.indexes.index import Index
from pqext.skipping.indexes.values import BloomFilter
from pqext.skipping.maintenance.object_cells import Row, TypedIndex
from pqext.skipping.store.folders import EXTRA, VERSION, VERSION_COLUMN, VERSION_TYPE, join_location
from pqext.skipping.store.keys import StoreKeys, label_keys
from pqext.skipping.store.store import Store, usable_indexes

_PART_ROWS = 50_000
"""Maximum number of objects of a part."""
_TOGETHER = 256
"""Maximum number of rows that are compared together, because Bloom filters are large."""
_PART_BYTES = 64 << 20
"""Bytes of entries at which a part is written."""


@dataclass(frozen=True)
class Layout:
    """Indexes of a store, divided into the indexes of the own parts and of the extra parts."""

    own: StoreMetadata
    extra: StoreMetadata
    indexed: Sequence[TypedIndex]
    columns: Sequence[tuple[IndexColumn, bool]]
    """The column of each index, and whether it is in the own parts."""

    folders: pa.Schema = field(default_factory=lambda: pa.schema([]))
    """The partition columns, with their types."""
    keys: Any = field(default=None, repr=False)
    """Keys of an encrypted store, by their labels."""
    lacks: bool = False
    """Whether the store has an own index that these parts lack. Its entries are then null."""

    @classmethod
    def for_indexes(
        cls, indexes: Sequence[TypedIndex], identifier: str, partitions: pa.Schema, encryption: StoreKeys | None = None
    ) -> Layout:
        """Return the layout of a new store. Raises ``ValueError`` if two indexes have the same column."""
        columns = []
        for item in indexes:
            key = None if encryption is None else encryption.key_of(item.index)
            params = {**item.index.params, **item.params}
            column = IndexColumn.create(item.index.stored_name, item.index.columns, params, key)
            columns.append((column, _is_specified(item)))
        own, extra = ([column for column, is_own in columns if is_own is expected] for expected in (True, False))
        check_names(partitions.names, _describe_columns(own))
        check_names((), _describe_columns(extra))
        labels = None if encryption is None else encryption.labels()
        metadata = StoreMetadata(LATEST, identifier, labels, tuple(partitions.names), tuple(own))
        keys = None if encryption is None else encryption.keys
        return cls(metadata, _extra_metadata(metadata, extra), indexes, columns, partitions, keys)

    @classmethod
    def from_store(cls, store: Store, resolve: Callable[[Sequence[Index]], Sequence[TypedIndex | None]]) -> Layout:
        """Return the layout of an existing store.

        ``resolve`` returns the indexes with their types in the objects to add.

        An index is omitted if its column is missing, or has another type than in the store.
        """
        stored = [
            (column, index, is_own)
            for metadata, is_own in ((store.metadata, True), (store.extra_metadata, False))
            for column, index in ([] if metadata is None else usable_indexes(metadata))
        ]
        indexed, columns = [], []
        resolved = resolve([index for _, index, _ in stored])
        for (column, _, is_own), item in zip(stored, resolved, strict=True):
            if item is not None and item.cells == store.type_of(column, not is_own):
                indexed.append(item)
                columns.append((replace(column, name=index_column(column.columns, column.index)), is_own))
        own = replace(store.metadata, version=LATEST, indexes=tuple(column for column, is_own in columns if is_own))
        extra = _extra_metadata(own, [column for column, is_own in columns if not is_own])
        lacks = len(own.indexes) < len(store.metadata.indexes)
        return cls(own, extra, indexed, columns, store.partition_types(), store.decryption, lacks)

    def write(self, location: Any, rows: Sequence[Row], partitions: pa.RecordBatch, name: str | None = None) -> None:
        """Write ``rows`` as an own part and an extra part with the file name ``name``.

        ``partitions`` contains the partition values of the rows.
        """
        name = name or part_name()
        names = pa.array([object_name(row.path, row.modified_ms) for row in rows], pa.string())
        versions = pa.array([{"size": row.size, "etag": row.etag} for row in rows], VERSION_TYPE)
        cells = {
            column.name: pa.concat_arrays([pa.nulls(0, item.cells), *(row.cells[at] for row in rows)])
            for at, ((column, _), item) in enumerate(zip(self.columns, self.indexed, strict=True))
        }
        values = dict(zip(partitions.schema.names, partitions.columns, strict=True))
        folders = {
            partition_column(column.name): values.get(column.name, pa.nulls(len(rows), column.type))
            for column in self.folders
        }
        own = {column.name: cells[column.name] for column in self.own.indexes}
        extra = {column.name: cells[column.name] for column in self.extra.indexes if column.name != VERSION}
        # Write the extra part first: its rows determine the version of own rows for the same object.
        write_split_part(
            join_location(location, EXTRA),
            pa.table({OBJECT_NAME: names, VERSION: versions, **extra}),
            self.extra,
            self.keys,
            name,
        )
        table = pa.table({OBJECT_NAME: names, **folders, **own})
        write_split_part(location, table, self.own, self.keys, UNSEEN + name if self.lacks else name)


@dataclass
class PartWriter:
    """Writer of rows to the parts of a store. At most one part is buffered, to bound memory."""

    layout: Layout
    location: Any
    partitions: Partitions
    task: int = 0
    job: str | None = None
    """Job id in the names of the parts, equal for retries of a task."""
    _pending: list[tuple[Any, Row]] = field(default_factory=list)
    _bytes: int = 0
    _parts: int = 0
    _rows: int = 0

    def add(self, source: Any, row: Row) -> None:
        """Add the row of an object."""
        self._pending.append((source, row))
        self._bytes += sum(cell.nbytes for cell in row.cells)
        if len(self._pending) >= _PART_ROWS or self._bytes >= _PART_BYTES:
            self.finish()

    def finish(self) -> int:
        """Write the buffered rows as a part. Returns the number of rows in all parts."""
        if self._pending:
            values = self.partitions.values([source for source, _ in self._pending])
            name = part_name(self.task, self.job, self._parts)
            self.layout.write(self.location, [row for _, row in self._pending], values, name)
            self._parts, self._rows = self._parts + 1, self._rows + len(self._pending)
            self._pending, self._bytes = [], 0
        return self._rows


def write_merged(
    parts: Parts, folder: Any, keep: Callable[[IndexColumn], bool], rows: NDArray[np.int64] | None, keys: Any
) -> int:
    """Write the rows of ``parts``, without duplicates, as one part of the latest version. Return the row count.

    If ``rows`` is passed, only these rows are written. ``keep`` selects the indexes. Raises ``CorruptFileError`` if the
    parts lack a column that the metadata lists.
    """
    metadata, table = parts.metadata, parts.table
    retained = [column for column in metadata.indexes if keep(column)]
    renamed = [replace(column, name=index_column(column.columns, column.index)) for column in retained]
    table = table if rows is None else table.take(pa.array(rows))
    table = table.take(_distinct_rows(table))
    partitions = [partition_column(name) for name in metadata.partitions]
    for name in (OBJECT_NAME, *partitions, *(column.name for column in retained)):
        if name not in table.column_names:
            raise CorruptFileError("the metadata of the store lists a column that no part contains", column=name)
    columns = {name: table.column(name) for name in (OBJECT_NAME, *partitions)}
    columns |= {new.name: table.column(old.name) for old, new in zip(retained, renamed, strict=True)}
    write_split_part(folder, pa.table(columns), replace(metadata, version=LATEST, indexes=tuple(renamed)), keys)
    return len(table)


def write_split_part(folder: Any, table: pa.Table, metadata: StoreMetadata, keys: Any, name: str | None = None) -> None:
    """Write a part into a folder. Rows with null entries go into a separate part.

    xskipper interprets a null entry as a proof that an object has no values. It does not see the separate part, and
    therefore reads the objects of these rows.
    """
    name, labels = name or part_name(), label_keys(keys, metadata.encryption)
    unknown = _rows_with_unknown(table, metadata)
    if unknown.any() and not name.startswith(UNSEEN):
        write_part(join_location(folder, UNSEEN + name), table.filter(pa.array(unknown)), metadata, labels)
        table = table.filter(pa.array(~unknown))
    write_part(join_location(folder, name), table, metadata, labels, spark_compatible=VERSION not in table.column_names)


def _rows_with_unknown(table: pa.Table, metadata: StoreMetadata) -> NDArray[np.bool_]:
    """Return a mask of the rows with a null entry in an index that xskipper uses, except Bloom filters."""
    is_own = VERSION not in table.column_names
    names = [column.name for column in metadata.indexes if column.index != BloomFilter.name and is_own]
    result = np.zeros(len(table), bool)
    for column in map(table.column, names):
        result |= np.asarray(column.is_null())
    return result


def part_name(task: int = 0, job: str | None = None, number: int = 0) -> str:
    """Return the file name of a part, in Spark's format."""
    return f"part-{task:05}-{job or uuid.uuid4()}-c{number:03}.snappy.parquet"


def _extra_metadata(metadata: StoreMetadata, indexes: Sequence[IndexColumn]) -> StoreMetadata:
    """Derive the metadata of a store's extra parts from the ``metadata`` of its own parts."""
    version = VERSION_COLUMN if metadata.encryption is None else replace(
        VERSION_COLUMN, key=metadata.encryption.footer_key
    )
    return replace(metadata, partitions=(), indexes=(version, *indexes))


def _distinct_rows(table: pa.Table) -> pa.Array:
    """Return the positions of the first occurrence of each row. Concurrent writers leave duplicates."""
    names = table.column(OBJECT_NAME).combine_chunks()
    counts = names.value_counts()
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    may_repeat = np.flatnonzero(np.asarray(pc.is_in(names, value_set=repeated)))
    seen: dict[bytes, int] = {}
    for start in range(0, len(may_repeat), _TOGETHER):
        numbers = may_repeat[start : start + _TOGETHER]
        for at, row in zip(numbers.tolist(), table.take(pa.array(numbers)).to_pylist(), strict=True):
            seen.setdefault(blake2b(repr(row).encode("utf-8", "surrogatepass")).digest(), at)
    return pa.array(np.union1d(np.setdiff1d(np.arange(len(names)), may_repeat), [*seen.values()]).astype(np.int64))


def _is_specified(index: TypedIndex) -> bool:
    """Return whether the specification defines the index type and Spark supports the type of its entries."""
    if not index.index.is_original or len(index.index.columns) > 1:
        return False
    try:
        spark_schema.spark_type(index.cells, "")
    except (TypeError, ValueError):
        return False
    return True


def _describe_columns(columns: Sequence[IndexColumn]) -> Mapping[str, str]:
    result: dict[str, str] = {}
    for column in columns:
        text = f"the index {column.index} of {', '.join(column.columns)}"
        if column.name in result:
            raise ValueError(f"{text} and {result[column.name]} would have the same store column: remove one")
        result[column.name] = text
    return result
