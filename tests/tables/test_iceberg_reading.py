"""Scans of Iceberg tables that pyiceberg wrote return the rows that its own reader returns."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import pqext

pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
)
from pyiceberg.types import DoubleType, FloatType, IntegerType, LongType, NestedField, StringType

from tests.tables.iceberg_tables import data_paths, local, new_catalog

START = datetime(2024, 1, 1, tzinfo=UTC)


def events(first: int, count: int) -> pa.Table:
    """Rows of many types, with nulls."""
    ids = range(first, first + count)
    return pa.table({
        "id": pa.array(ids, pa.int64()),
        "n": pa.array([None if i % 7 == 0 else i % 10 for i in ids], pa.int32()),
        "name": pa.array([None if i % 5 == 0 else f"name-{i:04}-{'é' * (i % 40)}" for i in ids], pa.string()),
        "moment": pa.array([START + timedelta(hours=7 * i) for i in ids], pa.timestamp("us", "UTC")),
        "day": pa.array([date(2024, 1, 1) + timedelta(days=i % 3) for i in ids], pa.date32()),
        "price": pa.array([Decimal(i) / 100 - 5 for i in ids], pa.decimal128(9, 2)),
        "x": pa.array([float("nan") if i % 11 == 0 else i / 3 for i in ids], pa.float64()),
        "uuid": pa.array([UUID(int=i << 100).bytes for i in ids], pa.uuid()),
        "tags": pa.array([[str(i)] * (i % 3) for i in ids], pa.list_(pa.string())),
        "user": pa.array([{"a": i, "b": None if i % 2 else "x"} for i in ids],
                         pa.struct([("a", pa.int64()), ("b", pa.string())])),
        "counts": pa.array([[("k", i)] for i in ids], pa.map_(pa.string(), pa.int64())),
    })


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Rows in the order of their ids, comparable between readers."""
    rows = table.sort_by("id").to_pylist()
    for row in rows:
        for name, value in row.items():
            if isinstance(value, UUID):
                row[name] = value.bytes
            elif isinstance(value, float) and value != value:
                row[name] = "nan"
    return rows


def create(folder: Path, transform: Transform[Any, Any] | None = None, source: str = "id") -> Table:
    """A table with the columns of ``events``, partitioned by a transform of a column."""
    catalog = new_catalog(folder)
    table = catalog.create_table("db.events", events(0, 1).schema)
    if transform is not None:
        partition(table, transform, source)
    return table


def partition(table: Table, transform: Transform[Any, Any], source: str) -> None:
    """Partition a table by a transform, which pyiceberg computes with a library of its own unless it is identity."""
    if not isinstance(transform, IdentityTransform):
        pytest.importorskip("pyiceberg_core")
    with table.update_spec() as update:
        update.add_field(source, transform, "part")


PARTITIONS: list[tuple[Transform[Any, Any] | None, str]] = [
    (None, "id"), (IdentityTransform(), "day"), (IdentityTransform(), "n"), (BucketTransform(4), "id"),
    (TruncateTransform(6), "name"), (TruncateTransform(10), "id"), (DayTransform(), "moment"),
]


@pytest.mark.parametrize(("transform", "source"), PARTITIONS, ids=lambda value: str(value))
def test_partitioned_table_equals_pyiceberg(transform: Transform[Any, Any] | None, source: str, tmp_path: Path) -> None:
    table = create(tmp_path, transform, source)
    table.append(events(0, 30))
    table.append(events(30, 20))
    scan = pqext.scan(table)
    assert plain(scan.to_table()) == plain(table.scan().to_arrow())
    assert scan.count() == 50
    assert scan.schema.names == events(0, 1).schema.names
    for filter in (
        "id > 41", "n = 3", "n is null", "name = 'name-0007-ééééééé'", "day = date '2024-01-02'", "price < -4.9",
        "moment >= timestamp '2024-01-09 00:00:00+00:00'", "name is null and n > 2", "user.a >= 48", "user.b is null",
    ):
        assert set(pqext.scan(table, ["id"], filter).to_table()["id"].to_pylist()) == _matches(filter), filter


def _matches(filter: str) -> set[int]:
    """Ids of the rows of ``events`` for which a filter is true, by DuckDB."""
    duckdb = pytest.importorskip("duckdb")
    rows = events(0, 50).drop_columns(["uuid", "counts"])
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("rows", rows)
        return {row[0] for row in connection.execute(f"select id from rows where {filter}").fetchall()}


