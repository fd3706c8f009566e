"""Save data frames in every mode with a summary of the written files, and remove the files of killed saves."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pqext.core.io.sources.store_errors import redact_uri
from pqext.dataset.table_snapshot import is_table
from pqext.dataset.writing import commit
from pqext.dataset.writing.appending import inherit_shredding, newest_file
from pqext.dataset.writing.commit import ABANDONED_AFTER, CleanupResult
from pqext.dataset.writing.dataset import SaveResult, WriteMode, check_choice
from pqext.dataset.writing.targets import Target, check_empty
from pqext.spark.base.errors import explain_user_types
from pqext.spark.base.files import absolute_paths, is_remote, resolve_target
from pqext.spark.base.hadoop import read_hadoop_options, storage_options_text
from pqext.spark.base.settings import save_settings, session_setting
from pqext.spark.columns.months import cast_to_months
from pqext.spark.columns.shredding_choice import column_choices, variant_paths
from pqext.spark.options.save import PartitionOverwrite, encode_option
from pqext.spark.sources.data_sources import ensure_registered
from pqext.spark.writing.sink import read_summary, report_residual
from pqext.tables.writing import open_writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType



def write(
    df: DataFrame,
    path: str,
    mode: WriteMode = "error",
    *,
    partition_by: str | Sequence[str] = (),
    partition_overwrite: PartitionOverwrite | None = None,
    merge_schema: bool = False,
    max_records_per_file: int | None = None,
    target_file_bytes: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> SaveResult:
    """Save a data frame into a folder or table with data source ``pqext``, atomically, and summarize the written files.

    The calling process needs access to the file system or object store of ``path``, like the driver. As in Spark, the
    settings ``spark.sql.sources.partitionOverwriteMode``, ``spark.sql.files.maxRecordsPerFile`` and
    ``spark.sql.parquet.compression.codec`` are the defaults of the corresponding arguments.

    Args:
        df: The data frame.
        path: A folder on a file system that driver and executors share, or a URL of ``s3://``, ``s3a://`` (which need
            boto3), ``gs://`` or ``abfss://`` (obstore); or a table, ``"delta:PATH_OR_URL"`` or
            ``"iceberg:CATALOG.NAMESPACE.TABLE"``, as in :func:`pqext.tables.append`.
        mode: If the folder contains files, ``"error"`` raises ``FileExistsError``, ``"ignore"`` does nothing,
            ``"append"`` adds files, and ``"overwrite"`` replaces all visible files. An append shreds VARIANT
            columns without :func:`shred_variant` like the newest file, unless option ``shredding`` is passed
            (``shredding={}`` writes them unshredded). ``df.write`` does not. A table is not empty if it exists.
        partition_by: Columns of strings, integers, booleans or dates whose values name folders, as in Spark.
        partition_overwrite: With ``"dynamic"``, ``mode="overwrite"`` replaces only the partitions that ``df`` has rows
            for; with ``"static"`` it replaces all. A table has its own partition columns, without ``partition_by``.
        merge_schema: Whether an append may add columns and struct fields, omit some, and change types if a wider type
            represents all values (option ``mergeSchema``). Read the folder with ``read(..., schema="union")``, which
            returns nulls for columns that a file does not have.
        max_records_per_file: Maximum number of rows in a file.
        target_file_bytes: Approximate size of a file, within some tens of percent.
        storage_options: Credentials and other options of the store, as in :func:`pqext.scan`. By default, Spark's
            Hadoop settings for the store, or otherwise the environment.
        options: Options of :class:`pqext.WriteOptions`; and ``allow_undeclared_shredding`` for tables.

    Returns:
        A summary of the written files. With a driver on another machine, which cannot report them, the summary lists no
        files and a warning is emitted.

    Raises:
        ValueError: If an argument is invalid.
        TypeError: If an argument has the wrong type.
        UnsupportedError: If a user-defined type of a column cannot be imported.
        FileExistsError: If ``mode`` is ``"error"`` and the folder contains files, or the table exists.
        Exception: Spark's error with the message of pqext if the driver or a task fails, such as a
            ``SchemaMismatchError`` if appended columns or types differ.

    Example:
        >>> print(write(events, "events", "overwrite", partition_by="kind", compression="zstd"))  # doctest: +SKIP
        1,000 rows, 23,018 bytes in 2 files in /data/events
          event: STRUCT<mag: DECIMAL(9,2)>
    """
    check_choice("mode", mode, get_args(WriteMode))
    if storage_options is None and is_remote(path):
        storage_options = read_hadoop_options(df.sparkSession, path)
    storage_text = storage_options_text(storage_options or {})
    target: Target | None = None
    if is_table(path):
        saved_path = str(absolute_paths(path))
        has_files = mode in ("error", "ignore") and open_writer(saved_path, storage_options).version is not None
    else:
        target = resolve_target(path, storage_options)
        target.check_no_table()
        saved_path = path if is_remote(path) else target.path
        has_files = mode in ("error", "ignore") and target.has_files
    name = saved_path if target is None else target.path
    if mode == "ignore" and has_files:
        return SaveResult(name, ())
    if has_files and target is not None:
        check_empty(target)
    elif has_files:
        raise FileExistsError(f'{redact_uri(name)} exists; pass mode="append" or mode="overwrite"')
    ensure_registered(df.sparkSession)
    with explain_user_types(df):
        exchanged = cast_to_months(df)
    if mode == "append" and "shredding" not in options and target is not None:
        options["shredding"] = _inherit_shredding(target, df.schema)
    encoded = {option: encode_option(value) for option, value in options.items()}
    by = [partition_by] if isinstance(partition_by, str) else [*partition_by]
    encoded |= {"partition_by": json.dumps(by)} if by else {}
    encoded |= {"merge_schema": "true"} if merge_schema else {}
    encoded |= {"requires_empty": "true"} if mode == "error" else {}
    arguments = {
        "partition_overwrite": partition_overwrite, "max_records_per_file": max_records_per_file,
        "target_file_bytes": target_file_bytes,
    }
    encoded |= {option: str(value) for option, value in arguments.items() if value is not None}
    # Tasks apply the settings as well; here they are checked before any task runs.
    settings = {"partition_overwrite": "static"} | save_settings(session_setting(df.sparkSession))
    for option in ("case_sensitive", "datetime_rebase_mode", *(["partition_overwrite"] if by else [])):
        if option in settings:
            encoded.setdefault(option, settings[option])
    if storage_options:
        encoded["storage_options"] = storage_text
    scratch = Path(tempfile.mkdtemp(prefix="pqext-save-"))
    try:
        encoded["summary_path"] = str(scratch / "summary.json")
        writer = exchanged.write.format("pqext").options(**encoded)
        writer = writer.mode("overwrite" if mode == "overwrite" else "append")
        writer.save(saved_path)
        result = read_summary(scratch / "summary.json", name)
        report_residual(result.files)
        return result
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _inherit_shredding(target: Target, schema: StructType) -> dict[str, str]:
    """Return the shredding in the newest file of ``target``, for VARIANT columns of ``schema`` without a choice."""
    chosen = column_choices(schema)
    paths = [path for path in variant_paths(schema) if path not in chosen]
    inherited: dict[str, str] = {}

    def inherit(path: str, sources: Any, existing_files: Mapping[str, Any]) -> None:
        inherited.update(inherit_shredding(newest_file(sources, existing_files), paths))

    if paths:
        target.check(False, inherit)
    return inherited


def clean(
    path: str | os.PathLike[str],
    *,
    older_than: timedelta = ABANDONED_AFTER,
    storage_options: Mapping[str, Any] | None = None,
) -> CleanupResult:
    """Complete saves that were interrupted after their commit, and remove the staged files of abandoned saves.

    The staged files of an uncommitted save are removed if its driver ran on this machine and no longer runs, or if they
    have not changed for ``older_than``. Every save also completes the committed saves of its target.

    Args:
        path: A folder, or a URL of ``s3://``, ``gs://`` or ``abfss://``, where only ``older_than`` applies.
        older_than: Age at which staged files are removed.
        storage_options: Credentials and other options of the store. The Hadoop settings of the active session by
            default.

    Returns:
        The completed and removed saves.

    Raises:
        FileNotFoundError: If the folder does not exist.
        CorruptFileError: If the journal of a save is malformed.

    Example:
        >>> clean("events", older_than=timedelta(days=1))  # doctest: +SKIP
    """
    name = os.fspath(path)
    if is_remote(name):
        return resolve_target(name, storage_options or _session_storage_options(name)).clean(older_than)
    return commit.clean(name, older_than=older_than)


def _session_storage_options(path: str) -> dict[str, Any] | None:
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    return None if spark is None else read_hadoop_options(spark, path)
