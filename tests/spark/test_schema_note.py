"""Types and metadata that Spark notes beside Parquet's: kept in reading and writing, as its own reader has them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

import pqext
from pqext import col
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import KeyValue
from pqext.spark import explain_read, query, read, where, write
from pqext.spark.columns.recorded_schema import KEY, canonicalize_collation

SQL = """
select id, if(id % 2 = 0, 'abc', 'ABC') collate UTF8_LCASE as s, make_dt_interval(int(id), 2, 3, 4.5) as dt,
    interval '3' hour as hours, array('x' collate UNICODE_CI) as list, named_struct('f', 'y' collate UTF8_LCASE) as n
from range(6)"""


@pytest.fixture(scope="module")
def noted(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    """A folder that Spark has written, and what Spark reads in it."""
    path = str(tmp_path_factory.mktemp("noted") / "t")
    frame = spark.sql(SQL).withMetadata("id", {"comment": "the key", "units": [1, 2]})
    frame.coalesce(1).write.parquet(path)
    return path, spark.read.parquet(path)


def rows(frame: Any) -> Any:
    return frame.orderBy("id").collect()


@pytest.mark.spec("spark.schema-note")
@pytest.mark.parametrize("engine", ["python", "auto"])
def test_collations_intervals_and_metadata_are_read(spark: Any, noted: tuple[str, Any], engine: Any) -> None:
    ours, theirs = read(spark, noted[0], engine=engine), noted[1]
    assert ours.schema == theirs.schema
    assert ours.schema["id"].metadata == theirs.schema["id"].metadata == {"comment": "the key", "units": [1, 2]}
    assert rows(ours) == rows(theirs)
    assert ours.where("s = 'Abc'").count() == theirs.where("s = 'Abc'").count() == 6
    assert explain_read(noted[0], engine=engine, spark=spark).engine == {"auto": "native"}.get(engine, engine)


@pytest.mark.spec("spark.schema-note.collations")
@pytest.mark.parametrize("condition", ["coalesce(s, 'q') = 'Abc'", "coalesce(p, 'q' collate UTF8_LCASE) = 'Abc'"])
def test_functions_of_collated_text_prune_nothing(spark: Any, tmp_path: Path, condition: str) -> None:
    path = str(tmp_path / "collated")
    spark.sql("select 'ABC' collate UTF8_LCASE s, 'abc' p").coalesce(1).write.parquet(path)
    assert read(spark, path, where=condition).collect() == spark.read.parquet(path).where(condition).collect() != []


@pytest.mark.spec("spark.schema-note.collations")
def test_spark_evaluates_conditions_on_collated_columns(spark: Any, noted: tuple[str, Any]) -> None:
    ours, theirs = read(spark, noted[0]), noted[1]
    for condition, text in (
        (col("s") == "Abc", "s = 'Abc'"), (col("s").isin(["aBC"]), "s in ('aBC')"), (col("s") > "ABB", "s > 'ABB'"),
        ((col("s") != "Abc") | (col("id") == 1), "s != 'Abc' or id = 1"),
    ):  # fmt: skip
        assert rows(where(ours, condition)) == rows(theirs.where(text)), text
    for engine in ("python", "auto", "native"):
        with pytest.raises(Exception, match=r"with a collation.*filter with pqext.spark.where"):
            read(spark, noted[0], where=col("s") == "Abc", engine=engine)  # type: ignore[arg-type]
    assert read(spark, noted[0]).count() == query(spark, noted[0], {"n": ("count", "s")}).first().n == 6
    with pytest.raises(Exception, match="group and aggregate it with Spark"):
        query(spark, noted[0], {"least": ("min", "s")}).collect()


@pytest.mark.spec("spark.schema-note.collations")
def test_collation_matters_only_where_its_text_is_compared(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "collated")
    text = "named_struct('f', if(id = 1, null, 'y') collate UTF8_LCASE, 'g', id)"
    spark.sql(f"select id, {text} n, 'x' collate UTF8_LCASE s from range(3)").coalesce(1).write.parquet(path)
    theirs = spark.read.parquet(path)
    f, g = col(["n", "f"]), col(["n", "g"])
    for condition, sql in (
        (g == 1, "n.g = 1"), (f.is_null(), "n.f is null"), (f.is_not_null() & (g > 0), "n.f is not null and n.g > 0"),
        (col("s").is_not_null(), "s is not null"),
    ):
        assert rows(read(spark, path, where=condition)) == rows(theirs.where(sql)) != []
    for condition in (f == "Y", (g == 1) | (f > "Y"), f.isin(["Y"]), f.is_null() | (f == "Y")):
        with pytest.raises(Exception, match="string collate UTF8_LCASE"):
            read(spark, path, where=condition)


@pytest.mark.spec("spark.schema-note")
def test_union_preserves_the_spark_metadata_of_all_files(spark: Any, noted: tuple[str, Any], tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(2).coalesce(1).write.parquet(path)
    noted[1].coalesce(1).write.mode("append").parquet(path)
    assert read(spark, path, schema="union").schema["s"].dataType == T.StringType("UTF8_LCASE")
    with pytest.raises(Exception, match="string collate UTF8_LCASE"):
        read(spark, path, schema="union", where=col("s") == "Abc")


@pytest.mark.spec("spark.schema-note")
def test_ml_vectors_remain_vectors(spark: Any, tmp_path: Path) -> None:
    from pyspark.ml.linalg import Vectors

    path, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    vectors = [(1, Vectors.dense([1.0, 2.0])), (2, Vectors.sparse(3, {1: 4.0})), (3, None)]
    frame = spark.createDataFrame(vectors, ["id", "v"])
    frame.coalesce(1).write.parquet(path)
    theirs = spark.read.parquet(path)
    ours = read(spark, path)
    assert ours.schema == theirs.schema
    assert rows(ours) == rows(theirs)
    write(theirs, copy)
    assert spark.read.parquet(copy).schema == theirs.schema
    assert rows(spark.read.parquet(copy)) == rows(read(spark, copy)) == rows(theirs)


@pytest.mark.spec("spark.schema-note.writing")
def test_pqext_records_spark_metadata(spark: Any, noted: tuple[str, Any], tmp_path: Path) -> None:
    path, theirs = str(tmp_path / "t"), noted[1]
    write(theirs.withColumn("p", F.lit(1)), path, partition_by="p")
    again = spark.read.parquet(path).drop("p")
    assert again.schema == theirs.schema
    assert again.schema["id"].metadata == theirs.schema["id"].metadata
    assert rows(again) == rows(read(spark, path).drop("p")) == rows(theirs)
    plain = str(tmp_path / "plain")
    write(spark.range(3).coalesce(1), plain)
    (file,) = Path(plain).glob("*.parquet")
    assert KEY.encode() not in (pqext.open(str(file)).arrow_schema.metadata or {})


def write_note(source: str, text: str, target: Path) -> str:
    def change(metadata: Any) -> None:
        metadata.key_value_metadata = [KeyValue(key=KEY, value=text)]

    (file,) = Path(source).glob("*.parquet")
    rewrite_footer(str(file), change, str(target))
    return str(target)


@pytest.mark.spec("spark.schema-note")
@pytest.mark.parametrize(
    "metadata",
    [[1], "text", None, {"a": [1, "x", {}]}, {"a": [None]}, {"a": {"b": [[1]]}}, {"pqext.interval": '"string"'}],
)
def test_spark_metadata_is_used_as_far_as_spark_reads_it(
    spark: Any, noted: tuple[str, Any], tmp_path: Path, metadata: Any
) -> None:
    fields = [
        {"name": "id", "type": "long", "nullable": True, "metadata": metadata},
        {"name": "s", "type": "string", "nullable": True, "metadata": {"__COLLATIONS": {"s": "spark.UTF8_LCASE"}}},
    ]
    path = write_note(noted[0], json.dumps({"type": "struct", "fields": fields}), tmp_path / "t.parquet")
    ours, theirs = read(spark, path), spark.read.parquet(path)
    for name in ("id", "s"):
        assert ours.schema[name].dataType == theirs.schema[name].dataType
    assert ours.select("id", "s").collect() == theirs.select("id", "s").collect()
    assert read(spark, path, schema="union").schema["s"] == theirs.schema["s"]


@pytest.mark.spec("spark.schema-note")
def test_union_ignores_spark_metadata_of_a_file_that_spark_does_not_read(
    spark: Any, noted: tuple[str, Any], tmp_path: Path
) -> None:
    (file,) = Path(noted[0]).glob("*.parquet")
    columns = pq.read_table(file, columns=["id"])
    folder = tmp_path / "t"
    folder.mkdir()
    fields = [{"name": "id", "type": "unknown", "nullable": True, "metadata": {}}]
    text = json.dumps({"type": "struct", "fields": fields})
    pq.write_table(columns.replace_schema_metadata({KEY: text}), folder / "a.parquet")
    (folder / "b.parquet").write_bytes(file.read_bytes())
    ours = read(spark, str(folder), columns=["id", "s"], schema="union")
    theirs = spark.read.option("mergeSchema", "true").parquet(str(folder)).select("id", "s")
    assert ours.schema["s"].dataType == theirs.schema["s"].dataType != T.StringType()
    assert sorted(map(str, ours.collect())) == sorted(map(str, theirs.collect()))


@pytest.mark.spec("spark.schema-note")
@pytest.mark.parametrize("name", ["NOPE", "de_CI_CS", "utf8_lcase", "de_ai_ci_RTRIM", "unicode_CS"])
def test_collations_match_those_of_spark(
    spark: Any, noted: tuple[str, Any], tmp_path: Path, name: str
) -> None:
    field = {"name": "s", "type": f"string collate {name}", "nullable": True, "metadata": {"comment": "c"}}
    path = write_note(noted[0], json.dumps({"type": "struct", "fields": [field]}), tmp_path / "t.parquet")
    theirs = spark.read.parquet(path).schema["s"]
    for union in (None, "union"):
        ours = read(spark, path, schema=union).schema["s"]
        assert (ours, ours.metadata) == (theirs, theirs.metadata)


@pytest.mark.spec("spark.schema-note")
def test_collation_names_match_spark(spark: Any) -> None:
    names = [row.NAME for row in spark.sql("select NAME from collations()").collect()]
    assert names == [canonicalize_collation(name.swapcase()) for name in names]


@pytest.mark.spec("spark.schema-note")
def test_excessively_nested_spark_metadata_is_ignored(spark: Any, noted: tuple[str, Any], tmp_path: Path) -> None:
    path = write_note(noted[0], "[" * 200_000, tmp_path / "t.parquet")
    for union in (None, "union"):
        assert read(spark, path, columns=["id", "s"], schema=union).schema["s"].dataType == T.StringType()


@pytest.mark.spec("spark.schema-note")
def test_spark_metadata_imports_no_module(spark: Any, noted: tuple[str, Any], tmp_path: Path) -> None:
    udt = {"type": "udt", "class": "x.Y", "pyClass": "antigravity.Y", "sqlType": "long"}
    field = {"name": "id", "type": udt, "nullable": True, "metadata": {}}
    path = write_note(noted[0], json.dumps({"type": "struct", "fields": [field]}), tmp_path / "t.parquet")
    with pytest.raises(Exception, match=r"the user-defined type x\.Y is not supported"):
        read(spark, path)
    assert read(spark, path, columns=["s"]).schema == T.StructType([T.StructField("s", T.StringType())])


def _with_unknown_type(source: str, target: Path) -> str:
    """Copy the file of a folder with a user-defined type of a missing module for column ``s``, as Spark records it."""
    udt = {"type": "udt", "pyClass": "no_module.Y", "serializedClass": "", "sqlType": "string"}
    (file,) = Path(source).glob("*.parquet")
    note = json.loads(pq.read_schema(file).metadata[KEY.encode()])
    next(field for field in note["fields"] if field["name"] == "s")["type"] = udt
    return write_note(source, json.dumps(note), target)


@pytest.mark.spec("spark.schema-note")
def test_unselected_user_defined_types_are_ignored(spark: Any, noted: tuple[str, Any], tmp_path: Path) -> None:
    path, condition = _with_unknown_type(noted[0], tmp_path / "t.parquet"), "upper(string(id)) = '1'"
    expected = spark.read.parquet(path).where(condition).select("id").collect()
    for engine in ("python", "auto"):
        assert read(spark, path, ["id"], condition, engine=engine).collect() == expected != []  # type: ignore[arg-type]
    assert explain_read(path, ["id"], condition, spark=spark).columns == ("id",)
    for columns, where_text in ((["id"], "upper(s) = 'ABC'"), (None, condition)):
        with pytest.raises(Exception, match=r"the user-defined type no_module\.Y is not supported.* \[column s\]"):
            read(spark, path, columns, where_text).collect()


@pytest.mark.spec("spark.schema-note")
def test_unselected_columns_may_have_types_that_spark_does_not_support(spark: Any, tmp_path: Path) -> None:
    path, condition = str(tmp_path / "t.parquet"), "upper(string(id)) = '1'"
    pq.write_table(pa.table({"id": [0, 1], "w": pa.array([Decimal(7)] * 2, pa.decimal256(50))}), path)
    for engine in ("python", "auto"):
        frame = read(spark, path, ["id"], condition, engine=engine)  # type: ignore[arg-type]
        assert [row.id for row in frame.collect()] == [1]
    with pytest.raises(pqext.UnsupportedError, match=r"Spark does not support decimal256\(50, 0\) in column w"):
        read(spark, path, ["id"], engine="native")


@pytest.mark.spec("spark.schema-note")
def test_unknown_user_defined_types_of_a_data_frame_are_named(
    spark: Any, noted: tuple[str, Any], tmp_path: Path
) -> None:
    frame = spark.read.parquet(_with_unknown_type(noted[0], tmp_path / "t.parquet"))
    target, advice = str(tmp_path / "copy"), r"type no_module\.Y cannot be imported .*: .* df\.drop\('s'\)"
    for call in (
        lambda: where(frame, "id = 1"), lambda: where(frame, col("id") == 1), lambda: where(frame, F.col("id") == 1),
        lambda: write(frame, target),
    ):  # fmt: skip
        with pytest.raises(pqext.UnsupportedError, match=advice) as caught:
            call()
        assert caught.value.column == "s"
    known = frame.drop("s")
    assert where(known, "id = 1").count() == 1
    assert write(known, target).rows == spark.read.parquet(target).count() == 6


DAY_TIME = [
    "day", "day to hour", "day to minute", "day to second", "hour", "hour to minute", "hour to second", "minute",
    "minute to second", "second",
]  # fmt: skip
YEAR_MONTH = ["year", "year to month", "month"]
DAY_TIME_VALUES = [
    "null", "interval '1 02:03:04.000005' day to second", "interval '-99 23:59:59.999999' day to second",
    "interval '106751991 04:00:54.775807' day to second",
]  # fmt: skip
YEAR_MONTH_VALUES = ["null", "interval '1-2' year to month", "interval '-99-11' year to month", "interval '0' month"]


def _interval_columns() -> list[str]:
    columns = ["id"]
    for fields, values in ((DAY_TIME, DAY_TIME_VALUES), (YEAR_MONTH, YEAR_MONTH_VALUES)):
        for kind in fields:
            cast = ", ".join(f"cast({value} as interval {kind})" for value in values)
            value, name = f"element_at(array({cast}), cast(id as int) + 1)", kind.replace(" ", "_")
            columns += [f"{value} {name}", f"array({value}, null) {name}_list", f"map('k', {value}) {name}_map"]
    return columns


def texts(frame: Any) -> Any:
    return frame.orderBy("id").selectExpr(*[f"cast({name} as string) {name}" for name in frame.columns]).collect()


@pytest.mark.spec("spark.schema-note")
def test_every_type_of_interval_is_read_and_written(spark: Any, tmp_path: Path) -> None:
    theirs_path, ours_path = str(tmp_path / "theirs"), str(tmp_path / "ours")
    spark.sql(f"select {', '.join(_interval_columns())} from range(4)").coalesce(1).write.parquet(theirs_path)
    theirs = spark.read.parquet(theirs_path)
    expected = texts(theirs)
    assert len(theirs.columns) == 1 + 3 * 13
    for engine in ("python", "auto"):
        ours = read(spark, theirs_path, engine=engine)
        assert (ours.schema, texts(ours)) == (theirs.schema, expected)
    write(theirs.coalesce(1), ours_path)
    written = spark.read.parquet(ours_path)
    assert (written.schema, texts(written)) == (theirs.schema, expected)


@pytest.mark.spec("spark.schema-note")
def test_matrices_and_nested_vectors_are_read_and_written(spark: Any, tmp_path: Path) -> None:
    from pyspark.ml.linalg import Matrices, MatrixUDT, Vectors, VectorUDT

    schema = T.StructType([
        T.StructField("id", T.LongType()), T.StructField("m", MatrixUDT(), True, {"comment": "a matrix"}),
        T.StructField("list", T.ArrayType(VectorUDT())), T.StructField("map", T.MapType(T.StringType(), VectorUDT())),
    ])  # fmt: skip
    values = [
        (0, Matrices.dense(1, 2, [1.0, 2.0]), [Vectors.dense([1.0]), None], {"k": Vectors.sparse(3, {1: 4.0})}),
        (1, None, [], None),
    ]  # fmt: skip
    theirs_path, ours_path = str(tmp_path / "theirs"), str(tmp_path / "ours")
    spark.createDataFrame(values, schema).coalesce(1).write.parquet(theirs_path)
    theirs = spark.read.parquet(theirs_path)
    for engine in ("python", "auto"):
        ours = read(spark, theirs_path, engine=engine)
        assert (ours.schema, rows(ours)) == (theirs.schema, rows(theirs))
    write(theirs.coalesce(1), ours_path)
    written = spark.read.parquet(ours_path)
    assert (written.schema, rows(written)) == (theirs.schema, rows(theirs))
    assert written.schema["m"].metadata == {"comment": "a matrix"}


@pytest.mark.spec("spark.schema-note")
def test_char_and_varchar_columns_are_strings_as_for_a_path_in_spark(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.sql(f"create table fixed (id long, c char(5), v varchar(3)) using parquet location '{path}'")
    try:
        spark.sql("insert into fixed values (1, 'abc', 'xy'), (2, null, 'xyz')")
        theirs, ours = spark.read.parquet(path), read(spark, path)
        assert (ours.schema, rows(ours)) == (theirs.schema, rows(theirs))
    finally:
        spark.sql("drop table fixed")
