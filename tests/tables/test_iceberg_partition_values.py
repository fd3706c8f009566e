"""Write identity partitions of Iceberg tables: exact values in manifests, all columns in files, changed partitions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import UnsupportedError, tables

pytest.importorskip("pyiceberg")
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tests.tables.iceberg_tables import data_paths, local, new_catalog

NAN = float("nan")
NULL = "__HIVE_DEFAULT_PARTITION__"


def new_table(folder: Path, type: IcebergType, *, required: bool = False, **properties: str) -> Table:
    """A table with the columns ``id`` and ``k``, partitioned by ``k``."""
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "k", type, required=required))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "k"))
    name = f"db.t{len(list(folder.iterdir())) if folder.exists() else 0}"
    return new_catalog(folder).create_table(name, schema, partition_spec=spec, properties=properties)


def rows(values: Sequence[Any], type: pa.DataType, start: int = 0) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + len(values)), pa.int64()), "k": pa.array(values, type)})


def manifest_values(table: Table) -> list[str]:
    """The partition values in the manifests of the current snapshot, as pyiceberg reads them."""
    table.refresh()
    return sorted(repr([*task.file.partition._data]) for task in table.scan().plan_files())


def stored(table: Table) -> list[str]:
    table.refresh()
    by_pqext = sorted(map(repr, pqext.scan(table).to_table().to_pylist()))
    if not isinstance(table.schema().find_field("k").field_type, UUIDType):
        assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == by_pqext
    return by_pqext


UTC = dt.UTC
CASES: list[tuple[IcebergType, pa.DataType, list[Any]]] = [
    (StringType(), pa.string(), ["", NULL, None, "a/b c%20ü", "x=y:z#?", ".", "%5F", "1", "x" * 300, "x" * 301]),
    (FloatType(), pa.float32(), [NAN, 0.0, -0.0, float("inf"), float("-inf"), 0.1, None]),
    (BooleanType(), pa.bool_(), [True, False, None]),
    (IntegerType(), pa.int32(), [0, -1, 2**31 - 1, None]),
    (LongType(), pa.int64(), [0, -(2**63), 2**63 - 1, None]),
    (DecimalType(9, 2), pa.decimal128(9, 2), [Decimal("1.20"), Decimal("-0.01"), Decimal("0.00"), None]),
    (DecimalType(38, 10), pa.decimal128(38, 10), [Decimal("1234567890123456789012345678.0123456789"), None]),
    (DateType(), pa.date32(), [dt.date(1960, 1, 1), dt.date(9999, 12, 31), None]),
    (TimeType(), pa.time64("us"), [dt.time(0), dt.time(23, 59, 59, 999_999), None]),
    (TimestampType(), pa.timestamp("us"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), None]),
    (TimestamptzType(), pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, 1, tzinfo=UTC), None]),
    (BinaryType(), pa.binary(), [b"", b"\x00/", b"\xff" * 200, None]),
    (FixedType(3), pa.binary(3), [b"\x00\x01/", b"abc", None]),
    (UUIDType(), pa.binary(16), [bytes(16), bytes(range(16)), None]),
]


@pytest.mark.spec("tables.iceberg.partition-values")
@pytest.mark.parametrize(("type", "arrow", "values"), CASES, ids=lambda case: str(case)[:20])
def test_partition_values_are_exact(tmp_path: Path, type: IcebergType, arrow: pa.DataType, values: list[Any]) -> None:
    table = new_table(tmp_path, type)
    given = rows(values * 2, arrow)
    assert tables.append(table, given).files == len(values)
    expected = [_manifest_value(value, type) for value in pa.array(values, arrow).to_pylist()]
    assert manifest_values(table) == sorted(repr([value]) for value in expected)
    assert stored(table) == sorted(map(repr, given.to_pylist()))
    tables.append(table, rows(values, arrow, 100))
    before, rows_before = manifest_values(table), stored(table)
    result = tables.compact(table)
    assert (result.files_before, result.files_after) == (2 * len(values), len(values))
    assert [*before[::2]] == manifest_values(table)
    assert stored(table) == rows_before
    for path in data_paths(table):
        assert pq.ParquetFile(local(path)).schema_arrow.names == ["id", "k"]


def _manifest_value(value: Any, type: IcebergType) -> Any:
    """The value that the Iceberg spec's Avro types store."""
    epoch = dt.datetime(1970, 1, 1, tzinfo=getattr(value, "tzinfo", None))
    if isinstance(value, dt.datetime):
        return (value - epoch) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - dt.date(1970, 1, 1)).days
    if isinstance(value, dt.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return UUID(bytes=value) if isinstance(type, UUIDType) and value is not None else value


@pytest.mark.parametrize(
    ("type", "arrow", "values", "filter"),
    [
        (StringType(), pa.string(), ["", "a", None], "k = ''"),
        (DateType(), pa.date32(), [dt.date(1960, 1, 1), dt.date(2020, 1, 1)], "k < date '1970-01-01'"),
        (DecimalType(9, 2), pa.decimal128(9, 2), [Decimal("1.20"), Decimal("1.30")], "k = 1.2"),
        (TimestampType(), pa.timestamp("us"), [dt.datetime(1960, 1, 1), None], "k < timestamp '1970-01-01 00:00:00'"),
        (UUIDType(), pa.binary(16), [bytes(16), bytes(range(16))], pqext.col("k") == bytes(16)),
        (FloatType(), pa.float32(), [1.5, NAN, None], "k = 1.5"),
    ],
)
def test_partitions_are_overwritten_by_value(
    tmp_path: Path, type: IcebergType, arrow: pa.DataType, values: list[Any], filter: Any
) -> None:
    table = new_table(tmp_path, type)
    tables.append(table, rows(values, arrow))
    result = tables.overwrite(table, rows(values[:1], arrow, 100), filter=filter)
    assert (result.files, result.files_removed) == (1, 1)
    assert sorted(pqext.scan(table).to_table()["id"].to_pylist()) == [*range(1, len(values)), 100]
    with pytest.raises(ValueError, match="which filter= does not select"):
        tables.overwrite(table, rows(values[1:2], arrow), filter=filter)


@pytest.mark.spec("tables.iceberg.partition-values")
def test_double_partitions_are_read_exactly_and_not_removed(tmp_path: Path) -> None:
    table = new_table(tmp_path, DoubleType())
    values = [0.1, 1e300, NAN, 0.0, -0.0, None]
    assert tables.append(table, rows(values, pa.float64())).files == len(values)
    for position, value in enumerate(values[:2]):
        scan = pqext.scan(table, filter=pqext.col("k") == value)
        assert scan.to_table().to_pylist() == [{"id": position, "k": value}]
    tables.append(table, rows(values, pa.float64()))
    for call in (tables.compact, lambda table: tables.overwrite(table, rows([1.0], pa.float64()))):
        with pytest.raises(UnsupportedError, match="the partition column 'k' has the type double"):
            call(table)


def test_required_partition_column_may_be_empty(tmp_path: Path) -> None:
    table = new_table(tmp_path, StringType(), required=True)
    schema = pa.schema([("id", pa.int64()), pa.field("k", pa.string(), False)])
    tables.append(table, pa.table({"id": [1], "k": [""]}, schema=schema))
    assert (stored(table), manifest_values(table)) == (["{'id': 1, 'k': ''}"], ["['']"])


@pytest.mark.spec("tables.iceberg.write-columns")
def test_files_contain_partition_columns_with_their_ids(tmp_path: Path) -> None:
    table = new_table(tmp_path, StringType())
    tables.append(table, rows(["x", None], pa.string()))
    for path in data_paths(table):
        schema = pq.read_schema(local(path))
        assert [schema.field(name).metadata[b"PARQUET:field_id"] for name in ("id", "k")] == [b"1", b"2"]
        assert pq.read_table(local(path), partitioning=None)["k"].to_pylist() in (["x"], [None])
    (task,) = table.refresh().scan(row_filter="k = 'x'").plan_files()
    assert task.file.lower_bounds is not None
    assert task.file.lower_bounds[2] == b"x"


def evolved(tmp_path: Path) -> Table:
    """A table with files of two partition specs: none, and ``k``."""
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "k", StringType()))
    table = new_catalog(tmp_path).create_table("db.t", schema)
    table.append(rows(["x", "y"], pa.string()))
    with table.update_spec() as update:
        update.add_identity("k")
    table.append(rows(["y", None], pa.string(), 4))
    return table


