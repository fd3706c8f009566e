"""``get`` follows paths and casts as Spark's ``variant_get`` does, on whole and on shredded variants alike."""

from __future__ import annotations

import json
import math
import struct
from contextlib import suppress
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.variant.access.targets import target_type
from pqext.variant.shredding.schema import ShreddingSchema
from pqext.variant.types import variant_type
from reference import variant_shred as reference
from reference.variant_strategies import LEAVES, NAMES, fewer, schemas, variants

prim = reference.primitive
EMPTY = reference.encode_metadata([])


def column(values: list[bytes | None], metadata: bytes = EMPTY) -> pa.StructArray:
    return pa.array([value and {"metadata": metadata, "value": value} for value in values], variant_type())


def cast(value: bytes, type: str | pa.DataType) -> Any:
    """The result of casting one value; strict raises exactly where the result is null and the value is not."""
    array = column([value])
    result = variant.get(array, "$", type)
    result.validate(full=True)
    assert result.type == target_type(type)
    if result.null_count and value != b"\0":
        with pytest.raises(VariantError, match=r"row 0: the value at \$ does not cast"):
            variant.get(array, "$", type, strict=True)
    else:
        assert variant.get(array, "$", type, strict=True).equals(result) or result.type in (pa.float32(), pa.float64())
    if pa.types.is_temporal(result.type):
        result = result.cast(pa.int32() if pa.types.is_date32(result.type) else pa.int64())
    return result[0].as_py()


def text(string: str) -> bytes:
    return prim("string", string)


