"""A store that is out of date, or of other files, never costs a row."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest

import pqext
from pqext import col, skipping
from pqext.skipping import MinMax, NullCount, ValueList

C = col("c")
LONG_AGO = 1_600_000_000


def put(path: Path, *values: int, at: float = LONG_AGO) -> None:
    """A file with the column ``c``, last changed ``at`` some second."""
    path.parent.mkdir(exist_ok=True)
    pqext.write_table(pa.table({"c": pa.array(values, pa.int64())}), path)
    os.utime(path, (at, at))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of two files: one with small values, one with large ones."""
    put(tmp_path / "table" / "a.parquet", 1, 2)
    put(tmp_path / "table" / "b.parquet", 101, 102)
    skipping.build(tmp_path / "table", [MinMax("c"), NullCount("c")], tmp_path / "store")
    return tmp_path / "store"


def scanned(tmp_path: Path, filter: object, store: object) -> tuple[list[int], int]:
    """The values found, and how many files are refused."""
    scan = pqext.scan(tmp_path / "table", filter=filter, skipping=store)
    values = sorted(row["c"] for row in scan.to_table().to_pylist())
    return values, sum(task.prune_reason is not None for task in scan.plan())


@pytest.mark.spec("skipping.version")
def test_only_current_facts_exclude_a_file(tmp_path: Path, store: Path) -> None:
    assert scanned(tmp_path, C > 50, store) == ([101, 102], 1)
    assert scanned(tmp_path, C < 50, store) == ([1, 2], 1)
    put(tmp_path / "table" / "a.parquet", 103, 104, at=LONG_AGO + 1)  # of the same size
    assert scanned(tmp_path, C > 50, store) == ([101, 102, 103, 104], 0)
    put(tmp_path / "table" / "c.parquet", 3)
    assert scanned(tmp_path, C > 200, store) == ([], 1)


@pytest.mark.spec("skipping.version")
def test_file_of_another_size_with_equal_time_is_read(tmp_path: Path, store: Path) -> None:
    put(tmp_path / "table" / "a.parquet", *range(1000, 2000))
    assert scanned(tmp_path, C > 1998, store) == ([1999], 1)


@pytest.mark.spec("skipping.table")
def test_store_of_another_table_is_rejected_or_ignored(tmp_path: Path, store: Path) -> None:
    put(tmp_path / "other" / "a.parquet", 1, 2)
    with pytest.raises(ValueError, match=r"/table, which contains none of the files"):
        pqext.scan(tmp_path / "other", filter=C > 5, skipping=store).count()
    ignoring = skipping.open_store(store, on_foreign="ignore")
    assert pqext.scan(tmp_path / "other", filter=C < 5, skipping=ignoring).count() == 2


def test_store_is_not_used_if_statistics_are_untrusted(tmp_path: Path, store: Path) -> None:
    scan = pqext.scan(tmp_path / "table", filter=C > 50, skipping=store, trust_statistics=False)
    assert [task.prune_reason for task in scan.plan()] == [None, None]


def test_excluded_files_are_not_opened(tmp_path: Path, store: Path) -> None:
    scan = pqext.scan(tmp_path / "table", filter=C > 50, skipping=store)
    assert scan.count() == 2
    metrics = scan.metrics
    assert metrics is not None
    assert metrics.files == 1
    assert "skips by skipping store: 1 file" in scan.explain()
    assert "c > 50 is true for no row, by the index minmax of c" in scan.explain()


def test_unknown_column_is_an_error_even_if_every_file_is_excluded(tmp_path: Path, store: Path) -> None:
    with pytest.raises(ValueError, match="wrong"):
        pqext.scan(tmp_path / "table", filter=(C > 500) & (col("wrong") == 1), skipping=store).count()


def test_folder_that_is_not_a_store_is_rejected(tmp_path: Path) -> None:
    put(tmp_path / "table" / "a.parquet", 1)
    with pytest.raises(TypeError, match="data-skipping store or its path"):
        pqext.scan(tmp_path / "table", skipping=5)
    with pytest.raises(FileNotFoundError, match="no data-skipping store"):
        pqext.scan(tmp_path / "table", filter=C > 1, skipping=tmp_path / "nowhere").count()


