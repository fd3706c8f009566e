"""Values of every variant type that Spark knows, and the types it casts them to: what differential tests compare."""

from __future__ import annotations

import math

from reference import variant_shred as reference

NAMES = ["a", "b", "c", "x.y"]
METADATA = reference.encode_metadata(NAMES)

_prim = reference.primitive
_object = reference.object_of
_array = reference.array_of

_NUMBERS: dict[str, list[int]] = {
    "int8": [0, 1, -1, 127, -128],
    "int16": [128, 32767, -32768],
    "int32": [32768, 2**31 - 1, -(2**31), 86400],
    "int64": [2**31, 2**53 + 1, 2**63 - 1, -(2**63), 253402300800, 9223372036854, 9223372036855, -9223372036855],
    "date": [0, 1, -1, 19782, -719528, -719529, 2932897, 106751991, 106751992, -106751992, -106751993, 2**31 - 1],
}
_INSTANTS = [
    0, 1, -1, 1_500_000, -1_500_000, 86399999999, 1700000000123456, 2**63 - 1, -(2**63), -62135596800000001,
    253402300800000000, -62167219200000001, 100000, 120,
]  # fmt: skip
_DOUBLES = [
    0.0, -0.0, 1.0, 0.1, 1.5, -2.5, 1.005, 0.5, 1e10, 1e7, 9999999.0, 0.001, 0.0001, 1e15, 1e16, 1e23, 5e-324,
    1.7976931348623157e308, 2.2250738585072014e-308, math.nan, math.inf, -math.inf, 127.9, -128.9, 32767.5,
    2147483647.5, 9.223372036854775e18, 9.223372036854776e18, 1e20, 3.4028234663852886e38, 3.4028235677973366e38,
    1e39, 123.456, 99.995, 1700000000.123456789, 1e13, 9223372036854.775, -1e-10, 2.0**60,
]  # fmt: skip
_FLOATS = [
    0.0, -0.0, 1.5, 0.1, math.nan, math.inf, 3.4028234663852886e38, 1e-45, 16777216.0, 1e10, 9999999.0, 1e-4,
    127.9, 300.5, -2.5,
]  # fmt: skip
_DECIMALS = {
    "decimal4": [(0, 2), (150, 2), (100, 2), (-5, 3), (1255, 3), (-1255, 3), (1254, 3), (999999999, 9), (-1289, 1)],
    "decimal8": [(10**17, 17), (-(10**18) + 1, 0), (1500000000123456, 6), (5, 18), (-123456789012345678, 9)],
    "decimal16": [
        (10**38 - 1, 0), (10**38 - 1, 38), (-(10**38) + 1, 0), (1, 38), (5 * 10**37, 38), (92233720368547758070, 1),
        (92233720368547758089, 1), (10**20, 20), (1700000000123456789, 9), (-1700000000123456789, 9), (12345, 7),
    ],
}  # fmt: skip
_BYTES = [b"", b"ab", b"\xff", b"1", b"true", "é".encode(), b"2024-01-01", bytes(range(16))]
TEXTS = [
    "", "ab", " 12\t", "+12", "-128", "128", "1.5", "1e3", "-", "99999999999999999999", "0" * 50 + "7", ".5", "5.",
    "1e400", "-Infinity", "inf", "+Infinity", "NaN", "nan", "+NaN", "-NaN", "1x", "1d", "1.5D", "1L", "e5", "1e",
    "0x10", "0x1p3", "1e-3", "1e8", "9" * 38 + ".5", "9" * 39, "1e37", "True", "t", "YES", "y", "1", "0", "n", "no",
    "F", "2", "on", " true ", "true\x00", "-0", "-0.0", "1.255", "--1", ".", "12 13", "127.9", "1_000", "\u00a012",
    "１２", "1.7976931348623159e308", "2.4703282292062327e-324", "3.4028235e38", "3.5e38", "16777217",
    "0.1" + "0" * 50 + "1", "1e2147483648", "1e-2147483647", "1e-99999999999", "9223372036854775807",
    "9223372036854775808", "-9223372036854775809", "00010203-0405-0607-0809-0a0B0c0D0e0F",
    "2024-02-29", "2023-02-29", "2024", "2024-3", "2024-3-1", "24-01-01", "2024-02-29T12:00:00Z", "2024-02-29T",
    "2024-02-29 ", "2024-02-29 junk", "2024-3Tjunk", "10000-01-01", "+10000-01-01", "-0001-01-01", "0000-01-01",
    "123456-01-01", "1234567-01-01", "12345678-01-01", "294247-01-10T04:00:54.775807Z",
    "294247-01-10T04:00:54.775808Z", "-290308-12-21T19:59:05.224192Z", "-290308-12-21T19:59:05.224191Z",
    "2024-13-01", "2024-00-01", "2024-01-32", "2024-01-01T1:2:3", "2024-01-01T01:02", "2024-01-01T01",
    "2024-01-01T01:02:03.", "2024-01-01T01:02:03.1", "2024-01-01T01:02:03.1234567891", "2024-01-01T01:02:03+01:00",
    "2024-01-01T01:02:03+1", "2024-01-01T01:02:03+01", "2024-01-01T01:02:03+0100", "2024-01-01T01:02:03+1:0",
    "2024-01-01T01:02:03 +01:00", "2024-01-01T01:02:03-18:00", "2024-01-01T01:02:03+18:01",
    "2024-01-01T01:02:03Z", "2024-01-01T01:02:03z", "2024-01-01T01:02:03UTC", "2024-01-01T01:02:03 utc",
    "2024-01-01T01:02:03 GMT+1", "2024-01-01T01:02:03UTC+01:30", "2024-01-01T01:02:03UT", "2024-01-01t01:02:03",
    "2024-01-01T01:02:03 +01:00:30", "2024-01-01T01:02:03 Europe/Paris", "2024-01-01T01:02:03 PST",
    "2024-01-01T01:02:03 Foo/Bar", "2024-01-01  01:02:03", "2024-01-01T01:02:60", "2024-01-01T24:00:00",
    "01:02:03", "T01:02:03", "12:34:56.5", "12:34", "12", "12:34:56.1234567", "12:34:56.", "24:00:00",
    "12:34:56 PM", "12:34:56 AM", "1:02:03 pm", "13:00:00 PM", "0:30:00 AM", "12:34:56Z", "now", " 2024-01-01 ",
    "20240101", "2024/01/01", "1969-12-31T23:59:59.9999999Z",
]  # fmt: skip


