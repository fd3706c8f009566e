"""Spatial joins give the pairs that shapely finds, once each, however the sides are divided."""

from __future__ import annotations

import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from pyspark.sql import functions as F

import pqext
from pqext import geo
from pqext.geo.joins.matching import Condition, Matcher, Nearest, sides_of
from pqext.geo.wkb import from_points, from_shapely
from pqext.spark import functions, knn_join, read, spatial_join
from pqext.spark.frames.parquet import read_on_driver
from pqext.spark.functions.geometry_arrays import Geometries
from pqext.spark.joins.broadcasting import BroadcastRows, _PartTask
from pqext.spark.joins.spatial import assign_cells, divide_plane

PREDICATES = ["intersects", "within", "contains", "covers", "covered_by", "touches", "crosses", "overlaps", "equals"]


def shapes(seed: int, count: int) -> Any:
    """Points, lines and areas on a coarse lattice, so that many touch and are equal, with null and empty ones."""
    generator = np.random.default_rng(seed)
    x, y = generator.integers(0, 24, (2, count)).astype(float)
    wide, high = generator.integers(1, 6, (2, count)).astype(float)
    kinds = [shapely.points(x, y), shapely.box(x, y, x + wide, y + high),
             shapely.linestrings(np.stack([np.stack([x, y], 1), np.stack([x + wide, y - high], 1)], 1))]  # fmt: skip
    found = np.choose(generator.integers(0, 3, count), kinds)
    found[:2] = None, shapely.Point()
    return found


def pairs_of(one: Any, other: Any, predicate: str, distance: float = 0.0) -> set[tuple[int, int]]:
    """By brute force; two empty geometries are equal to shapely, and match nothing in a join."""
    ask = shapely.dwithin if predicate == "dwithin" else getattr(shapely, predicate)
    more = (distance,) if predicate == "dwithin" else ()
    rows, columns = np.nonzero(ask(one[:, None], other[None, :], *more) & ~shapely.is_empty(one)[:, None])
    return set(zip(rows.tolist(), columns.tolist(), strict=True))


@pytest.mark.parametrize("predicate", [*PREDICATES, "dwithin"])
@pytest.mark.spec("spark.joins.exact")
def test_matcher_returns_the_pairs_of_exhaustive_search(predicate: Any) -> None:
    one, other = shapes(1, 300), shapes(2, 200)
    condition = Condition(predicate, 1.5 if predicate == "dwithin" else None)
    matcher = Matcher(Geometries.from_arrow(from_shapely(other)), condition)
    found = list(zip(*(part.tolist() for part in matcher.pairs(Geometries.from_arrow(from_shapely(one)))), strict=True))
    assert len(found) == len(set(found)) > 0
    assert set(found) == pairs_of(one, other, predicate, 1.5)
    assert found == sorted(found)


@pytest.mark.parametrize("predicate", ["intersects", "within", "covered_by"])
@pytest.mark.parametrize("sizes", [(0.5, 3.0), (0.0, 0.0), (20.0, 60.0)])
@pytest.mark.spec("spark.joins.exact")
def test_points_are_matched_with_or_without_a_grid(predicate: Any, sizes: tuple[float, float]) -> None:
    generator = np.random.default_rng(3)
    one = shapely.points(np.round(generator.uniform(-5, 50, (500, 2)) * 2) / 2)
    one[0] = None
    low = np.round(generator.uniform(0, 40, (150, 2)) * 2) / 2
    high = low + np.round(generator.uniform(*sizes, (150, 2)) * 2) / 2
    other = shapely.box(*low.T, *high.T) if sizes[1] else shapely.points(low)
    matcher = Matcher(Geometries.from_arrow(from_shapely(other)), Condition(predicate))
    found = list(zip(*(part.tolist() for part in matcher.pairs(Geometries.from_arrow(from_shapely(one)))), strict=True))
    assert found == sorted(pairs_of(one, other, predicate))


def test_threads_share_a_matcher_but_no_geometries() -> None:
    one, other = shapes(1, 300), shapes(2, 200)
    right, left = Geometries.from_arrow(from_shapely(other)), Geometries.from_arrow(from_shapely(one))
    matcher, nearest = Matcher(right, Condition("intersects")), Nearest(right, 1, None)
    meeting = threading.Barrier(4)

    def match(_: int) -> tuple[set[tuple[int, int]], set[int]]:
        meeting.wait()
        rows, columns = matcher.pairs(left)
        nearest.pairs(left)
        held = {id(shape) for shape in [*matcher.shapes(), *nearest.shapes] if shape is not None}
        return set(zip(rows.tolist(), columns.tolist(), strict=True)), held

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(match, range(4)))
    assert [pairs for pairs, _ in answers] == [pairs_of(one, other, "intersects")] * 4
    assert len(set.union(*(held for _, held in answers))) == sum(len(held) for _, held in answers)


