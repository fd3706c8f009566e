"""Row groups are encoded while those before are written and those behind taken: the same files, and no loose ends."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pqext
from pqext.core.base.threads import Workers
from pqext.core.write import row_group_writer as writing

ROWS, GROUP = 200_000, 20_000
TABLE = pa.table({"n": np.random.default_rng(0).integers(0, 1 << 40, ROWS), "x": np.arange(ROWS) / 8})


class Batches:
    """A stream of batches, which calls ``fail`` after so many."""

    schema = TABLE.schema

    def __init__(self, after: int = 1 << 30, fail: Any = None) -> None:
        self.after, self.fail = after, fail

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(TABLE.to_batches(max_chunksize=7_000)):
            if number == self.after:
                self.fail()
            yield batch


def written(threads: int, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(Batches(), out, threads=threads, row_group_rows=GROUP, **options)
    return out.getvalue()


@pytest.mark.parametrize("options", [{}, {"second_encodings": {"n": "plain"}}, {"bloom_filters": True}], ids=str)
def test_two_threads_write_the_same_file_as_one(options: dict[str, Any]) -> None:
    found = written(2, **options)
    assert found == written(1, **options)
    with pqext.open(found) as file:
        assert [group.num_rows for group in file.row_groups] == [GROUP] * (ROWS // GROUP)
        assert file.read() == TABLE


def test_failing_source_leaves_no_file(tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError("the source ends")

    with pytest.raises(OSError, match="the source ends"):
        pqext.write_table(Batches(20, fail), tmp_path / "t.parquet", threads=2, row_group_rows=GROUP)
    assert list(tmp_path.iterdir()) == []


def test_error_is_raised_by_the_call_with_the_bad_row(tmp_path: Path) -> None:
    good, bad = TABLE.slice(0, GROUP), pa.table({"n": np.arange(GROUP)[::-1], "x": np.zeros(GROUP)})
    with pqext.ParquetWriter(
        tmp_path / "t.parquet", TABLE.schema, threads=2, row_group_rows=GROUP, sorting=["n"]
    ) as writer:
        writer.write_table(good.sort_by("n"))
        with pytest.raises(ValueError, match="row group 1 is not sorted by 'n'"):
            writer.write_table(bad)
        with pytest.raises(ValueError, match="closed"):
            writer.write_table(good)
    assert list(tmp_path.iterdir()) == []


def test_value_that_cannot_be_stored_raises_in_its_own_call(tmp_path: Path) -> None:
    schema = pa.schema([("t", pa.time32("s"))])
    good, bad = pa.array([1] * GROUP, pa.int32()), pa.array([90_000] * GROUP, pa.int32())
    with pqext.ParquetWriter(tmp_path / "t.parquet", schema, threads=2, row_group_rows=GROUP) as writer:
        writer.write_table(pa.table([good.view(pa.time32("s"))], schema=schema))
        with pytest.raises(ValueError, match="between 00:00 and 24:00"):
            writer.write_table(pa.table([bad.view(pa.time32("s"))], schema=schema))
    assert list(tmp_path.iterdir()) == []


def test_failing_target_leaves_no_pending_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the row group that could not be written nor the one that was begun meanwhile."""
    made: list[Workers] = []

    class Noted(Workers):
        def __init__(self, threads: int, jobs: int) -> None:
            super().__init__(threads, jobs)
            made.append(self)

    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError("no space left")

    monkeypatch.setattr(writing, "Workers", Noted)
    with pytest.raises(OSError, match="no space left"):
        pqext.write_table(Batches(), Full(), threads=2, row_group_rows=GROUP)
    assert len(made) == 2
    assert not any(workers._pending for workers in made)


def test_threads_may_share_a_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call of one waits for that of another: within it, it would cut its row group short."""
    taken, others, early = threading.Event(), [], []

    class Shared(io.BytesIO):
        def write(self, data: Any) -> int:
            if not others:
                others.append(threading.Thread(target=writer.write_table, args=(TABLE.slice(GROUP),)))
                monkeypatch.setattr(writer, "_add_table", lambda table: (taken.set(), take(table)))
                others[0].start()
                early.append(taken.wait(0.1))
            return super().write(data)

    out = Shared()
    writer = pqext.ParquetWriter(out, TABLE.schema, threads=2, row_group_rows=GROUP)
    take = writer._add_table
    writer.write_table(TABLE.slice(0, GROUP))
    others[0].join()
    writer.close()
    assert early == [False]
    assert pqext.read_table(out.getvalue()) == TABLE