@pytest.mark.spec("tables.iceberg.bounds")
@pytest.mark.parametrize(("transform", "source", "filter"), [
    (None, "id", "id >= 30"), (None, "id", "price >= -4.70"),
    (None, "id", "moment >= timestamp '2024-01-09 18:00:00+00:00'"), (None, "id", "name >= 'name-0030'"),
])
def test_files_are_pruned_by_bounds(transform: Any, source: str, filter: str, tmp_path: Path) -> None:
    table = create(tmp_path, transform, source)
    table.append(events(0, 30))
    first = data_paths(table)
    table.append(events(30, 20))
    expected = pqext.scan(table, ["id"], filter).to_table().sort_by("id")
    assert expected.num_rows
    for path in first:
        local(path).write_bytes(b"damage")
    scan = pqext.scan(table, ["id"], filter)
    assert scan.to_table().sort_by("id") == expected
    assert "skips by table log" in str(scan.explain())
    with pytest.raises(pqext.CorruptFileError):
        pqext.scan(table, ["id"]).to_table()


@pytest.mark.parametrize(("transform", "source", "filter"), [
    (IdentityTransform(), "day", "day = date '2024-01-02'"), (TruncateTransform(10), "id", "id between 20 and 29"),
    (DayTransform(), "moment", "moment = timestamp '2024-01-03 01:00:00+00:00'"),
])
def test_files_are_pruned_by_partitions_without_bounds(
    transform: Any, source: str, filter: str, tmp_path: Path
) -> None:
    catalog = new_catalog(tmp_path)
    table = catalog.create_table(
        "db.events", events(0, 1).schema, properties={"write.metadata.metrics.default": "none"}
    )
    partition(table, transform, source)
    table.append(events(0, 60))
    expected = pqext.scan(table, ["id"], filter).to_table().sort_by("id")
    used = {path for path in data_paths(table) if pqext.scan(path.removeprefix("file://"), None, filter).count()}
    assert expected.num_rows
    assert used
    for path in set(data_paths(table)) - used:
        local(path).write_bytes(b"damage")
    assert pqext.scan(table, ["id"], filter).to_table().sort_by("id") == expected


def evolve_rename(table: Table) -> None:
    with table.update_schema() as update:
        update.rename_column("n", "number")
        update.rename_column("user.a", "first")


def evolve_drop_and_add(table: Table) -> None:
    with table.update_schema() as update:
        update.delete_column("n")
    with table.update_schema() as update:
        update.add_column("n", StringType())
        update.add_column(("user", "c"), LongType())


def evolve_order(table: Table) -> None:
    with table.update_schema() as update:
        update.move_first("price")
        update.move_after("id", "uuid")


def evolve_types(table: Table) -> None:
    with table.update_schema() as update:
        update.update_column("n", LongType())
        update.update_column("price", pyiceberg_decimal(18, 2))


def pyiceberg_decimal(precision: int, scale: int) -> Any:
    from pyiceberg.types import DecimalType

    return DecimalType(precision, scale)


@pytest.mark.spec("tables.iceberg.ids")
@pytest.mark.parametrize("evolve", [evolve_rename, evolve_drop_and_add, evolve_order, evolve_types])
def test_evolved_table_equals_pyiceberg(evolve: Callable[[Table], None], tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(events(0, 30))
    evolve(table)
    rows = events(100, 10)
    arrays = {name: rows[name] for name in rows.schema.names}
    if evolve is evolve_rename:
        arrays["number"] = arrays.pop("n")
        arrays["user"] = pa.array([{"first": i, "b": "y"} for i in range(10)])
    elif evolve is evolve_drop_and_add:
        arrays["n"] = pa.array([str(i) for i in range(10)])
        arrays["user"] = pa.array([{"a": i, "b": "y", "c": i} for i in range(10)])
    elif evolve is evolve_types:
        arrays["n"] = pa.array([2**40 + i for i in range(10)], pa.int64())
        arrays["price"] = arrays["price"].cast(pa.decimal128(18, 2))
    table.append(pa.table(arrays))
    scan = pqext.scan(table)
    assert plain(scan.to_table()) == plain(table.scan().to_arrow())
    for column in [name for name in ("n", "number", "price") if name in scan.schema.names]:
        expected = [row["id"] for row in plain(scan.to_table()) if row[column] is not None]
        assert scan.filter(f"{column} is not null").to_table()["id"].sort().to_pylist() == expected
    if evolve is evolve_types:
        assert scan.filter(pqext.col("n") > 2**40).count() == 9
        assert scan.filter("n < 5").count() == table.scan("n < 5").to_arrow().num_rows


@pytest.mark.spec("tables.iceberg.bounds")
def test_float_bounds_of_the_type_before_promotion(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", IntegerType()), NestedField(2, "x", FloatType()))
    table = new_catalog(tmp_path).create_table("db.t", schema)
    table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "x": pa.array([0.1, 0.2], pa.float32())}))
    first = data_paths(table)
    with table.update_schema() as update:
        update.update_column("x", DoubleType())
        update.update_column("id", LongType())
    table.append(pa.table({"id": pa.array([2**40, 4], pa.int64()), "x": [0.3, 0.4]}))
    assert plain(pqext.scan(table).to_table()) == plain(table.scan().to_arrow())
    for filter in ("id > 2", "x > 0.25"):
        assert pqext.scan(table, filter=filter).count() == 2
    assert pqext.scan(table, filter="x > 0.2").count() == 3  # 0.2 as float32 exceeds the double 0.2
    local(first[0]).write_bytes(b"damage")
    assert pqext.scan(table, ["id"], "id > 2 and x > 0.25").to_table()["id"].sort().to_pylist() == [4, 2**40]


