"""The parts of a store, read: what they say of themselves, and their rows as one table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.local_paths import scheme_of
from pqext.core.base.workers import Workers
from pqext.core.io.sources.locations import Location
from pqext.core.options.encryption import FileDecryption
from pqext.core.read.reader import ParquetFile
from pqext.skipping.format import metadata as store
from pqext.skipping.format import spark_schema
from pqext.skipping.format.metadata import StoreMetadata
from pqext.skipping.format.names import OBJECT_NAME, partition_column

_REQUESTS = 16
"""Remote parts that are read at once: most of their time is waiting."""
UNSEEN = "_pqext-"
"""How the names of parts begin whose rows the original would take for proofs that they are not: it reads none."""
NO_PART = "no part of a data-skipping store"
Wanted = Callable[[StoreMetadata], Iterable[str]]
"""Gives, from what one part says, the columns to read of it."""


@dataclass(frozen=True)
class Parts:
    """What the parts of a store say together, and their rows: ``obj_name``, partition columns, columns of indexes."""

    metadata: StoreMetadata
    table: pa.Table


def part_files(folder: Any) -> list[Any]:
    """The files of the store in ``folder``, a local path or a :class:`Location`, sorted by name.

    Parquet files right in the folder whose names do not begin with ``_`` or ``.``, which Spark passes over, but for
    those that begin with :data:`UNSEEN`. None where there is no folder.
    """
    if isinstance(folder, Location):
        inside = folder.key.rstrip("/") + "/" if folder.key.strip("/") else folder.key
        return [one for one in folder.files() if _is_part(one.key.removeprefix(inside))]
    found: list[str] = []
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        found = sorted(one.path for one in entries if _is_part(one.name) and not one.is_dir())
    return found


def _is_part(name: str) -> bool:
    name = name.removeprefix(UNSEEN)
    return name.endswith(".parquet") and not name.startswith(("_", ".")) and "/" not in name


def part_metadata(file: ParquetFile) -> StoreMetadata:
    """What an open part says of itself. Raises ``CorruptFileError`` where it is no part of a store."""
    pairs = {pair.key: pair.value for pair in file.metadata.key_value_metadata or ()}
    text = pairs.get(spark_schema.KEY)
    if text is None:
        told = f"{NO_PART}: its footer has no {spark_schema.KEY!r}"
        raise CorruptFileError(told, path=file.path)
    about = store.from_spark(spark_schema.parse(text, file.path), file.path)
    stored = set(file.schema.root.child_names)
    for name in (OBJECT_NAME, *map(partition_column, about.partitions), *(one.name for one in about.indexes)):
        if name not in stored:
            raise CorruptFileError("the column that the metadata describes is missing", path=file.path, column=name)
    return about


def read_parts(
    parts: Sequence[Any],
    columns: Sequence[str] | Wanted | None = None,
    decryption: FileDecryption | Mapping[str, bytes] | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    rows: bool = True,
) -> Parts:
    """The store in ``parts``: paths, Locations or anything else that :func:`pqext.open` takes.

    ``columns`` are names of the store's columns, or a function that gives them from what each part says; without it
    all are read, and ``obj_name`` always. A column that a part lacks is null in its rows. Of a store that is not
    usable nothing but ``obj_name`` is read. ``decryption`` may be a mapping from the labels of keys to keys. Without
    ``rows`` the table has none, and only footers are read.

    Raises ``CorruptFileError`` for files that are no part of a store, or of different ones, ``LimitError`` where the
    rows take more memory than ``limits`` allow, and ``KeyError`` for a column that no part has.
    """
    if not parts:
        raise ValueError("a store has one part at least")
    if isinstance(decryption, Mapping):
        decryption = FileDecryption(key_retriever=retriever(decryption))
    read: list[tuple[str | None, StoreMetadata, pa.Table]] = []
    held = size = 0
    threads = _REQUESTS if any(_is_remote(part) for part in parts) else 1
    with Workers(threads, len(parts)) as workers:
        reading = partial(_read_part, columns=columns, decryption=decryption, limits=limits, rows=rows)
        for path, about, table, part_size in workers.map_ahead(reading, parts, threads):
            read.append((path, about, table))
            held, size = held + table.nbytes, size + part_size
            if held > (allowed := limits.memory_for(size)):
                message = f"the store takes {held:,} bytes in memory, limits allow {allowed:,}: read fewer columns"
                raise LimitError(message, path=path)
    whole = store.merged([(path, about) for path, about, _ in read])
    table = _concatenated([(path, table) for path, _, table in read])
    if columns is not None and not callable(columns) and whole.is_usable:
        for name in columns:
            if name not in table.column_names:
                raise KeyError(f"the store has no column {name!r}")
    order = [OBJECT_NAME, *map(partition_column, whole.partitions), *(one.name for one in whole.indexes)]
    return Parts(whole, table.select([name for name in order if name in table.column_names]))


def _read_part(
    part: Any, columns: Sequence[str] | Wanted | None, decryption: FileDecryption | None, limits: Limits, rows: bool
) -> tuple[str | None, StoreMetadata, pa.Table, int]:
    """The path of one part, what it says, its rows and its size."""
    with ParquetFile(part, limits=limits, decryption=decryption) as file:
        about = part_metadata(file)
        table = file.read(_chosen(about, columns), None if rows else [])
        kind = table.schema.field(OBJECT_NAME).type
        if not pa.types.is_string(kind) and not pa.types.is_large_string(kind):
            raise CorruptFileError(f"names of objects are texts, not {kind}", path=file.path, column=OBJECT_NAME)
        return file.path, about, table, file.source.size


def _is_remote(part: Any) -> bool:
    return isinstance(part, Location) or (isinstance(part, str) and scheme_of(part) not in (None, "file"))


def retriever(keys: Mapping[str, bytes]) -> Callable[[bytes], bytes]:
    """Gives the key that a label in a file stands for. Raises ``KeyError`` for an unknown one, as readers expect."""

    def key_of(label: bytes) -> bytes:
        return keys[label.decode("utf-8", "replace")]

    return key_of


def _chosen(about: StoreMetadata, columns: Sequence[str] | Wanted | None) -> list[str]:
    """The columns to read of a part."""
    present = [*map(partition_column, about.partitions), *(one.name for one in about.indexes)]
    if not about.is_usable:
        return [OBJECT_NAME]
    if columns is not None:
        wanted = set(columns(about) if callable(columns) else columns)
        present = [name for name in present if name in wanted]
    return [OBJECT_NAME, *present]


def _concatenated(tables: Sequence[tuple[str | None, pa.Table]]) -> pa.Table:
    """The rows of all tables; a column that one of them lacks is null there."""
    seen: dict[str, tuple[pa.DataType, str | None]] = {}
    for path, table in tables:
        for one in table.schema:
            kind, first = seen.setdefault(one.name, (one.type, path))
            if kind != one.type:
                message = f"the parts of the store contradict each other: type {kind} in {first}, but {one.type} here"
                raise CorruptFileError(message, path=path, column=one.name)
    bare = [table.replace_schema_metadata() for _, table in tables]
    return pa.concat_tables(bare, promote_options="default")
