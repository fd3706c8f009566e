"""GeoJSON in and out: geometries, features, whole collections, and text that is none of them."""

from __future__ import annotations

import datetime
import io
import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.geo import types
from reference import geometry_text as twin
from reference import wkb
from reference.effort import share
from reference.geometries import shapes, trees
from reference.pace import SLOWER

FINITE = st.one_of(st.floats(-200, 200), st.floats(allow_nan=False, allow_infinity=False))


def read(text: str) -> bytes | None:
    found: bytes | None = geo.from_geojson(pa.array([text]))[0].as_py()
    return found


def wkt(text: str) -> str:
    found: str = geo.to_wkt(geo.from_geojson(pa.array([text])))[0].as_py()
    return found


@pytest.mark.spec("geo.geojson.object", "geo.geojson.position", "geo.geojson.numbers")
@settings(max_examples=share(0.8))
@given(trees())
def test_any_geometry_matches_the_reference_json(geometry: wkb.Geometry) -> None:
    array = pa.array([wkb.encode(geometry)])
    try:
        expected = twin.to_geojson(geometry)
    except twin.NotJson:
        with pytest.raises(GeometryError, match="NaN or infinite") as raised:
            geo.to_geojson(array)
        assert (raised.value.row, raised.value.rule) == (0, "geo.geojson.numbers")
        return
    text = geo.to_geojson(array)[0].as_py()
    assert json.loads(text) == expected


def flattened(geometry: wkb.Geometry) -> wkb.Geometry:
    """Without M; with Z only where there is a coordinate to have one."""
    has_z = bool(geometry.dims & 1) and _coordinates(geometry) > 0

    def flat(one: wkb.Geometry) -> wkb.Geometry:
        def cut(value: tuple[float, ...]) -> tuple[float, ...]:
            return value[: 3 if has_z else 2]

        if one.base in (wkb.POINT, wkb.LINE_STRING):
            content: list[Any] = [cut(value) for value in one.content]
        elif one.base == wkb.POLYGON:
            content = [[cut(value) for value in ring] for ring in one.content]
        else:
            content = [flat(child) for child in one.content]
        return replace(one, content=content, dims=int(has_z))

    return flat(twin.plain(geometry))


def _coordinates(geometry: wkb.Geometry) -> int:
    if geometry.base in (wkb.POINT, wkb.LINE_STRING):
        return len(geometry.content)
    if geometry.base == wkb.POLYGON:
        return sum(map(len, geometry.content))
    return sum(map(_coordinates, geometry.content))


@pytest.mark.spec("geo.geojson.object", "geo.geojson.position")
@settings(max_examples=share(0.8))
@given(trees(FINITE), st.booleans(), st.booleans(), st.sampled_from([None, 1]))
def test_json_round_trips_with_members_in_any_order(
    geometry: wkb.Geometry, reverse: bool, feature: bool, indent: int | None
) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            items = [(key, turned(one)) for key, one in value.items()]
            return dict([*items, ("bbox", [1, 2]), ("own", {"type": ["a\"]\\", None]})][:: -1 if reverse else 1])
        return [turned(one) for one in value] if isinstance(value, list) else value

    made = turned(twin.to_geojson(geometry))
    if feature:
        made = turned({"type": "Feature", "geometry": made, "properties": {"coordinates": 1}})
    text = json.dumps(made, indent=indent)
    plain = flattened(geometry)
    if wkb.is_strict(plain):
        assert read(text) == wkb.encode(plain)
    else:
        with pytest.raises(GeometryError, match=r"geo\.wkb\.rings"):
            read(text)


@settings(max_examples=share(0.4))
@given(st.lists(st.one_of(st.none(), shapes()), max_size=5))
def test_shapely_reads_and_writes_equal_geometries(geometries: list[Any]) -> None:
    array = geo.from_shapely(geometries)
    theirs = shapely.to_geojson(geometries).tolist()
    assert geo.from_geojson(pa.array(theirs, pa.string())).equals(array)
    ours = geo.to_geojson(array).to_pylist()
    assert [one and json.loads(one) for one in ours] == [one and json.loads(one) for one in theirs]
    assert shapely.to_wkb(shapely.from_geojson(ours), flavor="iso").tolist() == array.to_pylist()


