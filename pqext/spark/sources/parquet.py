"""Data source ``pqext``: Parquet files read and written by pqext inside Spark.

``schema`` and the planning of partitions run in a Python worker of the driver, where pqext must be installed;
so must it be on the executors.
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
from pqext.spark.base.errors import brief
from pqext.spark.base.hadoop_files import with_settings_of_cluster
from pqext.spark.base.worker_process import prepare_worker
from pqext.spark.reading.parquet_reader import Reader, check_given
from pqext.spark.reading.request import Query


class PqextSource(DataSource):
    """``spark.read.format("pqext")`` and ``df.write.format("pqext")``.

    Options of reading: :class:`pqext.spark.reading.request.Query`. Options of writing:
    :class:`pqext.core.options.read_write.WriteOptions`.
    """

    _has_user_schema = True

    @classmethod
    def name(cls) -> str:
        """The format's name in Spark."""
        return "pqext"

    @brief
    def schema(self) -> StructType:
        """The schema of the files, by Spark's types."""
        from pqext.spark.streams.files import stream_options

        prepare_worker()
        self._has_user_schema = False  # Spark asks only where the user gives none, and pickles this object afterwards
        return Query.from_options(stream_options(self._options())[1]).resolved().schema()

    @brief
    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns of ``schema``, which are some of the files' columns.

        Raises ``ValueError`` for a column that the files have not, or have of another type.
        """
        prepare_worker()
        query = replace(Query.from_options(self._options()).resolved(), has_user_schema=self._has_user_schema)
        check_given(schema, query.schema(), has_all=not self._has_user_schema)
        return Reader(query, schema)

    @brief
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer of files with ``schema``."""
        from pqext.spark.writing.sink import Sink

        return Sink(self._options(), schema, overwrite)

    @brief
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A writer of the batches of a stream with ``schema``."""
        from pqext.spark.streams.sink import StreamSink

        return StreamSink(self._options(), schema, overwrite)

    @brief
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A reader of the files that come into the folders, of the columns of ``schema``."""
        from pqext.spark.streams.source import ParquetStream

        return ParquetStream(self._options(), schema, self._has_user_schema)

    def _options(self) -> Mapping[str, str]:
        """The options, for which the configuration files of the cluster state credentials."""
        _refuse_tables(self.options)
        return with_settings_of_cluster(self.options)


def _refuse_tables(options: Mapping[str, str]) -> None:
    """Refuse what Spark asks for a table of its catalog, where it can be told: it keeps the location to itself.

    A table that is created without a schema is refused before it is there, by the owner that Spark sends along; others
    when they are read or written first.
    """
    if "owner" in options or not ("path" in options or "paths" in options):
        raise UnsupportedError(
            "no path: give one to load() or save(). Tables of the catalog (CREATE TABLE ... USING pqext, saveAsTable) "
            "do not work, because Spark does not tell a Python data source where their files are: use "
            "pqext.spark.write(df, path) and spark.read.format('pqext').load(path), or CREATE TEMPORARY VIEW ... USING "
            "pqext OPTIONS (path '...')",
            feature="catalog tables",
        )
