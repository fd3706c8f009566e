"""JSON text of variants against Spark's own to_json, and what both make of unusual metadata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import variant
from pqext.core.base.errors import VariantError

DOCUMENTS = [
    '{"b":1.50,"a":[1.000,{"x":2.50},[],{}],"":null}', "0.0000000001", "100.00", "-0.0", "0.00", "-12.340",
    "123456789012345678.10", "12345678901234567890123456789012345678", "1.5", "2147483648", "true",
    '"a\\u2028é\\"/\\\\ \\u0001\\t\\n\\b\\f\\u007f 😀"', "1e10", "1.5e300", "-1e-7", "0.1e0", "12345678.9e0",
]  # fmt: skip

LITERALS = [
    "X'0102ff'", "X''", "date'2024-01-02'", "date'-0001-12-31'", "date'+10000-01-01'",
    "timestamp'2024-01-02 03:04:05.6'",
    "timestamp'1969-12-31 23:59:59.999999'", "timestamp_ntz'2024-01-02 03:04:05.600'",
    "timestamp_ntz'0001-01-01 00:00:00'",
    "double('NaN')", "double('-Infinity')", "float('inf')", "cast(0.1 as float)", "cast(2.50 as decimal(10,2))",
    "cast(0 as decimal(38,38))", "tinyint(-5)", "9223372036854775807", "array(1, null)", "true",
]  # fmt: skip


def bytes_of(rows: list[Any]) -> pa.Array:
    """Spark's variants, as collected, as an array."""
    pairs = [{"metadata": bytes(row.metadata), "value": bytes(row.value)} for row in rows]
    return pa.array(pairs, variant.variant_type())


def test_text_matches_spark(spark: Any) -> None:
    from pyspark.sql import functions as F

    parsed = spark.createDataFrame([(text,) for text in DOCUMENTS], "text string").select(
        F.parse_json("text").alias("v")
    )
    literals = spark.sql(" union all ".join(f"select cast({literal} as variant) v" for literal in LITERALS))
    for frame in (parsed, literals):
        rows = frame.select("v", F.to_json("v").alias("text")).collect()
        ours = variant.to_json(bytes_of([row.v for row in rows])).to_pylist()
        plain = [(row.text, text) for row, text in zip(rows, ours, strict=True) if "E" not in row.text]
        assert [text for _, text in plain] == [text for text, _ in plain]
        assert len(plain) > len(rows) // 2
        # Java's exponents are other text for the same numbers.
        assert list(map(json.loads, ours)) == [json.loads(row.text) for row in rows]


def test_cast_to_text_strips_zeros_like_json(spark: Any) -> None:
    from pyspark.sql import functions as F

    frame = spark.createDataFrame([(text,) for text in DOCUMENTS], "text string").select(
        F.parse_json("text").alias("v")
    )
    rows = frame.select("v", F.variant_get("v", "$", "string").alias("text")).collect()
    ours = variant.get(bytes_of([row.v for row in rows]), "$", "string").to_pylist()
    assert ours == [row.text for row in rows]


def test_shredded_columns_have_the_text_of_spark(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    documents = [f'{{"a":{i}.50,"b":"t{i}","c":[{i},"x"],"d":{{"e":{i}}}}}' for i in range(50)] + ['{"a":"odd"}', "7"]
    shredded = variant.parse_json(
        pa.array(documents), shredding="a DECIMAL(9,2), b STRING, c ARRAY<INT>, d STRUCT<e: INT>"
    )
    path = tmp_path / "shredded.parquet"
    pqext.write_table(pa.table([shredded], schema=pa.schema([pa.field("v", shredded.type)])), path, profile="spark")
    theirs = [row.text for row in spark.read.parquet(str(path)).select(F.to_json("v").alias("text")).collect()]
    ours = variant.to_json(pqext.read_table(path, shredded=True)["v"]).to_pylist()
    assert sorted(ours) == sorted(theirs)


@pytest.mark.spec("variant.metadata.layout")
def test_spark_reads_metadata_without_offsets_if_there_are_no_names(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    array = pa.array([{"metadata": b"\x01\x00", "value": b"\x0c\x05"}], variant.variant_type())
    path = tmp_path / "short.parquet"
    pqext.write_table(pa.table([array], schema=pa.schema([variant.variant_field("v")])), path, profile="spark")
    assert spark.read.parquet(str(path)).select(F.to_json("v")).collect()[0][0] == "5"
    with pytest.raises(VariantError, match="metadata ends"):
        variant.to_json(array)
