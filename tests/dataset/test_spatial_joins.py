"""``geo.join`` and ``geo.nearest`` against geopandas, and against predicates evaluated pair by pair."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyproj
import pytest
import shapely

import pqext
from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.dataset import geometry_rows, spatial_joins
from pqext.dataset.geometry_rows import GeometryRows
from pqext.geo.joins.geometry_column import GeometryColumn
from pqext.geo.joins.matching import Matcher, Nearest
from pqext.geo.types import GeospatialType
from reference import s2

RANDOM = np.random.default_rng(7)
CENTRES = RANDOM.uniform(-10, 10, (60, 2))
ZONES = [*shapely.buffer(shapely.points(CENTRES), RANDOM.uniform(0.1, 3, 60), quad_segs=4), None, shapely.Polygon()]
SHAPES = [
    *shapely.points(RANDOM.uniform(-10, 10, (150, 2))), None, shapely.Point(),
    *shapely.buffer(shapely.points(RANDOM.uniform(-10, 10, (50, 2))), 0.7, quad_segs=2), *ZONES[:3],
    *shapely.linestrings(RANDOM.uniform(-10, 10, (30, 2, 2))),
]  # fmt: skip


def table(name: str, shapes: list[Any], **type: Any) -> pa.Table:
    schema = pa.schema([(name, pa.int64()), geo.geometry_field("shape", **type)])
    return pa.table([pa.array(range(len(shapes))), geo.from_shapely(shapes)], schema=schema)


def pairs(joined: pa.Table) -> list[tuple[int, int]]:
    return list(zip(joined["row"].to_pylist(), joined["zone"].to_pylist(), strict=True))


LEFT, RIGHT = table("row", SHAPES), table("zone", ZONES)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    pqext.write_table(LEFT, tmp_path / "left.parquet", row_group_rows=40, geometry={"shape": {"order": "hilbert"}})
    pqext.write_table(RIGHT, tmp_path / "right.parquet", row_group_rows=10, geometry={"shape": {"order": "hilbert"}})
    return tmp_path / "left.parquet", tmp_path / "right.parquet"


def by_geopandas(predicate: str, **options: Any) -> list[tuple[int, int]]:
    left, right = (geopandas.GeoDataFrame(geometry=shapes) for shapes in (SHAPES, ZONES))
    joined = geopandas.sjoin(left, right, predicate=predicate, **options)
    return sorted(zip(joined.index.tolist(), joined["index_right"].tolist(), strict=True))


@pytest.fixture(params=["in memory", "by parts"])
def right_side(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Join with the right side in memory, and with the rows of a file near each part of the left side."""
    if request.param == "by parts":
        monkeypatch.setattr("pqext.dataset.spatial_joins.MOST_HELD", 0)
        monkeypatch.setattr("pqext.dataset.geometry_rows.BATCH_ROWS", 25)


@pytest.mark.spec("geo.joins.exact")
@pytest.mark.usefixtures("right_side")
@pytest.mark.parametrize(
    "predicate", ["intersects", "within", "contains", "covers", "covered_by", "touches", "crosses", "overlaps"]
)
def test_pairs_match_geopandas(files: tuple[Path, Path], predicate: Any) -> None:
    expected = by_geopandas(predicate)
    found = pairs(geo.join(LEFT, RIGHT, predicate, columns=["row", "zone"]))
    assert found == expected
    for sides in (files, (files[0], RIGHT), (LEFT, files[1]), (pqext.scan(files[0]), pqext.scan(files[1]))):
        left, right = (str(side) if isinstance(side, Path) else side for side in sides)
        assert sorted(pairs(geo.join(left, right, predicate, columns=["row", "zone"]))) == expected


@pytest.mark.usefixtures("right_side")
@pytest.mark.spec("geo.joins.exact")
def test_dwithin_returns_pairs_up_to_its_distance(files: tuple[Path, Path]) -> None:
    expected = by_geopandas("dwithin", distance=1.5)
    assert len(expected) > len(by_geopandas("intersects"))
    for left, right in ((LEFT, RIGHT), tuple(map(str, files))):
        assert sorted(pairs(geo.join(left, right, "dwithin", distance=1.5, columns=["row", "zone"]))) == expected


