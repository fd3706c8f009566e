"""Loggers below ``pqext`` record retries, fallbacks and ignored metadata, and nothing about ordinary reads."""

from __future__ import annotations

import logging
import os
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import col
from pqext.core.base.errors import SourceError
from pqext.core.io.sources import remote
from pqext.core.read.column import ColumnReader
from pqext.core.read.pages.table_decoder import FallbackRequired, TableDecoder
from pqext.dataset.writing import commit


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level]


def test_retries_are_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "BACKOFF", 0.0)
    store: Any = SimpleNamespace(secrets=("SECRET",))

    def attempt(failed: int) -> str:
        if failed < 2:
            raise ConnectionResetError("reset of SECRET")
        return "data"

    with caplog.at_level(logging.INFO, "pqext"):
        assert remote.call_with_retries(store, "s3://b/x", "9 bytes at 4", attempt) == "data"
    assert [text[:13] for text in messages(caplog, logging.INFO)] == ["retry 1 of 3 ", "retry 2 of 3 "]
    assert "9 bytes at 4 of s3://b/x" in caplog.text
    assert "SECRET" not in caplog.text


def test_pauses_before_retries_double_from_a_tenth_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(remote.time, "sleep", pauses.append)
    store: Any = SimpleNamespace(secrets=())

    def attempt(failed: int) -> None:
        raise ConnectionResetError

    with pytest.raises(SourceError, match="9 bytes at 4 could not be fetched in 4 attempts"):
        remote.call_with_retries(store, "s3://b/x", "9 bytes at 4", attempt)
    for pause, documented in zip(pauses, (0.1, 0.2, 0.4), strict=True):
        assert documented / 2 <= pause <= documented * 1.5


def test_every_ignored_filter_is_logged_although_python_warns_once(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    path = tmp_path / "ids.parquet"
    pqext.write_table(pa.table({"id": [1, 5]}), path, bloom_filters={"id": True}, row_group_rows=1)
    data = bytearray(path.read_bytes())
    with pqext.open(path) as file:
        for group in file.metadata.row_groups:
            about = group.columns[0].meta_data
            start = 0 if about is None else about.bloom_filter_offset or 0
            data[start : start + 4] = b"\xff" * 4
    with caplog.at_level(logging.INFO, "pqext"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert pqext.scan(bytes(data), filter=col("id").isin([1, 5])).count() == 2
    logged = messages(caplog, logging.INFO)
    assert all(text.startswith("DamagedIndexWarning: ignored a Bloom filter") for text in logged)
    assert {text.partition("[")[2][:11] for text in logged} == {"row group 0", "row group 1"}


def test_fallback_to_single_pages_is_logged(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decline(*_: object, **__: object) -> None:
        raise FallbackRequired

    path = tmp_path / "ids.parquet"
    pqext.write_table(pa.table({"id": range(100_000)}), path)
    monkeypatch.setattr(TableDecoder, "decode_next", decline)
    assert ColumnReader.__module__ == "pqext.core.read.column"
    with caplog.at_level(logging.DEBUG, "pqext"):
        assert pqext.read_table(path)["id"].to_pylist() == [*range(100_000)]
    (text,) = messages(caplog, logging.DEBUG)
    assert text == "column id: decoding the chunk at 4 page by page: unusual pages"
    assert caplog.records[0].name == "pqext.core.read.column"


def test_completed_and_removed_saves_are_logged(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    pqext.write_dataset(pa.table({"id": [1]}), tmp_path)
    folder = tmp_path / f"{commit.TEMPORARY}job"
    folder.mkdir()
    os.utime(folder, (0, 0))
    with caplog.at_level(logging.INFO, "pqext"):
        commit.clean(tmp_path)
    assert messages(caplog, logging.INFO) == [f"{tmp_path}: removing the files of the killed save {folder.name}"]


def test_ordinary_reads_and_writes_log_no_message(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    with caplog.at_level(logging.DEBUG):
        pqext.write_table(pa.table({"id": range(1000)}), tmp_path / "a.parquet", row_group_rows=100)
        assert pqext.scan(tmp_path, filter=col("id") > 500).count() == 499
    assert caplog.records == []
