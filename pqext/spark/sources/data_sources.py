"""Data sources ``pqext`` and ``pqext_json``, and their registration with a session.

``pqext`` reads and writes Parquet files. ``schema`` and the planning of partitions run in a Python worker of the
driver. pqext must be installed on the driver and the executors. ``pqext_json`` reads JSON lines into a VARIANT column
without passing the bytes through the JVM.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.suggestions import did_you_mean
from pqext.dataset.table_snapshot import is_table
from pqext.spark.base.errors import concise_errors
from pqext.spark.base.files import option_paths, replace_table
from pqext.spark.base.hadoop import add_cluster_settings
from pqext.spark.base.types import to_exchange_schema
from pqext.spark.base.worker_process import prepare_worker
from pqext.spark.json.text_parts import JsonLinesReader, create_parts
from pqext.spark.options.save import parse_storage_options
from pqext.spark.reading.parquet_reader import Reader, check_user_schema
from pqext.spark.reading.request import Query
from pqext.spark.streams.files import FileStream, StreamOptions, split_stream_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT = "pqext_json"
MAX_LINE_BYTES = 128 << 20
"""Maximum line length, because Spark does not support larger VARIANTs."""
_OPTIONS = {
    "column", "on_error", "error_column", "partition_bytes", "max_line_bytes", "duplicate_keys", "storage_options",
}
_registered: WeakSet[SparkSession] = WeakSet()
_with_functions: WeakSet[SparkSession] = WeakSet()


class PqextSource(DataSource):
    """Data source of ``spark.read.format("pqext")`` and ``df.write.format("pqext")``.

    For the read options, see :class:`pqext.spark.reading.request.Query`; for the write options,
    :class:`pqext.core.options.read_write.WriteOptions`.
    """

    _has_user_schema = True

    @classmethod
    def name(cls) -> str:
        """Return the name of the format in Spark."""
        return "pqext"

    @concise_errors
    def schema(self) -> StructType:
        """Return the Spark schema of the files."""
        from pqext.spark.streams.files import split_stream_options

        prepare_worker()
        self._has_user_schema = False  # only called without a user's schema; this object is pickled later
        return Query.from_options(split_stream_options(self._options())[1]).resolve().schema()

    @concise_errors
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the columns of ``schema``.

        Raises ``ValueError`` if a column is not in the files, or has a different type.
        """
        prepare_worker()
        query = replace(Query.from_options(self._options()).resolve(), has_user_schema=self._has_user_schema)
        check_user_schema(schema, query.schema(), has_all=not self._has_user_schema)
        return Reader(query, schema)

    @concise_errors
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer of files with ``schema``, or of a table."""
        from pqext.spark.writing.sink import Sink
        from pqext.spark.writing.table_sink import TableSink

        options = self._options()
        return (TableSink if is_table(options.get("path")) else Sink)(options, schema, overwrite)

    @concise_errors
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return a writer of a stream with ``schema``."""
        from pqext.spark.streams.parquet import StreamSink

        options = self._options()
        if is_table(options.get("path")):
            raise UnsupportedError(
                "streams cannot be written to tables; save each batch with pqext.spark.write in foreachBatch",
                feature="streams into tables", path=options["path"],
            )
        return StreamSink(options, schema, overwrite)

    @concise_errors
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader that streams the columns ``schema`` from files or from a table."""
        from pqext.spark.streams.parquet import ParquetStream
        from pqext.spark.streams.tables import TableStream

        options = self._options()
        stream = TableStream if is_table(options.get("path")) else ParquetStream
        return stream(options, schema, self._has_user_schema)

    def _options(self) -> Mapping[str, str]:
        """Return the options, with storage options from the cluster's configuration files.

        Raises ``UnsupportedError`` for a catalog table.
        """
        options = replace_table(self.options)
        _reject_tables(options)
        return add_cluster_settings(options)


def _reject_tables(options: Mapping[str, str]) -> None:
    """Raise ``UnsupportedError`` for a catalog table, whose location Spark does not pass to a data source.

    A table without a schema is rejected when it is created, because Spark passes its owner. Other tables are rejected
    on first use.
    """
    if "owner" in options or not ("path" in options or "paths" in options):
        raise UnsupportedError(
            "the path is missing: pass a path to load() or save(), or a Delta or Iceberg table with option table. "
            "Tables of the catalog (CREATE TABLE ... USING pqext, saveAsTable) "
            "do not work, because Spark does not pass the location of their files to a Python data source: use "
            "pqext.spark.write(df, path) and spark.read.format('pqext').load(path), or CREATE TEMPORARY VIEW ... USING "
            "pqext OPTIONS (path '...')",
            feature="catalog tables",
        )


class JsonLinesSource(DataSource):
    """Data source of ``spark.read.format("pqext_json")``.

    Its options are the arguments of :func:`pqext.spark.read_json`.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format in Spark."""
        return FORMAT

    @concise_errors
    def schema(self) -> T.StructType:
        """Return the schema: a VARIANT column, and the column of errors if requested."""
        _check_options(split_stream_options(self.options)[1])
        prepare_worker()
        schema = T.StructType([T.StructField(self.options.get("column", "value"), T.VariantType())])
        if "error_column" in self.options:
            schema = schema.add(self.options["error_column"], T.StringType())
        return schema

    @concise_errors
    def reader(self, schema: T.StructType) -> DataSourceReader:
        """Create a reader with these options. A user's ``schema`` can rename and omit columns."""
        prepare_worker()
        return self._reader(add_cluster_settings(self.options), schema)

    @concise_errors
    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:
        """Return a reader of a stream of files that arrive in the folders, with these options."""
        of_stream, others = split_stream_options(add_cluster_settings(self.options))
        return JsonLinesStream(self._reader(CaseInsensitiveDict(others), schema), of_stream)

    def _reader(self, options: Mapping[str, str], schema: T.StructType) -> JsonLinesReader:
        _check_options(options)
        error_column = options.get("error_column")
        column = options.get("column") or _variant_name(schema, error_column)
        _check_schema(schema, column, error_column)
        on_error = options.get("on_error", "raise")
        if on_error not in ("raise", "null"):
            raise ValueError(f"on_error must be 'raise' or 'null', not {on_error!r}")
        credentials = options.get("storage_options")
        return JsonLinesReader(
            paths=tuple(option_paths(options, allow_urls=True)),
            storage_options=None if credentials is None else parse_storage_options(credentials),
            schema=to_exchange_schema(schema),
            column=column,
            raises=on_error == "raise",
            partition_bytes=int(options.get("partition_bytes", 0)),
            max_line_bytes=int(options.get("max_line_bytes", MAX_LINE_BYTES)),
            duplicate_keys=options.get("duplicate_keys", "error"),
        )


