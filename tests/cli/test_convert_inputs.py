"""`pqext convert` recognises what files are, whatever their names, and names formats that it does not read."""

from __future__ import annotations

import bz2
import datetime
import gzip
import itertools
import json
import lzma
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import geopandas
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
import shapely
from click.testing import CliRunner, Result

import pqext
from pqext.cli import app
from pqext.cli.errors import describe
from pqext.core.base.errors import CorruptFileError, SchemaMismatchError, UnsupportedError
from pqext.variant.json.files import read_chunks

FEATURES = [
    {"type": "Feature", "geometry": {"type": "Point", "coordinates": [n, 2]}, "properties": {f"n{n}": n, "s": "a"}}
    for n in range(3)
]
COLLECTION = {"name": "places", "type": "FeatureCollection", "features": FEATURES}


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


def convert(*arguments: object, input: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["convert", *map(str, arguments), "--force"], input=input)


def test_geojson_in_a_json_file_is_detected(tmp_path: Path) -> None:
    path, dest = tmp_path / "places.json", tmp_path / "out.parquet"
    path.write_text("\ufeff" + json.dumps(COLLECTION, indent=2), "utf-8")
    result = convert(path, dest)
    assert result.exit_code == 0, result.exception
    assert "--input-format json reads one document" in result.output
    expected = geopandas.read_file(path)
    assert pqext.read_table(dest).num_rows == len(expected)
    assert shapely.from_wkb(pq.read_table(dest)["geometry"].to_numpy()).tolist() == expected.geometry.tolist()
    for options in (["--input-format", "json"], ["--column", "v"]):
        assert convert(path, dest, *options).exit_code == 0
        assert pq.read_table(dest).num_rows == 1
    packed = tmp_path / "places.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert convert(packed, path, dest).exit_code == 0
    assert pqext.read_table(dest).num_rows == 6


@pytest.mark.parametrize("text", ['{"map": {"type": "FeatureCollection"}}\n{"map": 1}\n', '{"type": "Feature"}\n{}\n'])
def test_documents_that_contain_geojson_remain_documents(text: str, tmp_path: Path) -> None:
    path, dest = tmp_path / "in.json", tmp_path / "out.parquet"
    path.write_text(text)
    assert convert(path, dest).exit_code == 0
    assert pq.read_table(dest).column_names == ["value"]
    assert pq.read_table(dest).num_rows == 2


def test_geojson_mixed_with_other_json_is_rejected(tmp_path: Path) -> None:
    for name, content in (("a.json", COLLECTION), ("b.json", {"a": 1})):
        (tmp_path / name).write_text(json.dumps(content))
    result = convert(tmp_path / "a.json", tmp_path / "b.json", tmp_path / "out.parquet")
    assert result.exit_code == 2
    assert "several formats (geojson, json)" in " ".join(result.output.split())


def test_properties_are_converted_to_one_variant_column(tmp_path: Path) -> None:
    path, dest = tmp_path / "in.geojson", tmp_path / "out.parquet"
    path.write_text(json.dumps(COLLECTION))
    assert convert(path, dest, "--properties", "tags").exit_code == 0
    table = pqext.read_table(dest)
    assert table.column_names == ["geometry", "tags"]
    assert [json.loads(v) for v in pqext.variant.to_json(table["tags"]).to_pylist()] == [
        feature["properties"] for feature in FEATURES
    ]
    assert convert(path, dest, "--input-format", "json", "--properties", "tags").exit_code == 2


def test_property_named_geometry_renames_the_geometry_column(tmp_path: Path) -> None:
    path, dest = tmp_path / "in.geojson", tmp_path / "out.parquet"
    path.write_text(json.dumps({**FEATURES[1], "properties": {"geometry": "round"}}))
    assert convert(path, dest).exit_code == 0
    assert pq.read_table(dest).to_pydict() == {"geom": [shapely.to_wkb(shapely.Point(1, 2))], "geometry": ["round"]}


