"""What a save may add to a folder or replace there, told before any of its tasks runs."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import ParquetError, SchemaMismatchError
from pqext.core.io.sources.store import Location
from pqext.core.read.reader import ParquetFile
from pqext.core.write.writer import ParquetWriter
from pqext.dataset.files import spark_metadata
from pqext.dataset.files.folders import files_below
from pqext.dataset.one_table.agreement import check_agreement
from pqext.dataset.one_table.partitions import partitions_of
from pqext.dataset.one_table.unified import Unifier
from pqext.dataset.one_table.widening import widened
from pqext.spark.columns.instants import read_schema, unify_schemas
from pqext.spark.reading.request import Query
from pqext.spark.writing import commit


def empty_file(schema: pa.Schema, options: Mapping[str, Any]) -> bytes:
    """A file without rows, which holds the schema."""
    sink = io.BytesIO()
    with ParquetWriter(sink, schema, **options):
        pass
    return sink.getvalue()


def without(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """``schema`` without the columns ``names``."""
    return pa.schema([field for field in schema if field.name not in names], schema.metadata)


def check_target(
    target: Path, overwrite: bool, empty: Callable[[], bytes], partition_by: tuple[str, ...] = (),
    merge_schema: bool = False,
) -> None:
    """Raise ``ValueError`` for a folder that files like ``empty`` cannot be saved to, before any task runs."""
    if target.is_file():
        raise ValueError(f"{target} is a file; a save writes a folder")
    if (target / spark_metadata.FOLDER).is_dir():
        raise ValueError(
            f"{target} belongs to a streaming sink of Spark, whose log in {spark_metadata.FOLDER} would hide "
            "the new files from all readers: save to another folder"
        )
    if target.is_dir():
        if overwrite:
            commit.replaceable(target)
        else:
            check_append(str(target), str(target), files_below(str(target)), empty(), partition_by, merge_schema)


def check_append(
    target: str, sources: Any, present: Mapping[str, Any], appended: bytes, partition_by: tuple[str, ...] = (),
    merge_schema: bool = False,
) -> None:
    """Raise ``SchemaMismatchError`` if a file like ``appended`` has another schema than ``target``.

    With ``merge_schema``, the file may have other columns and other types, if one schema holds all values of all files.
    ``sources`` is what a reader of it names, and ``present`` its files by their paths. A file that is there and cannot
    be read, such as an encrypted one, is compared with nothing.
    """
    if not present:
        return
    options, limits = Query(()).options, Query(()).limits
    partitions = partitions_of(sources, [*present.values()] if isinstance(sources, Location) else [*present])
    if partition_by and tuple(partitions.schema.names) != partition_by:
        there = ", ".join(partitions.schema.names)
        raise ValueError(
            f"{target} has {f'folders by {there}' if there else 'no folders of partitions'}, and partition_by names "
            f"{', '.join(partition_by)}; nothing was written: save to another folder or with mode(\"overwrite\")"
        )
    with ParquetFile(appended, options) as file:
        new = file.arrow_schema
    within = [name for name in partitions.schema.names if name in new.names]
    if within:
        raise ValueError(
            f"{target} has folders by {', '.join(partitions.schema.names)}, and files with {', '.join(within)} in them "
            "cannot be read beside those; nothing was written: name the columns of folders in partition_by, or save to "
            "another folder"
        )
    path, at = next(iter(present.items()))
    try:
        there = (
            unify_schemas([*present.values()], options, limits) if merge_schema
            else read_schema(at, options, limits)
        )  # fmt: skip
    except SchemaMismatchError:
        raise
    except ParquetError:
        return
    first, other = (_nullable(partitions.complete_schema(schema)) for schema in (there, new))
    advice = f'select and cast the columns that {target} has, or save to another folder or with mode("overwrite")'
    try:
        if merge_schema:
            widened(first, other, target, "the data frame")
        else:
            check_agreement(first, other, path, "the data frame")
    except SchemaMismatchError as error:
        if merge_schema:
            raise SchemaMismatchError(f"{error}; nothing was written: {advice}") from None
        readers = 'only readers with schema="union" could' if _are_unifiable(first, other) else "no reader could"
        raise SchemaMismatchError(
            f"{error}; {readers} read both, so nothing was written: merge_schema=True adds columns and widens types; "
            f"or {advice}"
        ) from None


def _are_unifiable(first: pa.Schema, other: pa.Schema) -> bool:
    unifier = Unifier()
    try:
        unifier.add(first, "")
        unifier.add(other, "")
    except SchemaMismatchError:
        return False
    return True


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema], schema.metadata)
