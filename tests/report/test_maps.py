"""Maps of files: CRS and unit, land, geometries, queries, folders, and the page in a browser."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyproj
import pytest
import shapely
from browser import contrast, in_a_browser, render
from click.testing import CliRunner

import pqext
from pqext import geo
from pqext.cli import app
from pqext.geo.types import as_extension
from pqext.report.land import land
from pqext.report.map import MAX_BYTES, Shapes, draw_shapes, draw_small_map, format_coordinate, svg_path
from pqext.report.model import Box
from pqext.report.projection import Projection

CRS84 = pyproj.CRS("OGC:CRS84")
GERMANY = shapely.Polygon([(2.8e5, 5.3e6), (9.2e5, 5.3e6), (7e5, 6.1e6), (4e5, 6e6)])
DENSE = GERMANY.boundary.segmentize(100)


def written(svg_path: Path, geometries: Sequence[Any], crs: str | None = None, **options: Any) -> Path:
    schema = pa.schema([geo.geometry_field("geom", crs)])
    table = pa.table([pa.array([None if part is None else part.wkb for part in geometries])], schema=schema)
    pqext.write_table(table, svg_path, **options)
    return svg_path


def drawn(file: Path, *arguments: object) -> str:
    out = file.with_suffix(".html")
    result = CliRunner().invoke(app, ["map", str(file), "-o", str(out), "--force", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return out.read_text("utf-8")


def test_map_names_crs_and_unit_and_formats_projected_coordinates(tmp_path: Path) -> None:
    text = drawn(written(tmp_path / "utm.parquet", [GERMANY], "EPSG:25832"))
    assert "in ETRS89 / UTM zone 32N (EPSG:25832), metres" in text
    assert "280,000 to 920,000, 5,300,000 to 6,100,000" in text
    assert "a query of 20,239 by 25,298 at a random" in text
    assert ">5,600,000</text>" in text
    assert not re.search(r">[^<]*\d{7}[^<]*<", text.partition("<script>")[0].partition("</style>")[2])
    assert "in an unknown CRS and unit" in drawn(written(tmp_path / "unknown.parquet", [GERMANY], "srid:0"))


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [(5291002.1375, 1, "5,291,002"), (691003.289, 0.1, "691,003.3"), (-0.0, 10, "0"), (13.4, 0.01, "13.4"),
     (1e300, 1, "1e+300")],
)  # fmt: skip
def test_coordinates_have_thousands_separators_and_few_digits(value: float, step: float, text: str) -> None:
    assert format_coordinate(value, step) == text


@pytest.mark.parametrize(
    ("crs", "x", "y", "on_land"),
    [
        ("EPSG:25832", (3e5, 9e5), (5.3e6, 6e6), True), ("EPSG:3857", (-2e7, 2e7), (-1e7, 1e7), True),
        ("EPSG:3413", (-4e6, 4e6), (-4e6, 4e6), True), ("EPSG:3031", (-4e6, 4e6), (-4e6, 4e6), True),
        ("EPSG:3832", (-5e6, 1e7), (-6e6, 6e6), True), ("OGC:CRS84", (100, 250), (-50, 50), True),
        ("EPSG:2193", (1.1e6, 2.1e6), (4.8e6, 6.2e6), True),
        ("EPSG:25832", (5e5, 5.1e5), (5.3e6, 5.31e6), False), ("OGC:CRS84", (-40, -30), (25, 35), False),
    ],
)  # fmt: skip
def test_land_lies_where_the_crs_puts_it(
    crs: str, x: tuple[float, float], y: tuple[float, float], on_land: bool
) -> None:
    projection = Projection(Box(*x, *y), 1000 / (x[1] - x[0]), pyproj.CRS(crs))
    area = land(projection)
    assert (area is not None) is on_land
    if area is None:
        return
    cities = [(10, 51), (-100, 40), (135, -25), (100, 60), (0, -85), (15, 12), (-42, 72), (-55, -10), (175.5, -39)]
    oceans = [(-40, 30), (-150, 0), (80, -30), (175, 40), (0, 85), (-160, -50), (-30, 55), (170, -39)]
    transformer = pyproj.Transformer.from_crs("OGC:CRS84", crs, always_xy=True)
    for points, expected in ((cities, True), (oceans, False)):
        placed = [
            shapely.Point(px + turn, py)
            for point in points
            for px, py in [transformer.transform(*point)]
            for turn in ((0, 360) if crs == "OGC:CRS84" else (0,))
            if x[0] < px + turn < x[1] and y[0] < py < y[1]
        ]
        assert [bool(area.contains(point)) for point in placed] == [expected] * len(placed)


def test_coast_is_mentioned_only_with_land(tmp_path: Path) -> None:
    near, far = (shapely.box(*bounds) for bounds in ((-40, 25, -30, 35), (-10, 35, 30, 60)))
    for geometry, has_land in ((near, False), (far, True)):
        text = drawn(written(tmp_path / "box.parquet", [geometry]))
        assert ('class="land"' in text) is has_land
        assert ("Natural Earth" in text) is has_land


def test_geometries_are_drawn_within_the_vertex_budget(tmp_path: Path) -> None:
    shapes = [shapely.Point(1, 2), None, shapely.LineString([(0, 0), (5, 5)]), shapely.box(0, 0, 3, 3)]
    file = written(tmp_path / "few.parquet", shapes)
    text = drawn(file)
    assert [re.findall(f'class="{name}"', text) != [] for name in ("area", "line", "dot")] == [True] * 3
    assert "geometries (3)" in text
    vertices = sum(shapely.get_num_coordinates(shapes))
    assert 'class="dot"' in drawn(file, "--vertices", vertices)
    assert 'class="dot"' not in drawn(file, "--vertices", vertices - 1)


def test_geographies_cross_the_antimeridian_and_contain_poles() -> None:
    extent = Projection(Box(170, 190, -20, -10), 50, CRS84)
    fiji = Shapes(np.array([shapely.Polygon([(177, -19), (-178, -19), (-178, -16)])]), True)
    x = [float(value) for value in re.findall(r"[ML]([\d.-]+) ", str(draw_shapes(extent, fiji)))]
    assert (min(x), max(x)) == (350, 600)
    world = Projection(Box(-180, 180, -90, 90), 1, CRS84)
    cap = Shapes(np.array([shapely.Polygon([(x, 70) for x in (0, 120, -120)])]), True)
    assert {20.0, 0.0} == {float(y) for y in re.findall(r" ([\d.]+)[LZ]", str(draw_shapes(world, cap)))}


def test_queries_are_drawn_and_counted(tmp_path: Path) -> None:
    points = [shapely.Point(x, 0) for x in range(40)]
    text = drawn(written(tmp_path / "p.parquet", points, row_group_rows=10), "--bbox", -1, -1, 12, 1)
    assert text.count('class="asked"') == 1
    assert "Query 1 reads 2 of 4 row groups and 2 of 4 pages." in text


@pytest.mark.parametrize("edges", ["planar", "spherical"])
@pytest.mark.parametrize("box", [(170, -1, 190, 1), (170, -1, -170, 1), (-200, -1, -165, 1), (-20, -1, 20, 1)])
def test_queries_are_counted_as_a_scan_reads_them(tmp_path: Path, edges: Any, box: Any) -> None:
    lons = [x + 0.5 for x in range(-180, 180)]
    file, kind = tmp_path / "p.parquet", geo.geometry_field("geom", None, edges)
    points = pa.table([geo.from_points(lons, [0.0] * 360).cast(pa.binary())], schema=pa.schema([kind]))
    pqext.write_table(points, file, row_group_rows=20, page_rows=5, geometry={"geom": {}})
    east = box[2] + 360 * (box[2] < box[0])
    turns = (-360, 0, 360) if edges == "spherical" or box[2] < box[0] else (0,)
    matches = [at for at, lon in enumerate(lons) if any(box[0] <= lon + turn <= east for turn in turns)]
    groups, pages = ({at // size for at in matches} for size in (20, 5))
    text = drawn(file, "--bbox", *box)
    assert f"Query 1 reads {len(groups)} of 18 row groups and {len(pages)} of 72 pages." in text
    scan = pqext.scan(file, filter=pqext.col("geom").intersects(box))
    assert scan.count() == len(matches)
    assert f"reads {len(groups)} of 18 row groups" in scan.explain()


def test_query_that_is_not_a_box_is_an_error(tmp_path: Path) -> None:
    file = written(tmp_path / "p.parquet", [shapely.Point(1, 2)])
    result = CliRunner().invoke(app, ["map", str(file), "-o", str(tmp_path / "m.html"), "--bbox", "0", "1", "2", "0"])
    assert result.exit_code == 2
    assert "ymin 1.0 is greater than ymax 0.0" in result.output


def test_folder_has_files_row_groups_and_pages(tmp_path: Path) -> None:
    folder = tmp_path / "places"
    folder.mkdir()
    for number in range(3):
        points = [shapely.Point(10 * number + x, x) for x in range(4)]
        written(folder / f"part-{number}.parquet", points, row_group_rows=2)
    text = drawn(folder)
    levels = re.findall(r'<g class="level (\w+)">', text)
    assert levels == ["files", "groups", "pages"]
    assert "row group 5 in part-2.parquet\n2 rows" in text
    cells = re.findall(r'data-label="(?:file|extent)"><span>(.*?)</span>', text)
    assert cells[:2] == ["part-0.parquet", "x 0 to 3, y 0 to 3"]
    assert len(cells) == 6


@pytest.mark.parametrize("rows", [3, 20_000])
def test_arrays_show_a_small_map(tmp_path: Path, rows: int) -> None:
    generator = np.random.default_rng(1)
    shapes = [shapely.Point(*at).buffer(1) for at in generator.uniform(-60, 60, (min(rows, 2_000), 2))]
    array = as_extension(pqext.read_table(written(tmp_path / "a.parquet", shapes)))["geom"].chunk(0)
    storage = pa.concat_arrays([array.storage] * max(1, rows // 2_000))
    html = pa.ExtensionArray.from_storage(array.type, storage)._repr_html_()
    assert "aria-label" in html
    assert ("One of 20 rows is drawn" in html) is (rows == 20_000)
    assert len(html.encode()) < MAX_BYTES + 2_000
    assert not re.search(r"https?:|<script|<style|src=|href=|url\(|class=", html)
    assert "WGS 84 (CRS84)" in html


def views_of_array(geometry: Any) -> list[str]:
    table = pa.table([pa.array([geometry.wkb])], schema=pa.schema([geo.geometry_field("geom", edges="spherical")]))
    return re.findall(r'viewBox="(.*?)"', as_extension(table)["geom"].chunk(0)._repr_html_())


@pytest.mark.parametrize("half", [10, 89.7])
def test_map_of_an_array_follows_edges_across_the_antimeridian(half: float) -> None:
    views = []
    for middle in (0, 180):
        corners = [((x + middle + 180) % 360 - 180, y) for x, y in [(-half, 5), (half, 5), (half, 15), (-half, 15)]]
        views.append(views_of_array(shapely.Polygon(corners)))
    assert len(views[0]) == 1
    assert views[0] == views[1]


@pytest.mark.parametrize("middle", [[0], [45], [-45], [80, -80]])
def test_map_of_an_array_wider_than_half_the_globe_shows_the_world(middle: list[float]) -> None:
    assert views_of_array(shapely.LineString([(x, 0) for x in (-100, *middle, 100)])) == ["0 0 1000 500"]


def test_scan_shows_row_groups_read_and_skipped(tmp_path: Path) -> None:
    file = written(tmp_path / "p.parquet", [shapely.Point(x, 0) for x in range(40)], row_group_rows=10)
    html = pqext.scan(file).filter(pqext.col("geom").intersects((-1, -1, 12, 1)))._repr_html_()
    assert (html.count('fill-opacity=".2"'), html.count("stroke-dasharray")) == (2, 2)
    assert len(html.encode()) < MAX_BYTES + 4_000
    assert not re.search(r"https?:|<script|<style|src=|href=|url\(", html)


def test_scan_of_many_row_groups_has_a_small_map(tmp_path: Path) -> None:
    points = [shapely.Point(x / 3, x % 50) for x in range(-300, 300)]
    html = pqext.scan(written(tmp_path / "p.parquet", points, row_group_rows=2))._repr_html_()
    assert 100 < html.count("<rect") <= 150
    assert "150 of 300 row groups" in html
    assert len(html.encode()) < MAX_BYTES + 4_000


@pytest.mark.parametrize("on_globe", [False, True])
def test_coordinates_that_are_not_finite_are_not_drawn(on_globe: bool) -> None:
    points = [(0, 0), (np.nan, 5), (5, 5), (np.inf, 1), (0, 1e300), (0, 0)]
    with np.errstate(invalid="ignore"):
        geometries = [shapely.LineString(points), shapely.Polygon(points), shapely.Point(), None]
    projection = Projection(Box(-180, 180, -90, 90), 1, CRS84)
    assert not re.search("nan|inf", str(draw_shapes(projection, Shapes(np.array(geometries), on_globe))))


def test_small_map_fits_its_budget() -> None:
    xmin, ymin, xmax, ymax = DENSE.bounds
    svg = draw_small_map(Projection.from_boxes([Box(xmin, xmax, ymin, ymax)]), "a", Shapes(np.array([DENSE] * 10)))
    assert len(svg.encode()) < MAX_BYTES + 200
    assert svg_path(Projection(Box(0, 1, 0, 1), 1), np.array([shapely.Point(), shapely.Polygon()])) == ""


_KEYS = """(() => {
  const map = document.querySelector("svg.map"), view = map.viewBox.baseVal;
  const state = () => [view.x, view.y, view.width].map(Math.round);
  const press = key => {
    const event = new window.KeyboardEvent("keydown", {key, bubbles: true, cancelable: true});
    map.dispatchEvent(event);
    return state();
  };
  const text = [...document.querySelectorAll("h1,h2,p,dt,dd,td,th,label,button,footer,.zoom span")].map(e => {
    let ground = e;
    while (style(ground).backgroundColor == "rgba(0, 0, 0, 0)") ground = ground.parentElement;
    return [style(e).color, style(ground).backgroundColor];
  });
  const fills = of => [...document.querySelectorAll(of)].map(e => style(e).fill);
  const [labels, grounds] = [fills(".graticule text"), fills(".sea,.land")];
  const boxes = [...document.querySelectorAll(".graticule text")].map(e => e.getBoundingClientRect())
    .map(r => [r.left, r.top, r.right, r.bottom]), frame = map.getBoundingClientRect();
  map.focus();
  const focus = [document.activeElement == map, style(map).outlineStyle];
  const keys = Object.fromEntries([..."+-"].map(k => [k, press(k)]));
  const zoomed = press("+");
  return {
    text, labels, grounds, boxes, focus, keys, zoomed, right: press("ArrowRight"), up: press("ArrowUp"),
    digits: [...document.querySelectorAll(".graticule text")].map(e => e.textContent),
    reset: press("0"), button: (document.querySelector("[data-key='+']").click(), state()),
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    frame: [frame.left, frame.top, frame.right, frame.bottom], size: frame.width / 1000,
    font: parseFloat(style(document.querySelector(".graticule")).fontSize) * frame.width / view.width,
    loads: window.performance.getEntriesByType("resource").length,
  };
})()"""


def _hexadecimal(colour: str) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", colour)[:3])


@in_a_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_page_on_a_telephone_is_legible_and_zooms_by_keyboard(tmp_path: Path, dark: bool) -> None:
    file = written(tmp_path / "utm.parquet", [GERMANY, shapely.Point(5e5, 5.9e6)], "EPSG:25832", row_group_rows=1)
    log: list[str] = []
    page = render(tmp_path, drawn(file, "--bbox", 3e5, 5.5e6, 4e5, 5.6e6), _KEYS, width=390, dark=dark, log=log)
    assert log == []
    assert page["loads"] == 0
    assert page["wide"] <= 0
    pairs = [*page["text"], *((label, ground) for label in page["labels"] for ground in page["grounds"])]
    assert len(page["labels"]) >= 3
    assert len(page["grounds"]) == 2
    assert min(contrast(*map(_hexadecimal, pair)) for pair in pairs) >= 4.5
    assert page["font"] == pytest.approx(12, abs=0.1)
    for index, (left, top, right, bottom) in enumerate(page["boxes"]):
        assert page["frame"][0] <= left < right <= page["frame"][2]
        assert page["frame"][1] <= top < bottom <= page["frame"][3]
        for other in page["boxes"][:index]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
    assert page["focus"] == [True, "solid"]
    assert page["keys"]["+"][2] == 667
    assert page["keys"]["-"] == page["reset"] == [0, 0, 1000]
    assert page["right"][0] - page["zoomed"][0] == pytest.approx(100, abs=1)
    assert page["up"][1] < page["right"][1]
    assert page["button"] == page["zoomed"]
    assert all(re.fullmatch(r"[\d,]+", label) for label in page["digits"])


def test_maps_of_many_parts_and_of_other_bodies_end() -> None:
    points = shapely.MultiPoint(np.random.default_rng(3).uniform(-50, 50, (4000, 2)))
    assert len(geo.from_shapely([points])._repr_html_().encode()) <= 40_000


def test_scan_of_another_body_has_a_map_without_land(tmp_path: Path) -> None:
    pqext.write_table(pa.table({"at": geo.from_points([1.0, 50.0], [2.0, 40.0])}), tmp_path / "moon.parquet",
                      geometry={"at": "IAU_2015:30110"})
    assert "<svg" in pqext.scan(tmp_path / "moon.parquet")._repr_html_()
