"""JSON files to shredded Parquet by Spark's tasks, without a row in the JVM."""

from __future__ import annotations

import os
import pickle
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from pqext.core.options import WriteOptions, from_keywords
from pqext.spark import commit
from pqext.spark.files import local_path
from pqext.spark.ingest_plan import Ingestion, Part, find_parts, ingested, log_of, made_columns, share_out
from pqext.spark.ingest_task import Attempt, IngestTask, Stopped
from pqext.spark.sink import check_target, empty_file, with_profile
from pqext.variant.json.documents import Form
from pqext.variant.json.parser import DEFAULT_MAX_BYTES, DuplicateKeys, Numbers
from pqext.variant.shredding.choice import shredding

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OnError = Literal["fail", "null", "skip"]
Mode = Literal["append", "overwrite"]


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
    written: tuple[tuple[str, int], ...]
    """The Parquet files, each a name and a number of bytes."""
    schema: str | None
    """The shredding schema as DDL; None where values are whole."""

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
    form: Form = "lines",
    again: bool = False,
    numbers: Numbers = "decimal",
    duplicate_keys: DuplicateKeys = "error",
    max_bytes: int = DEFAULT_MAX_BYTES,
    task_bytes: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Ingested:
    """Write JSON documents as rows of a shredded VARIANT column into folder ``dest``, in the tasks of ``spark``.

    Each task reads a range of bytes, parses, shreds and writes it without a row in the JVM. ``paths`` names files,
    folders, patterns or URLs (``s3://``, ``s3a://``, ``gs://``, ``abfss://``, ``https://``, ...), for which
    ``storage_options`` are as in :func:`pqext.scan`. Files whose names end in ``.gz``, ``.bz2`` or ``.zst`` are
    decompressed, each by one task. The process that calls this lists the files, infers the schema and commits, so it
    must reach ``paths`` and ``dest``, a folder of a file system that it shares with the executors.

    ``schema`` is the shredding of the column, in every form that the writer's option ``shredding`` takes; ``"infer"``
    infers one for all files from the first documents of some of them, and None stores values whole. ``options`` are
    those of the writer; ``encodings`` is ``"auto"`` and ``profile`` is ``"spark"`` unless they are given.

    ``geometry`` adds columns made of paths within the documents: ``{"at": ("$.lon", "$.lat")}`` are points, with a
    third path for z, and ``{"at": {"wkt": "$.shape"}}`` or ``{"at": {"geojson": "$.geometry"}}`` geometries from text
    or GeoJSON objects. Such a mapping (with ``"points"`` for coordinates) also takes ``crs``, ``edges``, ``order`` and
    the other choices of the writer's option ``geometry``.

    ``form`` is ``"lines"`` for one document on each line. Documents that span lines need ``"documents"``, ``"array"``
    or ``"auto"``, as in :func:`pqext.variant.read_json`, and one task reads a whole file then.

    The first document that is not JSON, or has a geometry that is none, ends the job with its file, line and reason.
    With ``on_error="null"`` the document or the geometry becomes null, and ``error_column`` names a string column that
    says why; with ``"skip"`` the row is left out.

    The save happens whole or not at all, as that of data source ``pqext``. With ``mode="append"``, files from which
    rows in ``dest`` already come are skipped while their size and time of change stay the same, so that a job can be
    started again after a failure; ``again=True`` reads them once more. ``mode="overwrite"`` replaces the rows.

    ``task_bytes`` is the text that a task reads at most; by default every processor gets work, and a task at most
    256 MiB. Raises ``VariantError``, ``CorruptFileError`` and other errors of pqext for what is wrong with a file,
    ``FileNotFoundError`` for paths without files, and ``ValueError`` or ``TypeError`` for wrong arguments.
    """
    for name, given, words in (("on_error", on_error, OnError), ("mode", mode, Mode), ("form", form, Form)):
        if given not in get_args(words):
            raise ValueError(f"{name} is one of {', '.join(map(repr, get_args(words)))}, not {given!r}")
    if error_column is not None and on_error != "null":
        raise ValueError('an error_column tells of null rows, so it needs on_error="null"')
    made, choices = made_columns(geometry)
    names = [column, *(marked.name for _, marked in made), *([] if error_column is None else [error_column])]
    if len(set(names)) < len(names):
        raise ValueError(f"two columns have one name: {', '.join(map(repr, names))}")
    if "shredding" in options:
        raise TypeError("schema says how the column is shredded: leave out shredding")
    if task_bytes is not None and task_bytes < 1:
        raise ValueError(f"task_bytes must be positive, not {task_bytes}")
    options = {"threads": 1, "encodings": "auto", **options, **({"geometry": choices} if choices else {})}
    from_keywords(WriteOptions, options)
    how = Ingestion(
        column, None if schema is None else shredding(schema), numbers, duplicate_keys, max_bytes, form, on_error,
        error_column, made, storage_options, with_profile(options, "profile=None"),
    )
    how.parsing()  # wrong arguments are told now
    target = Path(local_path(dest)).absolute()
    found = find_parts(paths, storage_options)
    if target.is_dir():
        commit.clean(target)
    known = ingested(target) if mode == "append" and not again else set()
    parts = [part for part in found if (part.name, part.stamp) not in known]
    skipped = tuple(part.name for part in found if (part.name, part.stamp) in known)
    if not parts:
        return Ingested((), skipped, (), None)
    parsing = how.parsing()
    if parsing.undecided is not None:
        sample = pa.chunked_array(how.sample(parts), type=parsing.whole().type)
        how = replace(how, shredding=replace(how.shredding, schema=parsing.undecided.schema_for(sample)))
    attempts, written = _save(spark, target, parts, how, share_out(parts, task_bytes, form == "lines"), mode)
    shredded = how.parsing().schema
    return Ingested(
        tuple(_of_files(parts, attempts)), skipped, written, None if shredded is None else str(how.shredding.schema)
    )


def _save(
    spark: SparkSession,
    target: Path,
    parts: Sequence[Part],
    how: Ingestion,
    work: tuple[tuple[Part, ...], ...],
    mode: Mode,
) -> tuple[list[Attempt], tuple[tuple[str, int], ...]]:
    """Have tasks do the work, and commit what they wrote."""
    schema = how.schema(how.parsing())
    empty = empty_file(schema, how.options)  # which tells options that do not suit the columns
    check_target(target, mode == "overwrite", lambda: empty)
    job = uuid.uuid4().hex
    staged = commit.begin(target, job, os.getpid())
    try:
        task = IngestTask(str(staged), job, work, how)
        rows = spark.range(0, len(work), 1, len(work)).mapInArrow(task.run, "attempt binary").collect()
        attempts: list[Attempt] = [pickle.loads(row[0]) for row in rows]
        errors = [attempt.error for attempt in attempts if attempt.error is not None]
        if errors:
            raise min(errors, key=lambda error: isinstance(error, Stopped))
        written = tuple(file for attempt in attempts for file in attempt.written)
        names = [name for name, _ in written]
        if not names and (mode == "overwrite" or not any(target.glob("*.parquet"))):
            names = [f"part-00000-{job}-empty.parquet"]
            (staged / names[0]).write_bytes(empty)
        log = f"{commit.LOG}{job}.json"
        (staged / log).write_bytes(log_of(parts, _of_files(parts, attempts)))
        for name in (*names[len(written) :], log):
            commit.flush(staged / name)
        commit.commit(target, job, [*names, log], overwrite=mode == "overwrite")
    except BaseException:
        commit.abort(target, job)
        raise
    return attempts, written


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