AREAS = {
    "one box": [shapely.box(0, 0, 1, 1)],
    "boxes that touch": [shapely.box(x, y, x + 1, y + 1) for x in range(8) for y in range(8)],
    "boxes of all sizes": [shapely.box(x, x, size, size) for x in range(5) for size in range(x + 1, 9)],
    "a box without height": [shapely.LineString([(0, 3), (8, 3)]), shapely.LineString([(0, 3), (2, 3)])],
    "a box without width": [shapely.LineString([(3, 0), (3, 8)])],
    "a point": [shapely.Point(3, 3)],
}


@pytest.mark.spec("geo.joins.exact")
@pytest.mark.parametrize("predicate", ["intersects", "within", "covered_by", "touches"])
@pytest.mark.parametrize("areas", AREAS.values(), ids=AREAS)
def test_points_on_corners_and_sides_of_boxes_are_joined(areas: list[Any], predicate: Any) -> None:
    points = [shapely.Point(x / 2, y / 2) for x in range(-1, 18) for y in range(-1, 18)]
    expected = shapely.STRtree(areas).query(points, predicate)
    joined = geo.join(table("row", points), table("zone", areas), predicate, columns=["row", "zone"])
    assert sorted(pairs(joined)) == sorted(zip(*expected.tolist(), strict=True))


def test_left_semi_and_anti_joins_return_each_left_row() -> None:
    inner = geo.join(LEFT, RIGHT)
    assert inner.column_names == ["row", "shape", "zone", "shape_right"]
    left = geo.join(LEFT, RIGHT, how="left")
    assert left.filter(left["zone"].is_valid()).equals(inner)
    matched = set(inner["row"].to_pylist())
    semi, anti = (geo.join(LEFT, RIGHT, how=how)["row"].to_pylist() for how in ("semi", "anti"))  # type: ignore[arg-type]
    assert semi == sorted(matched)
    assert anti == sorted(set(range(len(SHAPES))) - matched)
    assert left.filter(left["zone"].is_null())["row"].to_pylist() == anti


