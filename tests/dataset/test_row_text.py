"""Values as text: DuckDB's cast to VARCHAR is the oracle, in CSV, JSON and tables, of columns and of variants."""

from __future__ import annotations

import csv
import io
import json
import math
import struct
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext import geo, variant
from pqext.core.base.errors import CorruptFileError
from pqext.core.schema.types.marks import UUID_MARK
from pqext.dataset.kernels.row_text import RowText, TextKind
from pqext.dataset.presentation.columns import Formats
from pqext.dataset.presentation.row_text import csv_heading, csv_lines, json_lines, texts
from pqext.variant.conversion.arrow import from_arrow
from reference.effort import share


def csv_of(table: pa.Table) -> list[list[str]]:
    data = csv_heading(table.schema)
    data += b"".join(part for batch in table.to_batches() for part in csv_lines(batch, table.schema))
    return list(csv.reader(io.StringIO(data.decode(), newline="")))


def json_of(table: pa.Table) -> list[Any]:
    data = b"".join(part for batch in table.to_batches() for part in json_lines(batch, table.schema))
    return [json.loads(line) for line in data.decode().split("\n")[:-1]]


@cache
def connected() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone='UTC'")
    return connection


def duckdb_texts(array: pa.Array, expression: str = "a::VARCHAR") -> list[str | None]:
    connection = connected()
    connection.register("t", pa.table({"a": array}))
    return [row[0] for row in connection.execute(f"SELECT {expression} FROM t").fetchall()]


def row_texts(array: pa.Array, field: pa.Field | None = None) -> list[str | None]:
    found: list[str | None] = texts(array, field or pa.field("a", array.type)).to_pylist()
    return found


def integers(bits: int, signed: bool = True) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else st.integers(0, (1 << bits) - 1)


DAY = 86_400
YEARS = 365 * 5_000
STORED: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bool": (pa.bool_(), st.booleans()),
    "int8": (pa.int8(), integers(8)),
    "int16": (pa.int16(), integers(16)),
    "int32": (pa.int32(), integers(32)),
    "int64": (pa.int64(), integers(64)),
    "uint8": (pa.uint8(), integers(8, False)),
    "uint16": (pa.uint16(), integers(16, False)),
    "uint32": (pa.uint32(), integers(32, False)),
    "uint64": (pa.uint64(), integers(64, False)),
    "decimal": (pa.decimal128(38, 7), st.decimals(-10**30, 10**30, places=7)),
    "whole decimal": (pa.decimal128(9, 0), st.decimals(-10**8, 10**8, places=0)),
    "date": (pa.date32(), st.integers(-YEARS, YEARS * 2)),
    "seconds": (pa.timestamp("s"), st.integers(-YEARS * DAY, YEARS * DAY)),
    "milliseconds": (pa.timestamp("ms"), st.integers(-YEARS * DAY * 10**3, YEARS * DAY * 10**3)),
    "microseconds": (pa.timestamp("us"), st.integers(-YEARS * DAY * 10**6, YEARS * DAY * 10**6)),
    "nanoseconds": (pa.timestamp("ns"), st.integers(-(2**62), 2**62)),
    "instant": (pa.timestamp("us", "America/New_York"), st.integers(-YEARS * DAY * 10**6, YEARS * DAY * 10**6)),
    "time in ms": (pa.time32("ms"), st.integers(0, DAY * 10**3 - 1)),
    "time in us": (pa.time64("us"), st.integers(0, DAY * 10**6 - 1)),
    "duration": (pa.duration("us"), st.integers(-(2**50), 2**50)),
    "interval": (
        pa.month_day_nano_interval(),
        st.tuples(integers(31), integers(31), st.integers(-(2**40), 2**40).map(lambda n: n * 1000)),
    ),
    "binary": (pa.binary(), st.binary(max_size=20)),
    "fixed binary": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "text": (pa.string(), st.text(max_size=20)),
    "large text": (pa.large_string(), st.text(max_size=20)),
    "text view": (pa.string_view(), st.text(max_size=20)),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["a", "b,c", ""])),
}