def _values() -> dict[str, bytes]:
    values = {name: _prim(name) for name in ("null", "true", "false")}
    values["uuid"] = _prim("uuid", bytes(range(16)))
    for name, numbers in _NUMBERS.items():
        values |= {f"{name} {number}": _prim(name, number) for number in numbers}
    for name in ("timestamp", "timestamp_ntz"):
        values |= {f"{name} {number}": _prim(name, number) for number in _INSTANTS}
    for name, floats in (("double", _DOUBLES), ("float", _FLOATS)):
        values |= {f"{name} {number!r}": _prim(name, number) for number in floats}
    for name, decimals in _DECIMALS.items():
        values |= {f"{name} {number}e-{scale}": _prim(name, (number, scale)) for number, scale in decimals}
    values |= {f"binary {data!r}": _prim("binary", data) for data in _BYTES}
    values |= {f"string {text!r}": _prim("string", text) for text in TEXTS}
    return values | _containers()


def _containers() -> dict[str, bytes]:
    one, two, null = _prim("int8", 1), _prim("int8", 2), _prim("null")
    x, yes = _prim("string", "x"), _prim("true")
    mixed = [_prim("double", 0.5), _prim("float", 0.1), _prim("date", 5), _prim("binary", b"ab"), _prim("timestamp", 0)]
    return {
        "{}": _object([]),
        "[]": _array([]),
        "[1, 2]": _array([one, two]),
        "[1, 'x']": _array([one, x]),
        "[1, null]": _array([one, null]),
        "{a: 1}": _object([(0, one)]),
        "{a: 1, b: 'x'}": _object([(0, one), (1, x)]),
        "{a: null}": _object([(0, null)]),
        "{a: {a: 2}}": _object([(0, _object([(0, two)]))]),
        "{a: [1, 2]}": _object([(0, _array([one, two]))]),
        "{a: 'x', c: true}": _object([(0, x), (2, yes)]),
        "[[1], [2, 1]]": _array([_array([one]), _array([two, one])]),
        "[{a: 1}, {b: 2}]": _array([_object([(0, one)]), _object([(1, two)])]),
        "[mixed]": _array(mixed),
    }


VALUES = _values()
"""Encoded values by what they are, all with ``METADATA``."""

TYPES = [
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,0)", "decimal(9,2)",
    "decimal(38,0)", "decimal(38,20)", "decimal(2,2)", "decimal(38,38)", "string", "binary", "date", "timestamp",
    "timestamp_ntz", "time(6)", "time(3)", "time(0)", "array<int>", "array<string>", "array<array<int>>",
    "array<double>", "array<struct<a:int>>", "map<string,int>", "map<string,string>", "struct<a:int>",
    "struct<a:int,b:string>", "struct<A:int>", "struct<a:string,c:boolean>", "struct<a:struct<a:int>>",
    "struct<a:array<int>>", "map<string,array<int>>",
]  # fmt: skip
"""Types by names that Spark and pqext share."""
WITH_VARIANTS = ["variant", "array<variant>", "map<string,variant>", "struct<a:variant>"]
