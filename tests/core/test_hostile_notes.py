"""Stored Arrow schemas that name types of the same values which Arrow's own reader makes no columns of."""

from __future__ import annotations

import base64
import io

import pyarrow as pa
import pytest

import pqext

PAIR = pa.struct([("a", pa.int64())])
NESTED = {
    "list": pa.list_(pa.int64()),
    "map": pa.map_(pa.string(), pa.int64()),
    "struct": PAIR,
    "lists": pa.list_(pa.list_(PAIR)),
}


def with_schema(table: pa.Table, schema: pa.Schema) -> bytes:
    """A file of ``table`` that stores another schema."""
    text = base64.b64encode(schema.serialize().to_pybytes()).decode()
    out = io.BytesIO()
    pqext.write_table(table, out, arrow_schema=False, key_value_metadata={"ARROW:schema": text})
    return out.getvalue()


@pytest.mark.parametrize("name", ["dictionary", "run ends"])
def test_nested_dictionary_and_run_end_types_are_ignored(name: str) -> None:
    def wrap(held: pa.DataType) -> pa.DataType:
        return pa.dictionary(pa.int8(), held) if name == "dictionary" else pa.run_end_encoded(pa.int32(), held)

    table = pa.table({name: pa.array([None], held) for name, held in NESTED.items()})
    lie = {name: wrap(held) for name, held in NESTED.items()} | {"lists": pa.list_(wrap(pa.list_(PAIR)))}
    assert pqext.read_table(with_schema(table, pa.schema(lie))).equals(table)
