"""Errors of Delta tables and their stores: typed, with table and version, without credentials and lost files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import write_deltalake

import pqext
from pqext import tables
from tests.tables.delta_logs import adds

ROWS = pa.table({"id": [1, 2]})
SECRET = "pass-w0rd"
UNREACHABLE = {
    "aws_secret_access_key": SECRET, "aws_access_key_id": "me", "aws_endpoint_url": "http://127.0.0.1:9",
    "aws_region": "x", "allow_http": "true", "max_retries": "0", "retry_timeout": "1s",
}


def edit_log(folder: Path, edit: Callable[[dict[str, Any]], None], version: int = 0) -> None:
    log = folder / "_delta_log" / f"{version:020}.json"
    entries = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    for entry in entries:
        edit(entry)
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")


def test_column_mapping_by_id_without_ids(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)

    def edit(entry: dict[str, Any]) -> None:
        if "protocol" in entry:
            entry["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "metaData" in entry:
            entry["metaData"]["configuration"] = {"delta.columnMapping.mode": "id"}
            schema = json.loads(entry["metaData"]["schemaString"])
            schema["fields"][0]["metadata"] = {"delta.columnMapping.physicalName": "id"}
            entry["metaData"]["schemaString"] = json.dumps(schema)

    edit_log(tmp_path, edit)
    with pytest.raises(pqext.CorruptFileError, match=r"lacks the delta\.columnMapping\.id .*delta:/"):
        pqext.scan(f"delta:{tmp_path}")


def test_property_that_is_not_an_integer(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    edit_log(tmp_path, lambda entry: entry.get("metaData", {}).update(
        configuration={"delta.dataSkippingNumIndexedCols": "many"}
    ))
    message = r"version 0 has the property delta\.dataSkippingNumIndexedCols = 'many'.*not an integer.*delta:file"
    for call in (lambda: tables.append(f"delta:{tmp_path}", ROWS), lambda: tables.recluster(f"delta:{tmp_path}", "id")):
        with pytest.raises(pqext.CorruptFileError, match=message):
            call()
    assert len([*tmp_path.glob("*.parquet")]) == 1


def test_unreachable_store_is_a_source_error_without_credentials() -> None:
    for call in (
        lambda: pqext.scan("delta:s3://bucket/t", storage_options=UNREACHABLE),
        lambda: tables.append("delta:s3://bucket/t", ROWS, storage_options=UNREACHABLE),
    ):
        with pytest.raises(pqext.SourceError, match=r"the table cannot be opened: .*delta:s3://bucket/t") as error:
            call()
        assert SECRET not in str(error.value)
        assert "\x1b" not in str(error.value)


def break_loading(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(deltalake.DeltaTable, "__init__", fail)


@pytest.mark.parametrize("call", [tables.append, tables.overwrite])
@pytest.mark.parametrize("exists", [True, False])
def test_commit_succeeds_if_the_table_cannot_be_loaded_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Any, exists: bool
) -> None:
    if exists:
        tables.append(f"delta:{tmp_path}", ROWS.slice(0, 0))
    with monkeypatch.context() as patch:
        error = OSError("Generic S3 error: timed out")
        commit = call(f"delta:{tmp_path}", ROWS, progress=lambda *_: break_loading(patch, error))
    assert commit.version == deltalake.DeltaTable(tmp_path).version() == int(exists)
    assert pqext.scan(f"delta:{tmp_path}").to_table()["id"].to_pylist() == [1, 2]


def test_compaction_succeeds_if_the_table_cannot_be_loaded_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        tables.append(f"delta:{tmp_path}", ROWS)
    with monkeypatch.context() as patch:
        result = tables.compact(f"delta:{tmp_path}", progress=lambda *_: break_loading(patch, OSError("timed out")))
    assert (result.version, result.read_after, deltalake.DeltaTable(tmp_path).version()) == (2, None, 2)


@pytest.mark.parametrize("is_first", [True, False])
def test_reported_version_is_that_of_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    write_deltalake(tmp_path, ROWS)
    real = deltalake.DeltaTable.create_write_transaction

    def commit(table: deltalake.DeltaTable, *arguments: Any, **keywords: Any) -> None:
        monkeypatch.undo()
        if not is_first:
            write_deltalake(tmp_path, ROWS, mode="append")
        try:
            real(table, *arguments, **keywords)
        finally:
            write_deltalake(tmp_path, ROWS, mode="append")

    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", commit)
    version = tables.append(f"delta:{tmp_path}", pa.table({"id": [7]})).version
    log = (tmp_path / "_delta_log" / f"{version:020}.json").read_text("utf-8")
    entry = next(json.loads(line)["add"] for line in log.splitlines() if '"add"' in line)
    assert json.loads(entry["stats"])["minValues"] == {"id": 7}


@pytest.mark.parametrize("vector", [
    {"storageType": "i", "pathOrInlineDv": "00000", "sizeInBytes": 4, "cardinality": 1},
    {"storageType": "p", "pathOrInlineDv": "file:///none.bin", "offset": 1, "sizeInBytes": 40, "cardinality": 1},
])
def test_unreadable_deletion_vector(tmp_path: Path, vector: dict[str, Any]) -> None:
    write_deltalake(tmp_path, ROWS, configuration={"delta.enableDeletionVectors": "true"})
    (path,) = adds(str(tmp_path))
    edit_log(tmp_path, lambda entry: entry["add"].update(deletionVector=vector) if "add" in entry else None)
    with pytest.raises(pqext.ParquetError, match=r"a deletion vector cannot be read: .*delta:file"):
        pqext.scan(f"delta:{tmp_path}").to_table()
    with pytest.raises(pqext.ParquetError, match="a deletion vector cannot be read"):
        tables.overwrite(f"delta:{tmp_path}", ROWS)
    assert [file.name for file in tmp_path.glob("*.parquet")] == [path]


@pytest.mark.parametrize("call", [
    lambda table: pqext.scan(table).to_table(), lambda table: pqext.scan(table).count(), tables.compact,
    lambda table: tables.scan_appends(table, -1).to_table(),
])
def test_path_in_the_log_that_is_too_long_for_the_file_system(tmp_path: Path, call: Callable[[str], Any]) -> None:
    for _ in range(2):
        tables.append(f"delta:{tmp_path}", ROWS)
    edit_log(tmp_path, lambda entry: entry["add"].update(path="x" * 5000) if "add" in entry else None, version=1)
    with pytest.raises(pqext.CorruptFileError, match=r"the log of delta:.* whose path is too long") as caught:
        call(f"delta:{tmp_path}")
    assert len(str(caught.value)) < 1000
