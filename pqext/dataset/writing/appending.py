"""Append files to a folder with the same partitions and schema."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import ParquetError, SchemaMismatchError
from pqext.core.io.sources.store import Location
from pqext.core.read.reader import ParquetFile
from pqext.core.write.writer import ParquetWriter
from pqext.dataset.files.sources import locate_sources
from pqext.dataset.table.agreement import check_agreement
from pqext.dataset.table.partitions import Partitions, partitions_of
from pqext.geo.geoarrow import encoding_of
from pqext.geo.geoparquet import covering_field
from pqext.geo.types import type_of
from pqext.geo.wkb import holds_bytes
from pqext.variant.shredding.choice import schemas_of_file
from pqext.variant.shredding.schema import Untyped

_ADVICE = 'write to another folder or pass mode="overwrite"'


Compare = Callable[[str, Any, Mapping[str, Any]], None]
"""Called with a folder's path, its partition columns, and its files by path; raises ``ValueError`` if files cannot be
appended."""


def empty_file(schema: pa.Schema, options: Mapping[str, Any]) -> bytes:
    """Return the bytes of a file that contains only the schema, without rows."""
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
            f"{', '.join(partition_by)}; nothing was written; {advice}"
        )
    within = [name for name in partitions.schema.names if name in names]
    if within:
        raise ValueError(
            f"{target} is partitioned by {', '.join(partitions.schema.names)}, so its files must not contain "
            f"{', '.join(within)}; nothing was written; add the partition columns to partition_by, or "
            f"{advice}"
        )
    return partitions


def check_append(
    target: str, sources: Any, existing_files: Mapping[str, Any], appended_schema: bytes, partition_by: tuple[str, ...]
) -> None:
    """Raise ``SchemaMismatchError`` if the schema of new files differs from the schema of a folder's files.

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
        raise SchemaMismatchError(f"{error}; nothing was written; cast the columns, {_ADVICE}") from None


def newest_file(sources: Any, existing_files: Mapping[str, Any]) -> Any:
    """Return the path or location of the most recently modified file of the folder ``sources``."""
    if isinstance(sources, Location):
        listed = {file.key: file.listed.modified_ms or 0 for file in sources.files() if file.listed is not None}
        return max(existing_files.values(), key=lambda location: listed.get(location.key, 0))

    def modification_time(path: str) -> int:
        with suppress(OSError):  # a file that another job has replaced
            return os.stat(path).st_mtime_ns
        return 0

    return max(existing_files.values(), key=modification_time)


def unshredded_variants(appended_schema: bytes) -> list[str]:
    """Return the dotted paths of the VARIANT columns of a file that are not shredded."""
    with ParquetFile(appended_schema) as file:
        return [path for path, schema in schemas_of_file(file).items() if isinstance(schema, Untyped)]


def inherit_shredding(location: Any, paths: Collection[str]) -> dict[str, str]:
    """Return the shredding schema, as DDL, of each column in ``paths`` that an existing file shreds.

    The result is empty if the file cannot be read, for example because it is encrypted.
    """
    try:
        with ParquetFile(location) as file:
            schemas = schemas_of_file(file)
    except ParquetError:
        return {}
    return {path: str(schema) for path, schema in schemas.items() if path in paths and not isinstance(schema, Untyped)}


def inherit_geometry(location: Any, schema: pa.Schema, options: Mapping[str, Any]) -> dict[str, Any]:
    """Add the settings of the geometry columns in an existing file to the writer's option ``geometry``.

    Columns of plain WKB have the type and the CRS of the file's column, and geometries the covering column if the file
    has one. ``options`` take precedence. They are returned unchanged if the file cannot be read.
    """
    result = {**options}
    try:
        with ParquetFile(location) as file:
            existing = file.arrow_schema
    except ParquetError:
        return result
    for field in schema:
        index = existing.get_field_index(field.name)
        type = type_of(existing.field(index)) if index >= 0 else None
        is_plain = encoding_of(field) is None
        if type is None or (is_plain and not holds_bytes(field.type)):
            continue
        inherited: dict[str, Any] = {"crs": type.crs, "edges": type.edges} if is_plain else {}
        covering = covering_field(existing, field.name)
        if covering is not None and covering.name not in schema.names:
            inherited["covering"] = {"name": covering.name, "type": str(covering.type[0].type)}
        choice = options.get(field.name, {})
        is_mapping = isinstance(choice, Mapping) and "type" not in choice  # otherwise a CRS
        if inherited:
            result[field.name] = {**inherited, **(choice if is_mapping else {"crs": choice})}
    return result
