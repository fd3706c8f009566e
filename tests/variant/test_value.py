"""The Variant class: access, equality, and Python objects in and out."""

from __future__ import annotations

import json
import pickle
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import UnsupportedError, VariantError
from pqext.variant import Timestamp, Variant
from pqext.variant.binary_value import EMPTY_METADATA, encode_metadata
from pqext.variant.encoding import PrimitiveType, ScaledDecimal, encode_array, encode_object, encode_primitive
from reference import variant_value as reference
from reference.variant_strategies import fewer, valid_variants

T = PrimitiveType


def make(kind: PrimitiveType, data: Any) -> Variant:
    return Variant(encode_primitive(kind, data), EMPTY_METADATA)


def test_fields_and_elements_are_accessed_by_name_and_index() -> None:
    v = Variant.from_json('{"a": {"b": [1, 2.50, "x"]}, "z": null}')
    assert v["a"]["b"][0].to_python() == 1
    assert v["a"]["b"][-1].to_python() == "x"
    assert v.get("$.a.b[1]").to_python() == Decimal("2.50")
    assert v.get("$.a.b[3]") is None
    assert v.get("$.z").to_python() is None
    assert v.get("$.a[0]") is None
    assert v.get("$") == v
    assert v.keys() == list(v) == ["a", "z"]
    assert [x.to_python() for x in v["a"]["b"]] == [1, Decimal("2.50"), "x"]
    assert v.items()[1] == ("z", v["z"])
    assert "a" in v
    assert Variant.from_python(1) in v["a"]["b"]
    assert (len(v), len(v["a"]["b"]), bool(v["z"])) == (2, 3, True)


@pytest.mark.parametrize(
    ("text", "key", "error"),
    [
        ("{}", "a", KeyError),
        ("{}", 0, TypeError),
        ("[]", 0, IndexError),
        ("[1]", -2, IndexError),
        ("[]", "a", TypeError),
        ("1", 0, TypeError),
    ],
)
def test_missing_items_raise_like_python_containers(text: str, key: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Variant.from_json(text)[key]


def test_scalars_have_no_length_keys_or_values() -> None:
    for method in (len, Variant.keys, Variant.values):
        with pytest.raises(TypeError, match="int8"):
            method(Variant.from_python(1))


def test_variant_repr_is_json_and_variants_can_be_pickled() -> None:
    v = Variant.from_python({"a": [True, None]})
    assert repr(v) == 'Variant({"a":[true,null]})'
    assert len(repr(Variant.from_python("x" * 1000))) < 100
    assert "truncated" in repr(Variant(b"\x0c", EMPTY_METADATA))
    assert pickle.loads(pickle.dumps(v)) == v


@pytest.mark.parametrize(
    ("obj", "type"),
    [
        (None, "null"), (True, "boolean"), (False, "boolean"),
        (0, "int8"), (-128, "int8"), (128, "int16"), (-32769, "int32"), (2**31, "int64"), (2**63, "decimal16"),
        (-(10**38) + 1, "decimal16"), (1.5, "double"), (float("inf"), "double"),
        (Decimal("2.50"), "decimal4"), (Decimal("-1234567890.5"), "decimal8"), (Decimal("1E-38"), "decimal16"),
        ("text", "string"), (b"\x00\xff", "binary"),
        (date(1969, 12, 31), "date"), (date(1, 1, 1), "date"), (date(9999, 12, 31), "date"),
        (datetime(2024, 1, 2, 3, 4, 5, 6), "timestamp_ntz"), (datetime(1, 1, 1), "timestamp_ntz"),
        (datetime(2024, 1, 2, tzinfo=UTC), "timestamp"), (time(23, 59, 59, 999_999), "time_ntz"),
        (uuid.UUID(int=1), "uuid"), ([], "array"), ({}, "object"),
        ({"b": [1, {"c": None}], "a": "x", "": 2.0}, "object"),
        (np.datetime64("12024-01-01", "D"), "date"), (np.float32(0.1), "float"),
        (Timestamp(1, "ns", utc=True), "timestamp_nanos"), (Timestamp(-1, "ns", utc=False), "timestamp_ntz_nanos"),
        (Timestamp(-(2**63), "us", utc=True), "timestamp"), (Timestamp(2**63 - 1, "us", utc=False), "timestamp_ntz"),
    ],
)  # fmt: skip
def test_python_objects_round_trip(obj: Any, type: str) -> None:
    v = Variant.from_python(obj)
    assert v.type == type
    back = v.to_python()
    assert back == obj
    assert isinstance(back, Decimal if type == "decimal16" else obj.__class__)
    reference.decode(v.metadata, v.value)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ((1, 2), [1, 2]),
        (np.int16(5), 5),
        (np.bool_(True), True),
        (np.float64(1.5), 1.5),
        (np.datetime64("NaT"), None),
        (bytearray(b"x"), b"x"),
        (Decimal("1E+2"), Decimal(100)),
        (datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))), datetime(2024, 1, 1, 10, tzinfo=UTC)),
        ([Variant.from_python({"a": 1})], [{"a": 1}]),
        (np.datetime64("2024-01-01T00:00", "m"), datetime(2024, 1, 1)),
        (np.datetime64("1970-01-01T00:00:00.000000001"), Timestamp(1, "ns", utc=False)),
        (np.datetime64("-1000-01-01T00:00", "us"), Timestamp(-93_724_128_000_000_000, "us", utc=False)),
    ],
)
def test_other_objects_become_the_nearest_equal_value(obj: Any, expected: Any) -> None:
    assert Variant.from_python(obj).to_python() == expected


