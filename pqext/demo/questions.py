"""Queries of the demo: filters by a box, by a number in the variant, and by both."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pqext.spark as on_spark
from pqext.dataset.expressions import Expression, col
from pqext.demo.source import DisplayColumn, Source, Threshold
from pqext.report.model import Box, FilePicture, Reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EXACT = Context(prec=1000)
_NUMBER = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?")


@dataclass(frozen=True, slots=True)
class DemoQuery:
    """A query: ``code`` shows it as a user would write it, and ``frame`` runs it on a folder of files.

    The third argument of ``frame`` is the folder for the metrics of Spark's tasks. ``filter`` is the same condition for
    the planner.
    """

    title: str
    code: str
    box: Box | None
    threshold: Threshold | None
    frame: Callable[[SparkSession, Path, Path], DataFrame]
    filter: Expression


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of a query result: the columns of ``Source.shown``, and the first two coordinates as points."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    points: tuple[tuple[float, float], ...]


def questions(source: Source, geometry: str) -> list[DemoQuery]:
    """Return the queries in the order of the report: by the box of ``source``, by its threshold, and by both.

    Queries by a missing box or threshold are omitted.
    """
    requested = []
    box, threshold = source.box, source.threshold
    if box is not None:
        sides = (box.xmin, box.ymin, box.xmax, box.ymax)
        requested.append(
            DemoQuery(
                source.box_title,
                f"read(spark, path, bbox={_tuple(sides)})",
                box,
                None,
                lambda spark, path, metrics: on_spark.read(spark, str(path), bbox=sides, metrics_path=str(metrics)),
                col([geometry]).intersects(sides),
            )
        )
    if threshold is not None:
        requested.append(
            DemoQuery(
                source.threshold_title,
                f"where(read(spark, path), col({source.column!r}).variant({threshold.path!r}, 'double') "
                f">= {threshold.value:g})",
                None,
                threshold,
                lambda spark, path, metrics: _filter_by_number(spark, path, metrics, source.column, threshold),
                _number(source.column, threshold),
            )
        )
    if box is not None and threshold is not None:
        both = col([geometry]).intersects(sides) & _number(source.column, threshold)
        requested.append(
            DemoQuery(
                "Both together",
                f"read(spark, path, where=(col({geometry!r}).intersects({_tuple(sides)})) & "
                f"(col({source.column!r}).variant({threshold.path!r}, 'double') >= {threshold.value:g}))",
                box,
                threshold,
                lambda spark, path, metrics: on_spark.read(spark, str(path), where=both, metrics_path=str(metrics)),
                both,
            )
        )
    return requested


def _number(column: str, threshold: Threshold) -> Expression:
    return col([column]).variant(threshold.path, "double") >= threshold.value


def _filter_by_number(spark: SparkSession, path: Path, metrics: Path, column: str, threshold: Threshold) -> DataFrame:
    frame = on_spark.read(spark, str(path), metrics_path=str(metrics))
    return on_spark.where(frame, _number(column, threshold))


def _tuple(values: Sequence[float]) -> str:
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"


def answer(frame: DataFrame, source: Source) -> Answer:
    """Run a query and return its rows in descending order of the displayed values. Missing values come last."""
    x, y = source.axes
    paths = source.coordinates
    shown = (*source.shown, DisplayColumn(x, paths[0], "double"), DisplayColumn(y, paths[1], "double"))
    from pyspark.sql import functions as F

    column = F.col("`" + source.column.replace("`", "``") + "`")
    rows = frame.select(
        *(on_spark.functions.try_variant_get(column, one.path, one.type).alias(f"c{i}") for i, one in enumerate(shown))
    ).collect()
    points = tuple((row[-2], row[-1]) for row in rows if row[-2] is not None and row[-1] is not None)
    rows.sort(key=lambda row: [_sort_key(_same_number(value)) for value in row], reverse=True)
    return Answer(tuple(item.name for item in shown), tuple(tuple(map(_text, row)) for row in rows), points)


def has_same_rows(answer: Answer, other: Answer) -> bool:
    """Return whether both results have the same rows. Numbers formatted differently, as 2.5 and 2.50, are equal."""
    rows, others = ([[_same_number(cell) for cell in row] for row in item.rows] for item in (answer, other))
    return rows == others


def _same_number(value: Any) -> Any:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return str(Decimal(value).normalize(_EXACT) or Decimal())  # formats zero without a sign
    return value


def _sort_key(value: Any) -> tuple[bool, Any]:
    """Return the sort key of a value. Missing values and NaN sort before all other values."""
    known = value is not None and value == value
    return (known, value if known else 0)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else repr(value)
    return str(value)


def reading(folder: Path, file: FilePicture, question: DemoQuery, metrics: Path) -> Reading:
    """Return the row groups and bytes that the query's tasks read from a folder with a single file.

    Raises ``RuntimeError`` if the number of row groups differs from the plan.
    """
    (task,) = on_spark.explain_read(str(folder), where=question.filter).tasks
    read = on_spark.read_metrics(str(metrics)).row_groups
    if read != len(task.kept_row_groups):
        raise RuntimeError(f"{question.title}: {read} row groups were read, expected {len(task.kept_row_groups)}")
    bytes_read, bytes_total = task.bytes_kept + file.footer, task.bytes_total + file.footer
    return Reading(file.label, frozenset(task.kept_row_groups), task.total, bytes_read, bytes_total)
