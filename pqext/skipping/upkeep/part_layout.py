"""The columns of a store's two kinds of parts: what the specification knows, and what is pqext's own."""

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

from pqext.dataset.table.partitions import Partitions
from pqext.skipping.format import spark_schema
from pqext.skipping.format.identifiers import object_name
from pqext.skipping.format.metadata import IndexColumn, StoreMetadata
from pqext.skipping.format.names import LATEST, OBJECT_NAME, check_names, index_column, partition_column
from pqext.skipping.format.reading import UNSEEN, Parts
from pqext.skipping.format.writing import write_part
from pqext.skipping.indexes.bloomfilter import BloomFilter
from pqext.skipping.indexes.index import Index
from pqext.skipping.store.folders import SIDE, VERSION, VERSION_COLUMN, VERSION_TYPE, within
from pqext.skipping.store.keys import StoreKeys, labelled
from pqext.skipping.store.store import Store, understood
from pqext.skipping.upkeep.object_cells import Indexed, Row

_PART_ROWS = 50_000
"""Objects of a part."""
_TOGETHER = 256
"""Rows that are compared at a time: cells of Bloom filters are large."""
_PART_BYTES = 64 << 20
"""Bytes of cells that a part has before it is written."""


@dataclass(frozen=True)
class Layout:
    """Which indexes a store has, each with its column in the store's own parts or in those beside them."""

    own: StoreMetadata
    side: StoreMetadata
    indexed: Sequence[Indexed]
    columns: Sequence[tuple[IndexColumn, bool]]
    """The column of each of the indexes, and whether it is in the store's own parts."""

    folders: pa.Schema = field(default_factory=lambda: pa.schema([]))
    """The partition columns, with their types."""
    keys: Any = field(default=None, repr=False)
    """The keys of an encrypted store, by their labels."""
    lacks: bool = False
    """Has the store an index of the original's that these parts do not have? Its cells are null then."""

    @classmethod
    def of(
        cls, indexes: Sequence[Indexed], identifier: str, partitions: pa.Schema, encryption: StoreKeys | None = None
    ) -> Layout:
        """The layout of a new store. Raises ``ValueError`` for two indexes that would have one column."""
        columns = []
        for one in indexes:
            key = None if encryption is None else encryption.key_of(one.index)
            params = {**one.index.params, **one.params}
            column = IndexColumn.of(one.index.stored_name, one.index.columns, params, key)
            columns.append((column, _is_original(one)))
        own, side = ([one for one, is_own in columns if is_own is wanted] for wanted in (True, False))
        check_names(partitions.names, _described(own))
        check_names((), _described(side))
        labels = None if encryption is None else encryption.labels()
        about = StoreMetadata(LATEST, identifier, labels, tuple(partitions.names), tuple(own))
        keys = None if encryption is None else encryption.keys
        return cls(about, _beside(about, side), indexes, columns, partitions, keys)

    @classmethod
    def of_store(cls, known: Store, meet: Callable[[Sequence[Index]], Sequence[Indexed | None]]) -> Layout:
        """The layout of a store that is there, for objects with columns as ``meet`` finds them.

        An index whose column is not there, or in another type than the store has, is left out.
        """
        asked = [
            (column, index, is_own)
            for about, is_own in ((known.metadata, True), (known.side_metadata, False))
            for column, index in ([] if about is None else understood(about))
        ]
        indexed, columns = [], []
        found = meet([index for _, index, _ in asked])
        for (column, _, is_own), met in zip(asked, found, strict=True):
            if met is not None and met.cells == known.type_of(column, not is_own):
                indexed.append(met)
                columns.append((replace(column, name=index_column(column.columns, column.index)), is_own))
        own = replace(known.metadata, version=LATEST, indexes=tuple(one for one, is_own in columns if is_own))
        side = _beside(own, [one for one, is_own in columns if not is_own])
        lacks = len(own.indexes) < len(known.metadata.indexes)
        return cls(own, side, indexed, columns, known.partition_types(), known.decryption, lacks)

    def write(self, location: Any, rows: Sequence[Row], partitions: pa.RecordBatch, name: str | None = None) -> None:
        """Write rows as a part of each kind, called ``name``; ``partitions`` are what their folders say."""
        name = name or part_name()
        names = pa.array([object_name(row.path, row.modified_ms) for row in rows], pa.string())
        versions = pa.array([{"size": row.size, "etag": row.etag} for row in rows], VERSION_TYPE)
        cells = {
            column.name: pa.concat_arrays([pa.nulls(0, one.cells), *(row.cells[at] for row in rows)])
            for at, ((column, _), one) in enumerate(zip(self.columns, self.indexed, strict=True))
        }
        said = dict(zip(partitions.schema.names, partitions.columns, strict=True))
        folders = {
            partition_column(one.name): said.get(one.name, pa.nulls(len(rows), one.type)) for one in self.folders
        }
        own = {one.name: cells[one.name] for one in self.own.indexes}
        side = {one.name: cells[one.name] for one in self.side.indexes if one.name != VERSION}
        # Rows without a version stand for the one beside them, so that comes first.
        put(
            within(location, SIDE),
            pa.table({OBJECT_NAME: names, VERSION: versions, **side}),
            self.side,
            self.keys,
            name,
        )
        table = pa.table({OBJECT_NAME: names, **folders, **own})
        put(location, table, self.own, self.keys, UNSEEN + name if self.lacks else name)