@pytest.mark.spec("spark.joins.exact")
def test_geographies_match_across_the_antimeridian_and_at_the_poles() -> None:
    def geography(rows: list[Any]) -> Geometries:
        return Geometries(from_shapely(rows), geo.GeospatialType(None, "spherical"))

    left = geography([shapely.Point(180, 0), shapely.Point(10, 90), shapely.Point(0, 0), None])
    right = geography([shapely.box(-180, -1, -179, 1), shapely.Point(-100, 90), shapely.box(-1, -1, 1, 1)])
    nothing = Matcher(right, Condition("intersects")).pairs(geography([shapely.Point(50, 50), None]))
    assert [part.tolist() for part in nothing] == [[], []]
    one, other = Matcher(right, Condition("intersects")).pairs(left)
    assert list(zip(one.tolist(), other.tolist(), strict=True)) == [(0, 0), (1, 1), (2, 2)]
    one, other = Matcher(right, Condition("dwithin", 112_000.0)).pairs(geography([shapely.Point(177.99, 0.0)]))
    assert len(one) == 0
    one, other = Matcher(right, Condition("dwithin", 224_000.0)).pairs(geography([shapely.Point(177.99, 0.0)]))
    assert other.tolist() == [0]


@pytest.mark.parametrize("k", [1, 3, 7, 500])
@pytest.mark.parametrize("most", [None, 1.5])
@pytest.mark.spec("spark.joins.nearest")
def test_nearest_matches_exhaustive_distances(k: int, most: float | None) -> None:
    one, other = shapes(4, 120), shapes(5, 90)
    rows, columns, away = Nearest(Geometries.from_arrow(from_shapely(other)), k, most).pairs(
        Geometries.from_arrow(from_shapely(one))
    )
    expected = []
    every = shapely.distance(one[:, None], other[None, :])
    for row in range(len(one)):
        order = [n for n in np.argsort(every[row], kind="stable").tolist() if not np.isnan(every[row, n])]
        order = [n for n in order if most is None or every[row, n] <= most][:k]
        expected += [(row, n, every[row, n]) for n in order]
    assert list(zip(rows.tolist(), columns.tolist(), away.tolist(), strict=True)) == expected


@pytest.mark.parametrize("cells", [1, 2, 7, 64])
def test_cells_cover_the_plane_without_overlap(cells: int) -> None:
    generator = np.random.default_rng(cells)
    centres = np.concatenate([generator.normal(size=(300, 2)), np.zeros((50, 2))])
    found = divide_plane(centres, cells)
    assert len(found) <= cells
    far = np.concatenate([centres, generator.uniform(-1e6, 1e6, (200, 2)), [[np.nan, np.nan]]])
    held = assign_cells(np.column_stack([far, far]), found)
    assert held.value_lengths().to_pylist() == [1] * (len(far) - 1) + [0]


@pytest.fixture(scope="module")
def frames(spark: Any) -> tuple[Any, Any, Any, Any]:
    """Both sides as data frames, of GEOMETRY and of WKB, and as shapes."""
    one, other = shapes(6, 400), shapes(7, 300)

    def frame(rows: Any, name: str) -> Any:
        table = pa.table(
            {name: np.arange(len(rows)), "wkb": from_shapely(rows), "tag": [f"t{n}" for n in range(len(rows))]}
        )
        return spark.createDataFrame(table)

    left = frame(one, "l").select("l", "tag", functions.st_geomfromwkb("wkb").alias("geom"))
    return left, frame(other, "r"), one, other


