"""Shredded columns to JSON text, against the text of the variants that they stand for; and text over several lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import LimitError, ParquetError, UnsupportedError, VariantError
from pqext.variant.shredding.schema import ShreddingSchema, Untyped, shredding_schema, storage_struct
from reference import variant_shred as reference
from reference.variant_judge import disturbed
from reference.variant_strategies import fewer, schemas, variants

NAMES = ["a", "b", "c"]
METADATA = reference.encode_metadata(NAMES)


def stored(rows: list[Any], schema: ShreddingSchema | str, metadata: bytes = METADATA) -> pa.StructArray:
    """Rows of value and typed_value under a schema."""
    return pa.array([row and {"metadata": metadata, **row} for row in rows], storage_struct(shredding_schema(schema)))


def outcome(function: Callable[[], Any]) -> Any:
    """The texts, or that a typed error was raised."""
    try:
        return function().to_pylist()
    except ParquetError:
        return "error"


@fewer
@given(st.lists(st.one_of(st.none(), variants()), min_size=1, max_size=5), schemas(), st.integers(0, 2))
def test_text_matches_that_of_unshredded_variants(
    rows: list[tuple[bytes, bytes] | None], schema: ShreddingSchema, skipped: int
) -> None:
    whole = pa.array([row and {"metadata": row[0], "value": row[1]} for row in rows], variant.variant_type())
    shredded = variant.shred(whole, schema).slice(skipped)
    texts = variant.to_json(shredded)
    texts.validate(full=True)
    assert texts.type == pa.string()
    assert texts.to_pylist() == variant.to_json(variant.unshred(shredded)).to_pylist()


@fewer
@given(st.data(), schemas(), variants(), variants())
def test_contradicting_columns_have_the_same_text_or_error(
    data: st.DataObject, schema: ShreddingSchema, row: tuple[bytes, bytes], other: tuple[bytes, bytes]
) -> None:
    names = reference.decode_metadata(row[0])
    columns = reference.shred(reference.decode(row[1], names), schema)
    columns = disturbed(columns, schema, lambda n: data.draw(st.integers(0, n - 1)), other[1])
    array = pa.array([{"metadata": row[0], **columns}], storage_struct(schema))
    assert outcome(lambda: variant.to_json(array)) == outcome(lambda: variant.to_json(variant.unshred(array)))


@fewer
@given(st.data(), schemas(), variants())
def test_corrupt_bytes_have_the_same_text_or_error(
    data: st.DataObject, schema: ShreddingSchema, row: tuple[bytes, bytes]
) -> None:
    names = reference.decode_metadata(row[0])
    columns = reference.shred(reference.decode(row[1], names), schema)
    metadata, value = bytearray(row[0]), bytearray(columns.get("value") or row[1])
    for _ in range(data.draw(st.integers(1, 3))):
        part = value if data.draw(st.integers(0, 3)) else metadata
        part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
    columns["value"] = bytes(value)
    array = pa.array([{"metadata": bytes(metadata), **columns}], storage_struct(schema))
    assert outcome(lambda: variant.to_json(array)) == outcome(lambda: variant.to_json(variant.unshred(array)))


@pytest.mark.parametrize(
    ("schema", "row", "rule"),
    [
        ("a INT", {"value": b"\0", "typed_value": {"a": {}}}, "shredding.object.residual-kind"),
        ("a INT", {"value": b"\x02\x01\x07\x00\x01\x00", "typed_value": {"a": {}}}, "variant.object.field-id"),
        ("a INT", {"value": b"\x02\x01\x00\x00\x02\x00", "typed_value": {"a": {}}}, "variant.value.layout"),
        ("INT", {"value": b"\x05\xff", "typed_value": None}, "variant.utf8"),
        ("INT", {"value": b"\x00\x00", "typed_value": None}, "variant.value.layout"),
    ],
)
def test_errors_name_row_and_rule(schema: str, row: dict[str, Any], rule: str) -> None:
    good: dict[str, Any] = {"value": b"\0", "typed_value": None}
    array = pa.chunked_array([stored([good], schema), stored([None, row], schema)])
    with pytest.raises(VariantError) as caught:
        variant.to_json(array)
    assert (caught.value.row, caught.value.rule) == (2, rule)


@pytest.mark.spec("variant.version.new-types")
def test_primitive_of_a_later_type_is_preserved_but_has_no_text() -> None:
    later = b"\x54anything"
    fields = reference.object_of([(0, reference.primitive("int32", 1)), (1, later), (2, b"\x04")])
    elements = reference.array_of([b"\x04", later, b"\x08"])
    for value, backwards in ((fields, False), (reference.object_of([(1, later), (2, b"\x04")], backwards=True), True)):
        whole = pa.array([{"metadata": METADATA, "value": value}], variant.variant_type())
        for schema in ("a INT", "a INT, c BOOLEAN"):
            array = variant.shred(whole, schema)
            assert variant.unshred(array) == whole or backwards
            assert variant.get(variant.unshred(array), "$.c", "boolean").to_pylist() == [True]
            with pytest.raises(UnsupportedError, match="primitive type added later"):
                variant.to_json(array)
    for value in (later, elements):
        whole = pa.array([{"metadata": METADATA, "value": value}], variant.variant_type())
        assert variant.unshred(variant.shred(whole, "ARRAY<BOOLEAN>")) == whole


def test_container_of_unknown_values_takes_linear_time() -> None:
    count = 100_000
    offsets = b"".join(i.to_bytes(3, "little") for i in reversed(range(count)))
    ids = b"".join(i.to_bytes(3, "little") for i in range(count))
    head = bytes([2 | 2 << 2 | 2 << 4 | 1 << 6]) + count.to_bytes(4, "little")
    value = head + ids + offsets + count.to_bytes(3, "little") + b"\x54" * count
    names = [i.to_bytes(4, "little") for i in range(0, 7 * count + 1, 7)]
    metadata = b"\xd1" + b"".join([count.to_bytes(4, "little"), *names, *(b"b%06d" % i for i in range(count))])
    array = stored([{"value": value, "typed_value": {"a": {}}}], "a INT", metadata)
    assert len(variant.unshred(array)[0]["value"].as_py()) == len(value)


@pytest.mark.parametrize("indent", [0, 1, 2, 16])
def test_multiline_text_matches_the_json_module(indent: int) -> None:
    documents = [
        {"a": [1, {"b": [], "c": {}}, 'x, "y": [z]{}\\', []], "é": None},
        [],
        {},
        [[1, 2], [[3]]],
        "s",
        1,
        None,
    ]
    array = variant.parse_json(pa.array([json.dumps(document) for document in documents]))
    expected = [json.dumps(document, indent=indent, ensure_ascii=False) for document in documents]
    assert variant.to_json(array, indent=indent).to_pylist() == expected
    chunked = pa.chunked_array([array.slice(0, 2), pa.nulls(1, array.type), array.slice(2)])
    texts = variant.to_json(chunked, indent=indent)
    texts.validate(full=True)
    assert texts.to_pylist() == [*expected[:2], None, *expected[2:]]


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def test_indentation_of_deep_values_matches_the_json_module() -> None:
    document = json.loads(nested(200))
    array = variant.parse_json([nested(200)] * 3)
    assert variant.to_json(array, indent=2).to_pylist() == [json.dumps(document, indent=2)] * 3


@pytest.mark.parametrize(
    ("texts", "row"), [([nested(20_000)], 0), (["1", nested(500), nested(20_000)], 2), ([nested(400)] * 2000, 2)]
)
def test_indentation_is_limited_for_small_values(texts: list[str], row: int) -> None:
    array = variant.parse_json(texts, max_depth=20_000)
    with pytest.raises(LimitError, match=f"row {row}: .* exceeds 256 times .* use indent=None") as caught:
        variant.to_json(array, indent=4)
    assert isinstance(caught.value, VariantError)


@pytest.mark.parametrize("shredding", [None, "a BIGINT, b STRING"])
def test_threads_do_not_change_the_result(shredding: str | None) -> None:
    rows = [None if i % 7 == 0 else f'{{"a":{i},"b":"{"x" * 50}"}}' for i in range(40_000)]
    array = variant.parse_json(pa.array(rows), shredding=shredding)
    assert variant.to_json(array, threads=3).to_pylist() == rows
    assert variant.to_json(array.slice(5, 30_000), threads=0).to_pylist() == rows[5:30_005]


def test_threads_report_the_row_of_the_full_array() -> None:
    rows = [f'{{"a":"{"x" * 60}"}}' for _ in range(50_000)]
    metadata, value = variant.parse_json(pa.array(rows)).flatten()
    values = value.to_pylist()
    values[40_000] = b"\x05\xff"
    array = pa.StructArray.from_arrays([metadata, pa.array(values, pa.binary())], fields=list(variant.variant_type()))
    with pytest.raises(VariantError) as caught:
        variant.to_json(array, threads=2)
    assert caught.value.row == 40_000


def test_invalid_arguments_are_rejected() -> None:
    array = variant.parse_json(pa.array(["1"]))
    for indent in (-1, 17):
        with pytest.raises(ValueError, match="indent must be between 0 and 16"):
            variant.to_json(array, indent=indent)
    for wrong in ("2", 2.0, True):
        with pytest.raises(TypeError, match="indent"):
            variant.to_json(array, indent=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="threads"):
        variant.to_json(array, threads=-1)


def test_value_only_and_typed_value_only_columns_are_read() -> None:
    assert isinstance(shredding_schema("VARIANT"), Untyped)
    type = pa.struct([pa.field("metadata", pa.binary()), pa.field("typed_value", pa.int64())])
    array = pa.array(
        [{"metadata": METADATA, "typed_value": 3}, {"metadata": METADATA, "typed_value": None}, None], type
    )
    assert variant.to_json(array).to_pylist() == ["3", "null", None]
    with pytest.raises(VariantError, match="no metadata"):
        variant.to_json(pa.array([{"metadata": None, "typed_value": 3}], type))
