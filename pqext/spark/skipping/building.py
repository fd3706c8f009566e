"""Data-skipping stores built and refreshed by Spark's tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.base.progress import Progress
from pqext.core.io.sources.locations import locate
from pqext.dataset.files.sources import source_name
from pqext.skipping.format.names import path_of
from pqext.skipping.indexes.index import Index
from pqext.skipping.maintenance.construction import Indexing, Summary, as_stored, create_store, refresh_store
from pqext.skipping.maintenance.object_cells import Indexer
from pqext.skipping.store.keys import StoreKeys
from pqext.skipping.store.store import Store
from pqext.skipping.store.table import Table
from pqext.spark.base.files import is_remote, local_path
from pqext.spark.skipping.foreign import READ_AS, ByFrames, Files, type_at
from pqext.spark.skipping.tasks import InTasks, paths_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARQUET = "parquet"


def build_skipping(
    spark: SparkSession,
    path: str | Sequence[str],
    indexes: Sequence[Index],
    store: str,
    *,
    format: str = PARQUET,
    schema: Any = None,
    options: Mapping[str, Any] | None = None,
    data: bool = True,
    overwrite: bool = False,
    encryption: StoreKeys | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Index the objects of a table in Spark's tasks, and write what is found as a data-skipping store.

    A task takes a share of the objects and writes its own parts of the store, so that neither the driver nor a task
    holds more than some thousand rows of it. Parquet files are indexed by pqext, from their footers where these prove
    what an index keeps. Files of other formats are read by Spark, which sorts the values of indexed columns by file.

    Args:
        spark: The session.
        path: The objects: a file, a folder, a pattern, a URL or a list of them.
        indexes: What is kept of each, such as ``pqext.skipping.MinMax("temp")``.
        store: The folder of the store, a path that all executors see or a URL.
        format: ``"parquet"``, or the name of a format that Spark reads by files: ``"csv"``, ``"json"``, ``"orc"``.
        schema: The schema of files that Spark reads, as ``spark.read.schema`` takes it; inferred where it is left out.
        options: Options of Spark's reader, such as ``{"header": True}``. The store keeps them with the types:
            :func:`read_with_skipping` uses it for reads with the same ones only.
        data: False indexes Parquet files by footers alone; what they do not prove stays unknown.
        overwrite: Replace a store that is there.
        encryption: The keys of indexes that are to be encrypted.
        storage_options: Credentials and other settings for URLs; by default what Spark's Hadoop settings say.
        progress: Called with how many tasks are done, and of how many.

    Returns:
        A :class:`pqext.skipping.Summary`, with the objects that could not be indexed; every query reads these.

    Raises:
        FileExistsError: Where there is a store already.
        FileNotFoundError: For paths without files.
        ValueError: For a column that is not there, and for options of Parquet files.
        TypeError: For values that an index is not made for.

    Example:
        ``build_skipping(spark, "s3://lake/weather", [MinMax("temp"), Box("place")], "s3://lake/weather.skipping")``
    """
    paths, storage = paths_of(spark, path, [store], storage_options)
    table = Table.from_sources(paths, None, storage)
    indexing = _indexing(spark, paths, format, schema, options, data, storage, progress)
    return create_store(table, indexes, _folder(store, storage), indexing, overwrite=overwrite, encryption=encryption)


def refresh_skipping(
    spark: SparkSession,
    path: str | Sequence[str],
    store: str,
    *,
    format: str = PARQUET,
    schema: Any = None,
    options: Mapping[str, Any] | None = None,
    data: bool = True,
    decryption: Mapping[str, bytes] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Index the objects that are new or have changed since a store was made, in Spark's tasks.

    Arguments are those of :func:`build_skipping`; ``decryption`` are the keys of an encrypted store, by their labels.

    Raises ``FileNotFoundError`` where there is no store, ``ValueError`` for files that are not of its table and for
    another format, schema or other options than those that it was built with, and ``UnsupportedError`` for a version
    that is not known.
    """
    paths, storage = paths_of(spark, path, [store], storage_options)
    table = Table.from_sources(paths, None, storage)
    indexing = _indexing(spark, paths, format, schema, options, data, storage, progress)
    known = Store(_folder(store, storage), decryption)
    if isinstance(indexing, ByFrames):
        _check_read_as(known, indexing.files)
    return refresh_store(table, known, indexing)


def _indexing(
    spark: SparkSession, paths: Sequence[str], format: str, schema: Any, options: Mapping[str, Any] | None,
    data: bool, storage: Mapping[str, Any] | None, progress: Progress | None,
) -> Indexing:
    if format.lower() != PARQUET:
        if not data:
            raise ValueError(f"data=False indexes by footers, which files of {format} have not")
        return ByFrames(Files(spark, paths, format, schema, dict(options or {})), storage, progress)
    if schema is not None or options:
        raise ValueError("schema and options are for formats that Spark reads, not for Parquet")
    return InTasks(spark, Indexer((), as_stored(None), DEFAULT_LIMITS, data), storage, progress)


def _check_read_as(known: Store, files: Files) -> None:
    """Raise ``ValueError`` where a store was built of other values than those that are read now."""
    for about in (known.metadata, known.extra_metadata):
        for one in () if about is None else about.indexes:
            before = one.params.get(READ_AS)
            if before is None:
                continue
            now = files.read_as(type_at(files.row_schema, path_of(one.columns[0])))
            if now != before:
                raise ValueError(
                    f"the store at {source_name(known.location)} was built of {before}, not of {now}: give the same "
                    "format, schema and options, or build another store"
                )


def _folder(store: str, storage_options: Mapping[str, Any] | None) -> Any:
    """Where a store lies."""
    return locate(store, None, storage_options) if is_remote(store) else local_path(store)
