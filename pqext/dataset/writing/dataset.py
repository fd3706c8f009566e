"""Write a table or a stream of batches into a folder of Parquet files."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Unpack, get_args

import pyarrow as pa

from pqext.core.base.local_paths import check_target, scheme_of
from pqext.core.base.progress import Progress, Steps
from pqext.core.base.suggestions import did_you_mean
from pqext.core.base.text import escape_text, shorten, with_noun
from pqext.core.io.sources.locations import locate
from pqext.core.options.keywords import WriteKeywords
from pqext.core.options.read_write import WriteOptions, from_keywords
from pqext.core.schema.arrow_check import check_table
from pqext.core.schema.types.arrow_compute import decode_dictionary
from pqext.core.write.table_inputs import as_table
from pqext.dataset.writing.appending import (
    check_append,
    drop_columns,
    empty_file,
    inherit_geometry,
    inherit_shredding,
    newest_file,
    unshredded_variants,
)
from pqext.dataset.writing.part_files import Division, PartFiles, WrittenFile, check_division
from pqext.dataset.writing.targets import check_empty, open_target, put_empty
from pqext.variant.shredding.choice import format_residual, residual_shares, warn_about_residual

WriteMode = Literal["error", "ignore", "append", "overwrite"]
PartitionOverwrite = Literal["static", "dynamic"]
_BATCH_ROWS = 1 << 16
_MAX_SCHEMA = 300
"""Maximum number of characters of a shredding schema in the text of a result."""
_ARGUMENTS = (
    "partition_by", "mode", "partition_overwrite", "max_records_per_file", "target_file_bytes", "storage_options",
    "progress", "options",
)  # fmt: skip


def write_dataset(
    data: Any,
    folder: str | os.PathLike[str],
    partition_by: str | Sequence[str] = (),
    *,
    mode: WriteMode = "error",
    partition_overwrite: PartitionOverwrite = "static",
    max_records_per_file: int | None = None,
    target_file_bytes: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    options: WriteOptions | None = None,
    **keywords: Unpack[WriteKeywords],
) -> SaveResult:
    """Write a table into a folder of Parquet files, one or more for each partition.

    All files become visible together when they are complete, as with :func:`pqext.spark.write`. If anything fails, the
    folder is unchanged. Memory use is bounded by the row groups of the open files. If there are no rows and the folder
    has no files, a file without rows stores the schema, in the partition of nulls.

    Args:
        data: Anything that :func:`pqext.write_table` accepts: a table, a stream of batches, a data frame, a
            :class:`pqext.Scan`.
        folder: A local folder, which is created if needed, or a URL of ``s3://`` (which needs boto3), ``gs://`` or
            ``abfss://`` (obstore).
        partition_by: Columns whose values name folders, ``year=2026/kind=click``: text, integers, booleans and
            dates. The files do not contain these columns; :func:`pqext.scan` reads them from folder names, and empty
            text as null.
        mode: ``"error"`` raises ``FileExistsError`` if the folder has files, ``"ignore"`` does nothing in this case,
            ``"append"`` adds files, and ``"overwrite"`` replaces all visible Parquet files. If existing files
            remain, VARIANT columns are shredded like the columns of the newest file unless ``shredding`` is passed
            (``shredding={}`` writes them unshredded), WKB without a type has its geometry type and CRS, and geometries
            have its covering column.
        partition_overwrite: Partitions that ``mode="overwrite"`` replaces: ``"static"`` replaces all, ``"dynamic"``
            only partitions with rows in ``data``.
        max_records_per_file: Number of rows after which another file is started.
        target_file_bytes: Approximate size in bytes after which another file is started.
        storage_options: Credentials and other settings of the store in a URL.
        progress: Called with the number of rows written and the total number, which is None for a stream.
        options: Writer options (:class:`pqext.WriteOptions`); ``keywords`` take precedence.
        **keywords: The fields of :class:`pqext.WriteOptions`, such as ``shredding=`` and ``geometry=``.

    Returns:
        The folder and its new files, with rows, bytes and the shredding of VARIANT columns.

    Raises:
        FileExistsError: If ``mode="error"`` and the folder has files.
        SchemaMismatchError: If files are appended to files with other columns or types.
        UnsupportedError: If the path is a file, the folder belongs to a Delta, Iceberg or Hudi table, the store cannot
            publish files together, or a value cannot name a folder: text that is too long for the file system, and
            ``__HIVE_DEFAULT_PARTITION__``, which represents null.
        ValueError: If columns or options do not match the data.

    Example:
        >>> import pqext, pyarrow
        >>> table = pyarrow.table({"year": [2025, 2026, 2026], "id": [1, 2, 3]})
        >>> saved = pqext.write_dataset(table, "events", partition_by="year")
        >>> saved.rows, sorted(file.name.partition("/")[0] for file in saved.files)
        (3, ['year=2025', 'year=2026'])
        >>> pqext.read_table("events", filter="year = 2026").to_pydict()
        {'id': [2, 3], 'year': [2026, 2026]}
    """
    check_choice("mode", mode, get_args(WriteMode))
    check_choice("partition_overwrite", partition_overwrite, get_args(PartitionOverwrite))
    chosen = from_keywords(WriteOptions, keywords, *_ARGUMENTS, base=options)
    by = (partition_by,) if isinstance(partition_by, str) else partition_by
    if not isinstance(by, Sequence) or not all(isinstance(name, str) for name in by):
        raise TypeError(f"partition_by must be a column name or a list of column names, not {partition_by!r}")
    by = tuple(by)
    division = Division(by, max_records_per_file, target_file_bytes)
    is_dynamic = mode == "overwrite" and partition_overwrite == "dynamic"
    if is_dynamic and not by:
        raise ValueError('partition_overwrite="dynamic" requires partition columns; pass partition_by')
    target = open_target(_resolve_folder(folder, storage_options), storage_options)
    if mode in ("error", "ignore") and target.has_files:
        if mode == "ignore":
            return SaveResult(target.path, ())
        check_empty(target)
    table = as_table(data)
    schema = _plain_partitions(table.schema, by)
    if not schema.names:
        raise ValueError("data without columns cannot be saved, because a file would lose the row count; add a column")
    check_division(division, schema)
    writer = {field.name: getattr(chosen, field.name) for field in fields(WriteOptions)}
    stored = drop_columns(schema, by)
    empty = empty_file(stored, writer)

    def check_existing(path: str, sources: Any, existing_files: Mapping[str, Any]) -> None:
        newest = newest_file(sources, existing_files)
        writer["geometry"] = inherit_geometry(newest, stored, chosen.geometry)
        appended = empty_file(stored, writer)
        check_append(path, sources, existing_files, appended, by)
        if not chosen.shredding and "shredding" not in keywords:
            writer["shredding"] = inherit_shredding(newest, unshredded_variants(appended))

    target.check(mode == "overwrite" and not is_dynamic, check_existing)
    job = uuid.uuid4().hex
    steps = Steps(progress, table.num_rows if isinstance(table, pa.Table) else None)
    staged = target.begin(job, os.getpid())
    try:
        with PartFiles(staged, f"part-00000-{job}-0", schema, writer, division) as parts:
            for batch in _batches(table, schema):
                if batch.num_rows:
                    parts.write(batch)
                    steps.advance(batch.num_rows)
            files = parts.close()
        replaces_all = mode == "overwrite" and not is_dynamic
        if not files and (replaces_all or not target.has_files):
            put_empty(target, job, by, empty)
        folders = {item.file.name.rpartition("/")[0] for item in files} if is_dynamic else None
        check = (lambda: check_empty(target)) if mode == "error" else None  # another save may have been faster
        result = SaveResult(target.path, tuple(file.file for file in files))
        warn_about_residual(result.residual)  # before the commit, because filters can turn the warning into an error
        target.commit(files, mode == "overwrite", folders, check=check)
    except BaseException:
        target.abort()
        raise
    return result


def check_choice(name: str, choice: str, choices: Sequence[str]) -> None:
    """Raise ``ValueError`` unless ``choice`` is one of ``choices``. The message names the option ``name``."""
    if choice not in choices:
        meant = did_you_mean(str(choice), choices)
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {choice!r}{meant}")


def _resolve_folder(folder: str | os.PathLike[str], storage_options: Mapping[str, Any] | None) -> str:
    """Return the absolute local path of a folder, or the URL of a store."""
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"folder must be a path or a URL, not {type(folder).__name__}")
    check_target(folder, "folder")
    path = os.fsdecode(folder)
    if scheme_of(path) not in (None, "file", "local"):
        return path
    if storage_options:
        raise ValueError("storage_options are for URLs, such as s3://bucket/folder; omit them for local paths")
    return os.path.abspath(os.fsdecode(locate(path)))


def _plain_partitions(schema: pa.Schema, partition_by: Sequence[str]) -> pa.Schema:
    """Replace dictionary and view types of partition columns with plain types, which folder names can represent."""
    for name in partition_by:
        index = schema.get_field_index(name)
        if index >= 0:
            schema = schema.set(index, schema.field(index).with_type(_plain_type(schema.field(index).type)))
    return schema


def _plain_type(type: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type):
        return _plain_type(type.value_type)
    return pa.string() if pa.types.is_string_view(type) else type


def _batches(table: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``table`` in batches, cast to ``schema``. Raises an error for invalid Arrow data."""
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS) if isinstance(table, pa.Table) else table:
        check_table(pa.Table.from_batches([batch]))
        columns = [_cast(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, type: pa.DataType) -> pa.Array:
    while pa.types.is_dictionary(column.type) and column.type != type:  # Arrow cannot cast dictionaries of views
        column = decode_dictionary(column)
    return column if column.type == type else column.cast(type)


@dataclass(frozen=True)
class SaveResult:
    """Result of a save: its folder and its new files."""

    path: str
    files: tuple[WrittenFile, ...]

    @property
    def rows(self) -> int:
        """Number of rows written."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Total size of all files in bytes."""
        return sum(file.bytes for file in self.files)

    @property
    def shredded(self) -> dict[str, tuple[str, ...]]:
        """The shredding schemas of each VARIANT, as DDL. There are several if schemas differ between files."""
        return collect_shredding(self.files)

    @property
    def residual(self) -> dict[str, float]:
        """The fraction of residual values by path (``event: $.user.id``), without paths whose fraction is zero."""
        return residual_shares(file.residual for file in self.files)

    def __str__(self) -> str:
        written = f"{with_noun(self.rows, 'row')}, {with_noun(self.bytes, 'byte')}"
        lines = [f"{written} in {with_noun(len(self.files), 'file')} in {escape_text(self.path)}"]
        for path, result in self.shredded.items():
            more = f", and {with_noun(len(result) - 1, 'other schema')}" if len(result) > 1 else ""
            lines.append(f"  {escape_text(path)}: {shorten(escape_text(result[0]), _MAX_SCHEMA)}{more}")
        if self.residual:
            lines.append(f"  in the residual: {format_residual(self.residual)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<pqext.SaveResult: {self}>"


def collect_shredding(files: Iterable[WrittenFile]) -> dict[str, tuple[str, ...]]:
    """Return the distinct shredding schemas of each VARIANT in ``files``."""
    result: dict[str, dict[str, None]] = {}
    for file in files:
        for path, schema in file.shredded.items():
            result.setdefault(path, {})[schema] = None
    return {path: tuple(schemas) for path, schemas in result.items()}