def test_features_with_too_many_names_are_an_error_that_names_the_option(tmp_path: Path) -> None:
    features = [{"type": "Feature", "geometry": None, "properties": {f"n{n}": n}} for n in range(20_000)]
    path, dest = tmp_path / "in.geojson", tmp_path / "out.parquet"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    result = convert(path, dest)
    assert result.exit_code == 1
    assert isinstance(result.exception, ValueError)
    assert "pass --properties NAME to store" in describe(result.exception)
    assert not dest.exists()
    assert convert(path, dest, "--properties", "tags", "--shredding", "none").exit_code == 0
    assert pq.read_table(dest).num_rows == 20_000


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress, zstd])
@pytest.mark.parametrize("name", ["in.json", "in.csv", "in.geojson", "in"])
def test_compressed_files_are_recognised_under_any_name(
    tmp_path: Path, name: str, compress: Callable[[bytes], bytes]
) -> None:
    path, dest = tmp_path / name, tmp_path / "out.parquet"
    text = {"in.csv": "a\n1\n2\n", "in.geojson": json.dumps({**COLLECTION, "features": FEATURES[:2]})}
    path.write_bytes(compress(text.get(name, '{"a": 1}\n{"a": 2}\n').encode()))
    result = convert(path, dest)
    assert result.exit_code == 0, result.exception
    assert pq.read_table(dest).num_rows == 2


def test_compressed_standard_input_is_recognised(tmp_path: Path) -> None:
    for data in (gzip.compress(b'{"a": 1}\n'), lzma.compress(b'{"a": 1}\n')):
        command = [sys.executable, "-m", "pqext", "convert", "-", str(tmp_path / "out.parquet"), "--force"]
        done = subprocess.run(command, input=data, capture_output=True)
        assert done.returncode == 0, done.stderr
        assert pq.read_table(tmp_path / "out.parquet").num_rows == 1


@pytest.mark.parametrize("end", ["xz", "gz"])
@pytest.mark.parametrize("form", ["json", "csv", "geojson"])
def test_truncated_compressed_files_are_corrupt(tmp_path: Path, form: str, end: str) -> None:
    path = tmp_path / f"in.{form}.{end}"
    lines = "".join(f'{{"a": {n * n}}}\n' for n in range(10_000)).encode()
    path.write_bytes((lzma if end == "xz" else gzip).compress(lines)[:-1000])
    result = convert(path, tmp_path / "out.parquet")
    assert isinstance(result.exception, CorruptFileError)
    assert "the compressed file cannot be read" in str(result.exception)


@pytest.mark.parametrize(
    ("name", "format", "advice"),
    [("a.arrow", "Arrow", "pyarrow.feather"), ("a.orc", "ORC", "pyarrow.orc")],
)
def test_unsupported_formats_are_named_with_a_remedy(
    name: str, format: str, advice: str, tmp_path: Path
) -> None:
    path, plain = tmp_path / name, tmp_path / "plain"
    table = pa.table({"a": [1]})
    {"Arrow": pyarrow.feather.write_feather, "ORC": pyarrow.orc.write_table}[format](table, str(path))
    shutil.copy(path, plain)
    for source in (path, plain):
        result = convert(source, tmp_path / "out.parquet")
        assert isinstance(result.exception, UnsupportedError)
        assert f"{format} is not supported: " in str(result.exception)
        assert advice in str(result.exception)
        assert "Usage" not in result.output
    shutil.copy(pqext_file(tmp_path), plain)
    assert convert(plain, tmp_path / "out.parquet").exit_code == 0


def pqext_file(folder: Path) -> Path:
    pqext.write_table(pa.table({"a": [1]}), folder / "a.parquet")
    return folder / "a.parquet"


def test_ranges_of_compressed_files_without_suffix_are_rejected(tmp_path: Path) -> None:
    """Tasks of Spark share out ranges of bytes, which would lose rows of a file that is decompressed."""
    path = tmp_path / "in.json"
    path.write_bytes(gzip.compress(b'{"a": 1}\n' * 100))
    with pytest.raises(CorruptFileError, match=r"compressed with gzip, but its name does not end in \.gz"):
        list(read_chunks(str(path), "lines", 1 << 16, 1 << 16, 0, 10))
    assert sum(bytes(piece.text).count(b"\n") for piece in read_chunks(str(path), "lines", 1 << 16, 1 << 16)) == 100


