"""Read and write the parts of a store. The rows of all parts form one table.

Parts are written in version 4: with Spark's schema in the footer, optional columns, and keys identified by labels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.local_paths import check_path, check_target, scheme_of
from pqext.core.base.threads import Workers
from pqext.core.io.sources.locations import Location
from pqext.core.options.encryption import ColumnKey, FileDecryption, FileEncryption
from pqext.core.read.reader import ParquetFile
from pqext.core.write.writer import write_table
from pqext.skipping.format import metadata as store
from pqext.skipping.format import spark_schema
from pqext.skipping.format.metadata import StoreEncryption, StoreMetadata, to_spark
from pqext.skipping.format.names import LATEST, OBJECT_NAME, check_names, partition_column

_REQUESTS = 16
"""Maximum number of remote parts that are read concurrently."""
UNSEEN = "_pqext-"
"""File name prefix of parts that xskipper must not read, because it would misinterpret their null entries."""
NO_PART = "not a part of a data-skipping store"
ColumnChoice = Callable[[StoreMetadata], Iterable[str]]
"""Function that returns the columns to read from a part with this metadata."""


@dataclass(frozen=True)
class Parts:
    """Merged metadata and rows of the parts of a store. ``table`` has ``obj_name``, partition columns and indexes."""

    metadata: StoreMetadata
    table: pa.Table


def part_files(folder: Any) -> list[Any]:
    """Return the part files in ``folder``, a local path or a :class:`Location`, sorted by name.

    These are the Parquet files directly in the folder. Files whose names start with ``_`` or ``.`` are omitted, as in
    Spark, unless their names start with :data:`UNSEEN`. The list is empty if the folder does not exist.
    """
    if isinstance(folder, Location):
        prefix = folder.key.rstrip("/") + "/" if folder.key.strip("/") else folder.key
        return [file for file in folder.files() if _is_part(file.key.removeprefix(prefix))]
    check_target(folder, "the folder of the store")
    check_path(os.fsdecode(folder))
    paths: list[str] = []
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        paths = sorted(entry.path for entry in entries if _is_part(entry.name) and not entry.is_dir())
    return paths


def _is_part(name: str) -> bool:
    name = name.removeprefix(UNSEEN)
    return name.endswith(".parquet") and not name.startswith(("_", ".")) and "/" not in name


def part_metadata(file: ParquetFile) -> StoreMetadata:
    """Return the metadata of an open part. Raises ``CorruptFileError`` if metadata or a column is missing."""
    pairs = {pair.key: pair.value for pair in file.metadata.key_value_metadata or ()}
    text = pairs.get(spark_schema.KEY)
    if text is None:
        raise CorruptFileError(f"{NO_PART}: the footer has no {spark_schema.KEY!r}", path=file.path)
    about = store.from_spark(spark_schema.parse(text, file.path), file.path)
    stored = set(file.schema.root.child_names)
    for name in (OBJECT_NAME, *map(partition_column, about.partitions), *(column.name for column in about.indexes)):
        if name not in stored:
            raise CorruptFileError("a column in the metadata is missing", path=file.path, column=name)
    return about


def read_parts(
    parts: Sequence[Any],
    columns: Sequence[str] | ColumnChoice | None = None,
    decryption: FileDecryption | Mapping[str, bytes] | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    with_rows: bool = True,
) -> Parts:
    """Read a store from its ``parts``: paths, Locations or other sources of :func:`pqext.open`.

    ``columns`` are names of the store's columns, or a function that returns the names for the metadata of a part. All
    columns are read if ``columns`` is None. ``obj_name`` is always included. A column that a part lacks is null in the
    rows of this part. For a store that is not usable, only ``obj_name`` is read. ``decryption`` may be a mapping from
    key labels to keys. Without ``with_rows``, only footers are read.

    Raises ``ValueError`` if ``parts`` is empty, ``CorruptFileError`` for files that are not parts of the same store,
    ``LimitError`` if the rows exceed the memory limit, and ``KeyError`` for a column that no part has.
    """
    if not parts:
        raise ValueError("parts must not be empty; pass the files of a store")
    if isinstance(decryption, Mapping):
        decryption = FileDecryption(key_retriever=key_retriever(decryption))
    read: list[tuple[str | None, StoreMetadata, pa.Table]] = []
    memory = size = 0
    threads = _REQUESTS if any(_is_remote(part) for part in parts) else 1
    with Workers(threads, len(parts)) as workers:
        reading = partial(_read_part, columns=columns, decryption=decryption, limits=limits, with_rows=with_rows)
        for path, about, table, part_size in workers.map_ahead(reading, parts, threads):
            read.append((path, about, table))
            memory, size = memory + table.nbytes, size + part_size
            if memory > (allowed := limits.max_memory_bytes(size)):
                message = f"the store needs {memory:,} bytes of memory, limits allow {allowed:,}: read fewer columns"
                raise LimitError(message, path=path)
    merged = store.merge_metadata([(path, about) for path, about, _ in read])
    table = _concatenate([(path, table) for path, _, table in read])
    if columns is not None and not callable(columns) and merged.is_usable:
        for name in columns:
            if name not in table.column_names:
                raise KeyError(f"the store has no column {name!r}")
    order = [OBJECT_NAME, *map(partition_column, merged.partitions), *(column.name for column in merged.indexes)]
    return Parts(merged, table.select([name for name in order if name in table.column_names]))


def _read_part(
    part: Any, columns: Sequence[str] | ColumnChoice | None, decryption: FileDecryption | None, limits: Limits,
    with_rows: bool,
) -> tuple[str | None, StoreMetadata, pa.Table, int]:
    """Return the path, the metadata, the rows and the size in bytes of a part."""
    with ParquetFile(part, limits=limits, decryption=decryption) as file:
        about = part_metadata(file)
        table = file.read(_select_columns(about, columns), None if with_rows else [])
        type = table.schema.field(OBJECT_NAME).type
        if not pa.types.is_string(type) and not pa.types.is_large_string(type):
            raise CorruptFileError(f"object names must be strings, not {type}", path=file.path, column=OBJECT_NAME)
        return file.path, about, table, file.source.size


def _is_remote(part: Any) -> bool:
    return isinstance(part, Location) or (isinstance(part, str) and scheme_of(part) not in (None, "file"))


def key_retriever(keys: Mapping[str, bytes]) -> Callable[[bytes], bytes]:
    """Return a function that looks up keys by label. The function raises ``KeyError`` for an unknown label."""

    def key_of(label: bytes) -> bytes:
        return keys[label.decode("utf-8", "replace")]

    return key_of


def _select_columns(metadata: StoreMetadata, columns: Sequence[str] | ColumnChoice | None) -> list[str]:
    """Return the names of the columns to read from a part."""
    present = [*map(partition_column, metadata.partitions), *(column.name for column in metadata.indexes)]
    if not metadata.is_usable:
        return [OBJECT_NAME]
    if columns is not None:
        selected = set(columns(metadata) if callable(columns) else columns)
        present = [name for name in present if name in selected]
    return [OBJECT_NAME, *present]


def _concatenate(tables: Sequence[tuple[str | None, pa.Table]]) -> pa.Table:
    """Concatenate the tables of parts. A column that a part lacks is null in the rows of this part."""
    seen: dict[str, tuple[pa.DataType, str | None]] = {}
    for path, table in tables:
        for field in table.schema:
            type, first = seen.setdefault(field.name, (field.type, path))
            if type != field.type:
                message = (
                    f"the parts of the store contradict each other: type {type} in {first}, "
                    f"but {field.type} in this part"
                )
                raise CorruptFileError(message, path=path, column=field.name)
    bare = [table.replace_schema_metadata() for _, table in tables]
    return pa.concat_tables(bare, promote_options="default")


SPARK_VERSION = "3.5.0"
"""Spark version recorded in parts. Without a version, Spark rejects dates and timestamps before 1900."""

Keys = Mapping[str, bytes] | Callable[[StoreEncryption], FileEncryption]
"""Keys by their labels, or a function that creates a file's keys from labels, such as a KMS client."""