@pytest.mark.spec("geo.geojson.position")
@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('{"type":"Point","coordinates":[1,2]}', "POINT (1 2)"),
        ('{"type":"Point","coordinates":[1,2,3,4,5]}', "POINT Z (1 2 3)"),
        ('{"type":"Point","coordinates":[]}', "POINT EMPTY"),
        ('{"type":"LineString","coordinates":[[1,2],[3,4,5]]}', "LINESTRING Z (1 2 NaN, 3 4 5)"),
        ('{"type":"Polygon","coordinates":[[]]}', "POLYGON (EMPTY)"),
        ('{"type":"MultiPoint","coordinates":[]}', "MULTIPOINT EMPTY"),
        ('{"coordinates":[-0.0,1e2],"type":"Point"}', "POINT (-0.0 100)"),
        ('\n{ "type" : "GeometryCollection" ,\t"geometries" : [ ] } ', "GEOMETRYCOLLECTION EMPTY"),
        (
            '{"geometries":[{"coordinates":[1,2],"type":"Point"},{"type":"Point","coordinates":[1,2,3]}],'
            '"type":"GeometryCollection"}',
            "GEOMETRYCOLLECTION Z (POINT Z (1 2 NaN), POINT Z (1 2 3))",
        ),
    ],
)
def test_positions_have_the_dimensions_of_the_geometry(text: str, same: str) -> None:
    assert wkt(text) == same


def test_m_and_missing_z_are_omitted_and_coordinates_can_be_rounded() -> None:
    array = geo.from_wkt(
        pa.array(["POINT M (1 2 3)", "POINT ZM (1 2 3 4)", "POINT Z (1.23456 2 NaN)", "MULTIPOINT (EMPTY, 1 2)"])
    )
    assert [json.loads(text)["coordinates"] for text in geo.to_geojson(array, 2).to_pylist()] == [
        [1, 2], [1, 2, 3], [1.23, 2], [[1, 2]],
    ]  # fmt: skip


@pytest.mark.spec("geo.geojson.object")
def test_null_geometries_become_null_rows() -> None:
    features = ['{"type":"Feature","geometry":null,"properties":null}', "null", None]
    assert geo.from_geojson(pa.array(features)).to_pylist() == [None, None, None]
    assert geo.to_geojson(geo.from_geojson(pa.array(features))).to_pylist() == [None, None, None]


@pytest.mark.parametrize(
    ("text", "rule", "offset"),
    [
        ("", "geo.geojson.object", 0),
        ("[]", "geo.geojson.object", 0),
        ("{}", "geo.geojson.object", 0),
        ('{"type":"Point"}', "geo.geojson.object", 15),
        ('{"type":"Circle","coordinates":[1,2]}', "geo.geojson.object", 8),
        ('{"type":"FeatureCollection","features":[]}', "geo.geojson.object", 0),
        ('{"type":"Point","coordinates":[1,2],"coordinates":[1,2]}', "geo.geojson.object", 50),
        ('{"type":"Point","coordinates":[1,2]} x', "geo.geojson.object", 37),
        ('{"type":"Point","coordinates":[1,2],}', "geo.geojson.object", 36),
        ('{"type":"Point","coordinates":[1,2],"a":tru}', "geo.geojson.object", 40),
        ('{"type":"Point","coordinates":[1,2],"a":"\\x"}', "geo.geojson.object", 42),
        ('{"type":"Point","coordinates":[1,02]}', "geo.geojson.object", 35),
        ('{"type":"Point","coordinates":[1]}', "geo.geojson.position", 30),
        ('{"type":"Point","coordinates":[1,null]}', "geo.geojson.position", 33),
        ('{"type":"Point","coordinates":[1,1e999]}', "geo.geojson.position", 33),
        ('{"type":"Point","coordinates":[[1,2]]}', "geo.geojson.position", 31),
        ('{"type":"LineString","coordinates":[1,2]}', "geo.geojson.position", 36),
        ('{"type":"Polygon","coordinates":{}}', "geo.geojson.position", 32),
        ('{"type":"Polygon","coordinates":[[[0,0],[1,0],[0,0]]]}', "geo.wkb.rings", 33),
        ('{"type":"Feature"}', "geo.geojson.object", 17),
        ('{"type":"GeometryCollection","geometries":[{"type":"Feature","geometry":null}]}', "geo.geojson.object", None),
    ],
)
@pytest.mark.spec("geo.geojson.object", "geo.geojson.position")
def test_invalid_text_is_rejected_with_row_and_byte(text: str, rule: str, offset: int | None) -> None:
    good = '{"type":"Point","coordinates":[1,2]}'
    with pytest.raises(GeometryError) as raised:
        geo.from_geojson(pa.chunked_array([[good, None], [text, good]]))
    assert (raised.value.row, raised.value.rule) == (2, rule)
    if offset is not None:
        assert raised.value.offset == offset


