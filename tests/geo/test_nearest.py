"""The nearest points of segments in space, held against all pairs of many points along them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pqext.geo.kernels.nearest import nearest
from pqext.geo.predicates.distance import _spheres
from reference.effort import share

POINTS = ["none", "some", "all"]
"""Which segments have no length, as those of points."""


@settings(max_examples=share(0.4))
@given(st.integers(0, 2**32), st.sampled_from(POINTS), st.sampled_from(POINTS))
@example(0, "none", "all")
@example(0, "all", "none")
@example(0, "all", "all")
def test_nearest_point_pairs_are_exact(seed: int, ours_points: str, their_points: str) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 6))
    rows = random.normal(size=(2 * count, 6))
    query = random.normal(size=(int(random.integers(1, 90)), 6)) * 2 + 1
    for segments, points in ((rows, ours_points), (query, their_points)):
        still = random.random(len(segments)) < {"none": 0, "some": 0.5, "all": 1}[points]
        segments[still, 3:] = segments[still, :3]
    found = np.full((3, 4), np.nan)
    nearest(rows, np.array([0, count, count, 2 * count]), query, _spheres(query), found)
    assert np.isnan(found[1]).all()  # a row without segments
    share = np.linspace(0, 1, 21)[:, None]
    theirs = (query[:, None, :3] + share * (query[:, None, 3:] - query[:, None, :3])).reshape(-1, 3)
    for own, (one, s, other, t) in ((rows[:count], found[0]), (rows[count:], found[2])):
        row, piece = rows[int(one)], query[int(other)]
        distance = np.linalg.norm(row[:3] + s * (row[3:] - row[:3]) - piece[:3] - t * (piece[3:] - piece[:3]))
        ours = (own[:, None, :3] + share * (own[:, None, 3:] - own[:, None, :3])).reshape(-1, 3)
        assert distance <= np.linalg.norm(ours[:, None] - theirs, axis=2).min() + 1e-12


def test_mismatched_arrays_are_rejected() -> None:
    segments, out = np.zeros((2, 6)), np.zeros((1, 4))
    with pytest.raises(ValueError, match="offsets must ascend"):
        nearest(segments, np.array([0, 3]), segments, _spheres(segments), out)
    with pytest.raises(ValueError, match="one sphere for each 32"):
        nearest(segments, np.array([0, 2]), segments, np.zeros((2, 4)), out)
    with pytest.raises(ValueError, match="six numbers"):
        nearest(np.zeros((2, 5)), np.array([0, 2]), segments, _spheres(segments), out)
