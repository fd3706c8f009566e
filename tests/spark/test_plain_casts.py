"""Casts of plain columns: those of Spark's ``try_cast`` in the session time zone UTC."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")

from pyspark.errors import AnalysisException
from spark.sessions import SPARK_4_1

from pqext import col
from pqext.dataset.evaluation.evaluate import value_of

MICRO = pa.timestamp("us")
INSTANT = pa.timestamp("us", "UTC")
DAYS = [date(2024, 5, 1), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31), None]
MOMENTS = [
    datetime(2024, 5, 1, 12, 30, 0, 123456), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 5, 1),
    datetime(1, 1, 1), datetime(2024, 5, 1, 12, 30, 0, 100000), datetime(9999, 12, 31, 23, 59, 59), None,
]  # fmt: skip
FLOATS = [
    0.1, -0.0, float("nan"), float("inf"), -float("inf"), 1e10, 1.5, 2.5, -1.5, 1e-5, 1e7, 9999999.0, 123456.79, 0.001,
    1e20, 1e22, 9007199254740993.0, 0.05, 1e30, 16777216.0, 1714521600.25, 4.9e-5, 127.9, -128.9, 2147483647.5, None,
]  # fmt: skip
TEXTS = [
    "", " 12 ", "1.5", "1e3", "abc", "true", "T", "yes", "n", "0", "1", "NaN", "inf", "-Infinity", "2024-05-01",
    "2024-5-1", "2024-05-01 12:30:00.123456", "2024-05-01T12:30:00Z", "2024-05-01 12:30:00+02:00", "12:30",
    "12:30:15.5", "0x10", "+5", "5.", ".5", "1_000", "1,000", "2024", "2024-05", "1.30", "99999999999999999999", "1d",
    "1f", "-0", "3.999", "-129", "2024-05-01 ", "24:00:00", "  2024-05-01T01:02", "2024-05-01T25:00", "1e-400",
    "12345-01-01", "-0001-01-01", "2024-02-30", "\t7\n", "1e400", "--1", "0.05", "-0.05", "1.25", "nan", "infinity",
    "2024-05-01T12:30:00.1234567", "2024-05-01 12", "T12:30", "1e5d", None,
]  # fmt: skip
SOURCES: dict[str, pa.Array] = {
    "boolean": pa.array([True, False, None]),
    "tinyint": pa.array([-128, 0, 127, None], pa.int8()),
    "smallint": pa.array([-32768, 300, 5, None], pa.int16()),
    "int": pa.array([-(2**31), 0, 70000, -129, None], pa.int32()),
    "bigint": pa.array([-(2**63), 0, 1714521600, 2**63 - 1, 2**53 + 1, -1, 16777217, 99999999, None], pa.int64()),
    "float": pa.array(FLOATS, pa.float32()),
    "double": pa.array([*FLOATS, 1e300, 1e-300, 123456789.125]),
    "decimal(9,2)": pa.array(
        [*map(Decimal, ("1.30", "-0.05", "0.00", "100.00", "1234567.89", "127.99", "0.15", "-0.15")), None],
        pa.decimal128(9, 2),
    ),
    "decimal(18,0)": pa.array([Decimal(5), Decimal(-123456789012345678), Decimal(1714521600)], pa.decimal128(18, 0)),
    "decimal(38,10)": pa.array(
        list(map(Decimal, ("1.5", "1e-10", "-1234567890123456789012345678.5", "0", "9223372036854775807.9"))),
        pa.decimal128(38, 10),
    ),
    "string": pa.array(TEXTS),
    "binary": pa.array([b"", b"ABC", b"\xff", b"\0\0\0\5", b"12", None]),
    "date": pa.array(DAYS),
    "timestamp": pa.array(MOMENTS, INSTANT),
    "timestamp_ntz": pa.array(MOMENTS, MICRO),
    "time": pa.array([time(12, 30, 0, 123456), time(0), time(23, 59, 59, 999999), time(12, 30, 0, 100000), None]),
}  # fmt: skip
TARGETS = [
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)", "decimal(5,1)",
    "decimal(38,10)", "decimal(20,0)", "string", "binary", "date", "timestamp", "timestamp_ntz", "time",
]  # fmt: skip


# Java before 19 writes some floats with other digits than the fewest (casts.java-text).
FLOAT_TEXTS = {9007199254740992.0, 2147483648.0}
# Spark wraps or saturates instants beyond 64 bits of microseconds (casts.saturation).
FAR_INSTANTS = {
    -(2**63), 2**63 - 1, 2**53 + 1, Decimal(-123456789012345678), Decimal("9223372036854775807.9"),
    Decimal("-1234567890123456789012345678.5"),
}  # fmt: skip
TIMES_OF_TODAY = {"12:30", "12:30:15.5", "T12:30"}  # casts.today
DIFFERENT: dict[tuple[str, str], set[Any]] = {
    ("float", "string"): FLOAT_TEXTS,
    ("bigint", "timestamp"): FAR_INSTANTS,
    ("decimal(18,0)", "timestamp"): FAR_INSTANTS,
    ("decimal(38,10)", "timestamp"): FAR_INSTANTS,
    ("string", "timestamp"): TIMES_OF_TODAY,
    ("binary", "string"): {b"\xff"},  # casts.binary-text
}
OF_TODAY = {("time", "timestamp"), ("time", "timestamp_ntz")}  # casts.today


@pytest.mark.skipif(SPARK_4_1, reason="Spark 4.1 has no TIME type")
@pytest.mark.parametrize("source", SOURCES)
def test_casts_of_plain_columns_match_spark(spark: Any, source: str) -> None:
    array = SOURCES[source]
    batch = pa.record_batch({"x": array})
    with settings(spark, {"spark.sql.session.timeZone": "UTC", "spark.sql.timeType.enabled": "true"}):
        data = spark.createDataFrame(pa.table({"x": array})).selectExpr(f"cast(x as {source}) as x")
        known = [target for target in TARGETS if has_cast(data, target)]
        expected = data.selectExpr(*(f"try_cast(x as {target}) as `{target}`" for target in known)).toArrow()
    for target in TARGETS:
        found = value_of(col("x").cast("time64[us]" if target == "time" else target), batch)
        if target not in known:
            assert found.null_count == len(found), f"{source} as {target}"
            continue
        different = set(array.to_pylist()) if (source, target) in OF_TODAY else DIFFERENT.get((source, target), set())
        pairs = zip(array.to_pylist(), plain(found), plain(expected[target].combine_chunks()), strict=True)
        unequal = [(value, *pair) for value, *pair in pairs if pair[0] != pair[1] and value not in different]
        assert not unequal, f"{source} as {target}"


def has_cast(data: Any, target: str) -> bool:
    """Whether Spark has the cast at all."""
    try:
        data.selectExpr(f"try_cast(x as {target}) as x")
    except AnalysisException:
        return False
    return True


def plain(array: pa.Array) -> list[Any]:
    """Values that compare by ``==`` and that Python can hold."""
    if pa.types.is_time(array.type):
        array = array.cast(pa.time64("us"))
    if pa.types.is_temporal(array.type):
        return list(array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()).to_pylist())
    if pa.types.is_string(array.type):
        array = array.view(pa.binary())
    return list(map(repr, array.to_pylist()))


@contextmanager
def settings(spark: Any, values: dict[str, str]) -> Iterator[None]:
    """Settings of the session that are as before afterwards."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)
