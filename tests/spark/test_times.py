"""TIME of every precision, and timestamps of nanoseconds: as Spark itself reads and writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")

from pyspark.sql import functions as F

from pqext import col
from pqext.spark import read
from pqext.spark.base.types import MOST_TIME_DIGITS
from pqext.spark.frames import parquet

nanoseconds = pytest.mark.skipif(MOST_TIME_DIGITS < 9, reason="TIME of Spark before 4.3 has six digits")


def test_time_columns_are_counted_and_filtered_by_default(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"t": pa.array([1, 2], pa.time64("us"))}), path)
    assert read(spark, path).count() == 2
    assert read(spark, path).where("t > time'00:00:00.000001'").count() == 1


def test_session_without_time_logs_a_hint(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pq.write_table(pa.table({"t": pa.array([1], pa.time64("us"))}), tmp_path / "t.parquet")
    pq.write_table(pa.table({"n": [1]}), tmp_path / "n.parquet")
    parquet._log_time_hint.cache_clear()
    read(spark, str(tmp_path / "t.parquet"))
    spark.conf.set("spark.sql.timeType.enabled", "false")
    try:
        read(spark, str(tmp_path / "n.parquet"))
        assert "timeType" not in caplog.text
        for _ in range(2):
            df = read(spark, str(tmp_path / "t.parquet"))
        assert df.count() == 1  # which reads no column
        with pytest.raises(Exception, match="UNSUPPORTED_TIME_TYPE"):
            df.where("t IS NULL").count()
    finally:
        spark.conf.set("spark.sql.timeType.enabled", "true")
    assert caplog.text.count("spark.sql.timeType.enabled is true") == 1


@nanoseconds
def test_nanoseconds_are_nine_digit_time_like_in_spark(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"t": pa.array([1, 1_000_000_001], pa.time64("ns"))}), path)
    equal = F.expr("cast(t as time(6)) = time'00:00:00'")
    found, expected = read(spark, path), spark.read.parquet(path)
    assert found.schema["t"].dataType == expected.schema["t"].dataType
    assert found.select(equal).collect() == expected.select(equal).collect()
    assert found.select(F.col("t").cast("string")).collect() == expected.select(F.col("t").cast("string")).collect()


def test_milliseconds_are_three_digit_time(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"t": pa.array([1], pa.time32("ms"))}), path)
    assert read(spark, path).schema["t"].dataType.simpleString() == "time(3)"
    assert read(spark, path).select(F.col("t").cast("string")).first()[0] == "00:00:00.001"


@nanoseconds
def test_written_times_match_spark(spark: Any, tmp_path: Path) -> None:
    text = F.lit("12:34:56.123456789")
    rows = spark.range(1).select(*(text.cast(f"time({digits})").alias(f"t{digits}") for digits in (0, 3, 6, 7, 9)))
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    rows.write.format("pqext").mode("append").save(ours)
    rows.write.parquet(theirs)
    assert pq.read_table(ours).equals(pq.read_table(theirs).cast(pq.read_table(ours).schema))
    assert pq.read_table(ours).schema.types == pq.read_table(theirs).schema.types
    texts = [F.col(name).cast("string") for name in rows.columns]
    assert spark.read.parquet(ours).select(texts).collect() == spark.read.parquet(theirs).select(texts).collect()


def test_advice_for_nanosecond_timestamps_works(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    times = {"t": pa.array([1_001], pa.timestamp("ns", "UTC")), "n": pa.array([2_001], pa.timestamp("ns"))}
    pq.write_table(pa.table(times), path)
    with pytest.raises(Exception, match=r"col\('t'\)\.cast\('timestamp'\)\.alias\('t'\)"):
        read(spark, path, columns=["t"]).collect()
    casts = [col("t").cast("timestamp").alias("t"), col("n").cast("timestamp_ntz").alias("n")]
    assert read(spark, path, columns=casts).toArrow().to_pylist() == [
        {"t": datetime(1970, 1, 1, 0, 0, 0, 1, UTC), "n": datetime(1970, 1, 1, 0, 0, 0, 2)}
    ]
