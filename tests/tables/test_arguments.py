"""Invalid arguments of functions on tables: the errors name the argument and what exists."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import tables
from pqext.tables.arguments import format_of

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
from tests.tables.iceberg_tables import new_catalog

ROWS = pa.table({"id": [1], "p": ["a"]})


@pytest.fixture(params=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A table of both formats with two versions; rows 1, and 1 and 2."""
    target: Any = f"delta:{tmp_path / 't'}"
    if request.param == "iceberg":
        target = new_catalog(tmp_path).create_table("db.t", ROWS.schema)
    tables.append(target, ROWS)
    tables.append(target, pa.table({"id": [2], "p": ["b"]}))
    return target


@pytest.mark.parametrize("version", [-1, 2**63, 2**70])
def test_impossible_version_is_an_error_with_the_existing_versions(table: Any, version: int) -> None:
    with pytest.raises(ValueError, match=rf"no (version|snapshot) {version}; its (last version is 1|snapshots are \d)"):
        pqext.scan(table, version=version)


def test_missing_version_is_an_error_with_the_existing_versions(table: Any) -> None:
    with pytest.raises(FileNotFoundError, match=r"no (version|snapshot) 99; its (last version is 1|snapshots are \d)"):
        pqext.scan(table, version=99)


@pytest.mark.parametrize("version", ["1", 1.0, True])
def test_version_of_another_type(table: Any, version: Any) -> None:
    with pytest.raises(TypeError, match="version must be an integer, not "):
        pqext.scan(table, version=version)


@pytest.mark.parametrize("timestamp", [5, 1.5, date(2026, 11, 30), b"2026-11-30"])
def test_timestamp_of_another_type(table: Any, timestamp: Any) -> None:
    with pytest.raises(TypeError, match="timestamp must be ISO 8601 text or a datetime, not "):
        pqext.scan(table, timestamp=timestamp)


def test_invalid_timestamp(table: Any) -> None:
    with pytest.raises(ValueError, match=r"timestamp must be ISO 8601 text .* not 'yesterday'"):
        pqext.scan(table, timestamp="yesterday")


def test_times_without_zone_are_in_utc(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    now = datetime.now(UTC)
    for time in (now + timedelta(hours=1), (now + timedelta(hours=1)).astimezone(timezone(timedelta(hours=-9)))):
        assert pqext.scan(table, timestamp=time).count() == 2
        assert pqext.scan(table, timestamp=time.isoformat()).count() == 2
    later, before = (now + timedelta(hours=hours) for hours in (1, -1))
    for text in (later.replace(tzinfo=None), later.replace(tzinfo=None).isoformat()):
        assert pqext.scan(table, timestamp=text).count() == 2
    for text in (before, before.replace(tzinfo=None), before.replace(tzinfo=None).isoformat(), "1999-01-01"):
        with pytest.raises(FileNotFoundError, match=r"has no (version|snapshot) at (1999|20)"):
            pqext.scan(table, timestamp=text)


@pytest.mark.parametrize("source", [5, None, b"delta:x", Path("delta:x")])
@pytest.mark.parametrize("call", [tables.open_table, tables.describe, tables.compact])
def test_table_of_another_type(call: Callable[[Any], Any], source: Any) -> None:
    with pytest.raises(TypeError, match=r"table must be 'delta:PATH', .*(not|write)"):
        call(source)


@pytest.mark.parametrize("source", ["delta:", "iceberg:", "x", "", "hudi:x"])
@pytest.mark.parametrize("call", [tables.open_table, tables.describe, tables.compact])
def test_invalid_table_name(call: Callable[[Any], Any], source: str) -> None:
    with pytest.raises(ValueError, match=r"table must be 'delta:PATH', .*(write|add)"):
        call(source)


WRITE_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"partition_by": 5}, "partition_by must be a column name or a list of column names, not 5"),
    ({"partition_by": [5]}, r"partition_by must be .*, not \[5\]"),
    ({"sort_by": b"id"}, "sort_by must be a column name or a list of column names, not b'id'"),
    ({"target_file_bytes": 1.5}, "target_file_bytes must be an integer, not 1.5"),
    ({"target_file_bytes": True}, "target_file_bytes must be an integer, not True"),
    ({"allow_undeclared_shredding": 1}, "allow_undeclared_shredding must be True or False, not 1"),
    ({"storage_options": "x"}, "storage_options must be a mapping, not 'x'"),
    ({"progress": 5}, "progress must be a function that accepts two numbers, not 5"),
    ({"options": {}}, "options must be WriteOptions, not dict"),
]


