"""Measures and constructions of arrays: what shapely and pyproj return, row by row, and errors with the row."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod, Transformer

from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.geo.functions.shapes import transform_boxes
from pqext.geo.functions.table import FUNCTIONS
from pqext.geo.types import GeospatialType

WKT = [
    "POINT (1 2)", "POINT Z (3 4 5)", "POINT M (3 4 6)", "POINT EMPTY", None, "LINESTRING (0 0, 3 4, 3 5)",
    "POLYGON ((0 0, 6 0, 6 6, 0 6, 0 0), (1 1, 2 1, 2 2, 1 2, 1 1))", "MULTIPOINT ((1 1), (2 2))", "POLYGON EMPTY",
    "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))", "MULTILINESTRING ((0 0, 0 1), (2 0, 3 0))",
    "GEOMETRYCOLLECTION (POINT (1 1), LINESTRING (0 0, 2 2), POLYGON ((0 0, 0 3, 4 0, 0 0)))",
    "POLYGON ((0 0, 0 2, 2 2, 2 0, 0 0), (0.5 0.5, 1 0.5, 1 1, 0.5 0.5))",
]  # fmt: skip
SHAPES = np.array([None if text is None else shapely.from_wkt(text) for text in WKT])
ARRAY = geo.from_wkt(WKT, crs="EPSG:3857")
BOWTIE = "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))"
PLACE = shapely.box(0, 0, 2.5, 2.5)
WGS84 = Geod(ellps="WGS84")


def flat_collections(shapes: Any) -> Any:
    """Collections without Z, which GEOS gives to some of their parts only."""
    return np.where(shapely.get_type_id(shapes) == 7, shapely.force_2d(shapes), shapes)


CONSTRUCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "envelope": (geo.envelope, shapely.envelope),
    "centroid": (geo.centroid, shapely.centroid),
    "point_on_surface": (geo.point_on_surface, shapely.point_on_surface),
    "convex_hull": (geo.convex_hull, shapely.convex_hull),
    "boundary": (geo.boundary, shapely.boundary),
    "buffer": (lambda a: geo.buffer(a, 1.5), lambda s: shapely.buffer(s, 1.5, quad_segs=8)),
    "coarse buffer": (lambda a: geo.buffer(a, -0.1, quad_segs=2), lambda s: shapely.buffer(s, -0.1, quad_segs=2)),
    "simplify": (lambda a: geo.simplify(a, 1), lambda s: shapely.simplify(s, 1)),
    "fast simplify": (
        lambda a: geo.simplify(a, 1, preserve_topology=False), lambda s: shapely.simplify(s, 1, preserve_topology=False)
    ),
    "make_valid": (geo.make_valid, shapely.make_valid),
    "orient": (geo.orient, lambda s: shapely.orient_polygons(s)),
    "orient cw": (lambda a: geo.orient(a, exterior_cw=True), lambda s: shapely.orient_polygons(s, exterior_cw=True)),
    "snap_to_grid": (lambda a: geo.snap_to_grid(a, 2), lambda s: shapely.set_precision(s, 2)),
    "union": (lambda a: geo.union(a, PLACE), lambda s: flat_collections(shapely.union(s, PLACE))),
    "intersection": (lambda a: geo.intersection(a, (0, 0, 2.5, 2.5)), lambda s: shapely.intersection(s, PLACE)),
}  # fmt: skip


def nullable(values: Any) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values]


def present(values: Any) -> list[Any]:
    """Values of rows that are not null."""
    return [None if shape is None else value for shape, value in zip(SHAPES, np.asarray(values).tolist(), strict=True)]


@pytest.mark.parametrize("name", CONSTRUCTIONS)
@pytest.mark.parametrize("is_chunked", [False, True])
def test_constructions_are_those_of_shapely(name: str, is_chunked: bool) -> None:
    construct, expected = CONSTRUCTIONS[name]
    array = pa.chunked_array([ARRAY[:5], ARRAY[5:5], ARRAY[5:]]) if is_chunked else ARRAY
    result = construct(array)
    assert isinstance(result, pa.ChunkedArray) is is_chunked
    assert result.type == ARRAY.type or result.type.extension_name == "geoarrow.wkb"
    assert geopandas.GeoDataFrame.from_arrow(pa.table({"g": result})).crs.to_epsg() == 3857
    storage = pa.concat_arrays([chunk.storage for chunk in result.chunks]) if is_chunked else result.storage
    assert storage.to_pylist() == shapely.to_wkb(expected(SHAPES), flavor="iso", byte_order=1).tolist()
    assert len(geo.find_faults(storage)) == 0
    bare = construct(geo.to_iso_wkb(ARRAY))
    assert bare.type == pa.binary()
    assert bare.to_pylist() == storage.to_pylist()


@pytest.mark.spec("querying.measures")
def test_planar_measures_are_those_of_shapely() -> None:
    series = geopandas.GeoSeries(SHAPES)
    assert geo.area(ARRAY).to_pylist() == nullable(shapely.area(SHAPES))
    assert geo.length(ARRAY).to_pylist() == nullable(shapely.length(SHAPES))
    assert geo.distance(ARRAY, PLACE).to_pylist() == nullable(shapely.distance(SHAPES, PLACE))
    assert geo.distance(ARRAY, shapely.to_wkb(PLACE)).to_pylist() == nullable(shapely.distance(SHAPES, PLACE))
    reverse = geo.from_shapely(SHAPES[::-1], crs="EPSG:3857")
    assert geo.distance(ARRAY, reverse).to_pylist() == nullable(shapely.distance(SHAPES, SHAPES[::-1]))
    assert geo.num_points(ARRAY).to_pylist() == present(shapely.get_num_coordinates(SHAPES))
    assert geo.is_empty(ARRAY).to_pylist() == present(shapely.is_empty(SHAPES))
    assert geo.is_valid(ARRAY).to_pylist() == present(shapely.is_valid(SHAPES))
    types = [None if shape is None else f"ST_{shape.geom_type}" for shape in SHAPES]
    assert geo.geometry_type(ARRAY).to_pylist() == types
    points = series.where((series.geom_type == "Point") & ~series.is_empty)
    for measure, ordinate in ((geo.x, shapely.get_x), (geo.y, shapely.get_y), (geo.z, shapely.get_z)):
        assert measure(ARRAY).to_pylist() == nullable(ordinate(points.to_numpy()))
    assert geo.m(ARRAY).to_pylist() == [6 if text == "POINT M (3 4 6)" else None for text in WKT]


def test_perimeters_are_of_areas_only() -> None:
    parts = [list(getattr(shape, "geoms", [shape])) if shape else [] for shape in SHAPES]
    lengths = [sum(part.length for part in row if part.geom_type == "Polygon") for row in parts]
    assert geo.perimeter(ARRAY).to_pylist() == pytest.approx(present(lengths))


@pytest.mark.spec("querying.measures")
def test_measures_of_geographies_are_those_of_the_ellipsoid() -> None:
    areas, perimeters, lengths = [], [], []
    for shape in SHAPES:
        shapes = [] if shape is None else list(getattr(shape, "geoms", [shape]))
        polygons = [part for part in shapes if part.geom_type == "Polygon" and not part.is_empty]
        outer = [WGS84.polygon_area_perimeter(*part.exterior.xy) for part in polygons]
        inner = [WGS84.polygon_area_perimeter(*ring.xy) for part in polygons for ring in part.interiors]
        areas.append(sum(abs(area) for area, _ in outer) - sum(abs(area) for area, _ in inner))
        perimeters.append(sum(length for _, length in outer + inner))
        lines = [part for part in shapes if part.geom_type == "LineString"]
        lengths.append(perimeters[-1] + sum(WGS84.line_length(*line.xy) for line in lines))
    for measure, values in ((geo.area, areas), (geo.perimeter, perimeters), (geo.length, lengths)):
        expected = [None if shape is None else value for shape, value in zip(SHAPES, values, strict=True)]
        assert measure(ARRAY, edges="karney", crs="OGC:CRS84").to_pylist() == pytest.approx(expected)


@given(st.lists(st.tuples(st.floats(-180, 180), st.floats(-90, 90)), min_size=1, max_size=5))
def test_distances_and_azimuths_of_points_are_those_of_pyproj(corners: list[tuple[float, float]]) -> None:
    x, y = np.array(corners).T
    other = shapely.Point(179.5, -16.5)
    directions, _, metres = WGS84.inv(x, y, np.full(len(x), 179.5), np.full(len(x), -16.5))
    points = geo.from_points(x, y)
    assert geo.distance(points, other, "spherical").to_pylist() == metres.tolist()
    azimuths = geo.azimuth(points, other, "spherical").to_pylist()
    for azimuth, direction, away in zip(azimuths, directions, metres, strict=True):
        assert azimuth is None if away == 0 else azimuth == pytest.approx(math.radians(direction % 360), abs=1e-12)


def test_planar_azimuths_turn_from_north_over_east() -> None:
    origin = geo.from_points([0.0] * 8, [0.0] * 8)
    around = geo.from_points([0, 1, 1, 1, 0, -1, -1, -1], [1, 1, 0, -1, -1, -1, 0, 1])
    assert np.degrees(geo.azimuth(origin, around).to_pylist()) == pytest.approx([45 * step for step in range(8)])
    mixed = geo.from_wkt(["POINT (0 0)", "POINT EMPTY", None, "LINESTRING (0 0, 1 1)", "POINT (NaN 1)"])
    assert geo.azimuth(mixed, shapely.Point(0, 0)).null_count == 5
    tiny = geo.azimuth(geo.from_points([0], [0]), shapely.Point(-1e-300, 1)).to_pylist()
    assert tiny == [0.0]


def test_distances_on_the_globe_to_a_constant_are_those_to_a_column() -> None:
    lines = geo.from_wkt(["LINESTRING (0 0, 10 10)", "POINT (3 3)", None, "POLYGON ((20 20, 21 20, 21 21, 20 20))"])
    place = shapely.from_wkt("POLYGON ((2 1, 4 1, 4 2, 2 1))")
    column = geo.from_shapely([place] * 4)
    metres = geo.distance(lines, place, "karney").to_pylist()
    assert metres == geo.distance(lines, geo.to_iso_wkb(column), "karney").to_pylist()
    assert metres[1] == pytest.approx(WGS84.inv(3, 3, 3.399, 1.7)[2], rel=0.02)
    assert metres[2] is None


def test_coordinates_beyond_the_globe_have_no_measures() -> None:
    beyond = geo.from_wkt(["LINESTRING (0 0, 181 0)", "POLYGON ((0 0, 1 0, 1 91, 0 0))", "POINT (0 -90.1)"])
    for measure in (geo.area, geo.length, geo.perimeter):
        assert measure(beyond, "spherical").null_count == 3
    assert geo.distance(beyond, shapely.Point(0, 0), "spherical").null_count == 3
    assert geo.azimuth(beyond, shapely.Point(0, 0), "spherical").null_count == 3


HOSTILE = [
    "POINT (NaN NaN)", "POINT (NaN 5)", "POINT (Infinity 0)", "LINESTRING (0 0, NaN 1, 2 2)", BOWTIE,
    "POLYGON ((0 0, NaN 0, 1 1, 0 0))", "POLYGON ((0 0, Infinity 0, 1 1, 0 0))", "LINESTRING (0 0, 0 0)",
    "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((0 0, 1 0, 1 1, 0 0)))", "POLYGON ((0 0, 1 1, 0 0, 0 0))",
    "POLYGON ((0 0, 1e308 0, 1e308 1e308, 0 0))", "LINESTRING (-1e308 0, 5 5, 1e308 1e308, 3 3e307)",
    "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), EMPTY)", "GEOMETRYCOLLECTION (POINT EMPTY, LINESTRING EMPTY)",
]  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("wkt", HOSTILE)
def test_hostile_geometries_have_a_result_or_an_error_with_the_row(name: str, wkt: str) -> None:
    from pqext.geo.functions.table import evaluate

    function = FUNCTIONS[name]
    examples = {"geometry": PLACE, "crs": "EPSG:3857"}
    arguments = [examples.get(parameter.type, 1.0) for parameter in function.parameters[1:2]]
    array = geo.from_wkt(["POINT (1 2)", None, wkt])
    rejected, result = None, None
    try:
        result = evaluate(name, array, *arguments)
    except GeometryError as error:
        rejected = error
    if result is None:
        assert rejected is not None
        assert rejected.row == 2
    else:
        assert len(result) == 3
        assert not result[1].is_valid


@pytest.mark.spec("querying.measures")
def test_errors_count_rows_over_chunks() -> None:
    chunks = pa.chunked_array([geo.from_wkt(["POINT (1 2)"] * 3), geo.from_wkt(["POINT (1 2)", BOWTIE])])
    with pytest.raises(GeometryError, match=r"^row 4: intersection failed"):
        geo.intersection(chunks, shapely.box(0, 0, 1, 1))
    with pytest.raises(GeometryError, match="row 1"):
        geo.area(pa.array([shapely.to_wkb(PLACE), b"\x01\x03"]))


def test_nan_among_the_coordinates_gives_null() -> None:
    array = geo.from_wkt(["POLYGON ((0 0, NaN 0, 1 1, 0 0))", "LINESTRING (0 0, NaN 1)"])
    assert geo.area(array).to_pylist() == [None, 0.0]
    assert geo.length(array).null_count == 2


@pytest.mark.parametrize("side", [math.nan, math.inf, -math.inf, 1e301])
def test_coordinates_that_crash_geos_are_not_buffered(side: float) -> None:
    array = geo.from_wkt(["POINT (1 2)", f"LINESTRING (0 {side}, {side} 2, 1 {-side})"])
    with pytest.raises(GeometryError, match=r"buffer is not supported for coordinates that are NaN or") as caught:
        geo.buffer(array, 2)
    assert caught.value.row == 1


def test_geographies_have_no_planar_constructions() -> None:
    globe = geo.as_extension(pa.table([ARRAY.storage], pa.schema([geo.geometry_field("g", None, "spherical")])))["g"]
    for name in CONSTRUCTIONS.keys() - {"orient"}:
        with pytest.raises(TypeError, match="requires planar geometries, not GEOGRAPHY"):
            CONSTRUCTIONS[name][0](globe)
    with pytest.raises(TypeError, match="st_isvalid requires planar"):
        geo.is_valid(globe)
    with pytest.raises(TypeError, match="its sides are not geodesics"):
        geo.distance(globe, (0, 0, 1, 1))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: geo.buffer(ARRAY, "1"), TypeError, "distance must be a number, not '1'"),
        (lambda: geo.buffer(ARRAY, True), TypeError, "distance must be a number"),
        (lambda: geo.buffer(ARRAY, math.nan), ValueError, "distance must be finite"),
        (lambda: geo.buffer(ARRAY, Decimal("NaN")), ValueError, "distance must be finite"),
        (lambda: geo.buffer(ARRAY, Decimal("sNaN")), ValueError, "distance must be finite"),
        (lambda: geo.buffer(ARRAY, 10**400), ValueError, "distance must be finite"),
        (lambda: geo.buffer(ARRAY, 1, quad_segs=math.inf), ValueError, "quad_segs must be a whole number from 1 to"),
        (lambda: geo.buffer(ARRAY, 1e400), ValueError, "distance must be finite"),
        (lambda: geo.buffer(ARRAY, 1, quad_segs=0), ValueError, "must be a whole number from 1 to 1000, not 0"),
        (lambda: geo.buffer(ARRAY, 1, quad_segs=2.5), ValueError, "quad_segs must be a whole number from 1 to 1000"),
        (lambda: geo.simplify(ARRAY, math.inf), ValueError, "tolerance must be finite"),
        (lambda: geo.simplify(ARRAY, 1, preserve_topology=1), TypeError, "preserve_topology must be true or false"),
        (lambda: geo.snap_to_grid(ARRAY, 0), ValueError, "size must be greater than 0, not 0"),
        (lambda: geo.union(ARRAY, "POINT (1 2)"), TypeError, "expected a shapely geometry, WKB or a box, not str"),
        (lambda: geo.union(ARRAY, (2, 0, 1, 1)), ValueError, "antimeridian"),
        (lambda: geo.union(ARRAY, ARRAY[:2]), ValueError, "must have equal lengths, not 13 and 2 rows"),
        (lambda: geo.distance(ARRAY, geo.from_points([0] * 13, [0] * 13, crs=4326)), TypeError, "in one CRS"),
        (lambda: geo.area(pa.array([1])), TypeError, "expected an Arrow array of WKB"),
    ],
)
def test_wrong_arguments_are_rejected(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_empty_arrays_have_empty_results_of_the_type() -> None:
    for array in (ARRAY[:0], pa.chunked_array([], pa.binary())):
        assert len(geo.area(array)) == 0
        assert geo.area(array).type == pa.float64()
        assert len(geo.buffer(array, 1)) == len(geo.distance(array, PLACE)) == 0
    assert geo.buffer(pa.chunked_array([], pa.binary()), 1).type == pa.binary()


def test_threads_share_arrays_and_constants() -> None:
    rows = 400
    array = geo.buffer(geo.from_points(np.arange(rows) % 20, np.arange(rows) // 20), 0.7)
    expected = shapely.to_wkb(shapely.intersection(geo.to_shapely(array), PLACE), flavor="iso").tolist()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: geo.intersection(array, PLACE).storage.to_pylist(), range(32)))
    assert all(result == expected for result in results)
    assert not shapely.is_prepared(PLACE)


def test_edges_and_crs_apply_to_both_arrays() -> None:
    points, others = geo.from_points([2.35], [48.86]), geo.from_points([13.38], [52.52])
    metres = WGS84.inv(2.35, 48.86, 13.38, 52.52)[2]
    assert geo.distance(points, others, edges="spherical").to_pylist() == [metres]
    assert geo.distance(points, geo.to_iso_wkb(others), edges="spherical").to_pylist() == [metres]
    projected = geo.from_points([0.0], [5.0], crs="EPSG:3857")
    assert geo.distance(projected, geo.from_points([0.0], [2.0]), crs="EPSG:3857").to_pylist() == [3.0]


def test_geographies_are_oriented_by_their_smaller_side() -> None:
    rings = [[(179, 0), (-179, 0), (-179, 1), (179, 1)], [(0, 80), (120, 80), (-120, 80)], [(0, 0), (1, 0), (1, 1)]]
    shapes = [shapely.Polygon(ring) for ring in rings] + [shapely.Polygon(ring[::-1]) for ring in rings]
    globe = geo.as_extension(
        pa.table([geo.to_iso_wkb(geo.from_shapely(shapes))], pa.schema([geo.geometry_field("g", None, "spherical")]))
    )["g"]
    oriented = geo.to_shapely(geo.orient(globe))
    assert all(WGS84.polygon_area_perimeter(*shape.exterior.xy)[0] > 0 for shape in oriented)
    assert all(shapely.equals(oriented, shapes))


def test_distances_of_points_equal_shapely_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(7)
    xy = random.normal(0, 10.0 ** random.integers(-200, 200, (5000, 1)), (5000, 2))
    xy[:4] = [[0, 0], [1e-320, 0], [1e300, -1e300], [np.inf, 0]]
    points = np.array([*shapely.points(xy), *shapely.from_wkt(["POINT EMPTY", "POINT Z (1 2 3)"])])
    others = random.permutation(points)
    for place in (shapely.Point(3, 4), shapely.Point(), others):
        with np.errstate(all="ignore"):
            expected = shapely.distance(points, place)
        with monkeypatch.context() as patch:
            patch.setattr("pqext.geo.joins.geometry_column.GeometryColumn.shapes", None)  # points need no shapes
            other = geo.from_shapely(place) if isinstance(place, np.ndarray) else shapely.to_wkb(place, flavor="iso")
            found = geo.distance(geo.from_shapely(points), other)
        assert found.to_pylist() == nullable(expected)


def test_arrays_are_paired_over_their_chunks() -> None:
    points = pa.chunked_array([geo.from_points([0.0, 1.0], [0.0, 0.0]), geo.from_points([2.0], [0.0])])
    others = pa.chunked_array([geo.from_points([0.0], [1.0]), geo.from_points([1.0, 2.0], [2.0, 3.0])])
    assert geo.distance(points, others).to_pylist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(("source", "target"), [("EPSG:4326", "EPSG:3857"), ("EPSG:3857", "OGC:CRS84")])
def test_box_of_transformed_geometries_is_a_little_wider_than_that_of_pyproj(source: str, target: str) -> None:
    boxes = np.array([[5.0, 6.0, 45.0, 46.5], [-20.0, 10.0, -30.0, 40.0], [0.0, 1.0, 0.0, 1.0]]).T
    if source != "EPSG:4326":
        boxes = boxes * 100_000
    transformer = Transformer.from_crs(source, target, always_xy=True)
    found = transform_boxes(boxes, GeospatialType(crs=source), target)
    for (xmin, xmax, ymin, ymax), box in zip(boxes.T, found.T, strict=True):
        west, south, east, north = transformer.transform_bounds(xmin, ymin, xmax, ymax)
        assert west - (east - west) / 2 <= box[0] <= west
        assert east <= box[1] <= east + (east - west) / 2
        assert south - (north - south) / 2 <= box[2] <= south
        assert north <= box[3] <= north + (north - south) / 2


def test_shells_are_clockwise_with_any_version_of_shapely(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [shape for shape in SHAPES if shape is None or not shape.has_m]
    shapes.append(shapely.GeometryCollection([shapely.box(0, 0, 1, 1)]))
    expected = shapely.orient_polygons(shapes, exterior_cw=True)
    monkeypatch.delattr(shapely, "orient_polygons")  # which shapely lacks before 2.1
    found = geo.to_shapely(geo.orient(geo.from_shapely(shapes), exterior_cw=True))
    assert [shapely.to_wkt(shape) for shape in found] == [shapely.to_wkt(shape) for shape in expected]


@pytest.mark.parametrize("other", [(2.0, -3.0, 9.0, 1.0), shapely.to_wkb(shapely.box(2, -3, 9, 1))], ids=["box", "wkb"])
def test_box_of_unions_contains_both_boxes(other: Any) -> None:
    boxes = np.array([[0.0, 1.0, 0.0, 2.0], [8.0, 11.0, -9.0, -8.0]]).T
    found = FUNCTIONS["st_union"].result_sides(boxes, GeospatialType(), [other])
    for (xmin, xmax, ymin, ymax), box in zip(boxes.T, found.T, strict=True):
        west, south, east, north = shapely.union(shapely.box(xmin, ymin, xmax, ymax), shapely.box(2, -3, 9, 1)).bounds
        assert box == pytest.approx([west, east, south, north], abs=1e-9)
        assert box[0] <= west < east <= box[1]
        assert box[2] <= south < north <= box[3]