@pytest.mark.parametrize(
    ("value", "type", "result"),
    [
        (prim("int8", -5), "tinyint", -5),
        (prim("int64", 2**40), "int", None),
        (prim("int64", 2**40), "bigint", 2**40),
        (prim("int32", 128), "tinyint", None),
        (prim("int32", 300), "smallint", 300),
        (prim("decimal4", (-199, 2)), "int", -1),
        (prim("decimal16", (10**37, 0)), "bigint", None),
        (prim("double", 1.99), "int", 1),
        (prim("double", -1.99), "bigint", -1),
        (prim("double", 1e300), "bigint", None),
        (prim("double", math.nan), "int", None),
        (prim("true"), "int", 1),
        (prim("false"), "double", 0.0),
        (prim("true"), "decimal(3,1)", Decimal("1.0")),
        (prim("true"), "timestamp", None),
        (prim("int8", 7), "boolean", True),
        (prim("double", 0.0), "boolean", False),
        (prim("int8", 7), "date", None),
        (prim("int32", 12345), "decimal(4,0)", None),
        (prim("decimal4", (1255, 3)), "decimal(9,2)", Decimal("1.26")),
        (prim("decimal4", (-1255, 3)), "decimal(9,2)", Decimal("-1.26")),
        (prim("decimal4", (1254, 3)), "decimal(9,2)", Decimal("1.25")),
        (prim("double", 0.1), "decimal(38,20)", Decimal("0.10000000000000000000")),
        (prim("double", 1e-300), "decimal(9,2)", Decimal("0.00")),
        (prim("decimal16", (10**38 - 1, 0)), "double", 1e38),
        (prim("decimal4", (1, 1)), "double", 0.1),
        (prim("decimal4", (15, 1)), "float", 1.5),
        (prim("float", 1.5), "double", 1.5),
        (prim("double", 1e300), "float", math.inf),
        (prim("binary", b"ab"), "string", "ab"),
        (prim("binary", b"\xff"), "string", None),
        (text("ab"), "binary", b"ab"),
        (prim("binary", b"1"), "int", None),
        (prim("uuid", bytes(range(16))), "uuid", bytes(range(16))),
        (text("00010203-0405-0607-0809-0a0B0c0D0e0F"), "uuid", bytes(range(16))),
        (text("00010203-0405-0607-0809-0a0B0c0D0e0"), "uuid", None),
        (prim("uuid", bytes(range(16))), "string", "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (b"\0", "int", None),
        (b"\0", "string", None),
    ],
)
@pytest.mark.spec("casts.try", "casts.strict", "casts.null")
def test_values_are_cast(value: bytes, type: str, result: Any) -> None:
    assert cast(value, type) == result


@pytest.mark.spec("casts.strict", "casts.try")
def test_row_of_a_failed_cast_is_counted_over_all_chunks() -> None:
    good, bad = column([prim("int8", 1), None]), column([prim("int8", 2), text("x")])
    array = pa.chunked_array([good, good, bad])
    with pytest.raises(VariantError) as caught:
        variant.get(array, "$", "int", strict=True)
    assert caught.value.row == 5
    assert variant.get(array, "$", "int").to_pylist() == [1, None, 1, None, 2, None]


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (prim("int64", -(2**63)), "-9223372036854775808"),
        (prim("decimal4", (150, 2)), "1.5"),
        (prim("decimal4", (100, 2)), "1"),
        (prim("decimal4", (-5, 3)), "-0.005"),
        (prim("decimal16", (10**38 - 1, 38)), "0." + "9" * 38),
        (prim("decimal16", (-(10**38) + 1, 0)), "-" + "9" * 38),
        (prim("double", 0.1), "0.1"),
        (prim("double", 3.0), "3.0"),
        (prim("double", 1e300), "1.0E300"),
        (prim("double", math.inf), "Infinity"),
        (prim("double", -math.inf), "-Infinity"),
        (prim("double", math.nan), "NaN"),
        (prim("float", 0.1), "0.1"),
        (prim("float", 16777216.0), "1.6777216E7"),
        (prim("true"), "true"),
        (prim("date", 0), "1970-01-01"),
        (prim("date", -719528), "0000-01-01"),
        (prim("date", -719529), "-0001-12-31"),
        (prim("date", 2932897), "+10000-01-01"),
        (prim("timestamp", 1_500_000), "1970-01-01 00:00:01.5"),
        (prim("timestamp", -1), "1969-12-31 23:59:59.999999"),
        (prim("timestamp_ntz_nanos", 1), "1970-01-01 00:00:00.000000001"),
        (prim("time", 3_723_000_001), "01:02:03.000001"),
    ],
)
def test_equal_scalars_have_the_same_text(value: bytes, result: str) -> None:
    assert cast(value, "string") == result


@pytest.mark.parametrize(
    ("string", "type", "result"),
    [
        (" 12\t", "int", 12),
        ("+12", "bigint", 12),
        ("-128", "tinyint", -128),
        ("1.5", "int", None),
        ("1e3", "int", None),
        ("", "int", None),
        ("-", "int", None),
        ("99999999999999999999", "bigint", None),
        ("0" * 50 + "7", "bigint", 7),
        ("1e3", "double", 1000.0),
        (".5", "double", 0.5),
        ("5.", "double", 5.0),
        ("1e400", "double", math.inf),
        ("-Infinity", "double", -math.inf),
        ("1x", "double", None),
        ("e5", "double", None),
        ("1e", "double", None),
        ("0x10", "double", None),
        ("1" * 60, "double", float("1" * 60)),
        ("0.1" + "0" * 50 + "1", "double", 0.1),
        ("9007199254740993", "double", 9007199254740992.0),
        ("9007199254740993.00000000000000000000000000000000000001", "double", 9007199254740994.0),
        ("1.255", "decimal(9,2)", Decimal("1.26")),
        ("1e-3", "decimal(9,2)", Decimal("0.00")),
        ("1e8", "decimal(9,2)", None),
        ("NaN", "decimal(9,2)", None),
        ("9" * 38 + ".5", "decimal(38,0)", None),
        ("True", "boolean", True),
        ("n", "boolean", False),
        ("2", "boolean", None),
        ("2024-02-29", "date", 19782),
        ("2023-02-29", "date", None),
        ("2024", "date", 19723),
        ("2024-3", "date", 19783),
        ("24-01-01", "date", None),
        ("2024-02-29T12:00:00Z", "date", 19782),
        ("1970-01-01 00:00:01", "timestamp", 1_000_000),
        ("1970-01-01T01:00:00+01:00", "timestamp", 0),
        ("1970-01-01T01:00:00 +0130", "timestamp", -1_800_000_000),
        ("1970-01-01T01:00:00+01:00", "timestamp_ntz", 3_600_000_000),
        ("1969-12-31T23:59:59.9999999Z", "timestamp", -1),
        ("1970-01-01T00:00:00.123456789UTC", "timestamp_ns", 123456789),
        ("1970-01-01T25:00:00", "timestamp", None),
        ("1970-01-01X", "timestamp", None),
        ("999999-01-01", "timestamp_ns", None),
        ("12:34:56.5", "time", 45_296_500_000),
        ("12:34", "time", 45_240_000_000),
        ("12", "time", None),
    ],
)
def test_text_is_parsed(string: str, type: str, result: Any) -> None:
    assert cast(text(string), type) == result


