"""Physical types and orders that annotations choose, by what pyarrow makes of them."""

from __future__ import annotations

import io
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.columns import one

import pqext
from pqext.core.format.metadata import ConvertedType, LogicalType, TimeType, Type
from pqext.core.schema.types.logical import TIME_UNITS


def written(column: pa.Array) -> bytes:
    sink = io.BytesIO()
    pqext.write_table(pa.table({"c": column}), sink)
    return sink.getvalue()


@pytest.mark.spec("logical.integer.signed", "logical.integer.unsigned")
@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("signed", [True, False])
def test_integer_bounds_follow_their_signedness(width: int, signed: bool) -> None:
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    column = pa.array([1, high, low, 2], pa.type_for_alias(f"{'' if signed else 'u'}int{width}"))
    theirs = pq.ParquetFile(io.BytesIO(written(column))).metadata.row_group(0).column(0).statistics
    assert (theirs.min, theirs.max) == (low, high)
    sink = io.BytesIO()
    pq.write_table(pa.table({"c": column}), sink)
    bounds = pqext.open(sink.getvalue()).row_groups[0].chunk(0).bounds()
    assert (bounds.minimum, bounds.maximum) == (low, high)


@pytest.mark.spec("logical.decimal.int32", "logical.decimal.int64", "logical.decimal.fixed")
@pytest.mark.parametrize(
    ("digits", "physical"),
    [(1, "INT32"), (9, "INT32"), (10, "INT64"), (18, "INT64"), (19, "FIXED_LEN_BYTE_ARRAY")],
)
def test_decimals_use_the_smallest_sufficient_physical_type(digits: int, physical: str) -> None:
    values = [Decimal(10**digits - 1), Decimal(1 - 10**digits)]
    data = written(pa.array(values, pa.decimal128(digits, 0)))
    seen = pq.ParquetFile(io.BytesIO(data))
    assert seen.schema.column(0).physical_type == physical
    assert seen.read()["c"].to_pylist() == values


@pytest.mark.spec("logical.time.converted")
@pytest.mark.parametrize(
    ("converted", "kind", "unit"),
    [(ConvertedType.TIME_MILLIS, Type.INT32, "ms"), (ConvertedType.TIME_MICROS, Type.INT64, "us")],
)
def test_times_of_old_files_are_utc(converted: ConvertedType, kind: Type, unit: str) -> None:
    data = one(kind, bytes(8), 1, converted_type=converted)
    expected = LogicalType(TIME=TimeType(isAdjustedToUTC=True, unit=TIME_UNITS[unit]))
    assert pqext.open(data).schema.leaves[0].logical_type == expected
