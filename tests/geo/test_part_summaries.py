"""What the parts of a WKB column have in common agrees with the slow twin, and hostile arguments are refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.core.options.read_write import WriteOptions
from pqext.core.schema.annotations import WriteRecords
from pqext.geo.annotation import HANDLER
from pqext.geo.kernels.boxes import Summary
from pqext.geo.kernels.wkb import WkbColumn
from pqext.geo.wkb import columns
from reference import wkb as twin
from reference.geometries import trees

Parts = tuple[Summary, NDArray[np.float64], NDArray[np.uint32], NDArray[np.int64]]


def parts_of(array: pa.Array, starts: list[int]) -> Parts:
    count = len(starts) - 1
    boxes, types, rows = np.full((4, count), 7.0), np.empty(count, np.uint32), np.empty(count, np.int64)
    (column,) = columns(array)
    whole = Summary(column)
    whole.parts(np.array(starts, np.int64), boxes, types, rows)
    return whole, boxes, types, rows


@given(st.lists(st.one_of(st.none(), trees()), max_size=8), st.booleans(), st.data())
def test_part_summaries_match_the_reference_and_merge_to_the_total(
    geometries: list[twin.Geometry | None], wide: bool, data: st.DataObject
) -> None:
    array = pa.array(
        [None if g is None else twin.encode(g) for g in geometries], pa.large_binary() if wide else pa.binary()
    )
    cuts = data.draw(st.lists(st.integers(0, len(array)), max_size=4).map(sorted))
    starts = [0, *cuts, len(array)]
    whole, boxes, types, rows = parts_of(array, starts)
    present = [g for g in geometries if g is not None]
    assert whole.box == tuple(bound for pair in twin.box(present) for bound in (pair or (None, None)))
    assert whole.types == sorted({g.code for g in present})
    assert whole.rows == len(present)
    assert whole.hollow == any(map(twin.hollow, present))
    for part, (start, stop) in enumerate(pairwise(starts)):
        present = [g for g in geometries[start:stop] if g is not None]
        expected = [bound for pair in twin.box(present)[:2] for bound in (pair or (np.nan, np.nan))]
        assert np.array_equal(boxes[:, part], expected, equal_nan=True)
        assert types[part] == sum({1 << 8 * (g.code // 1000) + g.code % 1000 for g in present})
        assert rows[part] == len(present)


@pytest.mark.parametrize("size", [1, 255, 256, 257, 700, 1024, 1500, 2900])
@pytest.mark.parametrize("first", [0, 3])
def test_consecutive_points_end_with_their_part(size: int, first: int) -> None:
    generator = np.random.default_rng(size)
    x, y = generator.uniform(-9, 9, 4000), generator.uniform(-9, 9, 4000)
    x[::50] = np.nan
    array = geo.from_points(x, y)[first:]
    starts = [*range(0, len(array), size), len(array)]
    _, boxes, types, rows = parts_of(array, starts)
    x, y = x[first:], y[first:]
    for line, values, extreme in ((0, x, np.fmin), (1, x, np.fmax), (2, y, np.fmin), (3, y, np.fmax)):
        assert np.array_equal(boxes[line], extreme.reduceat(values, starts[:-1]), equal_nan=True)
    assert (types == 2).all()
    assert np.array_equal(rows, np.diff(starts))


def test_rows_of_srids_and_errors_are_numbered_by_column() -> None:
    point = twin.encode(twin.Geometry(twin.POINT, 0, [(1.0, 2.0)]))
    ewkb = b"\1" + (0x20000001).to_bytes(4, "little") + (4326).to_bytes(4, "little") + point[5:]
    assert parts_of(pa.array([point, None, ewkb, point]), [0, 1, 4])[0].srids == [(4326, 2)]
    with pytest.raises(GeometryError, match="row 3: the geometry is truncated"):
        parts_of(pa.array([point, None, point, b"\1"]), [0, 2, 4])


@pytest.mark.parametrize("corners", [1, 40, 3000])
def test_parts_of_a_slice_match_those_of_its_copy(corners: int) -> None:
    generator = np.random.default_rng(corners)
    lines = geo.from_shapely(shapely.linestrings(generator.uniform(-9, 9, (90, corners + 1, 2))))
    array = pa.concat_arrays([lines] * 20)[7:1500]
    starts = [0, 1, 1, 30, 700, len(array)]
    found, copied = parts_of(array, starts), parts_of(pa.array(array.to_pylist(), pa.binary()), starts)
    assert found[0].box == copied[0].box
    for index in (1, 2, 3):
        np.testing.assert_array_equal(found[index], copied[index])
    bounds = shapely.bounds(geo.to_shapely(array))[:, [0, 2, 1, 3]]
    for line, (extreme, start) in enumerate(((np.min, np.inf), (np.max, -np.inf)) * 2):
        expected = [extreme(bounds[a:b, line], initial=start) for a, b in pairwise(starts)]
        np.testing.assert_array_equal(found[1][line], [value if np.isfinite(value) else np.nan for value in expected])


def test_summary_is_identified_by_its_memory() -> None:
    points = geo.from_points([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0])
    summary = Summary(*columns(points[1:3]))
    assert summary.is_of(*columns(points[1:3]))
    copy = pa.concat_arrays([points, points])[5:7]
    null = pa.Array.from_buffers(pa.binary(), 4, [pa.py_buffer(b"\xfd"), *points.buffers()[1:]])[1:3]
    for other in (points, points[1:2], points[2:4], copy, null, points.cast(pa.large_binary())[1:3], points[:0]):
        assert not summary.is_of(*columns(other))


@pytest.mark.parametrize(
    "starts", [[], [0], [0, 2], [1, 3], [0, 4], [0, 2, 1, 3], [0, -1, 3], [0, 2**62, 3], [-(2**63), 3]]
)
def test_parts_of_another_column_are_rejected(starts: list[int]) -> None:
    column = next(columns(geo.from_points([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])))
    count = max(len(starts) - 1, 0)
    with pytest.raises(ValueError, match="parts of a column"):
        Summary(column).parts(
            np.array(starts, np.int64),
            np.empty((4, count)),
            np.empty(count, np.uint32),
            np.empty(count, np.int64),
        )


@pytest.mark.parametrize("lengths", [(3, 2, 2, 2), (8, 2, 2, 2), (4, 1, 2, 2), (4, 2, 1, 2), (4, 2, 2, 3)])
def test_outputs_of_a_wrong_shape_are_rejected(lengths: tuple[int, int, int, int]) -> None:
    column = next(columns(geo.from_points([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])))
    lines, boxes, types, rows = lengths
    with pytest.raises(ValueError, match="boxes must have 4 rows"):
        Summary(column).parts(
            np.array([0, 1, 3], np.int64),
            np.empty((lines, boxes)),
            np.empty(types, np.uint32),
            np.empty(rows, np.int64),
        )


@pytest.mark.parametrize("offsets", [[0, 21, 5, 42], [0, 21, 42, 64], [-21, 0, 21, 42], [0, 2**31 - 1, 21, 42]])
@pytest.mark.parametrize("wide", [False, True])
def test_offsets_outside_the_data_are_rejected(offsets: list[int], wide: bool) -> None:
    data = twin.encode(twin.Geometry(twin.POINT, 0, [(1.0, 2.0)])) * 2
    buffer = np.array(offsets, dtype=np.int64 if wide else np.int32)
    column = WkbColumn(None, pa.py_buffer(buffer), pa.py_buffer(data), 0, 3, wide)
    with pytest.raises(GeometryError):
        Summary(column)


def test_summary_is_recorded_only_for_values_written_unchanged() -> None:
    points = geo.from_points([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).storage
    null = pa.array([points[0].as_py(), None], pa.binary())
    ewkb = pa.array([b"\1" + (0x20000001).to_bytes(4, "little") + (4326).to_bytes(4, "little") + points[0].as_py()[5:]])
    options = WriteOptions()
    for array, noted in ((points, 1), (points[1:], 1), (points.dictionary_encode(), 1), (null, 0), (ewkb, 0)):
        field = geo.geometry_field("g").with_type(array.type)
        notes = WriteRecords()
        stored = HANDLER.to_storage(field, HANDLER.storage(field, "g", None, options), array, options, notes)
        summed = list(notes.iter_type(Summary))
        assert len(summed) == noted
        assert all(note.is_of(*columns(stored)) for note in summed)
