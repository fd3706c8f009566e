"""Files of GDAL's formats: the rows that geopandas reads and writes, and arcs as GDAL linearizes them."""

from __future__ import annotations

import datetime
import json
import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest
import shapely
from click.testing import CliRunner

import pqext
from pqext import geo, variant
from pqext.cli import app
from pqext.core.base.errors import CorruptFileError, GeometryError, UnsupportedError
from pqext.geo import linearization, vector_files

geopandas = pytest.importorskip("geopandas")
pyogrio = pytest.importorskip("pyogrio")
COUNTRIES = Path(pyogrio.__file__).parent / "tests/fixtures/naturalearth_lowres/naturalearth_lowres.shp"


@pytest.fixture(scope="module")
def countries() -> Any:
    if not COUNTRIES.exists():
        pytest.skip("this pyogrio comes without Natural Earth's countries")
    return geo.read_file(COUNTRIES)


def test_layers_have_the_rows_of_geopandas(countries: pa.Table) -> None:
    frame = geopandas.read_file(COUNTRIES)
    assert shapely.equals(geo.to_shapely(countries["geometry"]), frame.geometry.to_numpy()).all()
    assert countries.drop_columns("geometry").to_pandas().equals(frame.drop(columns="geometry"))
    assert geo.to_geopandas(countries).crs == frame.crs
    box = (170, -50, 180, -10)
    assert geo.read_file(COUNTRIES, columns=["name"], bbox=box)["name"].to_pylist() == (
        geopandas.read_file(COUNTRIES, bbox=box)["name"].tolist()
    )
    mask = shapely.Point(10, 50).buffer(3)
    assert geo.read_file(COUNTRIES, mask=mask, where="pop_est > 10000000")["name"].to_pylist() == (
        geopandas.read_file(COUNTRIES, mask=mask, where="pop_est > 10000000")["name"].tolist()
    )


