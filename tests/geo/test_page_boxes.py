"""A box for every page: around its rows, found again, of use for pruning, and never a reason to lose a row."""

from __future__ import annotations

import io
import math
import warnings
from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import geo
from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.format.extension.framing import ExtensionContainer, entry, frame
from pqext.core.format.extension.structure import set_extension
from pqext.core.indexes.reading import DamagedIndexWarning
from pqext.core.schema.annotations import PAGE_BOXES
from pqext.geo import SpatialPredicate, page_boxes
from pqext.geo.annotation import HANDLER
from pqext.geo.page_boxes import PageBoxes
from pqext.geo.predicates.boxes import Operation
from reference import page_boxes as twin
from reference.effort import share
from reference.geometries import LATITUDE, LONGITUDE, shapes

GEOMETRY = geo.geometry_field("g")
MINE = UUID("00000000-0000-0000-0000-00000000abcd")
KEY, OTHER = b"k" * 16, b"o" * 16


def table_of(values: pa.Array, field: pa.Field = GEOMETRY) -> pa.Table:
    return pa.table([values], schema=pa.schema([field]))


def points(rows: int = 100) -> pa.Table:
    """Points on the way from west to east, every tenth of them null."""
    x = [None if row % 10 == 3 else -100 + 2.0 * row for row in range(rows)]
    return table_of(geo.from_points(x, [row % 7 for row in range(rows)]))


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pqext.write_table(table, sink, **{"page_rows": 8, **options})
    return sink.getvalue()


def first_chunk(data: bytes, **options: Any) -> Any:
    return pqext.open(data, **options).row_groups[0].chunk(0)


def boxes(data: bytes, **options: Any) -> PageBoxes | None:
    return page_boxes.read(first_chunk(data, **options))


def matching(data: bytes, predicate: SpatialPredicate) -> Any:
    group = pqext.open(data).row_groups[0]
    return HANDLER.matching_rows(group.chunk(0).node, group, predicate)


def payload(data: bytes) -> bytes:
    found = entry(first_chunk(data).metadata, PAGE_BOXES)
    assert found is not None
    return found


def with_payload(data: bytes, extension: bytes | None) -> bytes:
    """The file with other bytes in the extension of its first chunk."""
    out = io.BytesIO()
    pqext.rewrite_footer(
        data, lambda m: set_extension(m.row_groups[0].columns[0].meta_data, extension, replace=True), out
    )
    return out.getvalue()


@pytest.mark.spec("geo.page_boxes.payload", "geo.page_boxes.contain", "geo.page_boxes.place")
def test_each_page_has_a_box_that_matches_the_reference() -> None:
    table = points()
    data = written(table)
    found = boxes(data)
    assert found is not None
    read_slowly = list(twin.pages(payload(data)))
    pages = first_chunk(data).pages
    assert len(found) == len(pages) == len(read_slowly) == 13
    rows = geo.to_shapely(table["g"])
    for page, box in enumerate(read_slowly):
        assert box == tuple(line[page] for line in (found.xmin, found.xmax, found.ymin, found.ymax))
        inside = [row for row in rows[pages.rows(page).start : pages.rows(page).stop] if row is not None]
        assert inside
        assert all(twin.holds(box, row.x, row.y) for row in inside)
        assert box[1] - box[0] <= shapely.total_bounds(inside)[2] - shapely.total_bounds(inside)[0] + 2 * 200 / 65535


