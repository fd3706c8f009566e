"""Commits whose outcome is unknown, repeated commits, and commits to tables that were dropped."""

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
import deltalake.transaction
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError, SchemaMismatchError
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    ServiceUnavailableError,
)
from pyiceberg.table import Table

from pqext.tables.backend import check_unchanged
from tests.tables.iceberg_tables import new_catalog

ROWS = pa.table({"id": [1]})
UNKNOWN = "unknown whether the commit has succeeded"


def data_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.parquet") if path.parent.name != "_delta_log"]


class Catalog:
    """Iceberg table whose catalog fails at commits: before, or after, they are applied; late requests can be sent."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.catalog = new_catalog(folder)
        self.table = self.catalog.create_table("db.t", ROWS.schema)
        self.table.append(ROWS)
        self._patch = monkeypatch
        self._commit = self.catalog.commit_table
        self._requests: list[tuple[Any, ...]] = []

    def fail(self, error: BaseException, applied: bool = False, times: int = 1) -> None:
        def commit(*arguments: Any) -> Any:
            if len(self._requests) >= times:
                return self._commit(*arguments)
            self._requests.append(arguments)
            if applied:
                self._commit(*arguments)
            raise error

        self._patch.setattr(self.catalog, "commit_table", commit)

    def send(self) -> None:
        self._commit(*self._requests[0])

    def ids(self) -> list[int]:
        table = self.catalog.load_table("db.t")
        assert table.scan().to_arrow().num_rows == pqext.scan(table).count()
        return sorted(pqext.scan(table).to_table()["id"].to_pylist())


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    return Catalog(tmp_path, monkeypatch)


UNCERTAIN = [CommitStateUnknownException("504"), ServiceUnavailableError("503"), OSError("reset")]


@pytest.mark.spec("tables.iceberg.uncertain")
@pytest.mark.parametrize("error", UNCERTAIN)
def test_files_of_commit_with_unknown_outcome_are_retained(tmp_path: Path, catalog: Catalog, error: Exception) -> None:
    catalog.fail(error)
    with pytest.raises(tables.CommitStateUnknownError, match=rf"{UNKNOWN}: (504|503|reset) \[.*\]; the new files"):
        tables.append(catalog.table, pa.table({"id": [2]}))
    assert (catalog.ids(), len(data_files(tmp_path))) == ([1], 2)
    catalog.send()
    assert catalog.ids() == [1, 2]


def test_interrupted_commit_retains_its_files(tmp_path: Path, catalog: Catalog) -> None:
    catalog.fail(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        tables.append(catalog.table, pa.table({"id": [2]}))
    assert len(data_files(tmp_path)) == 2
    catalog.send()
    assert catalog.ids() == [1, 2]


def test_interrupted_write_deletes_its_files(tmp_path: Path, catalog: Catalog) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tables.append(catalog.table, pa.table({"id": [2]}), progress=interrupt)
    assert len(data_files(tmp_path)) == 1


@pytest.mark.parametrize("error", [CommitStateUnknownException("504"), CommitFailedException("409"), OSError("reset")])
def test_commit_reported_as_failed_is_not_repeated(catalog: Catalog, error: Exception) -> None:
    catalog.fail(error, applied=True)
    assert tables.append(catalog.table, pa.table({"id": [2]})).rows == 1
    catalog.fail(error, applied=True, times=2)
    assert tables.overwrite(catalog.table, pa.table({"id": [3]})).files_removed == 2
    assert catalog.ids() == [3]


@pytest.mark.parametrize("error", [BadRequestError("400"), ForbiddenError("403")])
def test_rejected_commit_deletes_its_files(tmp_path: Path, catalog: Catalog, error: Exception) -> None:
    catalog.fail(error)
    with pytest.raises(pqext.SourceError, match=r"rejected the commit: 40[03] \[.*\]; nothing was changed"):
        tables.append(catalog.table, pa.table({"id": [2]}))
    assert (catalog.ids(), len(data_files(tmp_path))) == ([1], 1)


def change_before_commit(table: Table, change: Callable[[Any], Any]) -> Callable[..., None]:
    """Progress callback that changes the table once, through its catalog."""
    pending = [change]

    def call(*_: Any) -> None:
        while pending:
            pending.pop()(table.catalog)

    return call


@pytest.mark.parametrize("is_new", [False, True])
def test_dropped_table_is_a_conflict(tmp_path: Path, catalog: Catalog, is_new: bool) -> None:
    def drop(database: Any) -> None:
        database.drop_table("db.t")
        if is_new:
            database.create_table("db.t", ROWS.schema)

    with pytest.raises(tables.TableConflictError, match=r"writer has dropped the table \[.*\]; nothing was changed"):
        tables.append(catalog.table, ROWS, progress=change_before_commit(catalog.table, drop))
    assert len(data_files(tmp_path)) == 1


def test_append_after_change_of_partitions_is_a_conflict(tmp_path: Path, catalog: Catalog) -> None:
    def partition(database: Any) -> None:
        table = database.load_table("db.t")
        with table.update_spec() as update:
            update.add_identity("id")
        table.append(ROWS)

    with pytest.raises(tables.TableConflictError, match="changed the schema or partitions"):
        tables.append(catalog.table, ROWS, progress=change_before_commit(catalog.table, partition))
    assert len(data_files(tmp_path)) == 2


class Store:
    """Local Delta table that pqext considers remote, and whose commits fail; late requests can be sent."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch = folder, monkeypatch
        monkeypatch.setattr("pqext.tables.delta.writer.is_remote", lambda _: True)
        self._requests: list[Callable[[], None]] = []

    def fail(self, error: BaseException, applied: bool) -> None:
        real = DeltaTable.create_write_transaction

        def commit(table: DeltaTable, *arguments: Any, **keywords: Any) -> None:
            self._requests.append(lambda: real(table, *arguments, **keywords))
            if applied:
                self.send()
            raise error

        self._patch.setattr(DeltaTable, "create_write_transaction", commit)

    def send(self) -> None:
        self._requests[0]()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    tables.append(f"delta:{tmp_path}", ROWS)
    return Store(tmp_path, monkeypatch)


