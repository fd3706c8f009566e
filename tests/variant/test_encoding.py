"""Single values: every type, every layout, against the reference and the published examples."""

from __future__ import annotations

import datetime
import json
import os
import struct
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from pqext import variant
from pqext.core.base.errors import UnsupportedError, VariantError
from pqext.variant import Variant, encoding
from pqext.variant.binary_value import EMPTY_METADATA, Metadata, encode_metadata, walk
from pqext.variant.encoding import PrimitiveType, ScaledDecimal
from reference import variant_value as reference

FOLDER = Path(os.environ.get("PARQUET_TEST_DATA", "")) / "variant"
PUBLISHED = sorted(path.stem for path in FOLDER.glob("*.value"))


def tagged(given: Variant) -> reference.Value:
    """A variant in the reference's form, read through the events of a walk."""
    built: list[list[Any]] = [[]]
    for event, data in walk(given):
        if event in ("{", "["):
            built.append([event])
        elif event == "]":
            kind, *parts = built.pop()
            if kind == "[":
                built[-1].append(("array", parts))
            else:
                built[-1].append(("object", dict(zip(parts[::2], parts[1::2], strict=True))))
        elif event == "":
            built[-1].append(data)
        else:
            assert isinstance(event, PrimitiveType)
            name = event.name.lower()
            if isinstance(data, ScaledDecimal):
                data = (data.unscaled, data.scale)
            elif isinstance(data, uuid.UUID):
                data = data.bytes
            built[-1].append((name, None if name in ("true", "false") else data))
    return built[0][0]


def equal(a: reference.Value, b: reference.Value) -> bool:
    """Equality that tells NaN and -0.0 apart and does not look at the order of fields."""
    return repr(ordered(a)) == repr(ordered(b))


def ordered(value: reference.Value) -> reference.Value:
    kind, data = value
    if kind == "object":
        return kind, [(name, ordered(data[name])) for name in sorted(data)]
    return kind, list(map(ordered, data)) if kind == "array" else data


@pytest.mark.spec(
    "variant.metadata.layout",
    "variant.metadata.offset-size",
    "variant.value.header",
    "variant.primitive.ids",
    "variant.primitive.integers",
    "variant.primitive.floats",
    "variant.primitive.decimals",
    "variant.primitive.times",
    "variant.primitive.bytes",
    "variant.primitive.uuid",
    "variant.object.header",
    "variant.array.header",
    "variant.container.wider",
    "variant.object.values",
    "variant.header.reserved",
    "variant.metadata.reserved",
)
@given(reference.VALUES, reference.LAYOUTS)
def test_every_type_and_layout_matches_the_reference(
    value: reference.Value, layout: reference.Layout
) -> None:
    metadata, data = reference.encode(value, layout)
    assert equal(reference.decode(metadata, data), value)
    assert equal(tagged(Variant(data, metadata)), value)


@pytest.mark.spec("variant.primitive.uuid")
def test_uuid_is_big_endian() -> None:
    identifier, data = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), bytes(range(0, 256, 17))
    assert Variant.from_python(identifier).value == b"\x50" + data
    assert Variant(b"\x50" + data, b"\x11\0\0").to_python() == identifier


@pytest.mark.spec("variant.primitive.times")
def test_dates_and_times_count_from_1970_and_midnight() -> None:
    for moment, kind, number in (
        (datetime.date(1970, 1, 3), 11, struct.pack("<i", 2)), (datetime.date(1969, 12, 31), 11, struct.pack("<i", -1)),
        (datetime.time(0, 0, 1, 2), 17, struct.pack("<q", 1_000_002)),
        (datetime.datetime(1970, 1, 2), 13, struct.pack("<q", 86_400_000_000)),
        (datetime.datetime(1969, 12, 31, 23, 59, 59, tzinfo=datetime.UTC), 12, struct.pack("<q", -1_000_000)),
    ):
        found = Variant.from_python(moment)
        assert found.value == bytes([kind << 2]) + number
        assert found.to_python() == moment
    assert Variant(bytes([19 << 2]) + struct.pack("<q", 1), b"\x11\0\0").to_json() == (
        '"1970-01-01 00:00:00.000000001"'
    )


