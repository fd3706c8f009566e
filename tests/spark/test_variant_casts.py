"""Casts are Spark's: each value in each type, whether it casts, and what becomes of it where it does not.

What differs is listed here, and with its reason in the ledger ("Casts" in specs/variant-paths-and-casts.md).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")

from pyspark.sql import functions as F
from spark.sessions import SPARK_4_1

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.spark import functions, shred_variant
from pqext.spark.base.types import parse_type, to_exchange_type
from pqext.spark.functions.udf import arrow_udf
from pqext.variant.access.path import as_path
from pqext.variant.types import variant_type
from reference.variant_casts import METADATA, TEXTS, TYPES, VALUES, WITH_VARIANTS

KEYS = list(VALUES)
ARRAY = pa.array([{"metadata": METADATA, "value": value} for value in VALUES.values()], variant_type())

# casts.decimal-to-integer: Spark goes through a double. casts.saturation: it takes 2**63 for 2**63 - 1.
EXACT = {("decimal16 99999999999999999999999999999999999999e-38", type) for type in ("tinyint", "smallint", "int")}
SATURATED = {("double 9.223372036854776e+18", "bigint"), ("double 9223372036854.775", "timestamp")}
# casts.digits: Java takes the digits of all scripts in a decimal.
DIGITS = {
    ("string '１２'", type)
    for type in TYPES
    if type.startswith("decimal") and type not in ("decimal(2,2)", "decimal(38,38)")
}
# casts.binary-text: Spark makes a string of any bytes.
BYTES = {("binary b'\\xff'", "string")}
# casts.zones and casts.today: the answer would depend on the machine's time zones, or on the day.
ZONES = {
    (f"string '2024-01-01T01:02:03 {zone}'", type)
    for zone in ("Europe/Paris", "PST")
    for type in ("timestamp", "timestamp_ntz")
}
CLOCKS = ("01:02:03", "T01:02:03", "12:34:56.5", "12:34", "12:34:56.1234567", "12:34:56.", "12:34:56Z")
TODAY = {(f"string {text!r}", "timestamp") for text in CLOCKS}
DIFFERENT = EXACT | SATURATED | DIGITS | BYTES | ZONES | TODAY
# casts.java-text: Java before 19 writes some doubles with more digits than they need.
BY_VERSION = {
    (f"double {number}", type)
    for number in ("1e+23", "9.223372036854775e+18", "1.152921504606847e+18")
    for type in ("string", "decimal(38,0)")
}
# casts.json-text: the numbers within are spelled as to_json spells them.
BY_VERSION.add(("[mixed]", "string"))


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    """The values as VARIANT, in the order of KEYS."""

    def join(metadata: pa.Array, value: pa.Array) -> pa.Array:
        mark = {"variant": "true"}
        fields = [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, mark)]
        return pa.StructArray.from_arrays([value, metadata], fields=fields)

    table = pa.table(
        {
            "id": pa.array(range(len(VALUES)), pa.int32()),
            "metadata": pa.array([METADATA] * len(VALUES), pa.binary()),
            "value": pa.array(list(VALUES.values()), pa.binary()),
        }
    )
    made = arrow_udf(join, parse_type("variant"), "join")("metadata", "value")
    df = spark.createDataFrame(table).select("id", made.alias("v")).coalesce(1).cache()
    df.count()
    return df


def column(table: pa.Table, name: str) -> pa.Array:
    return table.column(name).combine_chunks()


def texts(array: pa.Array) -> list[str]:
    """Values as texts that tell all of them apart: NaN is itself, and timestamps of any year are numbers."""
    if pa.types.is_string(array.type):
        array = array.cast(pa.binary())  # Spark's strings may be no UTF-8
    if pa.types.is_temporal(array.type):
        array = array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return list(map(repr, array.to_pylist()))


def pqext_result(type: str) -> pa.Array:
    """The result of ``try_variant_get``'s counterpart, in the Arrow type that Spark has for it."""
    result = variant.get(ARRAY, "$", type)
    wanted = to_exchange_type(parse_type(type))
    return result if pa.types.is_nested(wanted) else result.cast(wanted)


def fails(position: int, type: str) -> bool:
    try:
        variant.get(ARRAY.slice(position, 1), "$", type, strict=True)
    except VariantError:
        return True
    return False


