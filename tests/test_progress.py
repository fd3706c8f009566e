"""Long calls report their steps to one kind of callback, from the first to the last."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest

import pqext
from pqext import variant
from pqext.core.base.progress import Progress

TABLE = pa.table({"id": range(300), "event": variant.parse_json(['{"a": 1}'] * 300)})


class Calls:
    """A callback that records its calls."""

    def __init__(self) -> None:
        self.finished: list[int] = []
        self.totals: set[int | None] = set()

    def __call__(self, finished: int, total: int | None, /) -> None:
        self.finished.append(finished)
        self.totals.add(total)

    def check(self, total: int | None, last: int) -> None:
        assert self.totals == {total}
        assert self.finished == sorted(set(self.finished))
        assert self.finished[-1] == last


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "events.parquet"
    pqext.write_table(TABLE, path, row_group_rows=100, shredding={"event": "a INT"})
    return path


def test_dataset_progress_counts_rows(tmp_path: Path) -> None:
    calls = Calls()
    pqext.write_dataset(TABLE, tmp_path / "table", progress=calls)
    calls.check(300, 300)
    stream = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=120))
    calls = Calls()
    pqext.write_dataset(stream, tmp_path / "stream", progress=calls)
    calls.check(None, 300)


def test_verify_progress_counts_column_chunks_of_each_check(path: Path) -> None:
    with pqext.open(path) as file:
        chunks = len(file.row_groups) * len(file.schema.leaves)
    calls = Calls()
    assert pqext.verify(path, progress=calls).ok
    calls.check(4 * chunks, 4 * chunks)
    assert len(calls.finished) > 4
    calls = Calls()
    assert pqext.verify(path, checks=["chunks"], columns=["id"], progress=calls).ok
    calls.check(3, 3)
    assert calls.finished == [1, 2, 3]


def test_recovery_progress_counts_row_groups(path: Path) -> None:
    calls = Calls()
    assert pqext.recover(path.read_bytes()[:-1], io.BytesIO(), progress=calls).rows == 300
    assert calls.finished == [1, 2, 3]
    assert calls.totals == {3}


def test_rewrite_progress_counts_rows(path: Path) -> None:
    calls = Calls()
    pqext.repair(path, io.BytesIO(), progress=calls)
    calls.check(300, 300)


def test_callback_error_aborts_a_save_without_files(tmp_path: Path) -> None:
    def stop(finished: int, total: int | None, /) -> None:
        raise KeyError("stop")

    callback: Progress = stop
    with pytest.raises(KeyError, match="stop"):
        pqext.write_dataset(TABLE, tmp_path / "stopped", progress=callback)
    assert not [file for file in (tmp_path / "stopped").rglob("*") if file.is_file()]
