"""Messages of failed commits and of invalid metadata contain no credentials."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import tables
from pqext.tables.error_texts import error_reason

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
import deltalake.transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import BadRequestError, CommitFailedException, ValidationException

from tests.tables.iceberg_tables import new_catalog

SECRET = "pass-w0rd"
ROWS = pa.table({"id": [1]})


def message_of(call: Any, *arguments: Any, **keywords: Any) -> str:
    """Return the message of the error that a call raises, with ``SHOWN``, a part of the cause that is not secret."""
    with pytest.raises((pqext.ParquetError, ValueError)) as caught:
        call(*arguments, **keywords)
    assert "SHOWN" in str(caught.value)
    return str(caught.value)


def failing(error: Exception) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


ERRORS = [RuntimeError, BadRequestError, ValidationException]


@pytest.mark.parametrize("type", ERRORS)
@pytest.mark.parametrize("is_opened", [False, True])
def test_iceberg_commit_error_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type: Any, is_opened: bool
) -> None:
    new_catalog(tmp_path).create_table("db.t", ROWS.schema)
    options = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "token": SECRET}
    table: Any = SqlCatalog("local", **options).load_table("db.t") if is_opened else "iceberg:local.db.t"
    monkeypatch.setattr("pqext.tables.iceberg.writer._ATTEMPTS", 1)
    monkeypatch.setattr(SqlCatalog, "commit_table", failing(type(f"SHOWN http://a/b and s3://me:{SECRET}@b, {SECRET}")))
    message = message_of(tables.append, table, ROWS, storage_options=None if is_opened else options)
    assert SECRET not in message
    assert "s3://b" in message


def test_iceberg_refresh_error_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_catalog(tmp_path).create_table("db.t", ROWS.schema)
    options = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "token": SECRET}
    table = SqlCatalog("local", **options).load_table("db.t")
    monkeypatch.setattr(SqlCatalog, "commit_table", failing(CommitFailedException("409")))
    real = SqlCatalog.load_table
    calls: list[Any] = []

    def load(*arguments: Any) -> Any:
        calls.append(arguments)
        return real(*arguments) if len(calls) == 1 else failing(RuntimeError(f"SHOWN {SECRET}"))()

    monkeypatch.setattr(SqlCatalog, "load_table", load)
    assert SECRET not in message_of(tables.append, table, ROWS)


@pytest.mark.parametrize("type", [CommitFailedError, DeltaError])
def test_delta_commit_error_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type: Any) -> None:
    tables.append(f"delta:{tmp_path / 'old'}", ROWS)
    error = type(f"SHOWN key {SECRET} of http://a/b and s3://me:{SECRET}@b")
    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", failing(error))
    monkeypatch.setattr(deltalake.transaction, "create_table_with_add_actions", failing(error))
    options = {"aws_secret_access_key": SECRET}
    for name in ("old", "new"):
        assert SECRET not in message_of(tables.append, f"delta:{tmp_path / name}", ROWS, storage_options=options)


@pytest.mark.parametrize("secret", [SECRET, "pass/w0rd"])
def test_catalog_location_with_password(tmp_path: Path, secret: str) -> None:
    new_catalog(tmp_path).create_table("db.t", ROWS.schema)
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        location = f"s3://me:{secret}@SHOWN/v1.metadata.json"
        connection.execute("UPDATE iceberg_tables SET metadata_location = ?", (location,))
    connection.close()
    options = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "s3.region": "x"}
    assert secret not in message_of(pqext.scan, "iceberg:local.db.t", storage_options=options)


def test_invalid_metadata_with_password(tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", ROWS.schema)
    metadata = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text("utf-8"))
    metadata |= {"last-updated-ms": "s3://b/x", "last-sequence-number": f"s3://me:{SECRET}@b/x"}
    path = tmp_path / "SHOWN.metadata.json"
    path.write_text(json.dumps(metadata), "utf-8")
    assert "w0rd" not in message_of(pqext.scan, f"iceberg:{path}")


@pytest.mark.parametrize(("text", "reason"), [
    ("1 error\nlast-column-id\n  Input should be a number [type=int, input_value='s3://me:pass-w0...cket', "
     "input_type=str]", "1 error last-column-id Input should be a number [type=int, input_value=***, input_type=str]"),
    ("\x1b[31mhttp://a:8080/b and https://me:pass@c/d?sig=x", "http://a:8080/b and https://c/d"),
    ("got 'me:pass/word@bucket/key', not 's3://bucket/key'", "got 'bucket/key', not 's3://bucket/key'"),
    ("", "OSError"),
])
def test_reason_on_one_line_without_credentials(text: str, reason: str) -> None:
    assert error_reason(OSError(text)) == reason
