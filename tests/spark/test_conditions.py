"""Conditions on shredded structs carry guards that Spark pushes down, and stay exact."""

from __future__ import annotations

import datetime
import json
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext import col
from pqext import variant as variants
from pqext.spark import functions, variant, where
from pqext.spark.base.types import create_marked_struct

ROWS = 2000
GROUP = 100


def document(row: int) -> dict[str, Any]:
    """Magnitudes grow with the rows; some stand in the residual: null, text, too fine for the leaf."""
    magnitude: Any = row / 100
    if row % 50 == 7:
        magnitude = None
    if row == 1234:
        magnitude = "15.5"
    if row == 321:
        magnitude = 15.125
    rest: dict[str, Any] = {"name": f"n{row:05}"} if row % 3 else {}
    return {"p": {"mag": magnitude, **rest}, "other": row}


@pytest.fixture(scope="module")
def shredded(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A plain struct column in a Parquet file of pyarrow's, under the mark that Spark keeps."""
    texts = pa.array([json.dumps(document(row)) for row in range(ROWS)])
    array = variants.shred(variants.parse_json(texts), "p STRUCT<mag: DECIMAL(9,2), name: STRING>")
    path = tmp_path_factory.mktemp("shredded") / "file.parquet"
    pq.write_table(pa.table({"id": pa.array(range(ROWS)), "v": array}), path, row_group_size=GROUP)
    schema = T.StructType([T.StructField("id", T.LongType()), T.StructField("v", create_marked_struct(array.type))])
    return spark.read.schema(schema).parquet(str(path))


def matching_ids(df: Any) -> tuple[list[int], int]:
    """The ids of the rows, and how many rows Spark's own Parquet scan has read for them, by its metrics."""
    chosen = df.select("id")
    ids = sorted(row.id for row in chosen.collect())
    leaves = chosen._jdf.queryExecution().executedPlan().collectLeaves()
    counts = []
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        inner = leaf.executedPlan().collectLeaves() if leaf.nodeName() == "AdaptiveSparkPlan" else None
        node = inner.apply(0) if inner is not None else leaf
        counts.append(node.metrics().apply("numOutputRows").value())
    return ids, int(sum(counts))


def expected(condition: Any) -> list[int]:
    return [row for row in range(ROWS) if condition(number(document(row)["p"]["mag"]), document(row))]


def number(value: Any) -> float | None:
    return None if value is None else float(value)


def test_comparison_reads_leaf_and_residual_of_some_row_groups(shredded: Any) -> None:
    df = shredded.where(variant(shredded, "v").get("$.p.mag", "double") >= 15)
    ids, scanned = matching_ids(df)
    assert ids == [row.id for row in df.orderBy("id").collect()] == expected(lambda m, _: m is not None and m >= 15)
    # Rows of 15 and more, and the two groups in which a residual is not JSON null.
    assert 0 < scanned <= 500 + 2 * GROUP


@pytest.mark.parametrize(
    ("build", "exact", "most"),
    [
        (lambda v: (v >= 3) & (v < 3.5), lambda m, _: m is not None and 3 <= m < 3.5, 100 + 2 * GROUP),
        (lambda v: (v < 0.5) | (v > 19.5), lambda m, _: m is not None and (m < 0.5 or m > 19.5), 200 + 2 * GROUP),
        (lambda v: ~(v < 19), lambda m, _: m is not None and m >= 19, 100 + 2 * GROUP),
        (lambda v: v.isin(15.5, 1.0), lambda m, _: m in (15.5, 1.0), 200 + 2 * GROUP),
        (lambda v: v.between(7, 7.5), lambda m, _: m is not None and 7 <= m <= 7.5, 100 + 2 * GROUP),
        (lambda v: v == 15.125, lambda m, _: m == 15.125, 2 * GROUP),
        (lambda v: ~(~(v == 4) | (v > 100)), lambda m, _: m == 4, 100 + 2 * GROUP),
        (lambda v: v.isNull(), lambda m, _: m is None, ROWS),
        (lambda v: v != 5, lambda m, _: m is not None and m != 5, ROWS),
    ],
)
def test_compound_comparisons_share_one_guard(shredded: Any, build: Any, exact: Any, most: int) -> None:
    df = shredded.where(build(variant(shredded, "v").get("$.p.mag", "double")))
    ids, scanned = matching_ids(df)
    assert ids == expected(exact)
    assert 0 < scanned <= most


MAG = col("v").variant("$.p.mag", "double")
NAME = col("v").variant("$.p.name", "string")


@pytest.mark.parametrize(
    ("expression", "exact", "most"),
    [
        ((MAG >= 19.5) | (NAME == "n00010"), lambda m, d: (m or 0) >= 19.5 or d["p"].get("name") == "n00010", 400),
        ((MAG >= 19.5) & (NAME > "n"), lambda m, d: m is not None and m >= 19.5 and "name" in d["p"], 300),
        ((MAG >= 19.5) | (col("id") == 3), lambda m, d: (m or 0) >= 19.5 or d["other"] == 3, 400),
        (~((MAG < 19.5) | MAG.is_null()), lambda m, _: m is not None and m >= 19.5, 300),
        (MAG.isin([1.0, 2.0]) & ~(col("id") > 150), lambda m, d: m in (1.0, 2.0) and d["other"] <= 150, 400),
        (col("v").variant("$.other", "int64") == 77, lambda _, d: d["other"] == 77, ROWS),
    ],
)
def test_expressions_match_conditions_on_a_data_frame(shredded: Any, expression: Any, exact: Any, most: int) -> None:
    df = where(shredded, expression)
    ids, scanned = matching_ids(df)
    assert ids == expected(exact)
    assert 0 < scanned <= most


def test_nested_path_and_full_value_are_returned(shredded: Any) -> None:
    bound = variant(shredded, "v")
    row = (
        shredded.where("id = 1")
        .select(
            bound.get("$.other", "int").alias("other"),
            bound.get("$.p", "string").alias("p"),
            bound.get("$.p.name", "string").alias("name"),
            bound.get("$.p.nothing", "string").alias("nothing"),
            bound.get("$.p.name.deeper", "string").alias("deeper"),
        )
        .collect()[0]
    )
    assert (row.other, row.name, row.nothing, row.deeper) == (1, "n00001", None, None)
    assert json.loads(row.p) == {"mag": 0.01, "name": "n00001"}


def test_variant_value_is_an_ordinary_column(shredded: Any) -> None:
    value = variant(shredded, "v").get("$.p.mag", "double")
    row = (
        shredded.where("id = 250").select(value.alias("x"), (value + 1).alias("y"), (value > 2).alias("z")).collect()[0]
    )
    assert (row.x, row.y, row.z) == (2.5, 3.5, True)


def test_unshredded_variant_column_uses_the_spark_function(spark: Any) -> None:
    df = spark.sql("""SELECT parse_json('{"a": {"x\\'y": 1, "b": 2}}') AS v""")
    assert df.where(variant(df, "v").get("$.a.b", "int") == 2).count() == 1
    assert df.where(variant(df, "v").get(("a", "x'y"), "int") == 1).count() == 1


def test_names_with_any_letters_are_found_in_a_variant_column(spark: Any) -> None:
    names = [
        "x'y", 'x"y', "it's \"so\"", "a.b", "a?b", "a.b?", " a", "a ", "\ta", "", "$", "*", "[0]", "a]b", "a[b", "a\\b",
        "a\\'b", "'", '"', "\n", "é", "a.'\"", "['x']",
    ]  # fmt: skip
    document = {"o": {name: number for number, name in enumerate(names)}, "l": [[7]]}
    df = spark.createDataFrame([(json.dumps(document),)], "text string").selectExpr("parse_json(text) AS v")
    values = [variant(df, "v").get(("o", name), "int").alias(f"c{i}") for i, name in enumerate(names)]
    assert list(df.select(*values).collect()[0]) == list(range(len(names)))
    far = variant(df, "v").get(("l", 2**32 - 1), "int"), variant(df, "v").get(("l", 0, 0), "int")
    assert list(df.select(*far).collect()[0]) == [None, 7]


def test_literals_of_every_type_compare_with_plain_columns(spark: Any) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        df = spark.sql("""SELECT 1 AS id, TIMESTAMP_NTZ'2024-02-29 12:00:00' AS wall, DATE'2024-02-29' AS day,
                          1.5BD AS x, TIMESTAMP'2024-02-29 12:00:00Z' AS instant, 'ü' AS text,
                          X'00' AS bytes, true AS flag""")
        noon = datetime.datetime(2024, 2, 29, 12)
        truths = [
            col("wall") == noon,
            col("instant") == noon.replace(tzinfo=datetime.UTC),
            col("day") <= datetime.date(2024, 2, 29),
            (col("x") > 1) & (col("x") == Decimal("1.5")) & ~(col("x") != 1.5),
            col("text").isin(["u", "ü"]) & (col("bytes") >= b"\x00") & (col("flag") == True),  # noqa: E712
            col("id") < 2**70,
        ]
        for truth in truths:
            assert where(df, truth).count() == 1, truth
            assert where(df, ~truth).count() == 0, truth
        assert where(df, None).count() == 1
        nulls = spark.sql("SELECT CAST(NULL AS BIGINT) AS n")
        assert where(nulls, (col("n") < 2**70) | (col("n") > 2**70)).count() == 0
        with pytest.raises(TypeError, match="column 'bytes' contains binary values, which cannot be compared with"):
            where(df, col("bytes") == uuid.UUID(int=1))
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


def test_missing_and_non_variant_columns_are_named(shredded: Any) -> None:
    with pytest.raises(ValueError, match="no column 'w'; the columns are id, v"):
        variant(shredded, "w")
    with pytest.raises(TypeError, match="'id' is bigint"):
        variant(shredded, "id").get("$.a", "int")
    with pytest.raises(ValueError, match="no column 'w'"):
        where(shredded, col("w") == 1)


@pytest.mark.slow
def test_boxes_across_the_antimeridian_are_evaluated_exactly(spark: Any) -> None:
    points = spark.createDataFrame(
        [(0, 179.0, 0.0), (1, -179.0, 0.0), (2, 0.0, 0.0), (3, None, 0.0)], "id int, x double, y double"
    )
    df = points.select(
        "id", functions.st_point("x", "y").alias("g"), functions.st_hilbert(functions.st_point("x", "y")).alias("h")
    )
    assert df.schema["g"].dataType == T.GeometryType(4326)
    found = df.select("id", functions.st_intersects_box("g", 170, -1, -170, 1).alias("hit"), "h").collect()
    assert {row.id: row.hit for row in found} == {0: True, 1: True, 2: False, 3: None}
    assert [row.h is None for row in sorted(found)] == [False, False, False, True]
    assert sorted(row.id for row in where(df, col("g").intersects((170, -1, -170, 1))).collect()) == [0, 1]
    assert [row.id for row in where(df, col("g").disjoint((170, -1, -170, 1))).collect()] == [2]
    assert [row.id for row in where(df, col("g").dwithin(shapely.Point(0, 3), 4)).collect()] == [2]
    assert [row.id for row in where(df, ~col("g").touches((0, -1, 180, 1))).collect()] == [0, 1]


def test_geography_edges_are_followed(spark: Any) -> None:
    arc = shapely.to_wkb(shapely.LineString([(0, 60), (90, 60)]))
    df = spark.createDataFrame([(bytearray(arc),)], "w binary").select(F.expr("st_geogfromwkb(w)").alias("g"))
    assert where(df, col("g").intersects((40, 65, 50, 70))).count() == 1
    assert where(df, col("g").intersects((40, 59, 50, 61))).count() == 0
    assert where(df, col("g").dwithin(shapely.Point(45, 68), 30_000)).count() == 1
