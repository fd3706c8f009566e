"""``get`` makes every Arrow type that a value can have; its oracle is Arrow's own arithmetic, or Python's."""

from __future__ import annotations

import random
import re
import uuid
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base import buffers
from pqext.core.base.errors import LimitError, VariantError
from pqext.variant.types import variant_type
from reference import variant_shred as reference
from reference.variant_strategies import variants

prim = reference.primitive
EMPTY = reference.encode_metadata([])


def column(values: list[bytes | None], metadata: bytes = EMPTY) -> pa.StructArray:
    return pa.array([value and {"metadata": metadata, "value": value} for value in values], variant_type())


def cast(value: bytes, type: Any) -> Any:
    result = variant.get(column([value]), "$", type)
    result.validate(full=True)
    return result[0].as_py()


NUMBERS = [
    *(prim("int64", n) for n in (0, 1, -1, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63 - 1, -(2**63))),
    prim("decimal16", (2**64 - 1, 0)),
    prim("decimal16", (2**64, 0)),
    prim("double", 255.9),
    prim("double", -0.5),
    prim("double", 1.8446744073709552e19),
    prim("string", " 200 "),
    prim("string", "18446744073709551615"),
    prim("true"),
]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.spec("casts.arrow")
def test_unsigned_integers_match_signed_ones_within_range(bits: int) -> None:
    exact = variant.get(column(NUMBERS), "$", "decimal(38,0)")
    floating = {15: 255, 16: 0, 17: 2**64}  # towards zero, which a decimal does not go
    wanted = [floating.get(i, number) for i, number in enumerate(exact.to_pylist())]
    result = variant.get(column(NUMBERS), "$", f"uint{bits}")
    assert result.type == getattr(pa, f"uint{bits}")()
    assert result.to_pylist() == [n if 0 <= n < 2**bits else None for n in wanted]
    with pytest.raises(VariantError, match=f"row 2: the value at \\$ does not cast to uint{bits}"):
        variant.get(column(NUMBERS), "$", f"uint{bits}", strict=True)


@given(st.lists(st.one_of(st.floats(), st.floats(width=16), st.integers(0, 2**11).map(lambda n: n * 2.0**-25))))
@pytest.mark.spec("casts.arrow")
def test_half_floats_are_the_nearest_values(numbers: list[float]) -> None:
    result = variant.get(column([prim("double", number) for number in numbers]), "$", pa.float16())
    with np.errstate(over="ignore"):
        wanted = np.array(numbers, np.float64).astype(np.float16)
    np.testing.assert_array_equal(result.to_numpy(zero_copy_only=False).astype(np.float16), wanted)


@given(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(2**24, 2**26)))
def test_integers_and_text_are_rounded_once_when_cast_to_float(number: int) -> None:
    nearest = pa.scalar(number).cast(pa.float32(), safe=False).as_py()
    assert cast(prim("int64", number), "float") == nearest
    assert cast(prim("string", str(number)), "float") == nearest
    assert cast(prim("decimal16", (number * 10, 1)), "float") == nearest


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1d", 1.0),
        ("1.5F", 1.5),
        ("-0", -0.0),
        ("0x1p3", 8.0),
        ("-0x1.8P-1", -0.75),
        ("0x1.8p1f", 3.0),
        ("+NaN", float("nan")),
        ("nand", None),
        ("0x1", None),
        ("0xp1", None),
        ("d", None),
        ("1e5dd", None),
    ],
)
def test_floating_point_text_is_read_like_in_java(text: str, number: float | None) -> None:
    assert repr(cast(prim("string", text), "double")) == repr(number)
    assert repr(cast(prim("string", text), "float")) == repr(number)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (-123456789.0, "-1.23456789E8"),
        (5e-324, "4.9E-324"),
        (1e-323, "9.9E-324"),
        (1.5e-323, "1.5E-323"),
        (100.0, "100.0"),
        (1234567.5, "1234567.5"),
    ],
)
def test_doubles_are_written_like_in_java(number: float, text: str) -> None:
    assert cast(prim("double", number), "string") == text


WIDTHS = [("decimal32", 9), ("decimal64", 18), ("decimal128", 38), ("decimal256", 76)]


