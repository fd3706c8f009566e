"""Boxes and types as others see them in our files, and those that DuckDB writes into its own native files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest
import shapely
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pqext
from pqext import geo
from pqext.geo import BoundingBox
from reference import holed, wkb
from reference.effort import share

duckdb = pytest.importorskip("duckdb", minversion="2.0", reason="DuckDB knows GEOMETRY itself from 2.0 on")

BOUNDS = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax")
NAMES = ["point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection"]
CODES = {
    name + suffix: 1000 * dims + base
    for dims, suffix in enumerate(["", "_z", "_m", "_zm"])
    for base, name in enumerate(NAMES, 1)
}
OVERWRITES = [HealthCheck.function_scoped_fixture]  # each example writes its file anew
FEW = settings(max_examples=share(0.13), suppress_health_check=OVERWRITES)

Facts = tuple[tuple[float | None, ...] | None, list[int]]


def pyarrow_facts(path: Path, group: int, column: int) -> Facts | None:
    found = pq.read_metadata(path).row_group(group).column(column).geo_statistics
    if found is None:
        return None
    box = None if found.xmin is None else tuple(getattr(found, name) for name in BOUNDS)
    return box, list(found.geospatial_types or [])


def duckdb_facts(path: Path, group: int, column: int) -> Facts | None:
    (found,) = duckdb.sql(
        f"SELECT geo_bbox, geo_types FROM parquet_metadata('{path}') WHERE row_group_id={group} AND column_id={column}"
    ).fetchall()
    box, types = found
    if types is None:
        return None
    return None if box is None else tuple(box[name] for name in BOUNDS), [CODES[name] for name in types]


def pqext_facts(path: Path, group: int, column: int) -> Facts | None:
    with pqext.open(path) as file:
        found = file.row_groups[group].chunk(column).geospatial_statistics
    if found is None:
        return None
    box = None if found.bbox is None else BoundingBox.from_metadata(found.bbox)
    return box and tuple(getattr(box, name) for name in BOUNDS), list(found.geospatial_types or [])


def in_the_plane(rows: list[wkb.Geometry | None]) -> Facts | None:
    """The box of all coordinates, each dimension by itself and NaN aside, and the codes of all types."""
    codes = sorted({row.code for row in rows if row is not None})
    ranges: list[list[float]] = [[], [], [], []]
    for row in rows:
        for dims, corner in () if row is None else corners(row):
            places = (0, 1, 2, 3) if dims != 2 else (0, 1, 3)
            for place, value in zip(places, corner, strict=False):
                if not math.isnan(value):
                    ranges[place].append(value)
    if not codes:
        return None
    if not ranges[0] or not ranges[1]:
        return None, codes
    return tuple(end for values in ranges for end in ((min(values), max(values)) if values else (None, None))), codes


def corners(row: wkb.Geometry) -> Iterator[tuple[int, tuple[float, ...]]]:
    for part in row.content:
        if isinstance(part, wkb.Geometry):
            yield from corners(part)
        else:
            yield from ((row.dims, corner) for corner in ([part] if isinstance(part, tuple) else part))


@st.composite
def geometries(draw: st.DrawFn, x: Any, y: Any, depth: int = 2) -> wkb.Geometry:
    """A geometry that can be written, of any type and dimensions; its points may be empty."""
    dims, top = draw(st.integers(0, 3)), draw(st.integers(1, 7))
    other = st.one_of(st.floats(-1e6, 1e6), st.just(math.nan))

    def make(base: int, left: int) -> wkb.Geometry:
        corner = st.tuples(x, y, *[other] * (wkb.width(dims) - 2))
        if base == wkb.POINT:
            empty = (math.nan,) * wkb.width(dims)
            return wkb.Geometry(base, dims, [draw(st.one_of(corner, corner, corner, st.just(empty)))])
        if base == wkb.LINE_STRING:
            return wkb.Geometry(base, dims, draw(st.one_of(st.just([]), st.lists(corner, min_size=2, max_size=4))))
        if base == wkb.POLYGON:
            rings = draw(st.lists(st.lists(st.tuples(x, y), min_size=3, max_size=4), max_size=2))
            rest = (1.0,) * (wkb.width(dims) - 2)
            return wkb.Geometry(base, dims, [[one + rest for one in [*ring, ring[0]]] for ring in rings])
        bases = st.integers(1, 7 if left else 3) if base == wkb.COLLECTION else st.just(base - 3)
        return wkb.Geometry(base, dims, [make(draw(bases), left - 1) for _ in range(draw(st.integers(0, 2)))])

    return make(top, depth)


def rows_of(x: Any, y: Any) -> st.SearchStrategy[list[wkb.Geometry | None]]:
    return st.lists(st.one_of(geometries(x, y), geometries(x, y), st.none()), min_size=1, max_size=7)


LONGITUDE, LATITUDE = st.one_of(st.floats(-180, 180), st.sampled_from([-179.0, 179.0])), st.floats(-90, 90)
METRES = st.floats(-2e7, 2e7)
COLUMNS = {
    "lonlat": (LONGITUDE, LATITUDE, {}),
    "metres": (METRES, METRES, {"crs": "EPSG:3857"}),
    "sphere": (LONGITUDE, LATITUDE, {"edges": "spherical"}),
    "ellipsoid": (LONGITUDE, LATITUDE, {"edges": "vincenty", "crs": "EPSG:4326"}),
}


@pytest.mark.spec("geo.statistics.place", "geo.box.contains", "geo.box.skip_nan", "geo.types.codes", "geo.types.unique")
@FEW
@given(st.data(), st.integers(1, 4))
def test_duckdb_and_pyarrow_read_our_boxes_and_types(
    tmp_path: Path, data: st.DataObject, group_rows: int
) -> None:
    given_rows = {name: data.draw(rows_of(x, y), name) for name, (x, y, _) in COLUMNS.items()}
    count = min(map(len, given_rows.values()))
    fields = [geo.geometry_field(name, **marks) for name, (_, _, marks) in COLUMNS.items()]
    arrays = [pa.array([row and wkb.encode(row) for row in rows[:count]], pa.binary()) for rows in given_rows.values()]
    path = tmp_path / "peers.parquet"
    pqext.write_table(pa.table(arrays, schema=pa.schema(fields)), path, row_group_rows=group_rows)
    for group in range(-(-count // group_rows)):
        for column, (name, rows) in enumerate(given_rows.items()):
            ours = pqext_facts(path, group, column)
            assert pyarrow_facts(path, group, column) == ours, name
            assert duckdb_facts(path, group, column) == ours, name
            some = rows[group * group_rows : min(count, (group + 1) * group_rows)]
            plain = in_the_plane(some)
            assert (ours is None) == (plain is None), name
            if ours is None or plain is None:
                continue
            assert ours[1] == plain[1], name
            assert (ours[0] is None) == (plain[0] is None), name
            if ours[0] is not None and plain[0] is not None:
                if name == "metres" or (name == "lonlat" and ours[0][0] <= ours[0][1]):  # type: ignore[operator]
                    assert ours[0] == plain[0], name
                assert ours[0][4:] == plain[0][4:], name
                assert ours[0][2] <= plain[0][2] <= plain[0][3] <= ours[0][3], name  # type: ignore[operator]


def test_other_readers_see_wrapping_boxes(tmp_path: Path) -> None:
    path = tmp_path / "wrapping.parquet"
    points = geo.from_points([179.0, -178.5], [5.0, 6.0])
    lines = geo.from_shapely([shapely.LineString([(175, 60), (-175, 60)]), None])
    fields = [geo.geometry_field("lonlat"), geo.geometry_field("sphere", None, "spherical")]
    pqext.write_table(pa.table([points, lines], schema=pa.schema(fields)), path)
    top = math.degrees(math.atan(math.tan(math.radians(60)) / math.cos(math.radians(5))))
    for column, (xmin, xmax, ymin, ymax) in enumerate([(179.0, -178.5, 5.0, 6.0), (175.0, -175.0, 60.0, top)]):
        for seen in (pyarrow_facts, duckdb_facts):
            box, types = seen(path, 0, column) or (None, [])
            assert box is not None
            assert box[:4] == pytest.approx((xmin, xmax, ymin, ymax), abs=1e-9)
            assert types == [1 + column]


class TestFilesOfDuckDB:
    """Native GEOMETRY files of 2,048 rows a row group, the least that DuckDB makes."""

    ROWS = 2048

    def written(self, tmp_path: Path, texts: list[str | None]) -> Path:
        path = tmp_path / "duckdb.parquet"
        with duckdb.connect() as connection:
            columns = {"row": pa.array(range(len(texts))), "text": pa.array(texts, pa.string())}
            connection.register("t", pa.table(columns))
            connection.sql(
                f"COPY (SELECT row, text::GEOMETRY AS g FROM t ORDER BY row) TO '{path}' "
                f"(FORMAT parquet, GEOPARQUET_VERSION 'NONE', ROW_GROUP_SIZE {self.ROWS})"
            )
        return path

    @settings(max_examples=share(0.03), suppress_health_check=OVERWRITES)
    @given(st.lists(st.integers(0, 2**31), min_size=3, max_size=3))
    def test_geopandas_boxes_match_those_of_the_rows(self, tmp_path: Path, seeds: list[int]) -> None:
        texts: list[str | None] = []
        for seed in seeds:
            random = np.random.default_rng(seed)
            for number in range(self.ROWS):
                dims = int(random.integers(4)) if seed % 2 else 0
                name = ("POINT", "LINESTRING")[number % 2] + ("", " Z", " M", " ZM")[dims]
                corners = random.uniform(-90, 90, (1 + number % 2, wkb.width(dims))).tolist()
                inner = ", ".join(" ".join(map(repr, one)) for one in corners)
                texts.append(None if number % 5 == 0 else f"{name} EMPTY" if number % 7 == 0 else f"{name} ({inner})")
        path = self.written(tmp_path, texts)
        with pqext.open(path) as file:
            assert len(file.row_groups) == len(seeds)
            for group in range(len(seeds)):
                column = file.read(["g"], row_groups=[group])["g"]
                # DuckDB never wraps a box.
                expected = geo.statistics(column, crs="EPSG:3857")
                assert expected.bbox is not None
                box = BoundingBox.from_metadata(expected.bbox)
                theirs = duckdb_facts(path, group, 1)
                assert theirs is not None
                assert theirs == pqext_facts(path, group, 1)
                assert theirs[0] == tuple(getattr(box, name) for name in BOUNDS)
                assert sorted(theirs[1]) == list(expected.geospatial_types)

    @pytest.mark.spec("geo.pruning.sound")
    def test_geopandas_row_groups_are_pruned_by_their_boxes(self, tmp_path: Path) -> None:
        random = np.random.default_rng(8)
        shapes: list[Any] = []
        for place in [(-150.0, 40.0), (0.0, 0.0), (120.0, -30.0)]:
            kinds = holed.KINDS[:5] * 5
            few = [holed.made(kind, random, place, 6.0, holed.in_the_plane) for kind in kinds]
            shapes += [few[number % len(few)] for number in range(self.ROWS)]
        path = self.written(tmp_path, shapely.to_wkt(shapes, rounding_precision=-1).tolist())
        stored = geo.to_shapely(pqext.read_table(path, columns=["g"])["g"])
        for window, groups in (((-152, 38, -148, 42), {0}), ((-3, -3, 3, 3), {1}), ((100, -50, -140, 50), {0, 2})):
            question = pqext.col("g").intersects(window)
            (task,) = pqext.scan(path, filter=question).plan()
            assert set(task.kept_row_groups) == groups
            west, south, east, north = window
            spans = [(west, east)] if west <= east else [(west, 400), (-400, east)]
            parts = shapely.MultiPolygon([shapely.box(low, south, high, north) for low, high in spans])
            kept = np.flatnonzero(shapely.intersects(stored, parts))
            assert pqext.scan(path, ["row"], question).to_table()["row"].to_pylist() == kept.tolist()
            assert len(kept)


@pytest.mark.spec("geoparquet.bbox", "geoparquet.crs", "geo.covering.geometry")
@FEW
@given(
    st.lists(holed.shape(holed.in_the_plane), min_size=2, max_size=8),
    st.sampled_from([None, "EPSG:3857", "EPSG:4326", "EPSG:5070"]),
    holed.window(),
)
def test_geopandas_reads_crs_and_boxes(
    tmp_path: Path, shapes: list[Any], crs: str | None, window: tuple[float, float, float, float]
) -> None:
    path = tmp_path / "geopandas.parquet"
    table = pa.table([geo.from_shapely(shapes)], schema=pa.schema([geo.geometry_field("g", crs)]))
    pqext.write_table(table, path, geoparquet=True, geometry={"g": {"covering": True}}, row_group_rows=3)
    frame = geopandas.read_parquet(path)
    assert pyproj.CRS(frame.crs).equals(pyproj.CRS(crs or "OGC:CRS84"), ignore_axis_order=crs is not None)
    assert frame.geometry.to_list() == shapes
    if window[0] <= window[2]:
        found = geopandas.read_parquet(path, bbox=window)
        sides = shapely.bounds(shapes)
        near = (sides[:, 0] <= window[2]) & (sides[:, 2] >= window[0])
        near &= (sides[:, 1] <= window[3]) & (sides[:, 3] >= window[1])
        assert found.geometry.to_list() == [shape for shape, one in zip(shapes, near, strict=True) if one]
