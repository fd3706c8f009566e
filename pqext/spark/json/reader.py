"""What the tasks of data source ``pqext_json`` read: ranges of files of JSON lines.

A line belongs to the range in which it begins. No bytes of it pass through the JVM but as a VARIANT.
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
from pqext.spark.base.errors import brief
from pqext.spark.base.worker_process import prepare_worker
from pqext.spark.json.text_parts import (
    READ_BYTES,
    Part,
    find_parts,
    form_hint,
    lines_before,
    place_of,
    share_out,
    stamp_of,
)
from pqext.variant.json.faults import line_fault, placed
from pqext.variant.json.files import pieces_at
from pqext.variant.json.parser import DEFAULT_MAX_DEPTH, LARGEST_BYTES, Parsing, parsing

PARTITION_BYTES = 32 << 20


@dataclass(frozen=True)
class Ranges(InputPartition):
    """The work of a task: files, and ranges of lines of them."""

    parts: tuple[Part, ...]


@dataclass
class JsonLinesReader(DataSourceReader):
    """Parses ranges of the files that ``paths`` name."""

    paths: tuple[str, ...]
    storage_options: Mapping[str, Any] | None = dataclasses.field(repr=False)
    schema: pa.Schema
    column: str
    raises: bool
    partition_bytes: int
    max_line_bytes: int
    duplicate_keys: str

    @brief
    def partitions(self) -> list[InputPartition]:
        """Ranges of nearly equal length; small files together, and compressed ones whole."""
        return self.shared_out(find_parts(self.paths, self.storage_options))

    def shared_out(self, parts: Sequence[Part]) -> list[InputPartition]:
        """Some files as the work of tasks."""
        return [Ranges(work) for work in share_out(parts, self.partition_bytes or None, True, PARTITION_BYTES)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The lines of the ranges of a task."""
        if not isinstance(partition, Ranges):
            return  # Spark makes one partition of no partitions
        prepare_worker()
        # Faults are told rather than raised, so that they can be placed in their files.
        how = parsing(
            "decimal", "null", self.duplicate_keys, DEFAULT_MAX_DEPTH, min(self.max_line_bytes, LARGEST_BYTES), None
        )
        for part in partition.parts:
            yield from self._read(part, how)

    def _read(self, part: Part, how: Parsing) -> Iterator[pa.RecordBatch]:
        place = place_of(part, self.storage_options)
        stamp, size = stamp_of(place)
        if size < part.size or (stamp != part.stamp and not isinstance(place, str)):  # a local one may have grown
            raise ChangedFileError(
                f"the file has {size} bytes and had {part.size} when this data frame was planned, or was replaced: "
                "read it again with a new data frame",
                path=part.name,
            )
        before, is_placed = 0, part.start == 0
        for piece in pieces_at(place, "lines", READ_BYTES, self.max_line_bytes, part.start, part.stop):
            _, arrays, found, lines = piece.parsed(how)
            if found and not is_placed:
                before, is_placed = lines_before(place, piece.start), True
            reasons = [placed(line_fault(fault, before), part.name) for fault in found]
            before += lines
            if reasons and self.raises:
                raise VariantError(f"{reasons[0]}{form_hint(line_fault(found[0]))}")
            for values in arrays:
                mine, reasons = reasons[: values.null_count], reasons[values.null_count :]
                if len(values):
                    yield self._batch(values, mine)

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
