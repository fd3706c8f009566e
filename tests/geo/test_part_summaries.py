"""What the parts of a WKB column have in common agrees with the slow twin, and hostile arguments are refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pqext import geo
from pqext.core.errors import GeometryError
from pqext.geo.kernels.boxes import Summary, summarize, summarize_parts
from pqext.geo.kernels.wkb import WkbColumn
from pqext.geo.wkb import columns
from reference import wkb as twin
from reference.geometries import trees

Parts = tuple[Summary, NDArray[np.float64], NDArray[np.uint32], NDArray[np.int64]]


def parts_of(array: pa.Array, starts: list[int]) -> Parts:
    count = len(starts) - 1
    boxes, types, rows = np.full((4, count), 7.0), np.empty(count, np.uint32), np.empty(count, np.int64)
    (column,) = columns(array)
    return summarize_parts(column, np.array(starts, np.int64), boxes, types, rows), boxes, types, rows


def assert_same(one: Summary, other: Summary) -> None:
    for name in ("box", "types", "rows", "extended", "srids"):
        assert getattr(one, name) == getattr(other, name), name


@given(st.lists(st.one_of(st.none(), trees()), max_size=8), st.booleans(), st.data())
def test_every_part_is_the_twins_and_the_whole_is_the_columns(
    geometries: list[twin.Geometry | None], wide: bool, data: st.DataObject
) -> None:
    array = pa.array(
        [None if g is None else twin.encode(g) for g in geometries], pa.large_binary() if wide else pa.binary()
    )
    cuts = data.draw(st.lists(st.integers(0, len(array)), max_size=4).map(sorted))
    starts = [0, *cuts, len(array)]
    whole, boxes, types, rows = parts_of(array, starts)
    assert_same(whole, summarize(next(columns(array))))
    for part, (start, stop) in enumerate(pairwise(starts)):
        present = [g for g in geometries[start:stop] if g is not None]
        expected = [bound for pair in twin.box(present)[:2] for bound in (pair or (np.nan, np.nan))]
        assert np.array_equal(boxes[:, part], expected, equal_nan=True)
        assert types[part] == sum({1 << 8 * (g.code // 1000) + g.code % 1000 for g in present})
        assert rows[part] == len(present)


@pytest.mark.parametrize("size", [1, 255, 256, 257, 700])
@pytest.mark.parametrize("first", [0, 3])
def test_points_behind_one_another_end_with_their_part(size: int, first: int) -> None:
    generator = np.random.default_rng(size)
    x, y = generator.uniform(-9, 9, 2000), generator.uniform(-9, 9, 2000)
    x[::50] = np.nan
    array = geo.from_points(x, y)[first:]
    starts = [*range(0, len(array), size), len(array)]
    whole, boxes, types, rows = parts_of(array, starts)
    assert_same(whole, summarize(next(columns(array))))
    x, y = x[first:], y[first:]
    for line, values, extreme in ((0, x, np.fmin), (1, x, np.fmax), (2, y, np.fmin), (3, y, np.fmax)):
        assert np.array_equal(boxes[line], extreme.reduceat(values, starts[:-1]), equal_nan=True)
    assert (types == 2).all()
    assert np.array_equal(rows, np.diff(starts))


def test_the_row_of_an_srid_and_of_a_fault_is_the_columns() -> None:
    point = twin.encode(twin.Geometry(twin.POINT, 0, [(1.0, 2.0)]))
    ewkb = b"\1" + (0x20000001).to_bytes(4, "little") + (4326).to_bytes(4, "little") + point[5:]
    assert parts_of(pa.array([point, None, ewkb, point]), [0, 1, 4])[0].srids == [(4326, 2)]
    with pytest.raises(GeometryError, match="row 3: the geometry ends too early"):
        parts_of(pa.array([point, None, point, b"\1"]), [0, 2, 4])


@pytest.mark.parametrize(
    "starts", [[], [0], [0, 2], [1, 3], [0, 4], [0, 2, 1, 3], [0, -1, 3], [0, 2**62, 3], [-(2**63), 3]]
)
def test_parts_that_are_not_the_columns_are_refused(starts: list[int]) -> None:
    column = next(columns(geo.from_points([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])))
    count = max(len(starts) - 1, 0)
    with pytest.raises(ValueError, match="parts of a column"):
        summarize_parts(
            column,
            np.array(starts, np.int64),
            np.empty((4, count)),
            np.empty(count, np.uint32),
            np.empty(count, np.int64),
        )


@pytest.mark.parametrize("lengths", [(3, 2, 2, 2), (8, 2, 2, 2), (4, 1, 2, 2), (4, 2, 1, 2), (4, 2, 2, 3)])
def test_outputs_of_another_shape_are_refused(lengths: tuple[int, int, int, int]) -> None:
    column = next(columns(geo.from_points([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])))
    lines, boxes, types, rows = lengths
    with pytest.raises(ValueError, match="the output must have 4 lines"):
        summarize_parts(
            column,
            np.array([0, 1, 3], np.int64),
            np.empty((lines, boxes)),
            np.empty(types, np.uint32),
            np.empty(rows, np.int64),
        )


@pytest.mark.parametrize("offsets", [[0, 21, 5, 42], [0, 21, 42, 64], [-21, 0, 21, 42], [0, 2**31 - 1, 21, 42]])
@pytest.mark.parametrize("wide", [False, True])
def test_offsets_outside_the_data_are_refused(offsets: list[int], wide: bool) -> None:
    data = twin.encode(twin.Geometry(twin.POINT, 0, [(1.0, 2.0)])) * 2
    buffer = np.array(offsets, dtype=np.int64 if wide else np.int32)
    column = WkbColumn(None, pa.py_buffer(buffer), pa.py_buffer(data), 0, 3, wide)
    with pytest.raises(GeometryError):
        summarize_parts(
            column, np.array([0, 1, 3], np.int64), np.empty((4, 2)), np.empty(2, np.uint32), np.empty(2, np.int64)
        )
