"""Pruning by the partition transforms of Iceberg: no row is lost, and no more files are read than pyiceberg plans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import pqext
from pqext import col, tables
from pqext.dataset.expressions import Expression
from reference.effort import share

pytest.importorskip("pyiceberg")
from pyiceberg import expressions as ice
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from pqext.tables.iceberg.schemas import arrow_type
from tests.tables.iceberg_tables import commit, describe, local, new_catalog, reopen, with_ids

Any_ = Transform[Any, Any]
DATES = st.dates(date(1966, 1, 1), date(1975, 12, 31))
TIMES = st.datetimes(datetime(1968, 1, 1), datetime(1972, 12, 31))
TYPES: list[tuple[IcebergType, st.SearchStrategy[Any], list[Any_]]] = [
    (IntegerType(), st.integers(-20, 20), [BucketTransform(3), TruncateTransform(7)]),
    (LongType(), st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), [BucketTransform(4)]),
    (StringType(), st.text("abé🙂", max_size=3), [BucketTransform(5)]),
    (BinaryType(), st.binary(max_size=2), [BucketTransform(2)]),
    (DecimalType(9, 2), st.integers(-99999, 99999).map(lambda n: Decimal(n).scaleb(-2)), [BucketTransform(3)]),
    (DateType(), DATES, [BucketTransform(3), DayTransform(), MonthTransform(), YearTransform()]),
    (TimestampType(), TIMES, [BucketTransform(3), HourTransform(), DayTransform(), MonthTransform(), YearTransform()]),
    (TimestamptzType(), TIMES.map(lambda time: time.replace(tzinfo=UTC)), [BucketTransform(3), MonthTransform()]),
]  # fmt: skip
CASES = [(type, values, transform) for type, values, transforms in TYPES for transform in transforms]
NAMES = [f"{type}-{transform}" for type, _, transform in CASES]
Test = Callable[[Any], bool]


def as_pyiceberg(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date | datetime) else value


def draw_filter(draw: Callable[[Any], Any], values: list[Any]) -> tuple[Expression, Any, Test]:
    """A filter of pqext, the same one of pyiceberg, and the same test of a value."""
    kind = draw(st.sampled_from(["==", "in", "<", "<=", ">", ">=", "and", "or"]))
    value = draw(st.sampled_from(values))
    literal = as_pyiceberg(value)
    if kind in ("and", "or"):
        first, theirs, test = draw_filter(draw, values)
        second, their_second, second_test = draw_filter(draw, values)
        if kind == "and":
            return first & second, ice.And(theirs, their_second), lambda row: test(row) and second_test(row)
        return first | second, ice.Or(theirs, their_second), lambda row: test(row) or second_test(row)
    if kind == "in":
        several = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
        theirs = ice.In("v", [as_pyiceberg(each) for each in several])
        return col("v").isin(several), theirs, lambda row: row is not None and row in several
    ours: dict[str, tuple[Expression, Any, Test]] = {
        "==": (col("v") == value, ice.EqualTo("v", literal), lambda row: row is not None and row == value),
        "<": (col("v") < value, ice.LessThan("v", literal), lambda row: row is not None and row < value),
        "<=": (col("v") <= value, ice.LessThanOrEqual("v", literal), lambda row: row is not None and row <= value),
        ">": (col("v") > value, ice.GreaterThan("v", literal), lambda row: row is not None and row > value),
        ">=": (col("v") >= value, ice.GreaterThanOrEqual("v", literal), lambda row: row is not None and row >= value),
    }
    return ours[kind]


def write(folder: Path, type: IcebergType, transform: Any_, partitions: dict[Any, list[Any]]) -> str:
    """A table partitioned by ``transform`` with one file, without bounds, for each partition; its metadata file."""
    schema = Schema(NestedField(1, "v", type))
    spec = PartitionSpec(PartitionField(source_id=1, field_id=1000, transform=transform, name="part"))
    table = new_catalog(folder).create_table("db.t", schema=schema, partition_spec=spec)
    types = with_ids(pa.schema([("v", arrow_type(schema.find_field(1)))]), [1])
    files = []
    for number, (partition, rows) in enumerate(partitions.items()):
        path = f"{table.location()}/data/{number}.parquet"
        local(path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"v": rows}, schema=types), local(path))
        files.append(describe(path, len(rows), partition=[partition]))
    return commit(table, files, is_data=True)


def read_files(path: str, filter: Expression) -> set[str]:
    """The names of the files that a scan reads."""
    snapshot = tables.open_table(f"iceberg:{path}")
    assert snapshot.statistics is not None
    reasons = snapshot.statistics.prune_reasons(snapshot.files, filter)
    return {str(file).rpartition("/")[2] for file, reason in zip(snapshot.files, reasons, strict=True) if not reason}


@pytest.mark.spec("tables.iceberg.partitions")
@pytest.mark.spec("tables.iceberg.buckets")
@pytest.mark.parametrize(("type", "values", "transform"), CASES, ids=NAMES)
@settings(deadline=None, max_examples=share(0.2), phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_filters_read_the_files_that_pyiceberg_plans(
    type: IcebergType, values: st.SearchStrategy[Any], transform: Any_, data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.none() | values, min_size=1, max_size=8))
    compute = transform.transform(type)
    partitions: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        partitions[compute(row)].append(row)
    known = [row for row in rows if row is not None] + data.draw(st.lists(values, min_size=1, max_size=3))
    is_time = isinstance(transform, HourTransform | DayTransform | MonthTransform | YearTransform)
    with TemporaryDirectory() as folder:
        path = write(Path(folder), type, transform, partitions)
        is_early = [is_time and value is not None and value <= 0 for value in partitions]
        early = {f"{number}.parquet" for number, value in enumerate(is_early) if value}
        for _ in range(5):
            ours, theirs, test = draw_filter(data.draw, known)
            found = pqext.scan(f"iceberg:{path}", filter=ours).to_table()["v"].to_pylist()
            assert sorted(found) == sorted(row for row in rows if test(row))
            planned = reopen(path).scan(row_filter=theirs).plan_files()
            names = {task.file.file_path.rpartition("/")[2] for task in planned}
            assert read_files(path, ours) - early <= names


@pytest.mark.spec("tables.iceberg.buckets")
def test_one_bucket_is_read_for_a_value(tmp_path: Path) -> None:
    transform: Any_ = BucketTransform(16)
    compute = transform.transform(LongType())
    partitions: dict[Any, list[Any]] = defaultdict(list)
    for value in range(200):
        partitions[compute(value)].append(value)
    path = write(tmp_path, LongType(), transform, partitions)
    for value in (0, 34, 199, 777):
        number = [*partitions].index(compute(value))
        assert read_files(path, col("v") == value) == {f"{number}.parquet"}
    assert len(read_files(path, col("v").isin([1, 2]))) == len({compute(1), compute(2)})
    assert len(read_files(path, col("v") != 1)) == 16
    text = pqext.scan(f"iceberg:{path}", filter=col("v") == 34).explain()
    assert "15 files" in text
    assert "Bloom" not in text


EARLY: list[tuple[IcebergType, Any_, Any, int]] = [
    (TimestampType(), HourTransform(), datetime(1969, 12, 31, 23, 30), 0),
    (TimestampType(), DayTransform(), datetime(1969, 12, 31, 1), 0),
    (TimestampType(), DayTransform(), datetime(1969, 12, 30, 1), -1),
    (TimestampType(), MonthTransform(), datetime(1969, 12, 15), 0),
    (TimestampType(), YearTransform(), datetime(1968, 6, 1), -1),
    (DateType(), MonthTransform(), date(1969, 11, 15), -1),
    (DateType(), YearTransform(), date(1969, 6, 1), 0),
]


@pytest.mark.spec("tables.iceberg.early-writers")
@pytest.mark.parametrize(("type", "transform", "value", "partition"), EARLY)
def test_partitions_of_early_writers_before_1970(
    type: IcebergType, transform: Any_, value: Any, partition: int, tmp_path: Path
) -> None:
    path = write(tmp_path, type, transform, {partition: [value], 5: []})
    step = timedelta(days=1) if isinstance(value, date) and not isinstance(value, datetime) else timedelta(minutes=1)
    for filter in (col("v") == value, col("v") < value + step, col("v").isin([value])):
        assert pqext.scan(f"iceberg:{path}", filter=filter).to_table()["v"].to_pylist() == [value]
