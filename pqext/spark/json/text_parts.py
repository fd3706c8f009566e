"""Split text files into ranges of lines, or combine files, for tasks; read ranges of JSON lines in the tasks."""

from __future__ import annotations

import dataclasses
import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import xxhash
from pyspark.sql.datasource import DataSourceReader, InputPartition

from pqext.core.base.errors import ChangedFileError, VariantError
from pqext.core.base.local_paths import scheme_of
from pqext.core.io.sources.locations import locate
from pqext.core.io.sources.store import Location
from pqext.core.io.sources.streams import codec_of, open_stream
from pqext.spark.base.arrays import conform
from pqext.spark.base.errors import concise_errors, use_spark_names
from pqext.spark.base.files import is_remote, list_sources, local_path, slice_bytes
from pqext.spark.base.worker_process import prepare_worker
from pqext.variant.json.documents import count_newlines
from pqext.variant.json.faults import LineFault, describe_fault, line_fault, remedy, spans_lines
from pqext.variant.json.files import read_chunks
from pqext.variant.json.parser import DEFAULT_MAX_DEPTH, LARGEST_BYTES, JsonParser, create_parser

READ_BYTES = 8 << 20
"""Bytes of text that are parsed into a batch, unless a line is longer."""
TASK_BYTES = 256 << 20
"""Maximum number of bytes of text in a task, unless a line or a file that cannot be split is longer."""
_PACKED = 5
"""Assumed compression ratio of compressed files."""
PARTITION_BYTES = 32 << 20


@dataclass(frozen=True)
class Part:
    """Input file, or its lines that begin at or after byte ``start`` and before ``stop``.

    ``path`` opens the file, ``name`` identifies it, whatever the spelling of its path, and ``stamp`` identifies its
    version.
    """

    path: str
    name: str
    stamp: str
    size: int
    start: int = 0
    stop: int | None = None


def find_parts(paths: str | Sequence[str], storage_options: Mapping[str, Any] | None) -> list[Part]:
    """Return one part for each file in ``paths``: paths or URLs of files and folders, or glob patterns.

    Raises ``ValueError`` if there are no paths, and ``FileNotFoundError`` for a path that does not exist.
    """
    names = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    if not names:
        raise ValueError("the list of paths is empty: pass at least one file, folder, pattern or URL")
    files: dict[str, tuple[str, str | Location]] = {}
    for name in names:
        if not name:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        source = name if is_remote(name) else local_path(name)
        storage = storage_options if is_remote(name) else None
        sources = list_sources([source], storage, ignore_table_format=True)  # tables do not contain text files
        files |= {_unique_name(location): (file, location) for file, location in sources}
    return create_parts(files.values())


def _unique_name(location: str | Location) -> str:
    """Return a unique name of a file: its path without links, ``.`` and ``..``, or its URL without credentials."""
    return os.path.realpath(location) if isinstance(location, str) else location.path


def create_parts(files: Iterable[tuple[str, Any]]) -> list[Part]:
    """Create parts for complete files, given their paths or URLs and their locations."""
    return [
        Part(file, _unique_name(location), *read_stamp(location)) for file, location in files
    ]


def read_stamp(location: str | Location) -> tuple[str, int]:
    """Return the version identifier and the size of a file."""
    if isinstance(location, str):
        stat = os.stat(location)
        return f"{stat.st_size} {stat.st_mtime_ns}", stat.st_size
    with location.open() as source:
        return f"{source.size} {getattr(source, 'version', None) or ''}".strip(), source.size


def hash_range(path: str, start: int, stop: int) -> str:
    """Hash a byte range of a local file."""
    digest = xxhash.xxh3_128()
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        while start < stop and (data := file.read(min(READ_BYTES, stop - start))):
            digest.update(data)
            start += len(data)
    return digest.hexdigest()


def assign_parts(
    parts: Iterable[Part], task_bytes: int | None, can_split: bool, max_bytes: int = TASK_BYTES
) -> tuple[tuple[Part, ...], ...]:
    """Assign parts to tasks: large files are split into ranges, and small files are combined.

    Files are split only if ``can_split`` and if they are not compressed. A task reads at most ``task_bytes``, by
    default :func:`slice_bytes` of the total and ``max_bytes``.
    """
    weighed = [(part, part.size * (1 if codec_of(part.path) is None else _PACKED)) for part in parts]
    step = task_bytes or slice_bytes(sum(weight for _, weight in weighed), max_bytes)
    tasks: list[tuple[Part, ...]] = []
    packed: list[Part] = []
    packed_bytes = 0
    for part, weight in weighed:
        if can_split and weight > step and codec_of(part.path) is None:
            count = -(-part.size // step)
            bounds = [part.size * i // count for i in range(count + 1)]
            tasks += [
                (Part(part.path, part.name, part.stamp, part.size, start, stop),)
                for start, stop in pairwise(bounds)
            ]
            continue
        if packed and packed_bytes + weight > step:
            tasks.append(tuple(packed))
            packed, packed_bytes = [], 0
        packed.append(part)
        packed_bytes += weight
    return (*tasks, *([tuple(packed)] if packed else []))


def locate_part(part: Part, storage_options: Mapping[str, Any] | None) -> str | Location:
    """Return the location of the file that contains a part."""
    options = storage_options if scheme_of(part.path) is not None else None
    location: str | Location = locate(part.path, None, options)
    return location


def count_preceding_lines(location: str | Location, offset: int) -> int:
    """Count the lines before a byte of an uncompressed file."""
    with open_stream(location) as file:
        return count_newlines(file, offset)


def fault_message(fault: LineFault, part: Part, unit: str = "line") -> str:
    """Describe a fault with its file and line, with Spark's names for options."""
    return use_spark_names(describe_fault(fault, part.name, unit=unit))


def fault_remedy(fault: LineFault, text: memoryview | bytes, unit: str = "line") -> str:
    """Return the remedy for a fault in ``text``, or an empty string."""
    if unit == "line" and spans_lines(fault):
        return '; an array or a document that spans lines needs ingest_json(format="array") or format="documents"'
    return remedy(fault.reason, text)


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
        parser = create_parser(
            "decimal", "null", self.duplicate_keys, DEFAULT_MAX_DEPTH, min(self.max_line_bytes, LARGEST_BYTES), None
        )
        for part in partition.parts:
            yield from self._read_part(part, parser)

    def _read_part(self, part: Part, parser: JsonParser) -> Iterator[pa.RecordBatch]:
        location = locate_part(part, self.storage_options)
        stamp, size = read_stamp(location)
        if size < part.size or (stamp != part.stamp and not isinstance(location, str)):  # local files may grow
            raise ChangedFileError(
                f"the file was changed or replaced after this data frame was planned (planned {part.size} bytes, "
                f"found {size}); create a new data frame to read it",
                path=part.name,
            )
        preceding_lines, is_line_known = 0, part.start == 0
        for chunk in read_chunks(location, "lines", READ_BYTES, self.max_line_bytes, part.start, part.stop):
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
                    yield self._build_batch(values, array_reasons)

    def _build_batch(self, values: pa.Array, reasons: list[str]) -> pa.RecordBatch:
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
