"""Folders that divide rows by space: no row is lost, parts are balanced, and a box opens few files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely

import pqext
from pqext import col, geo
from pqext.core.base.errors import GeometryError

RANDOM = np.random.default_rng(3)
X, Y = RANDOM.normal(10, 30, 20_000).clip(-179, 179), RANDOM.normal(40, 5, 20_000).clip(-89, 89)
POINTS = pa.table({"id": np.arange(20_000), "at": geo.from_points(X, Y)})


def ids(folder: Path) -> list[int]:
    return sorted(pqext.read_table(folder, ["id"])["id"].to_pylist())


def test_a_tree_divides_rows_evenly_and_keeps_all(tmp_path: Path) -> None:
    result = geo.write_dataset(POINTS, tmp_path / "out", resolution=4)
    assert ids(tmp_path / "out") == list(range(20_000))
    assert {file.rows for file in result.files} == {1250}
    assert sorted(file.name.partition("/")[0] for file in result.files) == [f"kdtree={n:04b}" for n in range(16)]
    box = (10, 40, 12, 41)
    scan = pqext.scan(tmp_path / "out").filter(col("at").intersects(box))
    inside = np.flatnonzero((X >= 10) & (X <= 12) & (Y >= 40) & (Y <= 41))
    assert sorted(scan.select("id").to_table()["id"].to_pylist()) == inside.tolist()
    assert sum(any(group.prune_reason is None for group in task.row_groups) for task in scan.plan()) <= 4
    assert "plans 16 files from" in scan.explain()


def test_the_number_of_files_follows_from_their_size(tmp_path: Path) -> None:
    result = geo.write_dataset(POINTS, tmp_path / "out", target_file_bytes=60_000)
    assert 30_000 < result.bytes / len(result.files) < 90_000
    assert ids(tmp_path / "out") == list(range(20_000))


@pytest.mark.parametrize(("grid", "resolution"), [("quadkey", 4), ("geohash", 1)])
@pytest.mark.parametrize("kind", ["table", "scan", "path", "stream", "frame"])
def test_every_source_is_divided_by_cells(grid: Any, resolution: int, kind: str, tmp_path: Path) -> None:
    pqext.write_table(POINTS, tmp_path / "in.parquet", row_group_rows=3000)
    source = {
        "table": POINTS, "scan": pqext.scan(tmp_path / "in.parquet"), "path": tmp_path / "in.parquet",
        "stream": POINTS.to_reader(5000), "frame": geo.to_geopandas(POINTS),
    }[kind]  # fmt: skip
    geo.write_dataset(source, tmp_path / "out", grid, resolution=resolution, compression="zstd")
    table = pqext.read_table(tmp_path / "out").sort_by("id")
    cells = geo.cells(POINTS["at"], grid, resolution).to_pylist()
    type_category = type(table[grid][0].as_py())  # of names of folders that are all numbers int
    assert table[grid].to_pylist() == [*map(type_category, cells)]
    assert geo.to_iso_wkb(table["at"]).equals(geo.to_iso_wkb(POINTS["at"]))


def test_rows_are_ordered_and_typed_and_have_nulls(tmp_path: Path) -> None:
    shapes = [None, shapely.Point(), shapely.Point(1, 1), shapely.Point(9, 9)] * 10
    field = geo.geometry_field("at", "EPSG:3857")
    table = pa.table([range(40), geo.from_shapely(shapes)], schema=pa.schema([pa.field("id", pa.int64()), field]))
    result = geo.write_dataset(table, tmp_path / "out", resolution=1, geometry={"at": {"page_boxes": False}})
    assert {file.name.partition("/")[0]: file.rows for file in result.files} == {
        "kdtree=0": 10, "kdtree=1": 10, "kdtree=__HIVE_DEFAULT_PARTITION__": 20,
    }  # fmt: skip
    assert ids(tmp_path / "out") == list(range(40))
    assert geo.to_geopandas(pqext.read_table(tmp_path / "out")).crs == "EPSG:3857"
    geo.write_dataset(table, tmp_path / "out", resolution=1, mode="append")
    assert len(ids(tmp_path / "out")) == 80


@pytest.mark.parametrize("xy", [([1.0] * 50, [2.0] * 50), ([1.0] * 49 + [2.0], [0.0] * 50), ([], [])])
def test_equal_points_and_no_points_are_written(xy: Any, tmp_path: Path) -> None:
    x, y = xy
    table = pa.table({"id": pa.array(range(len(x)), pa.int64()), "at": geo.from_points(x, y)})
    geo.write_dataset(table, tmp_path / "out", resolution=3)
    assert ids(tmp_path / "out") == list(range(len(x)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda at: geo.write_dataset(POINTS, at, "kd"), ValueError, "partition_by must be one of kdtree, .*'kd'"),
        (lambda at: geo.write_dataset(POINTS, at, "h3"), ValueError, "'h3' requires an argument resolution="),
        (lambda at: geo.write_dataset(POINTS, at, resolution=13), ValueError, "from 0 to 12, not 13"),
        (lambda at: geo.write_dataset(POINTS, at, target_file_bytes=0), ValueError, "positive number of bytes"),
        (lambda at: geo.write_dataset(POINTS, at, column="att"), ValueError, "no geometry column 'att'.*'at'"),
        (lambda at: geo.write_dataset(pa.table({"a": [1]}), at), ValueError, "no geometry column; select a column"),
        (lambda at: geo.write_dataset(POINTS.to_reader(), at), TypeError, "read twice"),
        (lambda at: geo.write_dataset(POINTS.append_column("kdtree", [X]), at), ValueError, "already have this"),
        (lambda at: geo.write_dataset(POINTS, at, order="x", resolution=1), ValueError, "'hilbert' or 'zorder'"),
    ],
)
def test_errors_name_the_argument_and_write_nothing(
    call: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        call(tmp_path / "out")
    assert not [*tmp_path.rglob("*.parquet")]


def test_projected_rows_have_no_cells(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame({"id": [1]}, geometry=[shapely.Point(1e6, 2e6)], crs="EPSG:3857")
    with pytest.raises(GeometryError, match="EPSG:3857; transform"):
        geo.write_dataset(frame, tmp_path / "out", "quadkey", resolution=3)
    assert not [*tmp_path.rglob("*.parquet")]
