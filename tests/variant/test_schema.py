"""Shredding schemas read from DDL, Arrow types, Spark types and storage structs, and write as storage structs."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.variant.shredding.schema import (
    MAX_DEPTH,
    MAX_NODES,
    Array,
    Object,
    Primitive,
    ShreddingSchema,
    Untyped,
    leaf_type,
    schema_of_storage,
    shredding_schema,
    storage_struct,
)
from pqext.variant.types import is_shredded_type, is_variant_type
from reference.pace import SLOWER
from reference.variant_strategies import schemas

EVENT = Object(
    (
        ("mag", Primitive(pa.decimal128(9, 2))),
        ("place", Primitive(pa.string())),
        ("tags", Array(Primitive(pa.int64()))),
        ("rest", Untyped()),
    )
)


@pytest.mark.parametrize(
    "text",
    [
        "mag DECIMAL(9,2), place STRING, tags ARRAY<BIGINT>, rest VARIANT",
        "mag: decimal(9, 2), place: string, tags: array<long>, rest: variant",
        "STRUCT<mag: NUMERIC(9,2), place: STRING, tags: ARRAY<BIGINT>, rest: VARIANT>",
        "`mag` DEC(9,2) NOT NULL, place VARCHAR COMMENT 'where, roughly', tags ARRAY<BIGINT>,\n rest VARIANT",
        "struct<mag:decimal(9,2),place:text,tags:array<bigint>,rest:variant>",
    ],
)
def test_ddl_is_a_field_list_or_one_type(text: str) -> None:
    assert shredding_schema(text) == EVENT


@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("BOOLEAN", pa.bool_()),
        ("TINYINT", pa.int8()),
        ("SMALLINT", pa.int16()),
        ("INT", pa.int32()),
        ("BIGINT", pa.int64()),
        ("FLOAT", pa.float32()),
        ("DOUBLE", pa.float64()),
        ("DECIMAL(9,4)", pa.decimal128(9, 4)),
        ("DECIMAL(18,4)", pa.decimal128(18, 4)),
        ("DECIMAL(38,4)", pa.decimal128(38, 4)),
        ("DATE", pa.date32()),
        ("TIME", pa.time64("us")),
        ("TIMESTAMP", pa.timestamp("us", "UTC")),
        ("TIMESTAMP_NS", pa.timestamp("ns", "UTC")),
        ("TIMESTAMP_NTZ", pa.timestamp("us")),
        ("TIMESTAMP_NTZ_NS", pa.timestamp("ns")),
        ("BINARY", pa.binary()),
        ("STRING", pa.string()),
        ("UUID", pa.binary(16)),
    ],
)
@pytest.mark.spec("shredding.types")
def test_every_primitive_type_has_a_name_and_an_arrow_type(name: str, type: pa.DataType) -> None:
    schema = shredding_schema(name)
    assert schema == Primitive(type) == shredding_schema(type)
    assert str(schema) == name
    stored = storage_struct(schema).field("typed_value")
    assert stored.type == type
    assert stored.nullable
    assert ((stored.metadata or {}).get(b"ARROW:extension:name") == b"arrow.uuid") == (name == "UUID")
    assert (
        shredding_schema(f"{name.lower()} {name}") == Object(((name.lower(), Primitive(type)),))
        if ("(" not in name)
        else True
    )


def test_type_name_may_be_a_field_name() -> None:
    assert shredding_schema("date BIGINT, time TIME") == Object(
        (("date", Primitive(pa.int64())), ("time", Primitive(pa.time64("us"))))
    )
    assert shredding_schema("`a``b` INT") == Object((("a`b", Primitive(pa.int32())),))
    assert shredding_schema("DECIMAL") == Primitive(pa.decimal128(10, 0))
    assert shredding_schema("TIME(6)") == Primitive(pa.time64("us"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "position 0: expected a type, found 'the end' .write fields like 'mag DECIMAL"),
        ("a", "position 0: A is not a type"),
        ("a INT,", "position 6: expected a field name"),
        ("a INT b", "position 6: unexpected 'b'"),
        ("a-b INT", "position 1: unexpected '-'"),
        ("MAP<STRING, INT>", "position 0: a variant has no maps"),
        ("a STRUCT<>", "position 9: expected a field name"),
        ("a ARRAY<INT", "position 11: expected >"),
        ("a UINT", "position 2: UINT is not a type"),
        ("t DECMAL(9,2)", "'t DECMAL.9,2.', position 2: DECMAL is not a type; did you mean 'DECIMAL'. The types"),
        ("a INT128", "did you mean 'INT'.*BIGINT, .*UUID, STRUCT<name: type, ...>, ARRAY<type> and VARIANT"),
        (f"a INT, {'b' * 5000} ?", r"'\.\.\.b{149} \?', position 5008: unexpected"),
        ("a DECIMAL(40,1)", "precision must be 1 to 38"),
        ("a DECIMAL(5,6)", "scale 0 to precision"),
        ("a DECIMAL(x)", "position 10: expected a number"),
        ("a INT(3)", "accepts no arguments"),
        ("a TIME(7)", "accepts no arguments"),
        ("a INT NOT", "expected NULL"),
        ("a INT COMMENT b", "expected the text"),
        ("a INT, a STRING", "duplicate field 'a'"),
        ("ARRAY<" * (MAX_DEPTH + 2) + "INT" + ">" * (MAX_DEPTH + 2), "levels deep"),
    ],
)
def test_invalid_ddl_is_rejected_with_its_position(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        shredding_schema(text)


def test_long_ddl_takes_linear_time() -> None:
    wide = ", ".join(f"field_{i} INT" for i in range(MAX_NODES - 1))
    for text, reason in ((f"{wide}, b INT", "more than"), ("," * 500_000, "position 0"), ("a" + " " * 500_000, "type")):
        started = time.process_time()
        with pytest.raises(ValueError, match=reason):
            shredding_schema(text)
        assert time.process_time() - started < 5 * SLOWER
    assert len(shredding_schema(wide).fields) == MAX_NODES - 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    ["a " + "b" * 1_000_000, "`" + "x" * 1_000_000 + "` INT", "DECIMAL(" + "9" * 1_000_000, "DECIMAL(" + "1," * 9_999],
)
def test_errors_quote_part_of_long_ddl(text: str) -> None:
    with pytest.raises(ValueError, match=r"position|duplicate field") as caught:
        shredding_schema(f"{text}, {text}")
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize("text", ["a DECIMAL(²,1)", "a DECIMAL(٣,1)"])
def test_only_ascii_digits_are_accepted(text: str) -> None:
    with pytest.raises(ValueError, match="position 10"):
        shredding_schema(text)


def test_error_for_a_bare_name_shows_the_field_syntax() -> None:
    with pytest.raises(ValueError, match="a field is written with its type, like 'event STRING'"):
        shredding_schema("event")


def test_names_must_be_valid_utf8() -> None:
    with pytest.raises(ValueError, match="cannot be encoded as UTF-8"):
        shredding_schema("`a\ud800` INT")
    assert str(shredding_schema("`` INT, `a``b` INT")) == "STRUCT<``: INT, `a``b`: INT>"


@pytest.mark.parametrize(
    "form",
    [
        {"type": "struct"},
        {"type": "struct", "fields": 5},
        {"type": "struct", "fields": [{"type": "integer"}]},
        {"type": "array"},
        {"type": "map", "keyType": "string", "valueType": "string"},
        5,
    ],
)
def test_invalid_spark_json_is_rejected(form: Any) -> None:
    class Type:
        def jsonValue(self) -> Any:
            return form

    with pytest.raises(ValueError, match=r"Spark type .* (cannot be shredded|is not a result of jsonValue)"):
        shredding_schema(Type())


def test_arrow_types_are_accepted_as_schemas() -> None:
    assert (
        shredding_schema(
            pa.struct(
                [
                    pa.field("mag", pa.decimal128(9, 2)),
                    pa.field("place", pa.large_string()),
                    pa.field("tags", pa.large_list(pa.int64())),
                    pa.field("rest", pa.null()),
                ]
            )
        )
        == EVENT
    )
    assert leaf_type(pa.dictionary(pa.int32(), pa.string())) == pa.string()
    assert leaf_type(pa.uuid()) == pa.binary(16)
    assert leaf_type(pa.timestamp("us", "Europe/Paris")) == pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    "type",
    [
        pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        pa.float16(), pa.timestamp("ms"), pa.time32("ms"), pa.time64("ns"), pa.date64(),
        pa.decimal256(60, 2), pa.decimal128(5, -2), pa.decimal128(5, 7), pa.binary(4),
        pa.map_(pa.string(), pa.int32()), pa.duration("us"),
    ],
)  # fmt: skip
@pytest.mark.spec("shredding.types")
def test_types_outside_the_table_are_rejected(type: pa.DataType) -> None:
    with pytest.raises(ValueError, match="cannot be a shredded type"):
        shredding_schema(type)
    with pytest.raises(VariantError) as caught:
        schema_of_storage(pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", type)]))
    assert caught.value.rule == "shredding.types"


class SparkType:
    """Has what a Spark type has, as far as it is looked at."""

    def __init__(self, form: Any) -> None:
        self.form = form

    def jsonValue(self) -> Any:
        return self.form


def test_spark_types_are_accepted_as_schemas() -> None:
    fields = [
        {"name": "mag", "type": "decimal(9,2)", "nullable": True, "metadata": {}},
        {"name": "place", "type": "string", "nullable": False, "metadata": {}},
        {"name": "tags", "type": {"type": "array", "elementType": "long", "containsNull": True}, "nullable": True},
        {"name": "rest", "type": "variant", "nullable": True, "metadata": {}},
    ]
    assert shredding_schema(SparkType({"type": "struct", "fields": fields})) == EVENT
    assert shredding_schema(SparkType("timestamp_ntz")) == Primitive(pa.timestamp("us"))
    with pytest.raises(ValueError, match="cannot be shredded"):
        shredding_schema(SparkType({"type": "map", "keyType": "string", "valueType": "string"}))
    with pytest.raises(TypeError, match="not int"):
        shredding_schema(3)


@given(schemas())
def test_schema_round_trips_through_ddl_and_storage_struct(schema: ShreddingSchema) -> None:
    assert shredding_schema(str(schema)) == schema
    struct = storage_struct(schema)
    assert schema_of_storage(struct) == shredding_schema(struct) == schema
    assert is_variant_type(struct) if isinstance(schema, Untyped) else is_shredded_type(struct)


@pytest.mark.spec(
    "shredding.layout.by-name", "shredding.layout.optional", "shredding.object.required", "shredding.array.list"
)
def test_storage_struct_has_the_layout_of_the_specification() -> None:
    struct = storage_struct(EVENT)
    assert [(child.name, child.nullable) for child in struct] == [
        ("metadata", False),
        ("value", True),
        ("typed_value", True),
    ]
    assert struct.field("metadata").metadata == {b"pqext:variant": b"1"}
    typed = struct.field("typed_value").type
    assert [(child.name, child.nullable) for child in typed] == [
        ("mag", False), ("place", False), ("tags", False), ("rest", False),
    ]  # fmt: skip
    assert [child.name for child in typed.field("rest").type] == ["value"]
    tags = typed.field("tags").type.field("typed_value").type
    assert (tags.value_field.name, tags.value_field.nullable) == ("element", False)
    shuffled = pa.struct([struct.field(i) for i in (2, 0, 1)])
    assert schema_of_storage(shuffled) == EVENT


@pytest.mark.spec("shredding.layout.by-name")
def test_storage_members_are_found_in_any_order() -> None:
    member = pa.struct([("typed_value", pa.int32()), ("value", pa.binary())])
    struct = pa.struct([("typed_value", pa.struct([("a", member)])), ("value", pa.binary()), ("metadata", pa.binary())])
    assert schema_of_storage(struct) == shredding_schema("a INT")


MEMBER = pa.struct([("value", pa.binary())])


@pytest.mark.parametrize(
    ("type", "rule"),
    [
        (pa.struct([("value", pa.binary())]), "shredding.layout.group"),
        (pa.struct([("metadata", pa.string()), ("value", pa.binary())]), "shredding.layout.group"),
        (pa.struct([("metadata", pa.binary()), ("value", pa.int32())]), "shredding.layout.group"),
        (
            pa.struct([("metadata", pa.binary()), ("typed_value", pa.struct([("a", pa.int32())]))]),
            "shredding.layout.member",
        ),
        (
            pa.struct([("metadata", pa.binary()), ("typed_value", pa.struct([("a", pa.struct([]))]))]),
            "shredding.layout.member",
        ),
        *(
            (
                pa.struct([("metadata", pa.binary()), ("typed_value", pa.struct([("a", pa.struct(member))]))]),
                "shredding.layout.member",
            )
            for member in (
                [("value", pa.binary()), ("extra", pa.int32())],
                [("typed_value", pa.int32()), ("metadata", pa.binary())],
                [("value", pa.binary()), ("value", pa.binary())],
            )
        ),
        (
            pa.struct([("metadata", pa.binary()), ("typed_value", pa.list_(pa.struct([("value", pa.string())])))]),
            "shredding.layout.value",
        ),
        (pa.struct([("metadata", pa.binary()), ("typed_value", pa.struct([]))]), "shredding.object.group"),
        (
            pa.struct([("metadata", pa.binary()), ("typed_value", pa.struct([("a", MEMBER), ("a", MEMBER)]))]),
            "shredding.object.group",
        ),
    ],
)
@pytest.mark.spec(
    "shredding.layout.group", "shredding.layout.member", "shredding.layout.value", "shredding.object.group"
)
def test_structs_that_are_not_variant_storage_are_rejected(type: pa.DataType, rule: str) -> None:
    with pytest.raises(VariantError) as caught:
        schema_of_storage(type)
    assert caught.value.rule == rule


def test_object_field_names_are_unique() -> None:
    with pytest.raises(ValueError, match="at least one field"):
        Object(())
    assert "mag: DECIMAL(9,2)" in EVENT.explain()
    assert variant.shredding_schema(EVENT) is EVENT
