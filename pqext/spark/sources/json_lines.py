"""Data source ``pqext_json``: read JSON lines into a VARIANT column without passing the bytes through the JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from pqext.core.base.suggestions import did_you_mean
from pqext.spark.base.errors import concise_errors
from pqext.spark.base.files import option_paths
from pqext.spark.base.hadoop import with_cluster_settings
from pqext.spark.base.types import exchange_schema
from pqext.spark.base.worker_process import prepare_worker
from pqext.spark.json.reader import JsonLinesReader
from pqext.spark.json.text_parts import parts_of
from pqext.spark.options.save import storage_options
from pqext.spark.streams.files import FileStream, StreamOptions, stream_options

FORMAT = "pqext_json"
MAX_LINE_BYTES = 128 << 20
"""Maximum line length, because Spark does not support larger VARIANTs."""
_OPTIONS = {
    "column", "on_error", "error_column", "partition_bytes", "max_line_bytes", "duplicate_keys", "storage_options",
}


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
        _check_options(stream_options(self.options)[1])
        prepare_worker()
        schema = T.StructType([T.StructField(self.options.get("column", "value"), T.VariantType())])
        if "error_column" in self.options:
            schema = schema.add(self.options["error_column"], T.StringType())
        return schema

    @concise_errors
    def reader(self, schema: T.StructType) -> DataSourceReader:
        """Create a reader with these options. A user's ``schema`` can rename and omit columns."""
        prepare_worker()
        return self._reader(with_cluster_settings(self.options), schema)

    @concise_errors
    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:
        """Return a reader of a stream of files that arrive in the folders, with these options."""
        of_stream, others = stream_options(with_cluster_settings(self.options))
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
            paths=tuple(option_paths(options, remote=True)),
            storage_options=None if credentials is None else storage_options(credentials),
            schema=exchange_schema(schema),
            column=column,
            raises=on_error == "raise",
            partition_bytes=int(options.get("partition_bytes", 0)),
            max_line_bytes=int(options.get("max_line_bytes", MAX_LINE_BYTES)),
            duplicate_keys=options.get("duplicate_keys", "error"),
        )


class JsonLinesStream(FileStream):
    """Stream that reads each file once, like ``reader``."""

    def __init__(self, reader: JsonLinesReader, options: StreamOptions) -> None:
        super().__init__(reader.paths, reader.storage_options, options)
        self._reader = reader

    @concise_errors
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan ranges of the new files."""
        new, _ = self.list_batch(start, end)
        return self._reader.plan(parts_of((item.file, item.place) for item in new))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the lines in the ranges of a task."""
        yield from self._reader.read(partition)


def _check_options(options: Mapping[str, str]) -> None:
    unknown = {name.lower() for name in options} - _OPTIONS - {"path", "paths"}
    if unknown:
        meant = did_you_mean(min(unknown), _OPTIONS) or f"; the options are {', '.join(sorted(_OPTIONS))}"
        raise ValueError(f"unknown option {min(unknown)!r}{meant}")


def _variant_name(schema: T.StructType, error_column: str | None) -> str:
    """Return the name of the only VARIANT column in a user's schema; ``value`` if there is not exactly one."""
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