def test_overwrites_and_deletes_equal_pyiceberg(tmp_path: Path) -> None:
    table = create(tmp_path, IdentityTransform(), "day")
    table.append(events(0, 30))
    table.overwrite(events(50, 10), "id < 10")
    table.delete("name = 'name-0011-ééééééééééé' or id = 12")
    table.delete("day = '2024-01-01'")
    assert plain(pqext.scan(table).to_table()) == plain(table.scan().to_arrow())
    assert pqext.scan(table).count() == table.scan().to_arrow().num_rows < 30


def test_changed_partition_spec_equals_pyiceberg(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg_core")
    table = create(tmp_path, IdentityTransform(), "day")
    table.append(events(0, 10))
    with table.update_spec() as update:
        update.remove_field("part")
        update.add_field("id", BucketTransform(3), "bucket")
    table.append(events(10, 10))
    assert plain(pqext.scan(table).to_table()) == plain(table.scan().to_arrow())


@pytest.mark.spec("tables.iceberg.snapshot")
def test_snapshots_by_id_and_time_have_their_schema(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(events(0, 5))
    first = table.current_snapshot()
    assert first is not None
    with table.update_schema() as update:
        update.delete_column("n")
    table.append(events(5, 5).drop_columns(["n"]))
    assert pqext.scan(table, version=first.snapshot_id).to_table()["n"].null_count == 1
    assert pqext.scan(table, version=first.snapshot_id).count() == 5
    time = datetime.fromtimestamp(first.timestamp_ms / 1000, UTC)
    assert pqext.scan(table, timestamp=time).count() == 5
    assert pqext.scan(table, timestamp=time.isoformat()).count() == 5
    assert pqext.scan(table).count() == 10
    with pytest.raises(FileNotFoundError, match=r"db\.events has no snapshot 7"):
        pqext.scan(table, version=7)
    with pytest.raises(FileNotFoundError, match="1999"):
        pqext.scan(table, timestamp="1999-01-01")


def test_table_without_snapshots_is_empty(tmp_path: Path) -> None:
    table = create(tmp_path)
    scan = pqext.scan(table)
    assert scan.count() == 0
    assert scan.to_table().num_rows == 0
    assert scan.schema.names == events(0, 1).schema.names


def test_names_open_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path)
    table.append(events(0, 5))
    monkeypatch.setenv("PYICEBERG_CATALOG__LOCAL__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__LOCAL__TYPE", "sql")
    metadata = str(local(table.metadata_location))
    catalog = {"uri": f"sqlite:///{tmp_path}/catalog.db", "type": "sql"}
    for name in (f"iceberg:{metadata}", f"iceberg:file://{metadata}", f"iceberg:{local(table.location())}"):
        assert pqext.scan(name).count() == 5, name
    assert pqext.scan("iceberg:local.db.events", storage_options=catalog).count() == 5
    missing = f"{tmp_path}/v9.metadata.json"
    with pytest.raises(FileNotFoundError, match=f"the metadata file {missing} of .* does not exist; pass the path"):
        pqext.scan(f"iceberg:{missing}")


def test_pickled_scan_reads_the_same_rows(tmp_path: Path) -> None:
    table = create(tmp_path, IdentityTransform(), "day")
    table.append(events(0, 30))
    scan = pqext.scan(table, filter="id > 3")
    restored = pickle.loads(pickle.dumps(scan))
    assert plain(restored.to_table()) == plain(scan.to_table())
    assert "skips by table log" in str(restored.filter("id > 99").explain())


@pytest.mark.spec("tables.iceberg.mapping")
def test_added_files_without_ids_are_matched_by_name_mapping(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    catalog = new_catalog(tmp_path)
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "day", StringType()), NestedField(3, "x", DoubleType())
    )
    table = catalog.create_table("db.t", schema, partition_spec=spec)
    pq.write_table(pa.table({"id": [1, 2], "day": ["a", "a"], "x": [0.5, 1.5]}), tmp_path / "a.parquet")
    table.add_files([f"file://{tmp_path}/a.parquet"])
    with table.update_schema() as update:
        update.rename_column("x", "y")
    assert plain(pqext.scan(table).to_table()) == plain(table.scan().to_arrow())
    assert pqext.scan(table, filter="y > 1").to_table()["id"].to_pylist() == [2]
