"""Rows sorted beyond the memory, against Python's sort."""

from __future__ import annotations

import os
from math import isnan, nan
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext.tables.clustering import add_keys, sorted_batches
from reference.effort import share

KEYS: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 0, 0, 0, 0, 0, 0, 0, -3, 5, None],
    pa.float64(): [None, nan, 1.5, -2.0, 0.0, float("inf")],
    pa.string_view(): ["", "a", "b", "zz", None],
    pa.int32(): [*range(-1000, 1000)],
    pa.dictionary(pa.int8(), pa.string()): ["x", "y"],
    pa.date32(): [7],
}


def keyed_batches(seed: int, types: list[pa.DataType]) -> list[pa.RecordBatch]:
    """Random batches with keys of these types, whose column of text has another dictionary in each batch."""
    random = Random(seed)
    batches, start = [], 0
    for rows in (random.choice((0, 1, 80, 150)) for _ in range(4)):
        texts = pa.array(random.choices("abc", k=rows), pa.string())
        columns = {"id": pa.array(range(start, start + rows), pa.int64()), "text": texts.dictionary_encode()}
        keys = [pa.array(random.choices(KEYS[type], k=rows), type) for type in types]
        batches.append(add_keys(pa.record_batch(columns), keys))
        start += rows
    return batches


def order_key(value: Any) -> tuple[int, Any]:
    """Place NaN after numbers, and null last."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return (1 + (value is None), 0)
    return (0, value)


@settings(max_examples=share(1.0))
@given(
    st.integers(0, 2**32), st.lists(st.sampled_from([*KEYS]), min_size=1, max_size=3),
    st.sampled_from([600, 3000, 1 << 30]),
)
def test_rows_are_in_the_order_of_all_keys(seed: int, types: list[pa.DataType], memory: int) -> None:
    batches = keyed_batches(seed, types)
    rows = [row for batch in batches for row in batch.to_pylist()]
    with sorted_batches(batches, len(types), memory) as found:
        result = [row for batch in found for row in batch.to_pylist()]
    assert sorted(row["id"] for row in result) == list(range(len(rows)))
    assert all(row == {"id": row["id"], "text": rows[row["id"]]["text"]} for row in result)
    order = [[order_key(value) for value in list(rows[row["id"]].values())[2:]] for row in result]
    assert order == sorted(order)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files in /proc")
def test_few_files_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sort of 200 times its memory divides ranges again instead of opening thousands of files."""
    opened: set[int] = set()
    monkeypatch.setattr(
        "pqext.tables.clustering.take_rows",
        lambda batch, rows: (opened.add(len(os.listdir("/proc/self/fd"))), batch.take(pa.array(rows)))[1],
    )
    before = len(os.listdir("/proc/self/fd"))
    values = pa.array(Random(0).sample(range(1_500), 1_500))
    batch = add_keys(pa.record_batch({"id": values}), [values])
    with sorted_batches([batch.slice(start, 100) for start in range(0, 1_500, 100)], 1, 120) as found:
        assert [row for part in found for row in part["id"].to_pylist()] == list(range(1_500))
    assert max(opened) - before < 250


def test_lists_are_no_keys() -> None:
    with pytest.raises(TypeError, match="cannot be sorted by values of the type list"):
        add_keys(pa.record_batch({"id": [1]}), [pa.array([[1]])])


@pytest.mark.parametrize("type", [*KEYS], ids=str)
def test_ranges_of_each_type(type: pa.DataType) -> None:
    test_rows_are_in_the_order_of_all_keys.hypothesis.inner_test(1, [type, pa.int32()], 600)
