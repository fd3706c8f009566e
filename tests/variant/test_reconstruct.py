"""Reconstruction takes any legal storage struct, and says what is wrong with the others."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.variant.shredding.schema import ShreddingSchema, Untyped, shredding_schema, storage_struct
from pqext.variant.types import variant_type
from reference import variant_shred as reference
from reference.variant_strategies import fewer, schemas, variants

NAMES = ["a", "b", "c"]
METADATA = reference.encode_metadata(NAMES)


def integer(number: int) -> bytes:
    return reference.primitive("int32", number)


def text(string: str) -> bytes:
    return reference.primitive("string", string)


def fields(**values: bytes) -> bytes:
    return reference.object_of([(NAMES.index(name), value) for name, value in sorted(values.items())])


def stored(rows: list[Any], schema: Any, metadata: bytes = METADATA) -> pa.StructArray:
    """Rows of value and typed_value under a schema."""
    full = [row and {"metadata": metadata, **row} for row in rows]
    return pa.array(full, storage_struct(shredding_schema(schema)))


def values(array: pa.StructArray, *, strict: bool = False) -> list[bytes | None]:
    rebuilt = variant.unshred(array, strict=strict)
    rebuilt.validate(full=True)
    assert rebuilt.type == variant_type()
    return [row and row["value"] for row in rebuilt.to_pylist()]


@fewer
@given(st.lists(st.one_of(st.none(), variants()), min_size=1, max_size=5), schemas())
def test_every_value_matches_the_reference_reconstruction(
    rows: list[tuple[bytes, bytes] | None], schema: ShreddingSchema
) -> None:
    columns: list[Any] = []
    wanted: list[bytes | None] = []
    for row in rows:
        if row is None:
            columns.append(None)
            wanted.append(None)
            continue
        names = reference.decode_metadata(row[0])
        shredded = reference.shred(reference.decode(row[1], names), schema)
        columns.append({"metadata": row[0], **shredded})
        wanted.append(reference.reconstruct(shredded, schema, names))
    assert values(pa.array(columns, storage_struct(schema)), strict=True) == wanted


@pytest.mark.spec("shredding.layout.by-name", "shredding.array.members", "shredding.object.omitted")
def test_columns_are_found_by_name_and_may_be_omitted() -> None:
    typed = pa.struct(
        [
            pa.field("b", pa.struct([pa.field("typed_value", pa.int32())]), nullable=False),
            pa.field("a", pa.struct([pa.field("value", pa.binary())]), nullable=False),
        ]
    )
    type = pa.struct([("typed_value", typed), ("metadata", pa.binary())])
    array = pa.array(
        [
            {"metadata": METADATA, "typed_value": {"b": {"typed_value": 1}, "a": {"value": text("x")}}},
            {"metadata": METADATA, "typed_value": None},
        ],
        type,
    )
    assert values(array) == [fields(a=text("x"), b=integer(1)), b"\0"]
    lists = pa.struct(
        [("metadata", pa.binary()), ("typed_value", pa.large_list(pa.struct([("typed_value", pa.large_string())])))]
    )
    listed = pa.array([{"metadata": METADATA, "typed_value": [{"typed_value": "x"}]}], lists)
    assert values(listed) == [reference.array_of([text("x")])]


@pytest.mark.parametrize(
    ("arrow", "value", "encoded"),
    [
        (pa.decimal32(9, 2), Decimal("1.50"), reference.primitive("decimal4", (150, 2))),
        (pa.decimal64(18, 2), Decimal("1.50"), reference.primitive("decimal8", (150, 2))),
        (pa.decimal128(38, 2), Decimal("1.50"), reference.primitive("decimal16", (150, 2))),
        (pa.decimal128(9, 2), Decimal("-1.50"), reference.primitive("decimal4", (-150, 2))),
        (pa.large_string(), "é", text("é")),
        (pa.string_view(), "é" * 40, text("é" * 40)),
        (pa.dictionary(pa.int8(), pa.string()), "x", text("x")),
        (pa.large_binary(), b"\xff", reference.primitive("binary", b"\xff")),
        (pa.uuid(), b"0123456789abcdef", reference.primitive("uuid", b"0123456789abcdef")),
        (pa.binary(16), b"0123456789abcdef", reference.primitive("uuid", b"0123456789abcdef")),
        (pa.timestamp("us", "Asia/Tokyo"), 5, reference.primitive("timestamp", 5)),
        (pa.timestamp("ns"), 5, reference.primitive("timestamp_ntz_nanos", 5)),
        (pa.time64("us"), 5, reference.primitive("time", 5)),
        (pa.date32(), 5, reference.primitive("date", 5)),
        (pa.bool_(), False, reference.primitive("false")),
    ],
)
@pytest.mark.spec("shredding.types")
def test_typed_values_of_every_arrow_layout_become_variant_types(
    arrow: pa.DataType, value: Any, encoded: bytes
) -> None:
    column = pa.array([value, None], arrow)
    array = pa.StructArray.from_arrays(
        [pa.array([METADATA] * 2), pa.array([None, integer(1)], pa.binary()), column],
        names=["metadata", "value", "typed_value"],
    )
    assert values(array) == [encoded, integer(1)]
    assert values(array.slice(1)) == [integer(1)]


@pytest.mark.spec("shredding.value.required-missing", "shredding.value.missing")
def test_missing_required_value_is_a_variant_null() -> None:
    assert values(stored([{"value": None, "typed_value": None}, None], "INT")) == [b"\0", None]
    missing = {"value": None, "typed_value": None}
    array = stored([{"value": None, "typed_value": [missing]}], "ARRAY<INT>")
    assert values(array) == [reference.array_of([b"\0"])]
    with pytest.raises(VariantError) as caught:
        values(array, strict=True)
    assert caught.value.rule == "shredding.array.present"


@pytest.mark.spec("shredding.compat.unshredded")
def test_unshredded_groups_are_read_unchanged() -> None:
    loose = pa.array(
        [{"value": integer(1), "metadata": METADATA}, None, {"value": None, "metadata": METADATA}],
        pa.struct([("value", pa.binary()), ("metadata", pa.large_binary())]),
    )
    assert values(loose) == [integer(1), None, b"\0"]
    with pytest.raises(VariantError, match="no metadata"):
        variant.unshred(pa.array([{"value": integer(1), "metadata": None}], loose.type))


@pytest.mark.spec(
    "shredding.object.returned", "shredding.value.partial", "shredding.object.missing", "shredding.value.missing"
)
def test_shredded_and_residual_fields_are_merged_in_name_order() -> None:
    array = stored(
        [
            {"value": fields(a=text("x"), c=text("z")), "typed_value": {"b": {"typed_value": 1}}},
            {"value": fields(a=text("x")), "typed_value": {"b": {}}},
            {"value": None, "typed_value": {"b": {"value": b"\0"}}},
            {"value": None, "typed_value": {"b": {}}},
        ],
        "b INT",
    )
    assert values(array, strict=True) == [
        fields(a=text("x"), b=integer(1), c=text("z")),
        fields(a=text("x")),
        fields(b=b"\0"),
        fields(),
    ]


@pytest.mark.spec("shredding.metadata.names")
@pytest.mark.parametrize("sorted_before", [True, False])
def test_names_missing_from_the_metadata_are_added(sorted_before: bool) -> None:
    metadata = reference.encode_metadata(["b", "d"] if sorted_before else ["d", "b"])
    ids = {"b": 0, "d": 1} if sorted_before else {"d": 0, "b": 1}
    residual = reference.object_of([(ids["d"], reference.object_of([(ids["b"], integer(2))]))])
    array = stored(
        [
            {"value": residual, "typed_value": {"a": {"typed_value": 1}, "e": {"typed_value": 5}}},
            {"value": residual, "typed_value": {"a": {}, "e": {}}},
            None,
        ],
        "e INT, a INT",
        metadata,
    )
    rebuilt = variant.unshred(array).to_pylist()
    names = reference.decode_metadata(rebuilt[0]["metadata"])
    assert sorted(names) == ["a", "b", "d", "e"]
    value = reference.equivalent(reference.decode(rebuilt[0]["value"], names))
    assert list(value[1]) == ["a", "d", "e"]
    assert value[1]["d"] == ("object", {"b": ("exact", Decimal(2))})
    assert rebuilt[1]["metadata"] == metadata
    assert rebuilt[2] is None


def test_extended_dictionary_is_flagged_sorted_only_if_it_is() -> None:
    for schema, flag in (("a INT", 1), ("a INT, b INT", 1)):
        typed = {name: {"typed_value": 1} for name in ("a", "b")[: len(schema.split(","))]}
        array = stored([{"value": None, "typed_value": typed}], schema, reference.encode_metadata([]))
        assert variant.unshred(array).to_pylist()[0]["metadata"][0] >> 4 & 1 == flag
    array = stored(
        [{"value": None, "typed_value": {"a": {"typed_value": 1}}}], "a INT", reference.encode_metadata(["b"])
    )
    assert variant.unshred(array).to_pylist()[0]["metadata"][0] >> 4 & 1 == 0


CONTRADICTIONS = [
    ("INT", {"value": text("x"), "typed_value": 1}, integer(1), "shredding.value.exclusive"),
    (
        "ARRAY<INT>",
        {"value": text("x"), "typed_value": [{"typed_value": 1}]},
        reference.array_of([integer(1)]),
        "shredding.value.exclusive",
    ),
    (
        "a INT",
        {"value": fields(a=text("x")), "typed_value": {"a": {"typed_value": 1}}},
        fields(a=integer(1)),
        "shredding.object.disjoint",
    ),
    ("a INT", {"value": fields(a=text("x")), "typed_value": {"a": {}}}, fields(), "shredding.object.disjoint"),
    (
        "a INT",
        {"value": None, "typed_value": {"a": {"value": text("x"), "typed_value": 1}}},
        fields(a=integer(1)),
        "shredding.value.exclusive",
    ),
    ("a INT", {"value": fields(b=text("x")), "typed_value": None}, fields(b=text("x")), "shredding.object.typed"),
    ("a INT", {"value": fields(), "typed_value": None}, fields(), "shredding.object.typed"),
    (
        "ARRAY<INT>",
        {"value": reference.array_of([integer(1)]), "typed_value": None},
        reference.array_of([integer(1)]),
        "shredding.array.typed",
    ),
]


@pytest.mark.spec(
    "shredding.object.conflict", "shredding.object.typed", "shredding.value.exclusive", "shredding.array.typed"
)
@pytest.mark.parametrize(("schema", "row", "read", "rule"), CONTRADICTIONS)
def test_typed_value_takes_precedence_over_a_contradicting_value(
    schema: str, row: dict[str, Any], read: bytes, rule: str
) -> None:
    array = stored([{"value": b"\0", "typed_value": None}, row], schema)
    assert values(array)[1] == read
    with pytest.raises(VariantError) as caught:
        values(array, strict=True)
    assert (caught.value.rule, caught.value.row) == (rule, 1)


@pytest.mark.spec("shredding.object.residual-kind")
def test_residual_that_is_not_an_object_next_to_a_shredded_object_is_rejected() -> None:
    array = stored([{"value": text("a"), "typed_value": {"a": {"typed_value": 1}}}], "a INT")
    with pytest.raises(VariantError) as caught:
        values(array)
    assert (caught.value.rule, caught.value.row) == ("shredding.object.residual-kind", 0)


@pytest.mark.spec("shredding.layout.required")
def test_optional_field_group_is_missing_and_rejected_on_request() -> None:
    typed = pa.struct([("a", pa.struct([("value", pa.binary()), ("typed_value", pa.int32())]))])
    type = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", typed)])
    array = pa.array([{"metadata": METADATA, "value": None, "typed_value": {"a": None}}], type)
    assert values(array) == [fields()]
    with pytest.raises(VariantError) as caught:
        values(array, strict=True)
    assert caught.value.rule == "shredding.layout.required"


@pytest.mark.spec("shredding.compat.schemas")
def test_chunks_of_one_schema_are_returned_as_chunks() -> None:
    array = stored([{"value": None, "typed_value": 1}, {"value": text("x"), "typed_value": None}], "INT")
    chunked = pa.chunked_array([array.slice(0, 1), array.slice(1), array.slice(2)])
    rebuilt = variant.unshred(chunked)
    assert isinstance(rebuilt, pa.ChunkedArray)
    assert [row["value"] for row in rebuilt.to_pylist()] == [integer(1), text("x")]


@pytest.mark.parametrize(
    ("value", "typed", "rule"),
    [
        (b"", None, "variant.value.layout"),
        (integer(1) + b"\0", None, "variant.value.layout"),
        (b"\x02\x01\x01\x00\x01\x00\x00", {"a": {}}, "variant.value.layout"),
        (b"\x02\x01\x09\x00\x01\x00", {"a": {}}, "variant.object.field-id"),
        (b"\x02\x02\x02\x01\x00\x01\x02\x00\x00", {"a": {}}, "variant.object.order"),
    ],
)
def test_invalid_residuals_are_rejected(value: bytes, typed: Any, rule: str) -> None:
    array = stored([{"value": value, "typed_value": typed}], "a INT")
    with pytest.raises(VariantError) as caught:
        variant.unshred(array)
    assert caught.value.rule == rule


def test_overlapping_residual_fields_cannot_multiply_the_output() -> None:
    inner = reference.primitive("binary", b"x" * 200)
    names = [f"n{i:03}" for i in range(100)]
    ids = bytes(range(100))
    size = len(inner).to_bytes(2, "little")
    overlapping = bytes([2 | 1 << 2, 100]) + ids + b"\0\0" * 100 + size + inner
    array = stored([{"value": overlapping, "typed_value": {"a": {}}}], "a INT", reference.encode_metadata(names))
    with pytest.raises(VariantError) as caught:
        variant.unshred(array)
    assert caught.value.rule == "variant.container.extent"


@fewer
@given(st.data(), schemas(), variants())
def test_corrupt_residuals_raise_a_typed_error_or_pass(
    data: st.DataObject, schema: ShreddingSchema, row: tuple[bytes, bytes]
) -> None:
    if isinstance(schema, Untyped):
        return
    damaged = bytearray(row[1])
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    names = reference.decode_metadata(row[0])
    columns = reference.shred(reference.decode(row[1], names), schema)
    columns["value"] = bytes(damaged)
    with suppress(ValueError):
        variant.unshred(pa.array([{"metadata": row[0], **columns}], storage_struct(schema)))