@pytest.mark.spec("tables.iceberg.partition-evolution")
def test_files_of_earlier_partitions_are_rewritten_into_current_ones(tmp_path: Path) -> None:
    table = evolved(tmp_path)
    none = rows([], pa.string())
    for call in (tables.compact, lambda *table, **filter: tables.overwrite(*table, none, **filter)):
        with pytest.raises(UnsupportedError, match=r"before the table was partitioned by 'k'.*tables\.recluster"):
            call(table, filter="k = 'y'")
    description = tables.describe(table)
    assert (description.files, description.rows, description.partition_by) == (3, 4, ("k",))
    expected = stored(table)
    assert tables.recluster(table, "id").files_after == 4
    assert manifest_values(table) == ["['x']", "['y']", "['y']", "[None]"]
    assert {task.file.spec_id for task in table.scan().plan_files()} == {1}
    assert tables.compact(table, filter="k = 'y'").files_after == 1
    assert stored(table) == expected


def test_small_files_of_earlier_partitions_are_combined_by_current_ones(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "k", StringType()))
    table = new_catalog(tmp_path).create_table("db.t", schema)
    for start in (0, 2):
        table.append(rows(["x", "y"], pa.string(), start))
    with table.update_spec() as update:
        update.add_identity("k")
    expected = stored(table)
    assert tables.compact(table).files_after == 2
    assert (manifest_values(table), stored(table)) == (["['x']", "['y']"], expected)
    assert tables.overwrite(table, rows(["z"], pa.string())).files_removed == 2