@pytest.mark.parametrize(("arguments", "message"), WRITE_ARGUMENTS, ids=[str(case[0]) for case in WRITE_ARGUMENTS])
def test_write_arguments_of_another_type(table: Any, arguments: dict[str, Any], message: str) -> None:
    for call in (tables.append, tables.overwrite):
        with pytest.raises(TypeError, match=message):
            call(table, ROWS, **arguments)
    assert pqext.scan(table).count() == 2


REWRITE_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"target_file_bytes": "1GB"}, "target_file_bytes must be an integer, not '1GB'"),
    ({"dry_run": "no"}, "dry_run must be True or False, not 'no'"),
    ({"storage_options": 5}, "storage_options must be a mapping, not 5"),
    ({"progress": "bar"}, "progress must be a function that accepts two numbers, not 'bar'"),
]


@pytest.mark.parametrize(("arguments", "message"), REWRITE_ARGUMENTS, ids=[str(case[0]) for case in REWRITE_ARGUMENTS])
def test_rewrite_arguments_of_another_type(table: Any, arguments: dict[str, Any], message: str) -> None:
    for call in (tables.compact, lambda table, **options: tables.recluster(table, "id", **options)):
        with pytest.raises(TypeError, match=message):
            call(table, **arguments)
    assert tables.describe(table).files == 2


def test_other_arguments_of_another_type(table: Any) -> None:
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: tables.recluster(table, 5), "by must be a column name"),  # type: ignore[arg-type]
        (lambda: tables.replace_files(table, 5, ROWS), "files must be a list of paths"),  # type: ignore[arg-type]
        (lambda: tables.replace_files(table, "a", ROWS), "files must be a list of paths"),
        (lambda: tables.reshred(table, 5), "shredding must be a mapping of VARIANT columns"),  # type: ignore[arg-type]
        (lambda: tables.reshred(table, {}, options=5), "options must be WriteOptions"),  # type: ignore[arg-type]
        (lambda: tables.clean(table, older_than=7), "older_than must be a datetime"),  # type: ignore[arg-type]
        (lambda: tables.describe(table, older_than=7), "older_than must be a datetime"),  # type: ignore[arg-type]
        (lambda: tables.clean(table, dry_run=None), "dry_run must be True or False"),  # type: ignore[arg-type]
        (lambda: tables.append(table, 5), "expected a table of pyarrow"),
    ]
    for call, message in calls:
        with pytest.raises(TypeError, match=message):
            call()
    for invalid in (tables.compact, lambda table, **options: tables.append(table, ROWS, **options)):
        with pytest.raises(ValueError, match="target_file_bytes must be positive, not 0"):
            invalid(table, target_file_bytes=0)
    with pytest.raises(ValueError, match="older_than must be zero or positive, not -1 day"):
        tables.describe(table, older_than=timedelta(-1))


def test_unknown_option_is_not_suggested_again(table: Any) -> None:
    calls: list[Callable[..., Any]] = [tables.append, lambda table, _, **options: tables.compact(table, **options)]
    for call, options in zip(calls, ({"filter": "id = 1"}, {"by": "id"}), strict=True):
        with pytest.raises(TypeError, match=r"unknown option '(filter|by)'") as error:
            call(table, ROWS, **options)
        assert "did you mean 'filter'" not in str(error.value)
        assert "did you mean 'by'" not in str(error.value)


@pytest.mark.parametrize("argument", ["partition_by", "sort_by"])
def test_unknown_column_is_named_with_the_columns(table: Any, argument: str, tmp_path: Path) -> None:
    for target in (table, f"delta:{tmp_path / 'new'}"):
        with pytest.raises(ValueError, match=f"{argument}: no column 'zz'; the file has id, p"):
            tables.append(target, ROWS, **{argument: "zz"})
    assert not (tmp_path / "new").exists()


def test_recluster_by_partition_columns_only(tmp_path: Path) -> None:
    tables.append(f"delta:{tmp_path}", ROWS, partition_by="p")
    with pytest.raises(ValueError, match=r"by contains only partition columns \(p\).*add another column"):
        tables.recluster(f"delta:{tmp_path}", "p")
    assert tables.recluster(f"delta:{tmp_path}", ["p", "id"]).rows == 1


def test_filter_on_other_columns_names_the_partition_columns(tmp_path: Path) -> None:
    tables.append(f"delta:{tmp_path}", ROWS, partition_by="p")
    for call in (lambda filter: tables.overwrite(f"delta:{tmp_path}", ROWS, filter=filter),
                 lambda filter: tables.compact(f"delta:{tmp_path}", filter=filter)):
        with pytest.raises(ValueError, match="no column 'id'; the columns are 'p'") as error:
            call("id = 1")
        assert "position" not in str(error.value)


def test_file_is_not_a_table(tmp_path: Path) -> None:
    file = tmp_path / "ev.parquet"
    file.write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"table must be 'delta:PATH', .* not the file .*ev.parquet'; the path of a"):
        format_of(str(file))
