"""Planning many files of a store that answers late: requests overlap, and what is held does not grow with the files."""

from __future__ import annotations

import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col
from pqext.core.base.errors import CorruptDataWarning, CorruptFileError

pytest.importorskip("fsspec")
from fsspec.implementations.local import LocalFileSystem

FILES = 160
LATENCY = 0.005


class Late(LocalFileSystem):  # type: ignore[misc]
    """Local files, each answer late, which counts the requests that are under way."""

    protocol = "late"
    local_file = False
    async_impl = True
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.under_way = self.most = self.answered = 0
        self.lock = threading.Lock()

    def cat_file(self, path: str, start: Any = None, end: Any = None, **keywords: Any) -> Any:
        with self.lock:
            self.under_way += 1
            self.answered += 1
            self.most = max(self.most, self.under_way)
        time.sleep(LATENCY * (1 + self.answered % 3))  # later ones overtake
        with self.lock:
            self.under_way -= 1
        return super().cat_file(path, start=start, end=end, **keywords)


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """Files of one row group, with a footer that names the file in some 20 kB of text."""
    for number in range(FILES):
        table = pa.table({"id": range(number * 10, number * 10 + 10)})
        table = table.replace_schema_metadata({"note": f"{number:03} " * 5_000})
        pq.write_table(table, tmp_path / f"{number:04}.parquet")
    return [str(tmp_path / f"{number:04}.parquet") for number in range(FILES)]


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    before = pqext.set_cache_bytes(0)
    yield
    pqext.set_cache_bytes(before)


def test_footers_of_a_slow_store_are_fetched_concurrently_in_order(paths: list[str]) -> None:
    store = Late()
    tasks = pqext.scan(paths, filter=col("id") == 777, filesystem=store).plan()
    assert [task.path for task in tasks] == [f"late://{path.lstrip('/')}" for path in paths]
    assert [number for number, task in enumerate(tasks) if task.kept_row_groups] == [77]
    assert 4 <= store.most <= 16  # requests in flight together
    assert store.answered <= 3 * FILES


def test_planning_memory_does_not_grow_with_the_footers(paths: list[str]) -> None:
    def peak(count: int) -> int:
        tracemalloc.start()
        pqext.scan(paths[:count], filter=col("id") == 5, filesystem=Late()).plan()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(4)
    few, many = peak(FILES // 4), peak(FILES)
    footers = sum(pq.read_metadata(path).serialized_size for path in paths)
    assert footers > 4 << 20
    assert many - few < footers // 8  # of three quarters of the footers


def test_first_corrupt_file_of_a_slow_store_is_named_in_any_order(paths: list[str]) -> None:
    for number in (60, 21, 90):
        Path(paths[number]).write_bytes(b"PAR1" + bytes(100))
    for _ in range(2):
        with pytest.raises(CorruptFileError, match=r"3 files cannot be opened.*0021.*0060.*0090") as caught:
            pqext.scan(paths, filter=col("id") == 5, filesystem=Late()).plan()
        assert str(caught.value.path).endswith("0021.parquet")
    with pytest.warns(CorruptDataWarning, match="3 files are not Parquet and were skipped"):
        left = pqext.scan(paths, filter=col("id") == 5, filesystem=Late(), on_invalid="skip").plan()
    assert len(left) == FILES - 3