def test_data_frame_is_joined_by_broadcast_and_by_cells(frames: tuple[Any, Any, Any, Any]) -> None:
    left, right, one, other = frames
    expected = sorted(pairs_of(one, other, "intersects"))
    on = ("geom", "wkb")
    joined = spatial_join(left, right, on=on, strategy="broadcast")
    assert joined.columns == ["l", "tag", "geom", "r", "wkb", "tag_right"]
    rows = joined.select("l", "r", "tag", "tag_right", (F.st_asbinary("geom") == F.col("wkb")).alias("same")).toArrow()
    assert sorted(zip(rows["l"].to_pylist(), rows["r"].to_pylist(), strict=True)) == expected
    assert rows["tag_right"].to_pylist() == [f"t{n}" for n in rows["r"].to_pylist()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pqext.spark.joins.spatial.ROWS_A_CELL", 60)
        by_cells = spatial_join(left, right, on=on, strategy="grid", columns=["r", "l"])
    assert by_cells.columns == ["r", "l"]
    found = by_cells.toArrow()
    assert sorted(zip(found["l"].to_pylist(), found["r"].to_pylist(), strict=True)) == expected


def test_column_names_may_contain_dots(frames: tuple[Any, Any, Any, Any]) -> None:
    left, right, one, other = frames
    left, right = left.toDF("l.n", "tag", "a.geom"), right.toDF("r.n", "a.geom", "tag")
    for strategy in ("broadcast", "grid"):
        found = spatial_join(left, right, on="a.geom", strategy=strategy, columns=["l.n", "r.n"]).toArrow()
        pairs = zip(found["l.n"].to_pylist(), found["r.n"].to_pylist(), strict=True)
        assert sorted(pairs) == sorted(pairs_of(one, other, "intersects"))
    nearest = knn_join(left, right, on="a.geom", columns=["l.n", "a.geom_right", "distance"])
    assert (nearest.columns, nearest.count()) == (["l.n", "a.geom_right", "distance"], len(one) - 2)


@pytest.mark.spec("spark.joins.collected")
def test_side_is_collected_by_one_job_unless_large_or_uneven(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    even = spark.range(0, 40_000, numPartitions=8)
    uneven = even.where("id < 100 OR id >= 35000")
    again: list[Any] = []
    collect = BroadcastRows.collect

    def collect_once(df: Any) -> BroadcastRows:
        again.append(df)
        return collect(df)

    monkeypatch.setattr(BroadcastRows, "collect", collect_once)
    for df, most, is_again in ((even, 40_000 * 8, False), (even, 40_000 * 8 - 1, False), (uneven, 50_000, True)):
        again.clear()
        found, size = BroadcastRows.collect_bounded(df, most)
        ids = [*range(100), *range(35_000, 40_000)] if is_again else list(range(40_000))
        assert (size, bool(again)) == (len(ids) * 8, is_again)
        assert (found is None) == (size > most)
        assert found is None or sorted(found.table()["id"].to_pylist()) == ids
    rows = uneven.mapInArrow(_PartTask(1000).__call__, "part BINARY, size BIGINT").collect()
    assert sorted((row["size"], row["part"] is None) for row in rows) == [(800, False), (40_000, True)]


@pytest.mark.spec("spark.joins.collected")
def test_small_read_side_is_collected_without_a_job(
    spark: Any, frames: tuple[Any, Any, Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print_exc = traceback.print_exc  # which workers change for themselves
    left, _, one, other = frames
    table = pa.table({"r": np.arange(len(other)), "geom": from_shapely(other)})
    pqext.write_table(table, tmp_path / "right.parquet", geometry={"geom": "OGC:CRS84"}, row_group_rows=50)
    right = read(spark, str(tmp_path / "right.parquet"), where=pqext.col("r") >= 20)
    found = spatial_join(left, right, columns=["l", "r"]).toArrow()
    pairs = sorted(zip(found["l"].to_pylist(), found["r"].to_pylist(), strict=True))
    assert pairs == sorted(pair for pair in pairs_of(one, other, "intersects") if pair[1] >= 20)
    here = read_on_driver(right, right.schema)
    assert here is not None
    assert sum(batch.num_rows for batch in here) == len(other) - 20
    assert traceback.print_exc is print_exc
    counted = read(spark, str(tmp_path / "right.parquet"), metrics_path=str(tmp_path / "metrics"))
    assert read_on_driver(counted, counted.schema) is None
    assert read_on_driver(right.select("geom"), right.schema) is None
    for bound, most in (("STORED_BYTES", 1000), ("MOST_ROWS", len(other) - 21)):
        with monkeypatch.context() as patch:
            patch.setattr(f"pqext.spark.reading.parquet_reader.{bound}", most)
            assert read_on_driver(right, right.schema) is None
    monkeypatch.setattr("pqext.spark.reading.parquet_reader.MOST_ROWS", len(other))
    assert read_on_driver(right, right.schema) is not None


def test_left_semi_and_anti_joins_handle_unmatched_rows(frames: tuple[Any, Any, Any, Any]) -> None:
    left, right, one, other = frames
    expected = pairs_of(one, other, "within")
    with_match = {row for row, _ in expected}
    found = {
        how: spatial_join(left, right, "within", on=("geom", "wkb"), how=how, strategy="broadcast", columns=columns)
        for how, columns in (("left", ["l", "r"]), ("semi", ["l"]), ("anti", None))
    }
    assert found["anti"].columns == ["l", "tag", "geom"]
    rows = found["left"].withColumn("how", F.lit("left"))
    for how in ("semi", "anti"):
        rows = rows.unionByName(found[how].select("l", F.lit(None).cast("bigint").alias("r"), F.lit(how).alias("how")))
    rows = [tuple(row.values()) for row in rows.toArrow().to_pylist()]
    alone = set(range(len(one))) - with_match
    assert sorted(row[0] for row in rows if row[2] == "semi") == sorted(with_match)
    assert sorted(row[0] for row in rows if row[2] == "anti") == sorted(alone)
    assert {row[:2] for row in rows if row[2] == "left"} == expected | {(row, None) for row in alone}


def test_nearest_joins_data_frames(frames: tuple[Any, Any, Any, Any]) -> None:
    left, right, one, other = frames
    joined = knn_join(left, right, 2, on=("geom", "wkb"), columns=["l", "r", "distance"]).toArrow().to_pylist()
    searched, queries = (Geometries.from_arrow(from_shapely(side)) for side in (other, one))
    _, _, away = Nearest(searched, 2, None).pairs(queries)
    assert [row["distance"] for row in sorted(joined, key=lambda row: (row["l"], row["distance"]))] == away.tolist()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [({"predicate": "intersect"}, ValueError, "intersects"), ({"predicate": "disjoint"}, ValueError, "anti"),
     ({"predicate": "dwithin"}, TypeError, "distance"), ({"on": "nowhere"}, ValueError, "nowhere"),
     ({"on": ("geom", "tag")}, TypeError, "st_geomfromwkt"), ({"on": None}, ValueError, "no GEOMETRY"),
     ({"how": "outer"}, ValueError, "how must be one of"), ({"how": "left", "strategy": "grid"}, ValueError, "inner"),
     ({"columns": ["tag_rigt"]}, ValueError, "tag_right"), ({"columns": []}, ValueError, "non-empty list"),
     ({"broadcast_bytes": 0, "how": "left"}, ValueError, "broadcast_bytes")],
)  # fmt: skip
def test_invalid_joins_are_rejected_before_any_task(
    frames: tuple[Any, Any, Any, Any], options: dict[str, Any], error: type[Exception], words: str
) -> None:
    left, right, _, _ = frames
    with pytest.raises(error, match=words):
        spatial_join(left, right, **{"on": ("geom", "wkb"), **options})


def test_sides_with_different_types_or_crs_are_reported(frames: tuple[Any, Any, Any, Any]) -> None:
    left, _, _, _ = frames
    elsewhere = left.select(F.st_setsrid("geom", F.lit(3857)).alias("geom"))
    with pytest.raises(ValueError, match=r"EPSG:3857; transform either column"):
        spatial_join(left, elsewhere)
    globe = left.select(F.st_geogfromwkb(F.st_asbinary("geom")).alias("geog"))
    with pytest.raises(TypeError, match="GEOMETRY, but 'geog' on the right is GEOGRAPHY"):
        spatial_join(left, globe)
    with pytest.raises(TypeError, match="st_transform"):
        knn_join(globe, globe)
    with pytest.raises(ValueError, match="k must be an integer"):
        knn_join(left, left, 0)


def test_boxes_are_widened_around_the_globe_and_by_distance() -> None:
    near_the_end = Geometries(from_points([179.9999999, 10.0], [0.0, 0.0]), geo.GeospatialType(None, "spherical"))
    assert sides_of(near_the_end)[:, [0, 2]].tolist() == [[-180, 180], [10, 10]]
    plane = Geometries.from_arrow(from_points([1.0, None], [2.0, 1.0]))
    assert np.allclose(sides_of(plane, Condition("dwithin", 1.0))[0], [0, 1, 2, 3])
    assert np.isnan(sides_of(plane)[1]).all()


@pytest.mark.parametrize("k", [1, 5])
def test_infinite_coordinates_have_no_neighbours(k: int) -> None:
    there = Geometries.from_arrow(from_points([0.0, 1.0], [0.0, 1.0]))
    for x in (-np.inf, np.inf):
        found = Nearest(there, k, None).pairs(Geometries.from_arrow(from_points([x], [90.0])))
        assert [len(part) for part in found] == [0, 0, 0]


def test_points_at_infinite_distance_are_joined() -> None:
    matcher = Matcher(Geometries.from_arrow(from_points([1.7e308], [3.0])), Condition("intersects"))
    one, other = matcher.pairs(Geometries.from_arrow(from_points([1.0, -1e308, 1.7e308], [3.0, 3.0, 3.0])))
    assert (one.tolist(), other.tolist()) == ([2], [0])
