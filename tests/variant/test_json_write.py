"""Variants to JSON text, against the reference."""

from __future__ import annotations

import json
import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import UnsupportedError, VariantError
from pqext.variant import Variant
from reference import variant_json
from reference import variant_value as reference


def column(*pairs: tuple[bytes, bytes] | None) -> pa.Array:
    """A variant array of (metadata, value) pairs."""
    return pa.array([p and {"metadata": p[0], "value": p[1]} for p in pairs], variant.variant_type())


@given(st.lists(st.tuples(reference.VALUES, reference.LAYOUTS), max_size=4))
def test_every_value_matches_the_reference_writer(
    drawn: list[tuple[reference.Value, reference.Layout]],
) -> None:
    array = column(None, *(reference.encode(value, layout) for value, layout in drawn))
    assert variant.to_json(array).to_pylist() == [None, *(variant_json.write(value) for value, _ in drawn)]


@given(reference.VALUES)
def test_text_is_valid_json(value: reference.Value) -> None:
    (text,) = variant.to_json(column(reference.encode(value))).to_pylist()
    json.loads(text, parse_constant=lambda name: pytest.fail(name))


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("decimal4", (250, 2), "2.5"), ("decimal8", (-1000, 3), "-1"), ("decimal4", (0, 2), "0"),
        ("decimal16", (10**20, 2), "1000000000000000000"), ("decimal4", (100, 0), "100"),
        ("decimal4", (-5, 3), "-0.005"),
        ("decimal16", (-(10**38) + 1, 38), "-0." + "9" * 38),
        ("decimal16", (-(2**127), 0), str(-(2**127))), ("double", 1e16, "1e+16"),
        ("double", 1e15, "1000000000000000.0"),
        ("double", 5e-324, "5e-324"), ("double", -0.0, "-0.0"), ("double", 1e-5, "1e-05"), ("double", 0.0001, "0.0001"),
        ("double", 9007199254740993.0, "9007199254740992.0"), ("double", 2**-44, "5.684341886080802e-14"),
        ("double", math.nan, '"NaN"'), ("double", -math.inf, '"-Infinity"'), ("float", math.inf, '"Infinity"'),
        ("float", 0.1, "0.1"), ("float", 3.4028234663852886e38, "3.4028235e+38"), ("float", 1e-45, "1e-45"),
        ("date", 0, '"1970-01-01"'), ("date", -719_529, '"-0001-12-31"'), ("date", 2_932_897, '"+10000-01-01"'),
        ("date", 19_782, '"2024-02-29"'), ("date", -(2**31), '"-5877641-06-23"'),
        ("timestamp", 1_704_164_645_600_000, '"2024-01-02 03:04:05.6+00:00"'),
        ("timestamp", -1, '"1969-12-31 23:59:59.999999+00:00"'),
        ("timestamp_ntz", 0, '"1970-01-01 00:00:00"'), ("timestamp_nanos", 1, '"1970-01-01 00:00:00.000000001+00:00"'),
        ("timestamp_ntz", -(2**63), '"-290308-12-21 19:59:05.224192"'),
        ("time_ntz", 86_399_999_999, '"23:59:59.999999"'),
        ("binary", b"\x01\x02", '"AQI="'), ("binary", b"", '""'),
        ("uuid", bytes(range(16)), '"00010203-0405-0607-0809-0a0b0c0d0e0f"'),
        ("string", '\x00\x1f"\\/\n\u2028é', '"\\u0000\\u001f\\"\\\\/\\n\u2028é"'),
    ],
)  # fmt: skip
def test_scalars_have_the_expected_text(kind: str, data: object, text: str) -> None:
    assert variant.to_json(column(reference.encode((kind, data)))).to_pylist() == [text]


@given(st.lists(st.integers(0, 2**64 - 1).map(lambda n: n.to_bytes(8, "little")), min_size=1, max_size=50))
@example([struct.pack("<d", 2.0**n) for n in range(-1074, 1024)])
@example([struct.pack("<d", 10.0**n) for n in range(-323, 309)])
@example([struct.pack("<d", n / 100) for n in range(1000)])
def test_doubles_are_written_like_in_python(doubles: list[bytes]) -> None:
    values = [struct.unpack("<d", data)[0] for data in doubles]
    texts = variant.to_json(column(*((b"\x11\0\0", b"\x1c" + data) for data in doubles))).to_pylist()
    assert texts == [variant_json.write(("double", value)) for value in values]


