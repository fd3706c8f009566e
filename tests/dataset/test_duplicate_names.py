"""Files with several columns of one name: all columns are returned in file order; naming one of them is an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col

TABLE = pa.Table.from_arrays([[1, 2, 3], ["x", "y", "z"], [0.5, 1.5, 2.5]], ["a", "b", "a"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "1.parquet", row_group_size=2)
    return tmp_path / "1.parquet"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (lambda scan: scan.to_table(), TABLE),
        (lambda scan: scan.head(2), TABLE.slice(0, 2)),
        (lambda scan: scan.limit(1, offset=1).to_table(), TABLE.slice(1, 1)),
        (lambda scan: pa.Table.from_batches(scan.to_batches(), scan.schema), TABLE),
        (lambda scan: scan.to_reader().read_all(), TABLE),
        (lambda scan: scan.filter(col("b") != "y").to_table(), TABLE.filter([True, False, True])),
        (lambda scan: scan.select("b").to_table(), TABLE.select([1])),
    ],
    ids=["to_table", "head", "limit", "to_batches", "to_reader", "filter", "select"],
)
def test_all_columns_are_returned_like_in_pyarrow(
    path: Path, rows: Callable[[pqext.Scan], pa.Table], expected: pa.Table
) -> None:
    assert pq.ParquetFile(path).read().equals(TABLE)
    scan = pqext.scan(path)
    assert scan.schema.names == TABLE.schema.names  # which opens the file before its rows are read
    assert rows(scan).equals(expected)
    assert rows(scan).equals(expected)
    assert scan.explain().startswith("scan of 1 file\n  columns: a, b, a\n")


def test_path_and_partition_columns_follow_duplicate_columns(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    pq.write_table(TABLE, tmp_path / "day=1" / "1.parquet")
    found = pqext.read_table(tmp_path, include_file_paths="path")
    assert found.column_names == ["a", "b", "a", "day", "path"]
    assert found.select([0, 1, 2]).equals(TABLE)
    assert found["day"].to_pylist() == [1, 1, 1]


def test_files_with_equal_duplicate_columns_form_one_table(path: Path) -> None:
    pq.write_table(TABLE, path.with_name("2.parquet"))
    assert pqext.read_table(path.parent).equals(pa.concat_tables([TABLE, TABLE]))


def test_files_with_different_duplicate_columns_are_an_error(path: Path) -> None:
    pq.write_table(TABLE.select([2, 1, 0]), path.with_name("2.parquet"))
    with pytest.raises(ValueError, match=r"cannot be matched by name.*read each file separately"):
        pqext.read_table(path.parent)


def test_duplicate_column_name_is_ambiguous(path: Path) -> None:
    for scan in (pqext.scan(path, ["a"]), pqext.scan(path, filter=col("a") == 1)):
        with pytest.raises(ValueError, match="column 'a' is ambiguous"):
            scan.to_table()
