"""What is given for a file or a folder and is none, or not only one: told, or taken for what was meant."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import CorruptDataWarning, CorruptFileError, UnsupportedError, col
from pqext.core.base.local_paths import expand_home

TABLE = pa.table({"a": [1, 2, 3]})


@pytest.mark.parametrize("given", [TABLE, TABLE.to_batches()[0], pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]})])
@pytest.mark.parametrize("read", [pqext.read_table, pqext.open, pqext.verify])
def test_tables_are_distinguished_from_files(given: object, read: object) -> None:
    with pytest.raises(TypeError, match=f"a {type(given).__name__} is already in memory"):
        read(given)  # type: ignore[operator]


def test_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    pqext.write_table(TABLE, "~/x.parquet")
    assert (tmp_path / "x.parquet").exists()
    for place in ("~/x.parquet", Path("~/x.parquet"), "~/*.parquet", "~"):
        assert pqext.read_table(place).equals(TABLE)
    with pqext.open("~/x.parquet") as file:
        assert file.num_rows == 3
    # A folder that is so named is meant first.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~").mkdir()
    pqext.write_table(TABLE.slice(1), "~/x.parquet")
    assert pq.read_table(tmp_path / "~" / "x.parquet").num_rows == 2
    assert pqext.read_table("~/x.parquet").num_rows == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_pipe_in_a_folder_is_skipped_or_reported(tmp_path: Path) -> None:
    pqext.write_table(TABLE, tmp_path / "b.parquet")
    for name in ("a", "c"):
        os.mkfifo(tmp_path / name)
    with pytest.warns(CorruptDataWarning, match="2 files are not Parquet and were skipped: .*a, .*c"):
        assert pqext.read_table(tmp_path, on_invalid="skip").equals(TABLE)
    with pytest.raises(CorruptFileError, match="2 files cannot be opened as Parquet"):
        pqext.read_table(tmp_path)


@pytest.mark.parametrize("rows", [0, -1])
def test_batches_contain_rows(rows: int, tmp_path: Path) -> None:
    pqext.write_table(TABLE, tmp_path / "x.parquet")
    scan = pqext.scan(tmp_path)
    for make in (scan.to_batches, scan.to_reader):
        with pytest.raises(ValueError, match=f"batch_rows must be positive, not {rows}"):
            make(rows)


def test_duration_extremes_are_durations(tmp_path: Path) -> None:
    for unit in ("s", "ms", "us", "ns"):
        kind = pa.duration(unit)
        table = pa.table({"d": pa.array([5, None, -7, 10**9], kind), "s": pa.array([{"d": 3}], pa.struct({"d": kind}))
                          .take(pa.array([0, 0, None, 0]))})
        pqext.write_table(table, tmp_path / "x.parquet")
        for scan in (pqext.scan(tmp_path), pqext.scan(tmp_path).limit(4)):
            assert scan.min("d").equals(pa.scalar(-7, kind))
            assert scan.max("d").equals(pa.scalar(10**9, kind))
            assert scan.max(col("s").field("d")).equals(pa.scalar(3, kind))
    empty = pqext.scan(tmp_path).filter(col("d").is_null())
    assert empty.min("d").equals(pa.scalar(None, pa.duration("ns")))


def test_file_column_is_not_mistaken_for_a_partition_column(tmp_path: Path) -> None:
    (tmp_path / "a=7").mkdir()
    pqext.write_table(pa.table({"b": [1]}), tmp_path / "a=7" / "x.parquet")
    pqext.write_table(pa.table({"b": [2], "a": [9]}), tmp_path / "own.parquet")
    told = r"column 'a' is stored in this file, but is a partition column.*partitioning=None"
    for filter in (None, col("a") == 9, col("b") == 2):
        with pytest.raises(UnsupportedError, match=told) as at:
            pqext.scan(tmp_path, filter=filter, schema="union").to_table()
        assert at.value.path == str(tmp_path / "own.parquet")
    found = pqext.scan(tmp_path, schema="union", partitioning=None).filter(col("a") == 9).to_table()
    assert found.to_pylist() == [{"b": 2, "a": 9}] or found.to_pylist() == [{"a": 9, "b": 2}]
    # Where the file has none, null is all that is known.
    pqext.write_table(pa.table({"b": [2]}), tmp_path / "own.parquet")
    assert pqext.read_table(tmp_path)["a"].to_pylist() == [None, 7]


def test_home_folders_of_other_users_are_expanded(tmp_path: Path) -> None:
    pwd = pytest.importorskip("pwd")
    name = pwd.getpwuid(os.getuid()).pw_name
    assert expand_home(f"~{name}/x.parquet") == os.path.expanduser(f"~{name}/x.parquet") != f"~{name}/x.parquet"
    with pytest.raises(FileNotFoundError, match=r"~no-such-user/x\.parquet"):
        pqext.scan("~no-such-user/x.parquet")
