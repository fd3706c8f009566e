"""DuckDB and polars read the variants that JSON text became, and DuckDB's own variants are read here."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pqext import variant

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


def test_variants_that_duckdb_writes_are_valid_and_mean_the_same(tmp_path: Path) -> None:
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
