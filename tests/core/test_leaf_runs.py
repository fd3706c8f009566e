"""Columns read in runs of rows: numbers in long runs of one value take few steps, other columns small ones."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from core import bombs

import pqext
from pqext.core.format.metadata import Type
from pqext.core.read import leaf_runs


def run_rows(data: bytes) -> list[int]:
    file = pqext.open(io.BytesIO(data))
    leaf = next(iter(file.shapes[0].leaves()))
    group = file.row_groups[0]
    return [run.rows for run in leaf_runs.iter_runs(file, group, leaf, group.chunk(leaf.node))]


@pytest.mark.parametrize("data", [bombs.nulls(Type.INT64, 3 << 20), bombs.looked_up(Type.INT64, bytes(8), 3 << 20)])
def test_numbers_in_long_runs_are_read_a_million_rows_at_a_time(data: bytes) -> None:
    assert run_rows(data) == [1 << 20] * 3


def test_long_texts_and_distinct_numbers_are_read_in_smaller_steps() -> None:
    assert max(run_rows(bombs.looked_up(Type.BYTE_ARRAY, b"\1\0\0\0x", 1 << 18))) == 1 << 16
    sink = io.BytesIO()
    pqext.write_table(pa.table({"n": range(200_000)}), sink)
    assert max(run_rows(sink.getvalue())) == 1 << 16


@pytest.mark.parametrize("memory", [4 << 20, 8 << 20])
def test_long_runs_are_verified_within_a_small_memory_limit(memory: int) -> None:
    sink = io.BytesIO()
    pqext.write_table(pa.table({"n": pa.repeat(7, 2_000_000)}), sink)
    report = pqext.verify(sink.getvalue(), limits=pqext.Limits(memory_bytes=memory))
    assert report.ok
    assert not report.faults