@pytest.mark.skipif(not PUBLISHED, reason="PARQUET_TEST_DATA does not name the parquet-testing folder")
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_values_are_read_as_documented(name: str) -> None:
    metadata, data = ((FOLDER / f"{name}.{part}").read_bytes() for part in ("metadata", "value"))
    given = Variant(data, metadata)
    assert equal(tagged(given), reference.decode(metadata, data))
    # The published dictionary ends with a comma after its last entry.
    expected = json.loads(
        (FOLDER / "data_dictionary.json").read_text("utf-8").rstrip().removesuffix("}").rstrip(",\n") + "}"
    )
    if name == "long_string" and name not in expected:
        expected[name] = data[5:].decode()  # the dictionary leaves it out
    if name not in expected:
        return
    match given.type:
        case "timestamp":
            assert given.to_json() == '"2025-04-16 16:34:56.78+00:00"'
        case "timestamp_ntz_nanos":
            assert given.to_json() == '"2024-11-07 12:33:54.123456789"'
        case "float":
            assert np.float32(json.loads(given.to_json())) == np.float32(expected[name])
        case _:
            assert json.loads(given.to_json()) == expected[name]


@pytest.mark.skipif(not PUBLISHED, reason="PARQUET_TEST_DATA does not name the parquet-testing folder")
def test_every_published_file_is_read() -> None:
    parts = {f"{name}.{part}" for name in PUBLISHED for part in ("metadata", "value")}
    assert {path.name for path in FOLDER.iterdir() if path.suffix in (".metadata", ".value")} == parts


@pytest.mark.spec("variant.primitive.floats", "variant.primitive.ids")
def test_each_primitive_has_its_type_id_and_size() -> None:
    examples = {
        "null": ("00", None), "true": ("04", True), "false": ("08", False), "int8": ("0cff", -1),
        "int16": ("100100", 1), "int32": ("14feffffff", -2), "int64": ("180000000000000080", -(2**63)),
        "double": ("1c000000000000f03f", 1.0), "decimal4": ("2002d2040000", ScaledDecimal(1234, 2)),
        "decimal8": ("2426ffffffffffffffff", ScaledDecimal(-1, 38)),
        "decimal16": ("280000000000000000000000000000000080", ScaledDecimal(-(2**127), 0)),
        "date": ("2c01000000", 1), "timestamp": ("30ffffffffffffffff", -1),
        "timestamp_ntz": ("340000000000000001", 2**56),
        "float": ("380000803f", 1.0), "binary": ("3c02000000ff00", b"\xff\x00"), "string": ("4000000000", ""),
        "time_ntz": ("44ff5fd71d14000000", 86_399_999_999), "timestamp_nanos": ("48ffffffffffffff7f", 2**63 - 1),
        "timestamp_ntz_nanos": ("4c0100000000000000", 1),
        "uuid": ("50" + "00112233445566778899aabbccddeeff", uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")),
    }  # fmt: skip
    assert list(examples) == sorted(examples, key=reference.TYPES.index)
    for number, (name, (encoded, data)) in enumerate(examples.items()):
        value = bytes.fromhex(encoded)
        assert value[0] == number << 2
        assert encoding.value_size(value, 0, len(value)) == len(value)
        kind, decoded = encoding.decode_primitive(value, 0, len(value))
        assert (kind.name.lower(), decoded) == (name, data)
        if name not in ("decimal16", "string"):
            assert encoding.encode_primitive(kind, data) == value


@pytest.mark.spec("variant.short-string.length", "variant.short-string.same")
@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 1000])
def test_strings_up_to_63_bytes_are_short_and_equal_in_both_encodings(length: int) -> None:
    text = "x" * length
    short = Variant.from_python(text)
    assert (
        short.value
        == (bytes([1 | length << 2]) if length < 64 else b"\x40" + struct.pack("<I", length)) + text.encode()
    )
    long = Variant(b"\x40" + struct.pack("<I", length) + text.encode(), EMPTY_METADATA)
    assert short.type == long.type == "string"
    assert short == long
    assert hash(short) == hash(long)
    assert short.to_python() == long.to_python() == text


