"""A geometry column orders the rows of a file, and row groups and pages end where their boxes stay small."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.geo.layout.order import split_rows
from reference.effort import share

GENERATOR = np.random.default_rng(5)


def points_table(rows: int = 20_000) -> pa.Table:
    x, y = GENERATOR.uniform(-180, 180, rows), GENERATOR.uniform(-90, 90, rows)
    return pa.table({"n": np.arange(rows), "geom": geo.from_points(x, y), "t": [f"row {n}" for n in range(rows)]})


def written(table: pa.Table, **options: Any) -> Any:
    sink = io.BytesIO()
    pqext.write_table(table, sink, **options)
    return pqext.open(sink)


def area(chunk: Any) -> float:
    box = chunk.geospatial_statistics.bbox
    return float((box.xmax - box.xmin) * (box.ymax - box.ymin))


@pytest.mark.parametrize("curve", ["hilbert", "zorder"])
def test_table_is_sorted_before_it_is_split(curve: Any) -> None:
    table = points_table()
    file = written(table, geometry={"geom": {"order": curve}}, row_group_rows=4_000, page_rows=500)
    assert file.read(["n", "t"]).equals(geo.sort(table, "geom", curve).select(["n", "t"]))
    groups = file.row_groups
    assert all(1_950 <= group.num_rows <= 4_000 for group in groups[:-1])
    assert sum(area(group.chunk(1)) for group in groups) < 2 * 360 * 180
    for group in groups:
        pages = [group.chunk(column).pages for column in range(3)]
        starts = [[index.rows(page) for page in range(len(index))] for index in pages]
        assert starts[0] == starts[1] == starts[2]
        assert all(250 <= len(rows) <= 500 for rows in starts[0][:-1])


def test_writer_sorts_each_row_group() -> None:
    table = points_table(3_000)
    sink = io.BytesIO()
    order = {"geom": {"order": "hilbert"}}
    with pqext.ParquetWriter(sink, table.schema, geometry=order, row_group_rows=1_000) as writer:
        writer.write_table(table[:1_700])
        writer.write_table(table[1_700:])
    file = pqext.open(sink)
    for index in range(3):
        part = table[1_000 * index : 1_000 * (index + 1)]
        assert file.read(["n"], [index]).equals(geo.sort(part, "geom").select(["n"]))


def test_large_values_end_pages_and_row_groups_early() -> None:
    table = points_table(2_000).append_column("big", pa.array([b"x" * 1_000] * 2_000))
    options = {"page_bytes": 20_000, "row_group_bytes": 500_000, "dictionary": False}
    file = written(table, geometry={"geom": {"order": "hilbert"}}, **options)
    assert file.read(["n"]).equals(geo.sort(table, "geom").select(["n"]))
    assert all(group.num_rows < 500 for group in file.row_groups)
    assert all(len(group.chunk(3).pages) > len(group.chunk(0).pages) for group in file.row_groups)


@pytest.mark.parametrize("type", [pa.string_view(), pa.list_view(pa.string())], ids=str)
def test_view_columns_follow_the_row_order(type: pa.DataType) -> None:
    texts = [f"row {number}" for number in range(40)]
    values = pa.array(texts if type == pa.string_view() else [[text] for text in texts], type)
    geometry = geo.from_points([7.0 * number % 40 for number in range(40)], [0.0] * 40)
    chunks = pa.chunked_array([values.slice(0, 13), values.slice(13)])
    ordered = geo.sort(pa.table({"g": geometry, "x": chunks}), "g")["x"]
    assert ordered.type == type
    order = geo.sort_indices(geometry)
    assert ordered.to_pylist() == pa.array(values.to_pylist()).take(order).to_pylist()  # Arrow has no take of views


def test_nulls_and_empty_geometries_are_last_even_in_structs() -> None:
    points = points_table(300)["geom"].combine_chunks()
    values = pa.array([None if n % 7 == 0 else value for n, value in enumerate(points.to_pylist())], pa.binary())
    table = pa.table({"n": np.arange(300), "s": pa.StructArray.from_arrays([values], ["geom"])})
    file = written(table, geometry={"s.geom": {"order": "hilbert"}}, row_group_rows=64)
    rows = file.read(["n"])["n"].to_pylist()
    assert sorted(rows) == list(range(300))
    assert rows[-43:] == list(range(0, 300, 7))


def test_only_one_order_is_accepted_and_lists_are_rejected() -> None:
    table = points_table(10)
    order = {"order": "hilbert"}
    both = table.append_column("other", table["geom"])
    with pytest.raises(ValueError, match="'geom' and 'other'"):
        written(both, geometry={"geom": order, "other": order})
    with pytest.raises(ValueError, match="one order"):
        written(table, geometry={"geom": order}, sorting=["n"])
    with pytest.raises(ValueError, match="'hilbert' or 'zorder', not 'peano'"):
        written(table, geometry={"geom": {"order": "peano"}})
    lists = pa.table({"l": pa.array([[value] for value in table["geom"].to_pylist()], pa.list_(pa.binary()))})
    with pytest.raises(ValueError, match=r"'l\.list\.element' is inside a list"):
        written(lists, geometry={"l.list.element": order})
    with pytest.raises(GeometryError):
        written(pa.table({"geom": [b"none"]}), geometry={"geom": order})


@settings(max_examples=share(0.6))
@given(st.integers(1, 400), st.integers(1, 90), st.integers(0, 2**32))
def test_parts_cover_all_rows_and_have_balanced_sizes(rows: int, most: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    points = generator.normal(0, 1, (2, rows)).cumsum(axis=1)
    boxes = points[[0, 0, 1, 1]]
    boxes[:, generator.uniform(0, 1, rows) < 0.1] = generator.choice([np.nan, np.inf])
    starts = split_rows(boxes, most)
    lengths = np.diff(np.append(starts, rows))
    assert starts[0] == 0
    assert (lengths > 0).all()
    assert (lengths <= most).all()
    assert (lengths[:-1] >= 0.48 * most - 1).all()
    order = generator.permutation(rows)
    mixed = np.empty_like(boxes)
    mixed[:, order] = boxes
    assert split_rows(mixed, most, order).tolist() == starts.tolist()


def cheapest(boxes: list[tuple[float, float]], least: int, most: int, size: float) -> float:
    """What the best of all ways to cut costs, each tried."""

    def cost(part: list[tuple[float, float]]) -> float:
        (x, y) = zip(*part, strict=True)
        return (max(x) - min(x) + size) * (max(y) - min(y) + size) * (len(part) + most)

    best = [0.0] + [float("inf")] * len(boxes)
    for stop in range(1, len(boxes) + 1):
        for k in range(1 if stop == len(boxes) else least, min(most, stop) + 1):
            best[stop] = min(best[stop], best[stop - k] + cost(boxes[stop - k : stop]))
    return best[-1]


@settings(max_examples=share(0.4))
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=9, max_size=40))
def test_split_is_optimal(points: list[tuple[int, int]]) -> None:
    from pqext.geo.kernels.cutting import cheapest_cuts

    lines = np.array([[x, x, y, y] for x, y in points], dtype=np.float64).T.copy()
    costs, starts = np.empty(len(points) + 1), np.empty(len(points) + 1, dtype=np.int64)
    cheapest_cuts(lines, 3.0, 3.0, 8.0, 4, 8, costs, starts)
    assert costs[-1] == pytest.approx(cheapest([(float(x), float(y)) for x, y in points], 4, 8, 3.0))


def test_part_ends_where_the_curve_jumps() -> None:
    left, right = GENERATOR.uniform(0, 1, (2, 700)), GENERATOR.uniform(100, 101, (2, 700))
    points = np.concatenate([left, right], axis=1)
    assert 700 in split_rows(points[[0, 0, 1, 1]], 64).tolist()
