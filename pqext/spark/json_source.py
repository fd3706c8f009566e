"""JSON lines into a VARIANT column, without the bytes ever passing through the JVM.

A task parses a byte range of a file. A line belongs to the range in which it begins.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from pqext.core.errors import UnsupportedError, VariantError
from pqext.core.suggest import did_you_mean
from pqext.spark.arrays import conform
from pqext.spark.brief import brief
from pqext.spark.files import list_files, option_paths, slice_bytes
from pqext.spark.types import exchange_schema
from pqext.variant.json import lines as json_lines

if TYPE_CHECKING:
    from pqext.variant.json.parse import LineFault

FORMAT = "pqext_json"
READ_BYTES = 8 << 20
"""Text parsed into one batch, unless a line is longer."""
PARTITION_BYTES = 32 << 20
MAX_LINE_BYTES = 128 << 20
"""Spark holds no larger VARIANT."""
_OPTIONS = {"column", "on_error", "error_column", "partition_bytes", "max_line_bytes", "duplicate_keys"}
_COMPRESSED = (".gz", ".bz2", ".zst", ".zstd", ".lz4", ".xz", ".snappy")


@dataclass(frozen=True)
class Range(InputPartition):
    """The lines of ``path`` that begin at or after byte ``start`` and before ``stop``."""

    path: str
    start: int
    stop: int


class JsonLinesSource(DataSource):
    """``spark.read.format("pqext_json")``: the options are the arguments of :func:`pqext.spark.read_json`."""

    @classmethod
    def name(cls) -> str:
        """The format's name in Spark."""
        return FORMAT

    @brief
    def schema(self) -> T.StructType:
        """One VARIANT column, and the column of errors when it is asked for."""
        _check_options(self.options)
        schema = T.StructType([T.StructField(self.options.get("column", "value"), T.VariantType())])
        if "error_column" in self.options:
            schema = schema.add(self.options["error_column"], T.StringType())
        return schema

    @brief
    def reader(self, schema: T.StructType) -> DataSourceReader:
        """A reader with these options; a ``schema`` of the user's may name the columns, and leave one out."""
        _check_options(self.options)
        error_column = self.options.get("error_column")
        column = self.options.get("column") or _variant_name(schema, error_column)
        _check_schema(schema, column, error_column)
        on_error = self.options.get("on_error", "raise")
        if on_error not in ("raise", "null"):
            raise ValueError(f"on_error is 'raise' or 'null', not {on_error!r}")
        return JsonLinesReader(
            files=tuple(list_files(option_paths(self.options))),
            schema=exchange_schema(schema),
            column=column,
            raises=on_error == "raise",
            partition_bytes=int(self.options.get("partition_bytes", 0)),
            max_line_bytes=int(self.options.get("max_line_bytes", MAX_LINE_BYTES)),
            duplicate_keys=self.options.get("duplicate_keys", "error"),
        )


def _check_options(options: Mapping[str, str]) -> None:
    unknown = {name.lower() for name in options} - _OPTIONS - {"path", "paths"}
    if unknown:
        meant = did_you_mean(min(unknown), _OPTIONS) or f"; there are {', '.join(sorted(_OPTIONS))}"
        raise ValueError(f"unknown option {min(unknown)!r}{meant}")


def _variant_name(schema: T.StructType, error_column: str | None) -> str:
    """What the one VARIANT column is called in a schema of the user's."""
    names = [field.name for field in schema if isinstance(field.dataType, T.VariantType) and field.name != error_column]
    return names[0] if len(names) == 1 else "value"


def _check_schema(schema: T.StructType, column: str, error_column: str | None) -> None:
    """Raise ``ValueError`` for a column that no line has a value for."""
    types: dict[str, T.DataType] = {column: T.VariantType()}
    if error_column is not None:
        types[error_column] = T.StringType()
    for field in schema:
        if types.get(field.name) != field.dataType:
            expected = ", ".join(f"`{name}` {type.simpleString().upper()}" for name, type in types.items())
            raise ValueError(
                f"the schema has `{field.name}` {field.dataType.simpleString().upper()}, and data source {FORMAT} "
                f"reads {expected}: leave schema() out, and take fields of the VARIANT by variant_get"
            )


@dataclass
class JsonLinesReader(DataSourceReader):
    """Parses ranges of ``files``."""

    files: tuple[str, ...]
    schema: pa.Schema
    column: str
    raises: bool
    partition_bytes: int
    max_line_bytes: int
    duplicate_keys: str

    @brief
    def partitions(self) -> list[InputPartition]:
        """Ranges of nearly equal length."""
        for path in self.files:
            if path.lower().endswith(_COMPRESSED):
                raise UnsupportedError(f"decompress {path} first", feature="compressed JSON lines", path=path)
        sizes = [os.path.getsize(path) for path in self.files]
        step = self.partition_bytes or slice_bytes(sum(sizes), PARTITION_BYTES)
        return [
            Range(path, start, min(start + step, size))
            for path, size in zip(self.files, sizes, strict=True)
            for start in range(0, size, step)
        ]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The lines of one range."""
        from pqext.variant.json.faults import placed
        from pqext.variant.json.parse import parse_json_lines
        from pqext.variant.json.parser import LARGEST_BYTES

        if not isinstance(partition, Range):
            return  # Spark makes one partition of no partitions
        numbers = json_lines.LineNumbers(partition.path)

        def describe(start: int, faults: Sequence[LineFault]) -> list[str]:
            """File, line and reason of faults in the text that begins at byte ``start``."""
            before = numbers.before(start) if faults else 0
            return [placed(fault, partition.path, before) for fault in faults]

        for start, text in read_lines(partition, self.max_line_bytes):
            try:
                values, faults = parse_json_lines(
                    text,
                    on_error="null",
                    duplicate_keys=self.duplicate_keys,  # type: ignore[arg-type]
                    max_bytes=min(self.max_line_bytes, LARGEST_BYTES),
                )
            except VariantError as error:
                error.locate(path=partition.path)
                raise
            if faults and self.raises:
                raise VariantError(*describe(start, faults[:1]))
            if len(values):
                yield self._batch(values, describe(start, faults))

    def _batch(self, values: pa.Array, reasons: list[str]) -> pa.RecordBatch:
        columns = []
        for field in self.schema:
            if field.name == self.column:
                columns.append(conform(values, field.type))
            elif reasons:
                # Null rows are those with faults, in the same order: JSON's null is a variant, not a null.
                at = values.is_null()
                columns.append(pa.compute.replace_with_mask(pa.nulls(len(values), pa.string()), at, pa.array(reasons)))
            else:
                columns.append(pa.nulls(len(values), field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def read_lines(partition: Range, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    """The whole lines that begin in a range: pieces of about ``READ_BYTES``, each with its offset in the file.

    Raises ``LimitError`` for a line longer than ``max_line_bytes``.
    """
    with open(partition.path, "rb") as file:
        if (size := os.fstat(file.fileno()).st_size) < partition.stop:
            raise VariantError(
                f"{partition.path} has {size} bytes and had {partition.stop} or more when this data frame was planned: "
                "read it again with a new data frame"
            )
        yield from json_lines.read_lines(
            file,
            partition.start,
            partition.stop,
            piece_bytes=READ_BYTES,
            max_line_bytes=max_line_bytes,
            path=partition.path,
        )