def write_part(
    dest: Any, table: pa.Table, metadata: StoreMetadata, encryption: Keys | None = None, *,
    compression: Literal["snappy", "zstd"] = "snappy", spark_compatible: bool = True,
) -> StoreMetadata:
    """Write one part of a store, and return its metadata. ``dest`` is a destination of :func:`pqext.write_table`.

    A missing local folder of ``dest`` is created. ``table`` has the columns that ``metadata`` describes, in any order.
    They are written in the order ``obj_name``, partition columns, indexes, and all of them are optional. If indexes
    have keys, ``encryption`` provides the keys for the labels, and the list of column keys is derived from the indexes.
    Entries of types that Spark lacks require ``spark_compatible=False``.

    Raises ``ValueError`` for a store of another version, columns that do not match the metadata, an object without a
    name, and labels without a key, and ``UnsupportedError`` for types that Spark does not have.
    """
    if metadata.version != LATEST:
        raise ValueError(f"parts must have version {LATEST}, not {metadata.version}")
    if metadata.table_identifier is None:
        raise ValueError("the metadata lacks the table_identifier")
    described = {column.name: f"the index {column.index} of {', '.join(column.columns)}" for column in metadata.indexes}
    if len(described) < len(metadata.indexes):
        names = [column.name for column in metadata.indexes]
        duplicate = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two indexes have the same store column {duplicate!r}: remove one of the indexes")
    check_names(metadata.partitions, described)
    order = [OBJECT_NAME, *map(partition_column, metadata.partitions), *described]
    if sorted(table.column_names) != sorted(order):
        raise ValueError(f"the table has the columns {table.column_names}, but the metadata describes {order}")
    if table.column(OBJECT_NAME).null_count:
        raise ValueError(f"{OBJECT_NAME!r} must not be null")
    table = _make_nullable(table.select(order))
    metadata = metadata.with_key_list(table.schema)
    if isinstance(dest, str | os.PathLike) and scheme_of(os.fsdecode(dest)) is None:
        os.makedirs(os.path.dirname(os.fsdecode(dest)) or ".", exist_ok=True)
    pairs = {
        spark_schema.VERSION_KEY: SPARK_VERSION,
        spark_schema.KEY: spark_schema.write(to_spark(metadata, table.schema, spark_compatible)),
    }
    write_table(
        table, dest, compression=compression, key_value_metadata=pairs, arrow_schema=False,
        encryption=_file_encryption(metadata.encryption, encryption),
    )  # fmt: skip
    return metadata


