"""Variants as tables of typed columns: what the columns do not hold is left in the residual, and nothing is lost."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.variant.shredding.schema import Object
from pqext.variant.types import is_variant_type, variant_type
from reference import variant_shred as reference
from reference.variant_strategies import NAMES, fewer, schemas, variants

ROWS = [
    '{"id":1,"name":"x","l":[1,null],"o":{"p":1}}',
    '{"id":"two","l":[1,"a"],"o":{"p":"s","q":1},"u":[1]}',
    "[3]",
    None,
    "{}",
    '{"o":{}}',
    '{"id":null,"x":2}',
]


def texts(array: Any) -> list[str | None]:
    return variant.to_json(array).to_pylist()  # type: ignore[no-any-return]


def assert_same(array: Any, table: pa.Table, **options: Any) -> None:
    back = variant.from_table(table, **options)
    assert variant.equals(array, back).to_pylist() == [
        True if valid else None for valid in array.is_valid().to_pylist()
    ]
    assert back.is_valid().to_pylist() == array.is_valid().to_pylist()


_OBJECTS = st.dictionaries(st.sampled_from(NAMES), schemas(), min_size=1, max_size=4).map(
    lambda fields: Object(tuple(fields.items()))
)


@given(st.lists(st.one_of(st.none(), variants()), min_size=1, max_size=4), _OBJECTS)
@fewer
def test_table_round_trips_the_values(values: list[Any], schema: Any) -> None:
    array = pa.array([v and {"metadata": v[0], "value": v[1]} for v in values], variant_type())
    table = variant.to_table(array, schema)
    table.validate(full=True)
    assert table.column_names[:-1] == [name for name, _ in schema.fields]
    assert variant.validate(table["residual"]) is None or variant.validate(array) is not None
    assert_same(array, table)
    assert_same(array, variant.to_table(variant.shred(array, "infer"), schema))


@given(st.lists(st.one_of(st.none(), variants()), min_size=1, max_size=4))
@fewer
def test_inferred_table_round_trips_the_values(values: list[Any]) -> None:
    array = pa.array([v and {"metadata": v[0], "value": v[1]} for v in values], variant_type())
    assert_same(array, variant.to_table(array))


def test_columns_contain_fitting_values_and_the_residual_the_rest() -> None:
    table = variant.to_table(variant.parse_json(ROWS), "id INT, name STRING, l ARRAY<INT>, o STRUCT<p: INT>, u VARIANT")
    assert table.schema.field("l").type == pa.list_(pa.field("element", pa.int32()))
    assert is_variant_type(table.schema.field("u").type)
    assert table["id"].to_pylist() == [1] + [None] * 6
    assert table["l"].to_pylist() == [[1, None]] + [None] * 6
    assert table["o"].to_pylist() == [{"p": 1}, {"p": None}, None, None, None, {"p": None}, None]
    assert texts(table["u"]) == [None, "[1]", None, None, None, None, None]
    assert texts(table["residual"]) == [
        None, '{"id":"two","l":[1,"a"],"o":{"p":"s","q":1}}', "[3]", None, "{}", None, '{"id":null,"x":2}',
    ]  # fmt: skip
    assert_same(variant.parse_json(ROWS), table)


def test_residual_column_has_the_requested_name_and_must_not_conflict() -> None:
    array = variant.parse_json(['{"residual":1,"x":2}'])
    with pytest.raises(ValueError, match="already has the name 'residual'"):
        variant.to_table(array, "residual INT")
    table = variant.to_table(array, "residual INT", residual="rest")
    assert table.column_names == ["residual", "rest"]
    assert_same(array, table, residual="rest")


def test_uuids_preserve_their_type_through_a_file(tmp_path: Any) -> None:
    import uuid

    import pqext

    array = variant.from_python([{"u": uuid.UUID(int=1), "l": [uuid.UUID(int=2)]}])
    table = variant.to_table(array, "u UUID, l ARRAY<UUID>")
    assert texts(table["residual"]) == [None]
    assert_same(array, table)
    pqext.write_table(table, tmp_path / "t.parquet")
    assert_same(array, pqext.read_table(tmp_path / "t.parquet"))


def test_single_values_have_no_columns() -> None:
    array = variant.parse_json(["1", "2", None])
    assert variant.to_table(array).column_names == ["residual"]
    assert_same(array, variant.to_table(array))
    with pytest.raises(ValueError, match=r"an object schema; use variant\.get"):
        variant.to_table(array, "INT")


def test_chunks_return_batches_and_empty_arrays_return_columns() -> None:
    array = pa.chunked_array([variant.parse_json(ROWS).slice(1, 3), variant.parse_json(ROWS).slice(4)])
    table = variant.to_table(array, "id INT, o STRUCT<p: INT>")
    assert table["id"].num_chunks == 2
    assert_same(array, table)
    empty = variant.to_table(variant.parse_json(pa.array([], pa.string())), "id INT")
    assert (empty.num_rows, empty.column_names) == (0, ["id", "residual"])
    assert len(variant.from_table(empty)) == 0
    assert len(variant.to_table(pa.chunked_array([], variant_type()), "id INT")) == 0


def test_invalid_rows_are_reported_with_their_number() -> None:
    good, bad = {"metadata": b"\x11\0\0", "value": b"\0"}, {"metadata": b"\x11\0\0", "value": b"\x02\x01\x05\0\x01\0"}
    array = pa.chunked_array([pa.array([good, good], variant_type()), pa.array([good, bad], variant_type())])
    with pytest.raises(VariantError, match=r"row 3: .*field id"):
        variant.to_table(array, "id INT")


def test_names_missing_from_a_dictionary_are_added() -> None:
    names = reference.encode_metadata(["id"])
    shredded = variant.shred(
        pa.array([{"metadata": names, "value": reference.primitive("int8", 1)}], variant_type()), "a INT"
    )
    assert variant.to_table(shredded, "a INT, b STRUCT<c: INT>")["a"].to_pylist() == [None]