@fewer
@given(valid_variants())
def test_every_value_round_trips_through_python_objects_and_pickle(pair: tuple[bytes, bytes]) -> None:
    v = Variant(pair[1], pair[0])
    assert Variant.from_python(v.to_python()) == v
    assert hash(Variant.from_python(v.to_python())) == hash(v)
    assert pickle.loads(pickle.dumps(v)) == v


def test_timestamps_compare_by_instant() -> None:
    micro, nano = Timestamp(1, "us", utc=True), Timestamp(1000, "ns", utc=True)
    assert micro == nano
    assert hash(micro) == hash(nano)
    assert Timestamp(999, "ns", utc=True) < micro <= nano
    assert micro != Timestamp(1, "us", utc=False)
    assert micro != 1
    with pytest.raises(TypeError):
        _ = micro < Timestamp(2, "us", utc=False)
    assert str(Timestamp(1, "ns", utc=True)) == "1970-01-01 00:00:00.000000001+00:00"
    assert repr(Timestamp(-1, "us", utc=False)) == "Timestamp(-1, 'us', utc=False)"
    assert Timestamp(1, "ns", utc=False).to_datetime64() == np.datetime64("1970-01-01T00:00:00.000000001")
    for wrong in ((2**63, "us"), (0, "ms")):
        with pytest.raises(ValueError, match=r"64 bits|unit"):
            Timestamp(*wrong, utc=True)  # type: ignore[arg-type]


@pytest.mark.spec("variant.version.new-types")
def test_unknown_primitive_leaves_other_values_readable() -> None:
    later = b"\x54anything"
    fields = encode_object([(0, b"\x0c\x01"), (1, later), (2, encode_array([later, b"\x04"]))], 3)
    v = Variant(fields, encode_metadata(["a", "b", "c"]))
    assert (v["a"].to_python(), v["c"][1].to_python(), v["b"].value, v["c"][0].value) == (1, True, later, later)
    assert v["b"].type == "unknown primitive 21"
    assert v == pickle.loads(pickle.dumps(v))
    assert hash(v) == hash(Variant(v.value, v.metadata))
    assert "added later" in repr(v)
    for refused in (v.to_json, v.to_python, v["b"].to_json):
        with pytest.raises(UnsupportedError):
            refused()
    column = pa.array([{"metadata": v.metadata, "value": v.value}], variant.variant_type())
    assert variant.get(column, "$.c[1]", "boolean").to_pylist() == [True]
    assert variant.get(column, "$.b", "variant")[0]["value"].as_py() == later
    assert variant.validate(column) is None