@pytest.mark.spec("geo.page_boxes.payload", "geo.page_boxes.contain", "geo.page_boxes.without")
@given(st.data())
@settings(max_examples=share(0.8))
def test_boxes_of_any_size_are_stored_within_the_decoded_ones(data: st.DataObject) -> None:
    finite = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1, 1)
    pages = data.draw(st.integers(1, 6))
    wraps = data.draw(st.booleans())
    bounds = np.zeros((4, pages))
    for page in range(pages):
        x = data.draw(st.lists(LONGITUDE if wraps else finite, min_size=2, max_size=2))
        bounds[:2, page] = x if wraps else sorted(x)
        bounds[2:, page] = sorted(data.draw(st.lists(finite, min_size=2, max_size=2)))
        if not data.draw(st.integers(0, 4)):
            bounds[data.draw(st.integers(0, 3)), page] = data.draw(st.sampled_from([math.nan, math.inf, -math.inf]))
    nulls = np.isnan(bounds).any(axis=0) & np.array(data.draw(st.lists(st.booleans(), min_size=pages, max_size=pages)))
    given = PageBoxes.from_bounds(bounds, nulls)
    stored = page_boxes.encode(given)
    if stored is None:
        assert not given.has_box.any()
        return
    found = page_boxes.decode(stored, pages)
    for page, box in enumerate(twin.pages(stored)):
        flags = (found.nulls[page], found.empty[page], found.unknown[page])
        if not given.has_box[page]:
            assert box == ("nulls" if nulls[page] else "empty" if given.empty[page] else "unknown")
            assert flags == (box == "nulls", box == "empty", box == "unknown")
            continue
        xmin, xmax, ymin, ymax = bounds[:, page]
        assert box == tuple(line[page] for line in (found.xmin, found.xmax, found.ymin, found.ymax))
        assert not any(flags)
        assert twin.holds(box, xmin, ymin)
        assert twin.holds(box, xmax, ymax)
        if xmin > xmax:
            assert twin.holds(box, 180.0, ymin)
            assert twin.holds(box, -180.0, ymin)


@pytest.mark.spec("geo.page_boxes.contain")
@given(st.integers(1, 65534), st.floats(1e-6, 2e-3))
@settings(max_examples=share(0.5))
def test_wrapping_box_with_equal_stored_ends_is_the_full_circle(position: int, distance: float) -> None:
    gap = -180 + position * 360 / 65535
    bounds = np.array([[gap + distance], [gap - distance], [0.0], [1.0]])
    stored = page_boxes.encode(PageBoxes.from_bounds(bounds, np.array([False])))
    assert stored is not None
    (box,) = twin.pages(stored)
    for x in (gap + distance, gap - distance, 180.0, -180.0, (gap + 360) / 2 - 90):
        assert twin.holds(box, x, 0.5) == (x != gap)


@pytest.mark.spec("geo.page_boxes.place")
@pytest.mark.parametrize(
    "options",
    [
        {"geometry": {"g": {"page_boxes": False}}},
        {"page_rows": 1000},
        {"page_index": False},
        {"statistics": False},
    ],
)
def test_boxes_are_omitted_if_disabled_or_useless(options: dict[str, Any]) -> None:
    data = written(points(), **options)
    assert boxes(data) is None
    assert pqext.open(data).extensions == {}


@pytest.mark.spec("geo.page_boxes.without", "geo.page_boxes.pruning")
def test_pages_of_nulls_empty_and_infinite_geometries_are_distinguished() -> None:
    kinds: list[list[Any]] = [
        [None] * 4,
        [shapely.Point(), None, shapely.Polygon(), shapely.Point(math.nan, 1)],
        [shapely.Point(math.inf, 0), shapely.Point(0, 0)] * 2,
        [shapely.Point(3, 4)] * 4,
    ]
    values = geo.from_shapely([row for kind in kinds for row in kind])
    data = written(table_of(values), page_rows=4, geometry={"g": {"check_range": False}})
    found = boxes(data)
    assert found is not None
    assert found.nulls.tolist() == [True, False, False, False]
    assert found.empty.tolist() == [False, True, False, False]
    assert found.unknown.tolist() == [False, False, True, False]
    assert matching(data, SpatialPredicate("intersects", (50, 50, 60, 60))) == [range(8, 12)]
    assert matching(data, SpatialPredicate("disjoint", (50, 50, 60, 60))) == [range(4, 16)]


@pytest.mark.spec("geo.page_boxes.wraparound")
def test_page_boxes_wrap_if_the_chunk_box_does() -> None:
    x = [179.0, -179.0, 178.0, -178.5] * 4 + [175.0, 176.0, 177.0, 179.5]
    found = boxes(written(table_of(geo.from_points(x, [0.0] * 20)), page_rows=4))
    assert found is not None
    assert (found.xmin > found.xmax).tolist() == [True] * 4 + [False]
    predicate = SpatialPredicate("intersects", (-10, -10, 10, 10))
    assert not page_boxes.may_match(found, predicate, geo.GeospatialType()).any()
    projected = table_of(geo.from_points(x, [0.0] * 20), geo.geometry_field("g", "EPSG:3857"))
    assert not boxes(written(projected, page_rows=4)).wraps  # type: ignore[union-attr]