@pytest.mark.spec("variant.container.count")
@pytest.mark.parametrize("count", [0, 1, 255, 256, 1000])
def test_containers_over_255_children_are_large(count: int) -> None:
    array = Variant.from_python([None] * count)
    assert bool(array.value[0] & 0x10) == (count > 255)
    object = Variant.from_python({f"{i:04}": None for i in range(count)})
    assert bool(object.value[0] & 0x40) == (count > 255)
    assert reference.decode(array.metadata, array.value) == ("array", [("null", None)] * count)
    assert reference.decode(object.metadata, object.value)[1].keys() == {f"{i:04}" for i in range(count)}
    assert len(array) == len(object) == count


@pytest.mark.spec("variant.metadata.version")
@pytest.mark.parametrize("version", [0, 2, 15])
def test_other_versions_are_rejected(version: int) -> None:
    with pytest.raises(VariantError, match="version") as caught:
        Variant(b"\x00", bytes([version, 0, 0]))
    assert caught.value.rule == "variant.metadata.version"
    with pytest.raises(VariantError, match="version"):
        Metadata(bytes([version, 0, 0]))


@pytest.mark.spec("variant.metadata.offsets", "variant.metadata.layout", "variant.utf8")
@pytest.mark.parametrize(
    ("data", "rule", "offset"),
    [
        ("", "variant.metadata.layout", 0),
        ("01", "variant.metadata.layout", 1),
        ("0101", "variant.metadata.layout", 2),
        ("010100", "variant.metadata.layout", 3),
        ("01010001", "variant.metadata.layout", 4),
        ("0102000201" + "6161", "variant.metadata.offsets", 2),
        ("0101010161", "variant.metadata.offsets", 2),
        ("01010002" + "61ff", "variant.utf8", 5),
        ("c1ffffffff", "variant.metadata.layout", 5),
    ],
)
def test_invalid_metadata_is_rejected_with_rule_and_offset(data: str, rule: str, offset: int) -> None:
    with pytest.raises(VariantError) as caught:
        Metadata(bytes.fromhex(data))
    assert (caught.value.rule, caught.value.offset) == (rule, offset)


@pytest.mark.parametrize("position", [0, 3])
@pytest.mark.parametrize(
    ("data", "rule", "offset"),
    [  # Truncated values end where their data should continue; other faults are at the first wrong byte.
        ("0c", "variant.value.layout", 1),
        ("1800", "variant.value.layout", 2),
        ("0d6162", "variant.value.layout", 3),
        ("400500", "variant.value.layout", 3),
        ("40050000", "variant.value.layout", 4),
        ("40030000006162", "variant.value.layout", 7),
        ("0000", "variant.value.layout", 0),
        ("202700000000", "variant.decimal.scale", 1),
        ("09" + "61ff", "variant.utf8", 2),
        ("4002000000" + "61ff", "variant.utf8", 6),
        ("03", "variant.value.layout", 1),
        ("0302" + "0001", "variant.value.layout", 4),
        ("0301" + "0002" + "00", "variant.value.layout", 5),
        ("0301" + "0101" + "00", "variant.container.offsets", 5),
        ("0302" + "000101" + "00", "variant.container.offsets", 6),
        ("0301" + "0001" + "0c", "variant.value.layout", 5),
        ("0202" + "0001" + "000001" + "00", "variant.container.extent", 7),
    ],
)
def test_invalid_value_is_rejected_with_rule_and_offset(data: str, rule: str, offset: int, position: int) -> None:
    value = bytes(position) + bytes.fromhex(data)

    def decode() -> object:
        if value[position] & 3 < 2:
            return encoding.decode_primitive(value, position, len(value))
        return list(encoding.children(value, encoding.open_container(value, position, len(value))))

    with pytest.raises(VariantError) as caught:
        decode()
    assert (caught.value.rule, caught.value.offset) == (rule, position + offset)


@pytest.mark.spec("variant.metadata.sorted")
def test_unsorted_dictionary_is_not_binary_searched() -> None:
    value = ("object", {"a": ("int8", 1), "b": ("int8", 2)})
    metadata, data = reference.encode(value, reference.Layout(sorted_dictionary=False))
    assert not Metadata(metadata).is_sorted
    assert Metadata(metadata).names == ("b", "a")
    given = Variant(data, metadata)
    assert given["a"].to_python() == 1
    assert given.keys() == ["a", "b"]


