"""Derive a box and a threshold for queries on a user's file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from pqext import variant
from pqext.core.format.metadata import Type
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import SchemaNode
from pqext.demo.source import DisplayColumn, Threshold
from pqext.report.model import Box
from pqext.variant.access.path import format_path
from pqext.variant.shredding.schema import Object, Primitive, ShreddingSchema, shredding_schema

_NUMBERS = {Type.INT32, Type.INT64, Type.FLOAT, Type.DOUBLE, Type.FIXED_LEN_BYTE_ARRAY}
_NOT_NUMBERS = {"DATE", "TIME", "TIMESTAMP", "UUID", "STRING"}
MAX_SHOWN = 4
SHARE = 0.05
TOP = 0.98


def central_box(x: np.ndarray, y: np.ndarray) -> Box | None:
    """Return a box around the point in the middle of the file that spans a tenth of the points in each dimension.

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
    low, high = np.quantile(values, [max(0.0, rank - SHARE), min(1.0, rank + SHARE)])
    return float(min(low, value)), float(max(high, value))


def numeric_paths(file: ParquetFile, column: str) -> Iterator[str]:
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


def threshold(path: Path, column: str, excluded_fields: tuple[str, ...]) -> Threshold | None:
    """Return the path of the number that most rows have, and the value that two percent of these numbers reach.

    ``excluded_fields`` are ignored paths, such as the coordinates. Return None if there are no other numbers.
    """
    with ParquetFile(path) as file:
        candidates = [item for item in numeric_paths(file, column) if item not in excluded_fields]
    best: tuple[int, str, float] | None = None
    for candidate, values in zip(candidates, numbers(path, column, candidates), strict=True):
        known = values[np.isfinite(values)]
        if len(known) and known.min() < known.max() and (best is None or len(known) > best[0]):
            best = (len(known), candidate, float(np.quantile(known, TOP, method="higher")))
    return None if best is None else Threshold(best[1], best[2])


def numbers(path: Path, column: str, paths: Sequence[str]) -> list[np.ndarray]:
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
    rest = names[: MAX_SHOWN - len(first)]
    return (*first, *(DisplayColumn(path.removeprefix("$."), path, "string") for path in rest))


def _leaves(schema: ShreddingSchema, steps: tuple[str, ...]) -> Iterator[tuple[str, Primitive]]:
    """Yield the paths and types of the typed leaves outside arrays."""
    if isinstance(schema, Primitive) and steps:
        yield format_path(steps), schema
    elif isinstance(schema, Object):
        for name, child in schema.fields:
            yield from _leaves(child, (*steps, name))
