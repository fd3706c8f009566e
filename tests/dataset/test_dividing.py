"""The last row groups of a file are divided where threads would wait: each row once, in its place."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col
from pqext.dataset import scan_executor
from pqext.dataset.execution import parallel_decoding, stages
from pqext.dataset.execution.parallel_decoding import divide_plans
from pqext.dataset.planning.plan import RowGroupPlan

ROWS = 9000


def written(**options: object) -> bytes:
    chance = np.random.default_rng(5)
    table = pa.table({"k": chance.random(ROWS), "word": [f"word {n % 7}" for n in range(ROWS)], "i": np.arange(ROWS)})
    out = io.BytesIO()
    pqext.write_table(table, out, **{"row_group_rows": 3000, "page_rows": 250, "compression": "zstd", **options})
    return out.getvalue()


FILE = written()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "AHEAD_BYTES", 0)
    monkeypatch.setattr(parallel_decoding, "_FEWEST_ROWS", 1000)


def parts(data: object, threads: int, filter: object = None) -> list[RowGroupPlan]:
    """What becomes of the plans of a file's row groups."""
    with pqext.open(data) as file:
        plans = pqext.scan(data, filter=col("k") < 0.5 if filter is None else filter).plan(pages=True)[0].row_groups
        return list(divide_plans(plans, file, threads))


def rows_of(plan: RowGroupPlan) -> list[int]:
    return [row for one in plan.rows or [range(plan.num_rows)] for row in one]


@pytest.mark.spec("querying.divided")
@pytest.mark.parametrize(
    ("threads", "counts"), [(1, [1, 1, 1]), (2, [1, 1, 2]), (3, [1, 1, 1]), (5, [1, 1, 1]), (6, [2, 2, 2])]
)
def test_idle_threads_get_parts_of_the_last_row_groups(threads: int, counts: list[int]) -> None:
    found = parts(FILE, threads)
    assert [sum(plan.index == group for plan in found) for group in range(3)] == counts
    for group in range(3):
        of_group = [rows_of(plan) for plan in found if plan.index == group]
        assert [row for part in of_group for row in part] == list(range(3000))
        assert all(before[-1] // 250 < after[0] // 250 for before, after in pairwise(of_group))  # between pages


@pytest.mark.spec("querying.divided")
def test_parts_have_equal_numbers_of_unpruned_rows() -> None:
    found = parts(FILE, 2, (col("i") >= 7000) & (col("k") < 0.5))
    assert [(plan.index, len(rows_of(plan))) for plan in found if plan.prune_reason is None] == [(2, 1000), (2, 1000)]


@pytest.mark.spec("querying.divided")
def test_row_groups_without_page_index_or_cost_are_not_divided(tmp_path: Path) -> None:
    assert all(plan.rows is None for plan in parts(written(row_group_rows=900), 3))
    out = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(FILE)), out, row_group_size=ROWS)
    assert len(parts(out.getvalue(), 2)) == 1
    fsspec.filesystem("memory").pipe_file("/divided.parquet", FILE)
    assert [plan.rows for plan in parts("memory://divided.parquet", 2)] == [None, None, None]


@pytest.mark.spec("querying.divided", "querying.late")
@pytest.mark.parametrize("share", [0.0005, 0.4, 0.95])
@pytest.mark.parametrize("groups", [ROWS, 3000])
def test_divided_rows_are_returned_once_and_in_order(share: float, groups: int) -> None:
    data = written(row_group_rows=groups)
    whole = pq.read_table(io.BytesIO(data))
    expected = whole.filter(pc.less(whole["k"], share))
    for threads in (1, 2, 4):
        scan = pqext.scan(data, filter=col("k") < share, threads=threads)
        assert scan.to_table().equals(expected)
        assert scan.count() == expected.num_rows


def test_threads_decode_only_if_enough_bytes_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    group = pq.read_metadata(io.BytesIO(FILE)).row_group(0)
    size = sum(group.column(index).total_compressed_size for index in range(3))
    calls: list[int] = []

    def decode(*arguments: Any) -> Any:
        calls.append(1)
        return parallel_decoding.decode_in_parallel(*arguments)

    monkeypatch.setattr(stages, "decode_in_parallel", decode)
    monkeypatch.setattr(stages, "AHEAD_BYTES", size + 1)
    monkeypatch.setattr(scan_executor, "_FEW_ROWS", 0)
    numbers = list(range(ROWS))
    for filter, expected, in_parallel in (
        (col("i") == 3100, [3100], False), (col("i") < 2999, numbers[:2999], False),
        (col("word") != "none", numbers, True),
    ):  # fmt: skip
        calls.clear()
        assert pqext.read_table(FILE, filter=filter, threads=2)["i"].to_pylist() == expected
        assert bool(calls) is in_parallel, filter
    consumed = iter(parts(FILE, 1))
    with pqext.open(FILE) as file:
        assert parallel_decoding.has_min_bytes(consumed, file, size)[0]
    assert [plan.index for plan in consumed] == [1, 2]  # later row groups are not planned yet
