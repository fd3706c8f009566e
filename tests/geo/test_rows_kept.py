"""The whole way from a file to the rows kept: whatever its layout, statistics and CRS, no row that satisfies is lost.

Oracles: shapely in the plane, :mod:`reference.regions` on the globe, where edges are chains of a thousand points.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import pyarrow as pa
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyproj import CRS

from pqext import geo
from pqext.core.write.writer import write_table
from pqext.dataset.expressions import Spatial, col
from pqext.dataset.reading import scan
from reference import holed, regions
from reference.effort import share
from reference.globe import WGS84

pytestmark = pytest.mark.filterwarnings("ignore:.*a query polygon has")  # drawn on the globe, not on a map

G = col("g")
COUNT = 12
GEOGRAPHIC = [None, "EPSG:4326", "EPSG:4267", "EPSG:4258"]
ELLIPSOIDAL = ["vincenty", "thomas", "andoyer", "karney"]


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    """Options of the writer that bear on what a reader may leave out."""
    geometry: dict[str, Any] = {"page_boxes": draw(st.booleans()), "covering": draw(st.sampled_from([None, True]))}
    geometry["order"] = draw(st.sampled_from([None, "hilbert", "zorder"]))
    return {
        "geometry": {"g": {name: value for name, value in geometry.items() if value is not None}},
        "geoparquet": draw(st.booleans()),
        "statistics": {"g": draw(st.sampled_from([True, True, False]))},
        "row_group_rows": draw(st.sampled_from([3, 6, 16])),
        "page_rows": draw(st.integers(1, 3)),
        "page_version": draw(st.sampled_from([1, 2])),
    }


def written(rows: list[Any], layout: dict[str, Any], **marks: Any) -> tuple[bytes, list[int]]:
    """A file, and the numbers of the rows as they stand in it."""
    schema = pa.schema([geo.geometry_field("g", **marks), pa.field("row", pa.int64())])
    sink = pa.BufferOutputStream()
    table = pa.table([geo.from_shapely(rows), pa.array(range(len(rows)))], schema=schema)
    write_table(table, sink, **layout)
    data = bytes(sink.getvalue())
    return data, scan(data, ["row"]).to_table()["row"].to_pylist()


def matching_rows(file: tuple[bytes, list[int]], question: Spatial) -> set[int]:
    """The numbers of the rows that are kept, the same with statistics and without."""
    rows = scan(file[0], ["row"], question).to_table()["row"].to_pylist()
    assert rows == scan(file[0], ["row"], question, trust_statistics=False).to_table()["row"].to_pylist()
    return set(rows)


def check(
    file: tuple[bytes, list[int]], question: Spatial, kept: set[int], present: set[int], unsure: Set[int] = frozenset()
) -> None:
    """Exactly the rows ``kept`` are found, and the plan leaves out none of them; ``unsure`` may go either way."""
    rows = matching_rows(file, question)
    assert rows - unsure == kept - unsure
    data, order = file
    assert set(scan(data, ["row"], ~question).to_table()["row"].to_pylist()) == present - rows
    (task,) = scan(data, ["row"], question).plan(pages=True)
    at = 0
    for group in task.row_groups:
        places = {n for n, row in enumerate(order[at : at + group.num_rows]) if row in kept - unsure}
        assert not places or group.prune_reason is None
        assert group.rows is None or all(any(place in part for part in group.rows) for place in places)
        at += group.num_rows


@pytest.mark.slow
@pytest.mark.spec("geo.pruning.sound", "geo.pruning.geography", "geo.predicates.geography", "geo.predicates.dwithin")
@settings(max_examples=share(0.05))
@given(st.data())
def test_geography_rows_match(data: st.DataObject) -> None:
    edges = data.draw(st.sampled_from(["spherical", *ELLIPSOIDAL]), "edges")
    crs = data.draw(st.sampled_from(GEOGRAPHIC), "crs")
    geod = WGS84 if crs is None else CRS(crs).get_geod()
    rows = data.draw(holed.rows(holed.on_the_globe, COUNT), "rows")
    query = data.draw(holed.query(rows, holed.on_the_globe), "query")
    layout = data.draw(layouts(), "layout")
    layout["geoparquet"] &= edges == "spherical"
    try:
        expected = regions.compare(rows, query, edges, geod)
    except regions.UnclearError:
        assume(False)
    file = written(rows, layout, edges=edges, crs=crs)
    present = {number for number, row in enumerate(rows) if row is not None}
    for relation in regions.RELATIONS:
        kept = {number for number, (answers, _) in enumerate(expected) if answers[relation]}
        unsure = {number for number, (_, unclear) in enumerate(expected) if relation in unclear}
        check(file, Spatial(G, relation, query), kept, present, unsure)
        if relation == "intersects":
            check(file, Spatial(G, "disjoint", query), present - kept, present, unsure)
    distances = {
        number: regions.distance(row, query, edges, geod)
        for number, row in enumerate(rows)
        if row is not None and not row.is_empty
    }
    # A little more than the distance of a row, which is then to be found, or any other number.
    beyond = [most * (1 + 3e-5) + 5 for most, _ in distances.values()]
    metres = data.draw(st.one_of(st.sampled_from([1e3, 1e5, 1e6, 8e6]), st.sampled_from(beyond or [1e3])), "metres")
    near, unsure = set(), set()
    for number, (most, slack) in distances.items():
        answers, unclear = expected[number]
        if answers["intersects"] or most <= metres:
            near.add(number)
        if not answers["intersects"] and most > metres >= most * (1 - 3e-5) - slack - 20:
            unsure.add(number)
        if "intersects" in unclear:
            unsure.add(number)
    check(file, G.dwithin(query, metres), near, present, unsure)


def areas(box: regions.Window) -> Any:
    """A box in the plane; one that wraps in two parts, which reach beyond all rows."""
    xmin, ymin, xmax, ymax = box
    if xmin <= xmax:
        return shapely.box(*box)
    return shapely.MultiPolygon([shapely.box(xmin, ymin, 999, ymax), shapely.box(-999, ymin, xmax, ymax)])


@pytest.mark.spec("geo.pruning.sound", "geo.pruning.nulls", "geo.pruning.wraparound", "geo.pruning.dwithin")
@settings(max_examples=share(0.09))
@given(st.data())
def test_geometry_rows_match(data: st.DataObject) -> None:
    crs = data.draw(st.sampled_from([*GEOGRAPHIC, "EPSG:3857", "EPSG:5070", "srid:0", "SRID:0"]), "crs")
    rows = data.draw(holed.rows(holed.in_the_plane, COUNT), "rows")
    query = data.draw(holed.query(rows, holed.in_the_plane), "query")
    if data.draw(st.integers(0, 3), "asks for a row") == 0 and not isinstance(query, tuple):
        rows[data.draw(st.integers(0, COUNT - 1))] = query
    shape = areas(query) if isinstance(query, tuple) else query
    file = written(rows, data.draw(layouts(), "layout"), crs=crs)
    present = {number for number, row in enumerate(rows) if row is not None}
    for relation in ("disjoint", *regions.RELATIONS):
        kept = {n for n in present if bool(getattr(shapely, relation)(rows[n], shape))}
        check(file, Spatial(G, relation, query), kept, present)
    distance = data.draw(st.floats(0, 30), "distance")
    check(file, G.dwithin(query, distance), {n for n in present if shapely.dwithin(rows[n], shape, distance)}, present)


def ring(x: float, y: float, half: float) -> list[tuple[float, float]]:
    """The corners of a square in degrees, whose longitudes may run on beyond 180."""
    corners = [(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)]
    return [((lon + 180) % 360 - 180, lat) for lon, lat in [*corners, corners[0]]]


def parallel(y: float, count: int = 12) -> list[tuple[float, float]]:
    """A ring around a pole."""
    return [(number * 360 / count - 180, y) for number in range(count)] + [(-180, y)]


HOLED = {
    "plain": shapely.Polygon(ring(20, 10, 8), [ring(20, 10, 4)]),
    "antimeridian": shapely.Polygon(ring(180, 10, 8), [ring(180, 10, 4)]),
    "reversed": shapely.Polygon(ring(20, 10, 8), [ring(20, 10, 4)[::-1]]),
    "two": shapely.Polygon(ring(20, 10, 8), [ring(17, 10, 1), ring(20, 10, 1.5)]),
}


@pytest.mark.spec("geo.predicates.geography", "geo.predicates.globe")
@pytest.mark.parametrize(
    ("name", "edges"),
    [("plain", "spherical"), ("antimeridian", "karney"), ("reversed", "karney"), ("two", "spherical")],
)
def test_point_in_a_hole_does_not_intersect_the_polygon(name: str, edges: Any) -> None:
    shape = HOLED[name]
    x = 180.0 if name == "antimeridian" else 20.0
    east = ((x + 1 + 180) % 360) - 180
    window = (x - 1, 9.0, east, 11.0)
    file = written([shape, shapely.Point(-60, -60), shapely.MultiPolygon([shape])], {"page_rows": 1}, edges=edges)
    every, holed_rows = {0, 1, 2}, {0, 2}
    inside = [window, shapely.Point(x, 10.0), shapely.LineString([(x - 0.5, 10), (x, 10.5)])]
    for query in inside:
        assert matching_rows(file, G.intersects(query)) == set()
        assert matching_rows(file, G.disjoint(query)) == every
        assert matching_rows(file, G.covers(query)) == set()
        assert matching_rows(file, G.dwithin(query, 10_000.0)) == set()
        assert matching_rows(file, G.dwithin(query, 500_000.0)) == holed_rows
    assert matching_rows(file, G.intersects((x - 7.5, 9.0, (x + 187.5) % 360 - 180, 11.0))) == holed_rows
    assert matching_rows(file, G.contains(shapely.Point(x - 7, 10.0))) == holed_rows
    assert matching_rows(file, G.crosses(shapely.LineString([(x - 7, 10.0), (x, 10.0)]))) == holed_rows
    assert matching_rows(file, G.intersects(shapely.LineString([(x - 7, 10.0), (x, 10.0)]))) == holed_rows
    filling = shapely.MultiPolygon([shapely.Polygon(hole) for hole in shape.interiors])
    assert matching_rows(file, G.touches(filling)) == holed_rows
    assert matching_rows(file, G.overlaps(filling)) == set()


@pytest.mark.spec("geo.predicates.geography", "geo.edges.inside", "geo.edges.poles")
@pytest.mark.parametrize(("south", "edges"), [(False, "spherical"), (True, "karney")])
def test_pole_in_a_hole_is_outside(south: bool, edges: Any) -> None:
    sign = -1 if south else 1
    crown = shapely.Polygon(parallel(60 * sign), [parallel(80 * sign)])
    file = written([crown, shapely.Point(0, 0)], {"page_rows": 1}, edges=edges)
    both, pole = {0, 1}, 90.0 * sign

    def band(one: float, other: float) -> regions.Window:
        low, high = sorted((one * sign, other * sign))
        return -180.0, low, 180.0, high

    _, low, _, high = band(85, 88)
    for query in (shapely.Point(33, pole), shapely.Point(10, 85 * sign), band(85, 90), (20.0, low, 40.0, high)):
        assert matching_rows(file, G.intersects(query)) == set()
        assert matching_rows(file, G.disjoint(query)) == both
    for query in (band(75, 90), band(70, 75), (170.0, band(65, 70)[1], -170.0, band(65, 70)[3])):
        assert matching_rows(file, G.intersects(query)) == {0}
    assert matching_rows(file, G.contains(shapely.Point(-77, 70 * sign))) == {0}
    assert matching_rows(file, G.within(band(55, 90))) == {0}
    assert matching_rows(file, G.within(band(55, 85))) == {0}
    assert matching_rows(file, G.within(band(65, 90))) == set()
    assert matching_rows(file, G.dwithin(shapely.Point(0, pole), 900_000.0)) == set()
    assert matching_rows(file, G.dwithin(shapely.Point(0, pole), 1_200_000.0)) == {0}
    assert matching_rows(file, G.touches(shapely.Polygon(parallel(80 * sign)))) == {0}


@pytest.mark.spec("geo.predicates.geography", "geo.box.geography")
def test_each_part_of_a_geometry_is_considered() -> None:
    parts = [HOLED["plain"], shapely.Polygon(ring(-179, -40, 3)), shapely.Polygon(parallel(75))]
    lines = [shapely.LineString([(10, 50), (30, 50)]), shapely.LineString([(175, 5), (-175, 5)])]
    rows = [shapely.MultiPolygon(parts), shapely.MultiLineString(lines), shapely.GeometryCollection([*parts, *lines])]
    rows.append(shapely.Point(60, -20))
    file = written(rows, {"page_rows": 1}, edges="spherical")
    every = set(range(4))
    for query, kept in (
        (shapely.Point(14, 10), {0, 2}),
        (shapely.Point(20, 10), set()),
        (shapely.Point(178.5, -40), {0, 2}),
        (shapely.Point(100, 89), {0, 2}),
        ((179.9, 4.0, -179.9, 6.0), {1, 2}),
        ((-180.0, 4.0, -179.9, 6.0), {1, 2}),
        ((19.0, 50.05, 21.0, 51.0), {1, 2}),  # the edge runs north of the parallel
        ((19.0, 49.0, 21.0, 50.05), set()),
        ((170.0, -60.0, -170.0, 60.0), {0, 1, 2}),
        ((-150.0, -30.0, 5.0, 30.0), set()),
    ):
        assert matching_rows(file, G.intersects(query)) == kept
        assert matching_rows(file, G.disjoint(query)) == every - kept
    assert matching_rows(file, G.contains(shapely.MultiPoint([(14, 10), (-179, -40), (0, 90)]))) == {0, 2}
    assert matching_rows(file, G.contains(shapely.MultiPoint([(14, 10), (20, 10)]))) == set()
    # The area around the pole lies across the one degree of longitude that the window leaves out.
    assert matching_rows(file, G.within((150.0, -90.0, 149.0, 90.0))) == {1, 3}
