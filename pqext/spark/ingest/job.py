"""Convert JSON files to shredded Parquet in Spark tasks, without passing rows through the JVM."""

from __future__ import annotations

import os
import pickle
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args
from zlib import decompress

import pyarrow as pa

from pqext.core.base.progress import Progress
from pqext.core.base.text import escape_text, with_noun
from pqext.core.io.sources.csv_text import find_duplicate
from pqext.core.options.read_write import WriteOptions, from_keywords
from pqext.dataset.writing import commit
from pqext.dataset.writing.appending import drop_columns, empty_file
from pqext.dataset.writing.dataset import SaveResult
from pqext.dataset.writing.ingest_records import Digest, dump_ingest_record
from pqext.dataset.writing.part_files import Division, WrittenFile, check_division
from pqext.dataset.writing.targets import Target, put_empty
from pqext.spark.base.files import is_remote, resolve_target
from pqext.spark.base.hadoop import check_storage_options, read_hadoop_options
from pqext.spark.base.progress import job_group, report_progress
from pqext.spark.base.settings import parse_codec, save_settings, session_setting, session_timezone
from pqext.spark.columns.timestamps import add_version, check_rebase_mode
from pqext.spark.ingest.ingested_files import (
    WRITER_DEFAULTS,
    ConcurrentIngestError,
    EarlierJobs,
    OnChangedArguments,
    combine_digests,
    encode_arguments,
)
from pqext.spark.ingest.task import Attempt, IngestConfig, IngestTask, StoppedError, parse_geometry, parse_partitions
from pqext.spark.json.csv_documents import CsvFormat
from pqext.spark.json.text_parts import Part, assign_parts, find_parts
from pqext.spark.options.save import add_profile
from pqext.spark.writing.sink import append_check, report_residual
from pqext.variant.json.documents import Form
from pqext.variant.json.parser import DEFAULT_MAX_BYTES, DuplicateKeys, Numbers
from pqext.variant.shredding.choice import parse_shredding, residual_shares

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OnError = Literal["fail", "null", "skip"]
Mode = Literal["append", "overwrite"]
_FORMS = (*get_args(Form), "csv")


@dataclass(frozen=True)
class IngestedFile:
    """Counts of an input file: written rows, bytes of text, and lines or documents that are not JSON."""

    path: str
    rows: int
    bytes: int
    bad_lines: int


