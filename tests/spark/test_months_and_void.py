"""Year-month intervals, which Spark passes to no Python, and VOID columns: read and written as Spark does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

import pqext
from pqext import col
from pqext.spark import query, read, where, write
from pqext.spark.columns.recorded_schema import KEY

MONTHS = """
select id, if(id = 2, null, make_ym_interval(int(id), 2)) as ym, array(interval '-5' month, null) as list,
    named_struct('y', interval '3' year, 'void', null) as nested, map(interval '1' year, id) as map
from range(4)"""
VOID = """
select id, null as v, array(null) as list, array() as none, if(id = 0, null, named_struct('a', null, 'b', id)) as s
from range(3)"""


@pytest.fixture(scope="module")
def months(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    """A folder with intervals that Spark has written, and what Spark reads in it."""
    path = str(tmp_path_factory.mktemp("months") / "t")
    frame = spark.sql(MONTHS).withMetadata("ym", {"comment": "how long"})
    frame.coalesce(1).write.parquet(path)
    return path, spark.read.parquet(path)


def as_text(frame: Any) -> Any:
    """Rows as text, since PySpark makes no Python values of these intervals."""
    columns = [f"cast(`{name}` as string) `{name}`" for name in frame.columns]
    return frame.orderBy("id").selectExpr(*columns).collect()


def spark_metadata(path: str) -> Any:
    """Spark's note of the schema in the file of a folder."""
    (file,) = Path(path).glob("*.parquet")
    return json.loads(pq.read_metadata(file).metadata[KEY.encode()])


@pytest.mark.spec("spark.months")
@pytest.mark.parametrize("engine", ["python", "auto"])
def test_month_intervals_are_read_like_in_spark(spark: Any, months: tuple[str, Any], engine: Any) -> None:
    ours, theirs = read(spark, months[0], engine=engine), months[1]
    assert ours.schema == theirs.schema
    assert ours.schema["ym"].metadata == theirs.schema["ym"].metadata == {"comment": "how long"}
    assert as_text(ours) == as_text(theirs)
    assert ours.count() == theirs.count() == 4
    assert ours.select("id").collect() == theirs.select("id").collect()
    condition = "ym > interval '1' year"
    assert as_text(where(ours, condition)) == as_text(theirs.where(condition)) != []
    assert as_text(read(spark, months[0], where=condition, engine=engine)) == as_text(theirs.where(condition))
    assert where(ours, col("ym").is_null()).count() == 1
    assert as_text(read(spark, months[0], {"id": "id", "m": "ym"}, engine=engine)) == as_text(
        theirs.selectExpr("id", "ym m")
    )


@pytest.mark.spec("spark.months")
def test_month_intervals_are_counted_but_not_summed(spark: Any, months: tuple[str, Any]) -> None:
    assert query(spark, months[0], {"n": ("count", "ym")}).first().n == months[1].select("ym").dropna().count() == 3
    with pytest.raises(Exception, match="max is not defined for column 'ym' of type interval year to month"):
        query(spark, months[0], {"n": ("max", "ym")}).collect()


@pytest.mark.spec("spark.months")
def test_data_source_names_month_intervals_and_a_remedy(spark: Any, months: tuple[str, Any]) -> None:
    source = spark.read.format("pqext")
    ours = source.load(months[0])
    assert ours.schema == months[1].schema
    for action in (ours.count, lambda: ours.select("id").collect()):
        with pytest.raises(Exception, match=r"Spark cannot pass .*year to month.* .*column ym.*") as caught:
            action()
        for remedy in ("option columns", "pqext.spark.read", "interval_months=true"):
            assert remedy in str(caught.value)
    ids = months[1].select("id").collect()
    assert source.option("columns", "id").load(months[0]).collect() == ids
    assert spark.read.schema("id BIGINT").format("pqext").load(months[0]).collect() == ids
    numbers = spark.read.format("pqext").option("interval_months", "true").load(months[0]).orderBy("id")
    expected = duckdb.sql(f"select ym, list, nested.y from '{months[0]}/*.parquet' order by id").fetchall()
    assert [tuple(row) for row in numbers.select("ym", "list", "nested.y").collect()] == expected


@pytest.mark.spec("spark.months.writing")
def test_month_intervals_are_written_like_in_spark(
    spark: Any, months: tuple[str, Any], tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    write(months[1].coalesce(1), path)
    again = spark.read.parquet(path)
    assert again.schema == months[1].schema
    assert again.schema["ym"].metadata == {"comment": "how long"}
    assert as_text(again) == as_text(months[1]) == as_text(read(spark, path))
    noted, expected_note = (
        {field["name"]: field["type"] for field in spark_metadata(one)["fields"]} for one in (path, months[0])
    )
    assert {name: noted[name] for name in ("ym", "id")} == {name: expected_note[name] for name in ("ym", "id")}
    (file,), (theirs,) = Path(path).glob("*.parquet"), Path(months[0]).glob("*.parquet")
    stored, expected = (pq.ParquetFile(one).schema.column(1) for one in (file, theirs))
    assert stored.physical_type == expected.physical_type == "INT32"
    with pytest.raises(Exception, match=r"save with pqext\.spark\.write, or cast it: CAST\(CAST\(x AS INTERVAL MONTH"):
        months[1].write.format("pqext").mode("append").save(str(tmp_path / "source"))
    with pytest.raises(Exception, match="cast it to name folders"):
        write(months[1].select("id", "ym"), str(tmp_path / "by"), partition_by="ym")


@pytest.mark.spec("spark.void")
def test_void_columns_round_trip_like_in_spark(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql(VOID).coalesce(1)
    theirs, ours, source = (str(tmp_path / name) for name in ("theirs", "ours", "source"))
    frame.write.parquet(theirs)
    write(frame, ours)
    frame.write.format("pqext").mode("append").save(source)
    expected = spark.read.parquet(theirs)
    for path in (ours, source):
        assert spark.read.parquet(path).schema == expected.schema
        assert spark.read.parquet(path).orderBy("id").collect() == expected.orderBy("id").collect()
        assert spark_metadata(path) == spark_metadata(theirs)
    for path in (ours, theirs):
        assert read(spark, path).schema == expected.schema
        assert read(spark, path).orderBy("id").collect() == expected.orderBy("id").collect()
        assert pqext.read_table(path, ["v"])["v"].to_pylist() == [None] * 3
    with pytest.raises(Exception, match=r"map keys cannot be void( \[.*\])?; cast the column"):
        write(spark.sql("select map() as m"), str(tmp_path / "map"))


@pytest.mark.spec("spark.void")
def test_maps_with_void_keys_are_an_error_that_names_them(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.sql("select 1 as id, map() as m").write.parquet(path)
    assert read(spark, path).schema["m"].dataType == T.MapType(T.NullType(), T.NullType())
    for engine in ("python", "auto"):
        with pytest.raises(Exception, match=r"a map with void keys.* \[column m\]; .* spark\.read\.parquet"):
            read(spark, path, engine=engine).collect()
    assert read(spark, path, ["id"]).collect() == spark.read.parquet(path).select("id").collect()