@pytest.mark.spec("geo.joins.exact")
@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_a_large_right_side_is_read_near_each_part_of_the_left(
    files: tuple[Path, Path], how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = LEFT.slice(0, 150)  # points
    order = np.argsort(shapely.bounds(geo.to_shapely(left["shape"]))[:, 0], kind="stable")
    across = left.take(pa.array(order))  # from west to east
    pqext.write_table(across, files[0], row_group_rows=40)
    expected = geo.join(files[0], files[1], how=how)
    sizes: list[int] = []
    table_of = GeometryRows.table

    def count(side: Any) -> pa.Table:
        result = table_of(side)
        sizes.append(len(result))
        return result

    monkeypatch.setattr(GeometryRows, "table", count)
    monkeypatch.setattr(spatial_joins, "MOST_HELD", 0)
    monkeypatch.setattr(geometry_rows, "BATCH_ROWS", 20)
    assert geo.join(files[0], files[1], how=how).equals(expected)
    assert len(sizes) > 5
    assert max(sizes) < len(ZONES) / 2


def test_geodesic_edges_determine_pairs_of_geography() -> None:
    globe = {"edges": "spherical"}
    shapes = [shapely.Point(45, 62), shapely.Point(179.99, 0.1), shapely.LineString([(170, 1), (-170, -1)])]
    zones = [shapely.box(0, 50, 90, 60), shapely.Polygon([(-179.9, -5), (-170, -5), (-170, 5), (-179.9, 5)])]
    left, right = table("row", shapes, **globe), table("zone", zones, **globe)
    expected = [
        (row, zone)
        for row, shape in enumerate(shapes) for zone, area in enumerate(zones)
        if geo.intersects(geo.from_shapely([shape]), area, edges="spherical")[0].as_py()
    ]  # fmt: skip
    assert (0, 0) in expected
    assert pairs(geo.join(left, right, columns=["row", "zone"])) == expected
    near = geo.join(left, right, "dwithin", distance=20_000, columns=["row", "zone"])
    assert (1, 1) in pairs(near)


@pytest.mark.spec("geo.joins.exact")
def test_dwithin_near_a_pole_across_the_antimeridian_matches_s2() -> None:
    rows = [shapely.Point(x, 88) for x in range(-180, 180, 10)]
    zone = shapely.Polygon([(170, 87.8), (-170, 87.8), (-170, 88), (170, 88)])
    globe = {"edges": "spherical", "crs": pyproj.CRS.from_dict({"proj": "longlat", "R": s2.RADIUS})}
    metres = 168_500  # 1.5 degrees of latitude, and 177 degrees of longitude at the latitudes that it reaches
    expected = [(row, 0) for row, away in enumerate(s2.Oracle(rows, zone).distances()) if away <= metres]
    assert 0 < len(expected) < len(rows)
    left, right = table("row", rows, **globe), table("zone", [zone], **globe)
    assert pairs(geo.join(left, right, "dwithin", distance=metres, columns=["row", "zone"])) == expected


@pytest.mark.usefixtures("right_side")
@pytest.mark.spec("geo.joins.nearest")
@pytest.mark.parametrize("limit", [None, 0.5])
def test_nearest_matches_geopandas(files: tuple[Path, Path], limit: float | None) -> None:
    left, right = (geopandas.GeoDataFrame(geometry=shapes) for shapes in (SHAPES, ZONES))
    joined = geopandas.sjoin_nearest(left, right, max_distance=limit, distance_col="distance").dropna()
    expected = joined.groupby(level=0)["distance"].first().to_dict()
    for sides in ((LEFT, RIGHT), tuple(map(str, files))):
        found = geo.nearest(*sides, max_distance=limit, columns=["row", "zone", "distance"])
        assert dict(zip(found["row"].to_pylist(), found["distance"].to_pylist(), strict=True)) == expected


@pytest.mark.spec("geo.joins.nearest")
def test_several_neighbours_are_ordered_by_distance() -> None:
    distances = np.sort(shapely.distance(SHAPES[0], np.array(ZONES[:60])))[:5]
    found = geo.nearest(LEFT.slice(0, 1), RIGHT, 5, columns=["distance"])
    assert found["distance"].to_pylist() == distances.tolist()


def test_neighbours_at_the_smallest_distances_are_found() -> None:
    tiny = np.nextafter(0.0, 1.0)
    points = geo.from_points([0.0, *[tiny] * 8], np.zeros(9))
    assert Nearest(GeometryColumn(points.storage, GeospatialType()), 9, None)._spacing() > 0  # or the search has no end
    found = geo.nearest({"at": geo.from_points([0.0], [0.0])}, {"zone": np.arange(9), "place": points}, 9)
    assert found["zone"].to_pylist() == [*range(9)]


def test_sides_may_be_tables_of_other_libraries() -> None:
    frame = geopandas.GeoDataFrame({"zone": range(3)}, geometry=ZONES[:3], crs="OGC:CRS84")
    plain = LEFT.replace_schema_metadata().set_column(1, "shape", geo.from_shapely(SHAPES).cast(pa.binary()))
    found = geo.join(plain, frame, on=("shape", "geometry"), columns=["row", "zone"])
    assert pairs(found) == [pair for pair in by_geopandas("intersects") if pair[1] < 3]
    assert geo.join({"at": geo.from_points([0.0], [0.0])}, RIGHT, columns=["zone"]).num_columns == 1


def test_empty_sides_have_no_pairs(tmp_path: Path) -> None:
    for empty in (LEFT.slice(0, 0), table("row", [None, shapely.Point()])):
        pqext.write_table(empty, tmp_path / "empty.parquet")
        for rows in (empty, str(tmp_path / "empty.parquet")):
            assert len(geo.join(rows, RIGHT)) == 0
            assert geo.join(rows, RIGHT).schema.names == geo.join(LEFT, RIGHT).schema.names
            assert len(geo.join(LEFT, rows, suffix="_other")) == 0
            assert len(geo.nearest(rows, RIGHT)) == 0


@pytest.mark.parametrize(
    ("areas", "expected"),
    [
        ([None, shapely.Polygon()], []),
        ([shapely.box(-1.5e308, 0, 1.5e308, 1), shapely.box(0, 0, 1, 1)], [(0, 0), (0, 1), (1, 0)]),
        ([shapely.box(0.5, 0.5, math.nextafter(0.5, 1), 1), shapely.box(2, 2, 3, 3)], []),
        ([shapely.box(-5e-324, 0, 5e-324, 1), shapely.box(0, 0, 0, 2)], []),
    ],
)
def test_points_are_joined_with_areas_that_fit_no_grid(areas: list[Any], expected: list[tuple[int, int]]) -> None:
    points = [shapely.Point(0.5, 0.5), shapely.Point(1.4e308, 0.5), shapely.Point(2, 2)]
    assert pairs(geo.join(table("row", points), table("zone", areas), "within", columns=["row", "zone"])) == expected


@pytest.mark.parametrize(("edges", "expected"), [("planar", [(0, 0)]), ("spherical", [(0, 1)])])
@pytest.mark.parametrize("is_file", [False, True])
def test_edges_join_geometry_with_geography(edges: Any, expected: Any, is_file: bool, tmp_path: Path) -> None:
    # By spherical trigonometry, the great circle is at latitude atan(tan(50) / cos(60)) = 67.2 in the middle.
    line = table("row", [shapely.LineString([(-60, 50), (60, 50)])], edges="spherical")
    boxes = table("zone", [shapely.box(-1, 49, 1, 51), shapely.box(-1, 66.5, 1, 68)])
    with pytest.raises(TypeError, match='pass edges="spherical" to join along geodesics'):
        geo.join(line, boxes)
    sides: list[Any] = [line, boxes]
    if is_file:
        sides = [tmp_path / "left.parquet", tmp_path / "right.parquet"]
        for side, path in zip((line, boxes), sides, strict=True):
            pqext.write_table(side, path)
    assert pairs(geo.join(*sides, edges=edges)) == expected
    assert pairs(geo.join(*sides[::-1], edges=edges)) == expected
    if edges == "planar":
        assert pairs(geo.join(sides[0], boxes.slice(0, 1), edges=edges)) == expected  # the route misses its box
        assert geo.nearest(*sides, edges=edges)["distance"].to_pylist() == [0]
    else:
        with pytest.raises(TypeError, match='pass edges="planar" for distances in degrees'):
            geo.nearest(*sides, edges=edges)
        with pytest.raises(GeometryError, match="edges='spherical' requires a geographic CRS, not EPSG:3857"):
            geo.join(line, table("zone", ZONES, crs="EPSG:3857"), edges="spherical")


@pytest.mark.parametrize(("arguments", "options", "error", "message"), [
    ((LEFT, RIGHT, "disjoint"), {}, ValueError, "how='anti' returns the rows"),
    ((LEFT, RIGHT, "intersect"), {}, ValueError, "did you mean"),
    ((LEFT, RIGHT, "within"), {"distance": 1}, TypeError, "within does not accept a distance"),
    ((LEFT, RIGHT, "dwithin"), {"distance": 10**400}, ValueError, "distance"),
    ((LEFT, RIGHT, "dwithin"), {}, TypeError, "the distance of dwithin must be a number"),
    ((LEFT, RIGHT), {"how": "outer"}, ValueError, "how must be one of inner, left, semi, anti"),
    ((LEFT, RIGHT), {"on": "shap"}, ValueError, "the left side has no column 'shap'; did you mean 'shape'"),
    ((LEFT, RIGHT), {"on": ("shape", "zone")}, TypeError, "column 'zone' of the right side is int64, not WKB"),
    ((LEFT, RIGHT), {"columns": ["zones"]}, ValueError, "the join has no column 'zones'; did you mean 'zone'"),
    ((LEFT, RIGHT), {"suffix": ""}, ValueError, "duplicate columns shape in the result"),
    ((LEFT.select(["row"]), RIGHT), {}, ValueError, "the left side has no geometry column"),
    ((LEFT, table("zone", ZONES, crs="EPSG:3857")), {}, ValueError, "transform either column with geo.transform"),
    ((LEFT, table("zone", ZONES, edges="spherical")), {}, TypeError, "GEOMETRY, but 'shape' on the right is GEOGRAPHY"),
])  # fmt: skip
def test_invalid_arguments_are_typed_errors(arguments: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        geo.join(*arguments, **options)


def test_invalid_wkb_and_nearest_arguments_are_typed_errors() -> None:
    broken = pa.table({"at": pa.array([b"\x01\x01", None])}, pa.schema([geo.geometry_field("at")]))
    with pytest.raises(GeometryError) as raised:
        geo.join(broken, RIGHT)
    assert raised.value.row == 0
    for options in ({"k": 0}, {"k": True}, {"max_distance": 0}, {"max_distance": float("nan")}):
        with pytest.raises(ValueError, match="must be a positive"):
            geo.nearest(LEFT, RIGHT, **options)
    globe = [table(name, ZONES[:2], edges="spherical") for name in ("row", "zone")]
    with pytest.raises(TypeError, match="planar"):
        geo.nearest(*globe)


def test_limited_scan_joins_its_own_rows(tmp_path: Path) -> None:
    path = tmp_path / "row.parquet"
    pqext.write_table(LEFT, path)
    first, zones = LEFT.slice(0, 90), RIGHT.slice(0, 3)
    limited = pqext.scan(path).limit(90)
    assert pairs(geo.join(limited, zones)) == pairs(geo.join(first, zones)) != pairs(geo.join(path, zones))
    reverse = {"columns": ["row", "zone"]}
    assert pairs(geo.join(zones, limited, **reverse)) == pairs(geo.join(zones, first, **reverse))
    near = {"max_distance": 1.0, "columns": ["row", "zone"]}
    assert pairs(geo.nearest(limited, zones, **near)) == pairs(geo.nearest(first, zones, **near))


@pytest.mark.spec("geo.joins.exact")
@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_columns_without_arrow_take_support_are_joined(how: Any) -> None:
    texts = pa.array([str(row) for row in range(len(LEFT))])
    ends = pa.array([len(LEFT)], pa.int32())
    odd = LEFT.append_column("text", texts.cast(pa.string_view())).append_column("texts", pa.array(
        [[text] for text in texts.to_pylist()], pa.list_(pa.string_view())
    )).append_column("run", pa.RunEndEncodedArray.from_arrays(ends, pa.array([7])))  # fmt: skip
    odd = odd.append_column("lists", pa.array([[row] for row in range(len(LEFT))], pa.list_view(pa.int16())))
    shape = odd["shape"].combine_chunks().cast(pa.binary_view())
    odd = odd.set_column(1, odd.schema.field("shape").with_type(shape.type), shape)
    expected = geo.join(LEFT, RIGHT, how=how)
    joined = geo.join(odd, RIGHT, how=how)
    assert joined.select(["row", "shape"]).to_pylist() == expected.select(["row", "shape"]).to_pylist()
    assert joined["text"].to_pylist() == [str(row) for row in expected["row"].to_pylist()]
    assert joined["run"].to_pylist() == [7] * len(joined)
    assert joined["lists"].to_pylist() == [[row] for row in expected["row"].to_pylist()]
    assert geo.join(RIGHT, odd, how=how).num_rows == geo.join(RIGHT, LEFT, how=how).num_rows


def test_nearest_accepts_any_integer_and_more_neighbours_than_rows() -> None:
    everything = geo.nearest(LEFT, RIGHT, len(RIGHT))
    assert len(everything) > len(LEFT)
    assert geo.nearest(LEFT, RIGHT, 10**40).equals(everything)
    assert geo.nearest(LEFT, RIGHT, np.int64(2)).equals(geo.nearest(LEFT, RIGHT, 2))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": 5}, "columns must be a list of column names of the result, not 5"),
        ({"columns": ["row", None]}, "columns must be a list"),
        ({"suffix": None}, "suffix must be a str, not None"),
        ({"on": 5}, "on must be a column name, or a pair"),
        ({"on": (1, 2)}, "on must be a column name, or a pair"),
    ],
)
def test_arguments_of_other_types_are_rejected(options: dict[str, Any], message: str) -> None:
    for function in (geo.join, geo.nearest):
        with pytest.raises((TypeError, ValueError), match=message):
            function(LEFT, RIGHT, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_distance": "1"}, "max_distance must be a number, not '1'"),
        ({"max_distance": 10**400}, "max_distance must be a positive number"),
        ({"distance_column": None}, "distance_column must be the name of a column, not None"),
    ],
)
def test_nearest_options_of_other_types_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        geo.nearest(LEFT, RIGHT, **options)