@pytest.mark.spec("geo.page_boxes.pruning")
@given(st.lists(st.none() | shapes(LONGITUDE, LATITUDE), min_size=1, max_size=24), st.data())
@settings(max_examples=share(0.6))
def test_matching_rows_are_within_the_selected_pages(rows: list[Any], data: st.DataObject) -> None:
    file = written(table_of(geo.from_shapely(rows)), page_rows=3)
    operation = data.draw(st.sampled_from([one for one in get_args(Operation) if one != "dwithin"]))
    west, east, south, north = (data.draw(part) for part in (LONGITUDE, LONGITUDE, LATITUDE, LATITUDE))
    predicate = SpatialPredicate(operation, (west, min(south, north), east, max(south, north)))
    found = matching(file, predicate)
    kept = set(range(len(rows))) if found is None else {row for part in found for row in part}
    answers = predicate.evaluate(geo.from_shapely(rows)).to_pylist()
    assert {row for row, answer in enumerate(answers) if answer} <= kept


@pytest.mark.spec("geo.page_boxes.pruning")
def test_scan_counts_only_rows_of_matching_pages() -> None:
    data = written(points())
    assert matching(data, SpatialPredicate("intersects", (-100, -90, -90, 90))) == [range(8)]
    assert matching(data, SpatialPredicate("within", (20, -90, 40, 90))) == [range(56, 72)]
    explained = str(pqext.scan(io.BytesIO(data), filter=pqext.col("g").intersects((20, -90, 40, 90))).explain())
    assert "16 of 100 rows" in explained


@pytest.mark.spec("geo.page_boxes.geography")
def test_geography_point_pages_have_boxes_used_for_box_queries_only() -> None:
    field = geo.geometry_field("g", edges="spherical")
    data = written(table_of(points()["g"].combine_chunks(), field))
    found = boxes(data)
    assert found is not None
    assert found.has_box.all()
    assert matching(data, SpatialPredicate("intersects", (-100, -90, -90, 90))) == [range(8)]


@pytest.mark.spec("geo.page_boxes.geography", "geo.page_boxes.pruning")
@given(
    st.lists(st.none() | shapes(LONGITUDE, LATITUDE), min_size=1, max_size=12),
    st.sampled_from(["spherical", "karney"]),
    st.data(),
)
@settings(max_examples=share(0.4))
def test_geography_page_boxes_contain_full_edges(rows: list[Any], edges: Any, data: st.DataObject) -> None:
    array = geo.from_shapely(rows)
    file = written(table_of(array, geo.geometry_field("g", edges=edges)), page_rows=3)
    found = boxes(file)
    if found is not None:
        for row, box in enumerate(geo.bounds(array, edges).to_pylist()):
            page = row // 3
            if box is not None and box["xmin"] is not None and not found.unknown[page]:
                own = geo.BoundingBox(box["xmin"], box["xmax"], box["ymin"], box["ymax"])
                assert found.has_box[page]
                assert found.box(page).contains(own)
    west, east, south, north = (data.draw(part) for part in (LONGITUDE, LONGITUDE, LATITUDE, LATITUDE))
    predicate = SpatialPredicate("intersects", (west, min(south, north), east, max(south, north)))
    ranges = matching(file, predicate)
    kept = set(range(len(rows))) if ranges is None else {row for part in ranges for row in part}
    try:
        answers = predicate.evaluate(array, edges).to_pylist()
    except pqext.GeometryError:
        return  # of a geometry that no exact test can be made of
    assert {row for row, answer in enumerate(answers) if answer} <= kept


