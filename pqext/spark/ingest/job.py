"""JSON files to shredded Parquet by Spark's tasks, without a row in the JVM."""

from __future__ import annotations

import os
import pickle
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args
from zlib import decompress

import pyarrow as pa

from pqext.core.options.read_write import WriteOptions, from_keywords
from pqext.dataset.writing import commit
from pqext.dataset.writing.appending import empty_file, without
from pqext.dataset.writing.ingest_notes import Digest, note_of
from pqext.dataset.writing.part_files import Division, WrittenFile, check_division
from pqext.dataset.writing.targets import Target, put_empty
from pqext.spark.base.files import is_remote, target_of
from pqext.spark.base.hadoop import from_hadoop
from pqext.spark.base.progress import ShowProgress, described, told
from pqext.spark.base.settings import codec_of, save_settings, session_setting
from pqext.spark.base.timezones import session_timezone
from pqext.spark.ingest.ingested_files import (
    WRITER_DEFAULTS,
    ChangedByAnotherJob,
    EarlierJobs,
    OnChangedArguments,
    content_of,
    text_of_arguments,
)
from pqext.spark.ingest.plan import Ingestion, made_columns, partition_columns
from pqext.spark.ingest.task import Attempt, IngestTask, Stopped
from pqext.spark.json.csv_documents import CsvForm
from pqext.spark.json.text_parts import Part, find_parts, share_out
from pqext.spark.options.save import with_profile
from pqext.spark.writing.appending import comparison
from pqext.variant.json.documents import Form
from pqext.variant.json.parser import DEFAULT_MAX_BYTES, DuplicateKeys, Numbers
from pqext.variant.shredding.choice import shredding
from pqext.variant.shredding.file_shredding import residual_shares

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OnError = Literal["fail", "null", "skip"]
Mode = Literal["append", "overwrite"]
_FORMS = (*get_args(Form), "csv")


@dataclass(frozen=True)
class IngestedFile:
    """What became of a file of input: rows written, bytes of text, and lines or documents that are not JSON."""

    path: str
    rows: int
    bytes: int
    bad_lines: int


