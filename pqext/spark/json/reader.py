"""Read ranges of JSON lines files in the tasks of data source ``pqext_json``.

A line belongs to the range that contains its first byte. Only VARIANT values pass through the JVM.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from pqext.core.base.errors import ChangedFileError, VariantError
from pqext.spark.base.arrays import conform
from pqext.spark.base.errors import concise_errors
from pqext.spark.base.worker_process import prepare_worker
from pqext.spark.json.text_parts import (
    READ_BYTES,
    Part,
    assign_parts,
    count_preceding_lines,
    fault_message,
    fault_remedy,
    find_parts,
    location_of,
    stamp_of,
)
from pqext.variant.json.faults import line_fault
from pqext.variant.json.files import pieces_at
from pqext.variant.json.parser import DEFAULT_MAX_DEPTH, LARGEST_BYTES, Parsing, parsing

PARTITION_BYTES = 32 << 20


@dataclass(frozen=True)
class Ranges(InputPartition):
    """Work of a task: files and ranges of files."""

    parts: tuple[Part, ...]


@dataclass
class JsonLinesReader(DataSourceReader):
    """Reader of ranges of the files in ``paths``."""

    paths: tuple[str, ...]
    storage_options: Mapping[str, Any] | None = dataclasses.field(repr=False)
    schema: pa.Schema
    column: str
    raises: bool
    partition_bytes: int
    max_line_bytes: int
    duplicate_keys: str

    @concise_errors
    def partitions(self) -> list[InputPartition]:
        """Plan ranges of nearly equal length. Small files are combined, and compressed files are not split."""
        return self.plan(find_parts(self.paths, self.storage_options))

    def plan(self, parts: Sequence[Part]) -> list[InputPartition]:
        """Return the tasks that read ``parts``."""
        return [Ranges(work) for work in assign_parts(parts, self.partition_bytes or None, True, PARTITION_BYTES)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the lines in the ranges of a task, as batches of VARIANT values."""
        if not isinstance(partition, Ranges):
            return  # Spark reads an empty partition if there are no partitions
        prepare_worker()
        # Errors are reported instead of raised, so that messages can state their location.
        parser = parsing(
            "decimal", "null", self.duplicate_keys, DEFAULT_MAX_DEPTH, min(self.max_line_bytes, LARGEST_BYTES), None
        )
        for part in partition.parts:
            yield from self._read(part, parser)

    def _read(self, part: Part, parser: Parsing) -> Iterator[pa.RecordBatch]:
        location = location_of(part, self.storage_options)
        stamp, size = stamp_of(location)
        if size < part.size or (stamp != part.stamp and not isinstance(location, str)):  # local files may grow
            raise ChangedFileError(
                f"the file was changed or replaced after this data frame was planned (planned {part.size} bytes, "
                f"found {size}); create a new data frame to read it",
                path=part.name,
            )
        preceding_lines, is_line_known = 0, part.start == 0
        for chunk in pieces_at(location, "lines", READ_BYTES, self.max_line_bytes, part.start, part.stop):
            _, arrays, errors, lines = chunk.parse(parser)
            if errors and not is_line_known:
                preceding_lines, is_line_known = count_preceding_lines(location, chunk.start), True
            faults = [line_fault(error, preceding_lines) for error in errors]
            reasons = [fault_message(fault, part) for fault in faults]
            preceding_lines += lines
            if reasons and self.raises:
                raise VariantError(f"{reasons[0]}{fault_remedy(faults[0], chunk.text)}")
            for values in arrays:
                array_reasons, reasons = reasons[: values.null_count], reasons[values.null_count :]
                if len(values):
                    yield self._batch(values, array_reasons)

    def _batch(self, values: pa.Array, reasons: list[str]) -> pa.RecordBatch:
        columns = []
        for field in self.schema:
            if field.name == self.column:
                columns.append(conform(values, field.type))
            elif reasons:
                # Only invalid lines are null rows, in the same order: JSON null is a variant.
                mask = values.is_null()
                nulls = pa.nulls(len(values), pa.string())
                columns.append(pa.compute.replace_with_mask(nulls, mask, pa.array(reasons)))
            else:
                columns.append(pa.nulls(len(values), field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
