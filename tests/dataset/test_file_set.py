"""Files that are no Parquet, that vanish, and that are many."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col
from pqext.core.base.errors import CorruptDataWarning, CorruptFileError
from pqext.dataset.files import file_set


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Three files of Parquet among an empty, a truncated and a text file."""
    for number in range(3):
        pq.write_table(pa.table({"a": [number, number + 10]}), tmp_path / f"{number}.parquet")
    (tmp_path / "0a.parquet").touch()
    (tmp_path / "1a.parquet").write_bytes((tmp_path / "1.parquet").read_bytes()[:-20])
    (tmp_path / "2a.txt").write_text("read me first, please")
    return tmp_path


@pytest.mark.parametrize("rule", [None, "union"])
@pytest.mark.parametrize("run", ["to_table", "count", "plan", "explain"])
def test_files_that_are_not_parquet_are_one_error(mixed: Path, rule: Any, run: str) -> None:
    with pytest.raises(CorruptFileError, match="3 files cannot be opened as Parquet") as caught:
        getattr(pqext.scan(mixed, schema=rule), run)()
    for name in ("0a.parquet", "1a.parquet", "2a.txt", 'on_invalid="skip"'):
        assert name in str(caught.value)
    assert caught.value.path == str(mixed / "0a.parquet")


@pytest.mark.parametrize("rule", [None, "union"])
def test_files_that_are_not_parquet_are_skipped_on_request(mixed: Path, rule: Any) -> None:
    found = pqext.scan(mixed, schema=rule, on_invalid="skip")
    with pytest.warns(CorruptDataWarning, match=r"3 files are not Parquet and were skipped: .*0a.*1a.*2a"):
        assert found.to_table()["a"].to_pylist() == [0, 10, 1, 11, 2, 12]
    with pytest.warns(CorruptDataWarning):
        assert found.filter(col("a") > 10).count() == 2
    with pytest.warns(CorruptDataWarning):
        assert [task.path[-9:] for task in found.plan()] == ["0.parquet", "1.parquet", "2.parquet"]
    with pytest.warns(CorruptDataWarning, match="1 file is not Parquet"):
        assert found.head(3)["a"].to_pylist() == [0, 10, 1]
    assert found.head(2).num_rows == 2  # the files behind are not looked at


def test_scan_with_all_files_skipped_has_no_schema(mixed: Path) -> None:
    for rule in (None, "union"):
        with (
            pytest.warns(CorruptDataWarning),
            pytest.raises(ValueError, match="none of the files is Parquet"),
        ):
            pqext.scan(mixed / "*a.*", schema=rule, on_invalid="skip").to_table()


def test_on_invalid_option_is_checked(mixed: Path) -> None:
    with pytest.raises(ValueError, match='on_invalid must be "raise" or "skip"'):
        pqext.scan(mixed, on_invalid="ignore")


def test_file_removed_after_planning_is_named(mixed: Path) -> None:
    found = pqext.scan(mixed / "?.parquet")
    (mixed / "1.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"removed after the scan had listed it.*1\.parquet"):
        found.to_table()


def test_corruption_within_a_file_is_never_skipped_with_on_invalid(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    data = bytearray((tmp_path / "1.parquet").read_bytes())
    data[4:40] = b"\xff" * 36
    (tmp_path / "1.parquet").write_bytes(data)
    with pytest.raises(CorruptFileError):
        pqext.read_table(tmp_path, on_invalid="skip")


def test_remote_files_are_opened_concurrently_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        pq.write_table(pa.table({"a": [number]}), tmp_path / f"{number:02}.parquet")
    lock, open_now, most = threading.Lock(), 0, 0
    barrier = threading.Barrier(4, timeout=60)
    files = []

    class File(pqext.ParquetFile):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            nonlocal open_now, most
            if len(files) < 4:
                files.append(None)
                barrier.wait()  # only files opened at once get past it
            super().__init__(*arguments, **keywords)
            with lock:
                open_now += 1
                most = max(most, open_now)

        def close(self) -> None:
            nonlocal open_now
            with lock:
                open_now -= 1
            super().close()

    monkeypatch.setattr(file_set, "ParquetFile", File)
    monkeypatch.setattr(file_set, "_is_local", lambda source: False)
    assert pqext.read_table(tmp_path)["a"].to_pylist() == list(range(40))
    assert 4 <= most <= 17
    assert open_now == 0


def test_number_of_open_files_is_bounded(tmp_path: Path) -> None:
    for number in range(150):
        pq.write_table(pa.table({"a": [number] * 3}), tmp_path / f"{number:02}.parquet")
    handles = Path("/proc/self/fd")
    if not handles.is_dir():
        pytest.skip("open files are counted by /proc")
    gc.collect()  # what other tests have left open
    before = len(list(handles.iterdir()))
    for rule in (None, "union"):
        most = 0
        for _ in pqext.scan(tmp_path, schema=rule):
            most = max(most, len(list(handles.iterdir())))
        assert most <= before + 70
    assert len(list(handles.iterdir())) == before


def test_files_are_opened_one_by_one_under_a_low_limit(tmp_path: Path) -> None:
    for number in range(120):
        pqext.write_table(pa.table({"x": [number]}), tmp_path / f"{number:03}")
    assert pqext.scan(tmp_path).count() == 120  # which starts the threads
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.dup(0)
    os.close(probe)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe + 4, hard))
    try:
        assert pqext.scan(tmp_path).to_table()["x"].to_pylist() == [*range(120)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_summary_plans_all_files_from_one_footer(tmp_path: Path) -> None:
    for number in range(20):
        pq.write_table(pa.table({"a": [number]}), tmp_path / f"{number:02}.parquet")
    pqext.write_summary(sorted(tmp_path.glob("*.parquet")), tmp_path)
    found = pqext.scan(tmp_path / "_metadata", filter=col("a") == 7)
    assert [row for row, task in enumerate(found.plan()) if task.kept_row_groups] == [7]
    assert found.to_table()["a"].to_pylist() == [7]
    (tmp_path / "07.parquet").unlink()
    with pytest.raises(CorruptFileError, match=r"07\.parquet"):
        found.to_table()
    pq.write_table(pa.table({"a": [99]}), tmp_path / "20.parquet")
    assert pqext.scan(tmp_path, filter=col("a") == 99).count() == 1  # a folder's files count, not what a summary names


@pytest.mark.parametrize("rule", [None, "union"])
def test_skipped_files_are_reported_once_per_run(tmp_path: Path, rule: Any) -> None:
    pqext.write_table(pa.table({"a": [1, 2]}), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"no Parquet at all")
    scan = pqext.scan(tmp_path, schema=rule, on_invalid="skip")
    with pytest.warns(CorruptDataWarning, match=r"1 file is not Parquet and was skipped: .*b\.parquet") as told:
        assert scan.to_table().num_rows == 2
    assert len(told) == 1
    with pytest.warns(CorruptDataWarning) as told:
        assert scan.filter("a = 1").count() == 1
    assert len(told) == 1