@dataclass(frozen=True)
class Ingested:
    """What :func:`ingest_json` did."""

    files: tuple[IngestedFile, ...]
    """The files that were read now."""
    skipped: tuple[str, ...]
    """The files whose rows were there already."""
    written: tuple[WrittenFile, ...]
    """The Parquet files, each with its rows, bytes and shredding."""
    schema: str | None
    """The shredding schema as DDL; None where values are whole."""
    bad_lines_file: str | None = None
    """The file that tells of each document that has a fault, if there are any and it was asked for."""

    @property
    def residual(self) -> dict[str, float]:
        """The share of the values that stay in the residual, by path (``value: $.user.id``); without zeros."""
        return residual_shares(file.residual for file in self.written)

    @property
    def rows(self) -> int:
        """Rows that were written."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Bytes of text that were read."""
        return sum(file.bytes for file in self.files)

    @property
    def bad_lines(self) -> int:
        """Lines or documents that are not JSON."""
        return sum(file.bad_lines for file in self.files)


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
    form: Form | Literal["csv"] = "lines",
    csv: Mapping[str, Any] | None = None,
    again: bool = False,
    on_changed_arguments: OnChangedArguments = "raise",
    numbers: Numbers = "decimal",
    duplicate_keys: DuplicateKeys = "error",
    max_bytes: int = DEFAULT_MAX_BYTES,
    task_bytes: int | None = None,
    progress: ShowProgress | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Ingested:
    """Write JSON documents as rows of a shredded VARIANT column into folder ``dest``, in the tasks of ``spark``.

    Each task reads a range of bytes, parses, shreds and writes it without a row in the JVM. ``paths`` names files,
    folders, patterns or URLs (``s3://``, ``s3a://``, ``gs://``, ``abfss://``, ``https://``, ...), for which
    ``storage_options`` are as in :func:`pqext.scan`, by default what Spark's Hadoop settings say. Files whose names
    end in ``.gz``, ``.bz2`` or ``.zst`` are decompressed, each by one task. The process that calls this lists the
    files, infers the schema and commits, so it must reach ``paths`` and ``dest``: a folder of a file system that it
    shares with the executors, or of ``s3://`` (needs boto3), ``gs://`` or ``abfss://`` (which need obstore).

    ``schema`` is the shredding of the column, in every form that the writer's option ``shredding`` takes; ``"infer"``
    infers one for all files from the first documents of some of them, and None stores values whole. ``options`` are
    those of the writer; ``encodings`` is ``"auto"`` and ``profile`` is ``"spark"`` unless they are given.

    ``geometry`` adds columns made of paths within the documents: ``{"at": ("$.lon", "$.lat")}`` are points, with a
    third path for z, and ``{"at": {"wkt": "$.shape"}}`` or ``{"at": {"geojson": "$.geometry"}}`` geometries from text
    or GeoJSON objects. Such a mapping (with ``"points"`` for coordinates) also takes ``crs``, ``edges``, ``order`` and
    the other choices of the writer's option ``geometry``.

    ``form`` is ``"lines"`` for one document on each line. Documents that span lines need ``"documents"``, ``"array"``
    or ``"auto"``, as in :func:`pqext.variant.read_json`, and one task reads a whole file then. With ``"csv"`` they are
    in a column of CSV files. ``csv`` says how: ``document``, the column that holds them (``column`` by default);
    ``columns``, which maps others that are kept to their types, ``{"id": "bigint"}``; ``delimiter``, ``quote`` and
    ``escape``, one character each; ``header``, the names of all columns where the first line does not hold them;
    ``null_words``, a list of fields that are null, as empty ones are (in quotes they are text, ``""`` the empty one);
    ``encoding``, UTF-8 by default; ``skip_rows``, the number of lines before the heading; and ``comment``, the
    character at the start of lines to skip.

    The first document that is not JSON, or has a geometry that is none, ends the job with its file, line and reason.
    With ``on_error="null"`` the document or the geometry becomes null, and ``error_column`` names a string column that
    says why; with ``"skip"`` the row is left out. ``bad_lines_file=True`` also writes a file of JSON lines beside the
    rows, one for each of these documents: ``file``, ``offset`` (the byte of the text at which the line begins; null
    for documents over several lines), ``message``, and ``raw``, the text (``raw_base64`` where it is not UTF-8).
    The driver holds these lines until the commit.

    ``partition_by`` is a list of paths within the documents, ``["$.kind", "$.at.year"]``, whose values name folders
    and so become columns, here ``kind`` and ``year``. A mapping gives other names and types: ``{"day": ("$.time",
    "date"), "kind": "$.kind"}``. Types are those of :func:`pqext.variant.get`, STRING unless one is given; text, whole
    numbers, booleans and dates can name folders. What is missing or does not cast is null there, as is the empty text.
    ``max_records_per_file`` and ``target_file_bytes`` begin another file where one would become larger. Settings of the
    session count as in :func:`pqext.spark.write`, but an overwrite replaces all partitions.

    ``merge_schema=True`` lets the rows have other columns than ``dest``, as in :func:`write`.

    The save happens whole or not at all, as that of data source ``pqext``. With ``mode="append"``, a file whose rows
    are in ``dest`` already is skipped, so that a job can be started again after a failure and several jobs can overlap:
    each job checks again before it commits, and starts again without the files that another job has committed. A file
    is the same file if its path, size and modification time are the same, or its path, size and content; in a store,
    if its path, size and version are. A file that has changed is read in full, in addition to its earlier rows.
    ``again=True`` reads all files once more, and ``mode="overwrite"`` replaces the rows. If the rows were written with
    other arguments (schema, columns, options of the writer), nothing is written and ``ValueError`` names the
    difference; ``on_changed_arguments="skip"`` keeps these rows and skips their files.

    ``task_bytes`` is the text that a task reads at most; by default every processor gets work, and a task at most
    256 MiB. ``progress`` is called with the number of tasks that are done and of all, by a thread of its own, and
    Spark's pages show the job by a description.

    Raises ``VariantError``, ``CorruptFileError`` and other errors of pqext for what is wrong with a file,
    ``FileNotFoundError`` for paths without files, and ``ValueError`` or ``TypeError`` for wrong arguments.
    """
    for name, given, words in (
        ("on_error", on_error, OnError), ("mode", mode, Mode), ("form", form, _FORMS),
        ("on_changed_arguments", on_changed_arguments, OnChangedArguments),
    ):
        allowed = words if isinstance(words, tuple) else get_args(words)
        if given not in allowed:
            raise ValueError(f"{name} is one of {', '.join(map(repr, allowed))}, not {given!r}")
    if csv is not None and form != "csv":
        raise ValueError(f'csv says how files of CSV hold documents, so it needs form="csv", not {form!r}')
    of_csv = CsvForm.of(csv, column) if form == "csv" else None
    if error_column is not None and on_error != "null":
        raise ValueError('an error_column tells of null rows, so it needs on_error="null"')
    if bad_lines_file and on_error == "fail":
        raise ValueError('a bad_lines_file tells of what is left out, so it needs on_error="null" or "skip"')
    if storage_options is None:
        remote = [path for path in (*([paths] if isinstance(paths, str) else paths), dest) if is_remote(path)]
        storage_options = from_hadoop(spark, remote) if remote else None
    made, choices = made_columns(geometry)
    partitions = partition_columns(partition_by)
    names = [column, *(marked.name for _, marked in made), *([] if error_column is None else [error_column])]
    names += [name for name, _, _ in partitions]
    names += [one.name for one in (of_csv.fields() if of_csv is not None else ())]
    if len(set(names)) < len(names):
        raise ValueError(f"two columns have one name: {', '.join(map(repr, names))}")
    if "shredding" in options:
        raise TypeError("schema says how the column is shredded: leave out shredding")
    if task_bytes is not None and task_bytes < 1:
        raise ValueError(f"task_bytes must be positive, not {task_bytes}")
    settings = save_settings(session_setting(spark))
    if mode == "overwrite" and partitions and settings.get("partition_overwrite") == "dynamic":
        raise ValueError(
            'mode="overwrite" replaces all rows of dest, and spark.sql.sources.partitionOverwriteMode is dynamic, '
            "which keeps partitions without new rows: set it to static, or write the rows by pqext.spark.write"
        )
    if max_records_per_file is None and (records := int(settings.get("max_records_per_file", 0))):
        max_records_per_file = records
    if "compression" in settings and "compression" not in options:
        options["compression"] = codec_of(settings["compression"])
    options = {**WRITER_DEFAULTS, **options, **({"geometry": choices} if choices else {})}
    from_keywords(WriteOptions, options)
    division = Division(tuple(name for name, _, _ in partitions), max_records_per_file, target_file_bytes)
    how = Ingestion(
        column, None if schema is None else shredding(schema, "json"), numbers, duplicate_keys, max_bytes, form,
        on_error, error_column, made, partitions, bad_lines_file, division, of_csv, storage_options,
        with_profile(options, "profile=None"), session_timezone(spark),
    )
    check_division(division, how.schema(how.parsing()))  # wrong arguments are told now
    target = target_of(dest, storage_options)
    found = find_parts(paths, storage_options)
    arguments = text_of_arguments(how, csv)
    while True:
        target.clean()
        earlier = EarlierJobs.of(target) if mode == "append" and not again else None
        parts, ingested = (found, []) if earlier is None else earlier.divide(found, arguments, on_changed_arguments)
        skipped = tuple(part.name for part in ingested)
        if not parts:
            return Ingested((), skipped, (), None)
        decided = _with_schema(how, parts)
        work = share_out(parts, task_bytes, form == "lines")
        job = Job(
            spark, target, tuple(parts), decided, arguments, work, mode == "overwrite", merge_schema, earlier, progress
        )
        try:
            attempts, told = job.run()
        except ChangedByAnotherJob:
            continue  # each time, another job has committed
        shredded = decided.parsing().schema
        return Ingested(
            tuple(_of_files(parts, attempts)),
            skipped,
            tuple(one.file for attempt in attempts for one in attempt.written),
            None if shredded is None else str(decided.shredding.schema),
            told,
        )


