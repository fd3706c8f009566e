"""A predicate's answers are those of each row by itself, however often rows repeat each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext import geo
from pqext.core.base.errors import GeometryError, LimitError
from pqext.geo.predicates import globe
from pqext.geo.predicates.predicate import SpatialPredicate
from reference.effort import share

WKT = [
    "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", "POLYGON ((1 1, 3 1, 2 3, 1 1))", "LINESTRING (-5 2, 5 2)", "POINT (2 2)",
    "POINT (9 9)", "POLYGON EMPTY", "MULTIPOINT ((1 1), (8 8))", "LINESTRING (170 10, -170 10)",
    "GEOMETRYCOLLECTION (POINT (0 0), LINESTRING (0 0, 1 1))",
]  # fmt: skip
QUERIES: list[Any] = [(1, 1, 3, 3), (175, 0, -175, 20), shapely.from_wkt("POLYGON ((1 1, 5 1, 5 5, 1 1))")]
OPERATIONS = ["intersects", "disjoint", "within", "touches", "crosses", "covers", "equals", "dwithin"]


@given(
    st.lists(st.sampled_from([None, *WKT]), min_size=1, max_size=4), st.integers(0, 200), st.sampled_from(OPERATIONS),
    st.sampled_from(QUERIES), st.sampled_from([None, "spherical", "karney"]), st.integers(0, 1000), st.booleans(),
)  # fmt: skip
@settings(max_examples=share(0.5))
def test_results_do_not_depend_on_repeated_rows(
    texts: list[str | None], count: int, operation: Any, query: Any, edges: Any, seed: int, wide: bool
) -> None:
    values = geo.from_wkt(pa.array(texts, pa.string()))
    values = values.cast(pa.large_binary()) if wide else values
    rows = np.random.default_rng(seed).integers(0, len(texts), count)
    distance = {None: 1.5}.get(edges, 200_000.0) if operation == "dwithin" else None
    predicate = SpatialPredicate(operation, query, distance)
    alone = [predicate.evaluate(values.slice(i, 1), edges)[0].as_py() for i in range(len(texts))]
    found = predicate.evaluate(values.take(pa.array(rows)), edges)
    assert found.to_pylist() == [alone[row] for row in rows]
    chunks = pa.chunked_array([values.take(pa.array(rows)), values])
    assert predicate.evaluate(chunks, edges).to_pylist() == [alone[row] for row in rows] + alone


@pytest.mark.parametrize("edges", [None, "spherical"])
def test_error_row_is_the_first_with_the_value(edges: Any) -> None:
    good, other = geo.from_wkt(pa.array(["POLYGON ((0 0, 4 0, 4 4, 0 0))", "LINESTRING (0 1, 3 4)"])).to_pylist()
    open_ring = good[:-16] + b"\1" * 16
    values = pa.array([good, None, other] * 20 + [open_ring, good, None] * 30, pa.binary())
    with pytest.raises(GeometryError) as raised:
        geo.within(values, (1, 1, 3, 2), edges)
    assert raised.value.row == 60
    with pytest.raises(GeometryError) as raised:
        geo.within(pa.chunked_array([values[:50], values[50:]]), (1, 1, 3, 2), edges)
    assert raised.value.row == 60


def test_overlong_rows_are_evaluated_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shapely.linestrings([[(-80, y), (80, y + 1)] for y in range(40)])
    array = geo.from_shapely(lines)
    whole = geo.intersects(array, (0, 0, 1, 30), "spherical")
    assert 3 < sum(whole.to_pylist()) < 35
    monkeypatch.setattr(globe, "MOST_VERTICES", 2000)
    assert geo.intersects(array, (0, 0, 1, 30), "spherical").equals(whole)
    monkeypatch.setattr(globe, "MOST_VERTICES", 3)
    with pytest.raises(LimitError, match="divide the geometry"):
        geo.intersects(array, (0, 0, 1, 30), "spherical")