@pytest.mark.spec("tables.iceberg.partition-evolution")
def test_partition_field_that_remains_keeps_its_values(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "k", StringType()))
    by_id, by_k = PartitionField(1, 1000, IdentityTransform(), "id"), PartitionField(2, 1001, IdentityTransform(), "k")
    table = new_catalog(tmp_path).create_table("db.t", schema, partition_spec=PartitionSpec(by_id, by_k))
    tables.append(table, rows(["x", "y", "x"], pa.string()))
    with table.update_spec() as update:
        update.remove_field("id")
    tables.append(table, rows(["x"], pa.string(), 5))
    assert tables.compact(table, filter="k = 'x'").files_after == 1
    assert manifest_values(table) == ["['x']", "[1, 'y']"]
    assert tables.overwrite(table, rows(["y"], pa.string(), 9), filter="k = 'y'").files_removed == 1
    assert stored(table) == [f"{{'id': {id}, 'k': '{k}'}}" for id, k in ((0, "x"), (2, "x"), (5, "x"), (9, "y"))]


def test_rows_are_appended_after_a_partition_field_of_version_1_is_removed(tmp_path: Path) -> None:
    table = new_table(tmp_path, StringType(), **{"format-version": "1"})
    table.append(rows(["x"], pa.string()))
    with table.update_spec() as update:
        update.remove_field("k")
    tables.append(table, rows(["y", "z"], pa.string(), 1))
    assert (manifest_values(table), len(stored(table))) == (["['x']", "[None]"], 3)
    assert tables.describe(table).partition_by == ()
    assert tables.overwrite(table, rows(["w"], pa.string())).files_removed == 2


def test_nested_column_is_a_partition_column(tmp_path: Path) -> None:
    inner = StructType(NestedField(3, "x", StringType()))
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "s", inner))
    spec = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "x"))
    table = new_catalog(tmp_path).create_table("db.t", schema, partition_spec=spec)
    nested = pa.table({"id": [1, 2, 3], "s": [{"x": "u"}, None, {"x": None}]})
    for _ in range(2):
        tables.append(table, nested)
    assert tables.describe(table).files == 4
    assert tables.compact(table).files_after == 2
    assert manifest_values(table) == ["['u']", "[None]"]
    assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == sorted(map(repr, nested.to_pylist() * 2))