@pytest.mark.parametrize(
    ("obj", "error"),
    [
        (10**38, ValueError), (Decimal("NaN"), ValueError), (Decimal("1E-39"), ValueError),
        (Decimal("1E+40"), ValueError),
        ({1: 2}, TypeError), (object(), TypeError), ({1, 2}, TypeError), (time(1, tzinfo=UTC), TypeError),
        (np.datetime64("2024-01-01T00:00:00.000000000001"), ValueError), ("\ud800", ValueError),
    ],
)  # fmt: skip
def test_objects_without_a_variant_form_are_rejected(obj: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Variant.from_python(obj)


def test_nesting_is_bounded_and_cycles_are_detected() -> None:
    deep: list[Any] = []
    for _ in range(999):
        deep = [deep]
    v = Variant.from_python(deep)
    assert v.to_json() == "[" * 1000 + "]" * 1000
    assert v == Variant.from_json(v.to_json())
    assert hash(v) == hash(Variant(v.value, v.metadata))
    round_trip = v.to_python()
    for _ in range(999):
        round_trip = round_trip[0]
    assert round_trip == []
    with pytest.raises(ValueError, match="1000 levels"):
        Variant.from_python([deep])
    with pytest.raises(VariantError, match="too deeply"):
        Variant(encode_array([v.value]), EMPTY_METADATA).to_python()
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(ValueError, match="levels"):
        Variant.from_python(cycle)


@pytest.mark.spec("variant.equivalence")
@pytest.mark.parametrize(
    "equal",
    [
        [make(T.INT8, 1), make(T.INT16, 1), make(T.INT32, 1), make(T.INT64, 1), make(T.DECIMAL4, ScaledDecimal(10, 1)),
        make(T.DECIMAL16, ScaledDecimal(100, 2))],
        [make(T.DECIMAL4, ScaledDecimal(0, 0)), make(T.DECIMAL16, ScaledDecimal(0, 38)), make(T.INT8, 0)],
        [make(T.TIMESTAMP, 5), make(T.TIMESTAMP_NANOS, 5000)],
        [make(T.TIMESTAMP_NTZ, -5), make(T.TIMESTAMP_NTZ_NANOS, -5000)],
        [make(T.DOUBLE, float("nan")), Variant(b"\x1c\x01\x00\x00\x00\x00\x00\xf8\xff", EMPTY_METADATA)],
        [make(T.DOUBLE, 0.0), make(T.DOUBLE, -0.0)],
        [Variant.from_json('{"a":1,"b":[2]}'), Variant(*reversed(reference.encode(
            ("object", {"a": ("decimal8", (10, 1)), "b": ("array", [("int64", 2)])}),
            reference.Layout(sorted_dictionary=False, backwards=True, large=True, offset_size=4))))],
    ],
)  # fmt: skip
def test_variants_of_one_class_with_equal_data_are_equal(equal: list[Variant]) -> None:
    assert len(set(equal)) == 1
    assert all(a == b for a in equal for b in equal)


def test_object_whose_fields_are_stored_in_another_order_equals_the_sorted_object() -> None:
    metadata = bytes([0x11, 2, 0, 1, 2]) + b"ab"
    fields = bytes([0x0C, 1, 0x0C, 2])  # int8 1 and 2
    stored = Variant(bytes([0x02, 2, 1, 0, 0, 2, 4]) + fields, metadata)  # field ids 1 and 0
    assert list(stored.to_python().items()) == [("b", 1), ("a", 2)]
    assert stored.keys() == ["b", "a"]
    assert stored == Variant(bytes([0x02, 2, 0, 1, 2, 0, 4]) + fields, metadata)
    assert stored != Variant(bytes([0x02, 2, 0, 1, 0, 2, 4]) + fields, metadata)


@pytest.mark.spec("variant.equivalence")
def test_variants_of_different_classes_or_data_are_not_equal() -> None:
    different = [
        make(T.INT8, 1), make(T.INT8, 2), make(T.DECIMAL4, ScaledDecimal(11, 1)), make(T.DOUBLE, 1.0),
        make(T.FLOAT, 1.0), make(T.TRUE, None),
        make(T.FALSE, None), make(T.NULL, None), make(T.DATE, 1), make(T.TIMESTAMP, 1), make(T.TIMESTAMP_NTZ, 1),
        make(T.TIME_NTZ, 1),
        make(T.TIMESTAMP_NANOS, 1), make(T.STRING, "1"), make(T.BINARY, b"1"), make(T.UUID, uuid.UUID(int=1)),
        make(T.DOUBLE, float("nan")), make(T.FLOAT, float("nan")),
        *map(Variant.from_json, ["[]", "{}", "[1]", "[[1]]", "[1,2]", '{"a":1}', '{"b":1}', '{"a":[]}', '["a",1]']),
    ]  # fmt: skip
    assert len(set(different)) == len(different)
    for i, a in enumerate(different):
        assert [j for j, b in enumerate(different) if a == b] == [i]
    assert different[0] != 1


@given(reference.VALUES, reference.LAYOUTS, reference.LAYOUTS)
@pytest.mark.spec("variant.equivalence")
def test_equality_does_not_depend_on_the_layout(
    value: reference.Value, one: reference.Layout, other: reference.Layout
) -> None:
    a, b = (Variant(*reversed(reference.encode(value, layout))) for layout in (one, other))
    assert a == b
    assert hash(a) == hash(b)


PYTHON: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(1 - 10**38, 10**38 - 1), st.floats(allow_nan=False), st.text(max_size=70),
        st.binary(max_size=10), st.dates(), st.datetimes(), st.times(), st.uuids(),
        st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**20), max_value=10**20),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(st.text(max_size=5), inner, max_size=5)),
    max_leaves=10,
)  # fmt: skip


