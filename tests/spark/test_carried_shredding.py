"""shred_variant's choice goes along with the column and is followed by the sink."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql import types as T

import pqext
from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.spark import explain_write, read, shred_variant, unshred_variant
from pqext.spark.columns.shredding_choice import KEY, column_choices

A_INT = "STRUCT<a: INT>"


@pytest.fixture(scope="module")
def documents(spark: Any) -> Any:
    rows = [(n, f'{{"a": {n}, "b": "text {n}", "c": [{n}]}}') for n in range(20)]
    return spark.createDataFrame(rows, "id int, text string").select("id", F.parse_json("text").alias("v")).cache()


@pytest.fixture(scope="module")
def nested(documents: Any) -> Any:
    """A VARIANT in a struct, an array and a map, null in some of them."""
    some = F.when(F.col("id") % 3 > 0, F.col("v"))
    return documents.select(
        F.struct(F.col("v").alias("w"), some.alias("x")).alias("s"),
        F.array("v", some).alias("l"),
        F.create_map(F.lit("k"), F.col("v")).alias("m"),
    )


def save(df: Any, path: Path, **options: str) -> list[Path]:
    df.write.format("pqext").options(**options).mode("append").save(str(path))
    return sorted(path.glob("*.parquet"))


def stored(path: Path, column: str) -> str:
    return str(variant.schema_of_file(path, column))


def schemas(df: Any) -> dict[str, str]:
    return {path: str(choice.schema or "infer") for path, choice in column_choices(df.schema).items()}


def test_sink_follows_the_choice_and_the_column_remains_a_variant(documents: Any, tmp_path: Path) -> None:
    df = shred_variant(documents, {"v": "a INT, b STRING"})
    assert df.schema["v"].dataType == T.VariantType()
    assert df.select(F.variant_get("v", "$.a", "int")).collect() == [(n,) for n in range(20)]
    for file in save(df, tmp_path / "out"):
        assert stored(file, "v") == "STRUCT<a: INT, b: STRING>"
    rows = read(documents.sparkSession, str(tmp_path / "out")).selectExpr("id", "to_json(v)").collect()
    expected = documents.selectExpr("id", "to_json(v)").collect()
    assert sorted(rows) == sorted(expected)


def test_choice_survives_operations_that_preserve_the_column(documents: Any) -> None:
    df = shred_variant(documents, {"v": "a INT"})
    ids = documents.select("id")
    df.createOrReplaceTempView("shredded")
    changed = {
        "where": df.where("id > 3"),
        "select": df.select("v"),
        "sort": df.sort("id"),
        "repartition": df.repartition(2),
        "coalesce": df.coalesce(1),
        "join": df.join(ids, "id"),
        "left join": ids.join(df, "id", "left"),
        "union": df.union(documents),
        "union by name": df.unionByName(ids, allowMissingColumns=True),
        "drop duplicates": df.dropDuplicates(["id"]),
        "sample": df.sample(0.5),
        "limit": df.limit(3),
        "cache": df.cache(),
        "sql": df.sparkSession.sql("SELECT v FROM shredded WHERE id > 3"),
        "other columns": df.withColumn("x", F.to_json("v")),
    }
    assert {name: schemas(one) for name, one in changed.items()} == {name: {"v": A_INT} for name in changed}
    for renamed in (df.withColumnRenamed("v", "w"), df.select(F.col("v").alias("w"))):
        assert schemas(renamed) == {"w": A_INT}


def test_choice_is_lost_if_an_expression_creates_a_new_column(documents: Any) -> None:
    df = shred_variant(documents, {"v": "a INT"})
    changed = {
        "first": df.groupBy("id").agg(F.first("v").alias("v")),
        "coalesce": df.select(F.coalesce("v", "v").alias("v")),
        "when": df.withColumn("v", F.when(F.col("id") > 3, F.col("v"))),
        "array": df.select(F.array("v").alias("v")),
        "explode": df.select(F.explode(F.array("v")).alias("v")),
        "second of a union": documents.union(df),
    }
    assert {name: schemas(one) for name, one in changed.items()} == {name: {} for name in changed}


def test_struct_preserves_the_choices_of_its_fields(documents: Any, tmp_path: Path) -> None:
    df = shred_variant(documents, {"v": "a INT"}).select(F.struct("id", "v").alias("s"))
    assert schemas(df) == {"s.v": A_INT}
    assert schemas(df.select("s.v")) == {"v": A_INT}
    (file,) = save(df.coalesce(1), tmp_path / "out")
    assert stored(file, "s.v") == A_INT
    assert schemas(shred_variant(df, {"s.v": "b STRING"})) == {"s.v": "STRUCT<b: STRING>"}
    assert schemas(unshred_variant(df)) == {"s.v": "VARIANT"}


def test_several_and_nested_columns_are_shredded_by_their_own_choice(nested: Any, tmp_path: Path) -> None:
    chosen = {"s.w": "a INT", "s.x": "b STRING", "l.list.element": "c ARRAY<INT>", "m.key_value.value": "infer"}
    df = shred_variant(nested, chosen)
    expected = {"s.w": A_INT, "s.x": "STRUCT<b: STRING>", "l.list.element": "STRUCT<c: ARRAY<INT>>"}
    assert schemas(df) == {**expected, "m.key_value.value": "infer"}
    (file,) = save(df.coalesce(1), tmp_path / "out")
    inferred = {"m.key_value.value": "STRUCT<a: BIGINT, b: STRING, c: ARRAY<BIGINT>>"}
    assert {path: stored(file, path) for path in chosen} == {**expected, **inferred}
    text = "to_json(s) AS s", "transform(l, x -> to_json(x)) AS l", "to_json(m['k']) AS m"
    back = read(nested.sparkSession, str(tmp_path / "out")).selectExpr(*text)
    assert sorted(back.collect()) == sorted(nested.selectExpr(*text).collect())


def test_schemas_are_inferred_per_file_or_once_for_all(spark: Any, tmp_path: Path) -> None:
    rows = [(n, '{"a": 1}' if n < 10 else '{"b": "x"}') for n in range(20)]
    df = spark.createDataFrame(rows, "id int, text string").repartitionByRange(2, "id")
    df = df.select("id", F.parse_json("text").alias("v"))
    each = save(shred_variant(df, {"v": "infer"}), tmp_path / "each")
    assert [stored(file, "v") for file in each] == ["STRUCT<a: BIGINT>", "STRUCT<b: STRING>"]
    once = shred_variant(df, {"v": "infer"}, infer="once")
    assert schemas(once) == {"v": "STRUCT<a: BIGINT, b: STRING>"}
    for file in save(once, tmp_path / "once"):
        assert stored(file, "v") == "STRUCT<a: BIGINT, b: STRING>"


def test_full_first_row_group_is_sampled(spark: Any, tmp_path: Path) -> None:
    df = spark.range(0, 30_000, 1, 1).selectExpr("parse_json(if(id < 15000, '{\"a\": 1}', '{\"b\": 1}')) AS v")
    (file,) = save(shred_variant(df, {"v": "infer"}), tmp_path / "out")
    assert stored(file, "v") == "STRUCT<a: BIGINT, b: BIGINT>"
    (file,) = save(shred_variant(df, {"v": "infer"}), tmp_path / "small", row_group_rows="10000")
    assert stored(file, "v") == "STRUCT<a: BIGINT>"


def test_nested_schemas_are_inferred_once(nested: Any) -> None:
    paths = ["s.w", "s.x", "l.list.element", "m.key_value.value"]
    df = shred_variant(nested, {path: {"max_fields": 1} for path in paths}, infer="once")
    assert schemas(df) == dict.fromkeys(paths, "STRUCT<a: BIGINT>")


def test_last_choice_applies_and_the_option_overrides_it(documents: Any, tmp_path: Path) -> None:
    df = shred_variant(shred_variant(documents, {"v": "a INT"}), {"v": {"schema": "b STRING", "coerce": "exact"}})
    assert column_choices(df.schema)["v"].options() == {"schema": "STRUCT<b: STRING>", "coerce": "exact"}
    (file,) = save(df.coalesce(1), tmp_path / "out", shredding='{"v": "c ARRAY<INT>"}')
    assert stored(file, "v") == "STRUCT<c: ARRAY<INT>>"


def test_unshredding_removes_the_choice(documents: Any) -> None:
    df = shred_variant(documents.withColumn("v", F.col("v").alias("v", metadata={"note": "kept"})), {"v": "a INT"})
    assert unshred_variant(df).schema["v"].metadata == {"note": "kept"}
    assert schemas(unshred_variant(df, ["v"])) == {}


def test_names_may_contain_dots_and_backticks(documents: Any, tmp_path: Path) -> None:
    df = shred_variant(documents.select(F.col("v").alias("a.`b")), {"a.`b": "a INT"})
    assert schemas(df) == {"a.`b": A_INT}
    assert df.select(F.to_json("`a.``b`").alias("text")).first().text.startswith('{"a":0')
    save(df, tmp_path / "out")


def test_plan_describes_what_will_be_written(nested: Any, documents: Any) -> None:
    df = shred_variant(documents.withColumn("w", F.col("v")).withColumn("u", F.col("v")), {"v": "a INT", "w": "infer"})
    df = shred_variant(df.withColumn("t", F.col("v")), {"t": "b STRING"}, storage=True)
    plan = explain_write(df, compression="zstd", shredding={"w": "c INT"}, row_group_rows=10)
    assert str(plan) == (
        "a Parquet file for each task with rows, with the columns\n"
        "  id: int\n  v: variant\n  w: variant\n  u: variant\n  t: variant, shredded\n"
        "VARIANT\n"
        "  v: shredded as STRUCT<a: INT> (shred_variant)\n"
        "  w: shredded as STRUCT<c: INT> (option shredding)\n"
        "  u: not shredded\n"
        "  t: shredded as STRUCT<b: STRING> (a shredded struct)\n"
        "options\n  compression: zstd\n  profile: spark\n  row_group_rows: 10"
    )
    inferred = explain_write(shred_variant(nested, {"l.list.element": "infer"})).variants
    assert [(one.path, one.schema, one.origin) for one in inferred] == [
        ("s.w", None, None), ("s.x", None, None), ("l.list.element", "infer", "shred_variant"),
        ("m.key_value.value", None, None),
    ]  # fmt: skip
    assert "by a schema inferred from each file's first row group (shred_variant)" in str(inferred[2])
    with pytest.raises(ValueError, match="unknown option 'comression'; did you mean 'compression'"):
        explain_write(df, comression="zstd")
    with pytest.raises(ValueError, match="has column 'x', which the schema lacks"):
        explain_write(df, shredding={"x": "a INT"})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        (7, "is not a JSON object"),
        ({"$": "a INT"}, "is not a JSON object"),
        ('["$"]', "is not a JSON object"),
        ('{"v": "a INT"}', "is not a JSON object"),
        ('{"$": {"shema": "a INT"}}', "unknown shredding option"),
        ('{"$": {"schema": "a INTT"}}', "INTT"),
        ('{"$": 7}', "a shredding schema must be"),
        ('{"$.x": "a INT"}', "sets a shredding for 'v.x', which is not a VARIANT"),
    ],
)
def test_invalid_metadata_of_other_writers_names_its_column(documents: Any, value: Any, reason: str) -> None:
    df = documents.withColumn("v", F.col("v").alias("v", metadata={KEY: value}))
    with pytest.raises(VariantError, match="metadata 'pqext:shredding' of column 'v'") as error:
        explain_write(df)
    assert reason in str(error.value)
    assert len(str(error.value)) < 600
    assert schemas(shred_variant(df, {"v": "a INT"})) == {"v": A_INT}
    assert schemas(unshred_variant(df)) == {}


def test_save_with_invalid_metadata_starts_no_task(documents: Any, tmp_path: Path) -> None:
    df = documents.withColumn("v", F.col("v").alias("v", metadata={KEY: "{"}))
    with pytest.raises(AnalysisException, match="VariantError: the metadata 'pqext:shredding' of column 'v'"):
        save(df, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_invalid_choice_fails_on_the_driver(documents: Any, nested: Any) -> None:
    for schema, error in (({"v": "a INTT"}, ValueError), ({"v": 7}, TypeError), ({"v": {"coerce": "x"}}, ValueError)):
        with pytest.raises(error):
            shred_variant(documents, schema)
    with pytest.raises(ValueError, match="infer must be 'file' or 'once', not 'always'"):
        shred_variant(documents, {"v": "infer"}, infer="always")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"column 's' is struct<.*>, not VARIANT; its VARIANTs are s\.w, s\.x"):
        shred_variant(nested, {"s": "a INT"})
    with pytest.raises(ValueError, match=r"column 'l\.element'; the columns are s, l, m, s\.w, s\.x, l\.list\.element"):
        shred_variant(nested, {"l.element": "a INT"})
    with pytest.raises(ValueError, match="several columns are named 'id': drop or rename"):
        shred_variant(documents.join(documents.select("id"), F.lit(True)), {"v": "a INT"})
    with pytest.raises(ValueError, match=r"not 's\.w'; omit storage"):
        shred_variant(nested, {"s.w": "a INT"}, storage=True)


def test_save_with_a_missing_column_starts_no_task(documents: Any, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match="has column 'x', which the schema lacks"):
        save(documents, tmp_path / "out", shredding='{"x": "a INT"}')
    assert not (tmp_path / "out").exists()


def test_files_written_by_spark_preserve_the_choice(documents: Any, tmp_path: Path) -> None:
    shred_variant(documents, {"v": "a INT"}).write.parquet(str(tmp_path / "own"))
    assert schemas(documents.sparkSession.read.parquet(str(tmp_path / "own"))) == {"v": A_INT}


def test_sorted_save_with_an_inferred_schema_is_complete(spark: Any, tmp_path: Path) -> None:
    df = spark.range(100).selectExpr(
        "parse_json(concat('{\"a\": ', id, '}')) AS v",
        "st_setsrid(st_geomfromwkb(unhex('010100000000000000000000400000000000000040')), 4326) AS g",
    )
    order = json.dumps({"g": {"order": "hilbert"}})
    (file,) = save(shred_variant(df.coalesce(1), {"v": "infer"}), tmp_path / "out", geometry=order)
    assert stored(file, "v") == "STRUCT<a: BIGINT>"
    assert sorted(variant.get(pqext.read_table(file)["v"], "$.a", "int64").to_pylist()) == list(range(100))
