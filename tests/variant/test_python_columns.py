"""Columns of variants from lists of Python objects, and to them."""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import LimitError, UnsupportedError
from pqext.variant import Timestamp, Variant
from pqext.variant.types import variant_type
from reference import variant_shred as reference
from reference.variant_strategies import fewer, schemas, variants

OBJECTS: list[Any] = [
    None, True, False, 0, -1, 127, 128, -(2**31), 2**63 - 1, -(2**63), 2**63, 10**38 - 1, 1.5, float("inf"),
    Decimal("1.50"), Decimal("-0.001"), "", "é", "x" * 63, "x" * 64, b"", b"\xff", date(1, 1, 1), date(9999, 12, 31),
    datetime(2024, 2, 29, 1, 2, 3, 4), datetime(2024, 2, 29, tzinfo=timezone(timedelta(hours=2))),
    datetime(1, 1, 1, tzinfo=UTC), time(23, 59, 59, 999_999), uuid.UUID(int=7), Timestamp(1, "ns", True),
    [], {}, [[]], [1, [None, {"a": []}]], {"b": 1, "a": {"z": None, "": 2}}, (1, "x"), np.float32(1.5), np.int8(-3),
    np.bool_(True), np.str_("x"), np.datetime64("2024-01-01"), np.datetime64("2024-01-01T00:00:00.000000001"),
    OrderedDict(b=1, a=2), MappingProxyType({"k": 1}), np.array([1, 2]), np.array([[1.5], [2.5]]), np.float16(2),
    Variant.from_json('{"v":[1.50]}'), pd.Timestamp("2024-01-01 00:00:00.000000001"), bytearray(b"ab"),
    {chr(97 + i % 26) * (i % 7 + 1): i for i in range(300)}, list(range(300)), "y" * 70_000,
]  # fmt: skip

_JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=5),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=4)),
    max_leaves=12,
)


def test_objects_in_a_column_have_the_bytes_of_single_values() -> None:
    array = variant.from_python(OBJECTS, none_is_null=False)
    assert variant.validate(array) is None
    for obj, row in zip(OBJECTS, array.to_pylist(), strict=True):
        single = Variant.from_python(obj)
        assert (row["value"], row["metadata"]) == (single.value, single.metadata), obj


@given(st.lists(_JSON, max_size=4))
@fewer
def test_python_values_round_trip_and_print_like_in_json(objects: list[Any]) -> None:
    array = variant.from_python(objects, none_is_null=False)
    assert variant.validate(array) is None
    assert variant.to_python(array) == objects
    printed = variant.to_python(array, json_types=True)
    assert json.dumps(printed, sort_keys=True) == json.dumps(objects, sort_keys=True)


def test_json_types_are_accepted_by_json_dumps() -> None:
    objects = [Decimal("1.5"), float("nan"), b"\xff", date(2024, 1, 2), uuid.UUID(int=1), {"t": time(1)}]
    printed = variant.to_python(variant.from_python(objects), json_types=True)
    assert printed == [1.5, "NaN", "/w==", "2024-01-02", str(uuid.UUID(int=1)), {"t": "01:00:00"}]


@given(st.lists(variants(), min_size=1, max_size=3), schemas())
@fewer
def test_objects_match_single_values_shredded_or_not(values: list[Any], schema: Any) -> None:
    array = pa.array([{"metadata": m, "value": v} for m, v in values], variant_type())
    wanted = [Variant(v, m).to_python() for m, v in values]
    assert [repr(obj) for obj in variant.to_python(array)] == [repr(obj) for obj in wanted]
    assert variant.equals(variant.from_python(wanted, none_is_null=False), array).to_pylist() == [True] * len(values)
    shredded = variant.to_python(variant.shred(array, schema, coerce="exact"))
    assert variant.from_python(shredded).equals(variant.from_python(wanted))


def test_null_rows_are_none_and_none_is_null_on_request() -> None:
    array = variant.from_python([None, 1, [None]])
    assert array.is_null().to_pylist() == [True, False, False]
    assert variant.to_python(array) == [None, 1, [None]]
    assert variant.from_python([None], none_is_null=False).null_count == 0
    assert variant.from_python([]).type == variant_type()
    assert variant.to_python(variant.from_python(iter([1, 2]))) == [1, 2]
    assert variant.from_python([pd.NA, pd.NaT, {"a": pd.NaT}], none_is_null=False).field("value").to_pylist()[:2] == [
        b"\0", b"\0",
    ]  # fmt: skip


def test_chunks_slices_and_large_offsets_are_read_equally() -> None:
    array = variant.from_python([{"a": i} for i in range(5)])
    large = pa.struct([("value", pa.large_binary()), ("metadata", pa.large_binary())])
    turned = pa.StructArray.from_arrays(
        [array.field("value").cast(pa.large_binary()), array.field("metadata").cast(pa.large_binary())],
        fields=list(large),
    )
    chunked = pa.chunked_array([turned.slice(1, 2), turned.slice(3)])
    assert variant.to_python(chunked) == [{"a": i} for i in range(1, 5)]


