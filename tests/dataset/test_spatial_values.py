"""Measures and constructions in filters, computed columns, SQL and JSON text: the rows and values of shapely."""

from __future__ import annotations

import io
import math
import operator
import pickle
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyproj import Geod

import pqext
from pqext import col, filters, geo
from pqext.cli import app
from pqext.core.base.errors import GeometryError
from pqext.dataset.expressions.mistakes import to_python_code
from pqext.dataset.notations.sql import value_from_sql
from reference.effort import share

GEOM = col("geom")
CENTRE = shapely.Point(5, 5)
SHAPES = [
    shapely.box(0, 0, 2, 2), shapely.Point(5, 5), None, shapely.box(0, 0, 9, 9), shapely.LineString([(0, 0), (3, 4)]),
    shapely.Point(), shapely.box(1, 1, 3, 3).union(shapely.box(7, 7, 8, 8)), shapely.Point(1, 8),
]  # fmt: skip


def stored(shapes: Any, rows: int = 3, page_rows: int = 100, **geometry: Any) -> bytes:
    array = geo.to_iso_wkb(geo.from_shapely(shapes) if isinstance(shapes, list) else shapes)
    table = pa.table({"id": range(len(shapes)), "geom": array})
    choice = {"geom": {"crs": "EPSG:3857"} | geometry}
    pqext.write_table(table, sink := io.BytesIO(), row_group_rows=rows, page_rows=page_rows, geometry=choice)
    return sink.getvalue()


FILE = stored(SHAPES)


def ids(filter: Any, file: bytes = FILE) -> list[int]:
    return pqext.read_table(file, ["id"], filter)["id"].to_pylist()


def rows(truths: Any) -> list[int]:
    """Numbers of the rows whose value is true, without nulls."""
    return [row for row, (shape, truth) in enumerate(zip(SHAPES, truths, strict=True)) if shape is not None and truth]


