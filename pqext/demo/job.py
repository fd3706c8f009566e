"""The job: read, shred, write, ask, compare, draw."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

import pqext.spark as on_spark
from pqext.core.reader import ParquetFile
from pqext.demo import compare, derive
from pqext.demo.agreement import agreements
from pqext.demo.pictures import picture
from pqext.demo.questions import Answer, Asked, answer, questions, reading
from pqext.demo.source import Source, row_group_rows
from pqext.report import Agreement, DemoReport, Question, Reading, render
from pqext.text import size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GEOMETRY = "geom"
MAX_SHOWN_ROWS = 200
MAX_POINTS = 5000


class Listener(Protocol):
    """Whoever follows the job."""

    def step(self, text: str) -> AbstractContextManager[None]:
        """A step begins, and ends with the context."""

    def asked(self, question: Question) -> None:
        """A question was answered."""

    def agreed(self, agreements: tuple[Agreement, ...]) -> None:
        """Other readers were asked."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to work on, the folder for the files, the report's path, and what becomes of lines that are not JSON."""

    source: Source
    output: Path
    report: Path
    on_error: Literal["raise", "null"] = "raise"


@dataclass(frozen=True, slots=True)
class Written:
    """One file that the job wrote."""

    label: str
    folder: Path
    file: Path


def run(job: Job, listener: Listener, spark: SparkSession | None = None) -> DemoReport:
    """Do the whole job and write the report; a session started here is stopped at the end.

    Raises typed errors of pqext for bad input, such as a line that is not JSON.
    """
    began = time.perf_counter()
    if job.source.column == GEOMETRY:
        raise ValueError(f"the geometry is called {GEOMETRY}; give the VARIANT column another name")
    started = None
    if spark is None:
        with listener.step("start Spark on this machine"):
            spark = started = on_spark.local_session("pqext demo")
    try:
        source, files = _write(spark, job, listener)
        found = _ask(spark, source, files, job.output, listener)
        with listener.step("ask Spark's own reader and DuckDB"):
            others = agreements(spark, files, found, compare.Columns(source.column, GEOMETRY), job.output)
        listener.agreed(others)
        report = _report(job, source, files, [question for _, question in found], others, began, spark.version)
        with listener.step(f"write the report to {job.report}"):
            job.report.parent.mkdir(parents=True, exist_ok=True)
            job.report.write_text(render(report), "utf-8")
        return report
    finally:
        if started is not None:
            started.stop()


def _write(spark: SparkSession, job: Job, listener: Listener) -> tuple[Source, list[Written]]:
    """Write the file once for each shredding schema; the source comes back with questions that suit it."""
    source = job.source
    rows = row_group_rows(source.path)
    with listener.step(f"read {source.path.name} into a VARIANT column, make points"):
        events = _events(spark, source, job.on_error)
        bounds = _bounds(events) if source.box is None else (-180.0, -90.0, 180.0, 90.0)
    schemas = {"inferred": "infer"} if source.schema is None else {"chosen": source.schema, "inferred": "infer"}
    files = []
    for name, schema in schemas.items():
        folder = job.output / name
        label = f"{name} schema"
        with listener.step(f"shred by the {label}, sort along a Hilbert curve, write {folder}"):
            shredded = on_spark.shred_variant(events, {source.column: schema})
            order = on_spark.functions.st_hilbert(GEOMETRY, bounds)
            ordered = shredded.repartition(1).sortWithinPartitions(order)
            ordered.write.format("pqext").option("row_group_rows", rows).mode("overwrite").save(str(folder))
        (file,) = sorted(folder.glob("*.parquet"))
        files.append(Written(label, folder, file))
    if source.box is None:
        with listener.step("derive questions from the data"):
            source = _derived(source, files[-1].file)
    return source, files


def _events(spark: SparkSession, source: Source, on_error: Literal["raise", "null"]) -> DataFrame:
    from pyspark.sql import functions as F

    events = on_spark.read_json(spark, str(source.path), column=source.column, on_error=on_error)
    column = F.col("`" + source.column.replace("`", "``") + "`")
    coordinates = [on_spark.functions.variant_get(column, path, "double") for path in source.coordinates]
    return events.withColumn(GEOMETRY, on_spark.functions.st_point(*coordinates))


