"""Demo job: read JSON lines, shred and write them, run queries, compare other readers, and write the report."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

import pqext.spark as on_spark
from pqext.core.base import errors
from pqext.core.base.text import format_size, with_noun
from pqext.core.io.sink import Sink
from pqext.demo.agreement import Columns, compare_readers
from pqext.demo.pictures import describe_layout
from pqext.demo.questions import (
    DemoQuery,
    QueryResult,
    central_box,
    choose_fields,
    choose_threshold,
    has_same_rows,
    make_queries,
    measure_reading,
    read_numbers,
    run_query,
)
from pqext.demo.source import GEOMETRY, Source, check, check_column, row_group_rows
from pqext.report import Agreement, DemoReport, FilePicture, Question, Reading, render

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

WORLD = (-180.0, -90.0, 180.0, 90.0)
MAX_SHOWN_ROWS = 200
MAX_POINTS = 5000
_ERROR = "_pqext_error"
_RAISED = re.compile(r"^(?:\w+\.)*errors\.(\w+Error): (.+)$", re.MULTILINE)
_ANY = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Z]\w*(?:Error|Exception)): (.+)$", re.MULTILINE)


class Listener(Protocol):
    """Interface of an observer of the job's progress."""

    def step(self, text: str) -> AbstractContextManager[None]:
        """Return a context manager that reports the beginning and the end of a step; ``text`` describes the step."""

    def show_file(self, file: FilePicture) -> None:
        """Report a written file."""

    def show_result(self, question: Question) -> None:
        """Report the result of a query."""

    def show_agreements(self, agreements: tuple[Agreement, ...]) -> None:
        """Report the results of other readers."""


@dataclass(frozen=True, slots=True)
class Job:
    """Settings of the job: source, output folder, path of the report, and handling of lines that are not JSON."""

    source: Source
    output: Path
    report: Path
    on_error: Literal["raise", "null"] = "raise"


@dataclass(frozen=True, slots=True)
class DemoFile:
    """A file that the job wrote."""

    folder: Path
    file: Path
    picture: FilePicture

    @property
    def label(self) -> str:
        """The file's name in the report."""
        return self.picture.label


def run(job: Job, listener: Listener, spark: SparkSession | None = None) -> DemoReport:
    """Run the job and write the report, with the existing session ``spark`` or a temporary one.

    Raises typed errors of pqext for invalid input, such as a line that is not JSON, and ``ValueError`` if no row has
    coordinates. Errors at the beginning of the input are raised before Spark starts.
    """
    start_time = time.perf_counter()
    check_column(job.source.column)
    with listener.step(f"look at {job.source.path}"):
        check(job.source, job.on_error)
    started = None
    if spark is None:
        spark = _active_session()
    if spark is None:
        with listener.step("start Spark on this machine"):
            spark = started = on_spark.local_session("pqext demo")
    try:
        with unwrap_errors():
            return _run(spark, job, listener, start_time)
    finally:
        if started is not None:
            started.stop()