@pytest.mark.parametrize(
    ("value", "type", "result"),
    [
        (prim("date", 1), "timestamp", 86_400_000_000),
        (prim("date", 2**31 - 1), "timestamp_ns", None),
        (prim("timestamp", -1), "date", -1),
        (prim("timestamp", 2**62), "timestamp_ns", None),
        (prim("timestamp_nanos", -1), "timestamp", -1),
        (prim("timestamp_nanos", 1999), "timestamp_ntz", 1),
        (prim("timestamp", -1), "bigint", -1),
        (prim("timestamp", 1_500_000), "double", 1.5),
        (prim("timestamp", 1_500_000), "decimal(9,1)", Decimal("1.5")),
        (prim("timestamp_ntz", 1_500_000), "double", None),
        (prim("int8", 2), "timestamp", 2_000_000),
        (prim("decimal4", (-15, 1)), "timestamp_ns", -1_500_000_000),
        (prim("double", 1.5), "timestamp", 1_500_000),
        (prim("int8", 2), "timestamp_ntz", None),
        (prim("int64", 2**62), "timestamp", None),
        (prim("time", 5), "time", 5),
        (prim("time", 5), "timestamp", None),
    ],
)
def test_dates_and_times_cast_to_each_other(value: bytes, type: str, result: Any) -> None:
    assert cast(value, type) == result


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_exact_numbers_cast_like_decimal_arithmetic(unscaled: int, scale: int) -> None:
    number = Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
    value = prim("decimal16", (unscaled, scale))
    assert cast(value, "double") == float(number)
    assert cast(value, "bigint") == (int(number) if -(2**63) <= int(number) < 2**63 else None)
    with localcontext(prec=100):
        rounded = number.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
    assert cast(value, "decimal(20,2)") == (rounded if abs(rounded) < 10**18 else None)
    assert Decimal(cast(value, "string")) == number


@given(st.one_of(st.floats(), st.floats(width=32)))
def test_doubles_round_trip_through_text(number: float) -> None:
    shown = cast(prim("double", number), "string")
    assert struct.pack("<d", float(shown)) == struct.pack("<d", number) or math.isnan(number)
    back = cast(text(shown), "double")
    assert back == number or math.isnan(number)


@given(st.floats(width=32))
def test_floats_have_the_shortest_exact_text(number: float) -> None:
    shown = cast(prim("float", number), "string")
    assert np.float32(shown) == np.float32(number) or math.isnan(number)
    # The very smallest have two digits, as Java gives them.
    assert float(shown) == float(str(np.float32(number))) or math.isnan(number) or abs(number) < 1e-43


@given(st.text(alphabet="0123456789.+-eE \t", max_size=60))
def test_numbers_in_text_parse_like_in_python(string: str) -> None:
    try:
        wanted = float(string)
    except ValueError:
        wanted = None
    assert cast(text(string), "double") == wanted


