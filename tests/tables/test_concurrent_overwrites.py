"""Overwrites against concurrent changes: rows that another writer added are never lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import tables

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
from deltalake import DeltaTable
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from tests.tables.iceberg_tables import new_catalog


def rows(*values: int, p: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), "p": pa.array([p] * len(values), pa.string())})


@pytest.fixture(params=["delta", "iceberg", "iceberg-snapshot-isolation"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """An empty table of both formats, with the partition column ``p``."""
    if request.param == "delta":
        tables.append(f"delta:{tmp_path}", rows(), partition_by="p")
        return f"delta:{tmp_path}"
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", StringType()))
    spec = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="p"))
    level = "snapshot" if request.param.endswith("isolation") else "serializable"
    properties = {"write.delete.isolation-level": level, "write.update.isolation-level": level}
    return new_catalog(tmp_path).create_table("db.t", schema=schema, partition_spec=spec, properties=properties)


def reopen(table: Any) -> Any:
    return table.catalog.load_table(table.name()) if isinstance(table, Table) else table


def ids(table: Any) -> list[int]:
    found: list[int] = pqext.scan(reopen(table), ["id"]).to_table()["id"].to_pylist()
    return sorted(found)


def leftovers(table: Any, tmp_path: Path) -> set[str]:
    """The data files of the folder that are not in the current version."""
    on_disk = {path.name for path in tmp_path.rglob("*.parquet") if path.parent.name not in ("_delta_log", "metadata")}
    if isinstance(table, Table):
        return on_disk - {task.file.file_path.rpartition("/")[2] for task in reopen(table).scan().plan_files()}
    return on_disk - {path.rpartition("/")[2] for path in DeltaTable(table.removeprefix("delta:")).file_uris()}


def interfere(table: Any, change: Callable[[Any], Any]) -> Callable[..., None]:
    """Progress callback that changes the table once, through another table object."""
    pending = [change]

    def call(*_: Any) -> None:
        while pending:
            pending.pop()(reopen(table))

    return call


@pytest.mark.spec("tables.overwrite.conflict")
@pytest.mark.parametrize("before", [(), (1, 2)])
@pytest.mark.parametrize("filter", [None, "p = 'a'"])
def test_append_to_the_replaced_rows_is_a_conflict(
    table: Any, before: tuple[int, ...], filter: str | None, tmp_path: Path
) -> None:
    if before:
        tables.append(table, rows(*before))
        table = reopen(table)
    append = interfere(table, lambda other: tables.append(other, rows(7)))
    with pytest.raises(tables.TableConflictError, match=r"another writer has added .* nothing was changed"):
        tables.overwrite(table, rows(9), filter=filter, progress=append)
    assert ids(table) == sorted([*before, 7])
    assert leftovers(table, tmp_path) == set()
    assert tables.overwrite(reopen(table), rows(9), filter=filter).rows == 1
    assert ids(table) == [9]


@pytest.mark.spec("tables.overwrite.conflict")
def test_append_to_other_partitions_is_retained(table: Any) -> None:
    tables.append(table, rows(1))
    table = reopen(table)
    append = interfere(table, lambda other: tables.append(other, rows(7, p="b")))
    assert tables.overwrite(table, rows(9), filter="p = 'a'", progress=append).files_removed == 1
    assert ids(table) == [7, 9]


@pytest.mark.spec("tables.overwrite.conflict")
def test_compaction_of_the_replaced_rows_is_a_conflict(table: Any, tmp_path: Path) -> None:
    for value in (1, 2):
        tables.append(table, rows(value))
        table = reopen(table)
    with pytest.raises(tables.TableConflictError, match="another writer has added"):
        tables.overwrite(table, rows(9), progress=interfere(table, tables.compact))
    assert ids(table) == [1, 2]


@pytest.mark.spec("tables.overwrite.conflict")
def test_second_overwrite_is_a_conflict(table: Any) -> None:
    tables.append(table, rows(1))
    table = reopen(table)
    with pytest.raises(tables.TableConflictError):
        tables.overwrite(table, rows(9), progress=interfere(table, lambda other: tables.overwrite(other, rows(8))))
    assert ids(table) == [8]


def test_appends_do_not_conflict_with_appends(table: Any) -> None:
    tables.append(table, rows(1), progress=interfere(table, lambda other: tables.append(other, rows(2))))
    assert ids(table) == [1, 2]


def test_overwrite_of_a_table_that_another_writer_creates_is_a_conflict(tmp_path: Path) -> None:
    name = f"delta:{tmp_path / 't'}"
    with pytest.raises(tables.TableConflictError, match="another writer has created the table"):
        tables.overwrite(name, rows(9), progress=interfere(name, lambda other: tables.append(other, rows(7))))
    assert ids(name) == [7]


def test_overwrite_of_a_version_that_expires_is_a_conflict(table: Any, tmp_path: Path) -> None:
    tables.append(table, rows(1))
    table = reopen(table)

    def expire(other: Any) -> None:
        tables.append(other, rows(2))
        if isinstance(other, Table):
            other = reopen(other)
            other.maintenance.expire_snapshots().by_id(other.metadata.snapshots[0].snapshot_id).commit()
        else:
            DeltaTable(tmp_path).create_checkpoint()
            (tmp_path / "_delta_log" / f"{0:020}.json").unlink()

    with pytest.raises(tables.TableConflictError, match=r"version \d+, on which this call is based, no longer"):
        tables.overwrite(table, rows(9), progress=interfere(table, expire))
    assert ids(table) == [1, 2]
    assert leftovers(table, tmp_path) == set()