@pytest.mark.spec("variant.metadata.sorted", "variant.metadata.offset-size", "variant.utf8")
@pytest.mark.parametrize(("count", "size"), [(0, 1), (1, 1), (255, 2), (256, 2), (22_000, 3)])
def test_written_metadata_is_sorted_and_minimal(count: int, size: int) -> None:
    names = [f"é{i}" for i in range(count)]
    data = encode_metadata([*names, *names])
    assert data == reference.encode_metadata(sorted(names, key=str.encode), True)
    assert data[0] >> 6 == size - 1
    assert encode_metadata(["\U00010000", "\uffff"])[-7:] == "\uffff\U00010000".encode()


@pytest.mark.spec("variant.object.case")
def test_field_names_are_case_sensitive() -> None:
    given = Variant.from_python({"A": 1, "a": 2})
    assert given["A"].to_python() == 1
    assert given["a"].to_python() == 2


@pytest.mark.spec("variant.value.nested")
def test_nested_value_with_the_full_metadata_is_a_variant() -> None:
    given = Variant.from_python({"x": [{"y": [1, {"z": "deep"}]}]})
    inner = given["x"][0]["y"][1]
    assert inner.metadata == given.metadata
    assert Variant(inner.value, inner.metadata).to_python() == {"z": "deep"}


@pytest.mark.spec("variant.version.new-types")
def test_unknown_type_leaves_other_values_readable() -> None:
    unknown = bytes([21 << 2]) + b"later"
    metadata = encode_metadata(["a", "b", "c"])
    fields = [(0, b"\x0c\x01"), (1, unknown), (2, b"\x0c\x03")]
    given = Variant(encoding.encode_object(fields, 3), metadata)
    assert given["a"].to_python() == 1
    assert given["c"].to_python() == 3
    assert given["b"].type == "unknown primitive 21"
    assert given["b"].value == unknown
    assert given == Variant(given.value, metadata)
    with pytest.raises(UnsupportedError, match="unknown primitive 21"):
        given.to_python()
    with pytest.raises(UnsupportedError, match="added later"):
        given.to_json()
    assert variant.get(pa_array(given), "$.c", "int64").to_pylist() == [3]


def pa_array(given: Variant) -> Any:
    import pyarrow as pa

    return pa.array([{"metadata": given.metadata, "value": given.value}], variant.variant_type())


@pytest.mark.spec("variant.decimal.scale", "variant.decimal.precision")
def test_decimals_use_the_narrowest_type_for_their_digits_and_scale() -> None:
    assert encoding.encode_decimal(ScaledDecimal(10**9 - 1, 9))[0] >> 2 == PrimitiveType.DECIMAL4
    assert encoding.encode_decimal(ScaledDecimal(10**9, 0))[0] >> 2 == PrimitiveType.DECIMAL8
    assert encoding.encode_decimal(ScaledDecimal(1, 10))[0] >> 2 == PrimitiveType.DECIMAL8
    assert encoding.encode_decimal(ScaledDecimal(10**18, 0))[0] >> 2 == PrimitiveType.DECIMAL16
    assert encoding.encode_decimal(ScaledDecimal(1 - 10**38, 38))[0] >> 2 == PrimitiveType.DECIMAL16
    for number in (ScaledDecimal(10**38, 0), ScaledDecimal(1, 39)):
        with pytest.raises(ValueError, match="does not fit"):
            encoding.encode_decimal(number)
    with pytest.raises(VariantError) as caught:
        Variant(b"\x20\x27\x01\x00\x00\x00", EMPTY_METADATA).to_python()
    assert caught.value.rule == "variant.decimal.scale"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (PrimitiveType.INT8, 128),
        (PrimitiveType.DATE, 2**31),
        (PrimitiveType.FLOAT, 1e300),
        (PrimitiveType.DECIMAL4, ScaledDecimal(10**9, 0)),
    ],
)
def test_data_out_of_range_of_its_type_is_rejected(kind: PrimitiveType, data: Any) -> None:
    with pytest.raises(ValueError, match="fit"):
        encoding.encode_primitive(kind, data)
