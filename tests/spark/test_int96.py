"""INT96 timestamps through Spark: what its own reader gives, of files by Spark and by others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

import pqext
from pqext.spark import read
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