@pytest.mark.spec("geo.page_boxes.geography")
def test_geography_page_box_extends_as_far_as_its_edges() -> None:
    lines = [shapely.LineString([(0, 60), (90, 60)])] * 2 + [shapely.LineString([(170, 0), (-170, 0)])] * 2
    found = boxes(written(table_of(geo.from_shapely(lines), geo.geometry_field("g", edges="spherical")), page_rows=2))
    assert found is not None
    assert found.ymax[0] == pytest.approx(67.79, abs=0.02)
    assert found.xmin[1] > found.xmax[1]


@pytest.mark.spec("geo.page_boxes.wraparound")
def test_page_box_on_both_sides_of_the_chunk_gap_wraps_only_to_become_narrower() -> None:
    pages = [(-30, 20), (-175, 175), (-70, 50), (-170, 165), (-140, -105), (85, 120)]
    x = [float(end) for page in pages for end in page]
    found = boxes(written(table_of(geo.from_points(x, [0.0] * 12)), page_rows=2))
    assert found is not None
    expected = [(20, -30) if page in {(-175, 175), (-170, 165)} else page for page in pages]
    for page, ends in enumerate(expected):
        assert (found.xmin[page], found.xmax[page]) == pytest.approx(ends, abs=0.01)


@pytest.mark.spec("geo.page_boxes.wraparound")
def test_wrapping_boxes_outside_the_full_circle_are_corrupt() -> None:
    codes = np.array([60_000, 5_000, 0, 65_535], "<u2").tobytes()
    around = page_boxes.HEADER.pack(page_boxes.VERSION, 1, -180.0, 180.0, -1.0, 1.0) + codes
    assert page_boxes.decode(around, 1).wraps
    beside = page_boxes.HEADER.pack(page_boxes.VERSION, 1, -180.0, 170.0, -1.0, 1.0) + codes
    with pytest.raises(pqext.CorruptFileError, match="crosses the antimeridian"):
        page_boxes.decode(beside, 1)


@pytest.mark.spec("geo.page_boxes.wraparound")
def test_page_box_wraps_around_its_own_gap() -> None:
    x = [*range(-175, 175, 10), 0, 179.0, -179.0, 178.0, -178.0]
    found = boxes(written(table_of(geo.from_points(x, [0.0] * 40)), page_rows=4))
    assert found is not None
    assert (found.xmin > found.xmax).tolist() == [False] * 9 + [True]
    assert twin.holds((found.xmin[9], found.xmax[9], 0.0, 0.0), 180.0, 0.0)
    assert not twin.holds((found.xmin[9], found.xmax[9], 0.0, 0.0), 0.0, 0.0)


@pytest.mark.spec("geo.page_boxes.ignored")
def test_page_of_nulls_that_contradicts_the_null_count_loses_no_row() -> None:
    nulls = payload(written(table_of(geo.from_points([*range(8)] + [None] * 8, [0] * 16))))
    data = written(points(40))
    stored = bytearray(payload(data))
    at = page_boxes.HEADER.size + 2 * page_boxes.PAGE_BYTES
    stored[at : at + 8] = nulls[-8:]
    with pytest.warns(DamagedIndexWarning, match="8 nulls, but the statistics count 4"):
        found = pqext.read_table(
            with_payload(data, frame(bytes(stored), PAGE_BOXES)), filter=pqext.col("g").intersects((-66, -1, -60, 9))
        )
    assert len(found) == 4


