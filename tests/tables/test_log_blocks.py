"""Many files of a table are pruned by the log exactly like each file alone, compared with lists of rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext import col, geo, variant
from pqext.core.format.metadata import BoundingBox, GeospatialStatistics
from pqext.core.format.predicate import Bounds, Predicate
from pqext.dataset.expressions import Expression
from pqext.tables import log_statistics
from pqext.tables.log_statistics import LogStatistics
from reference.effort import share

SCHEMA = pa.schema([("x", pa.int64()), variant.variant_field("v"), geo.geometry_field("g")])


@dataclass
class File:
    """Statistics of a file with the values ``rows`` of x, at the path $.a of v, and as the longitudes of points g."""

    rows: list[int | None]
    has_counts: bool = True
    has_box: bool = True
    buckets: bool = True

    @property
    def num_rows(self) -> int:
        return len(self.rows)

    def ends(self) -> tuple[int | None, int | None]:
        known = [value for value in self.rows if value is not None]
        return min(known, default=None), max(known, default=None)

    def bounds(self, path: tuple[str, ...]) -> Bounds:
        if path != ("x",):
            return Bounds(has_nan=None)
        counts = (self.rows.count(None), len(self.rows)) if self.has_counts else (None, None)
        return Bounds(*self.ends(), *counts)

    def variant_bounds(self, path: tuple[str, ...]) -> tuple[bytes | None, bytes | None]:
        items = [None if end is None else variant.from_python([{"$['a']": end}])[0].as_py() for end in self.ends()]
        low, high = (None if item is None else item["metadata"] + item["value"] for item in items)
        return low, high

    def covers(self, columns: Collection[str]) -> bool:
        return False

    def box(self, path: tuple[str, ...]) -> GeospatialStatistics | None:
        low, high = self.ends()
        if not self.has_box or low is None or high is None:
            return None
        return GeospatialStatistics(bbox=BoundingBox(xmin=low, xmax=high, ymin=0, ymax=0))

    def may_contain(self, path: tuple[str, ...], predicate: Predicate) -> bool:
        return self.buckets


def reasons(files: list[File], filter: Expression) -> list[str | None]:
    names = [f"{number}.parquet" for number in range(len(files))]
    return LogStatistics(SCHEMA, dict(zip(names, files, strict=True))).prune_reasons(names, filter)


def drawn_files(seed: int, order: str) -> list[File]:
    chance = np.random.default_rng(seed)
    starts = chance.integers(-90, 80, 250)
    starts = np.sort(starts) if order == "sorted" else starts
    files = []
    for start in starts.tolist():
        rows: list[int | None] = chance.integers(start, start + 9, 4).tolist()
        nulls = chance.choice([0, 0.5, 1], p=[0.94, 0.03, 0.03])
        rows = [None if chance.random() < nulls else value for value in rows]
        has_counts = chance.random() > (0.02 if nulls < 1 else 0.5)
        files.append(File(rows, has_counts, chance.random() > 0.02, chance.random() > 0.3))
    return files


@pytest.mark.parametrize("order", ["sorted", "random"])
@given(seed=st.integers(0, 1 << 32), value=st.integers(-95, 95))
@settings(max_examples=share(0.05))
def test_pruned_files_equal_those_pruned_alone(order: str, seed: int, value: int) -> None:
    files = drawn_files(seed, order)
    x, path = col("x"), col("v").variant("$.a", "int64")
    box = col("g").intersects((value, -1, value + 3, 1))
    for filter in (x == value, x > value, x.is_null(), (x < value) & (path >= value - 9), path == value, box):
        found = [reason is None for reason in reasons(files, filter)]
        assert found == [reasons([file], filter) == [None] for file in files]
    for may_match, rows in zip([reason is None for reason in reasons(files, x == value)], files, strict=True):
        assert may_match or value not in rows.rows or not rows.buckets


def test_files_far_from_the_value_are_tested_together(monkeypatch: pytest.MonkeyPatch) -> None:
    tests: list[int] = []
    original = log_statistics.row_group_may_match
    monkeypatch.setattr(
        log_statistics, "row_group_may_match", lambda bound, facts: tests.append(1) or original(bound, facts)
    )
    files = [File([start, start + 1]) for start in range(0, 20_000, 2)]
    found = reasons(files, col("x") == 15_001)
    assert [number for number, reason in enumerate(found) if reason is None] == [7500]
    assert sum("between" in reason for reason in found if reason is not None) == 100
    assert len(tests) < 600


def test_ranges_of_paths_are_decoded_once_for_the_queries_of_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"{number}.parquet": File([number]) for number in range(50)}
    statistics = LogStatistics(SCHEMA, files)
    path = col("v").variant("$.a", "int64")
    for number in (7, 30):
        found = statistics.prune_reasons([*files], path == number)
        assert [row for row, reason in enumerate(found) if reason is None] == [number]
        monkeypatch.setattr(File, "variant_bounds", lambda self, path: pytest.fail("decoded again"))
    monkeypatch.undo()
    names = ["30.parquet", "7.parquet"]
    assert statistics.prune_reasons(names, col("v").variant("$.b", "int64") == 7) == [None] * 2
    subset = statistics.prune_reasons(names, path == 7)
    assert [reason is None for reason in subset] == [False, True]
