"""Bytes that are no geometry are refused by everything that reads them, with row and byte, in bounded time."""

from __future__ import annotations

import io
import math
import struct
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

import pqext
from pqext import geo
from pqext.core.base.errors import GeometryError
from reference import wkb as twin
from reference.pace import SLOWER

GOOD = geo.from_points([1.0], [2.0])[0].as_py()
READERS: dict[str, Callable[[pa.Array], Any]] = {
    "validate": lambda array: geo.validate(array, on_fault="raise"),
    "statistics": geo.statistics,
    "bounds": geo.bounds,
    "to_iso_wkb": geo.to_iso_wkb,
    "to_wkt": geo.to_wkt,
    "to_geojson": geo.to_geojson,
    "transform": lambda array: geo.transform(array, None, "EPSG:3857"),
}
RING = [(0.0, 0.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, 1.0), (0.0, 0.0, 1.0)]
POINT = twin.Geometry(twin.POINT, 1, [(1.0, 2.0, 3.0)])
NESTED = twin.Geometry(twin.COLLECTION, 1, [
    twin.Geometry(twin.POLYGON, 1, [RING], little=False), POINT,
    twin.Geometry(twin.MULTI_POINT, 1, [POINT, twin.Geometry(twin.POINT, 1, [(1.0, 2.0, 3.0)], little=False)]),
])  # fmt: skip


def collections(depth: int) -> bytes:
    return struct.pack("<BII", 1, 7, 1) * depth + GOOD


BILLIONS = 0xFFFFFFFF
HOSTILE = {
    "empty": b"",
    "one byte": b"\x01",
    "over-long": GOOD + b"\x00",
    "nested": collections(129),
    "nested without end": struct.pack("<BII", 1, 7, 1) * 100_000,
    "points": struct.pack("<BII", 1, 2, BILLIONS) + bytes(64),
    "rings": struct.pack("<BII", 1, 3, BILLIONS) + bytes(64),
    "points of a ring": struct.pack("<BIII", 1, 3, 1, BILLIONS) + bytes(64),
    "parts": struct.pack("<BII", 1, 4, BILLIONS) + GOOD,
    "collected": struct.pack("<BII", 1, 7, BILLIONS) + GOOD,
    "big-endian points": struct.pack(">BII", 0, 2, BILLIONS) + bytes(64),
    "byte order": b"\x02" + GOOD[1:],
    **{f"type {code}": struct.pack("<BI", 1, code) + bytes(16) for code in (0, 8, 17, 1000, 1008, 4001, 0x10000001)},
    "part of another type": struct.pack("<BII", 1, 5, 1) + GOOD,
    "a collection among points": struct.pack("<BII", 1, 4, 1) + collections(1),
}


@pytest.mark.spec("geo.wkb.bounded", "geo.wkb.depth", "geo.wkb.type_code", "geo.wkb.byte_order", "geo.wkb.parts")
@pytest.mark.parametrize("reader", READERS)
def test_hostile_bytes_are_rejected_with_row_and_byte(reader: str) -> None:
    begin = time.process_time()
    for name, data in HOSTILE.items():
        with pytest.raises(GeometryError) as raised:
            READERS[reader](pa.array([GOOD, None, data, GOOD], pa.binary()))
        assert raised.value.row == 2, name
        assert raised.value.offset is not None, name
        assert raised.value.offset <= len(data), name
    assert time.process_time() - begin < 5 * SLOWER


@pytest.mark.spec("geo.wkb.bounded")
@pytest.mark.parametrize("reader", READERS)
def test_value_truncated_at_any_byte_is_rejected(reader: str) -> None:
    whole = twin.encode(NESTED)
    READERS[reader](pa.array([whole]))
    for end in range(0, len(whole), 17 if reader == "transform" else 1):  # PROJ takes its time to begin
        with pytest.raises(GeometryError) as raised:
            READERS[reader](pa.array([whole[:end]]))
        assert raised.value.offset is not None
        assert raised.value.offset <= end


def ewkb(srid: int | None, *parts: twin.Geometry) -> bytes:
    return twin.encode(twin.Geometry(twin.COLLECTION, 0, list(parts), extended=srid is not None, srid=srid))


def part(srid: int | None) -> twin.Geometry:
    return twin.Geometry(twin.POINT, 0, [(1.0, 2.0)], extended=srid is not None, srid=srid)