def _active_session() -> SparkSession | None:
    """Return the active Spark session of this process, which must not be stopped; None without a session."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _run(spark: SparkSession, job: Job, listener: Listener, start_time: float) -> DemoReport:
    source, files, lost = _write(spark, job, listener)
    result = _run_queries(spark, source, files, listener)
    with listener.step("ask Spark's own reader and DuckDB"):
        columns = Columns(source.column, GEOMETRY)
        others = compare_readers(spark, files, result, columns, job.output)
    listener.show_agreements(others)
    with listener.step(f"write the report to {job.report}"):
        report = _build_report(
            job, source, files, [question for _, question in result], others, lost, start_time, spark.version
        )
        job.report.parent.mkdir(parents=True, exist_ok=True)
        with Sink(job.report) as sink:
            sink.write(render(report).encode())
    return report


def _write(spark: SparkSession, job: Job, listener: Listener) -> tuple[Source, list[DemoFile], list[str]]:
    """Write a file for each shredding schema.

    Return the source with its queries, the files, and the reasons that lines became null.
    """
    source = job.source
    rows = row_group_rows(source.path)
    with listener.step(f"read {source.path.name} into a VARIANT column, make points"):
        events = _read_events(spark, source, job.on_error)
        lost = _describe_lost_lines(events) if job.on_error == "null" else []
        events = events.drop(_ERROR)
        bounds = WORLD if source.box is not None else _bounds(events, source)
    schemas = {"inferred": "infer"} if source.schema is None else {"chosen": source.schema, "inferred": "infer"}
    files = []
    for name in {"chosen", "inferred"} - schemas.keys():
        _delete_earlier_files(job.output / name)
    for name, schema in schemas.items():
        folder = job.output / name
        label = f"{name} schema"
        with listener.step(f"shred by the {label}, sort along a Hilbert curve, write {folder}"):
            shredded = on_spark.shred_variant(events, {source.column: schema}, infer="once")
            order = on_spark.functions.st_hilbert(GEOMETRY, bounds)
            ordered = shredded.repartition(1).sortWithinPartitions(order)
            ordered.write.format("pqext").option("row_group_rows", rows).mode("overwrite").save(str(folder))
        (file,) = sorted(folder.glob("*.parquet"))
        files.append(DemoFile(folder, file, describe_layout(file, label, str(folder), source.column, GEOMETRY)))
        listener.show_file(files[-1].picture)
    if source.box is None:
        with listener.step("derive questions from the data"):
            source = _derive_source(source, files[-1].file, files[0].picture.schema)
    return source, files, lost


def _delete_earlier_files(folder: Path) -> None:
    """Delete the files in ``folder`` that an earlier run of the job wrote with another schema. Other files remain."""
    written = [*folder.glob("part-*.parquet"), folder / "_SUCCESS"] if (folder / "_SUCCESS").is_file() else []
    for path in written:
        path.unlink()
    with suppress(OSError):
        folder.rmdir()


def _read_events(spark: SparkSession, source: Source, on_error: Literal["raise", "null"]) -> DataFrame:
    events = on_spark.read_json(spark, str(source.path), column=source.column, on_error=on_error, error_column=_ERROR)
    x, y, *z = _coordinates(source)
    return events.withColumn(GEOMETRY, on_spark.functions.st_point(x, y, z[0] if z else None))


def _coordinates(source: Source) -> list[Column]:
    from pyspark.sql import functions as F

    column = F.col("`" + source.column.replace("`", "``") + "`")
    return [on_spark.functions.try_variant_get(column, path, "double") for path in source.coordinates]


def _describe_lost_lines(events: DataFrame) -> list[str]:
    """Return the file, line and reason of every line that is not JSON."""
    return [reason for (reason,) in events.where(f"{_ERROR} IS NOT NULL").select(_ERROR).collect()]


def _bounds(events: DataFrame, source: Source) -> tuple[float, float, float, float]:
    """Return the bounding box of all points, for the space-filling curve. Raises ``ValueError`` without points."""
    from pyspark.sql import functions as F

    x, y = _coordinates(source)[:2]
    result = events.agg(F.min(x), F.min(y), F.max(x), F.max(y), F.count(x + y)).first()
    if result is None or not result[4]:
        both = " and ".join(source.coordinates[:2])
        raise ValueError(f"no row of {source.path} has numbers at the coordinates {both}")
    if any(end is None or not math.isfinite(end) for end in result):
        return WORLD
    xmin, ymin, xmax, ymax, _ = result
    return (xmin, ymin, xmax, ymax)


def _derive_source(source: Source, file: Path, schema: str) -> Source:
    x, y = read_numbers(file, source.column, source.coordinates[:2])
    threshold = source.threshold or choose_threshold(file, source.column, source.coordinates)
    box = central_box(x, y)
    title = "" if threshold is None else f"{threshold.path} of {threshold.value:g} or more"
    shown = choose_fields(schema, threshold, source.coordinates, has_choice=source.schema is not None)
    return replace(source, box=box, threshold=threshold, threshold_title=title, shown=shown)


def _run_queries(
    spark: SparkSession, source: Source, files: list[DemoFile], listener: Listener
) -> list[tuple[DemoQuery, Question]]:
    results = []
    for requested in make_queries(source, GEOMETRY):
        answers: list[QueryResult] = []
        readings: list[Reading] = []
        with listener.step(f"ask: {requested.title}"):
            for written in files:
                with TemporaryDirectory(prefix="pqext-demo-") as metrics:
                    answers.append(run_query(requested.frame(spark, written.folder, Path(metrics)), source))
                    readings.append(measure_reading(written.folder, written.picture, requested, Path(metrics)))
        first = answers[0]
        if any(not has_same_rows(other, first) for other in answers):
            raise RuntimeError(
                f"query {requested.title!r} returns different rows from the files, which contain the same data"
            )
        question = Question(
            title=requested.title,
            expression=requested.code,
            columns=first.columns,
            rows=first.rows[:MAX_SHOWN_ROWS],
            num_rows=len(first.rows),
            readings=tuple(readings),
            box=requested.box,
            points=first.points[:MAX_POINTS],
        )
        listener.show_result(question)
        results.append((requested, question))
    return results


def _build_report(
    job: Job,
    source: Source,
    files: list[DemoFile],
    questions: list[Question],
    reader_agreements: tuple[Agreement, ...],
    lost_lines: list[str],
    start_time: float,
    spark_version: str,
) -> DemoReport:
    pictures = tuple(file.picture for file in files)
    x, y = read_numbers(files[0].file, source.column, source.coordinates[:2])
    finite = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    sample = finite[:: max(1, -(-len(finite) // MAX_POINTS))]
    facts = (
        ("rows", f"{pictures[0].rows:,}"),
        ("lines that are not JSON", f"{len(lost_lines):,}"),
        ("JSON", format_size(source.path.stat().st_size)),
        *((f"Parquet, {item.label}", format_size(item.size)) for item in pictures),
        ("row groups", str(len(pictures[0].row_groups))),
        ("Spark", spark_version),
        ("seconds", f"{time.perf_counter() - start_time:.1f}"),
    )
    return DemoReport(
        title=source.title,
        source=source.about,
        facts=facts,
        files=pictures,
        questions=tuple(questions),
        agreements=reader_agreements,
        points=tuple((float(x[i]), float(y[i])) for i in sample),
        notes=_remarks(job, source, pictures, lost_lines, len(finite), len(sample)),
    )


def _remarks(
    job: Job, source: Source, files: tuple[FilePicture, ...], lost_lines: list[str], points: int, drawn_count: int
) -> tuple[str, ...]:
    notes = [
        "The bytes read include column chunks and the footer, which every query reads.",
        _describe_sizes(files),
    ]
    rows = files[0].rows
    if points < rows:
        notes.append(f"{rows - points:,} of {rows:,} rows have no coordinates; their geometry is null.")
    if job.source.box is None and source.box is not None:
        notes.append(
            "The box was derived: around the point in the middle of the Hilbert order, it spans a tenth of the points "
            "from west to east and a tenth from south to north."
        )
    if job.source.threshold is None and source.threshold is not None:
        notes.append(
            f"The number of the query was derived: {source.threshold.path} is the number of the inferred schema that "
            f"most rows have, and two rows in a hundred reach {source.threshold.value:g}."
        )
    if job.source.box is None and source.threshold is None:
        notes.append("The inferred schema holds no number except the coordinates, so only the box was queried.")
    if lost_lines:
        notes.append(f"{len(lost_lines):,} lines were not JSON and became nulls. The first: {lost_lines[0]}")
    if drawn_count < points:
        notes.append(f"The map shows {drawn_count:,} of {points:,} points.")
    return tuple(notes)


def _describe_sizes(files: tuple[FilePicture, ...]) -> str:
    groups = len(files[0].row_groups)
    few = files[0].rows < 10_000 * groups
    many = ", which are many for a small file, so that queries can skip some," if few and groups > 1 else ""
    shares = "; ".join(_describe_file_sizes(file) for file in files)
    return (
        f"Distribution of bytes: each of the {with_noun(groups, 'row group')}{many} has a chunk, indexes and a "
        f"footer entry for every leaf column, so a schema with more fields costs more. {shares}."
    )


def _describe_file_sizes(file: FilePicture) -> str:
    chunks = sum(group.bytes for group in file.row_groups)
    return (
        f"{file.label}: {with_noun(len(file.columns), 'leaf column')}, {format_size(chunks)} in chunks, "
        f"{format_size(file.size - chunks - file.footer)} in indexes, {format_size(file.footer)} in the footer"
    )


def to_pqext_error(error: Exception) -> Exception:
    """Return the pqext error that a Spark worker raised, or a RuntimeError with the last cause in Spark's message."""
    text = str(error)
    for name, message in _RAISED.findall(text):
        kind = getattr(errors, name, None)
        if kind is errors.UnsupportedError:
            return errors.UnsupportedError(message, feature="")
        if isinstance(kind, type) and issubclass(kind, errors.ParquetError):
            return kind(message)
    reasons = _ANY.findall(text)
    first = text.strip().partition("\n")[0]
    return RuntimeError("Spark: " + (": ".join(reasons[-1]) if reasons else first))


@contextmanager
def unwrap_errors() -> Iterator[None]:
    """Context manager that replaces Spark's exceptions with the pqext errors that caused them."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise to_pqext_error(error) from error