@pytest.mark.parametrize("name", ["a.shp", "a.gpkg", "a.parquet", "a.geojson"])
def test_crs_option_must_not_relabel_coordinates(name: str, tmp_path: Path) -> None:
    path, dest = tmp_path / name, tmp_path / "out.parquet"
    epsg = 4326 if name == "a.geojson" else 25832
    frame = geopandas.GeoDataFrame({"n": [1]}, geometry=[shapely.Point(9, 50)], crs=epsg)
    frame.to_parquet(path) if name == "a.parquet" else frame.to_file(path)
    result = convert(path, dest, "--crs", "EPSG:3857")
    stated = "OGC:CRS84" if name == "a.geojson" else "EPSG:25832"
    assert result.exit_code == 2
    assert f"column 'geometry' has CRS {stated}, but --crs is EPSG:3857" in " ".join(result.output.split())
    assert not dest.exists()
    for options in ([], ["--crs", "OGC:CRS84" if name == "a.geojson" else "EPSG:25832"]):
        result = convert(path, dest, *options)
        assert result.exit_code == 0, result.output
        assert geopandas.read_parquet(dest).crs == ("OGC:CRS84" if name == "a.geojson" else 25832)


@pytest.mark.parametrize("name", ["a.shp", "a.parquet"])
def test_crs_option_completes_an_input_without_crs(name: str, tmp_path: Path) -> None:
    path, dest = tmp_path / name, tmp_path / "out.parquet"
    frame = geopandas.GeoDataFrame({"n": [1]}, geometry=[shapely.Point(9, 50)], crs=25832)
    frame = frame if name == "a.shp" else frame.set_crs(None, allow_override=True)
    frame.to_parquet(path) if name == "a.parquet" else frame.to_file(path)
    path.with_suffix(".prj").unlink(missing_ok=True)
    result = convert(path, dest, "--crs", "EPSG:25832")
    assert result.exit_code == 0, result.output
    assert geopandas.read_parquet(dest).crs == 25832


def test_crs_option_applies_to_geometries_without_a_crs(tmp_path: Path) -> None:
    path, dest = tmp_path / "in.parquet", tmp_path / "out.parquet"
    frame = geopandas.GeoDataFrame(
        {"w": ["POINT (500000 5500000)"]}, geometry=geopandas.GeoSeries([shapely.Point(1, 2)], crs="OGC:CRS84")
    )
    frame["u"] = geopandas.GeoSeries([shapely.Point(5e5, 6e6)])
    frame.to_parquet(path)
    result = convert(path, dest, "--wkt", "w", "--crs", "EPSG:32633")
    assert result.exit_code == 0, result.output
    written = geopandas.read_parquet(dest)
    assert (written["geometry"].crs, written["w"].crs, written["u"].crs) == ("OGC:CRS84", "EPSG:32633", "EPSG:32633")
    assert written["w"].tolist() == [shapely.Point(5e5, 55e5)]
    frame[["geometry", "w"]].to_parquet(path)
    result = convert(path, dest, "--crs", "EPSG:32633")
    assert result.exit_code == 2
    assert "column 'geometry' has CRS OGC:CRS84" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("crs", "message"), [("", "--crs is empty"), ("nonsense", "CRS 'nonsense' is unknown"), ("EPSG:1", "no code '1'")]
)
@pytest.mark.parametrize("options", [[], ["--wkt", "s"]])
def test_crs_option_that_is_not_a_crs_is_rejected(
    crs: str, message: str, options: list[str], tmp_path: Path
) -> None:
    path, dest = tmp_path / "in.geojson", tmp_path / "out.parquet"
    path.write_text(json.dumps(COLLECTION))
    result = convert(path, dest, *options, "--crs", crs)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert not dest.exists()