@pytest.mark.parametrize("how", ["inner", "semi"])
def test_duplicate_geometry_column_names_are_rejected(how: Any) -> None:
    double = pa.table([LEFT["shape"], LEFT["shape"]], schema=pa.schema([LEFT.schema.field("shape")] * 2))
    for left, right, side in ((double, RIGHT, "left"), (RIGHT, double, "right")):
        with pytest.raises(ValueError, match=f"the {side} side has several columns with the name 'shape'; rename all"):
            geo.join(left, right, how=how)


@pytest.mark.filterwarnings("ignore:GEOGRAPHY. a query polygon has edges of 180 degrees")
@pytest.mark.parametrize("edges", ["spherical", "karney"])
def test_points_on_the_globe_are_joined_like_other_geometries(edges: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(8)
    x, y = chance.uniform(-180, 180, 4000), chance.uniform(-90, 90, 4000)
    beyond = 180 + 1e-10  # within the tolerance for rounding errors
    columns, rows = [180, -180, 0, beyond, -beyond, 0], [5, 5, 90, 5, 5, 90 + 1e-10]
    points = pa.table({"id": np.arange(4006), "at": geo.from_points([*x, *columns], [*y, *rows])})
    centres = shapely.points(x[:40] / 1.2, y[:40] / 1.3)
    shapes = [*shapely.buffer(centres, chance.uniform(1, 20, 40))]
    shapes += [shapely.Polygon([(170, 0), (-160, 0), (-160, 10), (170, 10)]), shapely.box(175, 0, 180, 10)]
    shapes += [shapely.Polygon(), None, shapely.Point(180, 5)]
    shapes += [shapely.Polygon([(0, 80), (120, 80), (-120, 80)]), shapely.box(-100, -20, 100, 20)]
    areas = pa.table({"name": np.arange(len(shapes)), "area": geo.from_shapely(shapes)})
    operations: list[Any] = ["intersects", "within"]
    fast = [geo.join(points, areas, operation, edges=edges).select(["id", "name"]) for operation in operations]
    for matches in fast:
        names = [matches.filter(pc.field("id") == 4000 + row)["name"].to_pylist() for row in range(6)]
        assert names[:3] == names[3:]
        assert 41 in names[3] or matches is not fast[0]
    monkeypatch.setattr(Matcher, "_match_globe_points", lambda self, left, rows, _: (rows < 0, rows >= 0))
    for operation, table in zip(operations, fast, strict=True):
        assert table == geo.join(points, areas, operation, edges=edges).select(["id", "name"])
        assert table.num_rows > 1000


def test_unknown_predicate_lists_the_predicates() -> None:
    points = pa.table({"g": geo.from_points([1.0], [2.0])})
    with pytest.raises(ValueError, match=r"'beside' is not a join predicate; the predicates are .*within"):
        geo.join(points, points, predicate="beside")
