"""Functions on VARIANT columns, in each form that a column has, agree with Spark's own and with pqext's arrays."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import shapely
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.spark import functions as P
from pqext.spark import register, shred_variant
from pqext.spark.functions import variant_schemas, variant_values
from pqext.spark.functions.sql_names import register_functions
from pqext.spark.functions.variant_schemas import merge_schemas
from pqext.variant.types import variant_type

DOCUMENTS = [
    '{"a": 1, "b": "x"}', '{"b": "x", "a": 1.00}', "null", None, '{"a": null, "c": [1, null, {"d": null}]}', "[]",
    "[1, 2.5]", '["a", 1]', "12.50", "1e300", "true", '"text"', "{}", '{"a": {"b": [[], [1]]}, "odd name": 2}',
    "[1, 99999999999999999999]", '[{"a": 1}, {"b": 1.5}]', "[1, 1e300]", "0.0", "[0.010, 100.0]", "7",
]  # fmt: skip
UNKNOWN_TO_SPARK = {17: 8, 18: 8, 19: 8, 20: 16}
"""Bytes of the data of each type that Spark cannot decode."""


def of_all_types() -> pa.Array:
    """Documents, and a value of each type of the format that is not among them."""
    rows = variant.parse_json(pa.array(DOCUMENTS)).to_pylist()
    sizes = {5: 4, 7: 8, 8: 5, 9: 9, 10: 17, 11: 4, 12: 8, 13: 8, 14: 4, **UNKNOWN_TO_SPARK}
    rows += [{"metadata": b"\x01\x00\x00", "value": bytes([type << 2, *bytes(n - 1), 0])} for type, n in sizes.items()]
    rows += [{"metadata": b"\x01\x00\x00", "value": bytes([15 << 2, 2, 0, 0, 0, 7, 8])}]
    return pa.array(rows, variant_type())


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    """A column as a pair of bytes, as VARIANT and as a shredded struct."""
    array = of_all_types()
    table = pa.table(
        {"id": range(len(array)), "pair": array.cast(pa.struct([("metadata", pa.binary()), ("value", pa.binary())]))}
    )
    df = spark.createDataFrame(table).coalesce(1).select("id", "pair", P.variant_merge("pair", F.lit(None)).alias("v"))
    shredded = shred_variant(df.select("id", F.col("v").alias("s")), {"s": "STRUCT<a: INT, b: STRING>"}, storage=True)
    return df.join(shredded, "id").orderBy("id")


def function_calls(column: str) -> dict[str, Any]:
    """Every function of one column, as text or a plain value."""
    changes = {
        "set": P.variant_set(column, "$.z", {"deep": [1]}),
        "set_column": P.variant_set(column, "$.z", F.col("id")),
        "delete": P.variant_delete(column, "$.a", "$[0]"),
        "merge": P.variant_merge(column, {"a": None, "n": 1}),
        "strip": P.variant_strip_nulls(column),
        "strip_fields": P.variant_strip_nulls(column, include_arrays=False),
        "get": P.variant_get(column, "$.a"),
    }
    return {
        "json": P.to_json(column),
        "type": P.variant_type(column),
        "null": P.is_variant_null(column),
        "valid": P.is_valid_variant(column),
        "schema": P.schema_of_variant(column),
        "hash": P.variant_hash(column),
        "key": P.variant_key(column),
        "same": P.variant_equals(column, "pair"),
        **{name: P.to_json(change) for name, change in changes.items()},
    }


@pytest.mark.spec("spark.functions.forms", "spark.functions.equal")
def test_functions_match_the_array_functions_for_every_column_representation(frame: Any) -> None:
    columns = {f"{form}_{name}": column for form in ("pair", "v", "s") for name, column in function_calls(form).items()}
    found = frame.select(*(column.alias(name) for name, column in columns.items())).toArrow().to_pydict()
    array = of_all_types()
    canonical = variant.canonical(array)
    expected = {
        "json": variant.to_json(array),
        "null": pa.array([text == "null" for text in variant.to_json(array).to_pylist()]),
        "valid": pa.array([row.is_valid or None for row in array]),
        "hash": variant.hash(array).view(pa.int64()),
        "key": pa.array([row.as_py() and row["metadata"].as_py() + row["value"].as_py() for row in canonical]),
        "same": pa.array([row.is_valid or None for row in array]),
        "set": variant.to_json(variant.set(array, "$.z", {"deep": [1]})),
        "set_column": variant.to_json(variant.set(array, "$.z", pa.array(range(len(array))))),
        "delete": variant.to_json(variant.delete(variant.delete(array, "$.a"), "$[0]")),
        "merge": variant.to_json(variant.merge(array, {"a": None, "n": 1})),
        "strip": variant.to_json(variant.strip_nulls(array)),
        "strip_fields": variant.to_json(variant.strip_nulls(array, arrays=False)),
        "get": variant.to_json(variant.get(array, "$.a")),
    }
    for form in ("pair", "v", "s"):
        for name, values in expected.items():
            assert found[f"{form}_{name}"] == values.to_pylist(), (form, name)
    types = [text for text in found["v_type"] if text not in ("object", "array", None)]
    assert set(types) == {
        "null", "boolean", "int8", "int32", "double", "decimal4", "decimal8", "decimal16", "date", "timestamp",
        "timestamp_ntz", "float", "binary", "string", "time", "timestamp_nanos", "timestamp_ntz_nanos", "uuid",
    }  # fmt: skip
    assert found["v_schema"] == found["pair_schema"]
    assert found["s_type"][:3] == ["object", "object", "null"]
    assert found["v_schema"][-5:-1] == ["TIME(6)", "TIMESTAMP_NANOS", "TIMESTAMP_NTZ_NANOS", "UUID"]


@pytest.mark.spec("spark.functions.spark")
def test_spark_functions_return_equal_values(spark: Any) -> None:
    texts = [(text,) for text in DOCUMENTS if "e300" not in (text or "")]  # of which Spark writes another text
    df = spark.createDataFrame(texts, "text string").coalesce(1)
    df = df.select(F.parse_json("text").alias("v"), "text")
    broken = F.concat(F.lit("{"), "text")
    pairs = {
        "json": (P.to_json("v"), F.to_json("v")),
        "null": (P.is_variant_null("v"), F.is_variant_null("v")),
        "schema": (P.schema_of_variant("v"), F.schema_of_variant("v")),
        "parsed": (P.to_json(P.parse_json("text")), F.to_json("v")),
        "tried": (P.to_json(P.try_parse_json(broken)), F.to_json(F.try_parse_json(broken))),
    }
    if hasattr(F, "is_valid_variant"):  # of Spark 4.2
        pairs["valid"] = (P.is_valid_variant("v"), F.is_valid_variant("v"))
    if hasattr(F, "variant_strip_nulls"):  # of Spark 4.3
        pairs["strip"] = (P.to_json(P.variant_strip_nulls("v")), F.to_json(F.variant_strip_nulls("v")))
        pairs["fields"] = (P.to_json(P.variant_strip_nulls("v", False)), F.to_json(F.variant_strip_nulls("v", False)))
    found = df.select(*(c.alias(f"{name}{n}") for name, both in pairs.items() for n, c in enumerate(both))).toArrow()
    for name in pairs:
        assert found[f"{name}0"].to_pylist() == found[f"{name}1"].to_pylist(), name
    assert df.agg(P.schema_of_variant_agg("v")).first() == df.agg(F.schema_of_variant_agg("v")).first()


def test_invalid_bytes_are_not_a_valid_variant() -> None:
    pairs = pa.array(
        [{"metadata": b"\x01\x00\x00", "value": value} for value in (b"\x00", b"\xff", b"\x0c")], variant_type()
    )
    assert variant_values.IS_VALID_VARIANT.evaluate(pairs).to_pylist() == [True, False, False]


@pytest.mark.spec("spark.functions.schemas")
@pytest.mark.parametrize(
    ("one", "other", "both"),
    [("BIGINT", "VOID", "BIGINT"), ("BIGINT", "DOUBLE", "DOUBLE"), ("STRING", "BIGINT", "VARIANT"),
     ("DATE", "TIMESTAMP", "TIMESTAMP"), (("DECIMAL", 3, 1), "BIGINT", ("DECIMAL", 21, 1)),
     (("DECIMAL", 38, 37), "BIGINT", "DOUBLE"), (("DECIMAL", 3, 1), "DOUBLE", "DOUBLE"),
     (("ARRAY", "BIGINT"), ("ARRAY", "VOID"), ("ARRAY", "BIGINT")), (("ARRAY", "BIGINT"), "STRING", "VARIANT")],
)  # fmt: skip
def test_merged_schema_covers_both(one: Any, other: Any, both: Any) -> None:
    assert merge_schemas(one, other) == merge_schemas(other, one) == both


def test_schema_of_excessively_nested_values_is_rejected() -> None:
    deep = variant.parse_json(["[" * 900 + "]" * 900])
    with pytest.raises(variant_schemas.VariantLimitError, match="nested"):
        list(variant_schemas._iter_schemas(deep))


def test_schema_of_names_that_are_not_utf8_names_the_row() -> None:
    valid, (metadata, value) = (b"\1\0\0", b"\x0c\5"), (b"\1\1\0\1\xff", b"\2\1\0\0\2\x0c\5")
    rows = [{"metadata": valid[0], "value": valid[1]}, {"metadata": metadata, "value": value}]
    for schemas in (variant_schemas._format_schemas, variant_schemas.infer_common_schema):
        with pytest.raises(VariantError, match=r"^row 1: a dictionary string is not UTF-8") as error:
            schemas(pa.array(rows, pa.struct([("metadata", pa.binary()), ("value", pa.binary())])))
        assert error.value.row == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [(lambda: P.to_json("text"), "to_json takes VARIANT, or a struct of metadata and value, but text is string"),
     (lambda: P.parse_json("id"), "parse_json takes STRING or BINARY of UTF-8, but id is bigint"),
     (lambda: P.variant_get(F.struct("id"), "$.a"), "struct<id:bigint>"),
     (lambda: P.variant_set(F.lit(1), "$.a", 1), "is int: parse JSON text with parse_json")],
)  # fmt: skip
@pytest.mark.spec("spark.functions.types")
def test_wrong_types_are_named_during_query_analysis(spark: Any, make: Any, words: str) -> None:
    df = spark.range(1).select("id", F.lit("x").alias("text"))
    with pytest.raises(AnalysisException) as caught:
        df.select(make())
    assert words in str(caught.value)
    with pytest.raises(AnalysisException) as theirs:
        df.select(F.is_variant_null("text"))
    assert caught.value.getCondition() == theirs.value.getCondition() == "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"


@pytest.mark.spec("spark.functions.plans")
def test_plans_display_paths(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    df = spark.sql("""SELECT parse_json('{"a": [1]}') v""").repartition(1)
    df.select(P.variant_get("v", "$.a[0]", "int").alias("x"), P.try_variant_get("v", "$.b").alias("y")).explain()
    plan = capsys.readouterr().out
    assert "variant_get[$.a[0]](" in plan
    assert "try_variant_get[$.b](" in plan


def test_invalid_arguments_are_reported_immediately() -> None:
    with pytest.raises(TypeError, match=r"F\.col"):
        P.variant_merge("v", "p")
    with pytest.raises(ValueError, match="path"):
        P.variant_set("v", "a.b", 1)
    with pytest.raises(ValueError, match="root value"):
        P.variant_delete("v", "$")


def test_function_result_types_are_known_immediately(spark: Any) -> None:
    with pytest.raises(TypeError, match=r"st_area takes GEOMETRY.*variant_type"):
        P.st_area(P.variant_type("v"))


@pytest.fixture(scope="module")
def sql_functions() -> dict[str, Any]:
    """The functions that Spark calls for SQL, by name."""
    registered: dict[str, Any] = {}
    session = SimpleNamespace(udf=SimpleNamespace(register=lambda name, udf: registered.update({name: udf.func})))
    register_functions(session)  # type: ignore[arg-type]
    return registered


def test_aliases_have_sql_names(sql_functions: dict[str, Any]) -> None:
    python_only = {"st_intersects_box", "st_relates", "variant_explode", "variant_explode_outer"}
    assert set(sql_functions) == {f"pq_{name}" for name in {*P.__all__} - python_only}
    points = sql_functions["pq_st_geomfromtext"](pa.array(["POINT (1 2)"]))
    assert sql_functions["pq_st_astext"](points).to_pylist() == ["POINT (1 2)"]
    assert sql_functions["pq_st_asbinary"](points).to_pylist() == [shapely.Point(1, 2).wkb]


@pytest.mark.parametrize(
    ("name", "count", "takes"),
    [("st_point", 1, "2 or 3 arguments"), ("st_point", 4, "2 or 3 arguments"), ("st_area", 2, "1 argument"),
     ("st_transform", 1, "2 or 3 arguments"), ("st_intersects", 1, "2 arguments"), ("st_geohash", 1, "2 arguments"),
     ("variant_delete", 1, "2 or more arguments"), ("variant_merge", 1, "2 arguments"), ("st_astext", 0, "1 argument"),
     ("st_union_agg", 2, "1 argument")],
)  # fmt: skip
def test_sql_functions_state_how_many_arguments_they_take(
    sql_functions: dict[str, Any], name: str, count: int, takes: str
) -> None:
    with pytest.raises(TypeError, match=f"^pq_{name}: expected {takes}, not {count}$"):
        sql_functions[f"pq_{name}"](*[pa.array([1.0])] * count)


def test_merge_in_sql_applies_the_patch_of_each_row(sql_functions: dict[str, Any]) -> None:
    parse = sql_functions["pq_parse_json"]
    merged = sql_functions["pq_variant_merge"](parse(pa.array(['{"a":1,"b":2}'])), parse(pa.array(['{"a":null}'])))
    assert sql_functions["pq_to_json"](merged).to_pylist() == ['{"b":2}']


@pytest.mark.slow
def test_functions_have_sql_names(spark: Any) -> None:
    register(spark)
    spark.range(1).select(P.parse_json(F.lit(json.dumps({"a": [1, None]}))).alias("v")).createOrReplaceTempView(
        "variants"
    )
    row = spark.sql(
        "SELECT pq_to_json(pq_variant_get(v, '$.a')) AS a, pq_to_json(pq_variant_set(v, '$.b', 'x')) AS b,"
        " pq_to_json(pq_variant_strip_nulls(v)) AS c, pq_variant_type(v) AS d, "
        " pq_to_json(pq_variant_delete(v, '$.a')) AS e, pq_st_geohash(pq_st_buffer(pq_st_point(1.0, 2.0), 1), 4) AS f,"
        " pq_st_within(pq_st_point(1, 2), pq_st_point(1, 2)) AS g,"
        " pq_st_aswkt(pq_st_transform(pq_st_geomfromwkt('POINT (0 0)'), 3857)) AS h FROM variants"
    ).first()
    assert tuple(row) == (
        "[1,null]", '{"a":[1,null],"b":"x"}', '{"a":[1]}', "object", "{}", "s02e", True, "POINT (0 0)",
    )  # fmt: skip


@pytest.mark.spec("spark.functions.forms")
def test_schema_of_a_variant_without_value_is_null() -> None:
    pair = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    rows = [{"metadata": b"\x01\x00\x00", "value": value} for value in (None, b"\x0c\x01")]
    array = pa.array([*rows, {"metadata": None, "value": None}, None], pair)
    assert variant_schemas.SCHEMA_OF_VARIANT.evaluate(array).to_pylist() == [None, "BIGINT", None, None]
    assert variant_schemas.infer_common_schema(array) == "BIGINT"
    invalid = pa.array([*rows, {"metadata": None, "value": b"\x0c\x01"}], pair)
    with pytest.raises(VariantError, match="row 2: the variant has no metadata"):
        variant_schemas.infer_common_schema(invalid)