@given(st.lists(st.integers(0, 2**32 - 1).map(lambda n: n.to_bytes(4, "little")), min_size=1, max_size=50))
@example([struct.pack("<f", 2.0**n) for n in range(-149, 128)])
def test_floats_are_written_with_the_shortest_digits(floats: list[bytes]) -> None:
    values = [struct.unpack("<f", data)[0] for data in floats]
    texts = variant.to_json(column(*((b"\x11\0\0", b"\x38" + data) for data in floats))).to_pylist()
    assert texts == [variant_json.write(("float", value)) for value in values]
    for text, value in zip(texts, values, strict=True):
        assert text.startswith('"') or np.float32(text) == np.float32(value)


@pytest.mark.spec("variant.group.metadata", "variant.group.value")
def test_missing_value_reads_as_a_variant_null() -> None:
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    assert variant.to_json(pa.array([{"metadata": b"\x11\0\0", "value": None}], kind)).to_pylist() == ["null"]
    with pytest.raises(VariantError, match="no metadata") as caught:
        variant.to_json(pa.array([{"metadata": None, "value": b"\0"}], kind))
    assert caught.value.rule == "variant.group.metadata"


@pytest.mark.spec("variant.object.order")
def test_fields_are_written_in_id_order() -> None:
    assert Variant.from_json('{"b":1,"a":2,"é":3,"Z":4}').to_json() == '{"Z":4,"a":2,"b":1,"é":3}'


@pytest.mark.parametrize(
    ("metadata", "value", "rule", "offset"),
    [
        (b"\x12\0\0", b"\0", "variant.metadata.version", None),
        (b"\x11\0\0", b"", "variant.value.layout", 0),
        (b"\x11\0\0", b"\0\0", "variant.value.layout", 0),
        (b"\x11\0\0", b"\x05", "variant.value.layout", 0),
        (b"\x11\0\0", b"\x05\xff", "variant.utf8", 0),
        (b"\x11\0\0", b"\x02\x01\x00\x00\x01\x00", "variant.object.field-id", 0),
        (b"\x11\0\0", b"\x20\x27\0\0\0\0", "variant.decimal.scale", 0),
        (b"\x11\0\0", b"\x44\xff\xff\xff\xff\xff\xff\xff\xff", "variant.time.range", 0),
        (b"\x01\x01\x00\x01\xff", b"\x02\x01\x00\x00\x01\x00", "variant.utf8", 0),
        (b"\x11\0\0", b"\x03\x02\x00\x00\x01\x00", "variant.container.extent", None),
    ],
)
@pytest.mark.spec("variant.container.extent", "variant.time.range", "variant.group.metadata", "variant.value.layout")
def test_invalid_bytes_are_rejected_with_row_and_rule(
    metadata: bytes, value: bytes, rule: str, offset: int | None
) -> None:
    with pytest.raises(VariantError) as caught:
        variant.to_json(column((b"\x11\0\0", b"\0"), None, (metadata, value)))
    assert (caught.value.row, caught.value.rule) == (2, rule)
    assert offset is None or caught.value.offset == offset


def test_unknown_type_is_unsupported_rather_than_corrupt() -> None:
    with pytest.raises(UnsupportedError, match="row 1"):
        variant.to_json(column((b"\x11\0\0", b"\0"), (b"\x11\0\0", b"\x54")))


def test_values_that_share_bytes_do_not_multiply() -> None:
    """Twenty levels of arrays whose two elements are the same bytes would be a million values."""
    value = b"\x00"
    for _ in range(20):
        value = b"\x0f\x02" + struct.pack("<III", 0, 0, len(value)) + value
    with pytest.raises(VariantError) as caught:
        variant.to_json(column((b"\x11\0\0", value)))
    assert caught.value.rule == "variant.container.extent"
    with pytest.raises(VariantError):
        Variant(value, b"\x11\0\0").to_python()


def test_result_is_a_string_array() -> None:
    array = variant.to_json(column(None, (b"\x11\0\0", b"\0")))
    assert array.type == pa.string()
    array.validate(full=True)
    assert variant.to_json(column()).type == pa.string()