@dataclass(frozen=True)
class IngestResult:
    """Result of :func:`ingest_json`: the input files, the written files and the shredding schema."""

    path: str
    files: tuple[IngestedFile, ...]
    """Files that this job read."""
    skipped: tuple[str, ...]
    """Files whose rows were already in the target."""
    written: tuple[WrittenFile, ...]
    """Parquet files, each with its rows, bytes and shredding."""
    schema: str | None
    """Shredding schema as DDL; None if values are not shredded."""
    bad_lines_file: str | None = None
    """File with a record for each invalid document, if it was requested and is not empty."""

    @property
    def residual(self) -> dict[str, float]:
        """Share of values that are in the residual, by path (``value: $.user.id``), without zero shares."""
        return residual_shares(file.residual for file in self.written)

    @property
    def rows(self) -> int:
        """Number of written rows."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Number of bytes of input text that were read."""
        return sum(file.bytes for file in self.files)

    @property
    def bad_lines(self) -> int:
        """Number of lines or documents that are not JSON."""
        return sum(file.bad_lines for file in self.files)

    def __str__(self) -> str:
        lines = [str(SaveResult(self.path, self.written))]
        if self.skipped:
            lines.append(f"  ingested before and skipped: {with_noun(len(self.skipped), 'file')}")
        if self.bad_lines:
            file = "" if self.bad_lines_file is None else f", listed in {escape_text(self.bad_lines_file)}"
            lines.append(f"  not JSON: {with_noun(self.bad_lines, 'document')}{file}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<pqext.spark.IngestResult: {self}>"


def ingest_json(
    spark: SparkSession,
    paths: str | Sequence[str],
    dest: str,
    schema: Any = "infer",
    geometry: Mapping[str, Any] | None = None,
    *,
    column: str = "value",
    mode: Mode = "append",
    on_error: OnError = "fail",
    error_column: str | None = None,
    bad_lines_file: bool = False,
    partition_by: Mapping[str, Any] | Sequence[str] | None = None,
    merge_schema: bool = False,
    max_records_per_file: int | None = None,
    target_file_bytes: int | None = None,
    format: Form | Literal["csv"] = "lines",
    csv: Mapping[str, Any] | None = None,
    again: bool = False,
    on_changed_arguments: OnChangedArguments = "raise",
    numbers: Numbers = "decimal",
    duplicate_keys: DuplicateKeys = "error",
    max_bytes: int = DEFAULT_MAX_BYTES,
    task_bytes: int | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> IngestResult:
    """Convert JSON documents to rows with a shredded VARIANT column in ``dest``, atomically, in Spark tasks.

    Each task reads, parses, shreds and writes a byte range. No rows pass through the JVM. The calling process lists the
    files, infers the schema and commits, so it needs access to ``paths`` and ``dest``.

    With ``mode="append"``, files whose rows are already in ``dest`` are skipped. A job can therefore be restarted after
    a failure, and jobs may run concurrently: each job checks again before it commits, and restarts without the files
    that another job committed. A file is identified by its path and size with its modification time or content, or with
    its version in an object store. A changed file is ingested in full, in addition to its earlier rows.

    Args:
        spark: The session.
        paths: Files, folders, patterns or URLs (``s3://``, ``s3a://``, ``gs://``, ``abfss://``, ``https://``, ...).
            Files with suffix ``.gz``, ``.bz2``, ``.zst``, ``.lz4``, ``.br`` or ``.xz`` are decompressed, each by one
            task.
        dest: A folder that the executors share, or a URL of ``s3://`` (needs boto3), ``gs://`` or ``abfss://`` (need
            obstore).
        schema: The shredding of the column, as in the writer's option ``shredding``. ``"infer"`` infers a schema for
            all files from the first documents of some of them. None does not shred.
        geometry: Geometry columns computed from paths within the documents: ``{"at": ("$.lon", "$.lat")}`` for points,
            with an optional third path for z, ``{"at": {"wkt": "$.shape"}}`` or ``{"at": {"geojson": "$.geometry"}}``.
            A mapping (with ``"points"`` for coordinates) also accepts ``crs``, ``edges``, ``order`` and the other
            settings of the writer's option ``geometry``.
        column: Name of the VARIANT column.
        mode: ``"append"``, or ``"overwrite"`` to replace the rows of all partitions.
        on_error: ``"fail"`` raises an error with file, line and reason for the first document that is not JSON or has
            an invalid geometry. ``"null"`` replaces the document or the geometry by null, and ``"skip"`` omits the row.
        error_column: Name of a string column with the reasons, for ``on_error="null"``.
        bad_lines_file: Write a file of JSON lines with a record for each invalid document: ``file``, ``offset`` (the
            first byte of the line; null for documents that span lines), ``message`` and ``raw`` (``raw_base64`` if it
            is not UTF-8). The driver holds these records in memory until the commit.
        partition_by: Paths within the documents whose values name folders, ``["$.kind", "$.at.year"]`` for columns
            ``kind`` and ``year``, or a mapping with other names and types, ``{"day": ("$.time", "date"), "kind":
            "$.kind"}``. Types are as in :func:`pqext.variant.get`, STRING by default; strings, integers, booleans
            and dates can name folders. Missing values, values that cannot be cast and empty strings are null.
        merge_schema: Accept rows whose columns differ from ``dest``, as in :func:`write`.
        max_records_per_file: Maximum number of rows in a file.
        target_file_bytes: Approximate size of a file. A task starts the next file at this size.
        format: ``"lines"`` for one document per line; ``"documents"``, ``"array"`` or ``"auto"`` for documents that
            span lines, as in :func:`pqext.variant.read_json`, so that one task reads a file; ``"csv"`` for documents in
            a column of CSV files.
        csv: The format of CSV files: ``document``, the column of the documents (``column`` by default); ``columns``, a
            mapping of further columns to types, ``{"id": "bigint"}``; ``delimiter``, ``quote`` and ``escape``, one
            character each; ``header``, the names of all columns if the first line does not contain them;
            ``null_words``, a list of unquoted fields that are null in addition to empty fields; ``encoding``, UTF-8 by
            default; ``skip_rows``, the number of lines before the header; and ``comment``, the character at the start
            of lines to skip.
        again: Ingest all files, including files whose rows are already in ``dest``.
        on_changed_arguments: ``"raise"`` raises ``ValueError`` if rows in ``dest`` were written with other arguments
            (schema, columns, options of the writer). ``"skip"`` retains these rows and skips their files.
        numbers: As in :func:`pqext.variant.parse_json`.
        duplicate_keys: As in :func:`pqext.variant.parse_json`.
        max_bytes: Maximum size of a document.
        task_bytes: Maximum number of bytes of text that a task reads. By default at most 256 MiB, with work for every
            processor.
        progress: Called by a separate thread with the number of completed tasks and the number of all tasks.
        storage_options: Credentials and other options for URLs, as in :func:`pqext.scan`. Spark's Hadoop settings by
            default.
        options: Options of the writer; ``encodings="auto"`` and ``profile="spark"`` by default. Settings of the session
            apply as in :func:`pqext.spark.write`.

    Returns:
        Counts of the input files, and the written files.

    Raises:
        VariantError: If a document is not JSON.
        CorruptFileError: If a file is malformed.
        FileNotFoundError: If there are no files.
        ValueError: If an argument is invalid.
        TypeError: If an argument has the wrong type.

    Example:
        >>> ingest_json(spark, "events/*.json.gz", "events.parquet", partition_by=["$.kind"])  # doctest: +SKIP
    """
    for name, value, choices in (
        ("on_error", on_error, OnError), ("mode", mode, Mode), ("format", format, _FORMS),
        ("on_changed_arguments", on_changed_arguments, OnChangedArguments),
    ):
        allowed = choices if isinstance(choices, tuple) else get_args(choices)
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
    if csv is not None and format != "csv":
        raise ValueError(f'csv requires format="csv", not {format!r}')
    csv_format = CsvFormat.parse(csv, column) if format == "csv" else None
    if error_column is not None and on_error != "null":
        raise ValueError(f'error_column requires on_error="null", not {on_error!r}')
    if bad_lines_file and on_error == "fail":
        raise ValueError(f'bad_lines_file requires on_error="null" or "skip", not {on_error!r}')
    if storage_options is not None:
        storage_options = check_storage_options(storage_options)
    else:
        remote = [path for path in (*([paths] if isinstance(paths, str) else paths), dest) if is_remote(path)]
        storage_options = read_hadoop_options(spark, remote) if remote else None
    computed, geometry_options = parse_geometry(geometry)
    partitions = parse_partitions(partition_by)
    names = [column, *(field.name for _, field in computed), *([] if error_column is None else [error_column])]
    names += [name for name, _, _ in partitions]
    names += [field.name for field in (csv_format.fields() if csv_format is not None else ())]
    duplicate = find_duplicate(names)
    if duplicate is not None:
        raise ValueError(
            f"several columns are named {duplicate!r}: rename them in column=, geometry=, partition_by=, error_column= "
            "or csv="
        )
    if "shredding" in options:
        raise TypeError("ingest_json does not accept shredding; pass it as schema=")
    if "partition_overwrite" in options:
        raise TypeError(
            'ingest_json does not accept partition_overwrite: mode="overwrite" replaces all rows of dest; to replace '
            "some partitions, write the rows with pqext.spark.write"
        )
    if task_bytes is not None and task_bytes < 1:
        raise ValueError(f"task_bytes must be positive, not {task_bytes}")
    settings = save_settings(session_setting(spark))
    if mode == "overwrite" and partitions and settings.get("partition_overwrite") == "dynamic":
        raise ValueError(
            'mode="overwrite" replaces all rows of dest, but spark.sql.sources.partitionOverwriteMode is dynamic, '
            "which retains partitions without new rows: set it to static, or write the rows with pqext.spark.write"
        )
    if max_records_per_file is None and (records := int(settings.get("max_records_per_file", 0))):
        max_records_per_file = records
    if "compression" in settings and "compression" not in options:
        options["compression"] = parse_codec(settings["compression"])
    options = {**WRITER_DEFAULTS, **options, **({"geometry": geometry_options} if geometry_options else {})}
    from_keywords(WriteOptions, options)
    division = Division(tuple(name for name, _, _ in partitions), max_records_per_file, target_file_bytes)
    config = IngestConfig(
        column, None if schema is None else parse_shredding(schema, "json"), numbers, duplicate_keys, max_bytes, format,
        on_error, error_column, computed, partitions, bad_lines_file, division, csv_format, storage_options,
        add_profile(options, "profile=None"), session_timezone(spark),
    )
    stored = config.schema(config.parser())
    check_division(division, stored)  # raises for wrong arguments
    if (mode_in_write := settings.get("datetime_rebase_mode", "corrected")) != "corrected":
        check_rebase_mode(mode_in_write, drop_columns(stored, division.partition_by))
    target = resolve_target(dest, storage_options)
    inputs = find_parts(paths, storage_options)
    arguments = encode_arguments(config, csv)
    while True:
        target.clean()
        earlier = EarlierJobs.read(target) if mode == "append" and not again else None
        parts, ingested = (inputs, []) if earlier is None else earlier.divide(inputs, arguments, on_changed_arguments)
        skipped = tuple(part.name for part in ingested)
        if not parts:
            return IngestResult(target.path, (), skipped, (), None)
        job_config = _resolve_schema(config, parts)
        work = assign_parts(parts, task_bytes, format == "lines")
        job = Job(
            spark, target, tuple(parts), job_config, arguments, work, mode == "overwrite", merge_schema, earlier,
            progress,
        )
        try:
            attempts, bad_lines = job.run()
        except ConcurrentIngestError:
            continue  # this loop ends, because each iteration means that another job has committed
        shredded = job_config.parser().schema
        result = IngestResult(
            target.path,
            tuple(_sum_files(parts, attempts)),
            skipped,
            tuple(staging.file for attempt in attempts for staging in attempt.written),
            None if shredded is None else str(job_config.shredding.schema),
            bad_lines,
        )
        report_residual(result.written)
        return result


def _resolve_schema(config: IngestConfig, parts: Sequence[Part]) -> IngestConfig:
    """Return a configuration with a fixed shredding schema, which is inferred from the files if requested."""
    parser = config.parser()
    if parser.undecided is None:
        return config
    sample = pa.chunked_array(config.sample(parts), type=parser.for_sampling().type)
    return replace(config, shredding=replace(config.shredding, schema=parser.undecided.schema_for(sample)))


@dataclass(frozen=True)
class Job:
    """Ingest job that runs tasks and commits the files that they write."""

    spark: SparkSession
    target: Target
    parts: tuple[Part, ...]
    config: IngestConfig
    arguments: Mapping[str, str]
    work: tuple[tuple[Part, ...], ...]
    overwrite: bool
    merge_schema: bool
    earlier: EarlierJobs | None
    """Records of earlier jobs when this job started; None if all files are ingested."""
    progress: Progress | None

    def run(self) -> tuple[list[Attempt], str | None]:
        """Run the tasks and commit their files. Returns the attempts, and the path of the file of bad lines or None."""
        division = self.config.division
        schema = drop_columns(self.config.schema(self.config.parser()), division.partition_by)
        # Writing an empty file rejects options that do not match the columns.
        empty = empty_file(schema, add_version(self.config.options))
        self.target.check(self.overwrite, append_check(lambda: empty, division.partition_by, self.merge_schema))
        job = uuid.uuid4().hex
        staged = self.target.begin(job, os.getpid())
        try:
            attempts = self._run_tasks(IngestTask(staged, job, self.work, self.config))
            written = [staging for attempt in attempts for staging in attempt.written]
            if not written and (self.overwrite or not self.target.has_files):
                put_empty(self.target, job, division.partition_by, empty)
            bad_lines = b"".join(decompress(result.bad_lines) for attempt in attempts for result in attempt.parts)
            if bad_lines:
                self.target.put(f"{commit.BAD_LINES}{job}.ndjson", bad_lines)
            entries = zip(self.parts, _sum_files(self.parts, attempts), strict=True)
            digests = _file_digests(attempts)
            files = [
                {"stamp": part.stamp, "digest": digests.get(part.path), **asdict(file)} for part, file in entries
            ]
            self.target.put(f"{commit.LOG}{job}.json", dump_ingest_record(files, self.arguments))
            earlier = self.earlier
            check = None if earlier is None else lambda: earlier.check(self.parts)
            self.target.commit(written, self.overwrite, check=check)
        except BaseException:
            self.target.abort()
            raise
        return attempts, f"{self.target.path}/{commit.BAD_LINES}{job}.ndjson" if bad_lines else None

    def _run_tasks(self, task: IngestTask) -> list[Attempt]:
        """Run the tasks and return their reports. Raises the first permanent error."""
        group = f"pqext-ingest-{task.job}"
        files = f"{len(self.parts):,} files" if len(self.parts) > 1 else self.parts[0].name
        total = len(self.work)
        with (
            job_group(self.spark, group, f"pqext: ingest {files} into {self.target.path}"),
            report_progress(self.spark, group, total, self.progress),
        ):
            rows = self.spark.range(0, total, 1, total).mapInArrow(task.run, "attempt binary").collect()
            attempts: list[Attempt] = [pickle.loads(row[0]) for row in rows]
            errors = [attempt.error for attempt in attempts if attempt.error is not None]
            if errors:
                raise min(errors, key=lambda error: isinstance(error, StoppedError))
            return attempts


def _file_digests(attempts: Sequence[Attempt]) -> dict[str, Digest | None]:
    """Return the digest of each file by path; None for files in object stores."""
    ranges: dict[str, list[tuple[Part, str | None]]] = {}
    for attempt in attempts:
        for result in attempt.parts:
            ranges.setdefault(result.part.path, []).append((result.part, result.digest))
    return {path: combine_digests(hashes) for path, hashes in ranges.items()}


def _sum_files(parts: Sequence[Part], attempts: Sequence[Attempt]) -> list[IngestedFile]:
    """Return the counts of each file, summed over its ranges."""
    sums = {part.path: [0, 0, 0] for part in parts}
    for attempt in attempts:
        for result in attempt.parts:
            total = sums[result.part.path]
            total[0] += result.rows
            total[1] += result.bytes
            total[2] += result.bad
    return [IngestedFile(part.name, *sums[part.path]) for part in parts]
