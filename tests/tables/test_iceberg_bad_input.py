"""Iceberg tables that cannot be read: the errors name the table and the file."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import tables

pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")

from pyiceberg.table import Table

from pqext.core.format.predicate import Bounds
from pqext.tables.iceberg.log_statistics import (
    Column,
    IcebergLogStatistics,
    decode_bound,
)
from pqext.tables.iceberg.partitions import partition_bounds
from tests.tables.iceberg_tables import commit, data_paths, describe, local, new_catalog, position_deletes


def create(folder: Path) -> Table:
    table = new_catalog(folder).create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": pa.array(range(5), pa.int64())}))
    return table


def change_metadata(table: Table, **changes: Any) -> str:
    path = local(table.metadata_location)
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")
    return f"iceberg:{path}"


@pytest.mark.spec("tables.iceberg.versions")
@pytest.mark.parametrize("version", [0, 4, "2", None])
def test_unknown_format_version(version: Any, tmp_path: Path) -> None:
    name = change_metadata(create(tmp_path), **{"format-version": version})
    with pytest.raises(pqext.UnsupportedError, match=r"t/metadata/.*format version"):
        pqext.scan(name)


@pytest.mark.parametrize("key", ["default-spec-id", "current-schema-id", "default-sort-order-id"])
def test_unknown_id_in_metadata(key: str, tmp_path: Path) -> None:
    name = change_metadata(create(tmp_path), **{key: 77})
    with pytest.raises(pqext.CorruptFileError, match=rf"{key} 77 .*t/metadata/00001-.*\.metadata\.json"):
        pqext.scan(name)
    options = {"uri": f"sqlite:///{tmp_path}/catalog.db", "type": "sql"}
    with pytest.raises(pqext.CorruptFileError, match=rf"{key} 77 .*iceberg:local\.db\.t"):
        pqext.scan("iceberg:local.db.t", storage_options=options)


@pytest.mark.parametrize("options", [
    {"type": "rest", "uri": "http://me:pass-w0rd@127.0.0.1:9", "token": "t0ken-t0ken"},
    {"type": "sql", "uri": "sqlite:////none/pass-w0rd/catalog.db"},
])
def test_unreachable_catalog_is_a_source_error_without_credentials(options: dict[str, str]) -> None:
    for call in (pqext.scan, tables.describe):
        with pytest.raises(pqext.SourceError, match=r"catalog 'far' cannot be read: .*iceberg:far\.db\.t") as error:
            call("iceberg:far.db.t", storage_options=options)
        assert "pass-w0rd" not in str(error.value)
        assert "t0ken" not in str(error.value)


def test_unreachable_metadata_file_is_named_without_credentials() -> None:
    unreachable = {"s3.endpoint": "http://127.0.0.1:9", "s3.connect-timeout": "0.5", "s3.region": "x"}
    with pytest.raises(pqext.SourceError, match=r"cannot read iceberg:s3://bucket/v1\.metadata\.json") as error:
        pqext.scan("iceberg:s3://me:pass-w0rd@bucket/v1.metadata.json?signature=s1gned", storage_options=unreachable)
    assert "pass-w0rd" not in str(error.value)
    assert "s1gned" not in str(error.value)


@pytest.mark.parametrize("content", [
    b"", b"[]", b"{}", b'{"format-version": 2}', b"\x1f\x8bzip", b"\xff\xfe", b"[" * 9999,
])
def test_invalid_metadata(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "v1.metadata.json").write_bytes(content)
    with pytest.raises(pqext.CorruptFileError, match=r"metadata is not valid.*v1\.metadata\.json"):
        pqext.scan(f"iceberg:{tmp_path}/v1.metadata.json")


def test_unknown_type_in_metadata(tmp_path: Path) -> None:
    table = create(tmp_path)
    schema = json.loads(table.schema().model_dump_json())
    schema["fields"][0]["type"] = "blob"
    with pytest.raises(pqext.CorruptFileError, match="blob"):
        pqext.scan(change_metadata(table, schemas=[schema]))


def test_missing_tables(tmp_path: Path) -> None:
    create(tmp_path)
    options = {"uri": f"sqlite:///{tmp_path}/catalog.db", "type": "sql"}
    for name in ("iceberg:local.db.none", "iceberg:local.none.t"):
        with pytest.raises(FileNotFoundError, match=name):
            pqext.scan(name, storage_options=options)
    for path in (tmp_path / "none.metadata.json", tmp_path / "none", tmp_path):
        with pytest.raises(FileNotFoundError, match=r"has no Iceberg metadata|metadata file .* does not exist"):
            pqext.scan(f"iceberg:{path}")
    for name in ("iceberg:table", "iceberg:t.", "iceberg:local.t"):
        with pytest.raises(ValueError, match=r"must be iceberg:CATALOG\.NAMESPACE\.TABLE"):
            pqext.scan(name)
    with pytest.raises(ValueError, match="unconfigured"):
        pqext.scan("iceberg:unconfigured.db.t")


def test_version_and_timestamp_exclude_each_other(tmp_path: Path) -> None:
    table = create(tmp_path)
    with pytest.raises(ValueError, match="either version or timestamp"):
        pqext.scan(table, version=1, timestamp="2024-01-01")


def test_missing_files_are_named_with_their_table(tmp_path: Path) -> None:
    table = create(tmp_path)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    data = local(data_paths(table)[0])
    data.unlink()
    with pytest.raises(FileNotFoundError, match=f"db.t.*{data.name}"):
        pqext.scan(table).to_table()
    for path in (snapshot.manifests(table.io)[0].manifest_path, snapshot.manifest_list):
        local(path).unlink()
        with pytest.raises(FileNotFoundError, match=r"db\.t refers to it"):
            pqext.scan(table)


def test_corrupt_manifests_are_typed_errors(tmp_path: Path) -> None:
    table = create(tmp_path)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    draw, errors = random.Random(5), 0
    for path in (local(snapshot.manifests(table.io)[0].manifest_path), local(snapshot.manifest_list)):
        whole = path.read_bytes()
        for number in range(60):
            damaged = bytearray(whole)
            if number % 3:
                damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
            else:
                del damaged[draw.randrange(len(damaged)) :]
            path.write_bytes(damaged)
            try:
                pqext.scan(table).to_table()
            except (pqext.ParquetError, FileNotFoundError):
                errors += 1
        path.write_bytes(b"Obj\x01")
        with pytest.raises(pqext.CorruptFileError, match=r"cannot read a manifest of iceberg:db\.t"):
            pqext.scan(table)
        path.write_bytes(whole)
    assert errors > 40


@pytest.mark.spec("tables.iceberg.versions")
def test_encrypted_files_and_other_formats_are_not_supported(tmp_path: Path) -> None:
    table = create(tmp_path)
    (path,) = data_paths(table)
    for file, message in (
        (describe(path, 5, key_metadata=b"key"), "encrypted"), (describe(path, 5, file_format="ORC"), "ORC"),
        (position_deletes(table, "d", [(path, 1)], key_metadata=b"key"), "encrypted"),
    ):
        with pytest.raises(pqext.UnsupportedError, match=message):
            pqext.scan(f"iceberg:{commit(table, [file], is_data=file.content == 0)}")


@pytest.mark.spec("tables.iceberg.mapping")
def test_files_without_ids_need_a_name_mapping(tmp_path: Path) -> None:
    table = create(tmp_path)
    (path,) = data_paths(table)
    pq.write_table(pa.table({"id": pa.array(range(5), pa.int64())}), local(path))
    with pytest.raises(pqext.UnsupportedError, match="name mapping"):
        pqext.scan(table).to_table()


def test_files_and_partition_types_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="filesystem and partition_types"):
        pqext.scan(create(tmp_path), partition_types={"id": "string"})


@pytest.mark.spec("tables.iceberg.bounds")
@pytest.mark.parametrize(("type", "bound", "value"), [
    ("long", b"\x05\0\0\0", 5), ("long", b"\xff" * 8, -1), ("long", b"\x05", None), ("int", b"\x05" + bytes(7), None),
    ("date", b"\x02\0\0\0", 2), ("timestamp", b"\x02\0\0\0", 2 * 86_400 * 10**9),
    ("timestamp", b"\x02" + bytes(7), 2000),
    ("timestamptz_ns", b"\x02" + bytes(7), 2), ("time", b"\x02" + bytes(7), 2000), ("time", b"\x02\0\0\0", None),
    ("float", b"\0\0\xc0\x3f", 1.5), ("double", b"\0\0\xc0\x3f", 1.5), ("double", b"\0\0\0\0\0\0\xf8\x7f", None),
    ("double", b"", None), ("boolean", b"\x01", True), ("boolean", b"\0", False), ("boolean", b"", None),
    ("string", b"ab", b"ab"), ("binary", b"", b""), ("fixed[2]", b"ab", b"ab"), ("unknown", b"ab", None),
])
def test_bounds_are_decoded_as_the_type_when_they_were_written(type: str, bound: bytes, value: Any) -> None:
    assert decode_bound(type, bound) == value


def test_decimal_bounds() -> None:
    assert str(decode_bound("decimal(9, 2)", (-1234).to_bytes(2, "big", signed=True))) == "-12.34"
    assert decode_bound("decimal(9, 2)", b"") is None
    assert decode_bound("decimal(38, 0)", bytes(17)) is None


def statistics(type: str, low: bytes, high: bytes, **changes: Any) -> Bounds:
    arguments: dict[str, Any] = {
        "num_rows": 4, "value_counts": {1: 4}, "null_counts": {1: 0}, "nan_counts": {1: 0}, "lower": {1: low},
        "upper": {1: high}, **changes,
    }
    return IcebergLogStatistics({("c",): Column(1, type)}, **arguments).bounds(("c",))


def test_uuid_bounds_hold_in_both_orders() -> None:
    low, high = b"\x10" + b"\x80" * 15, b"\x10" + b"\x7f" * 15
    assert statistics("uuid", low, b"\x20" * 16).minimum == low[:8] + bytes(8)
    assert statistics("uuid", low, b"\x20" * 16).maximum == b"\x20" * 8 + b"\xff" * 8
    assert statistics("uuid", b"\x90" * 16, high).minimum is None


def test_counts_that_contradict_the_rows_are_unknown() -> None:
    bound = bytes(8)
    assert statistics("long", bound, bound).null_count == 0
    assert statistics("long", bound, bound, value_counts={1: 3}).null_count is None
    assert statistics("long", bound, bound, null_counts={1: 5}).null_count is None
    assert statistics("long", bound, bound, null_counts={}).null_count is None
    assert statistics("double", bound, bound).has_nan is False
    assert statistics("double", bound, bound, nan_counts={}).has_nan is None
    assert statistics("double", bound, bound, nan_counts={1: 2}).has_nan is True


@pytest.mark.spec("tables.iceberg.partitions")
@pytest.mark.parametrize(("transform", "type", "value", "expected"), [
    ("identity", "long", 5, (5, 5)), ("identity", "string", "é", ("é".encode(),) * 2),
    ("identity", "timestamp", 7, (7000, 7000)), ("identity", "double", float("nan"), (None, None)),
    ("truncate[10]", "long", -10, (-10, -1)), ("truncate[2]", "string", "ab", (b"ab", None)),
    ("truncate[2]", "string", "a", (b"a", b"a")), ("truncate[2]", "binary", b"ab", (None, None)),
    ("day", "date", 3, (3, 3)), ("day", "timestamptz", -1, (-2 * 86_400 * 10**9, -1)),
    ("day", "timestamp", 0, (-86_400 * 10**9, 86_400 * 10**9 - 1)),
    ("hour", "timestamp", 1, (3600 * 10**9, 7200 * 10**9 - 1)), ("bucket[4]", "long", 3, (None, None)),
    ("year", "date", 54, (19723, 20088)), ("year", "date", -1, (-731, -1)), ("year", "date", 1 << 40, (None, None)),
    ("month", "date", 1, (31, 58)), ("month", "timestamp", 1, (31 * 86_400 * 10**9, 59 * 86_400 * 10**9 - 1)),
    ("month", "date", 0, (-31, 30)), ("month", "string", 1, (None, None)),
])
def test_partition_values_are_bounds(transform: str, type: str, value: Any, expected: Any) -> None:
    bounds = partition_bounds(transform, type, value, 4)
    assert bounds is not None
    assert (bounds.minimum, bounds.maximum, bounds.null_count) == (*expected, 0)
    nulls = partition_bounds(transform, type, None, 4)
    assert nulls is not None
    assert nulls.all_null
    narrowed = statistics("long", bytes(8), bytes(8), partition_bounds={1: nulls})
    assert narrowed.all_null


def test_void_and_unknown_transforms_have_no_bounds() -> None:
    for transform in ("void", "zorder"):
        assert partition_bounds(transform, "long", None, 4) is None


def test_missing_current_snapshot_is_an_error(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(pa.table({"id": [1, 2]}))
    metadata = json.loads(local(table.metadata_location).read_text())
    metadata["current-snapshot-id"] = 12345
    (tmp_path / "v9.metadata.json").write_text(json.dumps(metadata))
    with pytest.raises(pqext.CorruptFileError, match="is missing"):
        pqext.scan(f"iceberg:{tmp_path}/v9.metadata.json").count()