def _with_schema(how: Ingestion, parts: Sequence[Part]) -> Ingestion:
    """The ingestion with its shredding schema, inferred from the files if it is not decided."""
    parsing = how.parsing()
    if parsing.undecided is None:
        return how
    sample = pa.chunked_array(how.sample(parts), type=parsing.unshredded().type)
    return replace(how, shredding=replace(how.shredding, schema=parsing.undecided.schema_for(sample)))


@dataclass(frozen=True)
class Job:
    """Work for Spark's tasks, and what is committed of it."""

    spark: SparkSession
    target: Target
    parts: tuple[Part, ...]
    how: Ingestion
    arguments: Mapping[str, str]
    work: tuple[tuple[Part, ...], ...]
    overwrite: bool
    merge_schema: bool
    earlier: EarlierJobs | None
    """What other jobs had ingested when this one began; None if the files are read whatever others did."""
    progress: ShowProgress | None

    def run(self) -> tuple[list[Attempt], str | None]:
        """Have tasks do the work, and commit what they wrote; gives the side file of bad lines, too."""
        division = self.how.division
        schema = without(self.how.schema(self.how.parsing()), division.partition_by)
        empty = empty_file(schema, self.how.options)  # which tells options that do not suit the columns
        self.target.check(self.overwrite, comparison(lambda: empty, division.partition_by, self.merge_schema))
        job = uuid.uuid4().hex
        staged = self.target.begin(job, os.getpid())
        try:
            attempts = self._attempts(IngestTask(staged, job, self.work, self.how))
            written = [one for attempt in attempts for one in attempt.written]
            if not written and (self.overwrite or not self.target.has_files):
                put_empty(self.target, job, division.partition_by, empty)
            told = b"".join(decompress(one.told) for attempt in attempts for one in attempt.taken)
            if told:
                self.target.put(f"{commit.BAD_LINES}{job}.ndjson", told)
            entries = zip(self.parts, _of_files(self.parts, attempts), strict=True)
            digests = _digests(attempts)
            files = [
                {"stamp": part.stamp, "digest": digests.get(part.path), **asdict(file)} for part, file in entries
            ]
            self.target.put(f"{commit.LOG}{job}.json", note_of(files, self.arguments))
            earlier = self.earlier
            check = None if earlier is None else lambda: earlier.check(self.parts)
            self.target.commit(written, self.overwrite, check=check)
        except BaseException:
            self.target.abort()
            raise
        return attempts, f"{self.target.path}/{commit.BAD_LINES}{job}.ndjson" if told else None

    def _attempts(self, task: IngestTask) -> list[Attempt]:
        """What the tasks that Spark counts report. Raises the first error that would come again."""
        group = f"pqext-ingest-{task.job}"
        files = f"{len(self.parts):,} files" if len(self.parts) > 1 else self.parts[0].name
        total = len(self.work)
        with (
            described(self.spark, group, f"pqext: ingest {files} into {self.target.path}"),
            told(self.spark, group, total, self.progress),
        ):
            rows = self.spark.range(0, total, 1, total).mapInArrow(task.run, "attempt binary").collect()
            attempts: list[Attempt] = [pickle.loads(row[0]) for row in rows]
            errors = [attempt.error for attempt in attempts if attempt.error is not None]
            if errors:
                raise min(errors, key=lambda error: isinstance(error, Stopped))
            return attempts


def _digests(attempts: Sequence[Attempt]) -> dict[str, Digest | None]:
    """The content of each file, by its path."""
    ranges: dict[str, list[tuple[Part, str | None]]] = {}
    for attempt in attempts:
        for one in attempt.taken:
            ranges.setdefault(one.part.path, []).append((one.part, one.digest))
    return {path: content_of(found) for path, found in ranges.items()}


def _of_files(parts: Sequence[Part], attempts: Sequence[Attempt]) -> list[IngestedFile]:
    """What was taken from each file, summed over its ranges."""
    sums = {part.path: [0, 0, 0] for part in parts}
    for attempt in attempts:
        for one in attempt.taken:
            total = sums[one.part.path]
            total[0] += one.rows
            total[1] += one.bytes
            total[2] += one.bad
    return [IngestedFile(part.name, *sums[part.path]) for part in parts]