@given(
    st.one_of(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(-999, 999)),
    st.integers(0, 38),
    st.sampled_from(WIDTHS),
    st.data(),
)
@pytest.mark.spec("casts.arrow")
def test_decimals_of_every_width_are_rounded_half_up(
    unscaled: int, scale: int, width: tuple[str, int], data: st.DataObject
) -> None:
    name, digits = width
    precision = data.draw(st.integers(1, digits))
    to = data.draw(st.integers(0, precision))
    with localcontext(prec=300):
        number = Decimal(unscaled).scaleb(-scale)
        rounded = number.quantize(Decimal(1).scaleb(-to), rounding=ROUND_HALF_UP)
        wanted = rounded if abs(rounded) < Decimal(10) ** (precision - to) else None
        text = f"{number:f}"
    type = getattr(pa, name)(precision, to)
    assert cast(prim("decimal16", (unscaled, scale)), type) == wanted
    assert cast(prim("string", text), type) == wanted
    assert cast(prim("string", f"{unscaled}e-{scale}"), f"{name}({precision}, {to})") == wanted


@given(st.integers(-(10**90), 10**90), st.integers(-100, 30), st.integers(0, 76))
def test_text_of_any_length_is_cast_to_decimal_exactly(digits: int, exponent: int, scale: int) -> None:
    with localcontext(prec=300):
        number = Decimal(digits).scaleb(exponent).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP)
        wanted = number if abs(number) < Decimal(10) ** (76 - scale) else None
    assert cast(prim("string", f"{digits}e{exponent}"), pa.decimal256(76, scale)) == wanted
    assert cast(prim("string", "1e-99999999999"), pa.decimal256(76, scale)) is None


