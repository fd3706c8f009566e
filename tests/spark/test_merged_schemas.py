"""Appends with other columns and types than their folder has: refused, or merged where no value is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from pqext.core.base.errors import SchemaMismatchError
from pqext.dataset.table.unified_schema import merge_schemas
from pqext.spark import read, write


def rows(frame: Any) -> list[str]:
    return sorted(map(str, frame.select(sorted(frame.columns)).collect()))


@pytest.mark.spec("spark.append.merged")
def test_append_adds_columns_and_fields_like_spark_schema_merging(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write(spark.sql("select 1L id, named_struct('a', 1) s"), path)
    wider = spark.sql("select 2L id, named_struct('a', 2, 'b', 'x') s, 'y' text, 1.5D number")
    with pytest.raises(Exception, match=r"additional columns number, text.*pass merge_schema=True to add"):
        write(wider, path, "append")
    write(wider, path, "append", merge_schema=True)
    narrower = spark.sql("select named_struct('b', 'z') s, 3L id")
    narrower.write.format("pqext").mode("append").option("mergeSchema", "true").save(path)
    theirs = spark.read.option("mergeSchema", "true").parquet(path)
    assert rows(read(spark, path, schema="union")) == rows(theirs)
    merged = spark.read.format("pqext").option("mergeSchema", "true").load(path)
    assert rows(merged) == rows(theirs)
    assert sorted(row.number for row in merged.collect() if row.id == 2) == [1.5]
    with pytest.raises(Exception, match="schemas differ"):
        read(spark, path).collect()
    with pytest.raises(Exception, match="option merge_schema must be true or false"):
        narrower.write.format("pqext").mode("append").option("mergeSchema", "yes").save(path)


@pytest.mark.spec("spark.append.merged")
def test_append_widens_types_without_loss(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write(spark.sql("select 1 i, cast(1 as byte) b, cast(1.5 as float) f, cast(1.25 as decimal(5, 2)) d, 7 n"), path)
    wide = spark.sql(
        "select 9000000000L i, 300S b, 0.1D f, cast(12345678.125 as decimal(12, 3)) d, cast(0.5 as decimal(12, 1)) n"
    )
    write(wide, path, "append", merge_schema=True)
    found = read(spark, path, schema="union")
    types = {"i": "bigint", "b": "smallint", "f": "double", "d": "decimal(12,3)", "n": "decimal(12,1)"}
    assert found.dtypes == [*types.items()]
    expected = spark.sql("select 1L i, 1S b, 1.5D f, cast(1.25 as decimal(12, 3)) d, cast(7 as decimal(12, 1)) n")
    assert rows(found) == rows(expected.union(wide))
    for column in ("'x' i", "true b", "9007199254740993L f", "date'2020-01-01' d"):
        name = column.rpartition(" ")[2]
        with pytest.raises(Exception, match=rf"schemas cannot be merged: column '{name}' is .*nothing was written"):
            write(spark.range(1).selectExpr(column), path, "append", merge_schema=True)
    assert rows(read(spark, path, schema="union")) == rows(found)


@pytest.mark.spec("spark.append.merged")
def test_partitioned_folder_accepts_new_columns(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame = spark.range(4).withColumn("k", F.col("id") % 2)
    write(frame, path, partition_by="k")
    write(frame.withColumn("x", F.lit(5)), path, "append", partition_by="k", merge_schema=True)
    theirs = spark.read.option("mergeSchema", "true").parquet(path).withColumn("k", F.col("k").cast("bigint"))
    assert rows(read(spark, path, schema="union").withColumn("k", F.col("k").cast("bigint"))) == rows(theirs)
    with pytest.raises(Exception, match="columns 'x' and 'X'"):
        write(frame.withColumn("X", F.lit(5)), path, "append", partition_by="k", merge_schema=True)


@pytest.mark.spec("spark.append.merged")
@pytest.mark.parametrize(
    ("first", "other", "merged"),
    [
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.int64(), pa.float64(), None),
        (pa.int32(), pa.float32(), pa.float64()),
        (pa.int8(), pa.uint8(), pa.int16()),
        (pa.int64(), pa.uint64(), None),
        (pa.int64(), pa.decimal128(10, 2), pa.decimal128(21, 2)),
        (pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.timestamp("ns"), None),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), None),
        (pa.string(), pa.binary(), None),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), pa.list_(pa.int64())),
        (pa.list_(pa.int64()), pa.list_(pa.float64()), None),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int64())),
        (pa.struct([("a", pa.int64())]), pa.struct([("a", pa.float64())]), None),
        (pa.decimal128(38, 10), pa.decimal128(38, 0), None),  # which has 48 digits: more than Spark reads
        (pa.int64(), pa.decimal128(38, 30), None),
    ],
    ids=str,
)
def test_types_widen_only_without_loss(first: Any, other: Any, merged: Any) -> None:
    for one, two in ((first, other), (other, first)):
        schemas = pa.schema([("c", one)]), pa.schema([("c", two)])
        if merged is None:
            with pytest.raises(SchemaMismatchError, match=r"column 'c' is .* in f and .* in g"):
                merge_schemas(*schemas, "f", "g")
        else:
            assert str(merge_schemas(*schemas, "f", "g").field("c").type) == str(merged)


@pytest.mark.spec("spark.append.merged")
def test_fields_that_differ_only_in_case_are_not_merged() -> None:
    lower, upper = (pa.struct([(name, pa.int64())]) for name in "aA")
    for one, two, path in (
        (lower, upper, "c"),
        (pa.list_(lower), pa.list_(upper), r"c\.\w+"),
        (pa.map_(pa.string(), lower), pa.map_(pa.string(), upper), r"c\.\w+\.\w+"),
    ):
        with pytest.raises(SchemaMismatchError, match=rf"columns '{path}\.a' and '{path}\.A' differ only in case"):
            merge_schemas(pa.schema([("c", one)]), pa.schema([("c", two)]), "f", "g")