class TestBesideOthers:
    @pytest.mark.spec("geo.page_boxes.shared", "extension.container")
    def test_user_entries_share_a_container_with_page_boxes(self) -> None:
        data = written(points(), extensions={"g": {MINE: b"mine"}})
        stored = pqext.open(data).extensions["row_groups[0].columns[0].meta_data"]
        container = ExtensionContainer.decode(stored)
        assert container is not None
        assert list(container) == [MINE, PAGE_BOXES]
        assert container[MINE] == b"mine"
        assert boxes(data) is not None

    @pytest.mark.spec("geo.page_boxes.shared")
    @pytest.mark.parametrize("place", ["g", "row_groups[*].columns[0].meta_data"])
    def test_user_extension_takes_precedence_over_page_boxes(self, place: str) -> None:
        data = written(points(), extensions={place: b"some bytes"})
        assert pqext.open(data).extensions == {"row_groups[0].columns[0].meta_data": b"some bytes"}
        assert boxes(data) is None

    @pytest.mark.spec("geo.page_boxes.shared", "extension.second-copy")
    def test_second_copies_and_page_boxes_coexist(self) -> None:
        data = written(points(), second_encodings={"g": "delta_byte_array"})
        assert boxes(data) is not None
        with pqext.open(data, second_copies=True) as file:
            assert file.read()["g"].to_pylist() == points()["g"].to_pylist()

    @pytest.mark.spec("geo.page_boxes.ignored", "extension.ignored")
    def test_other_readers_read_the_same_values_and_boxes(self, tmp_path: Path) -> None:
        path = tmp_path / "points.parquet"
        plain = tmp_path / "plain.parquet"
        path.write_bytes(written(points(), row_group_rows=40))
        plain.write_bytes(written(points(), row_group_rows=40, geometry={"g": {"page_boxes": False}}))
        expected = points()["g"].to_pylist()
        assert pq.read_table(path)["g"].to_pylist() == expected
        sql = f"select count(g) from '{path}'"
        assert duckdb.sql(sql).fetchall() == [(90,)]
        ours, theirs = pq.ParquetFile(path).metadata, pq.ParquetFile(plain).metadata
        for group in range(3):
            boxed, bare = ours.row_group(group).column(0), theirs.row_group(group).column(0)
            assert str(boxed.geo_statistics).split("\n", 1)[1] == str(bare.geo_statistics).split("\n", 1)[1]

    @pytest.mark.spec("geo.page_boxes.encrypted")
    @pytest.mark.parametrize("plaintext_footer", [False, True])
    def test_page_boxes_of_an_encrypted_column_are_encrypted(self, plaintext_footer: bool) -> None:
        encryption = pqext.encryption.FileEncryption(KEY, column_keys={"g": OTHER}, plaintext_footer=plaintext_footer)
        data = written(points(), encryption=encryption)
        assert PAGE_BOXES.bytes not in data
        keys = pqext.encryption.FileDecryption(footer_key=KEY, column_keys={"g": OTHER})
        assert boxes(data, decryption=keys) is not None
        if plaintext_footer:
            assert boxes(data) is None