def test_truncated_json_is_rejected() -> None:
    inner = '{"type":"Polygon","coordinates":[[[0,0,1],[1.5,0,2],[1,1,-3e-1],[0,0,1]]],"a":{"b":["\\n",true,null]}}'
    whole = f'{{"type":"Feature","geometry":{{"type":"GeometryCollection","geometries":[{inner}]}},"properties":{{}}}}'
    assert read(whole) is not None
    for end in range(len(whole)):
        with pytest.raises(GeometryError):
            read(whole[:end])


@pytest.mark.spec("geo.wkb.depth")
def test_hostile_json_is_rejected_in_bounded_time() -> None:
    def nested(depth: int, head: str = '{"type":"GeometryCollection","geometries":[', tail: str = "]}") -> str:
        return head * depth + '{"type":"Point","coordinates":[1,2]}' + tail * depth

    assert wkt(nested(128)).count("GEOMETRYCOLLECTION") == 128
    begin = time.process_time()
    for text in (
        nested(129),
        nested(1000),
        nested(129, '{"geometries":[', '],"type":"GeometryCollection"}'),
        '{"type":"Point","own":' + "[" * 1_000_000,
        '{"type":"Point","own":' + '{"a":' * 1_000_000,
        '{"type":"Point","coordinates":' + "[" * 1_000_000,
        '{"type":"Point","coordinates":[1,' + "1" * 1_000_000 + "}",
        '{"type":"LineString","coordinates":[' + "[1,2]," * 200_000,
        '{"' + "\\" * 1_000_001,
        '{"type":"Feature","geometry":' * 10_000,
    ):
        with pytest.raises(GeometryError):
            read(text)
    assert time.process_time() - begin < 5 * SLOWER


COLLECTION = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature", "id": 7, "geometry": {"type": "Point", "coordinates": [1, 2]},
            "properties": {"a": 1, "b": "x\ny", "c": [1, 2], "d": {"e": True}, "mixed": 1},
        },
        {"type": "Feature", "geometry": None, "properties": {"a": None, "mixed": "one"}},
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [3, 4, 5]}, "properties": None},
    ],
}  # fmt: skip


@pytest.mark.spec("geo.geojson.features")
@pytest.mark.parametrize("indent", [None, 2])
def test_collection_is_converted_to_a_table_with_a_column_per_property(tmp_path: Path, indent: int | None) -> None:
    text = json.dumps(COLLECTION, indent=indent)
    path = tmp_path / "c.geojson"
    path.write_text("\ufeff" + text, "utf-8")
    for source in (path, str(path), text, text.encode()):
        table = geo.read_geojson(source)
        assert table.column_names == ["geometry", "a", "b", "c", "d", "mixed", "id"]
        assert types.type_of(table.schema.field("geometry")) == types.GeospatialType()
        assert geo.to_wkt(table["geometry"]).to_pylist() == ["POINT (1 2)", None, "POINT Z (3 4 5)"]
        assert table.drop(["geometry"]).to_pylist() == [
            {"a": 1, "b": "x\ny", "c": [1, 2], "d": {"e": True}, "mixed": "1", "id": 7},
            {"a": None, "b": None, "c": None, "d": None, "mixed": '"one"', "id": None},
            {"a": None, "b": None, "c": None, "d": None, "mixed": None, "id": None},
        ]


