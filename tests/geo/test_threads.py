"""Spatial predicates in several threads: shapely's answers, and no geometry of the caller is changed."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import shapely

from pqext import geo
from pqext.geo import SpatialPredicate
from pqext.geo.predicates.boxes import OPERATIONS

QUERY = shapely.Polygon([(-30, -30), (30, -30), (30, 30), (0, 10), (-30, 30)], [[(-9, -9), (-1, -9), (-5, -1)]])
SHAPES = [shapely.Point(3, 3), shapely.Point(-30, 0), shapely.box(25, 25, 40, 40), shapely.LineString([(0, 0), (9, 6)])]

FILTERS = """
import sys
import numpy as np, pyarrow as pa, shapely
import pqext
from pqext import col, geo

xy = np.random.default_rng(1).uniform(-160, 160, (20000, 2)) / [1, 2]
shapes = shapely.buffer(shapely.points(xy), 1)
path = sys.argv[1]
pqext.write_table(
    pa.table({"g": geo.from_shapely(list(shapes))}), path, geometry={"g": "OGC:CRS84"}, row_group_rows=500
)
for threads in (2, 16):
    for vertices in (2000, 4):
        query = shapely.Point(0, 0).buffer(80, quad_segs=vertices)
        rows = pqext.read_table(path, filter=col("g").intersects(query), threads=threads).num_rows
        assert rows == int(shapely.intersects(shapes, query).sum()), (threads, vertices, rows)
        assert vertices != 2000 or rows == 8073
"""


def test_filters_by_large_polygons_in_several_threads_match_shapely(tmp_path: Path) -> None:
    arguments = [sys.executable, "-X", "faulthandler", "-c", FILTERS, str(tmp_path / "polygons.parquet")]
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("edges", ["planar", "spherical"])
@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_user_query_is_not_prepared(operation: Any, edges: Any) -> None:
    query = shapely.from_wkb(shapely.to_wkb(QUERY))
    distance = 1.0 if operation == "dwithin" else None
    for shapes in (SHAPES, SHAPES[:2]):  # points are evaluated by their coordinates
        SpatialPredicate(operation, query, distance).evaluate(geo.from_shapely(shapes), edges)
    assert not shapely.is_prepared(query)


@pytest.mark.parametrize("edges", ["planar", "spherical"])
def test_each_thread_prepares_its_own_geometry(edges: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: dict[int, set[int]] = {}
    alive = []
    prepare = shapely.prepare

    def record(geometry: Any, **options: Any) -> None:
        prepared.setdefault(threading.get_ident(), set()).add(id(geometry))
        alive.append(geometry)  # so that no other object gets the same id
        prepare(geometry, **options)

    monkeypatch.setattr(shapely, "prepare", record)
    predicate = SpatialPredicate("intersects", QUERY)
    rows = geo.from_shapely(SHAPES)
    meeting = threading.Barrier(3)

    def evaluate(_: int) -> list[bool]:
        meeting.wait()
        return [*predicate.evaluate(rows, edges).to_pylist(), *predicate.evaluate(rows[:2], edges).to_pylist()]

    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(evaluate, range(3)))
    expected = shapely.intersects(SHAPES, QUERY).tolist()  # on the globe too: none of them is near a border
    assert answers == [expected + expected[:2]] * 3
    assert len(prepared) == 3
    assert len(set.union(*prepared.values())) == sum(map(len, prepared.values()))


def test_evaluated_predicate_can_be_pickled() -> None:
    predicate = SpatialPredicate("covers", QUERY)
    rows = geo.from_shapely(SHAPES)
    before = predicate.evaluate(rows)
    again = pickle.loads(pickle.dumps(predicate))
    assert again == predicate
    assert again.evaluate(rows).equals(before)