class TestCopied:
    @pytest.mark.spec("geo.page_boxes.moved")
    @pytest.mark.parametrize("extensions", ["reject", "drop", "keep"])
    def test_page_boxes_are_correct_in_a_concatenated_file(self, extensions: Any) -> None:
        first, second = written(points(50)), written(points(30), page_rows=10)
        out = io.BytesIO()
        pqext.concatenate([first, second], out, extensions=extensions)
        with pqext.open(out.getvalue()) as file:
            found = [page_boxes.read(group.chunk(0)) for group in file.row_groups]
            assert [len(one) for one in found if one is not None] == [7, 3]
            group = file.row_groups[1]
            predicate = SpatialPredicate("intersects", (-100, -90, -90, 90))
            assert HANDLER.matching_rows(group.chunk(0).node, group, predicate) == [range(10)]

    @pytest.mark.spec("geo.page_boxes.moved")
    def test_user_extensions_are_rejected_or_dropped_on_concatenation(self) -> None:
        data = written(points(), extensions={"g": {MINE: b"an offset, perhaps"}})
        with pytest.raises(UnsupportedError, match='extensions="drop"'):
            pqext.concatenate([data, data], io.BytesIO())
        out = io.BytesIO()
        pqext.concatenate([data, data], out, extensions="drop")
        assert boxes(out.getvalue()) is not None
        assert MINE.bytes not in out.getvalue()

    @pytest.mark.spec("geo.page_boxes.moved")
    def test_summaries_and_new_footers_preserve_page_boxes(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        path.write_bytes(written(points()))
        summary, _ = pqext.write_summary([path], tmp_path)
        assert page_boxes.read(pqext.open(summary).row_groups[0].chunk(0)) is not None
        out = io.BytesIO()
        pqext.rewrite_footer(str(path), lambda m: setattr(m, "created_by", "another"), out)
        assert boxes(out.getvalue()) is not None

    def test_reshredded_file_has_boxes_of_its_new_pages(self) -> None:
        table = points().append_column("v", geo_variants(100))
        data = written(table, extensions={"g": {MINE: b"of the old pages"}})
        out = io.BytesIO()
        pqext.variant.reshred_file(data, out, page_rows=25)
        assert pqext.open(out.getvalue()).extensions.keys() == {"row_groups[0].columns[0].meta_data"}
        assert MINE.bytes not in out.getvalue()
        found = boxes(out.getvalue())
        assert found is not None
        assert len(found) == 4


def geo_variants(rows: int) -> Any:
    return pqext.variant.parse_json(pa.array([f'{{"a": {row}}}' for row in range(rows)]))


@pytest.mark.spec("geo.page_boxes.inspected")
def test_inspect_reports_page_boxes_and_their_size() -> None:
    report = pqext.inspect(written(points()))
    size = 37 + 8 * 13
    assert report.row_groups[0].columns[0].extensions == (("page boxes", size),)
    assert report.extensions[0].holds == (("page boxes", size),)
    assert f"page boxes ({size} B)" in str(report)
    report = pqext.inspect(written(points(), extensions={"g": b"unknown bytes"}))
    assert report.extensions[0].holds == ()
    assert b"unknown bytes".hex() in str(report)


class TestDamage:
    QUERY = SpatialPredicate("intersects", (20, -90, 40, 90))

    @pytest.mark.spec("geo.page_boxes.damaged")
    @given(st.data())
    @settings(max_examples=share(1.5))
    def test_arbitrary_bytes_return_boxes_or_a_typed_error(self, data: st.DataObject) -> None:
        raw = bytearray(payload(self.FILE))
        for _ in range(data.draw(st.integers(0, 4))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        cut = data.draw(st.none() | st.integers(0, len(raw)))
        raw = raw[:cut] + data.draw(st.binary(max_size=9))
        pages = data.draw(st.sampled_from([13, 12, 0, 1 << 31]))
        try:
            found = page_boxes.decode(bytes(raw), pages)
        except (CorruptFileError, UnsupportedError):
            return
        assert len(found) == pages
        lines = np.array([found.xmin, found.xmax, found.ymin, found.ymax])
        assert np.isfinite(lines).all()
        assert (found.ymin <= found.ymax).all()

    FILE = written(points())

    @pytest.mark.spec("geo.page_boxes.damaged")
    @pytest.mark.parametrize(
        "change",
        [
            lambda raw: b"",
            lambda raw: raw[:20],
            lambda raw: raw[:-1],
            lambda raw: raw + b"\0" * 8,
            lambda raw: raw[:1] + b"\xff\xff\xff\xff" + raw[5:],
            lambda raw: raw[:5] + np.array([math.nan]).tobytes() + raw[13:],
            lambda raw: raw[:5] + raw[13:21] + raw[5:13] + raw[21:],
            lambda raw: raw[:-8] + b"\0\0\0\0\4\0\0\0",
            lambda raw: raw[:-8] + b"\1\0\0\0\0\0\0\0",
        ],
    )
    def test_corrupt_page_boxes_warn_and_lose_no_row(self, change: Any) -> None:
        damaged = with_payload(self.FILE, frame(change(payload(self.FILE)), PAGE_BOXES))
        with pytest.warns(DamagedIndexWarning, match="ignored page boxes"):
            assert matching(damaged, self.QUERY) is None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedIndexWarning)
            table = pqext.read_table(damaged, filter=pqext.col("g").intersects((20, -90, 40, 90)))
        assert len(table) == 10
        with pytest.raises(pqext.ParquetError, match="column g"):
            pqext.read_table(damaged, filter=pqext.col("g").intersects((20, -90, 40, 90)), strict=True)

    @pytest.mark.spec("geo.page_boxes.damaged")
    def test_frame_with_a_checksum_mismatch_warns(self) -> None:
        framed = bytearray(frame(payload(self.FILE), PAGE_BOXES))
        framed[40] ^= 1
        with pytest.warns(DamagedIndexWarning):
            assert boxes(with_payload(self.FILE, bytes(framed))) is None

    @pytest.mark.spec("geo.page_boxes.damaged")
    @pytest.mark.parametrize("edges", ["planar", "spherical", "karney"])
    @pytest.mark.parametrize(
        "change",
        [
            lambda raw, head: raw[:head] + b"\0\0\0\0\2\0\0\0" * ((len(raw) - head) // 8),  # every page is empty
            lambda raw, head: raw[:head] + b"\1\0\1\0\1\0\1\0" * ((len(raw) - head) // 8),  # a point
            lambda raw, head: raw[:5] + np.array([500.0, 600.0, 500.0, 600.0]).tobytes() + raw[head:],
            lambda raw, head: raw[:5] + np.array([-180.0, 180.0]).tobytes() + raw[21:head]
            + b"".join(b"\xff\xff\0\0" + raw[at + 4 : at + 8] for at in range(head, len(raw), 8)),  # the antimeridian
        ],
    )  # fmt: skip
    def test_boxes_narrower_than_their_chunks_lose_no_rows(self, edges: Any, change: Any) -> None:
        chance = np.random.default_rng(3)
        values = geo.from_points(chance.uniform(-60, 60, 60), chance.uniform(-60, 60, 60))
        whole = written(table_of(values), geometry={"g": {"edges": edges}})
        damaged = with_payload(whole, frame(change(payload(whole), page_boxes.HEADER.size), PAGE_BOXES))
        for query in ((-20, -20, 30, 30), (55, -60, 60, 60)):
            condition = pqext.col("g").intersects(query)
            with pytest.warns(DamagedIndexWarning, match="narrower than the box of their chunk"):
                found = pqext.read_table(damaged, filter=condition)
            assert found.equals(pqext.read_table(whole, filter=condition))

    @pytest.mark.spec("geo.page_boxes.damaged")
    def test_chunk_box_exceeded_by_page_boxes_prunes_nothing(self) -> None:
        condition, sink = pqext.col("g").intersects((20, -90, 40, 90)), io.BytesIO()

        def narrow(footer: Any) -> None:
            footer.row_groups[0].columns[0].meta_data.geospatial_statistics.bbox.xmax = 1.0

        pqext.rewrite_footer(self.FILE, narrow, sink)
        assert len(pqext.read_table(sink.getvalue(), filter=condition)) == 10

    @pytest.mark.spec("geo.page_boxes.damaged")
    @pytest.mark.parametrize(("side", "change", "query"), [
        ("xmin", 10.0, (-100, 0, -95, 6)), ("xmax", -10.0, (95, 0, 98, 6)), ("ymin", 1.0, (-100, 0, 98, 0.5)),
        ("ymax", -1.0, (-100, 5.5, 98, 6)),
    ])  # fmt: skip
    def test_chunk_box_prunes_unless_page_boxes_exceed_any_side(self, side: str, change: float, query: Any) -> None:
        def narrow(footer: Any) -> None:
            box = footer.row_groups[0].columns[0].meta_data.geospatial_statistics.bbox
            setattr(box, side, getattr(box, side) + change)

        sink = io.BytesIO()
        pqext.rewrite_footer(self.FILE, narrow, sink)
        for data, beyond in ((self.FILE, False), (sink.getvalue(), True)):
            group = pqext.open(data).row_groups[0]
            for asked, answer in ((query, True), ((120, 40, 130, 50), beyond)):
                assert HANDLER.may_match(group.chunk(0).node, group, SpatialPredicate("intersects", asked)) is answer

    @pytest.mark.spec("geo.page_boxes.version")
    def test_later_version_is_ignored_silently(self) -> None:
        later = with_payload(self.FILE, frame(b"\2" + payload(self.FILE)[1:], PAGE_BOXES))
        assert boxes(later) is None
        assert matching(later, self.QUERY) is None

    @pytest.mark.spec("extension.disambiguation")
    def test_extensions_of_others_are_not_mistaken_for_boxes(self) -> None:
        assert boxes(with_payload(self.FILE, payload(self.FILE))) is None
        assert boxes(with_payload(self.FILE, frame(payload(self.FILE), MINE))) is None
        assert boxes(with_payload(self.FILE, None)) is None
