"""Spark's own reader takes the files that pqext shreds, and pqext those that Spark shreds: the same values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import variant
from pqext.spark import shred_variant
from pqext.variant.shredding.schema import schema_of_storage
from reference import variant_shred as reference

prim = reference.primitive
DOCUMENTS: list[Any] = [
    {"id": n, "mag": [n / 4 + 0.1, None, "none"][n % 3], "place": {"name": "é" * n, "tags": ["a", n, None, {"x": n}]}}
    for n in range(30)
] + [[1, {"id": 2}], "text", {}, [], {"place": None}, {"place": {"tags": {}}}, 7, None]
OBJECTS = DOCUMENTS[:30]
"""Those that Spark's inference shreds: a column whose values have no type in common it leaves whole."""
SCHEMAS = [
    {"schema": "id BIGINT, mag DOUBLE, place STRUCT<name: STRING, tags: ARRAY<STRING>>"},
    {"schema": "id BIGINT, mag DOUBLE", "coerce": "json"},
    {"schema": "id SMALLINT, place STRUCT<tags: ARRAY<STRUCT<x: BIGINT>>>", "coerce": "exact"},
    {"schema": "ARRAY<STRUCT<id: DECIMAL(9,2)>>"},
    {"schema": "infer"},
]
TYPES = {
    "BOOLEAN": (prim("true"), "true"), "TINYINT": (prim("int8", -5), "-5"), "SMALLINT": (prim("int16", 300), "300"),
    "INT": (prim("int32", 70_000), "70000"), "BIGINT": (prim("int64", 2**40), "1099511627776"),
    "FLOAT": (prim("float", 1.5), "1.5"), "DOUBLE": (prim("double", 0.1), "0.1"),
    "DECIMAL(9,2)": (prim("decimal4", (12345, 2)), "123.45"),
    "DECIMAL(18,4)": (prim("decimal8", (10**15 + 1, 4)), "100000000000.0001"),
    "DECIMAL(38,10)": (prim("decimal16", (10**30 + 1, 10)), "100000000000000000000.0000000001"),
    "DATE": (prim("date", 19_000), "2022-01-08"), "TIMESTAMP": (prim("timestamp", 10**15), "2001-09-09 01:46:40"),
    "TIMESTAMP_NTZ": (prim("timestamp_ntz", 10**15), "2001-09-09 01:46:40"),
    "BINARY": (prim("binary", b"ab"), "ab"), "STRING": (prim("string", "é" * 40), "é" * 40),
}  # fmt: skip
FIELDS = [f"f{i:02}" for i in range(len(TYPES))]


def write(path: Path, array: pa.Array, **options: Any) -> Path:
    pqext.write_table(pa.Table.from_arrays([array], schema=pa.schema([variant.variant_field("v")])), path, **options)
    return path


def documents() -> pa.Array:
    return variant.parse_json(pa.array(list(map(json.dumps, DOCUMENTS))))


@pytest.mark.parametrize("shredding", SCHEMAS, ids=str)
def test_spark_reads_equal_documents_from_every_shredding(spark: Any, shredding: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "v.parquet", documents(), shredding={"v": shredding})
    rows = (
        spark.read.parquet(str(path)).selectExpr("to_json(v) AS text", "variant_get(v, '$.id', 'int') AS id").collect()
    )
    assert [json.loads(row.text) for row in rows] == DOCUMENTS
    assert [row.id for row in rows[:30]] == list(range(30))


@pytest.mark.spec("shredding.types")
def test_spark_reads_typed_columns_of_every_spark_type(spark: Any, tmp_path: Path) -> None:
    metadata = reference.encode_metadata(FIELDS)
    values = [reference.object_of([(i, value) for i, (value, _) in enumerate(TYPES.values())])]
    values += [reference.object_of([(i, prim("string", "other")) for i in range(len(FIELDS))]), reference.object_of([])]
    array = pa.array([*({"metadata": metadata, "value": value} for value in values), None], variant.variant_type())
    schema = ", ".join(f"{name} {type}" for name, type in zip(FIELDS, TYPES, strict=True))
    path = write(tmp_path / "v.parquet", array, shredding={"v": schema}, profile="spark")
    columns = [f"CAST(try_variant_get(v, '$.{name}', 'string') AS STRING) AS {name}" for name in FIELDS]
    rows = [tuple(row) for row in spark.read.parquet(str(path)).selectExpr(*columns).collect()]
    assert [text.removesuffix("+00:00") for text in rows[0]] == [text for _, text in TYPES.values()]
    assert rows[1:] == [("other",) * len(FIELDS), (None,) * len(FIELDS), (None,) * len(FIELDS)]


