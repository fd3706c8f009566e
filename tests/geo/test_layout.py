"""What a layout is said to cost is what queries thrown at random find."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import geo
from pqext.geo import BoundingBox
from pqext.geo.layout.explain import Layout, hit_probabilities
from reference.effort import share

GENERATOR = np.random.default_rng(11)


def written(x: Any, y: Any, **options: Any) -> io.BytesIO:
    sink = io.BytesIO()
    table = pa.table({"n": np.arange(len(x)), "geom": geo.from_points(x, y)})
    pqext.write_table(table, sink, **{"geometry": {"geom": {}}, **options})
    return sink


def clusters(rows: int) -> tuple[Any, Any]:
    centres = GENERATOR.uniform(-80, 80, (2, 20))
    home = GENERATOR.integers(0, 20, rows)
    return centres[0, home] + GENERATOR.normal(0, 1, rows), centres[1, home] + GENERATOR.normal(0, 1, rows)


@st.composite
def squares(draw: st.DrawFn) -> list[float]:
    a, b, c, d = (draw(st.integers(0, 16)) / 16 for _ in range(4))
    return [a, b, *sorted((c, d))] if draw(st.booleans()) else [*sorted((a, b)), *sorted((c, d))]


@settings(max_examples=share(0.4))
@given(squares(), st.floats(0, 1), st.floats(0, 1))
def test_probability_of_touching_a_box_matches_many_queries(box: list[float], width: float, height: float) -> None:
    xmin, xmax, ymin, ymax = box
    x, y = (np.arange(200) + 0.5) / 200 * (1 - width), (np.arange(200) + 0.5) / 200 * (1 - height)
    west, east = (x + width >= xmin), (x <= xmax)
    touched = ((west | east) if xmin > xmax else (west & east)).mean() * ((y + height >= ymin) & (y <= ymax)).mean()
    (found,) = hit_probabilities(np.array([box]).T, width, height)
    assert found == pytest.approx(touched, abs=0.02)


@pytest.mark.parametrize("order", [None, "hilbert"])
@pytest.mark.parametrize("make", [clusters, lambda n: (GENERATOR.uniform(-180, 180, n), GENERATOR.uniform(0, 9, n))])
def test_expected_reads_match_actual_scans(make: Any, order: Any, tmp_path: Path) -> None:
    path = tmp_path / "points.parquet"
    sink = written(*make(6_000), geometry={"geom": {"order": order}}, row_group_rows=2_000, page_rows=100)
    path.write_bytes(sink.getvalue())
    layout = geo.explain_layout(path, query=(9.0, 0.5))
    assert layout.extent is not None
    assert (layout.query_width, layout.query_height) == pytest.approx((9.0, 0.5))
    generator, queries = np.random.default_rng(12), 120
    groups = rows = 0
    for _ in range(queries):
        x = generator.uniform(layout.extent.xmin, layout.extent.xmax - 9)
        y = generator.uniform(layout.extent.ymin, layout.extent.ymax - 0.5)
        (task,) = pqext.scan(path, filter=pqext.col("geom").intersects((x, y, x + 9, y + 0.5))).plan(pages=True)
        plans = [plan for plan in task.row_groups if plan.prune_reason is None]
        groups += len(plans)
        rows += sum(plan.num_rows if plan.rows is None else sum(map(len, plan.rows)) for plan in plans)
    assert layout.row_groups.read == pytest.approx(groups / queries, rel=0.2, abs=0.1)
    assert layout.pages.rows_read == pytest.approx(rows / queries, rel=0.25, abs=30)
    assert layout.rows == 6_000


def test_order_improves_every_figure_and_removes_suggestions() -> None:
    x, y = np.random.default_rng(11).uniform(-180, 180, (2, 40_000))
    y /= 2
    loose, tidy = written(x, y, row_group_rows=10_000), written(x, y, geometry={"geom": {"order": "hilbert"}})
    before, after = geo.explain_layout(loose), geo.explain_layout(tidy)
    assert before.row_groups.depth > 3.9
    assert before.row_groups.overlap == pytest.approx(before.row_groups.depth / before.row_groups.covered)
    assert before.pages.rows_read > 9 * after.pages.rows_read > 0
    assert before.pages.bytes_read > 3 * after.pages.bytes_read
    assert after.pages.overlap < 1.6
    assert "{'order': 'hilbert'}" in before.suggestions[0]
    assert after.suggestions == ()
    assert before.query_width == pytest.approx(360 * 0.001**0.5, rel=0.01)
    text = str(before)
    assert text.startswith("(no path), column geom: 40,000 rows")
    assert "of 4 row groups" in text
    assert "suggestion: sort the rows" in text


def test_smaller_pages_are_suggested_for_large_sorted_pages() -> None:
    x = np.linspace(0, 100, 100_000)
    layout = geo.explain_layout(written(x, np.zeros(100_000)), query=(0.01, 0.0))
    assert any("page_rows=2,048" in text for text in layout.suggestions)


def test_extent_across_the_antimeridian_has_the_width_of_the_data() -> None:
    x = np.concatenate([GENERATOR.uniform(170, 180, 500), GENERATOR.uniform(-180, -150, 1500)])
    layout = geo.explain_layout(written(x, GENERATOR.uniform(0, 1, 2000)), query=0.25)
    assert layout.extent is not None
    assert (layout.extent.xmin, layout.extent.xmax) == (x[:500].min(), x[500:].max())
    assert layout.query_width == pytest.approx(20, rel=0.01)
    assert layout.row_groups.covered == pytest.approx(1, rel=1e-6)
    assert "(wraps around), y" in str(layout)
    options = {"geometry": {"geom": {"crs": "EPSG:3857", "check_range": False}}}
    planar = geo.explain_layout(written(x, GENERATOR.uniform(0, 1, 2000), **options))
    assert planar.extent is not None
    assert (planar.extent.xmin, planar.extent.xmax) == (x.min(), x.max())


def test_extent_may_exceed_the_largest_double() -> None:
    x, y = np.repeat([-1.5e308, -1e308, 0, 1.5e308], 2), np.tile([0.0, 1.0], 4)
    options = {"geometry": {"geom": {"crs": "EPSG:3857"}}, "row_group_rows": 4}
    layout = geo.explain_layout(written(x, y, **options), query=0.01)
    assert layout.row_groups.covered == pytest.approx(2 / 3)
    assert layout.row_groups.read == pytest.approx((1 / 6 + 1 / 2) / 0.9)


@pytest.mark.parametrize("order", [None, "hilbert"])
def test_expected_reads_across_the_antimeridian_match_actual_scans(order: Any, tmp_path: Path) -> None:
    path = tmp_path / "points.parquet"
    east = GENERATOR.uniform(165, 225, 6_000)
    x = np.where(east > 180, east - 360, east)
    sink = written(
        x, GENERATOR.uniform(0, 60, 6_000), geometry={"geom": {"order": order}}, row_group_rows=2_000, page_rows=100
    )
    path.write_bytes(sink.getvalue())
    layout = geo.explain_layout(path, query=(6.0, 6.0))
    generator, queries = np.random.default_rng(12), 120
    groups = rows = 0
    for _ in range(queries):
        west, y = generator.uniform(165, 219), generator.uniform(0, 54)
        box = [one - 360 if one > 180 else one for one in (west, west + 6)]
        where = pqext.col("geom").intersects((box[0], y, box[1], y + 6))
        (task,) = pqext.scan(path, filter=where).plan(pages=True)
        plans = [plan for plan in task.row_groups if plan.prune_reason is None]
        groups += len(plans)
        rows += sum(plan.num_rows if plan.rows is None else sum(map(len, plan.rows)) for plan in plans)
    assert layout.row_groups.read == pytest.approx(groups / queries, rel=0.2, abs=0.1)
    assert layout.pages.rows_read == pytest.approx(rows / queries, rel=0.25, abs=30)


def test_wrapping_boxes_count_at_both_ends_of_a_global_extent() -> None:
    ends = [GENERATOR.uniform(170, 180, 2500), GENERATOR.uniform(-180, -170, 2500)]
    x = np.concatenate([*ends, np.linspace(-180, 180, 5000)])
    layout = geo.explain_layout(written(x, GENERATOR.uniform(0, 1, 10_000), row_group_rows=5000), query=(10.0, 0.1))
    assert layout.extent is not None
    assert (layout.extent.xmin, layout.extent.xmax) == (-180, 180)
    assert layout.row_groups.depth == pytest.approx(380 / 360, rel=0.05)
    assert layout.row_groups.read == pytest.approx(1 + 20 / 350, rel=0.05)


def test_files_of_other_writers_and_empty_columns_have_a_layout() -> None:
    table = pa.table({"geom": geo.from_points([1.0, 2.0, 3.0], [4.0, 5.0, 9.0])})
    schema = pa.schema([geo.geometry_field("geom")])
    sink = io.BytesIO()
    pq.write_table(geo.as_extension(table.cast(schema)), sink)
    layout = geo.explain_layout(sink)
    assert layout.extent == BoundingBox(1, 3, 4, 9)
    assert (layout.pages.count, layout.pages.rows_read) == (1, 3)
    nothing = geo.explain_layout(written(np.array([]), np.array([])))
    assert (nothing.extent, nothing.rows, nothing.pages.read) == (None, 0, 0)
    nulls = io.BytesIO()
    pqext.write_table(pa.table({"geom": pa.nulls(5, pa.binary())}), nulls, geometry={"geom": {}})
    assert geo.explain_layout(nulls).row_groups.read == 0
    blind = geo.explain_layout(written(np.array([1.0]), np.array([1.0]), statistics=False))
    assert (blind.extent, blind.row_groups.read, blind.row_groups.with_box) == (None, 1, 0)
    assert "with statistics" in blind.suggestions[0]
    one = geo.explain_layout(written(np.array([1.0, 1.0]), np.array([2.0, 2.0])))
    assert (one.row_groups.read, one.row_groups.covered) == (1, 1)


def test_invalid_arguments_are_rejected() -> None:
    sink = written(np.array([1.0]), np.array([1.0]))
    for query in (-0.1, 1.5, float("nan"), (-1.0, 1.0)):
        with pytest.raises(ValueError, match="fraction of the extent"):
            geo.explain_layout(sink, query=query)
    for wrong in ((1.0,), "1", True):
        with pytest.raises(TypeError, match="fraction of the extent"):
            geo.explain_layout(sink, query=wrong)  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="'g'; the geometry columns are geom"):
        geo.explain_layout(sink, "g")
    with pytest.raises(ValueError, match="'n' is not a geometry"):
        geo.explain_layout(sink, "n")
    plain = io.BytesIO()
    pqext.write_table(pa.table({"n": [1]}), plain)
    with pytest.raises(ValueError, match=r"^the file has no geometry column: create one with pqext convert --geometry"):
        geo.explain_layout(plain)
    with pqext.open(sink) as file:
        assert isinstance(geo.explain_layout(file), Layout)
        assert file.read().num_rows == 1


def random_boxes(size: float) -> pa.Table:
    rng = np.random.default_rng(7)
    x, y = rng.uniform(-170, 150, 6000), rng.uniform(-80, 60, 6000)
    side = rng.lognormal(0, 1, 6000) * size
    shapes = shapely.box(x, y, np.minimum(x + side, 180), np.minimum(y + side, 90))
    return pa.table([geo.from_shapely(shapes)], schema=pa.schema([geo.geometry_field("g")]))


@pytest.mark.parametrize("size", [0.001, 1.0, 4.0])
@pytest.mark.parametrize("page_boxes", [False, True])
def test_sorted_rows_get_no_sorting_suggestion(size: float, page_boxes: bool) -> None:
    table = random_boxes(size)
    along = table.take(pa.array(np.argsort(geo.bounds(table["g"].combine_chunks()).field("xmin").to_numpy())))
    cases = [(table, True), (geo.sort(table, "g"), False), (geo.sort(table, "g", "zorder"), False)]
    for rows, advised in [*cases, (along, True)] if size > 1 else cases:
        sink = io.BytesIO()
        pqext.write_table(rows, sink, row_group_rows=500, page_rows=100, geometry={"g": {"page_boxes": page_boxes}})
        suggestions = geo.explain_layout(sink).suggestions
        assert any(text.startswith("sort") for text in suggestions) == advised
        assert any("page_boxes" in text for text in suggestions) == (not page_boxes)


def test_covering_boxes_are_used_for_the_layout(tmp_path: Path) -> None:
    geopandas = pytest.importorskip("geopandas")
    table = geo.sort(random_boxes(0.1), "g")
    frame = geopandas.GeoDataFrame(geometry=geo.to_shapely(table["g"]), crs=4326)
    path = tmp_path / "covered.parquet"
    frame.to_parquet(path, write_covering_bbox=True, row_group_size=500)
    layout = geo.explain_layout(path)
    assert layout.row_groups.with_box == layout.row_groups.count == 12
    assert layout.row_groups.read < 3
    own = io.BytesIO()
    pqext.write_table(table, own, row_group_rows=500)
    assert layout.row_groups.read == pytest.approx(geo.explain_layout(own).row_groups.read, rel=1e-6)
    frame.to_parquet(path, row_group_size=500)
    assert geo.explain_layout(path).row_groups.with_box == 0


def test_files_together_have_the_layout_of_one_file_of_their_row_groups() -> None:
    x, y = clusters(4000)
    whole = geo.explain_layout(written(x, y, row_group_rows=1000), query=(9.0, 0.5))
    parts = [written(x[start : start + 1000], y[start : start + 1000]) for start in range(0, 4000, 1000)]
    together = geo.explain_layout(parts, query=(9.0, 0.5))
    assert (together.row_groups.count, together.rows, together.extent) == (4, 4000, whole.extent)
    assert together.row_groups.read == pytest.approx(whole.row_groups.read)
    assert together.row_groups.overlap == pytest.approx(whole.row_groups.overlap)
    assert together.path == "4 files"
    with pytest.raises(ValueError, match="no files"):
        geo.explain_layout([])
