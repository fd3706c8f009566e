"""Warnings name the line of the user's that led to them, whatever of the library lies between."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from core.columns import one
from core.raw_files import int64

import pqext
from pqext.core.base.errors import AnnotationWarning, CorruptDataWarning, warn
from pqext.core.format.metadata import DateType, LogicalType, Type


def test_doubtful_crs_warns_at_the_line_that_writes() -> None:
    table = pa.table({"g": pa.array([None], pa.binary())})
    with pytest.warns(UserWarning, match="'srid:7' is unknown") as found:
        pqext.write_table(table, io.BytesIO(), geometry={"g": "srid:7"})
    assert [one.filename for one in found] == [__file__]


def test_ignored_metadata_warns_at_the_line_that_opens_the_file() -> None:
    sink = io.BytesIO()
    pqext.write_table(pa.table({"g": [b""]}), sink, key_value_metadata={"geo": "no JSON"})
    with pytest.warns(AnnotationWarning) as found:
        pqext.open(sink)
    assert [one.filename for one in found] == [__file__]


def test_annotation_warnings_name_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "odd.parquet"
    path.write_bytes(one(Type.INT64, int64(7), 1, logicalType=LogicalType(DATE=DateType())))
    with pytest.warns(AnnotationWarning, match="DATE cannot annotate INT64") as read:
        pqext.read_table(path)
    with pytest.warns(AnnotationWarning, match="DATE cannot annotate INT64") as batches:
        list(pqext.open(path).iter_batches(batch_rows=1))
    pqext.write_table(pa.table({"g": [b""]}), path, key_value_metadata={"geo": "no JSON"})
    with pytest.warns(AnnotationWarning, match="the metadata 'geo' is ignored") as opened:
        pqext.open(path)
    pqext.write_table(pa.table({"a": [1]}), path, arrow_schema=False, key_value_metadata={"ARROW:schema": "no base64"})
    with pytest.warns(AnnotationWarning, match="ARROW:schema is ignored") as noted:
        _ = pqext.open(path).arrow_schema
    for found in (read, batches, opened, noted):
        assert [str(warning.message).startswith(f"{path}: ") for warning in found] == [True] * len(found)
        assert [warning.filename for warning in found] == [__file__] * len(found)


def test_corruption_warns_at_the_line_that_reads(tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    pqext.write_table(pa.table({"n": [1, 2, 3]}), path)
    held = bytearray(path.read_bytes())
    held[8] ^= 0xFF
    path.write_bytes(held)
    with pytest.warns(CorruptDataWarning) as found:
        assert len(pqext.open(path, on_corrupt="skip", threads=1).read()) == 0
    assert [one.filename for one in found] == [__file__]


def test_thread_without_user_code_still_warns() -> None:
    with pytest.warns(UserWarning, match="so it is") as found, ThreadPoolExecutor(1) as threads:
        threads.submit(warn, "so it is", UserWarning).result()
    assert len(found) == 1