@pytest.mark.spec("skipping.version")
def test_open_store_reflects_later_changes(tmp_path: Path, store: Path) -> None:
    opened = skipping.open_store(store)
    assert scanned(tmp_path, C > 50, opened) == ([101, 102], 1)
    put(tmp_path / "table" / "a.parquet", 3, 4, at=LONG_AGO + 1)
    assert scanned(tmp_path, C > 50, opened) == ([101, 102], 0)
    skipping.refresh(tmp_path / "table", store)
    assert scanned(tmp_path, C > 50, opened) == ([101, 102], 1)
    skipping.build(tmp_path / "table", [NullCount("c")], store, overwrite=True)
    assert scanned(tmp_path, C > 50, opened) == ([101, 102], 0)
    assert scanned(tmp_path, C.is_null(), opened) == ([], 2)


@pytest.mark.spec("skipping.sound")
@pytest.mark.spec("keep.stored")
def test_values_computed_from_a_widened_type_are_not_evaluated_by_a_store(tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    pqext.write_table(pa.table({"c": pa.array([3], pa.int32())}), tmp_path / "table" / "a.parquet")
    pqext.write_table(pa.table({"c": [0.5]}), tmp_path / "table" / "b.parquet")
    skipping.build(tmp_path / "table", [ValueList("c")], tmp_path / "store")
    for filter, skipped in ((C.cast("string") == "3.0", 0), (C == 0.5, 1)):
        scan = pqext.scan(tmp_path / "table", filter=filter, schema="union", skipping=tmp_path / "store")
        assert scan.count() == 1
        assert sum(task.prune_reason is not None for task in scan.plan()) == skipped


@pytest.mark.skipif(sys.platform != "linux", reason="paths are text elsewhere")
def test_files_with_non_text_paths_are_read_but_not_indexed(tmp_path: Path, store: Path) -> None:
    odd = os.fsdecode(b"\xff.parquet")
    put(tmp_path / "table" / odd, 3)
    assert scanned(tmp_path, C == 3, store) == ([3], 2)
    assert scanned(tmp_path, C == 101, store) == ([101], 1)
    ((name, reason),) = skipping.refresh(tmp_path / "table", store).failed
    assert name.endswith(odd)
    assert "not valid Unicode and cannot be stored: rename the file" in reason
    (tmp_path / "table").rename(tmp_path / odd)
    with pytest.raises(ValueError, match="not valid Unicode and cannot identify a store: rename the folder"):
        skipping.build(tmp_path / odd, [MinMax("c")], tmp_path / "other")


def test_table_may_be_a_whole_bucket() -> None:
    files = fsspec.filesystem("memory")
    for at in (1, 2):
        sink = io.BytesIO()
        pqext.write_table(pa.table({"c": [at]}), sink)
        files.pipe(f"/whole-bucket/{at}.parquet", sink.getvalue())
    table, store = "memory://whole-bucket", "memory://store-of-a-bucket"
    skipping.build(table, [MinMax("c")], store)
    scan = pqext.scan(table, filter=C == 2, skipping=store)
    assert (scan.count(), [task.prune_reason is None for task in scan.plan()]) == (1, [False, True])
    assert skipping.refresh(table, store).kept == 2


def test_store_is_not_replaced_by_an_empty_one(tmp_path: Path, store: Path) -> None:
    for path in (tmp_path / "table").iterdir():
        data = path.read_bytes()
        path.write_bytes(data[:8] + b"\xff" * 12 + data[20:])  # which the footer does not show
    with pytest.raises(ValueError, match="no object can be indexed, so the store is unchanged"):
        skipping.build(tmp_path / "table", [skipping.ValueList("c")], store, overwrite=True)
    assert [str(one) for one in skipping.open_store(store).indexes] == ["minmax of c", "nulls of c"]
