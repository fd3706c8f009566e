"""Read JSON lines into a VARIANT column of a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pqext.spark.base.files import absolute_paths
from pqext.spark.base.hadoop import read_hadoop_options, storage_options_text
from pqext.spark.sources.data_sources import FORMAT, ensure_registered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_json(
    spark: SparkSession,
    path: str | Sequence[str],
    column: str = "value",
    on_error: Literal["raise", "null"] = "raise",
    error_column: str | None = None,
    partition_bytes: int | None = None,
    duplicate_keys: Literal["error", "first", "last"] = "error",
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Read JSON lines into a data frame with one VARIANT column named ``column``.

    Each line is a row; empty lines are skipped.

    ``path`` is a file, a folder, a pattern, a URL (``s3://``, ``s3a://``, ``gs://``, ``abfss://``, ``https://``, ...)
    or a list of these. Local files must be on a file system that driver and executors share. ``storage_options`` are
    credentials and other settings for URLs, as for :func:`pqext.scan`; by default Spark's Hadoop settings for the store
    apply, otherwise the environment. One task decompresses each file whose name ends in ``.gz``, ``.bz2``, ``.zst``,
    ``.lz4``, ``.br`` or ``.xz``. ``partition_bytes`` is the maximum number of bytes of text that a task reads.

    A line that is not JSON (in UTF-8) fails the job with an error that states file, line and reason. With
    ``on_error="null"``, it becomes a null row. ``error_column`` is the name of a STRING column for file, line and
    reason, which is null in other rows: with the name ``_error``, ``df.where("_error IS NOT NULL").count()`` counts the
    lines that are not JSON. A line ``null`` is JSON, and becomes a variant null, not a null row.

    Example:
        >>> read_json(spark, "events/*.json.gz", "event", on_error="null", error_column="_error")  # doctest: +SKIP
    """
    options = {"column": column, "on_error": on_error, "duplicate_keys": duplicate_keys}
    if error_column is not None:
        options["error_column"] = error_column
    if partition_bytes is not None:
        options["partition_bytes"] = str(partition_bytes)
    paths = absolute_paths(path)
    storage = storage_options or read_hadoop_options(spark, paths)
    if storage:
        options["storage_options"] = storage_options_text(storage)
    ensure_registered(spark)
    return spark.read.format(FORMAT).options(**options).load(paths)
