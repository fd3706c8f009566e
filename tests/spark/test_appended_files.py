"""Rows appended to files that Spark wrote, in their layout: Spark reads old and new ones."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import variant

ROWS = "select timestamp'2026-05-01 12:00:00' t, cast(1.25 as decimal(12, 2)) d, 'x' s, array(named_struct('n', 1)) l"


def file_of(frame: Any, folder: Path) -> Path:
    frame.coalesce(1).write.parquet(str(folder))
    (path,) = folder.glob("part-*.parquet")
    return path


def parquet_schema(path: Path) -> str:
    return str(pq.ParquetFile(path).schema).partition("\n")[2]


@pytest.mark.spec("recovery.append.layout")
@pytest.mark.parametrize("legacy", ["true", "false"])
def test_old_spark_timestamps_and_decimals_are_accepted(spark: Any, tmp_path: Path, legacy: str) -> None:
    settings = {
        "spark.sql.parquet.outputTimestampType": "INT96" if legacy == "true" else "TIMESTAMP_MICROS",
        "spark.sql.parquet.writeLegacyFormat": legacy,
        "spark.sql.session.timeZone": "UTC",
    }
    before = {key: spark.conf.get(key) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        path = file_of(spark.sql(ROWS), tmp_path / "t")
        schema = parquet_schema(path)
        assert ("int96" in schema) == (legacy == "true")
        table = pa.table(
            {
                "d": [Decimal("2.50")],
                "l": pa.array([[{"n": 2}]], pa.list_(pa.struct([("n", pa.int32())]))),
                "s": ["y"],
                "t": pa.array([datetime(2026, 5, 2)], pa.timestamp("us", "UTC")),
            }
        )
        pqext.write_table(table, path, append=True)
        assert parquet_schema(path) == schema
        found = spark.read.parquet(str(tmp_path / "t")).selectExpr("string(t)", "d", "s", "l[0].n").collect()
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    expected = [("2026-05-01 12:00:00", Decimal("1.25"), "x", 1), ("2026-05-02 00:00:00", Decimal("2.50"), "y", 2)]
    assert sorted(map(tuple, found)) == expected


@pytest.mark.spec("recovery.append.layout")
def test_spark_variants_are_shredded_like_in_the_file(spark: Any, tmp_path: Path) -> None:
    first = '{"a": 1, "b": "x"}'
    path = file_of(spark.sql(f"select parse_json('{first}') v"), tmp_path / "t")
    schema = parquet_schema(path)
    second = '{"a": 2, "c": [null]}'
    pqext.write_table(pa.table({"v": variant.parse_json(pa.array([second]))}), path, append=True)
    assert parquet_schema(path) == schema
    found = spark.read.parquet(str(tmp_path / "t")).selectExpr("to_json(v)").collect()
    assert sorted((json.loads(text) for (text,) in found), key=lambda one: one["a"]) == [
        json.loads(first), json.loads(second),
    ]
