"""Shredding inside Spark: by a schema of the user's choice, and back."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.spark import functions, read_json, shred_variant, unshred_variant
from pqext.spark.base.types import is_marked_struct

DOCUMENTS = [
    '{"mag": 2, "place": "here", "rest": [1, {"a": null}]}',
    '{"mag": 2.125, "place": null}',
    '{"mag": "two"}',
    "[1, 2]",
    "null",
    None,
]


@pytest.fixture
def documents(spark: Any) -> Any:
    df = spark.createDataFrame(list(enumerate(DOCUMENTS)), "id int, text string")
    return df.select("id", F.parse_json("text").alias("v"))


@pytest.mark.parametrize(
    "schema",
    [
        "mag DECIMAL(9,2), place STRING",
        T.StructType([T.StructField("mag", T.DecimalType(9, 2)), T.StructField("place", T.StringType())]),
        pa.struct([("mag", pa.decimal128(9, 2)), ("place", pa.string())]),
    ],
    ids=["ddl", "spark", "arrow"],
)
def test_column_is_shredded_by_a_schema_of_any_form(documents: Any, schema: Any) -> None:
    df = shred_variant(documents, {"v": schema}, storage=True)
    assert is_marked_struct(df.schema["v"].dataType)
    rows = {row.id: row.v for row in df.collect()}
    assert rows[0].typed_value.mag.typed_value == Decimal("2.00")
    assert rows[0].typed_value.place.typed_value == "here"
    assert rows[0].value is not None
    assert rows[1].typed_value.mag.typed_value is None
    assert rows[1].typed_value.mag.value is not None
    assert rows[3].typed_value is None
    assert rows[4].value == b"\x00"
    assert rows[5] is None


def test_unshredded_column_is_unchanged(documents: Any) -> None:
    text = F.to_json("v").alias("text")
    back = unshred_variant(shred_variant(documents, {"v": "mag DECIMAL(9,2), place STRING"}, storage=True))
    assert back.schema["v"].dataType == T.VariantType()
    before, after = ({row.id: row.text for row in df.select("id", text).collect()} for df in (documents, back))
    assert after == before


def test_schema_is_inferred_from_the_data(spark: Any, events_file: Path) -> None:
    df = shred_variant(read_json(spark, str(events_file), column="event"), {"event": "infer"}, storage=True)
    properties = df.schema["event"].dataType["typed_value"].dataType["properties"].dataType["typed_value"].dataType
    assert {"mag", "place", "time"} <= set(properties.names)


def test_mark_survives_spark_operations_on_columns(documents: Any) -> None:
    df = shred_variant(documents, {"v": "mag DOUBLE"}, storage=True)
    changed = df.union(df).select(F.coalesce("v", "v").alias("w"), F.array("v").alias("list"))
    assert is_marked_struct(changed.schema["w"].dataType)
    assert is_marked_struct(changed.select(F.explode("list")).schema["col"].dataType)


def test_value_that_cannot_be_shredded_is_named(documents: Any) -> None:
    with pytest.raises(ValueError, match="no column 'w'; the columns are id, v"):
        shred_variant(documents, {"w": "a INT"})
    with pytest.raises(TypeError, match=r"must map columns to schemas, as in \{'column': ...\}, not a str"):
        shred_variant(documents, "infer")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'id' is int, not VARIANT"):
        shred_variant(documents, {"id": "a INT"})
    with pytest.raises(ValueError, match="no column 'w'"):
        unshred_variant(documents, ["w"])
    with pytest.raises(ValueError, match="Spark has no type for shredded field 'a'"):
        shred_variant(documents, {"v": "a UUID"}, storage=True)


@pytest.mark.parametrize("shredded", [False, True], ids=["variant", "shredded"])
@pytest.mark.parametrize(
    ("path", "type"),
    [("$.mag", "double"), ("$.mag", "string"), ("$.rest[0]", "int"), ("$[1]", "bigint"), ("$", "string")],
)
def test_try_variant_get_is_the_spark_function(documents: Any, shredded: bool, path: str, type: str) -> None:
    expected = documents.select("id", F.try_variant_get("v", path, type).alias("x"))
    df = shred_variant(documents, {"v": "mag DECIMAL(9,2), place STRING"}, storage=True) if shredded else documents
    found = df.select("id", functions.try_variant_get("v", path, type).alias("x"))
    if path == "$" and shredded:  # a number comes back as the leaf's type, 2 as 2.00
        found, expected = (df.where("id > 0") for df in (found, expected))
    assert dict(found.collect()) == dict(expected.collect())


def test_part_of_a_variant_is_a_variant(documents: Any) -> None:
    df = documents.where("id = 0").select(functions.variant_get("v", "$.rest[1]").alias("x"))
    assert df.schema["x"].dataType == T.VariantType()
    assert df.select(F.to_json("x")).collect()[0][0] == '{"a":null}'
