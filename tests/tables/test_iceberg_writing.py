"""Write and maintain Iceberg tables through pyiceberg: equal rows, metrics, conflicts, leftovers and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import UnsupportedError, tables, variant

pytest.importorskip("pyiceberg")
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from tests.tables.iceberg_tables import local, new_catalog

NOW = timedelta(0)
ROWS = pa.table({
    "id": pa.array([1, 2, None], pa.int64()), "text": ["é", None, ""], "x": [1.5, float("nan"), None],
    "day": pa.array([date(2026, 11, 30), None, date(1969, 12, 31)]),
    "s": pa.array([{"a": 1, "l": ["x", None]}, None, {"a": None, "l": []}]),
    "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
})


def by_pyiceberg(table: Table) -> list[dict[str, Any]]:
    table.refresh()
    rows: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return sorted(rows, key=repr)


def new_table(path: Path, schema: pa.Schema, **settings: Any) -> Table:
    return new_catalog(path).create_table("db.t", schema=schema, **settings)


def ids(table: Table) -> list[int]:
    return sorted(row["id"] for row in by_pyiceberg(table))


def data_files(table: Table) -> set[str]:
    return {str(path) for path in (local(table.location()) / "data").rglob("*") if path.is_file()}


def partitioned(path: Path, transform: Any) -> Table:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", StringType()))
    spec = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=transform, name="part"))
    return new_catalog(path).create_table("db.t", schema=schema, partition_spec=spec)


def test_commits_update_a_table_object_as_pyiceberg_does(tmp_path: Path) -> None:
    table = new_table(tmp_path, pa.schema([("id", pa.int64())]))
    old = table.catalog.load_table(table.name())
    steps: list[tuple[Callable[[], Any], int, int]] = [
        (lambda: tables.append(table, pa.table({"id": [1]})), 1, 1),
        (lambda: table.append(pa.table({"id": [2]})), 2, 2),
        (lambda: tables.compact(table), 2, 1),
        (lambda: tables.overwrite(table, pa.table({"id": [3]})), 1, 1),
    ]
    for change, rows, files in steps:
        change()
        assert pqext.scan(table).count() == table.scan().to_arrow().num_rows == rows
        assert len(table.inspect.files()) == files
    tables.append(old, pa.table({"id": [4]}))
    assert sorted(old.scan().to_arrow()["id"].to_pylist()) == [3, 4]


def test_appended_rows_are_equal_in_pyiceberg_and_pqext(tmp_path: Path) -> None:
    table = new_table(tmp_path, ROWS.schema)
    tables.append(table, ROWS)
    tables.append(table, ROWS.select(list(reversed(ROWS.column_names))).slice(0, 1))
    expected = sorted([*ROWS.to_pylist(), *ROWS.slice(0, 1).to_pylist()], key=repr)
    assert repr(by_pyiceberg(table)) == repr(expected)
    assert repr(sorted(pqext.scan(table).to_table().to_pylist(), key=repr)) == repr(expected)
    (task,) = table.scan(row_filter="id > 1 and day is null").plan_files()
    assert task.file.null_value_counts is not None
    assert [*table.scan(row_filter="id > 2").plan_files()] == []


def test_files_have_the_field_ids_of_the_table(tmp_path: Path) -> None:
    table = new_table(tmp_path, ROWS.schema)
    with table.update_schema() as update:
        update.rename_column("text", "name")
    tables.append(table, ROWS.rename_columns(["id", "name", *ROWS.column_names[2:]]))
    (task,) = table.scan().plan_files()
    stored = pq.read_schema(local(task.file.file_path))
    for field in table.schema().fields:
        assert stored.field(field.name).metadata[b"PARQUET:field_id"] == str(field.field_id).encode()
    inner = stored.field("s").type.field("a")
    assert inner.metadata[b"PARQUET:field_id"] == str(table.schema().find_field("s.a").field_id).encode()


def test_identity_partitions_are_written_overwritten_and_pruned(tmp_path: Path) -> None:
    table = partitioned(tmp_path, IdentityTransform())
    rows = pa.table({"id": [1, 2, 3], "p": ["a/=%", None, "b"]})
    tables.append(table, rows)
    assert by_pyiceberg(table) == sorted(rows.to_pylist(), key=repr)
    assert [task.file.partition[0] for task in table.scan(row_filter="p = 'a/=%'").plan_files()] == ["a/=%"]
    result = tables.overwrite(table, pa.table({"id": [4], "p": ["b"]}), filter="p = 'b'")
    assert (result.files_removed, ids(table)) == (1, [1, 2, 4])
    with pytest.raises(ValueError, match="which filter= does not select"):
        tables.overwrite(table, pa.table({"id": [4], "p": ["c"]}), filter="p = 'b'")
    tables.overwrite(table, pa.table({"id": [9], "p": ["z"]}))
    assert ids(table) == [9]


def test_other_transforms_are_rejected(tmp_path: Path) -> None:
    table = partitioned(tmp_path, BucketTransform(4))
    with pytest.raises(UnsupportedError, match=r"transforms bucket\[4\]"):
        tables.append(table, pa.table({"id": [1], "p": ["a"]}))


def test_format_version_3_is_rejected(tmp_path: Path) -> None:
    table = new_table(tmp_path, pa.schema([("id", pa.int64())]))
    metadata = {**json.loads(table.metadata.model_dump_json()), "format-version": 3, "next-row-id": 0}
    third = Table(table.name(), TableMetadataUtil.parse_obj(metadata), table.metadata_location, table.io, table.catalog)
    for call in (lambda: tables.append(third, pa.table({"id": [1]})), lambda: tables.compact(third)):
        with pytest.raises(UnsupportedError, match="format version 3"):
            call()
    assert data_files(table) == set()


def test_compact_and_recluster_keep_all_rows(tmp_path: Path) -> None:
    table = new_table(tmp_path, pa.schema([("id", pa.int64())]))
    for start in range(4):
        tables.append(table, pa.table({"id": range(start, 40, 4)}))
    assert tables.compact(table, dry_run=True).files_after == 1
    result = tables.compact(table)
    assert (result.files_before, result.files_after, result.rows) == (4, 1, 40)
    assert ids(table) == list(range(40))
    tables.recluster(table, "id")
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == list(range(40))
    assert tables.describe(table, older_than=NOW).leftovers == ()


def interfere(table: Table, change: Callable[[Table], Any]) -> Callable[..., None]:
    """Progress callback that changes the table once, through another table object."""
    other = table.catalog.load_table(table.name())
    pending = [change]

    def call(*_: Any) -> None:
        while pending:
            pending.pop()(other)

    return call


def test_lost_compaction_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path, pa.schema([("id", pa.int64())]))
    for value in range(3):
        tables.append(table, pa.table({"id": [value]}))
    with pytest.raises(tables.TableConflictError, match="another writer has removed"):
        tables.compact(table, progress=interfere(table, tables.compact))
    assert ids(table) == [0, 1, 2]
    assert len(data_files(table)) == 4
    tables.append(table, pa.table({"id": [7]}))
    with pytest.raises(tables.TableConflictError):
        tables.compact(table, progress=interfere(table, lambda other: other.delete("id = 1")))
    assert ids(table) == [0, 2, 7]


def test_rewrites_and_appends_survive_concurrent_appends(tmp_path: Path) -> None:
    table = new_table(tmp_path, pa.schema([("id", pa.int64())]))
    rows = pa.table({"id": [1]})
    for _ in range(2):
        tables.append(table, rows)
    append = interfere(table, lambda other: other.append(rows))
    assert tables.compact(table, progress=append).files_after == 1
    tables.append(table, rows, progress=interfere(table, lambda other: other.append(rows)))
    assert ids(table) == [1] * 5


def test_leftovers_are_files_of_no_snapshot(tmp_path: Path) -> None:
    table = new_table(tmp_path, pa.schema([("id", pa.int64())]))
    for value in range(2):
        tables.append(table, pa.table({"id": [value]}))
    tables.compact(table)
    stray = local(table.location()) / "data" / "part-9.parquet"
    stray.write_bytes(b"xyz")
    assert tables.describe(table).leftovers == ()
    assert tables.clean(table, older_than=NOW, dry_run=False).files == ("part-9.parquet",)
    assert len(data_files(table)) == 3
    assert ids(table) == [0, 1]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pa.table({"id": [1]}), "the rows lack column 'name'"),
        (pa.table({"id": [1], "name": ["x"], "y": [1]}), "the table has no column 'y'"),
        (pa.table({"id": ["x"], "name": ["x"]}), "id is string in the rows and int64 in the table"),
    ],
)
def test_rows_of_another_schema_are_rejected(tmp_path: Path, rows: pa.Table, message: str) -> None:
    table = new_table(tmp_path, pa.schema([("id", pa.int64()), ("name", pa.string())]))
    with pytest.raises(pqext.ParquetError, match=message):
        tables.append(table, rows)
    assert data_files(table) == set()


def test_tables_that_cannot_be_committed_are_rejected(tmp_path: Path) -> None:
    table = new_table(tmp_path, pa.schema([("id", pa.int64())]))
    with pytest.raises(UnsupportedError, match="commits need its catalog"):
        tables.append(f"iceberg:{table.metadata_location}", pa.table({"id": [1]}))
    event = pa.table([variant.parse_json(["1"])], schema=pa.schema([variant.variant_field("id")]))
    with pytest.raises(pqext.ParquetError, match="cast the column"):
        tables.append(table, event)
    assert data_files(table) == set()