def test_dates_and_times_of_several_geojson_files_become_times(tmp_path: Path) -> None:
    texts = {"a": "2026-07-01", "b": "2026-07-01T12:00:00", "c": None}
    paths = {name: tmp_path / f"{name}.geojson" for name in texts}
    for name, text in texts.items():
        feature = {"type": "Feature", "geometry": None, "properties": {"t": text}}
        paths[name].write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    dest = tmp_path / "out.parquet"
    assert convert(*paths.values(), dest).exit_code == 0
    times = pq.read_table(dest)["t"]
    assert pa.types.is_timestamp(times.type)
    assert times.type.tz is None
    days = [text and datetime.datetime.fromisoformat(text) for text in texts.values()]
    assert times.to_pylist() == days


TIMES = {
    "day": "2026-07-01", "utc": "2026-07-01T12:00:00Z", "ms": "2026-07-01T12:00:00.000Z",
    "us": "2026-07-01 12:00:00.5001", "local": "2026-07-01T12:00:00", "text": "soon", "null": None,
}  # fmt: skip


@pytest.fixture
def files_of_times(tmp_path: Path) -> dict[str, Path]:
    paths = {name: tmp_path / f"{name}.geojson" for name in [*TIMES, "number"]}
    for name, path in paths.items():
        feature = {"type": "Feature", "geometry": None, "properties": {"t": TIMES.get(name, 5)}}
        path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    return paths


@pytest.mark.parametrize("names", [*itertools.permutations(TIMES, 2), ("utc", "ms", "null", "local")])
def test_times_of_several_geojson_files_have_the_types_of_one_file(
    names: tuple[str, ...], files_of_times: dict[str, Path], tmp_path: Path
) -> None:
    dest, other, one = tmp_path / "out.parquet", tmp_path / "other.parquet", tmp_path / "one.geojson"
    assert convert(*(files_of_times[name] for name in names), dest).exit_code == 0
    features = [json.loads(files_of_times[name].read_text())["features"][0] for name in names]
    one.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    assert convert(one, other).exit_code == 0
    times = pq.read_table(dest)["t"]
    assert times.equals(pq.read_table(other)["t"])
    has_offset = {name in ("utc", "ms") for name in names if name != "null"}
    if "text" in names or len(has_offset) > 1:
        assert times.to_pylist() == [TIMES[name] for name in names]
    elif "day" not in names:
        assert times.to_pylist() == [
            datetime.datetime.fromisoformat(text) if (text := TIMES[name]) else None for name in names
        ]


def test_properties_of_incompatible_types_are_an_error_with_file_and_column(
    files_of_times: dict[str, Path], tmp_path: Path
) -> None:
    result = convert(files_of_times["null"], files_of_times["utc"], files_of_times["number"], tmp_path / "out.parquet")
    assert isinstance(result.exception, SchemaMismatchError)
    assert (result.exception.path, result.exception.column) == (str(files_of_times["number"]), "t")
    assert "pass --properties" in str(result.exception)


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [("text", "utc", True), ("ms", "utc", True), ("local", "day", True), ("us", "local", True), ("day", "null", True),
     ("utc", "local", False), ("day", "local", False), ("local", "us", False), ("utc", "text", False)],
)  # fmt: skip
def test_times_are_appended_as_the_type_of_the_column(
    first: str, second: str, fits: bool, files_of_times: dict[str, Path], tmp_path: Path
) -> None:
    dest = tmp_path / "out.parquet"
    assert convert(files_of_times[first], dest).exit_code == 0
    type, path = pq.read_schema(dest).field("t").type, files_of_times[second]
    result = CliRunner().invoke(app, ["convert", str(path), str(dest), "--append"])
    if not fits:
        assert isinstance(result.exception, SchemaMismatchError)
        assert (result.exception.path, result.exception.column) == (str(path), "t")
        assert "a new file without --append" in str(result.exception)
        return
    assert result.exit_code == 0, result.output
    times = pq.read_table(dest)["t"]
    assert times.type == type
    text = TIMES[second]
    expected = text if text is None or first == "text" else datetime.datetime.fromisoformat(text)
    assert times.to_pylist()[1] == expected