@pytest.mark.spec("casts.spark", "casts.null")
def test_try_variant_get_matches_spark(frame: Any) -> None:
    columns = [F.try_variant_get("v", "$", type).alias(type) for type in TYPES]
    found = frame.select("id", *columns).orderBy("id").toArrow()
    differing = {
        (key, type)
        for type in TYPES
        for key, mine, theirs in zip(KEYS, texts(pqext_result(type)), texts(column(found, type)), strict=True)
        if mine != theirs
    }
    if SPARK_4_1:  # where no timestamp has a time of day, and one in text keeps its digits whatever the precision
        differing = {(key, type) for key, type in differing if not (key.startswith("timestamp") and "time(" in type)}
        differing -= {(f"string '12:34:56.{digits}'", f"time({p})") for digits in ("5", "1234567") for p in (0, 3)}
    assert differing - BY_VERSION == DIFFERENT


@pytest.mark.spec("casts.variant-null", "casts.nested")
def test_nested_variants_match_spark(frame: Any) -> None:
    wrapped = [F.to_json(F.struct(F.try_variant_get("v", "$", type).alias("x"))).alias(type) for type in WITH_VARIANTS]
    found = frame.select("id", *wrapped).orderBy("id").toArrow()
    for type in WITH_VARIANTS:
        result = variant.get(ARRAY, "$", type)
        for key, row, theirs in zip(KEYS, result, column(found, type).to_pylist(), strict=True):
            if not key.startswith(("double", "float", "decimal", "timestamp", "string", "[mixed")):
                assert _json(row) == theirs[len('{"x":') : -1] if row.is_valid else theirs == "{}", (key, type)


def _json(row: pa.Scalar) -> str:
    if row.type == variant_type():
        return variant.Variant(row["value"].as_py(), row["metadata"].as_py()).to_json()
    if pa.types.is_list(row.type):
        return "[" + ",".join(map(_json, row.values)) + "]"
    if pa.types.is_map(row.type):
        items = zip(row.values.field(0).to_pylist(), row.values.field(1), strict=True)
    else:
        items = ((field.name, row[field.name]) for field in row.type)
    return "{" + ",".join(f'"{name}":{_json(item)}' for name, item in items if item.is_valid) + "}"


@pytest.mark.slow
@pytest.mark.spec("casts.strict")
def test_variant_get_fails_like_in_spark(frame: Any) -> None:
    """Whatever we cast must pass Spark's function as well; of what we refuse, some values are tried there."""
    passing = {type: [i for i in range(len(KEYS)) if not fails(i, type)] for type in TYPES}
    columns = [
        F.when(F.col("id").isin(rows), F.variant_get("v", "$", type)).alias(type) for type, rows in passing.items()
    ]
    found = frame.select("id", *columns).orderBy("id").toArrow()
    for type, rows in passing.items():
        mine, theirs = texts(pqext_result(type)), texts(column(found, type))
        for i in rows:
            assert mine[i] == theirs[i] or (KEYS[i], type) in DIFFERENT | BY_VERSION
    for number, (type, rows) in list(enumerate(passing.items()))[::3]:
        refused = [i for i in range(len(KEYS)) if i not in set(rows) and (KEYS[i], type) not in DIFFERENT]
        if not refused:
            assert type == "string"
            continue
        row = refused[number * 37 % len(refused)]
        with pytest.raises(Exception, match="INVALID_VARIANT_CAST"):
            frame.where(F.col("id") == row).select(F.variant_get("v", "$", type)).collect()


@pytest.mark.parametrize("shredded", [False, True], ids=["variant", "shredded"])
def test_data_frame_functions_are_those_of_spark(frame: Any, shredded: bool) -> None:
    df = shred_variant(frame, {"v": "a INT, b STRING"}, storage=True) if shredded else frame
    kept = [i for i, key in enumerate(KEYS) if key[0] in "[{" and key != "[mixed]"]
    types = ["string", "array<int>", "struct<a:int,b:string>", "map<string,array<int>>", "struct<a:string,c:boolean>"]
    mine = [functions.try_variant_get("v", "$", type).alias(type) for type in types]
    theirs = [F.try_variant_get("v", "$", type).alias(type) for type in types]
    chosen = F.col("id").isin(kept)
    found = df.where(chosen).select("id", *mine).orderBy("id").toArrow()
    assert found.equals(frame.where(chosen).select("id", *theirs).orderBy("id").toArrow())
    variants = df.where(F.col("id") == KEYS.index("[1, null]")).select(
        F.transform(functions.try_variant_get("v", "$", "array<variant>"), lambda v: F.to_json(v)).alias("x")
    )
    assert variants.collect()[0].x == ["1", "null"]


