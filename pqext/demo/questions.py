"""Queries of the demo: by a box, by a number in the VARIANT, and by both. Defaults are derived from the data."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import pqext.spark as on_spark
from pqext import variant
from pqext.core.format.metadata import Type
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import SchemaNode
from pqext.dataset.expressions import Expression, col
from pqext.demo.source import DisplayColumn, Source, Threshold
from pqext.report.model import Box, FilePicture, Reading
from pqext.variant.access.path import format_path
from pqext.variant.shredding.schema import Object, Primitive, ShreddingSchema, shredding_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EXACT = Context(prec=1000)
_NUMBER = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?")
_NUMBERS = {Type.INT32, Type.INT64, Type.FLOAT, Type.DOUBLE, Type.FIXED_LEN_BYTE_ARRAY}
_NOT_NUMBERS = {"DATE", "TIME", "TIMESTAMP", "UUID", "STRING"}
_MAX_SHOWN = 4
_SHARE = 0.05
_TOP = 0.98


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
class QueryResult:
    """Rows of a query result: the columns of ``Source.shown``, and the first two coordinates as points."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    points: tuple[tuple[float, float], ...]


def make_queries(source: Source, geometry: str) -> list[DemoQuery]:
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
                f"read(spark, path, bbox={_format_tuple(sides)})",
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
                _threshold_filter(source.column, threshold),
            )
        )
    if box is not None and threshold is not None:
        both = col([geometry]).intersects(sides) & _threshold_filter(source.column, threshold)
        requested.append(
            DemoQuery(
                "Both together",
                f"read(spark, path, where=(col({geometry!r}).intersects({_format_tuple(sides)})) & "
                f"(col({source.column!r}).variant({threshold.path!r}, 'double') >= {threshold.value:g}))",
                box,
                threshold,
                lambda spark, path, metrics: on_spark.read(spark, str(path), where=both, metrics_path=str(metrics)),
                both,
            )
        )
    return requested


def _threshold_filter(column: str, threshold: Threshold) -> Expression:
    return col([column]).variant(threshold.path, "double") >= threshold.value


def _filter_by_number(spark: SparkSession, path: Path, metrics: Path, column: str, threshold: Threshold) -> DataFrame:
    frame = on_spark.read(spark, str(path), metrics_path=str(metrics))
    return on_spark.where(frame, _threshold_filter(column, threshold))


def _format_tuple(values: Sequence[float]) -> str:
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"


def run_query(frame: DataFrame, source: Source) -> QueryResult:
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
    rows.sort(key=lambda row: [_sort_key(_normalize_number(value)) for value in row], reverse=True)
    return QueryResult(
        tuple(item.name for item in shown), tuple(tuple(map(_format_value, row)) for row in rows), points
    )


def has_same_rows(result: QueryResult, other: QueryResult) -> bool:
    """Return whether both results have the same rows. Numbers formatted differently, as 2.5 and 2.50, are equal."""
    rows, others = ([[_normalize_number(cell) for cell in row] for row in item.rows] for item in (result, other))
    return rows == others


def _normalize_number(value: Any) -> Any:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return str(Decimal(value).normalize(_EXACT) or Decimal())  # formats zero without a sign
    return value


def _sort_key(value: Any) -> tuple[bool, Any]:
    """Return the sort key of a value. Missing values and NaN sort before all other values."""
    known = value is not None and value == value
    return (known, value if known else 0)


