"""A part of a store, written as version 4: Spark's schema in the footer, optional columns, keys by their labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal

import pyarrow as pa

from pqext.core.base.local_paths import scheme_of
from pqext.core.options.encryption import ColumnKey, FileEncryption
from pqext.core.write.writer import write_table
from pqext.skipping.format import spark_schema
from pqext.skipping.format.metadata import StoreEncryption, StoreMetadata, to_spark
from pqext.skipping.format.names import LATEST, OBJECT_NAME, check_names, partition_column

SPARK_VERSION = "3.5.0"
"""Whose calendar dates and timestamps follow: without a version, Spark refuses those before 1900."""

Keys = Mapping[str, bytes] | Callable[[StoreEncryption], FileEncryption]
"""Keys by their labels, or a function that makes a file's keys from labels, by a KMS for example."""


def write_part(
    dest: Any, table: pa.Table, metadata: StoreMetadata, encryption: Keys | None = None, *,
    compression: Literal["snappy", "zstd"] = "snappy", for_spark: bool = True,
) -> StoreMetadata:
    """Write one part of a store to ``dest``, which is as for :func:`pqext.write_table`; what is in its footer.

    A local folder that ``dest`` lies in is made where it is missing.
    ``table`` has the columns that ``metadata`` describes, in any order; they are written as ``obj_name``, partition
    columns, indexes, all of them optional. Where indexes have keys, ``encryption`` gives the keys that the labels stand
    for, and the list of column keys is made anew. Cells of types that Spark lacks
    take a part that is not ``for_spark``.

    Raises ``ValueError`` for a store of another version, columns that do not agree with the metadata, an object without
    a name, and labels without a key, and ``UnsupportedError`` for types that Spark does not have.
    """
    if metadata.version != LATEST:
        raise ValueError(f"parts are written as version {LATEST}, not {metadata.version}")
    if metadata.table_identifier is None:
        raise ValueError("the store has no table_identifier, which says what it is of")
    described = {one.name: f"the index {one.index} of {', '.join(one.columns)}" for one in metadata.indexes}
    if len(described) < len(metadata.indexes):
        raise ValueError("two indexes of the store have the same column")
    check_names(metadata.partitions, described)
    order = [OBJECT_NAME, *map(partition_column, metadata.partitions), *described]
    if sorted(table.column_names) != sorted(order):
        raise ValueError(f"the table has the columns {table.column_names}, and the metadata describes {order}")
    if table.column(OBJECT_NAME).null_count:
        raise ValueError(f"{OBJECT_NAME!r} is null in a row: each object has a name")
    table = _optional(table.select(order))
    metadata = metadata.with_key_list(table.schema)
    if isinstance(dest, str | os.PathLike) and scheme_of(os.fsdecode(dest)) is None:
        os.makedirs(os.path.dirname(os.fsdecode(dest)) or ".", exist_ok=True)
    pairs = {
        spark_schema.VERSION_KEY: SPARK_VERSION,
        spark_schema.KEY: spark_schema.write(to_spark(metadata, table.schema, for_spark)),
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
        raise ValueError("indexes have keys, but encryption= gives none: pass a mapping from labels to keys")
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


def _optional(table: pa.Table) -> pa.Table:
    """``table`` without metadata of fields, all of which may be null."""
    fields = [pa.field(one.name, _nullable(one.type)) for one in table.schema]
    return pa.Table.from_arrays([column.cast(one.type) for column, one in zip(table.columns, fields, strict=True)],
                                schema=pa.schema(fields))  # fmt: skip


def _nullable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        members = [kind.field(at) for at in range(kind.num_fields)]
        return pa.struct([pa.field(one.name, _nullable(one.type)) for one in members])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _nullable(kind.value_type)))
    return kind