INSTANTS = [-(10**18) - 1, -1, 0, 1, 999, 1_000_000_007, 1_700_000_000_123_456_789]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Paris", "+05:30"])
@pytest.mark.spec("casts.arrow")
def test_timestamps_of_any_unit_preserve_their_instant_in_any_zone(unit: str, zone: str | None) -> None:
    ticks = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    for name in ("timestamp_nanos", "timestamp_ntz_nanos"):
        array = column([prim(name, nanos) for nanos in INSTANTS])
        result = variant.get(array, "$", pa.timestamp(unit, zone))
        assert result.type == pa.timestamp(unit, zone)
        assert result.cast(pa.int64()).to_pylist() == [nanos // ticks for nanos in INSTANTS]
    named = f"timestamp[{unit}]" if zone is None else f"timestamp[{unit}, tz={zone}]"
    assert variant.get(array, "$", named).equals(result)
    text = variant.get(column([prim("string", "2024-01-01T00:00:00.5+01:00")]), "$", pa.timestamp(unit, zone))
    clock = 1704067200 * 10**9 + 5 * 10**8
    assert text.cast(pa.int64()).to_pylist() == [(clock if zone is None else clock - 3600 * 10**9) // ticks]


@pytest.mark.parametrize(
    ("type", "ticks"),
    [(pa.time32("s"), 10**9), (pa.time32("ms"), 10**6), (pa.time64("us"), 1000), (pa.time64("ns"), 1)],
)
@pytest.mark.spec("casts.arrow")
def test_times_of_day_support_any_unit(type: pa.DataType, ticks: int) -> None:
    nanos = 45_296_123_456_000
    values = [prim("time", nanos // 1000), prim("timestamp_ntz", nanos // 1000 - 86_400_000_000)]
    texts = [prim("string", text) for text in ("12:34:56.123456", "T12:34:56.123456", "12:34:56.123456 pm")]
    result = variant.get(column([*values, *texts]), "$", type)
    stored = pa.int32() if type.bit_width == 32 else pa.int64()
    assert result.cast(stored).to_pylist() == [nanos // ticks] * 5
    assert variant.get(column([*values, *texts]), "$", str(type)).equals(result)
    assert cast(prim("string", "12:00:00 AM"), type).hour == 0
    assert cast(prim("string", "13:00:00 AM"), type) is None


@pytest.mark.spec("casts.arrow")
def test_dates_are_days_or_milliseconds() -> None:
    values = [prim("date", -1), prim("string", "2024-02-29T whatever"), prim("timestamp", -1), prim("date", 2**31 - 1)]
    days = variant.get(column(values), "$", "date")
    millis = variant.get(column(values), "$", pa.date64())
    assert days.cast(pa.int32()).to_pylist() == [-1, 19782, -1, 2**31 - 1]
    assert millis.cast(pa.int64()).to_pylist() == [n * 86_400_000 for n in (-1, 19782, -1, 2**31 - 1)]


@pytest.mark.spec("casts.arrow")
def test_text_and_bytes_support_any_layout() -> None:
    array = column([prim("string", "a" * 20), prim("binary", b"b"), None, b"\0", reference.array_of([b"\0"])])
    texts = ["a" * 20, "b", None, None, "[null]"]
    for type in (pa.string(), pa.large_string(), pa.string_view()):
        assert variant.get(array, "$", type).equals(pa.array(texts, type))
    bytes_ = [b"a" * 20, b"b", None, None, None]
    for type in (pa.binary(), pa.large_binary(), pa.binary_view()):
        assert variant.get(array, "$", type).equals(pa.array(bytes_, type))
    assert variant.get(array, "$", pa.binary(20)).to_pylist() == [b"a" * 20, None, None, None, None]
    key = uuid.UUID(int=5)
    forms = column([prim("uuid", key.bytes), prim("string", str(key).upper()), prim("binary", key.bytes)])
    assert variant.get(forms, "$", pa.uuid()).to_pylist() == [key.bytes] * 3


@pytest.mark.spec("casts.arrow")
def test_dictionary_contains_only_occurring_values() -> None:
    array = column([prim("string", "x"), prim("string", "y"), None, prim("string", "x")])
    type = pa.dictionary(pa.int8(), pa.large_string())
    result = variant.get(array, "$", type)
    assert result.type == type
    assert result.dictionary.to_pylist() == ["x", "y"]
    assert result.to_pylist() == ["x", "y", None, "x"]
    many = column([prim("int16", n) for n in range(200)])
    with pytest.raises(ValueError, match="200 distinct values exceed the range of int8 indices"):
        variant.get(many, "$", pa.dictionary(pa.int8(), pa.int32()))
    assert variant.get(many, "$", pa.dictionary(pa.uint8(), pa.int32())).to_pylist() == list(range(200))


@pytest.mark.spec("casts.arrow")
def test_only_a_json_null_casts_to_the_null_type() -> None:
    assert variant.get(column([b"\0", prim("true"), None]), "$", pa.null()).equals(pa.nulls(3))
    assert variant.get(column([b"\0", None]), "$", "null", strict=True).null_count == 2
    with pytest.raises(VariantError, match="row 1: the value at \\$ does not cast to null"):
        variant.get(column([b"\0", prim("true")]), "$", "null", strict=True)


@given(st.lists(st.one_of(st.none(), variants()), min_size=1, max_size=6))
def test_views_and_large_layouts_match_the_plain_ones(rows: list[tuple[bytes, bytes] | None]) -> None:
    array = pa.array([row and {"metadata": row[0], "value": row[1]} for row in rows], variant_type())
    for plain, others in (("string", ("large_string", "string_view")), ("binary", ("large_binary", "binary_view"))):
        wanted = variant.get(array, "$", plain)
        for other in others:
            assert variant.get(array, "$", other).cast(wanted.type).equals(wanted)


def test_repeated_metadata_of_elements_beyond_an_array_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "ARRAY_BYTES", 1000)
    inner = reference.object_of([(0, b"\0")])
    metadata = reference.encode_metadata(["a" * 200])
    array = column([reference.array_of([inner] * 10)], metadata)
    with pytest.raises(LimitError, match="the metadata of 10 values takes"):
        variant.get(array, "$", "array<variant>")
    simple = column([reference.array_of([prim("int8", 1)] * 10)], metadata)
    assert pc.list_value_length(variant.get(simple, "$", "array<variant>")).to_pylist() == [10]


def test_text_larger_than_one_array_is_returned_in_chunks_if_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    from pqext.variant.access import cast as module

    whole = module.cast_group

    def limited(group: Any, *arguments: Any) -> pa.Array:
        if len(group.array) > 2:
            raise LimitError("too large")
        return whole(group, *arguments)

    monkeypatch.setattr(module, "cast_group", limited)
    array = column([prim("int8", n) for n in range(9)])
    assert variant.get(array, "$", "large_string").to_pylist() == [str(n) for n in range(9)]
    with pytest.raises(LimitError, match="too large"):
        variant.get(array, "$", "string")
    with pytest.raises(VariantError, match="row 7: "):
        variant.get(column([prim("binary", b"")] * 7 + [prim("true")]), "$", "large_binary", strict=True)


VIEWS = [
    pa.string_view(), pa.dictionary(pa.int8(), pa.string_view()), pa.list_(pa.string_view(), 1),
    pa.list_view(pa.string_view()), pa.struct([("a", pa.string_view())]),
    pa.map_(pa.string_view(), pa.list_view(pa.string_view())), pa.dictionary(pa.int8(), pa.decimal32(7, 2)),
]  # fmt: skip


@pytest.mark.parametrize("type", VIEWS, ids=str)
@pytest.mark.spec("casts.arrow")
def test_views_are_returned_from_columns_and_residuals(type: pa.DataType) -> None:
    texts = ['{"a": "1", "b": ["x"]}', None, '{"a": 2, "b": ["y", 3]}', '{"a": {"a": "4"}, "b": [{"a": 5}]}']
    array = variant.parse_json(pa.array(texts))
    shredded = variant.shred(array, "a STRING, b ARRAY<STRING>")
    for path in ("$", "$.a", "$.b", "$.b[0]"):
        whole = variant.get(array, path, type)
        whole.validate(full=True)
        assert whole.type == type
        assert variant.get(shredded, path, type).to_pylist() == whole.to_pylist()
    exploded = variant.explode(array, "$.b", type, outer=True)
    assert exploded["value"].type == type
    assert variant.explode(shredded, "$.b", type, outer=True)["value"].to_pylist() == exploded["value"].to_pylist()


@pytest.mark.parametrize("type", [pa.binary_view(), pa.list_view(pa.int8()), pa.large_binary()])
def test_error_names_the_requested_type(type: pa.DataType) -> None:
    with pytest.raises(VariantError, match=rf"\$ does not cast to {re.escape(str(type))}$"):
        variant.get(variant.parse_json(pa.array(["5"])), "$", type, strict=True)


def test_elements_are_read_from_view_columns() -> None:
    shredded = variant.shred(variant.parse_json(pa.array(['{"b": ["x", 2]}', None, '{"b": [3]}'])), "b ARRAY<STRING>")
    elements = pa.struct([("value", pa.binary_view()), ("typed_value", pa.string_view())])
    fields = pa.struct([("b", pa.struct([("value", pa.binary_view()), ("typed_value", pa.list_(elements))]))])
    kind = pa.struct([("metadata", pa.binary_view()), ("value", pa.binary_view()), ("typed_value", fields)])
    views = pa.array(shredded.to_pylist(), kind)
    assert variant.get(views, "$.b[0]", "string").to_pylist() == ["x", None, "3"]
    assert variant.get(views, "$.b[1]", "variant").equals(variant.get(shredded, "$.b[1]", "variant"))


@pytest.mark.parametrize(("precision", "scale"), [(15, 2), (16, 0), (18, 2), (18, 18)])
def test_typed_decimals_of_any_size_are_the_nearest_doubles(precision: int, scale: int) -> None:
    chance = random.Random(precision + scale)
    unscaled = [10**precision - 1, 1 - 10**precision, 0, *(chance.randrange(10**precision) for _ in range(50))]
    numbers = [Decimal(number).scaleb(-scale) for number in unscaled]
    typed = pa.array([*numbers, None], pa.decimal128(precision, scale))
    array = variant.shred(variant.from_arrow(typed), f"DECIMAL({precision}, {scale})")
    assert array.field("typed_value").null_count == 1
    assert variant.get(array, "$", "double").to_pylist() == [*map(float, numbers), None]