TIMEOUT = OSError("Generic S3 error: Error performing PUT http://host/t in 30s - HTTP error: operation timed out")


def test_delta_files_are_retained_after_a_timeout(store: Store) -> None:
    store.fail(TIMEOUT, applied=False)
    with pytest.raises(tables.CommitStateUnknownError, match=f"{UNKNOWN}: Generic S3 error"):
        tables.append(f"delta:{store.folder}", pa.table({"id": [2]}))
    assert len(data_files(store.folder)) == 2
    store.send()
    assert sorted(pqext.scan(f"delta:{store.folder}").to_table()["id"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("call", [tables.append, tables.overwrite])
def test_delta_commit_that_succeeded_before_a_timeout_is_complete(store: Store, call: Any) -> None:
    store.fail(TIMEOUT, applied=True)
    assert call(f"delta:{store.folder}", pa.table({"id": [2]})).version == 1
    assert 2 in pqext.scan(f"delta:{store.folder}").to_table()["id"].to_pylist()


@pytest.mark.parametrize("error", [
    OSError("Generic S3 error: Error performing PUT http://host/t in 403.2ms - HTTP error: operation timed out"),
    DeltaError("Kernel error: connection closed before message completed"), RuntimeError("runtime stopped"),
    CommitFailedError("Log storage error: Generic S3 error: timed out"), CommitFailedError("Transaction failed: reset"),
])
def test_delta_commit_without_a_definite_failure_retains_its_files(store: Store, error: Exception) -> None:
    store.fail(error, applied=False)
    with pytest.raises(tables.CommitStateUnknownError, match=UNKNOWN):
        tables.append(f"delta:{store.folder}", pa.table({"id": [2]}))
    assert len(data_files(store.folder)) == 2


@pytest.mark.parametrize("error", [
    OSError("Generic S3 error: PermissionDenied: status 403"), PermissionError("denied"),
    OSError("The operation lacked valid authentication credentials for path t"), SchemaMismatchError("type of id"),
    DeltaProtocolError("invariant violated"), CommitFailedError("Failed to commit transaction: append-only"),
])
def test_delta_files_are_deleted_if_the_commit_is_rejected(store: Store, error: Exception) -> None:
    store.fail(error, applied=False)
    with pytest.raises(pqext.ParquetError, match="the commit failed: ") as caught:
        tables.append(f"delta:{store.folder}", pa.table({"id": [2]}))
    assert not isinstance(caught.value, tables.CommitStateUnknownError)
    assert len(data_files(store.folder)) == 1


@pytest.mark.parametrize("is_applied", [False, True])
def test_new_delta_table_with_unknown_outcome(store: Store, monkeypatch: pytest.MonkeyPatch, is_applied: bool) -> None:
    real = deltalake.transaction.create_table_with_add_actions

    def create(*arguments: Any, **keywords: Any) -> None:
        if is_applied:
            real(*arguments, **keywords)
        raise DeltaError("Kernel error: connection closed")

    monkeypatch.setattr(deltalake.transaction, "create_table_with_add_actions", create)
    folder = store.folder / "new"
    if is_applied:
        assert tables.append(f"delta:{folder}", ROWS).version == 0
    else:
        with pytest.raises(tables.CommitStateUnknownError, match=f"{UNKNOWN}: Kernel error"):
            tables.append(f"delta:{folder}", ROWS)
    assert len(data_files(folder)) == 1


def test_removed_file_in_message_without_password() -> None:
    with pytest.raises(tables.TableConflictError, match="removed s3://b/x, which"):
        check_unchanged(["s3://me:pass@b/x"], {}, "t")
