"""Saving a data frame in every mode, with a summary of what was written."""

from __future__ import annotations

import errno
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pqext.dataset.writing.dataset import WriteMode, check_choice
from pqext.dataset.writing.saved import Saved
from pqext.spark.base.files import is_remote, target_of
from pqext.spark.base.hadoop import from_hadoop
from pqext.spark.base.settings import save_settings, session_setting
from pqext.spark.columns.months import cast_to_months
from pqext.spark.options.save import PartitionOverwrite, as_text
from pqext.spark.sources.registration import ensure_registered
from pqext.spark.writing import summary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame



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
) -> Saved:
    """Save a data frame into folder ``path`` by data source ``pqext``, and say what was written.

    ``path`` is a folder of a file system that driver and executors share, or a URL of ``s3://``, ``s3a://`` (which need
    boto3), ``gs://`` or ``abfss://`` (obstore). ``storage_options`` are credentials and the like, as :func:`pqext.scan`
    takes them; without them, Spark's Hadoop settings for the store count, else the environment.

    ``mode`` is one of Spark's: ``"error"`` raises ``FileExistsError`` where the folder shows files, ``"ignore"`` does
    nothing there, ``"append"`` adds files, and ``"overwrite"`` replaces those that readers see.

    ``partition_by`` names columns whose values name folders, as Spark does: text, whole numbers, booleans and dates.
    With ``partition_overwrite="dynamic"``, ``mode="overwrite"`` replaces only the partitions that ``df`` has rows of;
    with ``"static"`` it replaces all. ``max_records_per_file`` and ``target_file_bytes`` begin another file where one
    would become larger; the latter is met to within some tens of percent. ``options`` are those of
    :class:`pqext.WriteOptions`. The settings of the session count for what is not given, as in Spark:
    ``spark.sql.sources.partitionOverwriteMode``, ``spark.sql.files.maxRecordsPerFile`` and
    ``spark.sql.parquet.compression.codec``.

    An append of other columns or types is a ``SchemaMismatchError`` that names the difference. With
    ``merge_schema=True`` (option ``mergeSchema``) it may add columns and struct fields, lack some, and have other types
    if a wider type holds all values of both. ``read(..., schema="union")`` then reads the folder, with nulls for
    columns that a file lacks.

    The save happens whole or not at all. The process that calls this reaches the file system or the store of ``path``
    as the driver does. Raises ``ValueError`` or ``TypeError`` for wrong arguments, and Spark's own errors, with pqext's
    in them, for what the driver or a task finds.

    >>> print(write(events, "events", "overwrite", partition_by="kind", compression="zstd"))  # doctest: +SKIP
    1,000 rows, 23,018 bytes in 2 files in /data/events
      event: STRUCT<mag: DOUBLE>
    """
    check_choice("mode", mode, get_args(WriteMode))
    if storage_options is None and is_remote(path):
        storage_options = from_hadoop(df.sparkSession, path)
    target = target_of(path, storage_options)
    target.check_no_table()
    if mode in ("error", "ignore") and target.has_files:
        if mode == "ignore":
            return Saved(target.path, ())
        raise FileExistsError(
            errno.EEXIST, 'the folder holds files: use mode="append", "overwrite" or "ignore"', target.path
        )
    ensure_registered(df.sparkSession)
    given = {name: as_text(value) for name, value in options.items()}
    by = [partition_by] if isinstance(partition_by, str) else [*partition_by]
    given |= {"partition_by": json.dumps(by)} if by else {}
    given |= {"merge_schema": "true"} if merge_schema else {}
    named = {
        "partition_overwrite": partition_overwrite, "max_records_per_file": max_records_per_file,
        "target_file_bytes": target_file_bytes,
    }
    given |= {name: str(value) for name, value in named.items() if value is not None}
    # The tasks would apply these as well, but what does not suit is refused before any of them runs.
    settings = {"partition_overwrite": "static"} | save_settings(session_setting(df.sparkSession))
    for name in ("partition_overwrite", "case_sensitive") if by else ("case_sensitive",):
        given.setdefault(name, settings[name])
    if storage_options:
        given["storage_options"] = json.dumps(dict(storage_options))
    told = Path(tempfile.mkdtemp(prefix="pqext-save-"))
    try:
        given["summary_path"] = str(told / "summary.json")
        writer = cast_to_months(df).write.format("pqext").options(**given)
        writer = writer.mode("overwrite" if mode == "overwrite" else "append")
        writer.save(path if is_remote(path) else target.path)
        return summary.take(told / "summary.json")
    finally:
        shutil.rmtree(told, ignore_errors=True)
