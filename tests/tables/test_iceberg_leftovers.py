"""Remove leftovers of Iceberg tables whose locations are spelled in different ways; files of snapshots remain."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import pqext
from pqext import tables

pytest.importorskip("pyiceberg")
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

NOW = timedelta(0)
ROWS = pa.table({"id": [1, 2, 3]})


def table_in(warehouse: str) -> Table:
    catalog = SqlCatalog("local", uri="sqlite:///:memory:", warehouse=warehouse)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    return table


@pytest.mark.spec("tables.iceberg.references")
@pytest.mark.parametrize(
    "warehouse",
    [
        "house", "./house", "real/../house", "{}/house", "file:{}/house", "file://{}/house", "file://{}//house",
        "file://{}/./house", "file://{}/real/../house", "file://{}/link/house", "file://{}/a house",
        "file://{}/a%20house",
    ],
)
def test_files_of_snapshots_are_not_leftovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warehouse: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    table = table_in(warehouse.format(tmp_path))
    tables.append(table, pa.table({"id": [4]}))
    (folder,) = {path.parent for path in tmp_path.rglob("*.parquet")}
    (folder / "stray.parquet").write_bytes(b"x")
    assert tables.describe(table, older_than=NOW).leftovers == ("stray.parquet",)
    assert tables.clean(table, older_than=NOW, dry_run=False).files == ("stray.parquet",)
    assert pqext.scan(table).count() == table.refresh().scan().to_arrow().num_rows == 4


def test_folder_with_files_of_the_same_names_is_not_cleaned(tmp_path: Path) -> None:
    table = table_in(f"file://{tmp_path}/house")
    with table.transaction() as transaction:
        transaction.set_properties({"write.data.path": f"file://{tmp_path}/copy"})
    shutil.copytree(tmp_path / "house/db/t/data", tmp_path / "copy")
    with pytest.raises(pqext.CorruptFileError, match=r"files cannot be identified \[.*\]; nothing was removed"):
        tables.clean(table, older_than=NOW, dry_run=False)
    assert len(os.listdir(tmp_path / "copy")) == 1