@pytest.mark.spec("geo.wkb.ewkb")
def test_srids_within_a_value_match_each_other_and_the_column() -> None:
    for fine in (ewkb(4326, part(4326)), ewkb(None, part(4326)), ewkb(4326, part(None)), ewkb(4326, part(0))):
        geo.validate(pa.array([fine]), on_fault="raise")
        assert geo.to_wkt(geo.to_iso_wkb(pa.array([fine]))).to_pylist() == ["GEOMETRYCOLLECTION (POINT (1 2))"]
    for data in (ewkb(4326, part(3857)), ewkb(None, part(4326), part(3857))):
        for reader in (READERS["validate"], geo.to_iso_wkb):
            with pytest.raises(GeometryError, match="different SRIDs"):
                reader(pa.array([data]))
    # An SRID that only a part has is the value's.
    for data in (ewkb(3857, part(None)), ewkb(None, part(3857))):
        table = pa.table([pa.array([GOOD, data])], pa.schema([geo.geometry_field("g")]))
        with pytest.raises(GeometryError, match="SRID 3857, but the column has CRS") as raised:
            pqext.write_table(table, io.BytesIO())
        assert raised.value.row == 1


@pytest.mark.spec("geo.box.xy", "geo.box.skip_nan")
@pytest.mark.parametrize("x", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", range(4))
def test_nan_coordinates_have_no_box(x: float, place: int) -> None:
    values = [1.0, 2.0, 3.0, 4.0]
    values[place] = x
    array = pa.array([twin.encode(twin.Geometry(twin.POINT, 3, [tuple(values)]))])
    found = geo.statistics(array)
    assert found.geospatial_types == [3001]
    if math.isnan(x) and place > 1:
        assert found.bbox is not None
        assert (found.bbox.zmin if place == 2 else found.bbox.mmin) is None
    else:
        assert found.bbox is None


SHELL = "(-5 -5, 20 -5, 20 20, -5 20, -5 -5)"


@pytest.mark.parametrize("edges", ["planar", "spherical"])
@pytest.mark.parametrize("text", [
    f"POLYGON ({SHELL}, EMPTY)", f"MULTIPOLYGON (({SHELL}, EMPTY))",
    f"GEOMETRYCOLLECTION (MULTIPOLYGON (({SHELL}, EMPTY)))",
])  # fmt: skip
def test_empty_holes_do_not_affect_predicates(text: str, edges: Any) -> None:
    rows, plain = geo.from_wkt(pa.array([text])), geo.from_wkt(pa.array([f"POLYGON ({SHELL})"]))
    query = shapely.box(0, 0, 10, 10)
    for name in ("intersects", "within", "contains", "touches", "overlaps", "covers", "covered_by", "equals"):
        predicate = getattr(geo, name)
        assert predicate(rows, query, edges) == predicate(plain, query, edges), name
        if "COLLECTION" not in text:
            holed = geo.to_shapely(rows)[0]
            assert predicate(plain, holed, edges) == predicate(plain, geo.to_shapely(plain)[0], edges), name
    assert geo.dwithin(rows, shapely.Point(5, 5), 1.0, edges).to_pylist() == [True]
    assert geo.densify(rows)[0].bounds == geo.densify(plain)[0].bounds


def test_extreme_doubles_raise_no_warning() -> None:
    rows = geo.from_wkt(pa.array(["LINESTRING (0 0, 1e308 1, -1e308 5)", "LINESTRING (1 1, 3 1e308, 9 9)"]))
    spans = geo.from_points([np.inf, -np.inf], [0.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        geo.disjoint(rows, shapely.box(0, 0, 10, 10))
        geo.dwithin(rows, shapely.LineString([(0, 0), (170, 50)]), 5.0)
        geo.sort_indices(rows)
        geo.sort_indices(spans)
        widest = geo.BoundingBox(-1.7e308, 1.7e308, -1.7e308, 1.7e308)
        for edges in ("planar", "spherical"):
            near = geo.SpatialPredicate("dwithin", shapely.Point(1, 2), 3.0)
            assert near.may_match(widest, geo.GeospatialType(None, edges))


@pytest.mark.parametrize("x", [math.nan, math.inf, 181.0])
def test_edges_with_a_nan_end_are_not_densified(x: float) -> None:
    line = pa.array([None, struct.pack("<BII4d", 1, 2, 2, 0.0, 0.0, x, 1.0)])
    with pytest.raises(GeometryError, match="row 1"):
        geo.densify(line)


def test_arguments_of_other_types_are_rejected() -> None:
    points = geo.from_points([1.0], [2.0])
    for wrong in (None, 7, [b"x"], pa.table({"a": [1]}), pa.array([1])):
        with pytest.raises(TypeError):
            geo.sort_indices(wrong)
    with pytest.raises(TypeError, match="BoundingBox"):
        geo.sort_indices(points, (0, 0, 1, 1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="numbers"):
        geo.from_points([[1]], [[2]])
    with pytest.raises(ValueError, match="out of the range"):
        geo.from_points([10**400], [1])


def test_empty_collection_parts_do_not_crash_geos() -> None:
    crossed = "POLYGON ((0 89.5, 180 -89.5, 0 0, 0 89.5), (179 -89.5, 45 89.5, 0 1, 0 0, -90 89.5, 179 90, 179 -89.5))"
    line, area = "LINESTRING (-90 0, 179 -90, 45 89.5)", "POLYGON ((0 -1, 0 89.5, 90 -90, 180 0, 0 -1))"
    text = f"GEOMETRYCOLLECTION ({crossed}, POLYGON EMPTY, {line}, {area})"
    geo.covers(geo.from_wkt(pa.array([text])), shapely.box(0, 0, 10, 10))


HOLED = "POLYGON ((-179 1, 0 45, -179 0, -179 1), (-1 0, 1 45, 1 89, 180 -1, -1 0))"


@pytest.mark.parametrize("asked", ["rows", "query"])
def test_polygons_covered_by_their_holes_intersect_nothing_on_the_globe(asked: str) -> None:
    lost, square = geo.from_wkt(pa.array([HOLED])), shapely.box(0, 0, 10, 10)
    rows = geo.from_wkt(pa.array([HOLED, "POLYGON ((0 -1, 9 -1, 9 5, 0 -1))", None, "POINT EMPTY"]))
    query = square if asked == "rows" else geo.to_shapely(lost)[0]
    met = [False, asked == "rows", None, False]
    assert geo.intersects(rows, query, "spherical").to_pylist() == met
    assert geo.dwithin(rows, query, 1000.0, "karney").to_pylist() == met
    assert geo.disjoint(rows, query, "spherical").to_pylist() == [None if row is None else not row for row in met]
    for name in ("within", "contains", "touches", "crosses", "covers", "covered_by", "equals"):
        assert not any(getattr(geo, name)(rows, query, "spherical").to_pylist()), name


@pytest.mark.parametrize("text", [
    "MULTIPOINT (0 0, EMPTY)", "MULTILINESTRING ((0 0, 5 5), EMPTY)",
    "GEOMETRYCOLLECTION (GEOMETRYCOLLECTION (MULTIPOINT (0 0, EMPTY)))",
    "GEOMETRYCOLLECTION (GEOMETRYCOLLECTION EMPTY, MULTIPOINT EMPTY, POINT (0 0))",
])  # fmt: skip
def test_empty_parts_do_not_affect_predicates(text: str) -> None:
    box = shapely.box(0, 0, 10, 10)
    rows = geo.from_wkt(pa.array([text, "POINT (1 1)"]))
    for query in ((0, 0, 10, 10), box):
        assert geo.intersects(rows, query).to_pylist() == geo.covered_by(rows, query).to_pylist() == [True, True]
        assert geo.contains(rows, query).to_pylist() == [False, False]
        assert geo.within(rows, query).to_pylist() == ["LINE" in text, True]
    points = geo.from_points([0.0, 3.0], [0.0, 9.0])
    assert geo.intersects(points, geo.to_shapely(rows)[0]).to_pylist() == [True, False]


def test_query_beyond_all_longitudes_is_rejected_on_the_globe() -> None:
    rows, far = geo.from_points([1.0], [1.0]), shapely.LineString([(1e308, 0), (-1e308, 1)])
    for ask in (geo.intersects, lambda *given: geo.dwithin(given[0], given[1], 5.0, given[2])):
        with pytest.raises(GeometryError, match="not longitudes"):
            ask(rows, far, "spherical")


def test_query_with_a_nan_point_intersects_nothing_on_the_globe() -> None:
    rows = geo.from_points([1.0], [1.0])
    nowhere = shapely.MultiPoint([(1.0, 1.0), (math.nan, 1.0)])
    assert geo.dwithin(rows, nowhere, 5.0, "spherical").to_pylist() == [False]
    assert geo.disjoint(rows, nowhere, "spherical").to_pylist() == [True]


def crossing(count: int) -> bytes:
    """WKB of a MULTIPOLYGON of so many thin strips across as many others."""
    along = [shapely.box(-20, y, 20, y + 20 / count) for y in np.linspace(-20, 19, count)]
    across = [shapely.box(*bounds[[1, 0, 3, 2]]) for bounds in shapely.bounds(along)]
    return bytes(shapely.to_wkb(shapely.MultiPolygon([*along, *across])))


@pytest.mark.parametrize("edges", ["spherical", "karney"])
def test_areas_are_united_on_the_globe_unless_too_many_overlap(edges: Any) -> None:
    query = shapely.box(-7, -8, 15, 13)
    few, many = (pa.array([crossing(count)], pa.binary()) for count in (8, 200))
    assert geo.intersects(few, query, edges).to_pylist() == [True]
    assert geo.within(few, query, edges).to_pylist() == [False]
    with pytest.raises(GeometryError, match="too many of a geometry's 400 areas overlap"):
        geo.intersects(many, query, edges)
    apart = [shapely.box(x, y, x + 0.01, y + 0.01) for x in np.arange(-30, 30) for y in np.arange(-30, 30)]
    assert geo.within(geo.from_shapely([shapely.MultiPolygon(apart)]), shapely.box(-40, -40, 40, 40), edges)[0].as_py()


@pytest.mark.parametrize("box", [(500.0, 600.0, 0.0, 1.0), (0.0, 1.0, 95.0, 99.0)])
def test_invalid_geography_boxes_prune_nothing(box: tuple[float, ...]) -> None:
    sink, out = io.BytesIO(), io.BytesIO()
    table = pa.table([geo.from_points([1.0], [2.0])], pa.schema([geo.geometry_field("g", edges="spherical")]))
    pqext.write_table(table, sink)

    def move(footer: Any) -> None:
        found = footer.row_groups[0].columns[0].meta_data.geospatial_statistics.bbox
        found.xmin, found.xmax, found.ymin, found.ymax = box

    pqext.rewrite_footer(sink.getvalue(), move, out)
    assert len(pqext.read_table(out.getvalue(), filter=pqext.col("g").intersects((0, 0, 5, 5)))) == 1


@pytest.mark.parametrize("row", [3, 70])
def test_row_with_a_nan_vertex_is_named(row: int) -> None:
    straight = shapely.LineString([(0, 0), (1, 1)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [straight] * 101
        rows[row] = shapely.linestrings([(0, 0), (math.nan, 1), (2, 2)])
    query = shapely.LineString([(0, 3), (3, 0)])
    with pytest.raises(shapely.errors.GEOSException, match="NaN"):
        shapely.intersects(rows[row], query)
    wkb = geo.from_shapely(rows)
    with pytest.raises(GeometryError, match=f"row {row}: a vertex has a NaN coordinate") as caught:
        geo.intersects(wkb, query)
    assert caught.value.row == row
    pqext.write_table(pa.table({"g": wkb}), sink := io.BytesIO(), geometry={"g": None}, row_group_rows=40)
    with pytest.raises(GeometryError, match=rf"row {row % 40}: a vertex has .* NaN.*row group {row // 40}, column g"):
        pqext.read_table(sink, filter=pqext.col("g").intersects(query))


@pytest.mark.spec("geo.wkb.type_code")
@pytest.mark.parametrize("code", range(8, 18))
def test_curves_are_unsupported_rather_than_corrupt(code: int) -> None:
    for number in (code, code + 1000, code + 3000, code | 0x80000000):
        wkb = pa.array([shapely.Point(1, 2).wkb, struct.pack("<BII", 1, number, 0)])
        for function in (geo.to_shapely, geo.to_wkt, geo.bounds):
            with pytest.raises(GeometryError, match=r"row 1: curves, .* \(WKB types 8 to 17\) are not supported"):
                function(wkb)
    for number in (0, 18, 4008):
        with pytest.raises(GeometryError, match="type code is unknown"):
            geo.to_wkt(pa.array([struct.pack("<BII", 1, number, 0)]))
