"""Warnings name the line of the user's that led to them, whatever of the library lies between."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import pqext
from pqext.core.errors import AnnotationWarning, CorruptDataWarning
from pqext.core.warn import warn


def test_a_doubtful_crs_names_the_line_that_writes() -> None:
    table = pa.table({"g": pa.array([None], pa.binary())})
    with pytest.warns(UserWarning, match="nobody knows") as found:
        pqext.write_table(table, io.BytesIO(), geometry={"g": "ESPG:4326"})
    assert [one.filename for one in found] == [__file__]


def test_metadata_that_are_passed_over_name_the_line_that_opens() -> None:
    sink = io.BytesIO()
    pqext.write_table(pa.table({"g": [b""]}), sink, key_value_metadata={"geo": "no JSON"})
    with pytest.warns(AnnotationWarning) as found:
        pqext.open(sink)
    assert [one.filename for one in found] == [__file__]


def test_damage_names_the_line_that_reads(tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    pqext.write_table(pa.table({"n": [1, 2, 3]}), path)
    held = bytearray(path.read_bytes())
    held[8] ^= 0xFF
    path.write_bytes(held)
    with pytest.warns(CorruptDataWarning) as found:
        assert len(pqext.open(path, on_corrupt="skip", threads=1).read()) == 0
    assert [one.filename for one in found] == [__file__]


def test_a_thread_without_a_line_of_the_users_warns_too() -> None:
    with pytest.warns(UserWarning, match="so it is") as found, ThreadPoolExecutor(1) as threads:
        threads.submit(warn, "so it is", UserWarning).result()
    assert len(found) == 1
