"""INT96 timestamps: right in the unit that is read, or an error; written only when asked for."""

from __future__ import annotations

import datetime as dt
import io
import itertools
import os
import struct
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from core.raw_files import OPTIONAL, Column, leaf, write
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import UnsupportedError
from pqext.core.format.metadata import Type
from pqext.core.schema.types.int96 import JULIAN_EPOCH, nanoseconds, to_timestamps

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
SPARK = {"org.apache.spark.version": "4.1.0"}
# The values that Spark's own file of far timestamps holds (parquet-testing, int96_from_spark.md), in microseconds.
FAR = [1704141296123456, 1704070800000000, 253402225200000000, 1735599600000000, None, 9089380393200000000]


def stored(total: int) -> bytes:
    """Nanoseconds since the epoch in the form of Impala and Spark."""
    days, within = divmod(total, 86_400 * 10**9)
    return struct.pack("<qi", within, days + JULIAN_EPOCH)


def file_of(values: list[int | None], metadata: dict[str, str] | None = None) -> bytes:
    """A file whose column ``t`` holds ``values``, nanoseconds since the epoch."""
    body = b"".join(stored(value) for value in values if value is not None)
    levels = [int(value is not None) for value in values]
    return write(
        [leaf("t", OPTIONAL, Type.INT96)], [Column(body, len(values), levels)], len(values), metadata=metadata
    )


def read(data: bytes, **options: Any) -> pa.ChunkedArray:
    with pqext.open(data, pqext.ReadOptions(**options)) as file:
        column = file.read()["t"]
        assert column.type == file.arrow_schema.field("t").type
        return column


@pytest.mark.spec("logical.int96.read")
@given(
    st.lists(st.none() | st.integers(-(2**31 - JULIAN_EPOCH) * 10**13, 10**22), max_size=6),
    st.sampled_from([*PER_SECOND]),
)
def test_value_is_exact_in_its_unit_or_an_error(values: list[int | None], unit: str) -> None:
    expected = [None if value is None else value // (10**9 // PER_SECOND[unit]) for value in values]
    data = file_of(values)
    if all(value is None or -(2**63) <= value < 2**63 for value in expected):
        assert read(data, int96=unit).cast(pa.int64()).to_pylist() == expected
    else:
        with pytest.raises(UnsupportedError, match=rf"outside the range of 64-bit {unit}.*column t"):
            read(data, int96=unit)


@pytest.mark.spec("logical.int96.read")
@pytest.mark.parametrize("values", [[1, None, 3, 4, None, 6], [1, 2, None, 4, 5, 6], [1, 2, 3, 4, 5, 6], [None] * 6])
def test_nulls_of_slices_are_preserved(values: list[int | None]) -> None:
    array = pa.array([None if value is None else stored(value) for value in values], pa.binary(12))
    for start, stop in itertools.combinations(range(7), 2):
        converted = to_timestamps(array.slice(start, stop - start), "ns")
        converted.validate(full=True)
        assert converted.cast(pa.int64()).to_pylist() == values[start:stop]


@pytest.mark.spec("logical.int96.read")
def test_limits_of_the_nanosecond_range_are_exact() -> None:
    for value in (-(2**63), 2**63 - 1):
        assert read(file_of([value])).cast(pa.int64()).to_pylist() == [value]
    for value in (-(2**63) - 1, 2**63):
        with pytest.raises(UnsupportedError, match='read with int96="us"'):
            read(file_of([value]))
        assert read(file_of([value]), int96="us").cast(pa.int64()).to_pylist() == [value // 1000]


@pytest.mark.spec("logical.int96.unit")
def test_spark_files_use_microseconds_and_others_nanoseconds() -> None:
    values = [None if value is None else value * 1000 for value in FAR]
    found = read(file_of(values, SPARK))
    assert (found.type, found.cast(pa.int64()).to_pylist()) == (pa.timestamp("us"), FAR)
    with pytest.raises(UnsupportedError):
        read(file_of(values))
    assert read(file_of([5])).type == pa.timestamp("ns")
    assert read(file_of([5], SPARK), int96="ns").cast(pa.int64()).to_pylist() == [5]
    with pytest.raises(ValueError, match='int96 must be "auto"'):
        pqext.ReadOptions(int96="min")  # type: ignore[arg-type]


@pytest.mark.spec("logical.int96.write", "logical.int96.read")
@pytest.mark.parametrize("unit", PER_SECOND)
def test_marked_timestamps_are_written_as_readable_int96(unit: str, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    values = [0, -1, None, 1_700_000_000 * PER_SECOND[unit] + 1]
    field = pa.field("t", pa.timestamp(unit), metadata={"PARQUET:physical_type": "INT96"})
    table = pa.table([pa.array(values, field.type)], schema=pa.schema([field]))
    pqext.write_table(table, path)
    assert pqext.open(path).schema.leaves[0].physical_type == Type.INT96
    expected = table["t"].cast(pa.timestamp("ns"))
    assert pqext.read_table(path)["t"].equals(expected)
    assert pq.read_table(path)["t"].equals(expected)
    assert pl.read_parquet(path).to_arrow()["t"].cast(expected.type).equals(expected)
    rows = duckdb.sql(f"SELECT epoch_ns(t) FROM '{path}'").fetchall()
    whole = [None if value is None else value // 1000 * 1000 for value in expected.cast("int64").to_pylist()]
    assert [value for (value,) in rows] == whole


@pytest.mark.spec("logical.int96.write")
def test_timestamps_are_int64_unless_int96_is_requested() -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"t": pa.array([5], pa.timestamp("ns"))}), out)
    assert pqext.open(out.getvalue()).schema.leaves[0].physical_type == Type.INT64
    # A column that was read from INT96 is not written as INT96 again.
    again = io.BytesIO()
    pqext.write_table(pqext.open(file_of([5])).read(), again)
    assert pqext.open(again.getvalue()).schema.leaves[0].physical_type == Type.INT64


@pytest.mark.parametrize(
    ("kind", "physical", "message"),
    [(pa.timestamp("ns"), "INT32", "INT64 or INT96"), (pa.date32(), "INT96", "decimals and timestamps only")],
)
def test_other_physical_types_are_rejected_by_column(kind: pa.DataType, physical: str, message: str) -> None:
    schema = pa.schema([pa.field("t", kind, metadata={"PARQUET:physical_type": physical})])
    with pytest.raises(ValueError, match=f"'t'.*{message}"):
        pqext.write_table(schema.empty_table(), io.BytesIO())


def test_day_beyond_32_bits_is_not_representable_in_int96() -> None:
    field = pa.field("t", pa.timestamp("ms"), metadata={"PARQUET:physical_type": "INT96"})
    table = pa.table([pa.array([2**62], field.type)], schema=pa.schema([field]))
    with pytest.raises(ValueError, match=r"a timestamp\[ms\] value is outside the range of INT96; write"):
        pqext.write_table(table, io.BytesIO())


@pytest.mark.spec("logical.int96.order")
def test_int96_compares_by_time() -> None:
    values = [-(10**20), -1, 0, 86_400 * 10**9 - 1, 86_400 * 10**9, 10**20]
    assert [nanoseconds(stored(value)) for value in values] == values


needs_files = pytest.mark.skipif(not os.environ.get("PARQUET_TEST_DATA"), reason="PARQUET_TEST_DATA is not set")


@needs_files
@pytest.mark.parametrize(
    "name", ["alltypes_plain", "alltypes_dictionary", "alltypes_plain.snappy", "alltypes_tiny_pages"]
)
def test_impala_files_match_pyarrow(name: str) -> None:
    path = Path(os.environ["PARQUET_TEST_DATA"]) / "data" / f"{name}.parquet"
    assert pqext.read_table(path, columns=["timestamp_col"]).equals(pq.read_table(path, columns=["timestamp_col"]))


def test_int96_in_lists_and_batches_is_equal() -> None:
    kind = pa.list_(pa.field("element", pa.timestamp("us"), metadata={"PARQUET:physical_type": "INT96"}))
    rows = [[dt.datetime(2024, 1, 1, n % 24)] * (n % 4) if n % 5 else None for n in range(100)]
    out = io.BytesIO()
    pqext.write_table(pa.table({"l": pa.array(rows, kind)}), out, page_rows=7)
    with pqext.open(out.getvalue(), pqext.ReadOptions(int96="us")) as file:
        assert [row for batch in file.iter_batches(9) for row in batch["l"].to_pylist()] == rows


@pytest.mark.spec("logical.int96.unit")
def test_instants_with_a_zone_have_the_same_values() -> None:
    values = [None, 0, 1_704_103_200 * 10**9 + 999, -1]
    data = file_of(values)
    local, instants = read(data, int96="us"), read(data, int96="us", int96_utc=True)
    assert instants.type == pa.timestamp("us", "UTC")
    assert instants.cast(pa.timestamp("us")) == local
    moment = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)
    for condition, count in ((pqext.col("t") == moment, 1), (pqext.col("t") < moment, 2)):
        assert pqext.read_table(data, filter=condition, int96="us", int96_utc=True).num_rows == count
    with pytest.raises(TypeError, match="timestamp in UTC"):
        pqext.read_table(data, filter=pqext.col("t") == moment.replace(tzinfo=None), int96_utc=True)


