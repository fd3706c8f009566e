"""Convert JSON text to Parquet files in a Spark task of :func:`pqext.spark.ingest_json`.

The driver creates the configuration of the job and sends it to the tasks. Spark may retry a task or run it twice
concurrently. Each attempt writes files with unique names, and the driver commits only the files of attempts that Spark
reports.
"""

from __future__ import annotations

import base64
import json
import pickle
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal
from zlib import compress

import numpy as np
import pyarrow as pa

from pqext.core.base.errors import ChangedFileError, GeometryError, ParquetError, SourceError, VariantError
from pqext.dataset.computed_columns import ColumnRecipe, column_function, compute_column, variant_path
from pqext.dataset.writing.part_files import Division, PartFiles, StagedFile
from pqext.dataset.writing.staging import StagingArea
from pqext.geo.types import geometry_field
from pqext.spark.columns.timestamps import add_version
from pqext.spark.json.csv_documents import CsvFormat, CsvRows, read_csv_rows
from pqext.spark.json.text_parts import (
    READ_BYTES,
    Part,
    count_preceding_lines,
    fault_message,
    fault_remedy,
    hash_range,
    locate_part,
    read_stamp,
)
from pqext.variant.access.cast import extract
from pqext.variant.access.path import as_path
from pqext.variant.access.targets import target_type
from pqext.variant.json.documents import SAMPLE_BYTES
from pqext.variant.json.faults import line_fault
from pqext.variant.json.files import TextChunk, read_chunks
from pqext.variant.json.parser import DEFAULT_MAX_DEPTH, JsonParser, create_parser
from pqext.variant.timezones import DEFAULT
from pqext.variant.types import variant_field

_SAMPLED_FILES = 4
_GEOMETRIES: tuple[Literal["points", "wkt", "geojson"], ...] = ("points", "wkt", "geojson")
_ADVICE = 'on_error="null" or "skip" continues without it'