def test_variant_get_fails_the_query_if_a_value_cannot_be_cast(frame: Any) -> None:
    df = frame.where(F.col("id") == KEYS.index("[1, 'x']"))
    assert df.select(functions.variant_get("v", "$[0]", "int").alias("x")).collect()[0].x == 1
    assert df.select(functions.try_variant_get("v", "$[1]", "int").alias("x")).collect()[0].x is None
    with pytest.raises(Exception, match=r'the value "x" at \$\[1\] does not cast to INT;'):
        df.select(functions.variant_get("v", "$[1]", "int")).collect()
    for wrong in ("interval day", "map<int,int>", "nonsense"):
        with pytest.raises(ValueError, match=r"type|keys|INTERVAL"):
            functions.variant_get("v", "$", wrong)


@pytest.mark.spec("explode.rows", "explode.outer", "explode.order")
def test_explode_matches_spark_variant_explode(frame: Any, spark: Any) -> None:
    frame.createOrReplaceTempView("casts")
    for outer in (False, True):
        name = "variant_explode_outer" if outer else "variant_explode"
        query = f"SELECT id, pos, key, to_json(value) AS value FROM casts, LATERAL {name}(v) ORDER BY id, pos"
        theirs = [tuple(row) for row in spark.sql(query).collect() if KEYS[row.id] != "[mixed]"]
        table = variant.explode(ARRAY, outer=outer)
        values = variant.to_json(column(table, "value")).to_pylist()
        rows = zip(*(table.column(name).to_pylist() for name in ("row", "pos", "key")), values, strict=True)
        assert [row for row in rows if KEYS[row[0]] != "[mixed]"] == theirs
        helper = functions.variant_explode_outer if outer else functions.variant_explode
        exploded = frame.select("id", helper("v")).select("id", "pos", "key", F.to_json("value").alias("value"))
        found = exploded.orderBy("id", "pos").collect()
        assert [tuple(row) for row in found if KEYS[row.id] != "[mixed]"] == theirs


@pytest.mark.spec("path.spark")
def test_paths_resolve_like_in_spark(frame: Any) -> None:
    paths = ["$", "$.a", "$['a']", '$["x.y"]', "$[1]", "$[00]", "$.a.a", "$.a[1]", "$['']", "$.x y", "$.é", "$.a]"]
    by_spark = [F.try_variant_get("v", path, "string").alias(str(at)) for at, path in enumerate(paths)]
    found = frame.select("id", *by_spark).orderBy("id").toArrow()
    for at, path in enumerate(paths):
        mine = variant.get(ARRAY, path, "string")
        for key, ours_, theirs in zip(KEYS, texts(mine), texts(column(found, str(at))), strict=True):
            assert ours_ == theirs or (key, "string") in DIFFERENT | BY_VERSION, path


@pytest.mark.parametrize("path", ["a", "$a", "$.", "$..a", "$[-1]", "$[ 1 ]", "$[*]", "$[a]", "$['a'", " $", "$.a[0] "])
@pytest.mark.spec("path.refused")
def test_paths_rejected_by_spark_are_invalid(frame: Any, path: str) -> None:
    with pytest.raises(Exception, match="INVALID_VARIANT_GET_PATH"):
        frame.select(F.try_variant_get("v", path, "string")).collect()
    with pytest.raises(ValueError, match="path"):
        as_path(path)


def test_star_is_a_wildcard_but_a_name_in_spark() -> None:
    with pytest.raises(ValueError, match=r"use variant.explode; a field of that name is \['\*'\]"):
        as_path("$.*")


def test_grid_texts_are_unique() -> None:
    assert len(set(TEXTS)) == len(TEXTS)
