"""Compare other readers with pqext: all values of all files, and whether they need the row groups that pqext skips."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

from pqext.core.base.text import with_noun
from pqext.core.read.reader import ParquetFile
from pqext.demo import compare
from pqext.demo.compare import Columns, Row
from pqext.demo.questions import DemoQuery
from pqext.report.model import Agreement, Question, Reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_COPIED_BYTES = 256 << 20
"""Larger files are not copied and overwritten."""


class File(Protocol):
    """Interface of a file with its label in the report."""

    @property
    def label(self) -> str: ...
    @property
    def file(self) -> Path: ...


@dataclass(frozen=True, slots=True)
class Reader:
    """Another reader: functions that return all rows of a file, and the number of matches of a query.

    ``distinguishes_nulls`` is true if the reader distinguishes a VARIANT that is JSON null from a null.
    """

    name: str
    rows: Callable[[Path], Iterable[Row]]
    count: Callable[[Path, DemoQuery], int]
    distinguishes_nulls: bool = True


def agreements(
    spark: SparkSession, files: Iterable[File], questions: list[tuple[DemoQuery, Question]], columns: Columns,
    scratch: Path,
) -> tuple[Agreement, ...]:
    """Compare the values and query results of the other readers with pqext's.

    Returns one result for each reader and file.
    """
    own = f"Spark {spark.version}, its own reader"
    readers = [
        Reader(
            own,
            lambda path: compare.read_with_spark(spark, path, columns),
            lambda path, item: compare.spark_count(spark, path, columns, item.box, _lower_limit(item)),
        )
    ]
    version = compare.duckdb_version()
    if version is not None:
        readers.append(
            Reader(
                f"DuckDB {version}",
                lambda path: compare.read_with_duckdb(path, columns),
                lambda path, item: compare.duckdb_count(path, columns, item.box, _lower_limit(item)),
                distinguishes_nulls=False,
            )
        )
    results = []
    for file in files:
        small = _rows(file.file) <= compare.MAX_ROWS
        expected = list(compare.by_pqext(file.file, columns)) if small else None
        for reader in readers:
            if reader.name == own and not compare.spark_reads(spark, file.file):
                results.append(Agreement(own, file.label, None, "this version of Spark does not read geometries"))
            else:
                results.append(_compare_reader(reader, file, expected, questions, scratch))
        if version is None:
            results.append(Agreement("DuckDB", file.label, None, "not installed: pip install duckdb"))
    return tuple(results)


def _compare_reader(
    reader: Reader, file: File, expected: list[Row] | None, questions: list[tuple[DemoQuery, Question]], scratch: Path
) -> Agreement:
    if expected is None:
        return Agreement(reader.name, file.label, None, f"more than {compare.MAX_ROWS:,} rows")
    json_nulls = 0
    if not reader.distinguishes_nulls:
        json_nulls = sum(text == "null" for text, _ in expected)
        expected = [(None if text == "null" else text, wkb) for text, wkb in expected]
    differs = compare.difference(expected, reader.rows(file.file))
    for item, question in questions:
        if differs is None and (rows := reader.count(file.file, item)) != question.num_rows:
            differs = f"{question.title}: {rows} rows instead of {question.num_rows}"
    note = f"{with_noun(len(expected), 'row')} and {with_noun(len(questions), 'answer')} the same"
    if json_nulls:
        note += f"; it has no JSON null apart from null ({with_noun(json_nulls, 'row')})"
    pruned = _pruned_questions(reader, file, questions, scratch)
    return Agreement(reader.name, file.label, differs is None, differs or note, pruned)


def _pruned_questions(reader: Reader, file: File, questions: list[tuple[DemoQuery, Question]], scratch: Path) -> str:
    """Run each query on a copy of the file in which the row groups that pqext skips are overwritten.

    Return a description of the queries for which the reader still returns the correct number of rows.
    """
    if file.file.stat().st_size > MAX_COPIED_BYTES:
        return "not tried on a file of this size"
    enough: dict[str, int] = {}
    more: dict[str, int] = {}
    with TemporaryDirectory(dir=scratch, prefix="_damaged-") as folder:
        for i, (one, question) in enumerate(questions):
            copy = Path(folder) / f"{i}.parquet"
            retained = _reading(question, file.label).row_groups
            overwrite_pages(file.file, retained, copy)
            survived = compare.has_expected_count(lambda copy=copy, one=one: reader.count(copy, one), question.num_rows)  # type: ignore[misc]
            (enough if survived else more)[question.title] = len(retained)
    total = _reading(questions[0][1], file.label).row_groups_total if questions else 0
    return _describe_needs(enough, more, total)


def _describe_needs(sufficient_counts: dict[str, int], extra_counts: dict[str, int], total: int) -> str:
    """Describe for which queries a reader needs only the row groups that pqext reads."""
    if not extra_counts:
        return f"no more than pqext: {_join_counts(sufficient_counts.values())} of {total}" if sufficient_counts else ""
    if not sufficient_counts:
        return f"more than pqext's {_join_counts(extra_counts.values())} of {total}"
    fewer, others = (
        ", ".join(f"{n} ({title})" for title, n in item.items()) for item in (sufficient_counts, extra_counts)
    )
    return f"no more than pqext's {fewer}; more than its {others}; of {total}"


def _join_counts(counts: Iterable[int]) -> str:
    *most, last = map(str, counts)
    return f"{', '.join(most)} and {last}" if most else last


def _reading(question: Question, label: str) -> Reading:
    return next(reading for reading in question.readings if reading.file == label)


def _lower_limit(question: DemoQuery) -> tuple[str, float] | None:
    return None if question.threshold is None else (question.threshold.path, question.threshold.value)


def _rows(path: Path) -> int:
    from pqext.core.read.reader import ParquetFile

    with ParquetFile(path) as file:
        return file.num_rows


def overwrite_pages(path: Path, retained_groups: Collection[int], copy: Path) -> int:
    """Copy ``path`` to ``copy``, overwriting pages outside ``retained_groups`` with 0xFF; return their size."""
    with ParquetFile(path) as file:
        ranges = [
            group.chunk(leaf).byte_range
            for group in file.row_groups
            if group.index not in retained_groups
            for leaf in file.schema.leaves
        ]
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, copy)
    with copy.open("r+b") as target:
        for start, length in ranges:
            target.seek(start)
            target.write(b"\xff" * length)
    return sum(length for _, length in ranges)
