"""What new users write first, by habits of other libraries, is answered with what to write here."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import pqext
from pqext import col, geo, skipping, variant
from pqext.cli import main
from pqext.cli.app import app

PYTHON: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: pqext.read, AttributeError, "use pqext.read_table"),  # type: ignore[attr-defined]
    (lambda: pqext.to_parquet, AttributeError, "use pqext.write_table"),  # type: ignore[attr-defined]
    (lambda: pqext.read_csv, AttributeError, "`pqext convert`"),  # type: ignore[attr-defined]
    (lambda: variant.from_python({"a": 1}), TypeError, "not a single dict; pass a list"),
    (lambda: variant.Variant({"a": 1}), TypeError, "Variant.from_python converts objects"),  # type: ignore[arg-type]
    (lambda: variant.Variant('{"a": 1}'), TypeError, "Variant.from_json parses JSON text"),  # type: ignore[arg-type]
    (lambda: variant.Variant.from_python({"a": 1}).get("a"), ValueError, r"use v\['a'\]"),
    (lambda: variant.parse_json("events.jsonl"), TypeError, "pqext.variant.read_json reads files"),
    (lambda: variant.parse_json(Path("events.jsonl")), TypeError, "pqext.variant.read_json reads files"),
    (lambda: variant.parse_json(['{"a": NaN}']), ValueError, "NaN and Infinity are not JSON"),
    (lambda: variant.read_json(io.BytesIO(b"1\n")).to_table(), AttributeError, "use read_all"),  # type: ignore
    (lambda: col("price") > 5 & col("lon") > 3, TypeError, r"in parentheses, as in \(a > 5\) & \(b > 3\)"),
]


POINTS = pa.table({"at": geo.from_points([1.0], [2.0])})
EMPTY_PATHS: list[Callable[[], Any]] = [
    lambda: pqext.write_table(POINTS, ""),
    lambda: pqext.ParquetWriter("", POINTS.schema),
    lambda: pqext.write_dataset(POINTS, "", mode="overwrite"),
    lambda: pqext.concatenate(["a.parquet"], ""),
    lambda: pqext.write_summary(["a.parquet"], ""),
    lambda: pqext.repair("a.parquet", ""),
    lambda: pqext.recover("a.parquet", ""),
    lambda: variant.reshred_file("a.parquet", ""),
    lambda: variant.unshred_file("a.parquet", ""),
    lambda: geo.write_dataset(POINTS, ""),
    lambda: geo.write_geojson(POINTS, ""),
    lambda: geo.write_geopandas(geo.to_geopandas(POINTS), ""),
    lambda: geo.write_file(POINTS, "", driver="GPKG"),
    lambda: skipping.build("a.parquet", [skipping.MinMax("id")], "", overwrite=True),
    lambda: skipping.refresh("a.parquet", ""),
    lambda: skipping.compact(""),
    lambda: skipping.drop(""),
]


@pytest.mark.parametrize("call", EMPTY_PATHS)
def test_empty_destination_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    pqext.write_table(pa.table({"id": [1], "v": variant.parse_json(["{}"])}), "a.parquet")
    with pytest.raises(ValueError, match="is empty; pass a path or a URL"):
        call()
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize(("call", "kind", "told"), PYTHON)
def test_python_errors_state_the_correct_call(call: Callable[[], Any], kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        call()


@pytest.fixture
def events(tmp_path: Path) -> str:
    table = pa.table({"event": variant.parse_json(['{"price": 1}']), "id": [1], "geom": geo.from_points([1.0], [2.0])})
    pqext.write_table(table, tmp_path / "events.parquet")
    return str(tmp_path / "events.parquet")


def test_reading_errors_state_the_correct_call(events: str) -> None:
    with pytest.raises(ValueError, match=r"write col\('event'\).variant\('\$.price', 'double'\)"):
        pqext.read_table(events, {"p": "event:$.price::double"})
    with pytest.raises(TypeError, match=r"a list of names: name the columns to keep: .* not in \['geom'\]\]"):
        pqext.read_table(events, "* except (geom)")


def test_star_import_of_spark_does_not_shadow_the_variant_module(events: str) -> None:
    names: dict[str, Any] = {"variant": variant}
    pytest.importorskip("pyspark")
    exec("from pqext.spark import *", names)
    assert names["variant"] is variant
    assert callable(names["read"])
    assert callable(__import__("pqext.spark", fromlist=["variant"]).variant)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "500"})


def test_command_errors_name_command_line_options(
    events: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.json").write_text(json.dumps({"a": ["some words"] * 9}))

    def command_error(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["pqext", *arguments])
        with pytest.raises(SystemExit):
            main()
        return " ".join(capsys.readouterr().err.split())

    assert "--on-invalid skip skips it" in command_error("count", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr("warnings.filters", [])
        warned = command_error("count", str(tmp_path), "--on-invalid", "skip")
        assert warned.startswith("pqext: 1 file is not Parquet and was skipped")
    for command in ("count", "head", "query"):
        with pytest.warns(pqext.CorruptDataWarning, match="not Parquet and was skipped"):
            assert "1" in run(command, str(tmp_path), "--on-invalid", "skip").output
    assert "use '--rows'" in command_error("head", events, "--limit", "3")
    source = tmp_path / "places.csv"
    source.write_text("lat,lon\n1,170\n")
    message = command_error("convert", str(source), str(tmp_path / "out.parquet"), "--geometry", "lat,lon")
    assert "--check-range clamp" in message
    assert "check_range" not in message
    for text in (json.dumps(["some words"] * 9), "[1]\n"):
        (tmp_path / "notes.json").write_text(text)
        report = run("verify", str(tmp_path / "notes.json")).output
        assert "it looks like JSON: convert it with pqext convert" in report
        assert "fetch it again" not in report
    for head in ("PAR1", "ab"):
        (tmp_path / "notes.json").write_text(head)
        assert "it looks like" not in run("verify", str(tmp_path / "notes.json")).output


@pytest.mark.parametrize("crs", ["OGC:CRS84", "EPSG:3857", None])
def test_boxes_that_look_like_a_mistake_are_reported(tmp_path: Path, crs: str | None) -> None:
    path = str(tmp_path / "places.parquet")
    lons = [175.0, -175.0, 100.0]
    option = {"at": {"crs": crs or "OGC:CRS84"}}
    nested = pa.table({"at": geo.from_points(lons, [-10.0, -10.0, -10.0])})
    pqext.write_table(nested, path, geometry=option)

    def box_warnings(box: Any) -> list[str]:
        return list(json.loads(pqext.scan(path, filter=col("at").intersects(box)).explain("json"))["warnings"])

    is_geographic = crs != "EPSG:3857"
    beyond = box_warnings((170, -60, 190, 0))
    wrapping = box_warnings((170, -60, -170, 0))
    assert len(beyond) == is_geographic
    assert len(wrapping) == (not is_geographic)
    assert not box_warnings((170, -60, 180, 0))
    assert not box_warnings((-400, -90, 400, 90))  # the whole earth
    if is_geographic:
        assert "the same area is box (170, -60, -170, 0)" in beyond[0]
        assert pqext.scan(path, filter=col("at").intersects((170, -60, -170, 0))).count() == 2
        assert len(box_warnings(__import__("shapely").box(170, -60, 190, 0))) == 1
    else:
        assert "only boxes of geographic columns wrap" in wrapping[0]
    assert math.isclose(lons[0], 175)


@pytest.mark.parametrize("edges", ["spherical", "karney"])
def test_boxes_beyond_180_on_the_globe_are_not_reported(tmp_path: Path, edges: Any) -> None:
    path, lons = str(tmp_path / "places.parquet"), [175.0, -175.0, 100.0, -165.0]
    pqext.write_table(pa.table({"at": geo.from_points(lons, [-10.0] * 4)}), path, geometry={"at": {"edges": edges}})
    for box in ((170, -60, 190, 0), (-190, -60, -170, 0), (170, -60, -170, 0)):
        scan = pqext.scan(path, filter=col("at").intersects(box))
        assert json.loads(scan.explain("json"))["warnings"] == []
        west, east = box[0], box[2] + 360 * (box[2] < box[0])
        inside = [any(west <= lon + turn <= east for turn in (-360, 0, 360)) for lon in lons]
        assert scan.count() == inside.count(True) == 2
