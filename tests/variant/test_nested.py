"""Variants inside structs, lists and maps: written, shredded, inferred, read, reconstructed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import variant
from pqext.variant.shredding.schema import schema_of_storage

DOCUMENTS: list[Any] = [{"a": n, "b": "x" * n, "c": [n, None]} for n in range(12)] + [None, 7, "text", [], {}]
VALUES = variant.parse_json(pa.array([orjson.dumps(document) for document in DOCUMENTS] + [None]))
OFFSETS = pa.array([0, 3, 3, 10, 18], pa.int32())
SCHEMA = "a BIGINT, c ARRAY<INT>"
FIELD = variant.variant_field("item")

COLUMNS: dict[str, tuple[pa.Array, pa.Field]] = {
    "s.v": (
        pa.StructArray.from_arrays(
            [pa.array(range(18)), VALUES], fields=[pa.field("n", pa.int64()), FIELD.with_name("v")]
        ),
        pa.field("s", pa.struct([pa.field("n", pa.int64()), FIELD.with_name("v")])),
    ),
    "l.list.element": (
        pa.ListArray.from_arrays(OFFSETS, VALUES, pa.list_(FIELD), mask=pa.array([False, True, False, False])),
        pa.field("l", pa.list_(FIELD)),
    ),
    "m.key_value.value": (
        pa.MapArray.from_arrays(
            OFFSETS, pa.array([f"k{n}" for n in range(18)]), VALUES, pa.map_(pa.string(), FIELD.with_name("value"))
        ),
        pa.field("m", pa.map_(pa.string(), FIELD.with_name("value"))),
    ),
}


def write(path: str, **options: Any) -> bytes:
    array, field = COLUMNS[path]
    sink = io.BytesIO()
    pqext.write_table(pa.Table.from_arrays([array], schema=pa.schema([field])), sink, **options)
    return sink.getvalue()


def variant_at(array: pa.Array, path: str) -> pa.Array:
    if path == "s.v":
        return array.field(array.type.get_field_index("v"))
    return array.values if path.startswith("l") else array.items


def documents(array: pa.Array) -> list[Any]:
    return [text and orjson.loads(text) for text in variant.to_json(array).to_pylist()]


@pytest.mark.spec("shredding.nesting")
@pytest.mark.parametrize("choice", [None, SCHEMA, "infer", {"schema": SCHEMA, "coerce": "exact"}])
@pytest.mark.parametrize("path", COLUMNS)
def test_nested_variants_round_trip(path: str, choice: Any) -> None:
    data = write(path, shredding={path: choice} if choice else {})
    whole = pqext.read_table(data).column(0).combine_chunks()
    assert documents(variant_at(whole, path)) == [*DOCUMENTS, None]
    assert whole.is_valid().equals(COLUMNS[path][0].is_valid())
    shredded = variant_at(pqext.read_table(data, shredded=True).column(0).combine_chunks(), path)
    schema = str(schema_of_storage(shredded.type))
    assert ("a: BIGINT" in schema) == bool(choice)
    assert ("b: STRING" in schema) == (choice == "infer")
    assert documents(variant.unshred(shredded)) == [*DOCUMENTS, None]
    leaf = pqext.open(data).schema.find(f"{path}.typed_value.a.typed_value")
    assert (leaf is not None) == bool(choice)


@pytest.mark.parametrize("path", COLUMNS)
def test_nested_shredded_variants_are_written_unchanged(path: str) -> None:
    shredded = pqext.read_table(write(path, shredding={path: SCHEMA}), shredded=True)
    sink = io.BytesIO()
    pqext.write_table(shredded, sink)
    again = variant_at(pqext.read_table(sink.getvalue(), shredded=True).column(0).combine_chunks(), path)
    assert str(schema_of_storage(again.type)) == "STRUCT<a: BIGINT, c: ARRAY<INT>>"
    assert documents(again) == [*DOCUMENTS, None]


@pytest.mark.parametrize("path", COLUMNS)
def test_schema_of_a_file_can_be_reused(path: str) -> None:
    data = write(path, shredding={path: SCHEMA})
    schema = variant.schema_of_file(data, path)
    assert str(schema) == "STRUCT<a: BIGINT, c: ARRAY<INT>>"
    assert variant.shred(VALUES, schema).type == variant.shred(VALUES, SCHEMA).type


def test_schema_of_a_file_requires_a_variant_column() -> None:
    data = write("s.v")
    assert str(variant.schema_of_file(data, "s.v")) == "VARIANT"
    with pytest.raises(TypeError, match=r"column 's\.n' is not a VARIANT"):
        variant.schema_of_file(data, "s.n")
    with pytest.raises(ValueError, match=r"no column 's\.w'"):
        variant.schema_of_file(data, "s.w")


def test_option_for_a_missing_column_names_the_existing_ones() -> None:
    with pytest.raises(ValueError, match=r"l\.list\.element"):
        write("l.list.element", shredding={"l.item": SCHEMA})


@pytest.mark.parametrize("choice", [None, SCHEMA])
@pytest.mark.parametrize("path", COLUMNS)
def test_pyarrow_and_duckdb_read_nested_variants(path: str, choice: str | None, tmp_path: Path) -> None:
    file = tmp_path / "nested.parquet"
    file.write_bytes(write(path, shredding={path: choice} if choice else {}))
    stored = pq.read_table(file).column(0).combine_chunks()
    assert documents(variant.unshred(variant_at(stored, path))) == [*DOCUMENTS, None]
    queries = {
        "s.v": f"SELECT s.v::JSON FROM '{file}'",
        "l.list.element": f"SELECT unnest(l)::JSON FROM '{file}'",
        "m.key_value.value": f"SELECT unnest(map_values(m))::JSON FROM '{file}'",
    }
    rows = [row[0] for row in duckdb.sql(queries[path]).fetchall()]
    assert [text and orjson.loads(text) for text in rows] == [*DOCUMENTS, None]


@pytest.mark.parametrize("choice", [None, "int", "infer"])
def test_required_variants_below_null_structs_round_trip(choice: str | None) -> None:
    whole = variant.parse_json(pa.array(["1", "2", "3"]))
    values = pa.array([whole.field(1)[0].as_py(), b"\xff\xff", whole.field(1)[2].as_py()], pa.binary())
    variants = pa.StructArray.from_arrays([whole.field(0), values], fields=list(whole.type))
    field = variant.variant_field("v").with_nullable(False)
    structs = pa.StructArray.from_arrays([variants], fields=[field], mask=pa.array([False, True, False]))
    sink = io.BytesIO()
    pqext.write_table(pa.table({"s": structs}), sink, shredding={} if choice is None else {"s.v": choice})
    found = pqext.read_table(sink.getvalue())["s"].combine_chunks()
    assert found.is_valid().to_pylist() == [True, False, True]
    assert variant.to_json(found.drop_null().field(0)).to_pylist() == ["1", "3"]


@pytest.mark.parametrize("path", [*COLUMNS])
def test_values_in_the_residual_of_nested_variants_are_reported(path: str) -> None:
    with pytest.warns(UserWarning, match=rf"the residual contains 100\.0% of {path}: \$\.b; use types that fit"):
        write(path, shredding={path: "a BIGINT, b INT"})