def _format_value(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else repr(value)
    return str(value)


def measure_reading(folder: Path, file: FilePicture, question: DemoQuery, metrics: Path) -> Reading:
    """Return the row groups and bytes that Spark's tasks read for a query on a folder with a single file.

    Raises ``RuntimeError`` if the number of row groups differs from the plan.
    """
    (task,) = on_spark.explain_read(str(folder), where=question.filter).tasks
    read = on_spark.read_metrics(str(metrics)).row_groups
    if read != len(task.kept_row_groups):
        raise RuntimeError(f"{question.title}: {read} row groups were read, expected {len(task.kept_row_groups)}")
    bytes_read, bytes_total = task.bytes_kept + file.footer, task.bytes_total + file.footer
    return Reading(file.label, frozenset(task.kept_row_groups), task.total, bytes_read, bytes_total)


def central_box(x: np.ndarray, y: np.ndarray) -> Box | None:
    """Return a box around the middle point of the file that contains a tenth of the points in each dimension.

    ``x`` and ``y`` are the coordinates in file order; values that are not finite are ignored. Return None if there are
    no points.
    """
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    if not len(x):
        return None
    middle = len(x) // 2
    xmin, xmax = _nearby_quantiles(x, x[middle])
    ymin, ymax = _nearby_quantiles(y, y[middle])
    return Box(xmin, xmax, ymin, ymax)


def _nearby_quantiles(values: np.ndarray, value: float) -> tuple[float, float]:
    rank = float(np.mean(values < value))
    low, high = np.quantile(values, [max(0.0, rank - _SHARE), min(1.0, rank + _SHARE)])
    return float(min(low, value)), float(max(high, value))


def _numeric_paths(file: ParquetFile, column: str) -> Iterator[str]:
    """Yield the paths of numbers within the shredded VARIANT ``column``, outside arrays, in schema order."""
    root = file.schema.find((column,))
    if root is None:
        return
    for leaf in root.leaves():
        steps = leaf.path[1:]
        if leaf.max_repetition_level == 0 and steps and steps[-1] == "typed_value" and _is_number(leaf):
            yield format_path(_json_steps(steps))


def _json_steps(steps: tuple[str, ...]) -> tuple[str, ...]:
    # typed_value, name, typed_value, name, ..., typed_value
    return steps[1:-1:2]


def _is_number(leaf: SchemaNode) -> bool:
    if leaf.physical_type == Type.FIXED_LEN_BYTE_ARRAY:
        return leaf.logical_name == "DECIMAL"
    return leaf.physical_type in _NUMBERS and leaf.logical_name not in _NOT_NUMBERS


def choose_threshold(path: Path, column: str, excluded_fields: tuple[str, ...]) -> Threshold | None:
    """Choose the path with the most numbers, and the threshold that the greatest 2 % of these numbers reach.

    ``excluded_fields`` are ignored paths, such as the coordinates. Return None if there are no other numbers.
    """
    with ParquetFile(path) as file:
        candidates = [item for item in _numeric_paths(file, column) if item not in excluded_fields]
    best: tuple[int, str, float] | None = None
    for candidate, values in zip(candidates, read_numbers(path, column, candidates), strict=True):
        known = values[np.isfinite(values)]
        if len(known) and known.min() < known.max() and (best is None or len(known) > best[0]):
            best = (len(known), candidate, float(np.quantile(known, _TOP, method="higher")))
    return None if best is None else Threshold(best[1], best[2])


def read_numbers(path: Path, column: str, paths: Sequence[str]) -> list[np.ndarray]:
    """Return the numbers at each of ``paths`` in all rows, in file order; NaN for missing numbers."""
    parts: list[list[np.ndarray]] = [[np.empty(0)] for _ in paths]
    with ParquetFile(path) as file:
        for batch in file.iter_batches(columns=[column]):
            for part, item in zip(parts, paths, strict=True):
                values = variant.get(batch.column(column), item, "double")
                part.append(values.to_numpy(zero_copy_only=False).astype(float))
    return [np.concatenate(part) for part in parts]


def choose_fields(
    ddl: str, threshold: Threshold | None, excluded_fields: Sequence[str], *, has_choice: bool
) -> tuple[DisplayColumn, ...]:
    """Choose the fields to display: the queried number, and a few other fields of the shredding schema ``ddl``.

    If ``has_choice``, the user has chosen the schema and fields are displayed in its order; otherwise strings come
    first. The paths ``excluded_fields`` are not chosen, because they are displayed anyway.
    """
    leaves = [(path, leaf) for path, leaf in _leaves(shredding_schema(ddl), ()) if path not in excluded_fields]
    if not has_choice:
        leaves.sort(key=lambda item: item[1].type != pa.string())
    names = [path for path, _ in leaves if threshold is None or path != threshold.path]
    first = [] if threshold is None else [DisplayColumn(threshold.path.removeprefix("$."), threshold.path, "double")]
    rest = names[: _MAX_SHOWN - len(first)]
    return (*first, *(DisplayColumn(path.removeprefix("$."), path, "string") for path in rest))


def _leaves(schema: ShreddingSchema, steps: tuple[str, ...]) -> Iterator[tuple[str, Primitive]]:
    """Yield the paths and types of the typed leaves outside arrays."""
    if isinstance(schema, Primitive) and steps:
        yield format_path(steps), schema
    elif isinstance(schema, Object):
        for name, child in schema.fields:
            yield from _leaves(child, (*steps, name))