def _bounds(events: DataFrame) -> tuple[float, float, float, float]:
    raise NotImplementedError


def _derived(source: Source, file: Path) -> Source:
    x, y = derive.coordinates(file, source.column, source.coordinates)
    threshold = source.threshold or derive.threshold(file, source.column, source.coordinates)
    box = derive.box_around_the_middle(x, y)
    title = "" if threshold is None else f"{threshold.path} of {threshold.value:g} or more"
    return replace(source, box=box, threshold=threshold, threshold_title=title)


def _ask(
    spark: SparkSession, source: Source, files: list[Written], output: Path, listener: Listener
) -> list[tuple[Asked, Question]]:
    found = []
    for asked in questions(source, GEOMETRY):
        answers: list[Answer] = []
        readings: list[Reading] = []
        with listener.step(f"ask: {asked.title}"):
            for written in files:
                began = time.perf_counter()
                answers.append(answer(asked.frame(spark, written.folder), source))
                seconds = time.perf_counter() - began
                readings.append(replace(reading(written.file, written.label, asked.filter), seconds=seconds))
        first = answers[0]
        if any(other.rows != first.rows for other in answers):
            raise RuntimeError(f"the files do not give the same answer to {asked.title!r}")
        question = Question(
            title=asked.title,
            expression=asked.code,
            columns=first.columns,
            rows=first.rows[:MAX_SHOWN_ROWS],
            num_rows=len(first.rows),
            readings=tuple(readings),
            box=asked.box,
            points=first.points[:MAX_POINTS],
        )
        listener.asked(question)
        found.append((asked, question))
    return found


def _report(
    job: Job,
    source: Source,
    files: list[Written],
    asked: list[Question],
    others: tuple[Agreement, ...],
    began: float,
    spark_version: str,
) -> DemoReport:
    pictures = tuple(picture(one.file, one.label, f"{one.folder.name}/{one.file.name}", GEOMETRY) for one in files)
    x, y = derive.coordinates(files[0].file, source.column, source.coordinates)
    finite = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    sample = finite[:: max(1, -(-len(finite) // MAX_POINTS))]
    lost = _null_rows(files[0].file, source.column)
    facts = (
        ("rows", f"{pictures[0].rows:,}"),
        ("of them without a document", f"{lost:,}"),
        ("JSON", size(source.path.stat().st_size)),
        *((f"Parquet, {one.label}", size(one.size)) for one in pictures),
        ("row groups", str(len(pictures[0].row_groups))),
        ("Spark", spark_version),
        ("seconds", f"{time.perf_counter() - began:.1f}"),
    )
    return DemoReport(
        title=source.title,
        source=source.about,
        facts=facts,
        files=pictures,
        questions=tuple(asked),
        agreements=others,
        points=tuple((float(x[i]), float(y[i])) for i in sample),
        notes=_notes(job, source, lost, len(finite), len(sample)),
    )


def _notes(job: Job, source: Source, lost: int, points: int, drawn: int) -> tuple[str, ...]:
    notes = []
    if job.source.box is None and source.box is not None:
        notes.append(
            "The box was derived: around the point in the middle of the Hilbert order, it spans a tenth of the points "
            "from west to east and a tenth from south to north."
        )
    if job.source.threshold is None and source.threshold is not None:
        notes.append(
            f"The number asked about was derived: {source.threshold.path} is the number of the inferred schema that "
            f"most rows have, and two rows in a hundred reach {source.threshold.value:g}."
        )
    if job.source.box is None and source.threshold is None:
        notes.append("The inferred schema holds no number but the coordinates, so that only the box was asked about.")
    if lost and job.on_error == "null":
        notes.append(f"{lost} lines were not JSON and became nulls.")
    if drawn < points:
        notes.append(f"The map shows {drawn:,} of {points:,} points.")
    return tuple(notes)


def _null_rows(file: Path, column: str) -> int:
    """Rows whose VARIANT is null, from the footer: its metadata is required within it, so is null with it."""
    with ParquetFile(file) as opened:
        node = opened.schema.find((column, "metadata"))
        assert node is not None
        return sum(group.chunk(node).bounds().null_count or 0 for group in opened.row_groups)