@pytest.mark.spec("geo.geojson.features")
def test_sequences_single_features_and_empty_collections_are_read() -> None:
    one = json.dumps(COLLECTION["features"][2])
    for text in (one + "\n" + one, f"\x1e{one}\n\x1e{one}\n", one + one):
        assert geo.read_geojson(text.encode()).num_rows == 2
    assert geo.read_geojson('{"type":"Point","coordinates":[1,2]}').column_names == ["geometry"]
    empty = geo.read_geojson('{"type":"FeatureCollection","features":[]}')
    assert (empty.column_names, empty.num_rows) == (["geometry"], 0)
    nested = '{"type":"FeatureCollection","features":[{"type":"FeatureCollection","features":[]}]}'
    broken = '{"type":"Feature","geometry":null,"properties":[1]}'
    for wrong, row in ((nested, 0), (one + broken, 1), (one + one[:9], 1)):
        with pytest.raises(GeometryError) as raised:
            geo.read_geojson(wrong)
        assert raised.value.row == row
    with pytest.raises(ValueError, match="geometry="):
        geo.read_geojson('{"type":"Feature","geometry":null,"properties":{"geometry":1}}')
    clash = geo.read_geojson('{"type":"Feature","geometry":null,"properties":{"geometry":1}}', geometry="g")
    assert clash.column_names == ["g", "geometry"]
    with pytest.raises(TypeError, match="a path or text"):
        geo.read_geojson(7)  # type: ignore[arg-type]


@pytest.mark.spec("geo.geojson.features")
def test_table_round_trips_as_a_collection(tmp_path: Path) -> None:
    path = tmp_path / "c.geojson"
    plain = pa.table({
        "i": [1, None, 3], "f": [0.5, None, 2.0], "s": ["a", "é\n", None], "b": [True, None, False],
        "l": [[1], [], None], "id": ["x", "y", None],
    })  # fmt: skip
    points = geo.from_wkt(pa.array(["POINT (1 2)", None, "POINT EMPTY"]))
    plain = plain.add_column(0, geo.geometry_field("geometry"), points.storage)
    geo.write_geojson(plain, path, id="id")
    assert geo.read_geojson(path).equals(plain)
    last = json.loads(path.read_text("utf-8"))["features"][2]
    assert set(last) == {"type", "geometry", "properties"}


