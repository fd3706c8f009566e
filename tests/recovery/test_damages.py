"""Drawn damages of drawn files: what is recovered is what was there, and what was not touched is recovered."""

from __future__ import annotations

import io
import random
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from recovery import damaged_files

import pqext

DAMAGES = 200
BATCH = 25


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(BATCH, DAMAGES, BATCH))]
)
def test_recovered_rows_are_original_and_undamaged_rows_are_recovered(first: int) -> None:
    ambiguous = 0
    for seed in range(first, first + BATCH):
        draw = random.Random(seed)
        drawn = damaged_files.file(draw)
        what, data, untouched, _ = damaged_files.damage(draw, drawn)
        told = f"{seed}: {drawn.told}, {what}"
        made = io.BytesIO()
        report = pqext.recover(data, made, schema=drawn.schema)
        assert report.written == bool(made.getvalue()), told
        known: list[int | None] = []
        if report.written:
            assert pqext.verify(made.getvalue()).ok, told
            found = pq.read_table(io.BytesIO(made.getvalue())).cast(drawn.schema)
            assert found.num_rows == report.rows, told
            known = damaged_files.places(found, report, drawn)
        if drawn.has_checksums or what.startswith(("cut", "front")):
            assert None not in known, told
            assert known == sorted(set(known), key=lambda at: at or 0), told
        left = set(untouched) - set(known)
        assert not left or damaged_files.is_ambiguous(report), told
        ambiguous += bool(left)
    assert ambiguous <= 2


def test_duckdb_reads_recovered_files(tmp_path: Path) -> None:
    read = 0
    for seed in range(20):
        draw = random.Random(seed)
        drawn = damaged_files.file(draw)
        _, data, _, _ = damaged_files.damage(draw, drawn)
        report = pqext.recover(data, f"{tmp_path}/{seed}.parquet", schema=drawn.schema)
        if report.written:
            found = duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/{seed}.parquet'").fetchall()
            assert found == [(report.rows,)]
            rows = duckdb.sql(f"FROM '{tmp_path}/{seed}.parquet'").to_arrow_table()
            assert rows.to_pylist() == pq.read_table(f"{tmp_path}/{seed}.parquet").to_pylist()
            read += 1
    assert read > 10