def test_pandas_series_of_dicts_and_frame_columns_are_accepted() -> None:
    array = variant.parse_json(['{"a":1,"b":"x"}', '{"a":2}'])
    series = pd.Series(variant.to_python(array))
    assert series[0] == {"a": 1, "b": "x"}
    frame = variant.to_table(array, "a BIGINT, b STRING").to_pandas()
    assert frame["a"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("obj", "error", "message"),
    [
        ({1: 2}, TypeError, "row 1: the keys of a dict must be strings, not int"),
        ({1, 2}, TypeError, "row 1: set objects cannot be represented as variants"),
        ([object()], TypeError, "row 1: object objects cannot be represented as variants"),
        (10**38, ValueError, "row 1: .* does not fit into DECIMAL16"),
        ("\ud800", ValueError, "row 1: .*surrogates"),
        ({"\ud800": 1}, ValueError, "row 1: .*surrogates"),
        (time(1, tzinfo=UTC), TypeError, "row 1: times of day with a time zone"),
    ],
)
def test_object_without_a_variant_form_is_rejected_with_its_row(obj: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        variant.from_python([0, obj])


def test_self_referential_values_are_rejected() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="row 0: the object is nested more than 1000 levels deep"):
        variant.from_python([endless])
    loop: dict[str, Any] = {}
    loop["a"] = loop
    with pytest.raises(ValueError, match="nested more than 1000"):
        variant.from_python([loop])


def test_thousand_levels_round_trip_and_json_states_its_limit() -> None:
    deep: Any = 0
    for i in range(1000):
        deep = [deep] if i % 2 else {"a": deep}
    array = variant.from_python([1, deep])
    back = variant.to_python(array)[1]
    for i in reversed(range(1000)):
        back = back[0] if i % 2 else back["a"]
    assert back == 0
    with pytest.raises(LimitError, match="row 1: the value is nested too deeply for Python's JSON parser"):
        variant.to_python(array, json_types=True)


def test_single_string_is_not_a_list_of_values() -> None:
    for value in ("abc", b"abc", 5):
        with pytest.raises(TypeError, match="values must be a list or another iterable"):
            variant.from_python(value)  # type: ignore[arg-type]


def test_types_added_later_have_no_python_value() -> None:
    column = pa.array([{"metadata": reference.encode_metadata([]), "value": b"\xfc"}], variant_type())
    with pytest.raises(UnsupportedError, match="added later"):
        variant.to_python(column)


@pytest.mark.parametrize("unit", ["h", "m", "s", "ms", "us", "ns", "25s", "D", "W", "Y", "M"])
@pytest.mark.parametrize("count", [2**62, -(2**62), 2**55 + 1, 2**40, -(2**33), 1000, -1, 0])
def test_numpy_time_is_exact_or_rejected(count: int, unit: str) -> None:
    # numpy's own casts to a finer unit wrap around without a word.
    try:
        found = variant.to_python(variant.from_python([np.datetime64(count, unit)]))[0]
    except ValueError:
        assert abs(count) > 1000
        return
    step, name = (25, "s") if unit == "25s" else (1, unit)
    if name in ("Y", "M", "D", "W"):
        assert np.datetime64(found, "D") == np.datetime64(count, unit).astype("datetime64[D]")
        return
    nanos = {"h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[name]
    if isinstance(found, Timestamp):
        assert found.ticks * (1 if found.unit == "ns" else 1000) == count * step * nanos
    else:
        assert (found - datetime(1970, 1, 1)) // timedelta(microseconds=1) * 1000 == count * step * nanos


def test_numpy_duration_is_not_a_number_and_a_masked_element_is_null() -> None:
    with pytest.raises(TypeError, match="row 1: timedelta64 objects cannot be represented as variants"):
        variant.from_python([1, np.timedelta64(5, "ns")])
    with pytest.raises(TypeError, match="timedelta64"):
        Variant.from_python(np.timedelta64(5, "ns"))
    masked = np.ma.masked_array([1, 2], mask=[False, True])
    assert variant.to_python(variant.from_python([masked, masked[1]], none_is_null=False)) == [[1, None], None]


def test_key_with_custom_equality_is_stored_as_its_own_text() -> None:
    class Caseless(str):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, str) and self.lower() == other.lower()

        def __hash__(self) -> int:
            return hash(self.lower())

    assert variant.to_python(variant.from_python([{"a": 1}, {Caseless("A"): 2}])) == [{"a": 1}, {"A": 2}]


def test_error_raised_by_an_object_names_the_row() -> None:
    class Broken(dict[str, int]):
        def items(self) -> Any:
            return b"\xff".decode()

    with pytest.raises(ValueError, match=r"row 1: .*can't decode"):
        variant.from_python([1, Broken(a=1)])


def test_overlong_decimals_are_rejected_with_a_short_message() -> None:
    for number in (Decimal("7" * 5000), Decimal("1E+999999"), Decimal("7" * 39)):
        with pytest.raises(ValueError, match=r"row 0: .{1,20} has more than 38 digits"):
            variant.from_python([number])


def test_decimals_preserve_their_digits_and_scale() -> None:
    numbers = [Decimal((sign, digits, -scale)) for sign in (0, 1) for scale in (0, 1, 2, 37, 38) for digits in (
        (0,), (5,), (9,) * 9, (1, *(0,) * 17), (9,) * 18, (9,) * 38
    )]
    found = variant.to_python(variant.from_python(numbers))
    assert [one.as_tuple()[1:] for one in found] == [one.as_tuple()[1:] for one in numbers]
    assert found == numbers


@pytest.mark.parametrize("limit", [date.min, date.max])
def test_dates_out_of_python_range_are_returned_as_numpy_dates(limit: date) -> None:
    days = [(limit - date(1970, 1, 1)).days + step for step in (-1, 0, 1)]
    found = variant.to_python(reference_dates(days))
    for day, value in zip(days, found, strict=True):
        expected = np.datetime64(day, "D")
        held = expected.astype(object)  # numpy knows which days are dates of Python
        assert value == (held if isinstance(held, date) else expected)
        assert isinstance(value, date) is isinstance(held, date)


def reference_dates(days: list[int]) -> pa.StructArray:
    metadata = reference.encode_metadata([])
    return pa.array(
        [{"metadata": metadata, "value": reference.primitive("date", day)} for day in days], variant_type()
    )
