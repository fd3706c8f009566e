"""Stream Parquet files: ``spark.readStream.format("pqext")``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from pqext.spark.base.errors import concise_errors
from pqext.spark.base.files import option_paths
from pqext.spark.options.file import normalize_options
from pqext.spark.options.save import storage_options
from pqext.spark.reading.parquet_reader import Reader, check_user_schema
from pqext.spark.reading.planning import Slice
from pqext.spark.reading.request import Query
from pqext.spark.streams.files import FileStream, stream_options


@dataclass(frozen=True)
class StreamSlice(InputPartition):
    """Work of a task with its query, because Spark creates a new reader for the tasks."""

    query: Query
    work: Slice


class ParquetStream(FileStream):
    """Stream that reads each file once, with the columns of ``schema``.

    Unless the user specified the schema, a file with additional columns is an error.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, has_user_schema: bool = True) -> None:
        of_stream, self._query_options = stream_options(options)
        if "schema" in self._query_options:
            raise ValueError("streams do not support option 'schema'; pass the columns to schema() instead")
        for name in ("path_glob_filter", "modified_after", "modified_before", "on_invalid"):
            if name in normalize_options(self._query_options):
                raise ValueError(f"streams do not support option {name!r}; pass a path such as folder/*.parquet")
        storage = self._query_options.get("storage_options")
        flags = (text for name, text in self._query_options.items() if name.lower() == "ignore_table_format")
        flag = next(flags, "false")
        super().__init__(
            option_paths(options, remote=True), None if storage is None else storage_options(storage), of_stream,
            ignore_table_format=flag.lower() == "true",
        )
        Query.from_options(self._query_options, [])
        self._schema = schema
        self._has_user_schema = has_user_schema

    @concise_errors
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan a slice for each task from the row groups of new files that may contain matching rows."""
        new, there = self.list_batch(start, end)
        if not new:
            return []
        every = [(entry.file, entry.place) for entry in there]
        query = Query.from_options(self._query_options, every)
        files = tuple(item.file for item in new)
        query = replace(query, files=files, has_user_schema=self._has_user_schema).resolve()
        check_user_schema(self._schema, query.schema(), has_all=not self._has_user_schema)
        slices = Reader(query, self._schema).partitions()
        named = query.display_names()
        return [
            StreamSlice(replace(query, files=tuple(named.get(task.path, task.path) for task in element.tasks)), element)
            for element in slices
            if isinstance(element, Slice)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of a slice."""
        if isinstance(partition, StreamSlice):
            yield from Reader(partition.query, self._schema).read(partition.work)