@dataclass
class PartWriter:
    """Writes rows as parts of a store, each once it has many rows or bytes, so that memory stays bounded."""

    layout: Layout
    location: Any
    partitions: Partitions
    task: int = 0
    job: str | None = None
    """What the names of the parts hold: of a task that is tried again they are the same ones."""
    _held: list[tuple[Any, Row]] = field(default_factory=list)
    _bytes: int = 0
    _parts: int = 0
    _rows: int = 0

    def add(self, source: Any, row: Row) -> None:
        """Take the row of an object."""
        self._held.append((source, row))
        self._bytes += sum(cell.nbytes for cell in row.cells)
        if len(self._held) >= _PART_ROWS or self._bytes >= _PART_BYTES:
            self.finish()

    def finish(self) -> int:
        """Write what is left; the number of all rows."""
        if self._held:
            values = self.partitions.values([source for source, _ in self._held])
            name = part_name(self.task, self.job, self._parts)
            self.layout.write(self.location, [row for _, row in self._held], values, name)
            self._parts, self._rows = self._parts + 1, self._rows + len(self._held)
            self._held, self._bytes = [], 0
        return self._rows


def rewritten(
    parts: Parts, folder: Any, keep: Callable[[IndexColumn], bool], rows: NDArray[np.int64] | None, keys: Any
) -> int:
    """Write all rows, or those in ``rows``, as one part of the latest version, each once; gives their number."""
    about, table = parts.metadata, parts.table
    kept = [one for one in about.indexes if keep(one)]
    named = [replace(one, name=index_column(one.columns, one.index)) for one in kept]
    table = table if rows is None else table.take(pa.array(rows))
    table = table.take(_distinct(table))
    partitions = [partition_column(name) for name in about.partitions]
    columns = {name: table.column(name) for name in (OBJECT_NAME, *partitions)}
    columns |= {new.name: table.column(one.name) for one, new in zip(kept, named, strict=True)}
    put(folder, pa.table(columns), replace(about, version=LATEST, indexes=tuple(named)), keys)
    return len(table)


def put(folder: Any, table: pa.Table, about: StoreMetadata, keys: Any, name: str | None = None) -> None:
    """Write a part into a folder; it appears when it is whole.

    The original takes a null cell for a proof that an object has no values. It does not see rows with such cells, which
    are a part of their own, and reads their objects.
    """
    name, labels = name or part_name(), labelled(keys, about.encryption)
    unknown = _unknown(table, about)
    if unknown.any() and not name.startswith(UNSEEN):
        write_part(within(folder, UNSEEN + name), table.filter(pa.array(unknown)), about, labels)
        table = table.filter(pa.array(~unknown))
    write_part(within(folder, name), table, about, labels, for_spark=VERSION not in table.column_names)


def _unknown(table: pa.Table, about: StoreMetadata) -> NDArray[np.bool_]:
    """The rows with a null cell of an index that the original asks, but for Bloom filters, where it means as much."""
    asked = [one.name for one in about.indexes if one.index != BloomFilter.name and VERSION not in table.column_names]
    found = np.zeros(len(table), bool)
    for column in map(table.column, asked):
        found |= np.asarray(column.is_null())
    return found


def part_name(task: int = 0, job: str | None = None, number: int = 0) -> str:
    """The name of a part, as Spark gives them."""
    return f"part-{task:05}-{job or uuid.uuid4()}-c{number:03}.snappy.parquet"


def _beside(own: StoreMetadata, indexes: Sequence[IndexColumn]) -> StoreMetadata:
    """What the parts with further indexes say, beside ``own``."""
    version = VERSION_COLUMN if own.encryption is None else replace(VERSION_COLUMN, key=own.encryption.footer_key)
    return replace(own, partitions=(), indexes=(version, *indexes))


def _distinct(table: pa.Table) -> pa.Array:
    """The numbers of the first of all rows that are the same, which writers at once leave twice."""
    names = table.column(OBJECT_NAME).combine_chunks()
    counts = names.value_counts()
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    may_repeat = np.flatnonzero(np.asarray(pc.is_in(names, value_set=twice)))
    seen: dict[bytes, int] = {}
    for start in range(0, len(may_repeat), _TOGETHER):
        numbers = may_repeat[start : start + _TOGETHER]
        for at, row in zip(numbers.tolist(), table.take(pa.array(numbers)).to_pylist(), strict=True):
            seen.setdefault(blake2b(repr(row).encode("utf-8", "surrogatepass")).digest(), at)
    return pa.array(np.union1d(np.setdiff1d(np.arange(len(names)), may_repeat), [*seen.values()]).astype(np.int64))


def _is_original(one: Indexed) -> bool:
    """Does the specification know the index, and Spark the type of its cells?"""
    if not one.index.is_original or len(one.index.columns) > 1:
        return False
    try:
        spark_schema.type_of(one.cells, "")
    except (TypeError, ValueError):
        return False
    return True


def _described(columns: Sequence[IndexColumn]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for one in columns:
        told = f"the index {one.index} of {', '.join(one.columns)}"
        if one.name in found:
            raise ValueError(f"{told} and {found[one.name]} would be one column of the store: leave one out")
        found[one.name] = told
    return found