def test_types_without_a_json_equivalent_are_written_as_text_number_or_null() -> None:
    day = datetime.datetime(2026, 11, 21, 9, 28, 47)
    table = pa.table({
        "g": geo.from_points([1.0], [2.0]), "nan": [float("nan")], "inside": [[float("inf"), 1.0]],
        "decimal": [Decimal("1.50")], "whole": [Decimal("10")], "date": [day.date()], "time": [day.time()],
        "stamp": pa.array([day], pa.timestamp("ns")), "deep": [{"at": day}],
        "word": pa.array(["a"]).dictionary_encode(), "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    })
    out = io.BytesIO()
    geo.write_geojson(table, out, geometry="g")
    (feature,) = json.loads(out.getvalue())["features"]
    assert feature["properties"] == {
        "nan": None, "inside": [None, 1.0], "decimal": 1.5, "whole": 10, "date": "2026-11-21", "time": "09:28:47",
        "stamp": "2026-11-21T09:28:47.000000000", "deep": {"at": "2026-11-21T09:28:47"}, "word": "a", "map": {"k": 1},
    }  # fmt: skip


LEAVES = [pa.binary(), pa.large_binary(), pa.binary(2), pa.duration("s"), pa.month_day_nano_interval()]
NESTED: dict[str, tuple[Callable[[pa.DataType], pa.DataType], str]] = {
    "column": (lambda leaf: leaf, "p"),
    "first field": (lambda leaf: pa.struct([("a", leaf), ("b", pa.int8())]), "p.a"),
    "second field": (lambda leaf: pa.struct([("a", pa.int8()), ("b", leaf)]), "p.b"),
    "field of a field": (lambda leaf: pa.struct([("a", pa.struct([("b", leaf)]))]), "p.a.b"),
    "element": (pa.list_, "p"),
    "element of a large list": (pa.large_list, "p"),
    "element of a fixed-size list": (lambda leaf: pa.list_(leaf, 2), "p"),
    "field of an element": (lambda leaf: pa.list_(pa.struct([("a", leaf)])), "p.a"),
    "value of a map": (lambda leaf: pa.map_(pa.string(), leaf), "p"),
    "field of a map's value": (lambda leaf: pa.map_(pa.string(), pa.struct([("a", leaf)])), "p.a"),
}


@pytest.mark.parametrize("zone", ["Europe/Paris", "+05:30", "-08:00", "UTC"])
def test_times_have_the_offset_of_iso_8601(zone: str) -> None:
    instant, out = datetime.datetime(2026, 7, 1, 12, tzinfo=datetime.UTC), io.BytesIO()
    times = pa.array([instant, None], pa.timestamp("s", zone))
    geo.write_geojson(pa.table({"t": times, "at": geo.from_points([1.0, 2.0], [3.0, 4.0])}), out)
    texts = [feature["properties"]["t"] for feature in json.loads(out.getvalue())["features"]]
    local = times[0].as_py().isoformat()
    assert texts == [local.replace("+00:00", "Z"), None]



@pytest.mark.parametrize("name", NESTED)
def test_nested_types_without_json_are_rejected_by_path(name: str, tmp_path: Path) -> None:
    nest, path = NESTED[name]
    points = geo.from_points([1.0], [2.0])
    for leaf in LEAVES:
        table = pa.table({"g": points, "p": pa.nulls(1, nest(leaf))})
        with pytest.raises(TypeError, match=re.escape(f"'{path}': JSON cannot represent {leaf}; omit")):
            geo.write_geojson(table, tmp_path / "a.geojson", geometry="g")
    assert list(tmp_path.iterdir()) == []
    for leaf in (pa.string(), pa.int64(), pa.bool_(), pa.float32(), pa.date32(), pa.time64("us"), pa.timestamp("ms")):
        table = pa.table({"g": points, "p": pa.nulls(1, nest(leaf))})
        geo.write_geojson(table, tmp_path / "a.geojson", geometry="g")
        (feature,) = json.loads((tmp_path / "a.geojson").read_text("utf-8"))["features"]
        assert feature["properties"] == {"p": None}


@pytest.mark.spec("geo.geojson.crs")
def test_only_wgs84_longitudes_and_latitudes_are_written(tmp_path: Path) -> None:
    path = tmp_path / "c.geojson"
    wkb_ = geo.from_points([1.0], [2.0]).storage
    geo.write_geojson(pa.table([wkb_], pa.schema([geo.geometry_field("g", "EPSG:4326")])), path)
    path.unlink()
    with pytest.raises(GeometryError, match="not EPSG:3857"):
        geo.write_geojson(pa.table([wkb_], pa.schema([geo.geometry_field("g", 3857)])), path)
    for columns, options, wrong in (
        ({"g": wkb_}, {}, "no columns have a geometry type"),
        ({"g": wkb_}, {"geometry": "h"}, "column 'h' does not exist"),
        ({"g": wkb_}, {"geometry": "g", "id": "h"}, "no column 'h'"),
        ({"g": wkb_, "raw": [b""]}, {"geometry": "g"}, "'raw': JSON cannot represent binary"),
        ({"g": pa.array([wkb_[0].as_py(), b"no"])}, {"geometry": "g"}, "row 1: "),
    ):
        with pytest.raises((ValueError, TypeError), match=wrong):
            geo.write_geojson(pa.table(columns), path, **options)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("values", [
    ['{"\\ud800": 1}'], ['{"a": "\\ud800"}'], ['{"a": "x"}', f'{{"a": {"9" * 5000}}}'],
    ['{"a": "x"}', f'{{"a": {"[" * 1000}{"]" * 1000}}}'],
])  # fmt: skip
def test_properties_unsupported_by_python_are_rejected(values: list[str]) -> None:
    features = ",".join(f'{{"type": "Feature", "geometry": null, "properties": {value}}}' for value in values)
    with pytest.raises(GeometryError, match="properties"):
        geo.read_geojson(f'{{"type": "FeatureCollection", "features": [{features}]}}')


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "places.geojson"
    path.write_text('{"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": {"type": "Pint"}}]}')
    with pytest.raises(GeometryError, match=r"places\.geojson"):
        geo.read_geojson(path)
    with pytest.raises(GeometryError) as caught:
        geo.read_geojson(path.read_text())
    assert caught.value.path is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_irregular_file_is_rejected_before_reading(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.geojson")
    with pytest.raises(ValueError, match="not a regular file"):
        geo.read_geojson(tmp_path / "pipe.geojson")
    with pytest.raises(IsADirectoryError):
        geo.read_geojson(tmp_path)


@pytest.mark.spec("geo.geojson.crs")
@pytest.mark.parametrize(("crs", "expected"), [
    ("urn:ogc:def:crs:EPSG::3857", "EPSG:3857"), ("urn:ogc:def:crs:OGC:1.3:CRS84", None), ("EPSG:25832", "EPSG:25832"),
])  # fmt: skip
def test_collection_uses_the_crs_that_it_declares(crs: str, expected: str | None) -> None:
    point = '{"type": "Feature", "properties": {"crs": 7}, "geometry": {"type": "Point", "coordinates": [1e6, 4e6]}}'
    member = f'"crs": {{"type": "name",\n "properties": {{"name": "{crs}"}}}}'
    for text in (f'{{"type": "FeatureCollection", {member}, "features": [{point}]}}',
                 f'{{"features": [{point}], "type": "FeatureCollection", {member}}}'):
        table = geo.read_geojson(text)
        found = types.type_of(table.schema.field("geometry"))
        assert found is not None
        assert found.crs == expected
        assert table["crs"].to_pylist() == [7]


@pytest.mark.spec("geo.geojson.crs")
def test_projected_geopandas_frame_round_trips_in_its_crs() -> None:
    geopandas = pytest.importorskip("geopandas")
    frame = geopandas.GeoDataFrame({"a": [1]}, geometry=[shapely.Point(1e6, 4e6)], crs=3857)
    found = geo.to_geopandas(geo.read_geojson(frame.to_json()).drop_columns("id"))
    assert found.crs == frame.crs
    assert found.geometry.geom_equals(frame.geometry).all()


@pytest.mark.spec("geo.geojson.crs")
@pytest.mark.parametrize("crs", [
    '{"properties": {"name": "EPSG:0"}}', '{"type": "link", "properties": {"href": "x"}}', "7", '"EPSG:3857"',
    "[" * 1000 + "]" * 1000, '{"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::99999999"}}',
])  # fmt: skip
def test_unknown_crs_is_rejected(crs: str) -> None:
    with pytest.raises(GeometryError, match="the crs "):
        geo.read_geojson(f'{{"type": "FeatureCollection", "crs": {crs}, "features": []}}')


@pytest.mark.spec("geo.geojson.crs")
def test_collections_with_different_crs_are_rejected() -> None:
    texts = [f'{{"type": "FeatureCollection", "features": [], "crs": {{"properties": {{"name": "EPSG:{code}"}}}}}}'
             for code in (3857, 25832)]
    assert len(geo.read_geojson("\n".join(texts[:1] * 2))) == 0
    with pytest.raises(GeometryError, match="several systems"):
        geo.read_geojson("\n".join(texts))
    assert len(geo.read_geojson('{"type": "FeatureCollection", "features": [], "crs": null}')) == 0


@pytest.mark.parametrize("is_list", [False, True])
def test_dates_out_of_the_python_range_are_an_error_with_column(is_list: bool, tmp_path: Path) -> None:
    days = pa.array([2_932_897], pa.int32()).cast(pa.date32())  # 10000-01-01
    values = pa.ListArray.from_arrays([0, 1], days) if is_list else days
    table = pa.table({"at": geo.from_points([1.0], [2.0]), "day": values})
    with pytest.raises(ValueError, match=r"column 'day' contains a .*date32.* value outside the years 1 to 9999"):
        geo.write_geojson(table, tmp_path / "days.geojson", geometry="at")


def test_map_with_duplicate_keys_is_an_error_with_column(tmp_path: Path) -> None:
    names = pa.array([[("a", 1)], [("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int32()))
    table = pa.table({"at": geo.from_points([1.0, 2.0], [2.0, 3.0]), "names": names})
    with pytest.raises(ValueError, match="column 'names' contains a map with duplicate keys"):
        geo.write_geojson(table, tmp_path / "names.geojson", geometry="at")
    geo.write_geojson(table[:1], tmp_path / "first.geojson", geometry="at")
    assert json.loads((tmp_path / "first.geojson").read_text())["features"][0]["properties"] == {"names": {"a": 1}}
