"""Coordinates at and beyond the ends of longitudes and latitudes: rounding, clamping, files that hold them anyway."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.footer.reading import read_footer
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format import metadata
from pqext.core.io.sources.locations import open_source
from pqext.geo import BoundingBox, types
from pqext.geo.coordinates import CheckRange

BEYOND = 180.00000000000006  # Natural Earth's Russia
RUSSIA = shapely.box(170, 60, BEYOND, 70)
GLOBE = [edges for edges in types.EDGES if edges != "planar"]


def table(shapes: list[Any], edges: types.Edges = "spherical", crs: Any = None) -> pa.Table:
    return pa.table([geo.from_shapely(shapes)], schema=pa.schema([geo.geometry_field("g", crs, edges)]))


def written(values: pa.Table, **options: Any) -> io.BytesIO:
    sink = io.BytesIO()
    pqext.write_table(values, sink, **options)
    return sink


def foreign(shapes: list[Any], box: BoundingBox | None = None, rows: int = 2) -> bytes:
    """GEOGRAPHY as a writer makes it that checks nothing, with ``box`` for every row group."""
    sink = io.BytesIO()
    values = pa.table({"g": geo.from_shapely(shapes), "n": pa.array(range(len(shapes)))})
    pq.write_table(values, sink, row_group_size=rows)
    data = sink.getvalue()
    footer = read_footer(open_source(data), DEFAULT_LIMITS)
    footer.metadata.schema[1].logicalType = metadata.LogicalType(GEOGRAPHY=metadata.GeographyType())
    for group in footer.metadata.row_groups:
        group.columns[0].meta_data.statistics = None
        if box is not None:
            found = metadata.GeospatialStatistics(bbox=box.to_metadata())
            group.columns[0].meta_data.geospatial_statistics = found
    return data[: footer.offset] + serialise_footer(footer.metadata)


def rows_of(source: Any, filter: Any) -> list[int]:
    return list(pqext.read_table(source, columns=["n"], filter=filter)["n"].to_pylist())


@pytest.mark.spec("geo.crs.bounds", "geography.range")
@pytest.mark.parametrize("edges", types.EDGES)
@pytest.mark.parametrize("place", [(BEYOND, 66.0), (-BEYOND, 66.0), (12.0, 90.0000000001), (12.0, -90.0000000001)])
def test_rounding_beyond_the_range_is_written_unchanged(edges: types.Edges, place: tuple[float, float]) -> None:
    values = table([shapely.Point(place), shapely.Point(1, 2)], edges)
    sink = written(values)
    assert pqext.read_table(sink).equals(values)
    box = pqext.open(sink).row_groups[0].chunk("g").geospatial_statistics.bbox
    if edges == "planar":  # the numbers themselves
        assert (box.xmin, box.xmax, box.ymin, box.ymax) == (min(1, place[0]), max(1, place[0]), *sorted((2, place[1])))
    else:
        assert max(-box.xmin, box.xmax) <= 180
        assert max(-box.ymin, box.ymax) <= 90
    assert not pqext.verify(sink).total
    with pytest.raises(GeometryError, match="must be longitudes"):
        written(table([shapely.Point(np.sign(place[0]) * 180.00000001, 90.00000001)], edges))


@pytest.mark.spec("geography.range")
@pytest.mark.parametrize("edges", GLOBE)
def test_values_rounded_beyond_the_antimeridian_match_on_both_sides(edges: types.Edges) -> None:
    values = table([RUSSIA, shapely.Point(-BEYOND, 65), shapely.Point(0, 90.0000000001), shapely.Point(1, 2)], edges)
    ends = [shapely.box(170, 60, 180, 70), shapely.Point(-180, 65), shapely.Point(0, 90), shapely.Point(1, 2)]
    exact = table(ends, edges)
    boxes = [geo.bounds(one["g"], edges).to_pylist() for one in (values, exact)]
    for one, other in zip(*boxes, strict=True):
        assert one == pytest.approx(other, abs=1e-9)
    queries = [(-180, 64, -175, 66), (175, 64, 180, 66), (170, 64, -170, 66), (0, 0, 3, 3), (50, 89, 60, 90)]
    for rows in (1, 4):
        sink = written(values, row_group_rows=rows)
        for query in queries:
            kept = pqext.read_table(sink, filter=pqext.col("g").intersects(query))
            flags = geo.intersects(exact["g"], query, edges)
            assert kept.equals(values.filter(flags)), query
            for name in ("covers", "covered_by", "touches", "disjoint"):
                assert getattr(geo, name)(values["g"], query, edges) == getattr(geo, name)(exact["g"], query, edges)
    assert shapely.equals_exact(geo.densify(values["g"], edges), geo.densify(exact["g"], edges), 1e-9).all()


INSIDE = [shapely.Point(1, 2), shapely.Point(-100, 50), shapely.box(3, 3, 4, 4), None, shapely.Point()]
OUTSIDE = [
    shapely.Point(181, 2), shapely.Point(1, -91), shapely.LineString([(0, 0), (200, 1)]), shapely.Point(np.inf, 0),
]  # fmt: skip


@pytest.mark.spec("geography.range")
@pytest.mark.parametrize("bad", OUTSIDE, ids=str)
@pytest.mark.parametrize("box", [None, BoundingBox(-180, 180, -90, 90), BoundingBox(0, 5, 0, 5)], ids=str)
def test_row_out_of_range_does_not_affect_others(bad: Any, box: BoundingBox | None) -> None:
    shapes = [INSIDE[0], bad, *INSIDE[2:]]
    source = foreign(shapes, box, rows=len(shapes))
    assert pqext.read_table(source)["n"].to_pylist() == [*range(5)]
    near = pqext.col("g").intersects((0, 0, 3.5, 5))
    assert rows_of(source, near) == [0, 2]
    assert rows_of(source, ~near) == [4]
    assert rows_of(source, pqext.col("g").disjoint((0, 0, 3.5, 5))) == [4]
    assert rows_of(source, near | (pqext.col("n") == 1)) == [0, 1, 2]
    assert rows_of(source, pqext.col("g").dwithin(shapely.Point(1, 2.0001), 1000)) == [0]
    assert rows_of(source, pqext.col("g").is_null()) == [3]
    answers = geo.intersects(geo.from_shapely(shapes), (0, 0, 3.5, 5), "spherical")
    assert answers.to_pylist() == [True, None, True, None, False]


@given(
    st.lists(
        st.sampled_from([*INSIDE, *OUTSIDE[:3], RUSSIA, shapely.Point(-BEYOND, 3), shapely.Point(-177, 3)]), max_size=8
    ),
    st.sampled_from([(170, 0, -170, 80), (0, 0, 3, 3), (-180, -90, 180, 90), (-120, 40, -90, 60)]),
    st.booleans(),
)
def test_boxes_of_rounded_coordinates_never_lose_rows(shapes: list[Any], query: Any, negated: bool) -> None:
    asked = pqext.col("g").intersects(query)
    asked = ~asked if negated else asked
    answers = geo.intersects(geo.from_shapely(shapes), query, "spherical").to_pylist()
    expected = [row for row, answer in enumerate(answers) if answer is (not negated)]
    assert rows_of(foreign(shapes), asked) == expected


class TestClamp:
    @pytest.mark.spec("geo.crs.bounds")
    @pytest.mark.parametrize("edges", ["planar", "spherical", "karney"])
    @pytest.mark.parametrize("covering", [False, True])
    def test_clamp_writes_the_limits_of_the_range(self, edges: types.Edges, covering: bool) -> None:
        values = table([shapely.Point(181, 2, 7), None, shapely.Point(-500, -95), shapely.Point(3, 4)], edges)
        sink = written(values, geometry={"g": {"check_range": "clamp", "covering": covering, "order": "hilbert"}})
        found = {shape.wkt for shape in geo.to_shapely(pqext.read_table(sink)["g"]) if shape}
        assert found == {"POINT Z (180 2 7)", "POINT (-180 -90)", "POINT (3 4)"}
        assert not pqext.verify(sink).total

    @pytest.mark.spec("geo.crs.bounds")
    def test_clamp_leaves_columns_without_a_range_unchanged(self) -> None:
        values = table([shapely.Point(1e6, 2e6)], "planar", 3857)
        assert pqext.read_table(written(values, geometry={"g": {"check_range": "clamp"}})).equals(values)

    @pytest.mark.spec("geo.crs.bounds")
    def test_clamp_rejects_infinite_coordinates(self) -> None:
        values = table([shapely.Point(1, 2), shapely.Point(np.inf, 2)])
        with pytest.raises(GeometryError, match="row 1"):
            written(values, geometry={"g": {"check_range": "clamp"}})

    @pytest.mark.spec("geo.crs.bounds")
    @pytest.mark.parametrize("check_range", ["clamp", True])
    def test_rows_after_a_row_with_z_are_checked(self, check_range: CheckRange) -> None:
        values = table([shapely.Point(1, 2, 3), shapely.Point(4, 5), shapely.Point(np.inf, 2, 1)])
        for _ in range(20):  # whatever the memory held before
            with pytest.raises(GeometryError, match=r"row 2: x from inf to inf, y from 2\.0 to 2\.0"):
                written(values, geometry={"g": {"check_range": check_range}})

    def test_unknown_check_range_values_are_rejected(self) -> None:
        with pytest.raises(TypeError, match='check_range must be a bool or "clamp"'):
            written(table([]), geometry={"g": {"check_range": "clip"}})

    def test_clamp_preserves_nan_and_values_in_range(self) -> None:
        shapes = [shapely.Point(np.nan, 100), None, RUSSIA, shapely.Point(), shapely.Point(np.inf, 1), INSIDE[2]]
        found = geo.to_shapely(geo.clamp(pa.chunked_array([geo.from_shapely(shapes)])))
        expected = [shapely.Point(np.nan, 90), None, shapely.box(170, 60, 180, 70), shapely.Point(), *shapes[4:]]
        assert [shapely.to_wkb(shape) for shape in found] == [shapely.to_wkb(shape) for shape in expected]


class TestSwappedAxes:
    HINT = "if x and y are swapped, pass longitudes as x and latitudes as y"

    @pytest.mark.parametrize("edges", ["planar", "spherical"])
    def test_errors_for_swapped_coordinates_have_a_hint(self, edges: types.Edges) -> None:
        swapped = table([shapely.Point(45, 170)], edges)
        with pytest.raises(GeometryError, match=self.HINT):
            written(swapped)
        with pytest.raises(GeometryError, match=self.HINT):
            geo.cells(swapped["g"].combine_chunks(), "quadkey", 3)
        for shape in (shapely.Point(120, 170), shapely.Point(45, 200), shapely.Point(200, 45)):
            with pytest.raises(GeometryError) as raised:
                written(table([shape], edges))
            assert "swapped" not in str(raised.value)

    @pytest.mark.parametrize("edges", ["planar", "spherical"])
    @pytest.mark.parametrize(
        "filter",
        [pqext.col("g").intersects((45, 169, 46, 171)), "st_within(g, box(45, 169, 46, 171))",
         pqext.col("g").dwithin(shapely.Point(45, 170), 10)],
    )  # fmt: skip
    def test_filters_with_swapped_coordinates_warn(self, edges: types.Edges, filter: Any) -> None:
        sink = written(table([shapely.Point(170, 45)], edges))
        with pytest.warns(UserWarning, match=rf"column g: the query has the latitude 17[01]; {self.HINT}"):
            assert pqext.read_table(sink, filter=filter).num_rows == 0

    def test_other_queries_do_not_warn(self) -> None:
        geographic = written(table([shapely.Point(170, 45)], "planar"))
        for box in ((169, 44, 171, 46), (170, -30, -170, -10), (-180, -90, 180, 90), (-200, -100, 200, 100)):
            pqext.read_table(geographic, filter=pqext.col("g").intersects(box))
        projected = written(table([shapely.Point(45, 170)], "planar", 3857))
        assert pqext.read_table(projected, filter=pqext.col("g").intersects((45, 169, 46, 171))).num_rows == 1
