"""Data source ``pqext``: read and write Parquet files with pqext in Spark.

``schema`` and the planning of partitions run in a Python worker of the driver. pqext must be installed on the driver
and the executors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pqext.core.base.errors import UnsupportedError
from pqext.spark.base.errors import concise_errors
from pqext.spark.base.hadoop import with_cluster_settings
from pqext.spark.base.worker_process import prepare_worker
from pqext.spark.reading.parquet_reader import Reader, check_user_schema
from pqext.spark.reading.request import Query


class PqextSource(DataSource):
    """Data source of ``spark.read.format("pqext")`` and ``df.write.format("pqext")``.

    The options for reading are those of :class:`pqext.spark.reading.request.Query`. The options for writing are those
    of :class:`pqext.core.options.read_write.WriteOptions`.
    """

    _has_user_schema = True

    @classmethod
    def name(cls) -> str:
        """Return the name of the format in Spark."""
        return "pqext"

    @concise_errors
    def schema(self) -> StructType:
        """Return the Spark schema of the files."""
        from pqext.spark.streams.files import stream_options

        prepare_worker()
        self._has_user_schema = False  # only called without a user's schema; this object is pickled later
        return Query.from_options(stream_options(self._options())[1]).resolve().schema()

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
        """Return a writer of files with ``schema``."""
        from pqext.spark.writing.sink import Sink

        return Sink(self._options(), schema, overwrite)

    @concise_errors
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return a writer of a stream with ``schema``."""
        from pqext.spark.streams.sink import StreamSink

        return StreamSink(self._options(), schema, overwrite)

    @concise_errors
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader of a stream of files, with the columns of ``schema``."""
        from pqext.spark.streams.source import ParquetStream

        return ParquetStream(self._options(), schema, self._has_user_schema)

    def _options(self) -> Mapping[str, str]:
        """Return the options with credentials from the cluster's files. Raises the error of :func:`_reject_tables`."""
        _reject_tables(self.options)
        return with_cluster_settings(self.options)


def _reject_tables(options: Mapping[str, str]) -> None:
    """Raise ``UnsupportedError`` for a catalog table, whose location Spark does not pass to a data source.

    A table without a schema is rejected when it is created, because Spark passes its owner. Other tables are rejected
    on first use.
    """
    if "owner" in options or not ("path" in options or "paths" in options):
        raise UnsupportedError(
            "no path: pass one to load() or save(). Tables of the catalog (CREATE TABLE ... USING pqext, saveAsTable) "
            "do not work, because Spark does not pass the location of their files to a Python data source: use "
            "pqext.spark.write(df, path) and spark.read.format('pqext').load(path), or CREATE TEMPORARY VIEW ... USING "
            "pqext OPTIONS (path '...')",
            feature="catalog tables",
        )