@given(st.dates(), st.times())
def test_dates_and_times_print_like_in_python(date: Any, clock: Any) -> None:
    days = (date - type(date)(1970, 1, 1)).days
    micros = ((clock.hour * 60 + clock.minute) * 60 + clock.second) * 10**6 + clock.microsecond
    shown = cast(prim("timestamp_ntz", days * 86_400 * 10**6 + micros), "string")
    printed = f"{date} {clock.isoformat()}"
    assert shown == (printed.rstrip("0") if clock.microsecond else printed)
    assert cast(text(shown), "timestamp_ntz") == days * 86_400 * 10**6 + micros


def nested() -> pa.StructArray:
    names = ["a", "b", "x.y"]
    inner = reference.array_of([prim("int8", 1), reference.object_of([(2, text("deep"))])])
    values = [
        reference.object_of([(0, reference.object_of([(1, inner)]))]),
        reference.object_of([(0, b"\0")]),
        reference.object_of([(1, prim("int8", 3))]),
        prim("int8", 9),
        None,
    ]
    return column(values, reference.encode_metadata(names))


@pytest.mark.parametrize(
    ("path", "type", "result"),
    [
        ("$.a.b[0]", "int", [1, None, None, None, None]),
        ("$.a.b[1]['x.y']", "string", ["deep", None, None, None, None]),
        ("$.a.b[2]", "string", [None] * 5),
        ("$.b", "int", [None, None, 3, None, None]),
        ("$", "int", [None, None, None, 9, None]),
        ("$.zzz", "int", [None] * 5),
        ("$[0]", "int", [None] * 5),
    ],
)
@pytest.mark.spec("path.missing")
def test_path_without_a_value_returns_null(path: str, type: str, result: list[Any]) -> None:
    array = nested()
    assert variant.get(array, path, type).to_pylist() == result
    assert variant.get(array.slice(1), path, type).to_pylist() == result[1:]
    chunked = pa.chunked_array([array.slice(0, 2), array.slice(2)])
    assert variant.get(chunked, path, type).to_pylist() == result


def test_objects_and_arrays_cast_to_json_text_or_variants() -> None:
    array = nested()
    texts = variant.get(array, "$.a.b", "string", strict=True).to_pylist()
    assert json.loads(texts[0]) == [1, {"x.y": "deep"}]
    assert texts[1:] == [None] * 4
    inner = variant.get(array, "$.a", "variant", strict=True)
    assert inner.type == variant_type()
    assert [row and row["value"] for row in inner.to_pylist()][1:] == [b"\0", None, None, None]
    assert variant.get(inner, "$.b[0]", "int").to_pylist() == [1, None, None, None, None]
    chunks = pa.chunked_array([array.slice(3, 2), array.slice(0, 1)])
    with pytest.raises(VariantError, match=r"row 2: the value at \$ does not cast to int64"):
        variant.get(chunks, "$", "bigint", strict=True)


def test_invalid_values_are_rejected_with_their_row() -> None:
    good, bad = reference.array_of([b"\0"]), reference.array_of([prim("time", -5)])
    chunks = pa.chunked_array([column([good, good]), column([good, bad])])
    for path, type in (("$", "string"), ("$[0]", "time"), ("$[0]", "string")):
        with pytest.raises(VariantError, match=r"^row 3: a time of day") as caught:
            variant.get(chunks, path, type)
        assert (caught.value.row, caught.value.rule) == (3, "variant.time.range")


TARGETS = [str(leaf) for leaf in LEAVES if leaf != pa.binary(16)] + ["uuid", "variant"]
steps = st.lists(st.one_of(st.sampled_from(NAMES), st.integers(0, 2)), max_size=3)


