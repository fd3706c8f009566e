"""Build and refresh data-skipping stores in Spark tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.base.progress import Progress
from pqext.core.io.sources.locations import locate
from pqext.dataset.files.sources import source_name
from pqext.skipping.format.names import parse_path
from pqext.skipping.indexes.index import Index
from pqext.skipping.maintenance.construction import Indexing, Summary, create_store, refresh_store, storage_type_options
from pqext.skipping.maintenance.object_cells import Indexer
from pqext.skipping.store.keys import StoreKeys
from pqext.skipping.store.store import Store
from pqext.skipping.store.table import Table
from pqext.spark.base.files import is_remote, local_path
from pqext.spark.skipping.foreign import READ_AS, Files, FrameIndexing, find_type
from pqext.spark.skipping.tasks import TaskIndexing, resolve_paths

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
    read_rows: bool = True,
    overwrite: bool = False,
    encryption: StoreKeys | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Index the objects of a table in Spark tasks, and write the result as a data-skipping store.

    Each task indexes a share of the objects and writes its own parts of the store, so neither the driver nor a task has
    more than some thousand rows of the store in memory. pqext indexes Parquet files, from their footers if these prove
    the values of the index. Spark reads files of other formats, and sorts the values of indexed columns by file.

    Args:
        spark: The session.
        path: The objects: a file, a folder, a pattern, a URL or a list of them.
        indexes: The indexes to build, such as ``pqext.skipping.MinMax("temp")``.
        store: The folder of the store: a path that all executors can access, or a URL.
        format: ``"parquet"``, or the name of a file format that Spark reads: ``"csv"``, ``"json"``, ``"orc"``.
        schema: The schema of files that Spark reads, as for ``spark.read.schema``; inferred by default.
        options: Options of Spark's reader, such as ``{"header": True}``. The store records them with the types:
            :func:`read_with_skipping` uses it only for reads with the same options.
        read_rows: False indexes Parquet files only from their footers. Values that footers do not prove are unknown.
        overwrite: Replace an existing store.
        encryption: The keys of indexes to encrypt.
        storage_options: Credentials and other settings for URLs; Spark's Hadoop settings by default.
        progress: Called with the number of finished tasks and of all tasks.

    Returns:
        A :class:`pqext.skipping.Summary`, with the objects that could not be indexed, which every query reads.

    Raises:
        FileExistsError: If the store exists.
        FileNotFoundError: For paths without files.
        ValueError: For a missing column, and for options of Parquet files.
        TypeError: For values that an index does not support.

    Example:
        >>> indexes = [MinMax("temp"), Box("place")]  # doctest: +SKIP
        >>> build_skipping(spark, "s3://lake/weather", indexes, "s3://lake/weather.skipping")  # doctest: +SKIP
    """
    paths, storage = resolve_paths(spark, path, [store], storage_options)
    table = Table.from_sources(paths, None, storage)
    indexing = _create_indexing(spark, paths, format, schema, options, read_rows, storage, progress)
    return create_store(
        table, indexes, _locate_store(store, storage), indexing, overwrite=overwrite, encryption=encryption
    )


def refresh_skipping(
    spark: SparkSession,
    path: str | Sequence[str],
    store: str,
    *,
    format: str = PARQUET,
    schema: Any = None,
    options: Mapping[str, Any] | None = None,
    read_rows: bool = True,
    decryption: Mapping[str, bytes] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Index objects in Spark tasks that are new or have changed since a store was built.

    Arguments are as for :func:`build_skipping`. ``decryption`` contains the keys of an encrypted store, by label.

    Raises ``FileNotFoundError`` if the store does not exist, ``ValueError`` for files of another table and for a
    format, schema or options that differ from the build, and ``UnsupportedError`` for an unknown version.

    Example:
        >>> refresh_skipping(spark, "s3://lake/weather", "s3://lake/weather.skipping")  # doctest: +SKIP
    """
    paths, storage = resolve_paths(spark, path, [store], storage_options)
    table = Table.from_sources(paths, None, storage)
    indexing = _create_indexing(spark, paths, format, schema, options, read_rows, storage, progress)
    known = Store(_locate_store(store, storage), decryption)
    if isinstance(indexing, FrameIndexing):
        _check_read_as(known, indexing.files)
    return refresh_store(table, known, indexing)


def _create_indexing(
    spark: SparkSession, paths: Sequence[str], format: str, schema: Any, options: Mapping[str, Any] | None,
    read_rows: bool, storage: Mapping[str, Any] | None, progress: Progress | None,
) -> Indexing:
    if format.lower() != PARQUET:
        if not read_rows:
            raise ValueError(f"{format} files have no footers to build indexes from; omit read_rows=False")
        return FrameIndexing(Files(spark, paths, format, schema, dict(options or {})), storage, progress)
    if schema is not None or options:
        raise ValueError("schema and options are not supported for Parquet, which pqext reads itself; omit them")
    return TaskIndexing(spark, Indexer((), storage_type_options(None), DEFAULT_LIMITS, read_rows), storage, progress)


def _check_read_as(store: Store, files: Files) -> None:
    """Raise ``ValueError`` if the format, the types or the options of ``files`` differ from those of the store."""
    for about in (store.metadata, store.extra_metadata):
        for item in () if about is None else about.indexes:
            before = item.params.get(READ_AS)
            if before is None:
                continue
            now = files.read_as(find_type(files.row_schema, parse_path(item.columns[0])))
            if now != before:
                raise ValueError(
                    f"the store at {source_name(store.location)} was built from {before}, not from {now}: pass the "
                    "same format, schema and options, or build another store"
                )


def _locate_store(store: str, storage_options: Mapping[str, Any] | None) -> Any:
    """Return the location of a store."""
    return locate(store, None, storage_options) if is_remote(store) else local_path(store)
