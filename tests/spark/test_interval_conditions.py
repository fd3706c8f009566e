"""Conditions on Spark's day-time intervals take timedelta literals and SQL intervals."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")

import pqext.spark
from pqext import col

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
def test_intervals_of_data_frames_compare_as_in_spark(spark: Any, condition: Any, theirs: str) -> None:
    frame = spark.createDataFrame(list(enumerate(VALUES)), "n int, d interval day to second")
    expected = [row["n"] for row in frame.where(theirs).collect()]
    assert [row["n"] for row in pqext.spark.where(frame, condition).collect()] == expected
