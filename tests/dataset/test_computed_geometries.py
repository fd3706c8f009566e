"""Predicates on computed geometries and scans in another CRS keep the rows that shapely and pyproj keep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyproj
import pytest
import shapely

import pqext
from pqext import col, geo

ROWS, GROUP, PAGE = 600, 100, 20
CONSTRUCTIONS: dict[str, tuple[Any, Any]] = {
    "st_envelope": (lambda g: g.st_envelope(), shapely.envelope),
    "st_centroid": (lambda g: g.st_centroid(), shapely.centroid),
    "st_pointonsurface": (lambda g: g.st_pointonsurface(), shapely.point_on_surface),
    "st_convexhull": (lambda g: g.st_convexhull(), shapely.convex_hull),
    "st_boundary": (lambda g: g.st_boundary(), shapely.boundary),
    "st_buffer": (lambda g: g.st_buffer(0.7), lambda shapes: shapely.buffer(shapes, 0.7, quad_segs=8)),
    "negative buffer": (lambda g: g.st_buffer(-0.01), lambda shapes: shapely.buffer(shapes, -0.01, quad_segs=8)),
    "st_simplify": (lambda g: g.st_simplify(0.3), lambda shapes: shapely.simplify(shapes, 0.3)),
    "st_snaptogrid": (lambda g: g.st_snaptogrid(0.5), lambda shapes: shapely.set_precision(shapes, 0.5)),
    "st_makevalid": (lambda g: g.st_makevalid(), shapely.make_valid),
    "st_union": (
        lambda g: g.st_union(shapely.Point(3, 47)), lambda shapes: shapely.union(shapes, shapely.Point(3, 47))
    ),
    "st_intersection": (
        lambda g: g.st_intersection(shapely.box(4, 44, 9, 52)),
        lambda shapes: shapely.intersection(shapes, shapely.box(4, 44, 9, 52)),
    ),
    "nested": (
        lambda g: g.st_centroid().st_buffer(0.5), lambda shapes: shapely.buffer(shapely.centroid(shapes), 0.5)
    ),
}  # fmt: skip
PREDICATES = ("intersects", "disjoint", "within", "touches", "covers", "dwithin")


def polygons() -> np.ndarray[Any, Any]:
    """Polygons from west to east, with points and nulls among them."""
    generator = np.random.default_rng(11)
    x, y = np.sort(generator.uniform(0, 12, ROWS)), generator.uniform(44, 52, ROWS)
    shapes = shapely.buffer(shapely.points(x, y), generator.uniform(0.01, 0.2, ROWS), quad_segs=3)
    shapes[::7] = shapely.points(x, y)[::7]
    shapes[::50] = None
    return shapes


SHAPES = polygons()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("computed") / "shapes.parquet"
    table = pa.table({"id": np.arange(ROWS), "g": geo.from_shapely(list(SHAPES))})
    pqext.write_table(table, path, geometry={"g": "EPSG:4326"}, row_group_rows=GROUP, page_rows=PAGE)
    return path


def relates(operation: str, shapes: Any, query: Any) -> set[int]:
    """The rows for which shapely says that ``operation`` is true; none for null."""
    distance = (0.4,) if operation == "dwithin" else ()
    present = np.array([shape is not None for shape in shapes])
    return set(np.flatnonzero(getattr(shapely, operation)(shapes, query, *distance) & present).tolist())


def ids(scan: pqext.Scan) -> set[int]:
    return set(scan.select("id").to_table()["id"].to_pylist())


@pytest.mark.spec("querying.measures")
@pytest.mark.parametrize("operation", PREDICATES)
@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_predicates_on_constructions_keep_the_rows_of_shapely(path: Path, name: str, operation: str) -> None:
    build, construct = CONSTRUCTIONS[name]
    shapes = construct(SHAPES)
    distance = (0.4,) if operation == "dwithin" else ()
    for query in (shapely.box(2, 46, 3, 48), shapely.Point(5, 48)):
        condition = getattr(build(col("g")), operation)(query, *distance)
        kept = relates(operation, shapes, query)
        assert ids(pqext.scan(path, filter=condition)) == kept
    text = json.loads(json.dumps(pqext.filters.to_json(condition)))
    assert ids(pqext.scan(path, filter=text)) == kept


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_constructions_skip_row_groups_and_pages(path: Path, name: str) -> None:
    build, construct = CONSTRUCTIONS[name]
    query = shapely.box(11, 44, 11.5, 52)
    scan = pqext.scan(path, filter=build(col("g")).intersects(query))
    assert set(scan.to_table()["id"].to_pylist()) == relates("intersects", construct(SHAPES), query)
    assert scan.metrics is not None
    if name != "st_union":  # boxes around unions with a point far away reach from there to the row
        assert scan.metrics.rows_evaluated < 1.5 * GROUP


def test_sql_and_python_build_the_same_condition(path: Path) -> None:
    sql = (
        "st_dwithin(st_buffer(g, 0.7), 'POINT (5 48)', 0.4) "
        "and st_contains(st_makeenvelope(0, 0, 9, 90), st_centroid(g))"
    )
    g = col("g")
    condition = g.st_buffer(0.7).dwithin(shapely.Point(5, 48), 0.4) & g.st_centroid().within((0, 0, 9, 90))
    assert ids(pqext.scan(path, filter=sql)) == ids(pqext.scan(path, filter=condition)) != set()


def test_only_geometries_have_spatial_predicates() -> None:
    with pytest.raises(TypeError, match=r"expected a column of geometries, not st_area\(g\)"):
        col("g").st_area().intersects((0, 0, 1, 1))


@pytest.mark.parametrize("crs", ["EPSG:3857", "EPSG:32632", "EPSG:3035", "EPSG:27700", "ESRI:54030"])
def test_a_scan_in_another_crs_equals_geopandas(path: Path, crs: str) -> None:
    frame = geopandas.GeoDataFrame(geometry=list(SHAPES), crs="EPSG:4326").to_crs(crs)
    scan = pqext.scan(path).to_crs(crs)
    assert geo.to_geopandas(scan.to_table()).crs == frame.crs
    expected = shapely.to_wkb(np.array(frame.geometry.array, dtype=object))
    assert scan.to_table()["g"].to_pylist() == expected.tolist()
    query = frame.geometry.iloc[300:302].union_all().buffer(10_000)
    chosen = scan.filter(col("g").intersects(query))
    assert chosen.to_table()["id"].to_pylist() == np.flatnonzero(frame.intersects(query)).tolist() != []
    assert chosen.metrics is not None
    assert chosen.metrics.rows_evaluated <= 2 * GROUP


def test_measures_and_aggregates_of_a_scan_in_another_crs_equal_geopandas(path: Path) -> None:
    frame = geopandas.GeoDataFrame(geometry=list(SHAPES), crs="EPSG:4326").to_crs("EPSG:3035").geometry
    scan = pqext.scan(path).to_crs("EPSG:3035")
    g, point = col("g"), shapely.Point(4_000_000, 2_800_000)
    selected = scan.select("id", ("m2", g.st_area()), ("x", g.st_xmin()), "st_perimeter(g) as p")
    result = selected.select("m2", "x", "p", ("c", g.st_centroid()), ("d", g.st_distance(point))).to_table()
    expected = {"m2": frame.area, "x": frame.bounds["minx"], "p": frame.length, "d": frame.distance(point)}
    for name, values in expected.items():
        np.testing.assert_allclose(result[name].to_numpy(), values.to_numpy(), rtol=1e-9, err_msg=name)
    assert geo.to_geopandas(result.select(["c"])).geometry.geom_equals_exact(frame.centroid, 1e-3)[~frame.isna()].all()
    box = scan.bounds("g")
    assert box is not None
    assert (box.xmin, box.ymin, box.xmax, box.ymax) == pytest.approx(tuple(frame.total_bounds))
    assert selected.max("m2").as_py() == pytest.approx(frame.area.max())
    assert scan.null_count("g") == frame.isna().sum()
    query = frame.iloc[300:302].union_all().buffer(10_000)
    chosen = scan.select("id").filter(g.intersects(query))  # the column is not selected
    assert chosen.to_table()["id"].to_pylist() == np.flatnonzero(frame.intersects(query)).tolist() != []
    with pytest.raises(TypeError, match="column 'g' contains geometries, which have no order"):
        scan.min("g")


def test_boxes_in_another_crs_contain_every_row() -> None:
    """Lines along the sides of wide boxes, whose images bulge beyond the images of the corners."""
    from pqext.geo.functions.shapes import transform_boxes
    from pqext.geo.types import GeospatialType

    generator = np.random.default_rng(3)
    for target in ("EPSG:3857", "EPSG:3035", "EPSG:3995", "EPSG:32661", "ESRI:54030", "EPSG:2154"):
        move = pyproj.Transformer.from_crs("EPSG:4326", target, always_xy=True)
        low = np.stack([generator.uniform(-180, 150, 300), generator.uniform(-89, 80, 300)])
        high = low + generator.exponential([[20], [8]], (2, 300))
        sides = np.stack([low[0], np.minimum(high[0], 180), low[1], np.minimum(high[1], 90)])
        result = transform_boxes(sides, GeospatialType("EPSG:4326"), target)
        at = generator.uniform(0, 1, (2, 400, 1))
        x, y = move.transform(
            (sides[0] + (sides[1] - sides[0]) * at[0]).ravel(), (sides[2] + (sides[3] - sides[2]) * at[1]).ravel()
        )
        known = np.isfinite(result).all(axis=0)
        inside = (x.reshape(400, -1) >= result[0]) & (x.reshape(400, -1) <= result[1])
        inside &= (y.reshape(400, -1) >= result[2]) & (y.reshape(400, -1) <= result[3])
        assert inside[:, known].all()
        assert known.mean() > 0.3 or target == "EPSG:2154"


def test_boxes_between_datums_prune_only_geometries_without_heights(tmp_path: Path) -> None:
    xy = np.random.default_rng(4).uniform([-4, 51], [1, 55], (3000, 2))
    move = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:27700", always_xy=True)
    box = shapely.box(400_000, 200_000, 430_000, 300_000)
    for heights in ((), (3000.0,)):
        path = tmp_path / f"{len(heights)}.parquet"
        points = shapely.points(np.column_stack([xy, *(np.full(len(xy), height) for height in heights)]))
        table = pa.table({"id": range(len(xy)), "g": geo.from_shapely(points)})
        pqext.write_table(table, path, geometry={"g": {"crs": "EPSG:4326", "order": "hilbert"}}, row_group_rows=500)
        stored = pqext.read_table(path)
        at = shapely.get_coordinates(geo.to_shapely(stored["g"]), include_z=bool(heights))
        there = shapely.points(*move.transform(*at.T)[:2])
        scan = pqext.scan(path).select("id", ("h", col("g").st_transform("EPSG:27700")))
        chosen = scan.filter(col("h").intersects(box))
        expected = stored["id"].to_numpy()[shapely.intersects(there, box)]
        assert chosen.to_table()["id"].to_pylist() == expected.tolist() != []
        assert chosen.metrics is not None
        assert (chosen.metrics.rows_evaluated < len(xy) / 2) is not bool(heights)


def test_heights_of_a_constant_disable_pruning_between_datums() -> None:
    from pqext.dataset.expressions.spatial_functions import spatial_function
    from pqext.geo.box import BoundingBox
    from pqext.geo.functions.result_predicate import ResultPredicate
    from pqext.geo.predicates.boxes import Answer
    from pqext.geo.types import GeospatialType

    union, transform = spatial_function("st_union"), spatial_function("st_transform")
    types, near, far = [1], (0.0, 0.1, 52.0, 52.1), shapely.box(0, 0, 10, 10)
    constant = (shapely.to_wkb(shapely.Point(0, 52, 4000)),)
    for functions, answer in (
        (((transform, ("EPSG:27700",)),), Answer.NO),
        (((union, constant), (transform, ("EPSG:27700",))), Answer.MAYBE),
    ):  # fmt: skip
        predicate = ResultPredicate("intersects", far, functions=functions)
        question = BoundingBox(*near), GeospatialType("EPSG:4326")
        assert predicate.answer(*question) == Answer.MAYBE
        assert predicate.for_types(types).answer(*question) == answer
        assert predicate.for_types([1, 1001]).answer(*question) == Answer.MAYBE


def test_a_folder_of_several_crs_is_one_result(tmp_path: Path) -> None:
    points = np.array([[9.0, 48.0], [10.0, 49.0]])
    for number, crs in enumerate(("OGC:CRS84", "EPSG:3857", "EPSG:32632")):
        x, y = pyproj.Transformer.from_crs("OGC:CRS84", crs, always_xy=True).transform(*points.T)
        table = pa.table({"n": [number] * 2, "g": geo.from_points(x, y)})
        pqext.write_table(table, tmp_path / f"{number}.parquet", geometry={"g": crs})
    with pytest.raises(pqext.ParquetError, match="CRS"):
        pqext.read_table(tmp_path)
    table = pqext.scan(tmp_path).to_crs("EPSG:3857").to_table()
    x, y = pyproj.Transformer.from_crs("OGC:CRS84", "EPSG:3857", always_xy=True).transform(*points.T)
    found = shapely.get_coordinates(geo.to_shapely(table["g"]))
    np.testing.assert_allclose(found, np.tile(np.stack([x, y], axis=1), (3, 1)), rtol=1e-9)
    near = pqext.scan(tmp_path).to_crs("EPSG:3857").filter(col("g").dwithin(shapely.Point(x[0], y[0]), 1))
    assert near.to_table()["n"].to_pylist() == [0, 1, 2]


def test_nearest_measures_in_the_crs_of_the_scan(path: Path) -> None:
    frame = geopandas.GeoDataFrame(geometry=list(SHAPES), crs="EPSG:4326").to_crs("EPSG:3035")
    place = shapely.Point(4_300_000, 2_800_000)
    table = pqext.scan(path).to_crs("EPSG:3035").nearest(place, 5).to_table()
    distances = frame.distance(place).sort_values(kind="stable")[:5]
    assert table["id"].to_pylist() == distances.index.tolist()
    np.testing.assert_allclose(table["distance"].to_numpy(), distances.to_numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("EPSG:0",), pqext.ParquetError, "CRS"),
        (("EPSG:3857", "x"), ValueError, "the scan has"),
        (("EPSG:3857", "id"), TypeError, "geometr"),
    ],
)
def test_a_wrong_crs_or_column_is_an_error(path: Path, arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        pqext.scan(path).to_crs(*arguments).to_table()


def test_boxes_prove_nothing_where_x_and_y_depend_on_z(tmp_path: Path) -> None:
    place = geo.from_shapely([shapely.Point(-2, 53, 4_000_000)])
    pqext.write_table(pa.table({"g": place}), tmp_path / "high.parquet", geometry={"g": "EPSG:4326"})
    move = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:27700", always_xy=True)
    x, y, _ = move.transform(-2, 53, 4_000_000)
    assert shapely.distance(shapely.Point(x, y), shapely.Point(move.transform(-2, 53))) > 5
    scan = pqext.scan(tmp_path / "high.parquet").to_crs("EPSG:27700")
    assert scan.filter(col("g").dwithin(shapely.Point(x, y), 1)).count() == 1