@given(st.lists(st.one_of(st.none(), variants()), min_size=1, max_size=5), schemas(), steps, st.sampled_from(TARGETS))
@pytest.mark.spec("casts.shredded")
def test_shredded_variants_match_unshredded_ones(
    rows: list[tuple[bytes, bytes] | None], schema: ShreddingSchema, path: list[str | int], type: str
) -> None:
    array = pa.array([row and {"metadata": row[0], "value": row[1]} for row in rows], variant_type())
    shredded = variant.shred(array, schema)
    before, after = variant.get(array, path, type), variant.get(shredded, path, type)
    after.validate(full=True)
    assert after.type == before.type
    if type == "variant":
        assert canonical(after) == canonical(before)
    elif type in ("float", "double"):
        assert list(map(repr, after.to_pylist())) == list(map(repr, before.to_pylist()))
    elif type != "string":
        assert after.equals(before)
    else:
        # The JSON of an object may differ in how its equal numbers are written.
        for a, b in zip(before.to_pylist(), after.to_pylist(), strict=True):
            assert a == b or (a is not None and b is not None and a[0] in "[{" and b[0] == a[0])
    sliced = variant.get(shredded.slice(1), path, type)
    if type not in ("float", "double"):
        assert sliced.equals(after.slice(1))


def canonical(array: pa.StructArray) -> list[Any]:
    return [
        row and reference.equivalent(reference.decode(row["value"], reference.decode_metadata(row["metadata"])))
        for row in array.to_pylist()
    ]


@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("double", pa.float64()),
        ("int64", pa.int64()),
        ("INT", pa.int32()),
        ("float", pa.float32()),
        ("bool", pa.bool_()),
        ("decimal(9,2)", pa.decimal128(9, 2)),
        ("decimal128(9, 2)", pa.decimal128(9, 2)),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamp[us, tz=UTC]", pa.timestamp("us", "UTC")),
        ("timestamp[ns]", pa.timestamp("ns")),
        ("date32[day]", pa.date32()),
        ("time64[us]", pa.time64("us")),
        ("variant", variant_type()),
        (pa.large_string(), pa.large_string()),
        (pa.uuid(), pa.binary(16)),
        (variant_type(), variant_type()),
    ],
)
def test_types_have_arrow_and_ddl_names(name: str | pa.DataType, type: pa.DataType) -> None:
    assert target_type(name) == type
    assert variant.get(column([b"\0", None]), "$", name).type == type


@pytest.mark.parametrize(
    "name",
    [
        "nonsense",
        "",
        "interval day",
        "duration[us]",
        "array<interval>",
        "map<int, int>",
        "struct<a: int, a: int>",
        "time(4)",
        "decimal128(39, 0)",
        pa.duration("s"),
        pa.month_day_nano_interval(),
        pa.map_(pa.int8(), pa.int8()),
        pa.list_(pa.duration("s")),
        pa.struct([("a", pa.int8()), ("a", pa.int8())]),
        pa.dictionary(pa.int8(), pa.list_(pa.int8())),
        pa.run_end_encoded(pa.int32(), pa.int8()),
        pa.decimal128(5, -2),
    ],
    ids=str,
)
def test_unknown_types_are_rejected(name: Any) -> None:
    with pytest.raises(ValueError, match=r"type|casts? to|map keys|same name|digits|single values|precision"):
        variant.get(column([b"\0"]), "$", name)


@fewer
@given(variants(), steps, st.sampled_from(TARGETS), st.data())
def test_corrupt_bytes_raise_a_typed_error_or_pass(
    row: tuple[bytes, bytes], path: list[str | int], type: str, data: st.DataObject
) -> None:
    parts = [bytearray(part) for part in row]
    for part in parts:
        for _ in range(data.draw(st.integers(0, 2))):
            part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
        if data.draw(st.booleans()):
            del part[data.draw(st.integers(0, len(part))) :]
    with suppress(ValueError):
        variant.get(column([bytes(parts[1]) or None], bytes(parts[0])), path, type)
