"""Rows added to Delta and Iceberg tables between two versions: the files of commits, changes, rewrites and expiry."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import tables

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
from deltalake import DeltaTable, write_deltalake  # noqa: E402
from pyiceberg.expressions import EqualTo  # noqa: E402

from tests.tables.delta_logs import adds, delete_rows  # noqa: E402
from tests.tables.iceberg_tables import new_catalog  # noqa: E402

ALL = {
    "text": ["S:1 é%/=", None], "day": [date(2026, 1, 2), None], "flag": [True, None], "n": [-5, None],
    "price": [Decimal("1.50"), None], "at": [datetime(2026, 1, 2, 3, 4, 5, 123456, UTC), None],
    "local": [datetime(1970, 1, 1), None], "x": [0.1, None], "raw": [b"ab", None],
}


def ids(table: Any, after: int, until: int | None = None, **options: Any) -> list[int]:
    return sorted(tables.scan_appends(table, after, until, **options).to_table()["id"].to_pylist())


@pytest.mark.spec("tables.appends.files")
def test_scan_has_the_rows_between_two_versions(tmp_path: Path) -> None:
    for version in range(4):
        write_deltalake(tmp_path, pa.table({"id": [version, 10 + version]}), mode="append")
    name = f"delta:{tmp_path}"
    assert ids(name, 1) == [2, 3, 12, 13]
    assert ids(name, 1, 2) == [2, 12]
    assert ids(name, -1, 0) == [0, 10]
    assert ids(name, 3) == []
    assert ids(DeltaTable(str(tmp_path), version=2), 0) == [1, 2, 11, 12]
    assert tables.scan_appends(name, 1).filter("id > 11").count() == 2


@pytest.mark.spec("tables.appends.rewrites")
def test_rewrites_without_change_add_no_rows(tmp_path: Path) -> None:
    name = f"delta:{tmp_path}"
    for version in range(3):
        tables.append(name, pa.table({"id": [version]}))
    DeltaTable(str(tmp_path)).optimize.compact()
    tables.append(name, pa.table({"id": [9]}))
    tables.compact(name)
    assert ids(name, 0) == [1, 2, 9]  # of files that the current version does not contain


@pytest.mark.spec("tables.appends.changes")
def test_changed_rows_are_errors_unless_they_are_skipped(tmp_path: Path) -> None:
    name = f"delta:{tmp_path}"
    write_deltalake(tmp_path, pa.table({"id": [1, 2]}), configuration={"delta.enableDeletionVectors": "true"})
    write_deltalake(tmp_path, pa.table({"id": [3]}), mode="append")
    (first, *_) = adds(str(tmp_path))
    delete_rows(str(tmp_path), first, [0])
    write_deltalake(tmp_path, pa.table({"id": [4]}), mode="append")
    write_deltalake(tmp_path, pa.table({"id": [5]}), mode="overwrite")
    write_deltalake(tmp_path, pa.table({"id": [6]}), mode="append")
    for after, version in ((0, 2), (3, 4)):
        with pytest.raises(pqext.UnsupportedError, match=f"version {version} removes or changes rows"):
            tables.scan_appends(name, after)
    assert ids(name, 0, skip_change_commits=True) == [3, 4, 6]


def test_partition_values_equal_those_of_the_table(tmp_path: Path) -> None:
    types = {"price": pa.decimal128(9, 2), "at": pa.timestamp("us", "UTC"), "local": pa.timestamp("us")}
    rows = pa.table({"id": [0, 1]} | {name: pa.array(values, types.get(name)) for name, values in ALL.items()})
    write_deltalake(tmp_path, rows, partition_by=[*ALL])
    appended = tables.scan_appends(f"delta:{tmp_path}", -1).to_table()
    assert appended.schema == pqext.scan(f"delta:{tmp_path}").schema
    assert sorted(appended.to_pylist(), key=lambda row: row["id"]) == rows.to_pylist()
    assert tables.scan_appends(f"delta:{tmp_path}", -1).filter("day is null").to_table()["id"].to_pylist() == [1]


def test_columns_are_those_of_the_last_version(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    write_deltalake(tmp_path, pa.table({"id": [2], "x": ["a"]}), mode="append", schema_mode="merge")
    appended = tables.scan_appends(f"delta:{tmp_path}", -1).to_table().sort_by("id").to_pylist()
    assert appended == [{"id": 1, "x": None}, {"id": 2, "x": "a"}]
    assert tables.scan_appends(f"delta:{tmp_path}", -1, 0).to_table().to_pylist() == [{"id": 1}]


def test_column_mapping_names_partition_values(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "day": ["mon"]}), partition_by=["day"])
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    entries = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    for entry in entries:
        if "metaData" in entry:
            struct = json.loads(entry["metaData"]["schemaString"])
            for number, (member, name) in enumerate(zip(struct["fields"], ["id", "p"], strict=True), 1):
                member["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}
            entry["metaData"] |= {
                "schemaString": json.dumps(struct),
                "configuration": {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"},
            }
        if "add" in entry:
            entry["add"]["partitionValues"] = {"p": "mon"}
        if "protocol" in entry:
            entry["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
    log.write_text("\n".join(map(json.dumps, entries)), "utf-8")
    assert tables.scan_appends(f"delta:{tmp_path}", -1).to_table().to_pylist() == [{"id": 1, "day": "mon"}]


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        (None, FileNotFoundError, "no longer contains the commit of version 1"),
        ("{", pqext.CorruptFileError, "the log cannot be read"),
        ("[]", pqext.CorruptFileError, "not a JSON object"),
        ('{"add": {"path": 1}}', pqext.CorruptFileError, "not text"),
        ('{"add": {"path": "x", "dataChange": true}}', pqext.CorruptFileError, "partitionValues"),
    ],
)  # fmt: skip
def test_commits_that_cannot_be_read_are_errors(
    tmp_path: Path, line: str | None, error: type[Exception], message: str
) -> None:
    for version in range(3):
        write_deltalake(tmp_path, pa.table({"id": [version]}), mode="append")
    table = DeltaTable(str(tmp_path))
    log = tmp_path / "_delta_log" / f"{1:020}.json"
    log.unlink() if line is None else log.write_text(line, "utf-8")
    with pytest.raises(error, match=message):
        tables.scan_appends(table, 0)
    assert ids(table, 1) == [2]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda name: tables.scan_appends(name, 2), FileNotFoundError, "has no version 2; its last version is 1"),
        (lambda name: tables.scan_appends(name, -2), FileNotFoundError, "has no version -2"),
        (lambda name: tables.scan_appends(name, 1, 0), ValueError, "version 1 of .* is later than version 0"),
        (lambda name: tables.scan_appends(name, 0, 7), FileNotFoundError, "has no version 7; its last version is 1"),
        (lambda name: tables.scan_appends(name, -1, -1), FileNotFoundError, "has no version -1"),
        (lambda name: tables.scan_appends(name, "0"), TypeError, "after must be an integer"),
        (lambda name: tables.scan_appends(name, None), TypeError, "after must be an integer, not None"),
        (lambda name: tables.scan_appends(name, 0, "1"), TypeError, "until must be an integer"),
        (lambda name: tables.scan_appends(name + "x", 0), FileNotFoundError, "not a Delta table"),
    ],
)  # fmt: skip
def test_invalid_versions_are_rejected(
    tmp_path: Path, call: Callable[[str], Any], error: type[Exception], message: str
) -> None:
    for version in range(2):
        write_deltalake(tmp_path / "t", pa.table({"id": [version]}), mode="append")
    with pytest.raises(error, match=message):
        call(f"delta:{tmp_path}/t")


@pytest.mark.spec("tables.appends.files", "tables.appends.changes")
def test_iceberg_appends_are_those_of_the_snapshots(tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", pa.schema([("id", pa.int64()), ("day", pa.string())]))
    assert ids(table, 0) == []
    for number in range(3):
        table.append(pa.table({"id": [number, 10 + number], "day": ["mon", None]}))
    with table.update_schema() as update:
        update.rename_column("day", "weekday")
    first, second, third = (snapshot.snapshot_id for snapshot in table.snapshots())
    assert ids(table, first) == [1, 2, 11, 12]
    assert ids(table, first, second) == [1, 11]
    assert ids(table, 0) == [0, 1, 2, 10, 11, 12]
    assert tables.scan_appends(table, second).to_table().to_pylist() == [
        {"id": 2, "weekday": "mon"}, {"id": 12, "weekday": None},
    ]  # fmt: skip
    with pytest.raises(ValueError, match="is not an ancestor"):
        tables.scan_appends(table, third, first)
    assert ids(table, third) == ids(table, second, second) == ids(table, 0, 0) == []
    for after, until in ((0, 5), (5, None), (5, 0), (5, 5)):
        with pytest.raises(FileNotFoundError, match=f"no snapshot 5; its snapshots are {first} .*{third}"):
            tables.scan_appends(table, after, until)
    table.delete(EqualTo("id", 0))
    table.append(pa.table({"id": [7], "weekday": ["sun"]}))
    with pytest.raises(pqext.UnsupportedError, match="removes or changes rows"):
        tables.scan_appends(table, second)
    assert ids(table, second, skip_change_commits=True) == [2, 7, 12]
