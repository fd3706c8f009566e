"""The metadata structures are those of the format, and behave as plain values."""

from __future__ import annotations

import copy
import pickle
import re
from enum import IntEnum
from typing import Any

import pytest

from pqext.core.format import enums, metadata
from pqext.core.format.metadata import Encoding, KeyValue, LogicalType, RowGroup, StringType, Type, VariantType
from pqext.core.format.thrift import Field, Struct, Union, encode
from reference.thrift_package import FORMAT

wrongly: Any = metadata  # for what a type checker would not let through

STRUCTS: dict[str, type[Struct]] = {
    name: value
    for name, value in vars(metadata).items()
    if isinstance(value, type) and issubclass(value, Struct) and value not in (Struct, Union)
}


def described(field: Field) -> str:
    """The field's type in the words of the format's list."""
    if isinstance(field.type, str):
        name = field.type
    else:
        name = f"enum {field.type.__name__}" if issubclass(field.type, IntEnum) else field.type.__name__
    return f"list<{name}>" if field.is_list else name


def test_classes_match_the_structures_of_the_format() -> None:
    assert STRUCTS.keys() == FORMAT["structs"].keys()


@pytest.mark.parametrize("name", FORMAT["structs"])
def test_structure_has_the_fields_of_the_format(name: str) -> None:
    cls, expected = STRUCTS[name], FORMAT["structs"][name]
    assert issubclass(cls, Union) == (expected["kind"] == "union")
    assert [(f.id, f.name, described(f), f.required) for f in cls.fields] == [
        (f["id"], f["name"], f["type"], f["requirement"] == "required") for f in expected["fields"]
    ]


@pytest.mark.parametrize("name", STRUCTS)
def test_annotations_match_the_declared_fields(name: str) -> None:
    python = {"bool": "bool", "double": "float", "binary": "bytes", "string": "str"}
    cls = STRUCTS[name]
    for field in cls.fields:
        kind = re.sub(r"list<|>|enum ", "", described(field))
        expected = python.get(kind, "int" if re.fullmatch(r"i\d+", kind) else kind)
        if hasattr(enums, kind):
            expected += " | int"
        if field.is_list:
            expected = f"Sequence[{expected}]"
        assert cls.__annotations__[field.name] == expected + ("" if field.required else " | None")


@pytest.mark.parametrize("name", FORMAT["enums"])
def test_enumeration_has_the_values_of_the_format(name: str) -> None:
    assert {member.name: member.value for member in getattr(metadata, name)} == FORMAT["enums"][name]


def test_optional_fields_default_to_none() -> None:
    assert KeyValue(key="k").value is None


def test_required_field_must_be_passed() -> None:
    with pytest.raises(TypeError, match=r"KeyValue\.key is required"):
        wrongly.KeyValue()


def test_unknown_field_is_rejected() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'wrong'"):
        wrongly.KeyValue(key="k", wrong=1)
    with pytest.raises(AttributeError):
        wrongly.KeyValue(key="k").wrong = 1


def test_union_accepts_one_member_and_names_it() -> None:
    assert LogicalType(STRING=StringType()).member == "STRING"
    assert LogicalType(unknown=((99, 12, b"\x00"),)).member is None
    with pytest.raises(TypeError, match="takes one member"):
        LogicalType(STRING=StringType(), VARIANT=VariantType())


def test_equality_considers_class_fields_and_unknown_fields() -> None:
    assert KeyValue(key="k", value="v") == KeyValue(key="k", value="v")
    assert KeyValue(key="k") != KeyValue(key="k", value="v")
    assert KeyValue(key="k") != KeyValue(key="k", unknown=((7, 1, b""),))
    assert metadata.MilliSeconds() != metadata.MicroSeconds()


def test_repr_omits_unset_fields() -> None:
    assert repr(KeyValue(key="k")) == "KeyValue(key='k')"
    assert repr(KeyValue(key="k", unknown=((7, 1, b""),))) == "KeyValue(key='k', unknown=((7, 1, b''),))"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_structures_are_copied_and_pickled_by_value(duplicate: Any) -> None:
    value = LogicalType(VARIANT=VariantType(specification_version=1, unknown=((7, 1, b""),)))
    assert duplicate(value) == value
    assert duplicate(value) is not value


@pytest.mark.parametrize(
    ("struct", "message"),
    [
        (RowGroup(columns=[], total_byte_size=1 << 63, num_rows=0), r"RowGroup\.total_byte_size: .* 64 bits"),
        (RowGroup(columns=[], total_byte_size=0, num_rows=0, ordinal=1 << 15), r"RowGroup\.ordinal: 32768 .* 16 bits"),
        (VariantType(specification_version=-129), r"VariantType\.specification_version: -129 .* 8 bits"),
        (metadata.TimeType(isAdjustedToUTC=True, unit=metadata.TimeUnit()), "TimeUnit must have exactly one member"),
    ],
)
def test_value_out_of_range_is_named_on_write(struct: Struct, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode(struct)


@pytest.mark.parametrize(
    ("struct", "message"),
    [
        (wrongly.KeyValue(key=5), r"KeyValue\.key cannot have type int"),
        (wrongly.Statistics(min_value="text"), r"Statistics\.min_value cannot have type str"),
        (wrongly.BoundingBox(xmin="0", xmax=0, ymin=0, ymax=0), r"BoundingBox\.xmin cannot have type str"),
        (wrongly.RowGroup(columns=[KeyValue(key="k")], total_byte_size=0, num_rows=0), "expected ColumnChunk, got Key"),
        (wrongly.RowGroup(columns=iter(()), total_byte_size=0, num_rows=0), r"RowGroup\.columns must be a list"),
        (wrongly.SchemaElement(name="c", type=1.5), "integer"),
    ],
)
def test_value_of_the_wrong_type_is_named_on_write(struct: Struct, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        encode(struct)


def test_deleted_required_field_is_named_on_write() -> None:
    pair = wrongly.KeyValue(key="k")
    pair.key = None
    with pytest.raises(ValueError, match=r"KeyValue\.key is required"):
        encode(pair)


def test_enumerations_are_integers() -> None:
    assert int(Type.INT64) == 2
    assert Encoding(8) is Encoding.RLE_DICTIONARY