CONDITIONS = [
    ("st_area(geom) > 3", GEOM.st_area() > 3, shapely.area(SHAPES) > 3),
    ("st_length(geom) <= 8", GEOM.st_length() <= 8, shapely.length(SHAPES) <= 8),
    ("st_perimeter(geom) = 8", GEOM.st_perimeter() == 8, np.equal(shapely.length(SHAPES), 8)),
    ("st_distance(geom, 'POINT (5 5)') < 1", GEOM.st_distance(CENTRE) < 1, shapely.distance(SHAPES, CENTRE) < 1),
    ("st_distance(st_point(5, 5), geom) < 1", GEOM.st_distance(CENTRE) < 1, shapely.distance(SHAPES, CENTRE) < 1),
    ("st_isempty(geom)", GEOM.st_isempty() == True, shapely.is_empty(SHAPES)),  # noqa: E712
    ("not st_isempty(geom)", ~(GEOM.st_isempty() == True), ~shapely.is_empty(SHAPES)),  # noqa: E712
    (
        "st_npoints(geom) in (1, 2)", GEOM.st_npoints().isin([1, 2]),
        [shapely.get_num_coordinates(shape) in (1, 2) for shape in SHAPES],
    ),
    (
        "st_geometrytype(geom) like '%Polygon'", GEOM.st_geometrytype().like("%Polygon"),
        np.isin(shapely.get_type_id(SHAPES), [3, 6]),
    ),
    (
        "st_area(st_intersection(geom, box(1, 1, 2, 2))) = 1", GEOM.st_intersection((1, 1, 2, 2)).st_area() == 1,
        np.equal(shapely.area(shapely.intersection(SHAPES, shapely.box(1, 1, 2, 2))), 1),
    ),
    (
        "st_x(st_centroid(geom)) between 1 and 4.5", GEOM.st_centroid().st_x().between(1, 4.5),
        [shape and not shape.is_empty and 1 <= shape.centroid.x <= 4.5 for shape in SHAPES],
    ),
    (
        "st_xmax(geom) - st_xmin(geom) > 2", GEOM.st_xmax() - GEOM.st_xmin() > 2,
        [shape and not shape.is_empty and shape.bounds[2] - shape.bounds[0] > 2 for shape in SHAPES],
    ),
    (
        "st_area(st_simplify(geom, 0.1, false)) > 3", GEOM.st_simplify(0.1, False).st_area() > 3,
        shapely.area(SHAPES) > 3,
    ),
    (
        "st_area(st_buffer(geom, 1)) > 20", GEOM.st_buffer(1).st_area() > 20,
        shapely.area(shapely.buffer(SHAPES, 1)) > 20,
    ),
    (
        "st_azimuth(geom, 'POINT (6 6)')::int = 0", GEOM.st_azimuth(shapely.Point(6, 6)).cast("int32") == 0,
        [shape == CENTRE for shape in SHAPES],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expression", "truths"), CONDITIONS, ids=[text for text, *_ in CONDITIONS])
def test_filters_select_the_rows_of_shapely(text: str, expression: Any, truths: Any) -> None:
    assert ids(text) == ids(expression) == rows(truths)
    parsed = filters.from_sql(text)
    for condition in (parsed, expression):
        copies = filters.from_json(filters.to_json(condition)), pickle.loads(pickle.dumps(condition))
        assert all(copy == condition for copy in copies)
        assert ids(copies[0]) == ids(text)


@pytest.mark.spec("querying.measures")
def test_null_geometries_have_null_values() -> None:
    assert ids("st_area(geom) is null") == ids("st_centroid(geom) is null") == [2]
    assert ids("st_centroid(geom) is not null") == [row for row in range(len(SHAPES)) if row != 2]
    assert 2 not in ids("not (st_area(geom) > 3)")


@pytest.mark.spec("querying.measures")
def test_computed_columns_have_the_values_of_shapely_and_the_type_of_the_column() -> None:
    result = pqext.scan(FILE).select(
        "id", ("area", GEOM.st_area()), GEOM.st_buffer(1).alias("wide"), ("corners", GEOM.st_npoints()),
        ("type", GEOM.st_geometrytype()), ("valid", GEOM.st_isvalid()),
    ).to_table()  # fmt: skip
    assert result.schema.types[1] == pa.float64()
    assert result["area"].to_pylist() == [None if s is None else s.area for s in SHAPES]
    assert result["corners"].to_pylist() == [None if s is None else shapely.get_num_coordinates(s) for s in SHAPES]
    assert result["type"].to_pylist() == [None if s is None else f"ST_{s.geom_type}" for s in SHAPES]
    assert result["valid"].to_pylist() == [None if s is None else True for s in SHAPES]
    frame = geopandas.GeoDataFrame.from_arrow(result.select(["id", "wide"]))
    assert frame.crs.to_epsg() == 3857
    assert frame.geometry.tolist() == shapely.buffer(SHAPES, 1).tolist()
    pqext.write_table(result, copy := io.BytesIO())
    assert pqext.scan(copy.getvalue()).filter("st_area(wide) > 20").to_table()["id"].to_pylist() == ids(
        "st_area(st_buffer(geom, 1)) > 20"
    )


def test_names_of_computed_columns_refer_to_their_values() -> None:
    scan = pqext.scan(FILE).select("id", ("centre", GEOM.st_centroid()), ("area", GEOM.st_area()))
    large = scan.filter("area > 1 and st_x(centre) < 4")
    assert large.to_table()["id"].to_pylist() == rows([s and s.area > 1 and s.centroid.x < 4 for s in SHAPES])
    first = scan.filter("area is not null").order_by("area", descending=True).limit(1)
    assert first.to_table()["id"].to_pylist() == [3]


def test_two_columns_are_measured_against_each_other() -> None:
    table = pa.table({"a": geo.from_points([0, 1, 2], [0, 0, 0]), "b": geo.from_points([3, 1, 2], [4, 1, 0])})
    pqext.write_table(table, sink := io.BytesIO())
    result = pqext.read_table(sink.getvalue(), [("d", value_from_sql("st_distance(a, b)"))], "st_distance(a, b) > 0")
    assert result["d"].to_pylist() == [5.0, 1.0]
    mixed = pa.table({"a": geo.from_points([0], [0]), "b": geo.from_points([3], [4], crs="EPSG:3857")})
    pqext.write_table(mixed, sink := io.BytesIO())
    with pytest.raises(TypeError, match="st_distance requires geometries in one CRS, not OGC:CRS84 and EPSG:3857"):
        pqext.read_table(sink.getvalue(), None, "st_distance(a, b) > 0")


@pytest.mark.spec("querying.measures")
def test_geographies_are_measured_in_metres() -> None:
    globe = pa.table({"geom": geo.from_points([0.0, 10.0], [0.0, 50.0])})
    pqext.write_table(globe, sink := io.BytesIO(), geometry={"geom": {"edges": "karney"}})
    metres = pqext.read_table(sink.getvalue(), [("away", GEOM.st_distance(shapely.Point(1, 1)))])["away"].to_pylist()
    assert metres == Geod(ellps="WGS84").inv([0, 10], [0, 50], [1, 1], [1, 1])[2]
    assert ids_of(sink.getvalue(), "st_distance(geom, 'POINT (1 1)') < 200000") == 1
    with pytest.raises(TypeError, match="st_buffer requires planar geometries, not GEOGRAPHY"):
        pqext.read_table(sink.getvalue(), [("wide", GEOM.st_buffer(1))])


def ids_of(file: bytes, filter: str) -> int:
    return pqext.scan(file).filter(filter).count()


def test_errors_state_column_and_row() -> None:
    file = stored([shapely.Point(0, 0), shapely.from_wkt("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))")])
    with pytest.raises(GeometryError, match=r"row 1: intersection failed.*column geom"):
        pqext.read_table(file, None, GEOM.st_intersection((0, 0, 1, 1)).st_area() > 0)


def test_dotted_names_resolve_behind_a_constant() -> None:
    table = pa.table({"a.b": geo.from_points([0, 3], [0, 4])})
    pqext.write_table(table, sink := io.BytesIO())
    assert ids_of(sink.getvalue(), "st_distance('POINT (0 0)', a.b) > 4") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("st_area(geom, 3) > 1", "at character 1: wrong number of arguments for st_area: expected 1, not 2"),
        ("id > 1 and st_aria(geom) > 3", "no function 'st_aria'; did you mean 'st_area'"),
        ("st_buffer(geom, 'a') is null", "at character 1: distance must be a number, not 'a'"),
        ("st_buffer(geom, id) is null", "distance must be a constant, not id"),
        ("st_area(st_area(geom)) > 1", "geometry must be a column of geometries"),
        ("st_area('POINT (1 2)') > 1", "st_area requires at least one column"),
        ("st_distance(geom, 5) > 1", "expected a box"),
        ("st_distance(geom, 'POINT (1') > 1", "is not valid WKT"),
        ("st_snaptogrid(geom, -1) is null", "size must be greater than 0"),
        ("st_area(id) > 3", "column 'id' contains no geometries"),
        ("st_area(id) + 1 > 3", "column 'id' contains no geometries"),
        ("st_centroid(id) is null", "column 'id' contains no geometries"),
        ("st_centroid(geom) = 'POINT (1 2)'", "column st_centroid.geom. can only be compared with null"),
        ("st_area(nope) > 3", "no column 'nope'"),
    ],
)
def test_mistakes_in_sql_are_explained(text: str, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        ids(text)


def test_values_need_names_in_the_result_and_are_shown_in_python() -> None:
    with pytest.raises(TypeError, match=r"needs a name in the result: col\('geom'\).st_buffer\(1.0, 8\).st_area\(\)"):
        pqext.scan(FILE).select(GEOM.st_buffer(1).st_area())
    assert to_python_code(GEOM.st_simplify(1)) == "col('geom').st_simplify(1.0, true)"


def test_files_without_the_column_have_null_values(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(FILE)
    pqext.write_table(pa.table({"id": [100]}), tmp_path / "b.parquet")
    scan = pqext.scan(str(tmp_path), schema="union")
    assert scan.filter("st_area(geom) > 3").to_table()["id"].to_pylist() == ids("st_area(geom) > 3")
    assert scan.filter("st_area(geom) is null").to_table()["id"].to_pylist() == [2, 100]
    assert scan.select("id", ("c", GEOM.st_centroid())).to_table()["c"].null_count == 2


def test_the_command_line_computes_and_filters(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(FILE)
    arguments = ["query", str(tmp_path / "a.parquet"), "--where", "st_area(geom) > 8", "--select"]
    result = CliRunner().invoke(app, [*arguments, "id, st_area(geom) as area, st_centroid(geom) as centre"])
    assert result.exit_code == 0
    assert result.output.split("\n")[1].split() == ["3", "81.0", "POINT", "(4.5", "4.5)"]


EDGES = [-200.0, -180.0, -0.0, 0.0, 5.0, 179.5, math.nan, math.inf, -math.inf]
ORDINATES = st.sampled_from(EDGES) | st.floats(-190, 190)
CORNERS = st.tuples(ORDINATES, ORDINATES)
COMPARE: dict[str, Any] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@pytest.mark.spec("querying.half-planes")
@pytest.mark.filterwarnings("ignore:ignored page boxes")  # of pages with X alone
@settings(max_examples=share(1))
@given(
    st.lists(st.none() | st.lists(CORNERS, min_size=1, max_size=2), max_size=8),
    st.sampled_from(["st_x", "st_y", "st_xmin", "st_xmax", "st_ymin", "st_ymax"]), st.sampled_from(list(COMPARE)),
    ORDINATES.filter(math.isfinite) | st.integers(-190, 190), st.booleans(),
    st.sampled_from(["EPSG:3857", "OGC:CRS84"]),
)  # fmt: skip
@example([[(-200.0, -200.0)], [(math.nan, -200.0)]], "st_y", "<", -180.0, False, "EPSG:3857")
def test_pruning_by_coordinates_keeps_all_rows(
    shapes: list[Any], function: str, sign: Any, value: float, is_negated: bool, crs: str
) -> None:
    texts = [None if corners is None else text_of(corners) for corners in shapes]
    file = stored(geo.from_wkt(pa.array(texts, pa.string())), rows=2, page_rows=1, crs=crs, check_range=False)
    condition = COMPARE[sign](getattr(GEOM, function)(), value)
    numbers = [None if corners is None else coordinate(corners, function) for corners in shapes]
    expected = [
        row for row, number in enumerate(numbers)
        if number is not None and COMPARE[sign](number, value) is not is_negated
    ]  # fmt: skip
    assert ids(~condition if is_negated else condition, file) == expected


def text_of(corners: list[tuple[float, float]]) -> str:
    """A point or a line as WKT."""
    name = "POINT" if len(corners) == 1 else "LINESTRING"
    return f"{name} ({', '.join(f'{x!r} {y!r}' for x, y in corners)})".replace("inf", "Infinity")


def coordinate(corners: list[tuple[float, float]], function: str) -> float | None:
    """A coordinate of a point, or a side of the box around numbers that are not NaN."""
    numbers = [corner["xy".index(function[3])] for corner in corners]
    numbers = [number for number in numbers if not math.isnan(number)]
    if not numbers or (len(function) == 4 and len(corners) == 2):
        return None
    return max(numbers) if function.endswith("max") else min(numbers)


@pytest.mark.spec("querying.half-planes")
def test_boxes_skip_row_groups_and_pages_of_coordinates() -> None:
    points = [shapely.Point(row, row / 2) for row in range(100)]
    file = stored(points, rows=25, page_rows=5)
    counts = {"st_x(geom) >= 60": 2, "st_xmin(geom) > 60": 2, "st_ymax(geom) < 10": 1, "st_x(geom) = 30": 1}
    for text, count in counts.items():
        scan = pqext.scan(file).filter(text)
        plans = [plan for task in scan.plan() for plan in task.row_groups]
        assert sum(plan.prune_reason is None for plan in plans) == count
        assert "skips by box" in scan.explain()
    (task,) = pqext.scan(file).filter("st_x(geom) = 30").plan(pages=True)
    assert [plan.rows for plan in task.row_groups if plan.prune_reason is None] == [[range(5, 10)]]
    for text in ("st_x(geom) <> 30", "st_x(st_centroid(geom)) > 60", "st_area(geom) > 5", "st_x(geom) is null"):
        plans = [plan for task in pqext.scan(file).filter(text).plan() for plan in task.row_groups]
        assert all(plan.prune_reason is None for plan in plans)
    globe = stored(points[:80], rows=25, crs=None, edges="spherical")
    plans = [plan for task in pqext.scan(globe).filter("st_x(geom) > 60").plan() for plan in task.row_groups]
    assert all(plan.prune_reason is None for plan in plans)


def test_threads_read_row_groups_with_one_constant() -> None:
    rng = np.random.default_rng(0)
    shapes = shapely.buffer(shapely.points(rng.uniform(0, 10, (600, 2))), 0.5).tolist()
    place = shapely.buffer(CENTRE, 3, quad_segs=64)
    file = stored(shapes, rows=20)
    expected = np.flatnonzero(shapely.area(shapely.intersection(shapes, place)) > 0.3).tolist()
    for _ in range(5):
        assert ids(GEOM.st_intersection(place).st_area() > 0.3, file) == expected
    assert not shapely.is_prepared(place)