def test_spark_reads_variants_in_structs_lists_and_maps(spark: Any, tmp_path: Path) -> None:
    values, field = documents().slice(0, 4), variant.variant_field("element")
    offsets = pa.array([0, 1, 4], pa.int32())
    table = pa.Table.from_arrays(
        [
            pa.StructArray.from_arrays([values.slice(0, 2)], fields=[field.with_name("v")]),
            pa.ListArray.from_arrays(offsets, values, pa.list_(field)),
            pa.MapArray.from_arrays(
                offsets, pa.array(list("abcd")), values, pa.map_(pa.string(), field.with_name("value"))
            ),
        ],
        schema=pa.schema(
            [
                pa.field("s", pa.struct([field.with_name("v")])),
                pa.field("l", pa.list_(field)),
                pa.field("m", pa.map_(pa.string(), field.with_name("value"))),
            ]
        ),
    )
    paths = ("s.v", "l.list.element", "m.key_value.value")
    for shredding in ({}, dict.fromkeys(paths, "id BIGINT")):
        path = tmp_path / f"nested{len(shredding)}.parquet"
        pqext.write_table(table, path, shredding=shredding)
        rows = spark.read.parquet(str(path)).selectExpr(
            "to_json(s.v) AS s", "transform(l, x -> to_json(x)) AS l", "transform(map_values(m), x -> to_json(x)) AS m"
        ).collect()  # fmt: skip
        assert [json.loads(row.s) for row in rows] == DOCUMENTS[:2]
        for name in ("l", "m"):
            assert [[json.loads(text) for text in row[name]] for row in rows] == [DOCUMENTS[:1], DOCUMENTS[1:4]]


def test_pqext_reads_variants_shredded_by_spark(spark: Any, tmp_path: Path) -> None:
    df = spark.createDataFrame([(json.dumps(document),) for document in OBJECTS], "text string")
    df.selectExpr("parse_json(text) AS v").coalesce(1).write.parquet(str(tmp_path / "spark"))
    (file,) = (tmp_path / "spark").glob("*.parquet")
    stored = pqext.read_table(file, shredded=True)["v"]
    assert "id: " in str(schema_of_storage(stored.type))
    assert variant.validate(pqext.read_table(file)["v"]) is None
    for column in (stored, pqext.read_table(file)["v"]):
        assert [json.loads(text) for text in variant.to_json(column).to_pylist()] == OBJECTS
    assert variant.get(stored, "$.id", "int64").to_pylist() == list(range(30))


def test_shred_variant_accepts_the_writer_options(spark: Any) -> None:
    df = spark.createDataFrame([('{"a": 2.5, "b": 1}',)] * 5, "text string").selectExpr("parse_json(text) AS v")
    rows = shred_variant(df, {"v": {"schema": "a DOUBLE", "coerce": "json"}}, storage=True).collect()
    assert [row.v.typed_value.a.typed_value for row in rows] == [2.5] * 5
    inferred = shred_variant(df, {"v": '{"max_fields": 1, "decimals": 0, "sample_rows": 3}'}, storage=True)
    assert inferred.schema["v"].dataType["typed_value"].dataType.fieldNames() == ["a"]
    assert inferred.schema["v"].dataType["typed_value"].dataType["a"].dataType[
        "typed_value"
    ].dataType.simpleString() == ("decimal(2,1)")
    with pytest.raises(ValueError, match="unknown shredding option"):
        shred_variant(df, {"v": {"shema": "a INT"}})
