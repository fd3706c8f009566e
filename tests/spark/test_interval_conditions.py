"""Conditions on Spark's day-time intervals take timedelta literals and SQL intervals."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")

import pqext.spark
from pqext import col
from pqext.spark import read, where

VALUES = [timedelta(hours=1), timedelta(days=-1), timedelta(microseconds=1), None]


@pytest.mark.parametrize(
    ("condition", "theirs"),
    [
        (col("d") > timedelta(minutes=1), "d > interval '1' minute"),
        ("d <= interval '1 hour'", "d <= interval '1' hour"),
        (col("d").isin([timedelta(hours=1), None]), "d in (interval '1' hour, null)"),
        (~(col("d") == timedelta(days=-1)), "not d = interval '-1' day"),
    ],
    ids=str,
)  # fmt: skip
def test_data_frame_intervals_compare_like_in_spark(spark: Any, condition: Any, theirs: str) -> None:
    frame = spark.createDataFrame(list(enumerate(VALUES)), "n int, d interval day to second")
    expected = [row["n"] for row in frame.where(theirs).collect()]
    assert [row["n"] for row in pqext.spark.where(frame, condition).collect()] == expected


@pytest.mark.spec("spark.intervals.compared")
def test_conditions_never_compare_intervals_as_raw_numbers(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    text = "select id, make_dt_interval(0, 0, 0, int(id)) d, make_ym_interval(0, int(id)) m from range(5)"
    spark.sql(text).coalesce(1).write.parquet(path)
    theirs = spark.read.parquet(path)
    for condition in ("d > 1", "d in (1000000, 2)", "m > 1", "not m = 1"):
        for rows in (
            lambda condition: theirs.where(condition),
            lambda condition: read(spark, path, ["id"], where=condition),
            lambda condition: read(spark, path, ["id"], where=condition, engine="auto"),
            lambda condition: where(read(spark, path), condition),
        ):
            with pytest.raises(AnalysisException, match="DATATYPE_MISMATCH"):
                rows(condition)
    expected = [row.id for row in theirs.where("d > interval '1' second").select("id").collect()]
    for frame in (
        where(read(spark, path), col("d") > timedelta(seconds=1)),
        read(spark, path, where="d > interval '1' second"),
    ):
        assert [row.id for row in frame.select("id").collect()] == expected == [2, 3, 4]
    for literal in (1, timedelta(seconds=1)):
        with pytest.raises(Exception, match=r"interval day to second, .*column d.*; filter with pqext\.spark\.where"):
            read(spark, path, where=col("d") > literal)
