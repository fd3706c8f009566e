"""`pqext map` draws a file's boxes into one page or picture, whatever names the file brings."""

from __future__ import annotations

import hashlib
import io
import re
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import pqext
from pqext import geo
from pqext.cli import app
from pqext.report.boxes import HUES, LEGEND, DrawnBox, assign_hues
from pqext.report.model import Box

GENERATOR = np.random.default_rng(3)


def written(path: Path, x: Any, column: str = "geom", **options: Any) -> Path:
    table = pa.table({column: geo.from_points(x, GENERATOR.uniform(-50, 50, len(x)))})
    geometry = {column: {"order": "hilbert"}}
    pqext.write_table(table, path, geometry=geometry, row_group_rows=500, page_rows=100, **options)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def svg(text: str) -> ElementTree.Element:
    found = re.search(r"<svg.*</svg>", text, re.S)
    assert found is not None
    return ElementTree.fromstring(found.group(0))


def test_page_shows_every_box_and_is_self_contained(tmp_path: Path) -> None:
    file = written(tmp_path / "points.parquet", GENERATOR.uniform(-170, 170, 2_000))
    out = tmp_path / "map.html"
    result = run("map", file, "-o", out)
    assert result.exit_code == 0, result.output
    text = out.read_text("utf-8")
    with pqext.open(file) as opened:
        groups = len(opened.row_groups)
        pages = sum(len(group.chunk(0).pages or ()) for group in opened.row_groups)
    assert f"{groups} row groups, {pages} pages" in result.output
    levels = [part for part in svg(text).iter("g") if part.get("class", "").startswith("level")]
    assert [len(level) for level in levels] == [groups, pages]
    assert "2,000" in text
    assert "overlap" in text
    assert not re.search(r"https?:|src=|href=|url\(", text)
    (script,) = re.findall("<script>(.*?)</script>", text, re.S)
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'; style-src" in text


def test_boxes_across_the_antimeridian_are_drawn_around_it(tmp_path: Path) -> None:
    x = np.concatenate([GENERATOR.uniform(175, 180, 50), GENERATOR.uniform(-180, -175, 50)])
    out = tmp_path / "map.html"
    assert run("map", written(tmp_path / "a.parquet", x), "-o", out).exit_code == 0
    (level,) = (part for part in svg(out.read_text("utf-8")).iter("g") if part.get("class") == "level groups")
    ((rect,),) = ([*box.iter("rect")] for box in level)
    width, scale = float(rect.get("width", "")), 1000 / (1.25 * 1.12 * 100)
    assert 9 * scale < width < 10 * scale
    assert "(wraps around)" in out.read_text("utf-8")


def test_neighbours_have_different_colours_and_the_legend_names_levels(tmp_path: Path) -> None:
    far = [DrawnBox(group, 1, 1, Box(10.0 * group, 10.0 * group + 1, 60, 61)) for group in range(1, 8)]
    near = [DrawnBox(group, 1, 1, Box(left, left + 1, 0, 1)) for group, left in ((0, -179.0), (8, -178.0), (9, -177.5))]
    hue_of = assign_hues([*near[:1], *far, *near[1:]])
    assert len({hue_of[group] for group in (0, 8, 9)}) == 3
    assert len(set(hue_of.values())) == len(HUES)  # and all hues are used

    out = tmp_path / "map.html"
    file = written(tmp_path / "points.parquet", GENERATOR.uniform(-170, 170, 2_000))
    assert run("map", file, "-o", out).exit_code == 0
    (legend,) = re.findall(r'<p class="legend">.*?</p>', out.read_text("utf-8"))
    assert all(name in legend for name in LEGEND)


def test_hostile_names_are_escaped(tmp_path: Path) -> None:
    name = 'g"><script>alert(1)</script>\x1b[31m\u202e'
    file = written(tmp_path / "<b>a&amp;.parquet", GENERATOR.uniform(0, 9, 300), column=name)
    out = tmp_path / "map.html"
    result = run("map", file, "-o", out)
    assert result.exit_code == 0, result.output
    text = out.read_text("utf-8")
    assert text.count("<script") == 1
    assert "alert(1)</script>" not in text
    assert "<b>a" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert run("map", file, "-o", tmp_path / "map.png").exit_code == 0


def test_picture_shows_the_same_map(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pictures need the extra 'map'")
    file = written(tmp_path / "points.parquet", GENERATOR.uniform(-170, 170, 2_000))
    out = tmp_path / "map.PNG"
    assert run("map", file, "--query", 0.01, "--output", out).exit_code == 0
    picture = image.open(io.BytesIO(out.read_bytes()))
    assert picture.format == "PNG"
    assert picture.width > 1_000
    colours = {colour for _, colour in picture.getcolors(1 << 24)}
    assert len(colours) > 20


def test_picture_without_pillow_is_an_error_with_install_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    file = written(tmp_path / "points.parquet", GENERATOR.uniform(0, 9, 10))
    result = run("map", file, "-o", tmp_path / "map.png")
    assert isinstance(result.exception, ImportError)
    assert "pip install 'pqext[map]'" in str(result.exception)
    assert not (tmp_path / "map.png").exists()


def test_files_without_boxes_have_an_empty_map_and_invalid_arguments_are_named(tmp_path: Path) -> None:
    file = written(tmp_path / "none.parquet", np.array([]))
    assert run("map", file, "-o", tmp_path / "map.html").exit_code == 0
    assert run("map", file, "-o", tmp_path / "map.svg").exit_code == 2
    assert run("map", file, "--column", "other", "-o", tmp_path / "map.html").exit_code == 2
    plain = tmp_path / "plain.parquet"
    pqext.write_table(pa.table({"n": [1]}), plain)
    assert "no geometry" in str(run("map", plain, "-o", tmp_path / "x.html").exception)


def test_existing_file_is_replaced_with_overwrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "points.parquet", GENERATOR.uniform(-170, 170, 100))
    monkeypatch.chdir(tmp_path)
    for arguments, out in ((["-o", "notes.html"], "notes.html"), ([], "points.parquet.map.html")):
        Path(out).write_text("mine")
        result = run("map", file, *arguments)
        assert result.exit_code == 2
        assert "--force" in result.output
        assert Path(out).read_text() == "mine"
        assert run("map", file, *arguments, "--force").exit_code == 0
        assert "<svg" in Path(out).read_text("utf-8")


def test_a_folder_is_drawn_as_one_map(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, start in (("a", 0), ("b", 100)):
        written(tmp_path / "in" / f"{name}.parquet", np.arange(start, start + 50.0))
    result = run("map", tmp_path / "in", "-o", tmp_path / "in.html")
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"{tmp_path / 'in.html'}: 2 row groups, ")


@pytest.mark.skipif(sys.platform != "linux", reason="counts file descriptors")
def test_files_of_a_folder_are_open_one_at_a_time(tmp_path: Path) -> None:
    import resource

    (tmp_path / "in").mkdir()
    for number in range(40):
        written(tmp_path / "in" / f"{number}.parquet", np.arange(2.0))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/proc/self/fd").iterdir()]) + 20, limits[1]))
        result = run("map", tmp_path / "in", "-o", tmp_path / "in.html")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"{tmp_path / 'in.html'}: 40 row groups, ")
