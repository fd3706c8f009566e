"""INT96 timestamps through Spark: what its own reader gives, of files by Spark and by others."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

import pqext
from pqext import col
from pqext.spark import explain_read, read
from pqext.spark.reading.request import Query

# What Spark's own file of far timestamps holds (parquet-testing, int96_from_spark.md), in microseconds.
FAR = [1704141296123456, 1704070800000000, 253402225200000000, 1735599600000000, None, 9089380393200000000]
SPARK = {"org.apache.spark.version": "3.4.3"}


def write(path: Path, metadata: dict[str, str]) -> None:
    leaf = pa.field("a", pa.timestamp("us"), metadata={"PARQUET:physical_type": "INT96"})
    array = pa.array(FAR, leaf.type)
    nested = pa.StructArray.from_arrays([array, array], fields=[leaf, pa.field("local", pa.timestamp("us"))])
    lists = pa.ListArray.from_arrays(pa.array(range(len(FAR) + 1), pa.int32()), nested)
    schema = pa.schema([leaf, pa.field("l", lists.type), pa.field("local", pa.timestamp("us"))])
    path.parent.mkdir(exist_ok=True)
    pqext.write_table(pa.table([array, lists, array], schema=schema), path, key_value_metadata=metadata)


@pytest.mark.spec("logical.int96.unit")
@pytest.mark.parametrize("metadata", [SPARK, {}], ids=["by Spark", "by others"])
def test_the_schema_has_instants_where_the_file_has_int96(tmp_path: Path, metadata: dict[str, str]) -> None:
    write(tmp_path / "t.parquet", metadata)
    schema = Query.from_options({"path": str(tmp_path)}).schema()
    instant, local = T.TimestampType(), T.TimestampNTZType()
    assert (schema["a"].dataType, schema["local"].dataType) == (instant, local)
    inner = schema["l"].dataType.elementType
    assert (inner["a"].dataType, inner["local"].dataType) == (instant, local)


@pytest.mark.spec("logical.int96.unit")
def test_far_timestamps_are_those_that_spark_s_own_reader_gives(spark: Any, tmp_path: Path) -> None:
    for name, metadata in (("spark", SPARK), ("others", {})):
        write(tmp_path / "t" / f"{name}.parquet", metadata)
    wanted = (F.expr("unix_micros(a)"), F.expr("unix_micros(l[0].a)"))
    ours, theirs = read(spark, str(tmp_path / "t")), spark.read.parquet(str(tmp_path / "t"))
    assert ours.schema == theirs.schema
    expected = sorted([(value, value) for value in FAR * 2], key=str)
    for frame in (ours, theirs):
        assert sorted((tuple(row) for row in frame.select(*wanted).collect()), key=str) == expected


@pytest.mark.parametrize("engine", ["auto", "native"])
def test_spark_s_own_reader_reads_int96(spark: Any, tmp_path: Path, engine: Any) -> None:
    for name, metadata in (("spark", SPARK), ("others", {})):
        write(tmp_path / "t" / f"{name}.parquet", metadata)
    assert explain_read(str(tmp_path / "t"), engine=engine, spark=spark).engine == "native"
    theirs = spark.read.parquet(str(tmp_path / "t"))
    bound = "timestamp_micros(1704070800000000)"
    ours = read(spark, str(tmp_path / "t"), engine=engine)
    conditional = read(spark, str(tmp_path / "t"), where=col("a") > datetime(2024, 1, 1, 1), engine="auto")
    micros = [F.expr("unix_micros(a)"), F.expr("unix_micros(l[0].a)")]
    after = theirs.where(f"a > {bound}")
    for found, expected in ((ours, theirs), (ours.where(f"a > {bound}"), after), (conditional, after)):
        assert found.schema == expected.schema
        rows, wanted = (sorted(map(tuple, frame.select(*micros).collect()), key=str) for frame in (found, expected))
        assert rows == wanted