@dataclass(frozen=True)
class IngestConfig:
    """Parsed arguments of an ingest job, except its paths, for the conversion of documents to rows."""

    column: str
    shredding: Any
    numbers: str
    duplicate_keys: str
    max_bytes: int
    format: str
    on_error: str
    error_column: str | None
    geometry_columns: tuple[tuple[ColumnRecipe, pa.Field], ...]
    partitions: tuple[tuple[str, str, str], ...]
    """Name, path and type of each partition column."""
    has_bad_lines_file: bool
    division: Division
    csv: CsvFormat | None
    """Format of CSV files with documents; None for JSON files."""
    storage_options: Mapping[str, Any] | None = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    timezone: str = DEFAULT
    """Time zone of local times in partition columns."""

    def parser(self) -> JsonParser:
        """Return a parser that reports errors instead of raising them, so that messages can include the location."""
        return create_parser(
            self.numbers, "null", self.duplicate_keys, DEFAULT_MAX_DEPTH, self.max_bytes, self.shredding
        )

    def schema(self, parser: JsonParser) -> pa.Schema:
        """Return the schema of the written files."""
        fields = [variant_field(self.column) if parser.schema is None else pa.field(self.column, parser.type)]
        fields += [field for _, field in self.geometry_columns]
        fields += self.csv_fields
        if self.error_column is not None:
            fields.append(pa.field(self.error_column, pa.string()))
        fields += [pa.field(name, target_type(type)) for name, _, type in self.partitions]
        return pa.schema(fields)

    @property
    def csv_fields(self) -> list[pa.Field]:
        """Fields of the CSV columns other than the documents."""
        return [] if self.csv is None else self.csv.fields()

    @property
    def unit(self) -> str:
        """Unit of positions in messages, ``line`` or ``row``."""
        return "line" if self.csv is None else "row"

    def locate(self, part: Part) -> Any:
        """Return the location of the file that contains a part."""
        return locate_part(part, self.storage_options)

    def chunks(self, part: Part) -> Iterator[TextChunk | CsvRows]:
        """Yield the text of a file, or of a range of a file, in chunks."""
        if self.csv is not None:
            yield from read_csv_rows(self.locate(part), self.csv)
            return
        layout: Any = self.format
        yield from read_chunks(self.locate(part), layout, READ_BYTES, self.max_bytes, part.start, part.stop)

    def sample(self, parts: Sequence[Part]) -> list[pa.StructArray]:
        """Parse the first documents of up to ``_SAMPLED_FILES`` files, to infer the schema."""
        step = max(1, len(parts) // _SAMPLED_FILES)
        sampled = parts[::step][:_SAMPLED_FILES]
        arrays: list[pa.StructArray] = []
        for part in sampled:
            for chunk in islice(self.chunks(part), 1):
                arrays += chunk.sample(self.parser(), SAMPLE_BYTES // len(sampled))
        return arrays


def parse_geometry(
    geometry: Mapping[str, Any] | None,
) -> tuple[tuple[tuple[ColumnRecipe, pa.Field], ...], dict[str, Any]]:
    """Parse argument ``geometry``. Returns the columns computed from paths, and option ``geometry`` of the writer.

    Raises ``ValueError`` or ``TypeError`` for an invalid argument.
    """
    columns, options = [], {}
    for name, argument in (geometry or {}).items():
        choice = dict(argument) if isinstance(argument, Mapping) else {"points": argument}
        formats = [format for format in _GEOMETRIES if format in choice]
        if len(formats) != 1:
            result = " and ".join(formats) or "no paths"
            raise ValueError(f"geometry {name!r} has {result}: pass one of 'points', 'wkt' and 'geojson'")
        format, paths = formats[0], choice.pop(formats[0])
        paths = (paths,) if isinstance(paths, str) else tuple(paths)
        counts = (2, 3) if format == "points" else (1,)
        if len(paths) not in counts or not all(isinstance(path, str) for path in paths):
            expected = 'two or three paths, as in ("$.lon", "$.lat")' if format == "points" else "one path"
            raise ValueError(f"geometry {name!r}: {format} needs {expected}, not {paths!r}")
        for path in paths:
            as_path(variant_path(path))
        field = geometry_field(name, choice.get("crs"), choice.get("edges", "planar"))
        columns.append((ColumnRecipe(format, name, paths), field))
        if choice:
            options[name] = choice
    return tuple(columns), options


def parse_partitions(partition_by: Mapping[str, Any] | Sequence[str] | None) -> tuple[tuple[str, str, str], ...]:
    """Parse argument ``partition_by``. Returns the name, path and type of each partition column.

    Raises ``ValueError`` or ``TypeError`` for an invalid argument.
    """
    if isinstance(partition_by, str):
        raise TypeError(f"partition_by must be a list of paths or a mapping of names to paths, not {partition_by!r}")
    if isinstance(partition_by, Mapping):
        columns: Mapping[str, Any] = partition_by
    else:
        paths = list(partition_by or ())
        columns = {_last_key(path): path for path in paths}
        if len(columns) < len(paths):
            listed = ", ".join(map(repr, paths))
            raise ValueError(f"partition_by: two of {listed} end with the same key; pass a mapping of names to paths")
    parsed = []
    for name, choice in columns.items():
        path, type = (choice, "string") if isinstance(choice, str) else tuple(choice)
        as_path(variant_path(path))
        target_type(type)
        parsed.append((name, variant_path(path), type))
    return tuple(parsed)


def _last_key(path: str) -> str:
    key = as_path(variant_path(path))[-1:]
    if not key or not isinstance(key[0], str):
        raise ValueError(f"partition_by: {path!r} does not end with a key; pass a mapping of names to paths")
    return key[0]


@dataclass
class PartResult:
    """Result of a part: counts of rows, bytes of text and invalid documents, and records of invalid documents."""

    part: Part
    rows: int = 0
    bytes: int = 0
    bad: int = 0
    bad_lines: bytearray = field(default_factory=bytearray)
    """Compressed lines of the file of invalid documents."""
    digest: str | None = None
    """Hash of the bytes; None for files in object stores, whose stamps are versions."""


@dataclass(frozen=True)
class Attempt:
    """Report of an attempt to run a task: the results of the parts that it read, and the files that it wrote."""

    parts: tuple[PartResult, ...] = ()
    written: tuple[StagedFile, ...] = ()
    error: ParquetError | None = None


class StoppedError(ParquetError):
    """A task was stopped because another task failed."""


@dataclass(frozen=True)
class IngestTask:
    """Task function that ingests the parts of each task in ``work`` into the staging area of a job."""

    staged: StagingArea
    job: str
    work: tuple[tuple[Part, ...], ...]
    config: IngestConfig

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a pickled :class:`Attempt` for each task number."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                report = pickle.dumps(self.attempt(number))
                yield pa.RecordBatch.from_arrays([pa.array([report], pa.binary())], ["attempt"])

    def attempt(self, number: int) -> Attempt:
        """Run task ``number``, and return its report.

        Permanent errors are reported instead of raised, because Spark would retry the task.
        """
        self.staged.check()
        try:
            return self._write(number, f"part-{number:05d}-{self.job}-{uuid.uuid4().hex[:12]}")
        except ParquetError as error:
            if isinstance(error, SourceError) and not isinstance(error, ChangedFileError):
                raise
            self.staged.fail()
            return Attempt(error=error.with_traceback(None))

    def _write(self, number: int, name: str) -> Attempt:
        parser = self.config.parser()
        schema = self.config.schema(parser)
        results = [PartResult(part) for part in self.work[number]]
        options = add_version(self.config.options)
        with PartFiles(self.staged, name, schema, options, self.config.division) as files:
            for result in results:
                for batch in self._batches(result, parser, schema):
                    if self.staged.has_failed:
                        raise StoppedError("the task was stopped because another task failed")
                    files.write(batch)
            return Attempt(tuple(results), files.close())

    def _batches(self, result: PartResult, parser: JsonParser, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part in batches, and count them in ``result``."""
        part, config = result.part, self.config
        functions = [(column_function(column, config.column), target) for column, target in config.geometry_columns]
        partitions = [(as_path(path), type) for _, path, type in config.partitions]
        bad_lines: list[bytes] = []
        preceding_lines, is_line_known, document = 0, part.start == 0, 0
        for chunk in config.chunks(part):
            _, arrays, errors, lines = chunk.parse(parser)
            result.bytes += len(chunk.text)
            if errors and not is_line_known:
                preceding_lines, is_line_known = count_preceding_lines(config.locate(part), chunk.start), True
            faults = [line_fault(error, preceding_lines) for error in errors]
            preceding_lines += lines
            result.bad += len(faults)
            texts: list[tuple[int | None, bytes]] | None = None
            first = 0
            if faults and config.on_error == "fail":
                words = fault_message(faults[0], part, config.unit)
                raise VariantError(f"{words}{fault_remedy(faults[0], chunk.text, config.unit)}; {_ADVICE}")
            for array in arrays:
                # Only invalid documents are null rows: JSON null is a variant.
                array_faults, faults = faults[: array.null_count], faults[array.null_count :]
                rows = np.flatnonzero(array.is_null()) if array_faults else ()
                reasons = {
                    int(row): fault_message(fault, part, config.unit)
                    for row, fault in zip(rows, array_faults, strict=True)
                }
                columns = [array]
                for make_column, target in functions:
                    documents_batch = pa.RecordBatch.from_arrays([array], [config.column])
                    geometries, invalid = compute_column(make_column, documents_batch)
                    columns.append(geometries.cast(target.type))
                    for row, reason in invalid:
                        location = f"{part.name}, document {document + row + 1} from byte {part.start}"
                        reasons.setdefault(row, f"{location}, column {target.name}: {reason}")
                if reasons and config.on_error == "fail":
                    raise GeometryError(f"{reasons[min(reasons)]}; {_ADVICE}")
                result.bad += len(reasons) - len(array_faults)
                if reasons and config.has_bad_lines_file:
                    texts = texts or split_documents(chunk)
                    bad_lines.append(bad_line_records(part.name, texts[first : first + len(array)], reasons))
                if isinstance(chunk, CsvRows):
                    columns += chunk.columns.slice(first, len(array)).columns
                document += len(array)
                first += len(array)
                columns += [extract(array, path, type, timezone=config.timezone) for path, type in partitions]
                batch = self._build_batch(columns, reasons, schema)
                result.rows += len(batch)
                if len(batch):
                    yield batch
        result.bad_lines += compress(b"".join(bad_lines))
        location = config.locate(part)
        if isinstance(location, str):
            result.digest = hash_range(location, part.start, part.size if part.stop is None else part.stop)
        if read_stamp(location)[0] != part.stamp:
            raise ChangedFileError("the file has changed since it was listed; run the job again", path=part.name)

    def _build_batch(self, columns: list[pa.Array], reasons: Mapping[int, str], schema: pa.Schema) -> pa.RecordBatch:
        """Build the batch to write: add the error column if requested, and drop invalid rows if they are skipped.

        ``reasons`` maps the positions of invalid rows to their errors.
        """
        rows = len(columns[0])
        if self.config.error_column is not None:
            errors = [reasons.get(row) for row in range(rows)] if reasons else pa.nulls(rows, pa.string())
            position = 1 + len(self.config.geometry_columns) + len(self.config.csv_fields)
            columns.insert(position, pa.array(errors, pa.string()))
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        if not reasons or self.config.on_error != "skip":
            return batch
        return batch.filter(pa.array([row not in reasons for row in range(rows)]))


def split_documents(chunk: TextChunk | CsvRows) -> list[tuple[int | None, bytes]]:
    """Return the offset in the file, if known, and the text of each document of a chunk."""
    if isinstance(chunk, CsvRows):
        return [(None, text) for text in chunk.documents.to_pylist()]
    text = bytes(chunk.text)
    if chunk.ends is None:
        lines: list[tuple[int | None, bytes]] = []
        offset = chunk.start
        for line in text.split(b"\n"):
            if line.strip(b" \t\r\n"):
                lines.append((offset, line.removesuffix(b"\r")))
            offset += len(line) + 1
        return lines
    starts = [0, *map(int, chunk.ends[:-1])]
    spans = zip(starts, map(int, chunk.ends), strict=True)
    return [(None, text[start:stop].strip(b" \t\r\n,")) for start, stop in spans]


def _bad_line_record(file: str, offset: int | None, message: str, raw: bytes) -> bytes:
    record: dict[str, object] = {"file": file, "offset": offset, "message": message}
    try:
        record["raw"] = raw.decode()
    except UnicodeDecodeError:
        record["raw_base64"] = base64.b64encode(raw).decode()
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def bad_line_records(file: str, rows: list[tuple[int | None, bytes]], reasons: Mapping[int, str]) -> bytes:
    """Format lines of the bad-lines file: one line for each row of ``rows`` with a reason in ``reasons``."""
    records = []
    for row in sorted(reasons):
        offset, raw = rows[row]
        records.append(_bad_line_record(file, offset, reasons[row], raw))
    return b"".join(records)