def array_of(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


@pytest.mark.parametrize("name", STORED)
@settings(max_examples=share(0.4))
@given(data=st.data())
def test_value_text_matches_duckdb_in_every_format(name: str, data: st.DataObject) -> None:
    kind, strategy = STORED[name]
    array = array_of(kind, data.draw(st.lists(st.none() | strategy, min_size=1, max_size=8)))
    expected = duckdb_texts(array)
    assert row_texts(array) == expected
    table = pa.table({"a": array, "b": pa.nulls(len(array), pa.int8())})
    assert [row[0] or None for row in csv_of(table)[1:]] == [text or None for text in expected]
    is_literal = name == "bool" or ("int" in name and name != "interval") or "decimal" in name
    if is_literal:  # of JSON, with the digits of the text
        lines = b"".join(json_lines(table.to_batches()[0], table.schema)).decode().splitlines()
        assert [line.removeprefix('{"a": ').removesuffix(', "b": null}') for line in lines] == [
            "null" if text is None else text for text in expected
        ]
    else:
        assert [row["a"] for row in json_of(table)] == expected


@given(st.lists(st.none() | st.floats(width=64) | st.sampled_from([1e16, 1e15, 1e-4, 1e-5, -0.0, 5e-324]), min_size=1))
def test_double_text_matches_duckdb(values: list[float | None]) -> None:
    array = pa.array(values, pa.float64())
    expected = duckdb_texts(array)
    assert row_texts(array) == ["nan" if text == "-nan" else text for text in expected]


@given(st.lists(st.floats(width=32) | st.sampled_from([0.1, 16777216.0, 1e-5, 3.4e38]), min_size=1))
def test_float_has_the_shortest_digits_of_its_type(values: list[float]) -> None:
    array = pa.array(values, pa.float32())
    for text, theirs, value in zip(row_texts(array), duckdb_texts(array), array.to_pylist(), strict=True):
        assert text is not None
        assert theirs is not None
        # DuckDB has a digit more where the value lies half-way between two texts that read back.
        assert len(text) <= len(theirs.replace("-nan", "nan"))
        assert math.isnan(value) or struct.pack("f", float(text)) == struct.pack("f", float(theirs))
    assert row_texts(pa.array([0.1, math.nan, -math.inf], pa.float32())) == ["0.1", "nan", "-inf"]


def test_nan_is_a_json_string() -> None:
    for kind in (pa.float64(), pa.float32(), pa.float16()):
        array = pa.array([math.nan, math.inf, -math.inf], kind)
        table, expected = pa.table({"a": array}), duckdb_texts(array.cast(pa.float64()))
        rows = pa.StructArray.from_arrays([array.cast(pa.float64())], ["n"])
        variants, objects = from_arrow(array), from_arrow(rows)
        shredded = variant.shred(variants, "DOUBLE"), variant.shred(objects, "n DOUBLE")
        for column in (array, variants, shredded[0]):
            table = pa.table({"a": column})
            assert [row["a"] for row in json_of(table)] == [cell for (cell,) in csv_of(table)[1:]] == expected
        for column in (rows, objects, shredded[1]):
            assert [row["a"]["n"] for row in json_of(pa.table({"a": column}))] == expected


def test_uuid_is_text() -> None:
    array = pa.array([bytes(range(16)), None], pa.binary(16))
    expected = duckdb_texts(pa.array(["00010203-0405-0607-0809-0a0b0c0d0e0f", None]), "a::UUID::VARCHAR")
    assert row_texts(array, pa.field("a", array.type, metadata=UUID_MARK)) == expected
    assert row_texts(pa.array([bytes(range(16)), None], pa.uuid())) == expected


def test_value_text_does_not_depend_on_other_rows() -> None:
    near = pa.array([0], pa.int64()).cast(pa.timestamp("us"))
    far = pa.array([0, 2**61], pa.int64()).cast(pa.timestamp("us"))  # which Python's datetime does not hold
    assert row_texts(far)[:1] == row_texts(near) == ["1970-01-01 00:00:00"]


VARIANTS = ("bool", "int8", "int64", "whole decimal", "date", "microseconds", "instant", "time in us", "binary", "text")


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("is_shredded", [False, True])
@settings(max_examples=share(0.4))
@given(data=st.data())
def test_variant_value_has_the_text_of_its_column(
    name: str, is_shredded: bool, data: st.DataObject
) -> None:
    kind, strategy = STORED[name]
    array = array_of(kind, data.draw(st.lists(strategy, min_size=1, max_size=8)))
    rows = pa.StructArray.from_arrays([array], ["n"])
    plain, objects = from_arrow(array), from_arrow(rows)
    if is_shredded:
        plain, objects = (variant.shred(part, variant.infer_schema(part)) for part in (plain, objects))
    expected = duckdb_texts(array)
    assert row_texts(plain) == expected
    assert json_of(pa.table({"a": objects})) == json_of(pa.table({"a": rows}))
    assert json_of(pa.table({"a": plain})) == json_of(pa.table({"a": array}))


def test_decimal_in_a_variant_does_not_show_the_shredding_scale() -> None:
    array = variant.parse_json(["6.5", "5.25", "7"])
    shredded = variant.shred(array, variant.infer_schema(array))
    expected = duckdb_texts(pa.array(["6.5", "5.25", "7"]))
    assert row_texts(array) == row_texts(shredded) == expected


@given(st.lists(st.text(max_size=12), min_size=1))
def test_strings_in_variants_are_unquoted_only(values: list[str]) -> None:
    array = from_arrow(pa.array(values))
    assert row_texts(array) == values
    assert [row[0] for row in csv_of(pa.table({"a": array}))[1:]] == values


def test_nested_values_match_the_json_of_duckdb() -> None:
    table = pa.table({
        "s": pa.array([{"a": 1, "b": 'x"y', "c": None}, None]),
        "l": pa.array([[1, None], []], pa.list_(pa.int32())),
        "f": pa.array([[1.5, 2.0], None], pa.list_(pa.float64(), 2)),
        "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int32())),
        "n": pa.array([[(7, "x")], None], pa.map_(pa.int32(), pa.string())),
        "d": pa.array([[("k", [{"x": b"\x01"}])], []], pa.map_(pa.string(), pa.list_(pa.struct({"x": pa.binary()})))),
    })
    with duckdb.connect() as connection:
        connection.register("t", table)
        expected = [json.loads(row[0]) for row in connection.execute("SELECT to_json(t) FROM t").fetchall()]
    assert json_of(table) == expected
    heading, *rows = csv_of(table)
    assert heading == table.schema.names
    assert [[json.loads(cell) if cell else None for cell in row] for row in rows] == [
        list(row.values()) for row in expected
    ]


@given(st.lists(st.none() | st.lists(st.none() | st.integers(-5, 5), max_size=3), min_size=4), st.integers(0, 3))
def test_slices_of_nested_arrays_print_their_rows(values: list[Any], start: int) -> None:
    for kind in (pa.list_(pa.int64()), pa.large_list(pa.int64())):
        lists = pa.array(values, kind)
        rows = pa.array([{"x": value, "y": [value]} for value in values])
        maps = pa.array([[("k", value)] for value in values], pa.map_(pa.string(), kind))
        table = pa.table({"l": lists, "s": rows, "m": maps}).slice(start, 3)
        assert json_of(table) == [{**row, "m": dict(row["m"])} for row in table.to_pylist()]


def test_fixed_size_list_is_sliced() -> None:
    array = pa.array([[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.int8(), 2))
    assert [row["a"] for row in json_of(pa.table({"a": array}).slice(1, 2))] == [None, [3, 4]]


def test_geometries_and_variants_are_text_at_any_depth() -> None:
    values = variant.parse_json(['{"n": 1.5}', '"a"'])
    points = geo.from_points([1.0, 2.0], [3.0, 4.0]).storage
    fields = [variant.variant_field("v"), geo.geometry_field("g")]
    column = pa.StructArray.from_arrays([values, points], fields=fields)
    schema = pa.schema([pa.field("s", column.type)])
    expected = [{"v": {"n": 1.5}, "g": "POINT (1 3)"}, {"v": "a", "g": "POINT (2 4)"}]
    assert [row["s"] for row in json_of(pa.table([column], schema=schema))] == expected
    stored = b"".join(json_lines(pa.record_batch([column], schema=schema), schema, Formats())).decode()
    assert json.loads(stored.splitlines()[0])["s"]["v"]["metadata"] == "\\x11\\x01\\x00\\x01n"


def test_names_are_escaped_and_rows_without_columns_are_counted() -> None:
    table = pa.table({'a "b",': [1], "": [None]})
    assert json_of(table) == [{'a "b",': 1, "": None}]
    assert csv_of(table) == [['a "b",', ""], ["1", ""]]
    assert csv_of(pa.table({"a": pa.array([None, ""], pa.string())})) == [["a"], [""], [""]]


def test_leading_and_trailing_blanks_are_quoted() -> None:
    table = pa.table({"a": [" x", "x\t", "x y", "x\r"], "b": [1, 2, 3, 4]})
    data = b"".join(csv_lines(table.to_batches()[0], table.schema))
    assert data == b'" x",1\n"x\t",2\nx y,3\n"x\r",4\n'


def test_invalid_utf8_is_an_error_with_its_column() -> None:
    bad = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(struct.pack("ii", 0, 1)), pa.py_buffer(b"\xff")]
    )
    table = pa.table({"a": [1], "b": bad})
    for write in (json_lines, csv_lines):
        with pytest.raises(CorruptFileError, match=r"column 'b', row 0 .*not UTF-8"):
            list(write(table.to_batches()[0], table.schema))


def test_short_buffers_are_errors() -> None:
    node = (int(TextKind.KIND_INT), 8, 0, 5, 0, 0, None, pa.py_buffer(bytes(32)), None, 0, 0)
    with pytest.raises(ValueError, match="too short"):
        RowText([node], [b'"a": '], 1, 5)
    offsets = pa.py_buffer(struct.pack("ii", 0, 9))
    node = (int(TextKind.KIND_STRING), 4, 0, 1, 0, 0, None, pa.py_buffer(b"abc"), offsets, 0, 0)
    rows, _, fault, column = RowText([node], [b'"a": '], 1, 1).json(0, 100)
    assert (rows, fault < 0, column) == (0, True, 0)
