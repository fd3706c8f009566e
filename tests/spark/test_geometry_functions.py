"""Functions on geometry columns give what shapely, pyproj and pqext's arrays give, null and empty ones included."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from pyproj import Geod
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from pqext import geo
from pqext.geo.text.wkt import from_wkt
from pqext.geo.wkb import from_points, from_shapely
from pqext.spark import functions as P
from pqext.spark.functions import geometry_accessors, geometry_predicates
from pqext.spark.functions.geometry_arrays import Geometries, geometry_array
from pqext.spark.functions.udf import wrap_evaluation

WKT = [
    "POINT (1 2)", "POINT Z (3 4 5)", "POINT M (3 4 6)", "POINT EMPTY", None, "LINESTRING (0 0, 3 4, 3 5)",
    "POLYGON ((0 0, 6 0, 6 6, 0 6, 0 0), (1 1, 2 1, 2 2, 1 2, 1 1))", "MULTIPOINT ((1 1), (2 2))", "POLYGON EMPTY",
    "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
    "GEOMETRYCOLLECTION (POINT (1 1), LINESTRING (0 0, 2 2))",
    "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))", "POINT (179 89)",
]  # fmt: skip
PLACE = shapely.box(0, 0, 3, 3)


@pytest.fixture(scope="module")
def wkb() -> pa.Array:
    return from_wkt(WKT)


@pytest.fixture(scope="module")
def shapes(wkb: pa.Array) -> Any:
    return geo.to_shapely(wkb)


@pytest.fixture(scope="module")
def frame(spark: Any, wkb: pa.Array) -> Any:
    table = pa.table({"id": range(len(WKT)), "wkt": WKT, "wkb": wkb})
    df = spark.createDataFrame(table).coalesce(1)
    return df.withColumn("geom", P.st_geomfromwkb("wkb")).withColumn("geog", F.st_geogfromwkb("wkb"))


def number(values: Any) -> list[float | None]:
    """Doubles as Spark gives them: None for NaN."""
    return [None if value is None or math.isnan(value) else float(value) for value in values]


@pytest.mark.spec("spark.functions.planar")
def test_functions_accept_a_column_in_every_representation(frame: Any, wkb: pa.Array, shapes: Any) -> None:
    flat = {
        "envelope": P.st_envelope, "centroid": P.st_centroid, "makevalid": P.st_makevalid,
        "buffer": lambda c: P.st_buffer(c, 1.5), "buffered": lambda c: P.st_buffer(c, F.col("id") / 4, quad_segs=2),
        "simplify": lambda c: P.st_simplify(c, 1), "surface": P.st_pointonsurface, "hull": P.st_convexhull,
        "boundary": P.st_boundary, "ccw": P.st_forcepolygonccw, "cw": P.st_forcepolygoncw,
        "transform": lambda c: P.st_transform(c, 3857, source=4326),
    }  # fmt: skip
    any_kind = {
        "x": P.st_x, "y": P.st_y, "z": P.st_z, "m": P.st_m, "xmin": P.st_xmin, "xmax": P.st_xmax, "ymin": P.st_ymin,
        "ymax": P.st_ymax, "type": P.st_geometrytype, "npoints": P.st_npoints, "empty": P.st_isempty, "area": P.st_area,
        "length": P.st_length, "wkt": P.st_aswkt, "json": P.st_asgeojson, "wkb": P.st_aswkb, "hilbert": P.st_hilbert,
        "geohash": P.st_geohash, "quadkey": P.st_quadkey, "valid": P.st_isvalid,
        "within": lambda c: P.st_within(c, PLACE), "near": lambda c: P.st_dwithin(c, PLACE, 2.5),
        "perimeter": P.st_perimeter, "azimuth": lambda c: P.st_azimuth(c, F.lit(shapely.to_wkb(shapely.Point(2, 1)))),
        "meets": lambda c: P.st_intersects(c, "wkb"), "away": lambda c: P.st_distance(c, "wkb"),
    }  # fmt: skip
    columns = {}
    for form in ("geom", "wkb"):
        columns |= {f"{form}_{name}": ask(form) for name, ask in any_kind.items()}
        columns |= {f"{form}_{name}": P.st_aswkb(make(form)) for name, make in flat.items()}
    columns["read_wkt"] = P.st_aswkb(P.st_geomfromwkt("wkt"))
    columns["point"] = P.st_aswkb(P.st_point("id", F.lit(2)))
    columns["srid"] = F.st_srid(P.st_buffer(F.st_setsrid("geom", F.lit(3857)), 1))
    found = frame.select(*(column.alias(name) for name, column in columns.items())).toArrow().to_pydict()
    missing = [text is None for text in WKT]

    def with_nulls(values: Any) -> list[Any]:
        return [None if gone else value for gone, value in zip(missing, np.asarray(values).tolist(), strict=True)]

    simple = ~shapely.is_empty(shapes) & (shapely.get_type_id(shapes) == 0)
    bounds = geo.bounds(wkb)
    expected = {
        "x": [shapely.get_x(s) if ok else None for s, ok in zip(shapes, simple, strict=True)],
        "z": number([shapely.get_z(s) if ok else None for s, ok in zip(shapes, simple, strict=True)]),
        "m": number([shapely.get_m(s) if ok else None for s, ok in zip(shapes, simple, strict=True)]),
        "xmin": bounds.field("xmin").to_pylist(), "ymax": bounds.field("ymax").to_pylist(),
        "type": [None if s is None else f"ST_{s.geom_type}" for s in shapes],
        "npoints": with_nulls(shapely.get_num_coordinates(shapes)), "empty": with_nulls(shapely.is_empty(shapes)),
        "valid": with_nulls(shapely.is_valid(shapes)), "area": number(shapely.area(shapes)),
        "length": number(shapely.length(shapes)), "wkt": geo.to_wkt(wkb).to_pylist(),
        "json": geo.to_geojson(wkb).to_pylist(), "wkb": wkb.to_pylist(),
        "within": geo.within(wkb, PLACE).to_pylist(),
        "near": geo.dwithin(wkb, PLACE, 2.5).to_pylist(), "meets": with_nulls(shapely.intersects(shapes, shapes)),
        "away": number(shapely.distance(shapes, shapes)),
        "azimuth": [
            math.atan2(2 - s.x, 1 - s.y) % (2 * math.pi) if ok else None for s, ok in zip(shapes, simple, strict=True)
        ],
        "perimeter": [None if s is None else s.length if "Polygon" in s.geom_type else 0.0 for s in shapes],
    }  # fmt: skip
    made = {
        "envelope": shapely.envelope(shapes), "centroid": shapely.centroid(shapes),
        "makevalid": shapely.make_valid(shapes),
        "buffer": shapely.buffer(shapes, 1.5, quad_segs=8), "simplify": shapely.simplify(shapes, 1),
        "surface": shapely.point_on_surface(shapes), "hull": shapely.convex_hull(shapes),
        "boundary": shapely.boundary(shapes),
        "ccw": shapely.orient_polygons(shapes), "cw": shapely.orient_polygons(shapes, exterior_cw=True),
        "buffered": shapely.buffer(shapes, np.arange(len(shapes)) / 4, quad_segs=2),
    }  # fmt: skip
    expected |= {name: from_shapely(rows).to_pylist() for name, rows in made.items()}
    expected["transform"] = geo.transform(wkb, "EPSG:4326", "EPSG:3857").to_pylist()
    for form in ("geom", "wkb"):
        for name, values in expected.items():
            assert found[f"{form}_{name}"] == values, (form, name)
        for name in ("hilbert", "geohash", "quadkey"):
            assert found[f"{form}_{name}"] == found[f"geom_{name}"]
    assert found["read_wkt"] == wkb.to_pylist()
    assert found["point"] == from_points(range(len(WKT)), [2] * len(WKT)).to_pylist()
    assert found["srid"] == [None if gone else 3857 for gone in missing]


@pytest.mark.spec("spark.functions.planar")
def test_overlays_of_valid_geometries_are_those_of_shapely(frame: Any, shapes: Any) -> None:
    place, size = F.lit(shapely.to_wkb(PLACE)), F.col("id") % 3 + 1
    columns = {
        "union": P.st_union("geom", place), "intersection": P.st_intersection(place, "wkb"),
        "snap": P.st_snaptogrid("geom", size),
    }  # fmt: skip
    made = {name: P.st_aswkb(column).alias(name) for name, column in columns.items()}
    srid = F.st_srid(P.st_union(F.st_setsrid("geom", F.lit(3857)), place)).alias("srid")
    found = frame.where("id <> 11").select(*made.values(), srid).toArrow().to_pydict()
    valid, sizes = np.delete(shapes, 11), np.delete(np.arange(len(shapes)) % 3 + 1, 11)
    unions = shapely.union(valid, PLACE)
    unions[shapely.get_type_id(unions) == 7] = shapely.force_2d(unions[shapely.get_type_id(unions) == 7])
    assert found["union"] == from_shapely(unions).to_pylist()
    assert found["intersection"] == from_shapely(shapely.intersection(PLACE, valid)).to_pylist()
    assert found["snap"] == from_shapely(shapely.set_precision(valid, sizes)).to_pylist()
    assert found["srid"] == [None if shape is None else 3857 for shape in valid]


def test_sizes_of_grids_are_positive() -> None:
    from pqext.spark.functions import geometry_operations

    made = geometry_operations.SNAPTOGRID.evaluate(from_points([1.2, 1.7], [0, 0]), pa.array([1.0, None]))
    assert made.field("wkb").to_pylist()[0] == shapely.to_wkb(shapely.Point(1, 0))
    assert made.is_valid().to_pylist() == [True, False]
    for size in (0.0, -1.0):
        with pytest.raises(ValueError, match="size must be greater than 0"):
            geometry_operations.SNAPTOGRID.evaluate(from_points([1.2], [0]), pa.array([size]))


@pytest.mark.spec("spark.functions.globe")
def test_geography_functions_are_geodesic(frame: Any, wkb: pa.Array) -> None:
    names = ("st_xmin", "st_ymax", "st_area", "st_length", "st_perimeter", "st_npoints", "st_aswkt", "st_geohash")
    columns = {name: getattr(P, name)("geog") for name in names}
    columns["away"] = P.st_distance("geog", F.st_geogfromwkb(P.st_aswkb(P.st_point(F.lit(1), F.lit(3)))))
    columns["near"] = P.st_dwithin("geog", shapely.Point(1, 3), 150_000)
    columns["meets"] = P.st_intersects("geog", F.st_geogfromwkb(F.lit(shapely.to_wkb(PLACE))))
    found = frame.where("id <> 11").select(*(c.alias(name) for name, c in columns.items())).toArrow().to_pydict()
    rows = wkb.take(pa.array([n for n in range(len(WKT)) if n != 11]))
    assert found["st_ymax"] == geo.bounds(rows, "spherical").field("ymax").to_pylist()
    assert found["near"] == geo.dwithin(rows, shapely.Point(1, 3), 150_000, "spherical").to_pylist()
    assert found["meets"] == geo.intersects(rows, PLACE, "spherical").to_pylist()
    geod = Geod(ellps="WGS84")
    assert found["away"][0] == pytest.approx(geod.inv(1, 2, 1, 3)[2])
    assert found["away"][3] is found["away"][4] is None
    assert found["away"][6] == 0
    assert found["st_length"][5] == pytest.approx(geod.geometry_length(shapely.from_wkt(WKT[5])))
    shell, hole = (abs(geod.geometry_area_perimeter(shapely.box(*box))[0]) for box in ((0, 0, 6, 6), (1, 1, 2, 2)))
    assert found["st_area"][6] == pytest.approx(shell - hole)
    outer, inner = (shapely.box(*box).exterior for box in ((0, 0, 6, 6), (1, 1, 2, 2)))
    assert found["st_perimeter"][6] == pytest.approx(sum(map(geod.geometry_length, (outer, inner))))
    assert found["st_perimeter"][5] == 0
    assert found["st_npoints"][:6] == [1, 1, 1, 0, None, 3]


def test_groups_are_aggregated(frame: Any, shapes: Any) -> None:
    group = (F.col("id") % 3).alias("k")
    good = frame.where("id <> 11")
    boxes = good.groupBy(group).agg(P.st_envelope_agg("geom").alias("g"))
    unions = good.groupBy(group).agg(P.st_union_agg("geom").alias("g"))
    shown = ("k", P.st_aswkb("g").alias("g"), F.st_srid("g").alias("srid"))
    found = boxes.select(*shown, F.lit("box").alias("how")).unionAll(unions.select(*shown, F.lit("union").alias("how")))
    for row in found.collect():
        mine = [shape for n, shape in enumerate(shapes) if n % 3 == row["k"] and n != 11]
        one = shapely.from_wkb(bytes(row["g"]))
        assert row["srid"] == 4326
        if row["how"] == "box":
            assert one.bounds == tuple(shapely.total_bounds(np.array(mine)).tolist())
        else:
            assert shapely.equals(one, shapely.union_all(shapely.force_2d(np.array(mine))))


def test_centroids_and_buffers_preserve_null_and_accept_null_distances() -> None:
    from pqext.spark.functions import geometry_operations

    made = geometry_operations.BUFFER.evaluate(from_points([0.0, None, 1.0], [0, 0, 0]), pa.array([1.0, 1.0, None]))
    assert made.is_valid().to_pylist() == [True, False, False]


def quadkey(x: float, y: float, zoom: int) -> str:
    """The key of a tile as the Bing Maps tile system defines it, digit by digit."""
    sine = math.sin(math.radians(max(-85.05112878, min(85.05112878, y))))
    column = min(int((x + 180) / 360 * 2**zoom), 2**zoom - 1)
    row = min(int((0.5 - math.log((1 + sine) / (1 - sine)) / (4 * math.pi)) * 2**zoom), 2**zoom - 1)
    return "".join(str((column >> bit & 1) + 2 * (row >> bit & 1)) for bit in range(zoom - 1, -1, -1))


@pytest.mark.spec("spark.functions.keys")
@pytest.mark.parametrize(
    ("x", "y", "geohash"),
    [(-5.6, 42.6, "ezs42"), (10.40744, 57.64911, "u4pru"), (-180, -90, "00000"), (180, 90, "zzzzz"), (181, 0, None)],
)
def test_geohash_and_quadkey_match_published_values(x: float, y: float, geohash: str | None) -> None:
    point = from_points([x], [y])
    assert geometry_accessors.GEOHASH.evaluate(point, precision=5).to_pylist() == [geohash]
    for zoom in (1, 5, 29):
        found = geometry_accessors.QUADKEY.evaluate(point, zoom=zoom).to_pylist()
        assert found == [None if geohash is None else quadkey(x, y, zoom)]


def test_geohash_of_twelve_characters_matches_the_published_one() -> None:
    point = from_points([10.40744], [57.64911])
    assert geometry_accessors.GEOHASH.evaluate(point, precision=12)[0].as_py() == "u4pruydqqvj8"


def spherical(rows: list[Any]) -> pa.Array:
    """As Spark passes GEOGRAPHY."""
    marked = pa.field("wkb", pa.binary(), False, {"geography": "true", "srid": "4326"})
    wkb = from_shapely(rows)
    srid = pa.array([4326] * len(rows), pa.int32())
    return pa.StructArray.from_arrays(
        [srid, wkb.fill_null(b"")], fields=[pa.field("srid", pa.int32(), False), marked], mask=wkb.is_null()
    )


def test_geodesic_distances_are_defined_between_all_types() -> None:
    line, area = shapely.LineString([(0, 1), (10, 1)]), shapely.box(20, -1, 30, 1)
    one = spherical(
        [shapely.Point(0, 0), line, area, None, shapely.Point(), shapely.Point(-179.5, 0), shapely.Point(300, 0)]
    )
    other = spherical([line, shapely.Point(0, 0), line, line, line, shapely.Point(179.5, 0), line])
    found = geometry_accessors.DISTANCE.evaluate(one, other).to_pylist()
    geod = Geod(ellps="WGS84")
    degree = geod.inv(0, 0, 0, 1)[2]
    assert found[0] == pytest.approx(degree, rel=1e-4)
    assert found[1] == pytest.approx(found[0], rel=1e-9)
    assert found[2] == pytest.approx(geod.inv(10, 1, 20, 1)[2], rel=1e-3)
    assert found[3] is found[4] is found[6] is None
    assert found[5] == pytest.approx(geod.inv(-179.5, 0, 179.5, 0)[2])
    near = geometry_accessors.DWITHIN.evaluate(one, other, pa.array([120e3, 1e3, None, 1.0, 1.0, 112e3, 1.0]))
    assert near.to_pylist() == [True, False, None, None, False, True, False]


def test_geometry_next_to_geography_is_converted_as_the_error_says(frame: Any) -> None:
    place = F.lit(shapely.to_wkb(shapely.box(0, 0, 3, 3)))
    geographies = {"st_geogfromwkb": F.st_geogfromwkb(place), "wkb": place}
    casts = ["CAST(st_setsrid(geom, 4326) AS GEOGRAPHY(4326))",
             "CAST(st_setsrid(CAST(geom AS GEOMETRY(ANY)), 4326) AS GEOGRAPHY(4326))"]  # fmt: skip
    columns = [P.st_intersects("geog", other) for other in geographies.values()]
    columns += [P.st_intersects(F.expr(cast), place) for cast in casts]
    columns += [P.st_distance(F.expr(cast), "geog") <= 0 for cast in casts]
    in_python = F.st_setsrid(P.st_geomfromwkt("wkt"), F.lit(4326)).cast("geography(4326)")
    columns.append(P.st_dwithin("geog", in_python, 1))
    columns.append(P.st_intersects(F.expr("CAST(geog AS GEOMETRY(4326))"), "geom"))
    found = frame.where("id in (0, 1)").select(*columns).collect()
    assert [list(row) for row in found] == [[True] * 8, [False] * 4 + [True] * 4]


def test_binary_next_to_geography_is_geography() -> None:
    point, line = shapely.Point(0, 0), shapely.LineString([(0, 1), (10, 1)])
    degree = Geod(ellps="WGS84").inv(0, 0, 0, 1)[2]
    found = geometry_accessors.DISTANCE.evaluate(from_shapely([point]), spherical([line]))
    assert found.to_pylist() == [pytest.approx(degree, rel=1e-4)]
    near = geometry_accessors.DWITHIN.evaluate(spherical([point]), from_shapely([line]), pa.array([120e3]))
    assert near.to_pylist() == [True]
    planar = geometry_array(from_shapely([line]), 4326)
    for function in (geometry_accessors.DISTANCE, geometry_predicates.PAIRS["st_coveredby"]):
        with pytest.raises(TypeError, match=r"not one of each: convert GEOMETRY with CAST\(st_setsrid\("):
            function.evaluate(planar, spherical([point]))
    text = wrap_evaluation(geometry_accessors.AREA.evaluate, "pq_st_area")
    with pytest.raises(TypeError, match=r"pq_st_area: expected GEOMETRY.*, not string; use pq_st_geomfromwkt"):
        text(pa.array(["POINT (1 2)"]))


@pytest.mark.parametrize("name", sorted(geometry_predicates.PAIRS))
def test_pairs_of_geographies_match_single_evaluation(name: str) -> None:
    rows = [shapely.Point(1, 1), shapely.box(0, 0, 2, 2), None, shapely.box(0, 0, 2, 2)]
    others = [shapely.box(0, 0, 2, 2), shapely.box(0, 0, 2, 2), shapely.Point(1, 1), shapely.box(179, 0, 181 - 1, 2)]
    found = geometry_predicates.PAIRS[name].evaluate(spherical(rows), spherical(others)).to_pylist()
    operation = {"st_coveredby": "covered_by"}.get(name, name[3:])
    expected = [
        getattr(geo, operation)(from_shapely([row]), other, "spherical")[0].as_py()
        for row, other in zip(rows, others, strict=True)
    ]
    assert found == expected


def test_measures_are_supported_by_shapely_2_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(shapely, "get_m", raising=False)  # new in shapely 2.1
    texts = ["POINT M (1 2 3)", "POINT ZM (1 2 3 4)", "POINT Z (1 2 3)", "POINT M EMPTY", "LINESTRING M (0 0 1, 1 1 1)"]
    found = geometry_accessors.M.evaluate(from_wkt(pa.array([*texts, None])))
    assert found.to_pylist() == [3.0, 4.0, None, None, None, None]


def test_empty_parts_do_not_crash_geos() -> None:
    hollow = shapely.GeometryCollection([shapely.Point(1, 1), shapely.Polygon()])
    of = Geometries.from_arrow(from_shapely([hollow]))
    assert shapely.get_num_geometries(of.shapes()).tolist() == [1]
    assert geometry_accessors.NPOINTS.evaluate(of.wkb).to_pylist() == [1]


@pytest.mark.parametrize(
    ("make", "words"),
    [(lambda: P.st_area("wkt"), "st_area takes GEOMETRY, GEOGRAPHY or BINARY with WKB, but wkt is string"),
     (lambda: P.st_buffer("geog", 1), "BINARY with WKB, but geog is geography(4326): create geometries"),
     (lambda: P.st_buffer("geom", "wkt"), "st_buffer takes a number, but wkt is string"),
     (lambda: P.st_intersects("geom", "id"), "but id is bigint"),
     (lambda: P.st_geomfromwkt("wkb"), "st_geomfromwkt takes STRING, but wkb is binary"),
     (lambda: P.st_geomfromwkb("wkt"), "st_geomfromwkb takes BINARY with WKB, but wkt is string"),
     (lambda: P.st_intersects("geog", P.st_geomfromwkt("wkt")), "but geog is geography(4326), and st_geomfromwkt(wkt)"),
     (lambda: P.st_dwithin("geom", "geog", 1), "and geog is geography(4326): convert GEOMETRY with CAST(st_setsrid(")],
)  # fmt: skip
@pytest.mark.spec("spark.functions.types")
def test_wrong_types_are_named_during_query_analysis(frame: Any, make: Any, words: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        frame.select(make())
    assert words in str(caught.value)
    assert caught.value.getCondition() == "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"


def test_result_columns_have_the_names_of_their_functions(frame: Any) -> None:
    df = frame.select(P.st_area("geom"), P.st_aswkt(P.st_buffer("geom", 1)), P.st_transform("geom", 3857).alias("m"))
    assert df.columns == ["st_area(geom)", "st_aswkt(st_buffer(geom, 1.0, 8))", "m"]
    assert df.schema["m"].dataType.srid == 3857
    with pytest.raises(TypeError, match=r"st_buffer takes GEOMETRY or BINARY with WKB, but .* is string"):
        P.st_buffer(P.st_aswkt("geom"), 1)
    with pytest.raises(ValueError, match="precision must be an integer from 1 to 12"):
        P.st_geohash("geom", 13)
    with pytest.raises(TypeError, match="distance must be a number or a column"):
        P.st_buffer("geom", None)