@given(PYTHON)
def test_python_trees_round_trip(obj: Any) -> None:
    v = Variant.from_python(obj)
    assert v.to_python() == obj
    assert Variant.from_python(v.to_python()) == v
    reference.decode(v.metadata, v.value)


@pytest.mark.parametrize("hours", [12, -12])
def test_extreme_datetimes_preserve_their_instant_in_any_zone(hours: int) -> None:
    zone = timezone(timedelta(hours=hours))
    for moment in (datetime.max.replace(tzinfo=zone), datetime.min.replace(tzinfo=zone)):
        micros = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        assert Variant.from_python(moment).value[1:] == micros.to_bytes(8, "little", signed=True)


@pytest.mark.parametrize("wrong", [None, 5, "text", [["list"]]])
def test_invalid_array_or_path_is_a_type_error(wrong: Any) -> None:
    for ask in (variant.parse_json, variant.validate, variant.to_json, lambda array: variant.shred(array, "INT")):
        with pytest.raises(TypeError, match="expected"):
            ask(wrong)
    if not isinstance(wrong, str | list):
        with pytest.raises(TypeError, match="a path must be"):
            Variant.from_json("1").get(wrong)


def test_value_is_displayed_in_notebooks_and_dumped_as_json() -> None:
    value = Variant.from_json('{"a":["<b>",1.50]}')
    assert value._repr_html_() == (
        "<pre>{\n  &quot;a&quot;: [\n    &quot;&lt;b&gt;&quot;,\n    1.5\n  ]\n}</pre>"
    )
    assert len(Variant.from_python("x" * 10_000)._repr_html_()) < 2100
    assert "FAULT" not in Variant(b"\x05\xff", b"\x11\0\0")._repr_html_()
    assert value.to_python(json_types=True) == {"a": ["<b>", 1.5]}
    dumped = json.dumps({"v": [value]}, default=lambda one: one.to_python(json_types=True))
    assert dumped == '{"v": [{"a": ["<b>", 1.5]}]}'


def test_index_may_count_from_the_end() -> None:
    value = Variant.from_json('{"a":[1,2,3]}')
    assert value.get("$.a[-1]") == Variant.from_python(3)
    assert value.get("$.a[-4]") is None
    assert "a" in value
    assert Variant.from_python(2) in value["a"]