class JsonLinesStream(FileStream):
    """Stream of new files with JSON lines. Each file is read once."""

    def __init__(self, reader: JsonLinesReader, options: StreamOptions) -> None:
        super().__init__(reader.paths, reader.storage_options, options)
        self._reader = reader

    @concise_errors
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan ranges of the new files."""
        new, _ = self.list_batch(start, end)
        return self._reader.plan(create_parts((item.file, item.location) for item in new))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the lines in the ranges of a task."""
        yield from self._reader.read(partition)


def _check_options(options: Mapping[str, str]) -> None:
    unknown = {name.lower() for name in options} - _OPTIONS - {"path", "paths"}
    if unknown:
        meant = did_you_mean(min(unknown), _OPTIONS) or f"; the options are {', '.join(sorted(_OPTIONS))}"
        raise ValueError(f"unknown option {min(unknown)!r}{meant}")


def _variant_name(schema: T.StructType, error_column: str | None) -> str:
    """Return the name of the only VARIANT column in a user's schema; ``value`` without a single VARIANT column."""
    names = [field.name for field in schema if isinstance(field.dataType, T.VariantType) and field.name != error_column]
    return names[0] if len(names) == 1 else "value"


def _check_schema(schema: T.StructType, column: str, error_column: str | None) -> None:
    """Raise ``ValueError`` for a column that the data source does not produce."""
    types: dict[str, T.DataType] = {column: T.VariantType()}
    if error_column is not None:
        types[error_column] = T.StringType()
    for field in schema:
        if types.get(field.name) != field.dataType:
            expected = ", ".join(f"`{name}` {type.simpleString().upper()}" for name, type in types.items())
            raise ValueError(
                f"the schema has `{field.name}` {field.dataType.simpleString().upper()}, and data source {FORMAT} "
                f"reads {expected}: omit schema(), and extract fields of the VARIANT with variant_get"
            )


def register(spark: SparkSession) -> None:
    """Register the data sources and SQL functions of pqext with a session, on Spark Classic or Connect.

    The data sources are ``pqext`` and ``pqext_json``. Spark finds them without registration if its workers can import
    the modules ``pyspark_pqext`` and ``pyspark_pqext_json``, which are installed with pqext. The SQL names of
    the functions in ``pqext.spark.functions`` have the prefix ``pq_``.

    The function also makes the session active in the current Python thread. On Spark Classic, a new thread has no
    active session, and ``df.write.format("pqext")`` would not find the data source.

    Args:
        spark: The session.

    Example:
        >>> register(spark)  # doctest: +SKIP
        >>> spark.sql("SELECT pq_st_area(geom) FROM parcels")  # doctest: +SKIP
    """
    from pqext.spark.functions.sql_names import register_functions

    _make_active(spark)
    _register_sources(spark)
    register_functions(spark)
    _with_functions.add(spark)


def ensure_registered(spark: SparkSession, functions: bool = False) -> None:
    """Register the data sources once per session, and the SQL functions if ``functions``.

    Spark logs a warning if a data source is registered again.
    """
    if functions and spark not in _with_functions:
        register(spark)
        return
    _make_active(spark)
    if spark not in _registered:
        _register_sources(spark)


def _make_active(spark: SparkSession) -> None:
    """Make a session active in this thread, because Spark looks up the data source of a save in the active session."""
    session = getattr(spark, "_jsparkSession", None)  # None on Spark Connect
    if session is not None and threading.current_thread() is not threading.main_thread():
        type(spark)._get_j_spark_session_class(spark._jvm).setActiveSession(session)


def _register_sources(spark: SparkSession) -> None:
    for source in (PqextSource, JsonLinesSource):
        try:
            spark.dataSource.register(source)
        except Exception as error:  # the class differs on Spark Classic and Connect
            if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
                raise
    _registered.add(spark)