@pytest.mark.spec("logical.int96.unit", "logical.int96.order")
@pytest.mark.parametrize("unit", ["us", "ms", "s"])
def test_bounds_are_truncated_to_the_unit_like_values(unit: Any) -> None:
    instants = pa.array([1_704_103_200_123_456_789 + n * 1_000_000_001 for n in range(-3, 3)], pa.timestamp("ns"))
    field = pa.field("t", instants.type, metadata={"PARQUET:physical_type": "INT96"})
    out = io.BytesIO()
    pqext.write_table(pa.table([instants], pa.schema([field])), out, row_group_rows=2, page_rows=1)
    assert pqext.open(out.getvalue()).row_groups[0].chunk(0).bounds().minimum is not None
    theirs = pq.read_table(io.BytesIO(out.getvalue()), coerce_int96_timestamp_unit=unit)["t"]
    scan = pqext.scan(out.getvalue(), int96=unit)
    assert (scan.min("t").as_py(), scan.max("t").as_py()) == (min(theirs.to_pylist()), max(theirs.to_pylist()))
    for moment in theirs.to_pylist():
        for condition, compare in (
            (pqext.col("t") == moment, pc.equal), (pqext.col("t") <= moment, pc.less_equal),
            (pqext.col("t") > moment, pc.greater), (pqext.col("t").isin([moment]), pc.equal),
        ):  # fmt: skip
            expected = pc.sum(compare(theirs, pa.scalar(moment, theirs.type))).as_py()
            assert scan.filter(condition).count() == scan.filter(condition).to_table().num_rows == expected


@pytest.mark.spec("logical.int96.read")
def test_lists_without_timestamps_match_pyarrow() -> None:
    out = io.BytesIO()
    table = pa.table({"t": pa.array([[], None, []], pa.list_(pa.timestamp("ns")))})
    pq.write_table(table, out, use_deprecated_int96_timestamps=True, store_schema=False)
    assert pqext.read_table(out)["t"].to_pylist() == pq.read_table(out)["t"].to_pylist()
