"""Spatial filters keep the rows that shapely keeps, and skip the row groups whose boxes lie elsewhere."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from pqext import geo
from pqext.core.write.writer import write_table
from pqext.dataset.evaluation.evaluate import evaluate
from pqext.dataset.expressions import Expression, Not, Spatial, col, spatial
from pqext.dataset.expressions.visitors import push_down_not
from pqext.dataset.reading import scan

COORDINATES = st.integers(-4, 4).map(float)
POINTS = st.builds(shapely.Point, COORDINATES, COORDINATES)
LINES = st.lists(st.tuples(COORDINATES, COORDINATES), min_size=2, max_size=3, unique=True).map(shapely.LineString)
BOXES = st.tuples(COORDINATES, COORDINATES, st.floats(0.5, 4), st.floats(0.5, 4)).map(
    lambda corner: (corner[0], corner[1], corner[0] + corner[2], corner[1] + corner[3])
)
GEOMETRIES = st.one_of(st.none(), POINTS, LINES, BOXES.map(lambda box: shapely.box(*box)), st.just(shapely.Point()))
OPERATIONS: dict[str, Any] = {
    name: getattr(shapely, name) for name in spatial.OPERATIONS if name != "dwithin"
}


def table_of(geometries: list[Any], **marks: Any) -> pa.Table:
    """Geometries as column ``g`` beside the number of their row."""
    field = geo.geometry_field("g", **marks)
    return pa.table(
        [geo.from_shapely(geometries), pa.array(range(len(geometries)))],
        schema=pa.schema([field, pa.field("row", pa.int64())]),
    )


QUERIES = st.one_of(BOXES, POINTS, LINES)


@given(st.lists(GEOMETRIES, max_size=8), st.sampled_from(sorted(OPERATIONS)), QUERIES, st.booleans())
def test_shapely_returns_the_same_rows(geometries: list[Any], operation: Any, query: Any, negated: bool) -> None:
    leaf = Spatial(col("g"), operation, query)
    expression: Expression = Not(leaf) if negated else leaf
    shape = shapely.box(*query) if isinstance(query, tuple) else query
    expected = [
        row
        for row, geometry in enumerate(geometries)
        if geometry is not None and bool(OPERATIONS[operation](geometry, shape)) != negated
    ]
    table = table_of(geometries)
    mask = evaluate(expression, table)
    assert mask.null_count == sum(geometry is None for geometry in geometries)
    assert table.filter(mask)["row"].to_pylist() == expected
    assert evaluate(push_down_not(expression), table).equals(mask)
    sink = pa.BufferOutputStream()
    write_table(table, sink, row_group_rows=2)
    assert scan(sink.getvalue(), ["row"], expression).to_table()["row"].to_pylist() == expected


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    """Forty points along the equator, every nine degrees, four a row group; the last row group is null."""
    points = [*(shapely.Point(-179 + 9 * number, 0) for number in range(40)), None, None]
    path = tmp_path / "cells.parquet"
    write_table(table_of(points), path, row_group_rows=4)
    return path


@pytest.mark.parametrize(
    ("expression", "row_groups", "rows"),
    [
        (col("g").intersects((0, -1, 20, 1)), (5,), 3),
        (col("g").intersects((170, -1, -175, 1)), (0, 9), 2),
        (col("g").within(shapely.box(0, -1, 20, 1)), (5,), 3),
        (~col("g").disjoint((0, -1, 20, 1)), (5,), 3),
        (col("g").intersects((0, 5, 20, 10)), (), 0),
        (~col("g").intersects((0, -1, 20, 1)), tuple(range(10)), 37),
        (~col("g").within((0, -1, 20, 1)), tuple(range(10)), 37),
        (col("g").is_null(), (10,), 2),
        (col("g").intersects((0, -1, 20, 1)) & (col("row") < 21), (5,), 1),
        (col("g").intersects((0, -1, 20, 1)) | (col("row") == 0), (0, 5), 4),
    ],
    ids=str,
)
def test_boxes_prune_row_groups(cells: Path, expression: Expression, row_groups: tuple[int, ...], rows: int) -> None:
    query = scan(cells, ["row"], expression)
    (task,) = query.plan()
    assert task.kept_row_groups == row_groups
    assert query.count() == rows


def test_geography_edges_are_not_treated_as_planar(tmp_path: Path) -> None:
    line = shapely.LineString([(0, 60), (90, 60)])
    path = tmp_path / "arc.parquet"
    write_table(table_of([line], edges="spherical"), path)
    assert scan(path, filter=col("g").intersects((44, 67, 46, 68))).count() == 1
    assert scan(path, filter=col("g").intersects((44, 59, 46, 61))).count() == 0


def test_plain_binary_geometries_are_evaluated_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "plain.parquet"
    write_table(pa.table({"g": geo.from_points([1.0, 5.0], [1.0, 5.0]).storage}), path, row_group_rows=1)
    query = scan(path, filter=col("g").intersects((0, 0, 2, 2)))
    assert query.plan()[0].kept_row_groups == (0, 1)
    assert query.count() == 1


@pytest.mark.parametrize("function", ["st_x", "st_xmin", "st_xmax", "st_y", "st_ymin", "st_ymax"])
def test_pages_of_points_with_one_coordinate_are_not_pruned_by_it(function: str) -> None:
    known, nan = [1.0, 2.0, 5.0, 6.0, 9.0, 10.0], float("nan")
    other = [1.0, 1.0, nan, nan, 3.0, 3.0]
    points = shapely.points(known, other) if function.startswith("st_x") else shapely.points(other, known)
    table = pa.table({"id": range(6), "at": geo.from_shapely(points)})
    write_table(table, out := io.BytesIO(), page_rows=2, geometry={"at": {"crs": "EPSG:3857"}})
    coordinates = (shapely.get_x if function.startswith("st_x") else shapely.get_y)(points)
    value = getattr(col("at"), function)()
    for condition, matches in (
        (value > 4, coordinates > 4), (value <= 5, coordinates <= 5), (value == 6, coordinates == 6),
    ):
        assert scan(out, filter=condition).to_table()["id"].to_pylist() == np.flatnonzero(matches).tolist()
