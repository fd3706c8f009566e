"""Stream the rows that are added to a Delta or Iceberg table. Spark's offsets contain the last version that was read.

The first batch has all rows of the table, unless option ``starting_version`` is set. Later batches have the files that
the next versions add, from their commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from pqext.spark.base.errors import concise_errors
from pqext.spark.base.files import option_paths
from pqext.spark.options.file import normalize_options
from pqext.spark.options.save import parse_storage_options
from pqext.spark.reading.parquet_reader import Reader, check_user_schema
from pqext.spark.reading.planning import Slice
from pqext.spark.reading.request import Query
from pqext.spark.streams.files import SupportsTriggerAvailableNow, read_limit, split_stream_options
from pqext.tables.backend import TableHistory
from pqext.tables.history import open_history


class TableStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stream of the rows that are added to a table, with the columns of ``schema``."""

    def __init__(self, options: Mapping[str, str], schema: StructType, has_user_schema: bool = True) -> None:
        tables = option_paths(options, allow_urls=True)
        if len(tables) != 1:
            raise ValueError(f"a stream reads one table, not {len(tables)}")
        self._table = tables[0]
        self._options, self._query_options = split_stream_options(options)
        for name in ("version", "timestamp", "schema"):
            if name in normalize_options(self._query_options):
                raise ValueError(f"streams of tables do not support option {name!r}; use starting_version")
        if self._options.ignore_missing_files:
            raise ValueError("streams of tables do not support option ignore_missing_files; omit it")
        storage = self._query_options.get("storage_options")
        self._storage = None if storage is None else parse_storage_options(storage)
        self._schema = schema
        self._has_user_schema = has_user_schema
        self._until: int | None = None

    def _history(self) -> TableHistory:
        return open_history(self._table, self._storage)

    @concise_errors
    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first row, which is None unless ``starting_version`` is set."""
        start = self._options.starting_version
        if start is None:
            return _offset(None)
        history = self._history()
        return _offset(history.version if start == "latest" else history.previous_version(int(start)))

    @concise_errors
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """Return the offset of the first version at which the new files reach ``limit``, or of the current version."""
        history = self._history()
        until = history.version if self._until is None else self._until
        after = None if start is None else _version_of(start)
        most = getattr(limit, "max_files", None)
        if start is None or after is None or most is None or after == until:
            return _offset(until)
        files = 0
        for append in history.appends(after, until, self._options.skip_change_commits):
            files += len(append.files)
            if files >= most:
                return _offset(append.version)
        return _offset(until)

    def getDefaultReadLimit(self) -> Any:
        """Return the limit from option ``max_files_per_batch``. A batch ends after the version that reaches it."""
        return read_limit(self._options)

    @concise_errors
    def prepareForTriggerAvailableNow(self) -> None:
        """End the query after the current version."""
        self._until = self._history().version

    @concise_errors
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan a slice for each task from the files that were added between two offsets."""
        after, until = _version_of(start), _version_of(end)
        if until is None or after == until:
            return []
        history = self._history()
        if after is None:
            snapshot = history.open(until)
        else:
            snapshot = history.snapshot(history.appends(after, until, self._options.skip_change_commits), until)
        if not snapshot.files:
            return []
        query = Query.from_options(self._query_options, table=snapshot)
        query = replace(query, has_user_schema=self._has_user_schema).resolve()
        check_user_schema(self._schema, query.schema(), has_all=not self._has_user_schema)
        return Reader(query, self._schema).partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of a slice."""
        if isinstance(partition, Slice) and partition.query is not None:
            yield from Reader(partition.query, self._schema).read(partition)


def _offset(version: int | None) -> dict[str, Any]:
    return {"table_version": version}


def _version_of(offset: Mapping[str, Any]) -> int | None:
    """Return the version in an offset. Raises ``ValueError`` for an offset of another source."""
    version = offset.get("table_version", "")
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise ValueError("the checkpoint contains an offset of another source; use another checkpoint location")
    return version
