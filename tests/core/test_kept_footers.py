"""A long footer is indexed once; what is kept of it never answers for other bytes."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pqext
from pqext.core.footer import reading


@pytest.fixture(autouse=True)
def _empty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(reading, "LEAST_INDEXED", 0)
    pqext.clear_cache()
    yield
    pqext.clear_cache()


def write(path: Path, first: int = 0, columns: int = 5) -> pa.Table:
    table = pa.table({f"c{at}": np.arange(first, first + 10) for at in range(columns)})
    pqext.write_table(table, path, row_group_rows=2, key_value_metadata={"k": "v"})
    return table


def test_reopened_file_is_indexed_once(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = write(path)
    with pqext.open(path) as first, pqext.open(path) as second:
        assert len(reading._footer_cache) == 1
        assert second.metadata.row_groups is not first.metadata.row_groups
        assert second.metadata == first.metadata
        assert second.read().equals(table)
        second.metadata.row_groups[0].num_rows = 7  # what one changes is not another's
        second.metadata.key_value_metadata[0].value = "other"  # type: ignore[index]
    with pqext.open(path) as third:
        assert third.metadata.row_groups[0].num_rows == 2
        assert third.metadata.key_value_metadata is not None
        assert "other" not in [pair.value for pair in third.metadata.key_value_metadata]


def test_changed_file_is_read_in_its_new_state(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    for first in range(0, 100, 10):
        table = write(path, first)
        os.utime(path, ns=(1, 1))  # nothing but the bytes tells
        with pqext.open(path) as file:
            assert file.read().equals(table)
            statistics = file.row_groups[0].chunk("c0").metadata.statistics
            assert statistics is not None
            assert statistics.min_value == first.to_bytes(8, "little")
    assert len(reading._footer_cache) == 1


def test_cached_bytes_are_bounded_and_can_be_released(tmp_path: Path) -> None:
    for at in range(20):
        write(tmp_path / f"{at}.parquet", at)
    before = pqext.set_cache_bytes(20_000)
    try:
        for at in range(20):
            pqext.open(tmp_path / f"{at}.parquet").close()
        held = sum(len(one.raw) for one in reading._footer_cache.values())
        assert 0 < 2 * held <= 20_000
        pqext.set_cache_bytes(0)
        pqext.open(tmp_path / "0.parquet").close()
        assert not reading._footer_cache
    finally:
        pqext.set_cache_bytes(before)


def test_limits_apply_to_cached_footers(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write(path)
    pqext.open(path).close()
    with pytest.raises(pqext.LimitError):
        pqext.open(path, limits=pqext.Limits(metadata_elements=10))


def test_in_memory_files_are_not_cached(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = write(path)
    with pqext.open(path.read_bytes()) as file:
        assert file.read().equals(table)
    assert not reading._footer_cache


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_child_does_not_wait_for_a_missing_thread(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write(path)
    pqext.open(path).close()
    with reading._footer_cache._lock:  # as another thread holds it
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(20, exit=True)  # rather than waiting for ever
            os._exit(pqext.open(path).num_rows)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 10
