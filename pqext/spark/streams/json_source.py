"""Files of JSON lines as a stream: ``spark.readStream.format("pqext_json")``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pqext.spark.base.errors import brief
from pqext.spark.json.reader import JsonLinesReader
from pqext.spark.json.text_parts import parts_of
from pqext.spark.streams.files import FileStream, StreamOptions


class JsonLinesStream(FileStream):
    """Reads each file once, as ``reader`` does."""

    def __init__(self, reader: JsonLinesReader, options: StreamOptions) -> None:
        super().__init__(reader.paths, reader.storage_options, options)
        self._reader = reader

    @brief
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Ranges of the new files."""
        new, _ = self.between(start, end)
        return self._reader.shared_out(parts_of((one.file, one.place) for one in new))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The lines of the ranges of a task."""
        yield from self._reader.read(partition)
