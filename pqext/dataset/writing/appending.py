"""Append files to a folder with the same partitions and schema."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import ParquetError, SchemaMismatchError
from pqext.core.io.sources.store import Location
from pqext.core.read.reader import ParquetFile
from pqext.core.write.writer import ParquetWriter
from pqext.dataset.files.sources import locate_sources
from pqext.dataset.table.agreement import check_agreement
from pqext.dataset.table.partitions import Partitions, partitions_of

_ADVICE = 'write to another folder or pass mode="overwrite"'


Compare = Callable[[str, Any, Mapping[str, Any]], None]
"""Called with a folder's path, its partition columns, and its files by path; raises ``ValueError`` if files cannot be
appended."""


def empty_file(schema: pa.Schema, options: Mapping[str, Any]) -> bytes:
    """Return the bytes of a file without rows, which stores only the schema."""
    sink = io.BytesIO()
    with ParquetWriter(sink, schema, **options):
        pass
    return sink.getvalue()


def drop_columns(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """Return ``schema`` without the columns ``names``."""
    return pa.schema([field for field in schema if field.name not in names], schema.metadata)


def make_nullable(schema: pa.Schema) -> pa.Schema:
    """Return ``schema`` with all columns nullable."""
    return pa.schema([field.with_nullable(True) for field in schema], schema.metadata)


def partitions_of_target(
    target: str, sources: Any, existing_files: Mapping[str, Any], partition_by: tuple[str, ...], names: Collection[str],
    advice: str,
) -> Partitions:
    """Return the partitions of a folder that contains ``existing_files``.

    Raises ``ValueError`` if files with columns ``names``, partitioned by ``partition_by``, cannot be appended.
    """
    partitions = partitions_of(
        locate_sources(sources), [*existing_files.values()] if isinstance(sources, Location) else [*existing_files]
    )
    if partition_by and tuple(partitions.schema.names) != partition_by:
        there = ", ".join(partitions.schema.names)
        raise ValueError(
            f"{target} has {f'folders by {there}' if there else 'no partition folders'}, but partition_by names "
            f"{', '.join(partition_by)}; nothing was written: {advice}"
        )
    within = [name for name in partitions.schema.names if name in names]
    if within:
        raise ValueError(
            f"{target} has folders by {', '.join(partitions.schema.names)}, and files with {', '.join(within)} in them "
            "cannot be read together; nothing was written: add the partition columns to partition_by, or "
            f"{advice}"
        )
    return partitions


def check_append(
    target: str, sources: Any, existing_files: Mapping[str, Any], appended_schema: bytes, partition_by: tuple[str, ...]
) -> None:
    """Raise ``SchemaMismatchError`` if the schema in ``appended_schema`` differs from that of a folder's files.

    Files that cannot be read, such as encrypted files, are not compared.
    """
    with ParquetFile(appended_schema) as file:
        new = file.arrow_schema
    partitions = partitions_of_target(target, sources, existing_files, partition_by, new.names, _ADVICE)
    path, place = next(iter(existing_files.items()))
    try:
        with ParquetFile(place) as file:
            schema = file.arrow_schema
    except ParquetError:
        return
    first, other = (make_nullable(partitions.complete_schema(item)) for item in (schema, new))
    try:
        check_agreement(first, other, path, "the data")
    except SchemaMismatchError as error:
        raise SchemaMismatchError(f"{error}; nothing was written: cast the columns, {_ADVICE}") from None
