"""DuckDB and polars read the variants that JSON text became, and DuckDB's own variants are read here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import variant
from reference import variant_shred as reference

duckdb = pytest.importorskip("duckdb")

TEXTS = [
    '{"b":1,"a":{"c":[1,2.5,"x",null,true]},"é":"😀","long":"' + "x" * 100 + '"}',
    "[]", "{}", "null", '"text"', "-128", "70000", "9223372036854775807", "1.50", "1e100", "[[[]]]",
    json.dumps({f"k{i}": i for i in range(300)}), json.dumps(list(range(300))),
]  # fmt: skip


def test_duckdb_reads_parsed_json_as_variant() -> None:
    array = variant.parse_json(pa.array([*TEXTS, None]))
    table = pa.Table.from_arrays([array], schema=pa.schema([variant.variant_field("v")]))
    connection = duckdb.connect()
    connection.register("t", table)
    assert connection.sql("SELECT typeof(v) FROM t LIMIT 1").fetchall() == [("VARIANT",)]
    found = [text for (text,) in connection.sql("SELECT v::JSON::VARCHAR FROM t").fetchall()]
    assert [None if text is None else json.loads(text) for text in found[: len(TEXTS)]] == [
        json.loads(t) for t in TEXTS
    ]


def test_duckdb_variants_are_valid_and_equal(tmp_path: Path) -> None:
    path = tmp_path / "duckdb.parquet"
    values = ", ".join("(" + "'" + text.replace("'", "''") + "'::JSON::VARIANT)" for text in TEXTS)
    duckdb.connect().sql(f"COPY (SELECT * FROM (VALUES {values}) t(v)) TO '{path}' (FORMAT parquet)")
    column = pq.read_table(path)["v"]
    if not variant.is_variant_type(column.type):
        column = variant.unshred(column)
    assert variant.validate(column) is None
    found = variant.to_json(column).to_pylist()
    # DuckDB makes SQL's NULL of JSON's null.
    assert [json.loads(text or "null") for text in found] == [json.loads(text) for text in TEXTS]


# --- Shredded files ------------------------------------------------------------------------------

prim = reference.primitive
EVERY = {
    "BOOLEAN": prim("true"), "TINYINT": prim("int8", -5), "SMALLINT": prim("int16", 300), "INT": prim("int32", 70_000),
    "BIGINT": prim("int64", 2**40), "FLOAT": prim("float", 1.5), "DOUBLE": prim("double", 0.1),
    "DECIMAL(9,2)": prim("decimal4", (12345, 2)), "DECIMAL(18,4)": prim("decimal8", (10**15, 4)),
    "DECIMAL(38,10)": prim("decimal16", (10**30, 10)), "DATE": prim("date", 19_000), "TIME": prim("time", 123_456_789),
    "TIMESTAMP": prim("timestamp", 10**15), "TIMESTAMP_NS": prim("timestamp_nanos", 10**18 + 1),
    "TIMESTAMP_NTZ": prim("timestamp_ntz", 10**15), "TIMESTAMP_NTZ_NS": prim("timestamp_ntz_nanos", 10**18 + 1),
    "BINARY": prim("binary", b"\x00\xff"), "STRING": prim("string", "é" * 40),
    "UUID": prim("uuid", b"0123456789abcdef"),
}  # fmt: skip
FIELDS = [f"f{i:02}" for i in range(len(EVERY))]
SHOWN = [
    "true", "-5", "300", "70000", "1099511627776", "1.5", "0.1", "123.45", "100000000000.0000",
    "100000000000000000000.0000000000", "2022-01-08", "00:02:03.456789", "2001-09-09 01:46:40+00",
    "2001-09-09 01:46:40.000000001+00", "2001-09-09 01:46:40", "2001-09-09 01:46:40.000000001", "\\x00\\xFF", "é" * 40,
    "30313233-3435-3637-3839-616263646566",
]  # fmt: skip


def every_type() -> pa.StructArray:
    """A row with a field of every type, one with nulls, one with other types, one without, a number, a null."""
    metadata = reference.encode_metadata(FIELDS)
    whole = [list(EVERY.values()), [b"\0"] * len(FIELDS), [prim("string", "other")] * len(FIELDS), []]
    values = [reference.object_of(list(enumerate(fields))) for fields in whole]
    rows = [{"metadata": metadata, "value": value} for value in (*values, prim("int8", 1))]
    return pa.array([*rows, None], variant.variant_type())


def write(path: Path, array: pa.Array, **options: Any) -> Path:
    pqext.write_table(pa.Table.from_arrays([array], schema=pa.schema([variant.variant_field("v")])), path, **options)
    return path


@pytest.mark.spec("shredding.types")
def test_duckdb_reads_shredded_columns_of_every_type(tmp_path: Path) -> None:
    schema = ", ".join(f"{name} {type}" for name, type in zip(FIELDS, EVERY, strict=True))
    whole = write(tmp_path / "whole.parquet", every_type())
    shredded = write(tmp_path / "shredded.parquet", every_type(), shredding={"v": schema})
    with duckdb.connect() as connection:
        connection.sql("SET TimeZone = 'UTC'")
        texts = [connection.sql(f"SELECT v::VARCHAR FROM '{path}'").fetchall() for path in (whole, shredded)]
        assert texts[0] == texts[1]
        leaves = ", ".join(f"v.{name}::VARCHAR" for name in FIELDS)
        rows = connection.sql(f"SELECT {leaves} FROM '{shredded}' LIMIT 4").fetchall()
    assert list(rows[0]) == SHOWN
    assert rows[1:] == [(None,) * len(FIELDS), ("other",) * len(FIELDS), (None,) * len(FIELDS)]


DOCUMENTS: list[Any] = [
    {"id": n, "mag": [n / 4, None, "none"][n % 3], "place": {"name": "é" * n, "tags": ["a", n, None, {"x": n}]}}
    for n in range(30)
] + [[1, {"id": 2}], "text", {}, [], {"place": None}, {"place": {"tags": {}}}, 7]
SCHEMAS = [
    "id BIGINT, mag DOUBLE, place STRUCT<name: STRING, tags: ARRAY<STRING>>",
    "id SMALLINT, place STRUCT<tags: ARRAY<STRUCT<x: BIGINT>>>",
    "ARRAY<STRUCT<id: DECIMAL(9,2)>>",
    "infer",
]


@pytest.mark.parametrize("coerce", ["equivalent", "exact", "json"])
@pytest.mark.parametrize("schema", SCHEMAS)
def test_duckdb_reads_equal_documents_from_every_shredding(schema: str, coerce: str, tmp_path: Path) -> None:
    array = variant.parse_json(pa.array(list(map(json.dumps, DOCUMENTS))))
    path = write(tmp_path / "v.parquet", array, shredding={"v": {"schema": schema, "coerce": coerce}})
    texts = [text for (text,) in duckdb.sql(f"SELECT v::JSON::VARCHAR FROM '{path}'").fetchall()]
    assert [json.loads(text) for text in texts] == DOCUMENTS


@pytest.mark.parametrize(
    "shredding",
    ["STRUCT(id BIGINT, mag DOUBLE)", 'STRUCT(place STRUCT("name" VARCHAR, tags VARCHAR[]))', "BIGINT", "VARCHAR[]"],
)
def test_variants_shredded_by_duckdb_have_the_same_documents(shredding: str, tmp_path: Path) -> None:
    source, path = tmp_path / "source.json", tmp_path / "v.parquet"
    source.write_text("\n".join(map(json.dumps, DOCUMENTS)))
    with duckdb.connect() as connection:
        connection.sql(f"CREATE TABLE t AS SELECT json::VARIANT AS v FROM read_json_objects('{source}', format='nd')")
        connection.sql(f"COPY t TO '{path}' (FORMAT parquet, SHREDDING {{v: '{shredding}'}})")
    column = pqext.read_table(path)["v"]
    assert variant.validate(column) is None
    assert [json.loads(text) for text in variant.to_json(column).to_pylist()] == DOCUMENTS