@pytest.mark.parametrize("extension", ["gpkg", "fgb", "shp", "geojsonl"])
def test_geopandas_reads_the_rows_written(countries: pa.Table, extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{extension}"
    pqext.write_table(countries, tmp_path / "in.parquet", row_group_rows=50)
    scan = pqext.scan(tmp_path / "in.parquet").filter("pop_est > 50000000")
    for _ in range(2):  # the second file replaces the first
        geo.write_file(scan, path)
    expected = geo.to_geopandas(scan.to_table()).sort_values("name", ignore_index=True)
    frame = geopandas.read_file(path).sort_values("name", ignore_index=True)
    assert frame["name"].tolist() == expected["name"].tolist()
    assert frame["pop_est"].tolist() == expected["pop_est"].tolist()
    assert frame.geometry.normalize().geom_equals_exact(expected.geometry.normalize(), 1e-6).all()
    assert frame.crs == expected.crs
    assert {file.stem for file in tmp_path.iterdir()} == {"in", "out"}


def test_columns_without_a_type_in_the_format_are_converted(tmp_path: Path) -> None:
    table = pa.table({
        "doc": variant.parse_json(pa.array(['{"a": 1}', None])), "view": pa.array(["a", None], pa.string_view()),
        "at": geo.from_points([1.0, 2.0], [3.0, 4.0]), "kind": pa.array(["x", "y"]).dictionary_encode(),
    })  # fmt: skip
    geo.write_file(table, tmp_path / "a.gpkg", layer="first")
    geo.write_file(table, tmp_path / "a.gpkg", layer="first", append=True)
    result = geo.read_file(tmp_path / "a.gpkg", layer="first")
    assert result["doc"].to_pylist() == ['{"a":1}', None] * 2
    assert result["view"].to_pylist() == ["a", None] * 2
    assert result["kind"].to_pylist() == ["x", "y"] * 2
    assert geo.to_wkt(result["geometry"]).to_pylist() == ["POINT (1 3)", "POINT (2 4)"] * 2


def test_an_attribute_may_have_the_name_of_the_geometry(tmp_path: Path) -> None:
    table = pa.table({"geometry": ["text"], "at": geo.from_points([1.0], [3.0])})
    geo.write_file(table, tmp_path / "a.fgb", geometry="at")
    assert geo.read_file(tmp_path / "a.fgb").schema.names == ["geometry", "geom"]


@pytest.mark.filterwarnings("ignore:'crs' was not provided")
def test_failed_writes_leave_the_file_as_it_was(countries: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "a.gpkg"
    geo.write_file(countries, path)
    before = path.read_bytes()
    bad = pa.chunked_array([[shapely.to_wkb(shapely.Point(1, 2))], [b"\x01\x02"]])
    with pytest.raises(GeometryError, match="row 1"):
        geo.write_file(pa.table({"geometry": bad}), path, geometry="geometry")
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.gpkg"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda at, table: geo.read_file(at / "no.gpkg"), FileNotFoundError, "no.gpkg: the file does not exist"),
        (lambda at, table: geo.read_file(at / "text.gpkg"), UnsupportedError, "GDAL cannot open the file"),
        (lambda at, table: geo.read_file(at / "a.gpkg", layer="x"), ValueError, "Layer 'x'"),
        (lambda at, table: geo.read_file(at / "a.gpkg", columns=["nam"]), ValueError, "no column 'nam'.*'name'"),
        (lambda at, table: geo.read_file(at / "a.gpkg", where="name ==="), ValueError, "a.gpkg: .*syntax error"),
        (lambda at, table: geo.read_file(at / "a.gpkg", bbox=(1, 2)), ValueError, "four numbers"),
        (lambda at, table: geo.read_file(at / "a.gpkg", curves="x"), ValueError, "curves must be"),
        (lambda at, table: geo.write_file(table, at / "a.abc"), ValueError, "unknown file extension"),
        (lambda at, table: geo.write_file(table, at / "no/a.fgb"), FileNotFoundError, "the folder does not exist"),
        (lambda at, table: geo.write_file(table, at / "b.x", driver="GPG"), ValueError, "no driver 'GPG'.*'GPKG'"),
        (lambda at, table: geo.write_file(at / "no.parquet", at / "b.fgb"), FileNotFoundError, "no.parquet"),
        (lambda at, table: geo.write_file(pa.table({"a": [1]}), at / "b.fgb"), ValueError, "no geometry column"),
        (lambda at, table: geo.write_file(table, at / "b.fgb", geometry="g"), ValueError, "no column 'g'"),
    ],
)
def test_errors_name_the_file_and_the_remedy(
    call: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    table = pa.table({"name": ["a"], "geometry": geo.from_points([1.0], [2.0])})
    geo.write_file(table, tmp_path / "a.gpkg")
    (tmp_path / "text.gpkg").write_text("text")
    with pytest.raises(error, match=message):
        call(tmp_path, table)


def test_several_layers_warn(tmp_path: Path) -> None:
    table = pa.table({"geometry": geo.from_points([1.0], [2.0])})
    geo.write_file(table, tmp_path / "a.gpkg", layer="one")
    geo.write_file(table, tmp_path / "a.gpkg", layer="two", append=True)
    with pytest.warns(UserWarning, match="2 layers; reading layer 'one'"):
        geo.read_file(tmp_path / "a.gpkg")


@pytest.mark.parametrize("shapes", [[None], [(1, 2), None], [None, (1, 2)], [(1, 2), None, (3, 4)]])
def test_null_geometries_in_flatgeobuf(shapes: list[Any], tmp_path: Path) -> None:
    points = [None if xy is None else shapely.Point(xy) for xy in shapes]
    table = pa.table({"n": range(len(points)), "geometry": geo.from_shapely(points)})
    path = tmp_path / "a.fgb"
    with pytest.raises(pqext.UnsupportedError, match='pass SPATIAL_INDEX="NO" to store null and empty geometries'):
        geo.write_file(table, path)
    geo.write_file(table, path, SPATIAL_INDEX="NO")
    assert geo.to_shapely(geo.read_file(path)["geometry"]).tolist() == points
    assert geopandas.read_file(path, use_arrow=False).geometry.tolist() == points


def test_the_command_line_converts_layers(countries: pa.Table, tmp_path: Path) -> None:
    geo.write_file(countries, tmp_path / "a.gpkg", layer="land")
    geo.write_file(countries, tmp_path / "a.fgb", SPATIAL_INDEX="NO")
    shutil.copy(tmp_path / "a.fgb", tmp_path / "plain")
    for name, options in {"a.gpkg": ["--layer", "land"], "plain": []}.items():
        out = tmp_path / f"{name}.parquet"
        result = CliRunner().invoke(app, ["convert", str(tmp_path / name), str(out), *options])
        assert result.exit_code == 0, result.output
        assert pqext.read_table(out).equals(countries)
    result = CliRunner().invoke(app, ["convert", str(COUNTRIES), str(tmp_path / "b.gpkg")])
    assert "pqext.geo.write_file" in result.output


def curve(type: int, body: bytes) -> bytes:
    return b"\x01" + struct.pack("<I", type) + body


def arcs(coordinates: Any, type: int = 8) -> bytes:
    values = np.array(coordinates, "<f8")
    return curve(type, struct.pack("<I", len(values)) + values.tobytes())


CIRCLE = arcs([(0, 0), (2, 0), (0, 0)])
S_CURVE = arcs([(0, 0), (1, 1), (2, 0), (3, -1), (4, 0)])
COMPOUND = curve(9, struct.pack("<I", 2) + arcs([(0, 0), (1, 1), (2, 0)]) + arcs([(2, 0), (0, 0)], 2))
CURVES = {
    "circle": CIRCLE, "s": S_CURVE, "compound": COMPOUND, "clockwise": arcs([(0, 0), (-0.3, 0.7), (2, 3)]),
    "polygon": curve(10, struct.pack("<I", 2) + arcs([(-9, -9), (9, -9), (9, 9), (-9, -9)], 2) + CIRCLE),
    "multi": curve(11, struct.pack("<I", 2) + S_CURVE + arcs([(0, 0), (1, 5)], 2)),
    "surface": curve(12, struct.pack("<I", 1) + curve(10, struct.pack("<I", 1) + COMPOUND)),
}  # fmt: skip


@pytest.mark.parametrize("name", CURVES)
def test_arcs_are_those_of_gdal(name: str, tmp_path: Path) -> None:
    data = np.array([CURVES[name]], dtype=object)
    pyogrio.raw.write(
        tmp_path / "a.gpkg", data, [], [], geometry_type="Unknown", crs="EPSG:3857", driver="GPKG"
    )
    expected = shapely.from_wkb(pyogrio.raw.read(tmp_path / "a.gpkg")[2])[0]
    (shape,) = geo.to_shapely(geo.linearize(pa.array([CURVES[name]])))
    assert shape.geom_type == expected.geom_type
    assert shape.hausdorff_distance(expected) < 0.01
    assert shape.length == pytest.approx(expected.length, rel=1e-3)
    assert geo.to_shapely(geo.read_file(tmp_path / "a.gpkg")["geometry"])[0].equals(shape)
    with pytest.raises(GeometryError, match="curves"):
        geo.read_file(tmp_path / "a.gpkg", curves="raise")


def test_chords_lie_on_the_circle_and_have_at_most_the_angle() -> None:
    (line,) = geo.to_shapely(geo.linearize(pa.array([CIRCLE]), max_angle=1))
    x, y = shapely.get_coordinates(line).T
    assert np.hypot(x - 1, y) == pytest.approx(1)
    assert len(x) == 361
    straight = arcs([(0, 0), (1, 1), (2, 2)])
    assert geo.to_wkt(geo.linearize(pa.array([straight, None]))).to_pylist() == ["LINESTRING (0 0, 1 1, 2 2)", None]
    raised = geo.linearize(pa.array([arcs([(0, 0, 0), (1, 1, 4), (2, 0, 8)], 1008)]), max_angle=45)
    heights = shapely.get_coordinates(geo.to_shapely(raised)[0], include_z=True)[:, 2]
    np.testing.assert_allclose(heights, [0, 2, 4, 6, 8])


@pytest.mark.parametrize("srid", [b"", struct.pack("<I", 4326)])
@pytest.mark.parametrize(("flags", "iso"), [(0, 8), (0x80000000, 1008), (0x40000000, 2008), (0xC0000000, 3008)])
def test_curves_in_extended_wkb_have_the_chords_of_iso_wkb(flags: int, iso: int, srid: bytes) -> None:
    further = flags.bit_count()
    coordinates = [(0, 0, 0, 8), (1, 1, 4, 4), (2, 0, 8, 0)]
    plain = arcs([row[: 2 + further] for row in coordinates], iso)
    extended = curve(8 | flags | (0x20000000 if srid else 0), srid + plain[5:])
    lines = geo.linearize(pa.array([plain, extended]), max_angle=45)
    assert lines[0] == lines[1]
    line = shapely.from_wkb(lines[1].as_py())
    assert (shapely.has_z(line), shapely.has_m(line)) == (bool(flags & 0x80000000), bool(flags & 0x40000000))
    values = shapely.get_coordinates(line, include_z=shapely.has_z(line), include_m=shapely.has_m(line))
    np.testing.assert_allclose(values[:, 2:], [(x, 8 - x)[:further] for x in (0, 2, 4, 6, 8)])



@pytest.mark.parametrize("row", [0, 87, 110, 200, 300, 499])
def test_errors_count_the_rows_of_preceding_batches(row: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.array([shapely.to_wkb(shapely.Point(1, 2))] * row + [CIRCLE] * (500 - row), dtype=object)
    path = tmp_path / "a.gpkg"
    pyogrio.raw.write(path, data, [], [], geometry_type="Unknown", crs="EPSG:3857", driver="GPKG")
    monkeypatch.setattr(vector_files, "BATCH_ROWS", 87)
    with pytest.raises(GeometryError, match="curves") as caught:
        geo.read_file(path, curves="raise")
    assert caught.value.row == row
    assert str(caught.value).startswith(f"row {row}: ")


def test_rows_without_curves_are_unchanged() -> None:
    array = geo.from_points([1.0, 2.0], [3.0, 4.0])
    assert geo.linearize(array).equals(array)
    extended = shapely.to_wkb(shapely.set_srid(shapely.Point(1, 2), 4326), include_srid=True, byte_order=0)
    assert geo.linearize(pa.array([extended, CIRCLE]))[0].as_py() == extended


@pytest.mark.parametrize(
    "data",
    [CIRCLE[:-1], CIRCLE + b"\0", arcs([(0, 0), (1, 1)]), curve(9, b"\xff\xff\xff\xff"), curve(11, b"\1\0\0\0\1"),
     curve(10, struct.pack("<I", 1) + arcs([(0, 0)], 1)), curve(7, struct.pack("<I", 1) + b"\x05\0\0\0\0"),
     b"\x01" + struct.pack("<I", 7) + struct.pack("<I", 1), curve(4008, b"\0\0\0\0"),
     b"".join([curve(7, struct.pack("<I", 1))] * 99) + CIRCLE,
     curve(9, struct.pack("<I", 1) + arcs([(1, 2, 3), (4, 5, 6)], 1002)),
     curve(10, struct.pack("<I", 1) + arcs([(0, 0, 1), (4, 0, 1), (0, 4, 1), (0, 0, 1)], 1002))],
)  # fmt: skip
def test_malformed_curves_are_errors_with_the_row(data: bytes) -> None:
    with pytest.raises(GeometryError) as caught:
        geo.to_iso_wkb(geo.linearize(pa.array([None, data])))
    assert caught.value.row == 1


@pytest.mark.parametrize(
    ("name", "depth"), [("circle", 0), ("compound", 1), ("polygon", 1), ("multi", 1), ("surface", 3)]
)
def test_curves_are_nested_at_most_32_deep(name: str, depth: int) -> None:
    outer = curve(7, struct.pack("<I", 1))
    allowed, rejected = (outer * (levels - depth) + CURVES[name] for levels in (32, 33))
    (shape,), (alone,) = (geo.to_shapely(geo.linearize(pa.array([data]))) for data in (allowed, CURVES[name]))
    for _ in range(32 - depth):
        (shape,) = shape.geoms
    assert shape.equals(alone)
    with pytest.raises(GeometryError, match="nested more than 32 levels deep"):
        geo.linearize(pa.array([rejected]))


def test_plain_and_empty_members_of_collections_are_preserved() -> None:
    members = [shapely.Point(1, 2), shapely.box(0, 0, 1, 1).difference(shapely.box(0.2, 0.2, 0.4, 0.4))]
    body = b"".join([struct.pack("<I", 3), *shapely.to_wkb(members, byte_order=0).tolist(), arcs(np.empty((0, 2)))])
    (shape,) = geo.to_shapely(geo.linearize(pa.array([curve(7, body)])))
    assert shape == shapely.GeometryCollection([*members, shapely.LineString()])


def test_arrays_without_rows_need_no_offsets() -> None:
    array = pa.Array.from_buffers(pa.binary(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")])
    assert geo.linearize(array).to_pylist() == []


def test_surfaces_next_to_curves_are_rejected() -> None:
    with pytest.raises(GeometryError, match="type 15 is not supported"):  # POLYHEDRALSURFACE
        geo.linearize(pa.array([curve(7, struct.pack("<I", 1) + curve(15, struct.pack("<I", 0)))]))


def test_offsets_may_have_odd_padding() -> None:
    (wkb,) = [shapely.to_wkb(shapely.Point(1, 2))]
    offsets = pa.py_buffer(np.array([0, len(wkb)], np.int32).tobytes() + b"\0\0\0")
    array = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(wkb)])
    assert geo.linearize(array).to_pylist() == [wkb]


@pytest.mark.parametrize("angle", [0, -1, 91, float("nan"), True])
def test_angles_out_of_range_are_rejected(angle: Any) -> None:
    with pytest.raises(ValueError, match=r"max_angle must be from 0\.1 to 90"):
        geo.linearize(pa.array([CIRCLE]), max_angle=angle)


def test_nearly_straight_arcs_are_straight() -> None:
    generator = np.random.default_rng(0)
    for exponent in range(8):
        for _ in range(100):
            start, direction = generator.uniform(-1, 1, 2) * 10.0**exponent, generator.normal(size=2)
            vertices = [start, start + generator.uniform(0.05, 0.95) * direction, start + direction]
            (line,) = geo.to_shapely(geo.linearize(pa.array([arcs(vertices)])))
            assert line.length == pytest.approx(np.hypot(*direction), rel=1e-6)


def test_flat_arcs_far_from_the_origin_keep_their_circle() -> None:
    centre, radius = np.array([5e5, 4e6]), 2e4
    angles = np.array([1.0, 1.05, 1.2])
    vertices = centre + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    (line,) = geo.to_shapely(geo.linearize(pa.array([arcs(vertices)])))
    assert len(line.coords) == 5
    assert np.hypot(*(shapely.get_coordinates(line) - centre).T) == pytest.approx(radius, abs=1e-3)


def test_arcs_with_too_many_chords_are_rejected() -> None:
    with pytest.raises(GeometryError, match="the chords exceed 2 GiB; pass a greater max_angle"):
        geo.linearize(pa.array([arcs([*np.tile([(0, 0), (2, 0)], (75_000, 1)).tolist(), (0, 0)])]), max_angle=0.1)


@pytest.mark.parametrize(("type", "dimensions"), [(8, 2), (1008, 3), (3008, 4)])
def test_chords_up_to_the_limit_are_accepted(type: int, dimensions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    circle = pa.array([arcs([(x, *[0] * (dimensions - 1)) for x in (0, 2, 0)], type)])
    size = 360 * dimensions * 8  # bytes of the coordinates of 360 chords
    monkeypatch.setattr(linearization, "_MAX_BYTES", size)
    (line,) = geo.to_shapely(geo.linearize(circle, max_angle=1))
    assert len(line.coords) == 361
    for limit in (size - 1, size // 2, 8, 0):
        monkeypatch.setattr(linearization, "_MAX_BYTES", limit)
        with pytest.raises(GeometryError, match="pass a greater max_angle"):
            geo.linearize(circle, max_angle=1)


def test_replaced_shapefiles_leave_no_index_or_crs(tmp_path: Path) -> None:
    x, y = np.arange(100.0), np.zeros(100)
    geo.write_file(pa.table({"geometry": geo.from_points(x, y)}), tmp_path / "a.shp", SPATIAL_INDEX="YES")
    (tmp_path / "a.txt").write_text("notes")
    assert {"a.qix", "a.prj"} <= {path.name for path in tmp_path.iterdir()}
    table = pa.table({"geometry": geo.from_points(x[::-1], y + 5, crs="srid:0")})
    with pytest.warns(UserWarning, match="'crs' was not provided"):
        geo.write_file(table, tmp_path / "a.shp")
    assert geo.to_geopandas(geo.read_file(tmp_path / "a.shp")).crs is None
    assert geo.read_file(tmp_path / "a.shp", bbox=(0, 4, 10.5, 6)).num_rows == 11
    assert (tmp_path / "a.txt").exists()


def test_sqlite_journals_of_a_replaced_file_are_removed(tmp_path: Path) -> None:
    (tmp_path / "a.gpkg-journal").write_bytes(b"of another database")
    geo.write_file(pa.table({"geometry": geo.from_points([1.0], [2.0])}), tmp_path / "a.gpkg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.gpkg"]


@pytest.mark.parametrize("extension", ["fgb", "gpkg", "shp", "gdb"])
@pytest.mark.parametrize("text", ["POINT Z (1 2 3)", "LINESTRING Z (1 2 3, 4 5 6)"])
def test_z_is_written(text: str, extension: str, tmp_path: Path) -> None:
    table = pa.table({"geometry": geo.from_wkt(pa.array([text]))})
    geo.write_file(table, tmp_path / f"a.{extension}")
    (shape,) = geo.to_shapely(geo.read_file(tmp_path / f"a.{extension}")["geometry"])
    (shape,) = shape.geoms if shape.geom_type.startswith("Multi") else (shape,)  # GDAL's geodatabases
    assert shape.wkt == shapely.from_wkt(text).wkt


@pytest.mark.parametrize(
    "texts", [["POINT (1 2)", "LINESTRING Z (1 2 3, 4 5 6)"], ["POINT M (1 2 3)"], ["POINT ZM (1 2 3 4)"]]
)
def test_z_and_m_that_flatgeobuf_would_drop_are_errors(texts: list[str], tmp_path: Path) -> None:
    table = pa.table({"geometry": geo.from_wkt(pa.array(texts))})
    with pytest.raises(UnsupportedError, match="write a GeoPackage"):
        geo.write_file(table, tmp_path / "a.fgb")
    assert not [*tmp_path.iterdir()]


def test_boxes_may_cross_the_antimeridian(tmp_path: Path) -> None:
    table = pa.table({"id": range(4), "geometry": geo.from_points([175.0, -175.0, 0.0, 179.0], [0.0, 1.0, 0.0, 40.0])})
    geo.write_file(table, tmp_path / "a.gpkg")
    assert sorted(geo.read_file(tmp_path / "a.gpkg", bbox=(170, -9, -170, 9))["id"].to_pylist()) == [0, 1]


@pytest.mark.parametrize("name", ["a;b.gpkg", "a!b.gpkg"])
def test_paths_that_pyogrio_misreads_are_errors(name: str, tmp_path: Path) -> None:
    table = pa.table({"geometry": geo.from_points([1.0], [2.0])})
    with pytest.raises(ValueError, match="rename the file"):
        geo.write_file(table, tmp_path / name)
    assert not [*tmp_path.iterdir()]
    (tmp_path / name).touch()
    with pytest.raises(ValueError, match="rename the file"):
        geo.read_file(tmp_path / name)


@pytest.mark.filterwarnings("ignore:Non-conformant content:RuntimeWarning")
@pytest.mark.parametrize("extension", ["gpkg", "fgb"])
def test_times_are_those_of_geopandas(extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{extension}"
    times = ["2026-07-01 12:00:00.5", None, "1969-12-31 23:59:59"]
    local, points = pandas.to_datetime(times, format="ISO8601"), [shapely.Point(1, 2)] * 3
    frame = geopandas.GeoDataFrame(
        {"local": local, "zoned": local.tz_localize("Europe/Berlin"), "utc": local.tz_localize("UTC")},
        geometry=points, crs=4326,
    )  # fmt: skip
    frame.to_file(path)
    table = geo.read_file(path)
    instant = pa.timestamp("ms", "UTC")
    assert [table.schema.field(name).type for name in ("local", "zoned", "utc")] == [
        pa.timestamp("ms"), instant, instant,
    ]  # fmt: skip
    expected = geopandas.read_file(path)
    for name in ("local", "zoned", "utc"):
        column = expected[name].dt.tz_convert("UTC") if name != "local" else expected[name]
        assert table[name].to_pylist() == [None if pandas.isna(time) else time for time in column]


@pytest.mark.parametrize("extension", ["geojson", "gpkg"])
def test_values_of_maps_are_written(extension: str, tmp_path: Path) -> None:
    days = pa.array([[("a", datetime.date(2026, 7, 1)), ("b", None)], None], pa.map_(pa.string(), pa.date32()))
    path, points = tmp_path / f"a.{extension}", geo.from_points([1.0, 2.0], [3.0, 4.0])
    geo.write_file(pa.table({"m": days, "at": points}), path)
    texts = geopandas.read_file(path)["m"].tolist()
    assert [json.loads(text) if isinstance(text, str) else text for text in texts] == [
        {"a": "2026-07-01", "b": None}, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "column", [pa.array([[(1, 2)]], pa.map_(pa.int32(), pa.int32())), pa.array([[1, None]]), pa.array([["a", None]])]
)
def test_values_that_gdal_would_lose_are_an_error_with_the_column(column: pa.Array, tmp_path: Path) -> None:
    table = pa.table({"c": column, "at": geo.from_points([1.0], [2.0])})
    with pytest.raises(UnsupportedError) as caught:
        geo.write_file(table, tmp_path / "a.geojson")
    assert caught.value.column == "c"
    if pa.types.is_list(column.type):
        geo.write_file(table.set_column(0, "c", variant.from_arrow(column)), tmp_path / "a.gpkg")
        assert json.loads(geo.read_file(tmp_path / "a.gpkg")["c"][0].as_py()) == column[0].as_py()


@pytest.mark.parametrize("zone", ["Europe/Paris", "GMT", "+05:30", "UTC"])
@pytest.mark.parametrize("extension", ["geojson", "gpkg", "fgb"])
def test_times_of_any_zone_are_written_as_instants(extension: str, zone: str, tmp_path: Path) -> None:
    path, instant = tmp_path / f"a.{extension}", datetime.datetime(2026, 7, 1, tzinfo=datetime.UTC)
    times = pa.array([instant], pa.timestamp("ms", zone))
    table = pa.table({
        "t": times, "d": times.dictionary_encode(), "s": pa.StructArray.from_arrays([times], ["x"]),
        "at": geo.from_points([1.0], [2.0]),
    })  # fmt: skip
    geo.write_file(table, path)
    texts = pyogrio.read_arrow(path, datetime_as_string=True)[1]
    for name in ("t", "d", "s.x"):
        assert [datetime.datetime.fromisoformat(text) for text in texts[name].to_pylist()] == [instant]
    assert geo.read_file(path)["t"].to_pylist() == [instant]


def test_time_with_an_offset_after_the_first_batch_makes_the_column_instants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_files, "BATCH_ROWS", 2)
    texts = [None, None, None, "2026-07-01T12:00:00+02:00"]
    point = {"type": "Point", "coordinates": [1, 2]}
    features = [
        {"type": "Feature", "geometry": point, "properties": {"n": number, "t": text}}
        for number, text in enumerate(texts)
    ]
    path = tmp_path / "a.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    for options in ({}, {"bbox": (0, 0, 5, 5)}, {"columns": ["t"], "where": "n > 0"}):
        table = geo.read_file(path, **options)
        assert table.schema.field("t").type == pa.timestamp("ms", "UTC")
        assert table["t"].to_pylist()[-1] == datetime.datetime(2026, 7, 1, 10, tzinfo=datetime.UTC)
    assert geo.read_file(path, where="n < 3").schema.field("t").type == pa.timestamp("ms")


def write_times(path: Path, texts: list[str]) -> None:
    """Write a GeoPackage whose times are the texts."""
    local = pandas.to_datetime(["2026-07-01 12:00"] * len(texts))
    geopandas.GeoDataFrame({"t": local}, geometry=[shapely.Point(1, 2)] * len(texts), crs=4326).to_file(path)
    with closing(sqlite3.connect(path)) as database:
        for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f'DROP TRIGGER "{trigger}"')
        for number, text in enumerate(texts, 1):
            database.execute("UPDATE a SET t = ? WHERE fid = ?", (text, number))
        database.commit()


def test_times_without_an_offset_among_instants_are_utc_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "a.gpkg"
    write_times(path, ["2026-07-01T12:00:00.1234567+02:00", "2026-07-01T12:00:00", "2026-07-01T12:00Z", "2026-07-01"])
    with pytest.warns(UserWarning, match=r"a\.gpkg: column 't' has times with and without an offset from UTC"):
        table = geo.read_file(path)
    hours = [(10, 123_000), (12, 0), (12, 0), (0, 0)]
    assert table["t"].to_pylist() == [
        datetime.datetime(2026, 7, 1, hour, 0, 0, micros, datetime.UTC) for hour, micros in hours
    ]


def test_mixed_times_warn_once_for_each_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_files, "BATCH_ROWS", 2)
    path, texts = tmp_path / "a.geojson", ["2026-07-01T12:00:00Z", "2026-07-01T12:00:00"] * 4
    features = [{"type": "Feature", "geometry": None, "properties": {"t": text, "u": text}} for text in texts]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    with pytest.warns(UserWarning, match="times with and without") as warnings:
        assert geo.read_file(path).num_rows == 8
    assert sorted(str(warning.message).split("'")[1] for warning in warnings) == ["t", "u"]


def test_gdal_drops_the_offset_of_times_without_seconds(tmp_path: Path) -> None:
    path = tmp_path / "a.geojson"
    feature = {"type": "Feature", "geometry": None, "properties": {"t": "2026-07-01T12:00Z"}}
    path.write_text(json.dumps(feature))
    texts = pyogrio.read_arrow(path, datetime_as_string=True)[1]["t"].to_pylist()
    zone = "UTC" if texts[0].endswith("Z") else None
    assert geo.read_file(path).schema.field("t").type == pa.timestamp("ms", zone)
    assert geo.read_geojson(path)["t"].to_pylist() == [datetime.datetime(2026, 7, 1, 12, tzinfo=datetime.UTC)]


def test_text_that_is_not_a_time_is_an_error_with_column_and_path(tmp_path: Path) -> None:
    path = tmp_path / "a.gpkg"
    write_times(path, ["2026-07-01T12:00:00", "soon"])
    with pytest.raises(CorruptFileError, match=r"not a time.*soon") as caught:
        geo.read_file(path)
    assert (caught.value.path, caught.value.column) == (str(path), "t")
    assert geo.read_file(path, columns=[]).num_rows == 2


EMPTY_PARTS = [
    "GEOMETRYCOLLECTION (POINT EMPTY, POINT (3 4))", "MULTIPOINT (EMPTY, (1 2))", "MULTILINESTRING (EMPTY, (0 0, 1 1))",
    "MULTIPOLYGON (EMPTY, ((0 0, 1 0, 1 1, 0 0)))", "POINT (5 6)",
    "GEOMETRYCOLLECTION (MULTIPOINT (EMPTY, (1 2)), LINESTRING EMPTY, POINT (3 4))",
]  # fmt: skip


@pytest.mark.parametrize("extension", ["geojson", "geojsonl", "kml", "gml", "gpkg"])
def test_empty_parts_do_not_remove_other_parts(extension: str, tmp_path: Path) -> None:
    path, shapes = tmp_path / f"a.{extension}", shapely.from_wkt(EMPTY_PARTS)
    geo.write_file(pa.table({"n": range(len(shapes)), "at": geo.from_shapely(shapes)}), path)
    written = geopandas.read_file(path).geometry.to_numpy()
    assert [shapely.get_coordinates(shape).tolist() for shape in written] == [
        shapely.get_coordinates(shape).tolist() for shape in shapes
    ]
    if extension == "geojson":  # FlatGeobuf stores no empty parts
        geopandas.GeoDataFrame({"n": range(len(shapes))}, geometry=shapes, crs=4326).to_file(tmp_path / "a.fgb")
        expected = geopandas.read_file(tmp_path / "a.fgb").sort_values("n").geometry.to_numpy()
        texts = [json.dumps(feature["geometry"]) for feature in json.loads(path.read_text())["features"]]
        assert shapely.to_wkt(shapely.from_geojson(texts)).tolist() == shapely.to_wkt(expected).tolist()


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("extension", ["geojson", "kml", "gml", "fgb", "shp"])
@pytest.mark.parametrize("text", ["POINT (1 nan)", "LINESTRING (0 0, inf 1)", "MULTIPOINT ((1 2), (3 nan))"])
def test_nan_that_the_format_cannot_store_is_an_error_with_the_row(
    text: str, extension: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pqext.dataset.vector_files, "BATCH_ROWS", 2)
    kind = shapely.from_wkt(text).geom_type
    good = {"Point": "POINT (1 2)", "LineString": "LINESTRING (1 2, 3 4)", "MultiPoint": "MULTIPOINT ((1 2))"}[kind]
    table = pa.table({"at": geo.from_shapely(shapely.from_wkt([good, good, good, text]))})
    with pytest.raises(GeometryError, match=r"row 3: .*write a GeoPackage") as caught:
        geo.write_file(table, tmp_path / f"a.{extension}", geometry="at")
    assert caught.value.row == 3
    assert not [*tmp_path.iterdir()]
    geo.write_file(table, tmp_path / "a.gpkg", geometry="at")
    assert geo.read_file(tmp_path / "a.gpkg")["geometry"].to_pylist() == table["at"].to_pylist()


@pytest.mark.parametrize("extension", ["geojson", "kml"])
def test_z_without_a_value_is_omitted(extension: str, tmp_path: Path) -> None:
    for z, text in ((None, "POINT (1 2)"), (3.0, "POINT Z (1 2 3)")):
        path = tmp_path / f"{z}.{extension}"
        geo.write_file(pa.table({"at": geo.from_points([1.0], [2.0], [z])}), path)
        assert shapely.to_wkt(geopandas.read_file(path).geometry.to_numpy()).tolist() == [text]
    line = geo.from_shapely([shapely.LineString([(0, 0, 1), (1, 1, float("nan"))])])
    with pytest.raises(GeometryError, match="row 0: Z is NaN or infinite in some positions"):
        geo.write_file(pa.table({"at": line}), path, geometry="at")


@pytest.mark.parametrize("extension", ["geojsonl", "kml"])
def test_empty_points_are_null_in_formats_of_longitudes_and_latitudes(extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{extension}"
    texts = ["POINT (500000 5500000)", "POINT EMPTY", None, "POINT Z EMPTY", "LINESTRING (5e5 55e5, 6e5 55e5)"]
    points = geo.from_wkt(pa.array(texts), crs="EPSG:25832")
    geo.write_file(pa.table({"n": range(5), "at": points}), path)
    result = geopandas.read_file(path)
    expected = geopandas.GeoSeries.from_wkb(points.to_pylist(), crs=25832).to_crs(4326)
    assert result.geometry.isna().tolist() == [False, True, True, True, False]
    assert result.geometry[0].distance(expected[0]) < 1e-6
    assert result.geometry[4].hausdorff_distance(expected[4]) < 1e-6