def _file_encryption(labels: StoreEncryption | None, keys: Keys | None) -> FileEncryption | None:
    if labels is None:
        return None
    if keys is None:
        raise ValueError("indexes have keys, but encryption= is missing: pass a mapping from labels to keys")
    if callable(keys):
        return keys(labels)
    listed = labels.labels()
    missing = sorted({labels.footer_key, *listed} - keys.keys())
    if missing:
        raise ValueError(f"encryption has no key for the labels {', '.join(missing)}")
    own = {
        path: None if label == labels.footer_key else ColumnKey(keys[label], label)
        for label, paths in listed.items()
        for path in paths
    }
    return FileEncryption(
        keys[labels.footer_key], labels.footer_key, own, "listed", plaintext_footer=labels.plaintext_footer
    )


def _make_nullable(table: pa.Table) -> pa.Table:
    """Return ``table`` with all fields nullable and without metadata."""
    fields = [pa.field(field.name, _nullable_type(field.type)) for field in table.schema]
    columns = [column.cast(field.type) for column, field in zip(table.columns, fields, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _nullable_type(type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type):
        members = [type.field(at) for at in range(type.num_fields)]
        return pa.struct([pa.field(member.name, _nullable_type(member.type)) for member in members])
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return pa.list_(pa.field("element", _nullable_type(type.value_type)))
    return type
