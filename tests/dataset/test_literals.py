"""Literals of every library take one canonical form, and compare only with columns of their kind."""

from __future__ import annotations

import copy
import pickle
import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pqext.core.format.metadata import SchemaElement, Type
from pqext.core.schema.lazy_tree import from_elements
from pqext.dataset.expressions import Constant, col
from pqext.dataset.expressions.literals import (
    ValueType,
    key,
    to_literal,
    to_value,
    value_text,
    value_type_of_arrow,
    value_type_of_node,
)
from pqext.dataset.expressions.mistakes import comparison_value, comparison_values
from pqext.dataset.notations.json_text import from_json, to_json


class Colour(IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Colour.RED, 1),
        (np.int8(5), 5),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.bytes_(b"x"), b"x"),
        (bytearray(b"x"), b"x"),
        (Decimal("Infinity"), float("inf")),
        (np.datetime64("2020-01-02"), date(2020, 1, 2)),
        (np.datetime64("2020-01"), date(2020, 1, 1)),
        (np.datetime64("2020-01-02T03:04"), datetime(2020, 1, 2, 3, 4)),
        (np.datetime64("2020-01-02T03:04:05.000001"), datetime(2020, 1, 2, 3, 4, 5, 1)),
        (np.datetime64(3, "ns"), pa.scalar(3, pa.timestamp("ns"))),
        (pd.Timestamp("2020-01-02"), datetime(2020, 1, 2)),
        (pd.Timestamp("1970-01-01 00:00:00.000000003", tz="UTC"), pa.scalar(3, pa.timestamp("ns", "UTC"))),
        (pd.Timestamp("2020-01-02", tz="Europe/Paris"), datetime(2020, 1, 1, 23, tzinfo=UTC)),
        (datetime(2020, 1, 2, tzinfo=timezone(timedelta(hours=5))), datetime(2020, 1, 1, 19, tzinfo=UTC)),
        (datetime(2020, 1, 2, fold=1), datetime(2020, 1, 2)),
        (pa.scalar(5, pa.int8()), 5),
        (pa.scalar("x", pa.large_string()), "x"),
        (pa.scalar(Decimal("1.50"), pa.decimal128(5, 2)), Decimal("1.50")),
        (pa.scalar(date(2020, 1, 2)), date(2020, 1, 2)),
        (pa.scalar(1_000_000_000, pa.timestamp("ns")), datetime(1970, 1, 1, 0, 0, 1)),
        (pa.scalar(1_000_000, pa.timestamp("us", "Asia/Tokyo")), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (pa.scalar(2**62, pa.timestamp("s")), pa.scalar(2**62, pa.timestamp("s"))),
        (pa.scalar(1000, pa.time64("ns")), time(0, 0, 0, 1)),
        (pa.scalar(1, pa.time64("ns")), pa.scalar(1, pa.time64("ns"))),
        (pa.scalar(UUID(int=1), pa.uuid()), UUID(int=1)),
        (pa.DictionaryArray.from_arrays([0], ["x"])[0], "x"),
    ],
    ids=repr,
)
def test_scalars_of_every_library_produce_equal_literals(given: Any, expected: Any) -> None:
    literal = to_literal(given)
    assert key(literal) == key(expected)
    assert type(literal) is type(expected)
    assert key(to_literal(literal)) == key(literal)


@pytest.mark.parametrize("missing", [None, pd.NaT, np.datetime64("NaT"), pa.scalar(None, pa.int64())], ids=repr)
def test_nulls_are_not_literals(missing: Any) -> None:
    with pytest.raises(ValueError, match="is_null"):
        to_literal(missing)


@pytest.mark.parametrize(
    "wrong",
    [object(), [1], 1j, time(1, tzinfo=UTC), pa.scalar([1]),
     np.timedelta64(1, "Y"), np.longdouble(1), np.datetime64(1, "ps")],
    ids=lambda value: "object()" if type(value) is object else repr(value),
)  # fmt: skip
def test_value_without_a_column_type_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError):
        to_literal(wrong)


@pytest.mark.parametrize(
    "far",
    [10**1001, Decimal("1e1001"), Decimal("sNaN"), "\ud800", np.datetime64(10**6, "Y"),
     datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_value_out_of_every_range_is_a_value_error(far: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the reasons differ
        to_literal(far)


KINDS = {
    "boolean": True,
    "integer": 1,
    "string": "x",
    "binary": b"x",
    "date": date(2020, 1, 1),
    "time": time(1),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("literal", KINDS)
def test_literal_types_do_not_mix(kind: str, literal: str) -> None:
    if kind == literal:
        to_value(KINDS[literal], ValueType(kind), "c")
        return
    with pytest.raises(TypeError, match=f"column c contains {kind} values"):
        to_value(KINDS[literal], ValueType(kind), "c")


def test_values_have_the_representation_of_statistics() -> None:
    assert to_value("é", ValueType("string"), "c") == b"\xc3\xa9"
    assert to_value(date(1970, 1, 2), ValueType("date"), "c") == 1
    assert to_value(date(1970, 1, 2), ValueType("timestamp"), "c") == 86_400 * 10**9
    assert to_value(datetime(1969, 12, 31, 23, 59, 59, 999_999), ValueType("timestamp"), "c") == -1000
    assert to_value(datetime(1970, 1, 1, tzinfo=UTC), ValueType("timestamp", True), "c") == 0
    assert to_value(pa.scalar(7, pa.timestamp("ns")), ValueType("timestamp"), "c") == 7
    assert to_value(time(0, 0, 1), ValueType("time"), "c") == 10**9
    assert to_value(UUID(int=1), ValueType("uuid"), "c") == bytes(15) + b"\x01"
    assert to_value(2**70, ValueType("integer"), "c") == 2**70
    assert to_value(Decimal("1.5"), ValueType("integer"), "c") == Decimal("1.5")
    assert to_value(1.1, ValueType("decimal"), "c") == Decimal("1.1")
    assert to_value(1.1, ValueType("float"), "c") == 1.1
    assert to_value(float("inf"), ValueType("decimal"), "c") == float("inf")


@pytest.mark.parametrize(
    ("literal", "utc"),
    [
        (datetime(2020, 1, 1), True),
        (datetime(2020, 1, 1, tzinfo=UTC), False),
        (date(2020, 1, 1), True),
        (pa.scalar(1, pa.timestamp("ns")), True),
        (pa.scalar(1, pa.timestamp("ns", "UTC")), False),
    ],
)
def test_instants_and_local_times_do_not_mix(literal: Any, utc: bool) -> None:
    with pytest.raises(TypeError, match="column c contains timestamp"):
        to_value(literal, ValueType("timestamp", utc), "c")


def test_datetime_is_not_a_date() -> None:
    with pytest.raises(TypeError, match="column c contains date values"):
        to_value(datetime(2020, 1, 1), ValueType("date"), "c")


@pytest.mark.parametrize(
    ("type", "kind"),
    [
        (pa.uint8(), ValueType("integer")),
        (pa.float16(), ValueType("float")),
        (pa.decimal256(50, 3), ValueType("decimal")),
        (pa.dictionary(pa.int8(), pa.binary()), ValueType("binary")),
        (pa.run_end_encoded(pa.int16(), pa.bool_()), ValueType("boolean")),
        (pa.uuid(), ValueType("uuid")),
        (pa.binary(16), ValueType("uuid")),
        (pa.binary(15), ValueType("binary")),
        (pa.binary_view(), ValueType("binary")),
        (pa.timestamp("s", "Asia/Tokyo"), ValueType("timestamp", True)),
        (pa.timestamp("s"), ValueType("timestamp")),
        (pa.null(), ValueType("null")),
        (pa.list_(pa.int8()), None),
        (pa.struct([]), None),
        (pa.duration("s"), ValueType("duration", unit="s")),
    ],
    ids=str,
)
def test_arrow_types_have_literal_types(type: pa.DataType, kind: ValueType | None) -> None:
    assert value_type_of_arrow(type) == kind


def test_nested_types_have_no_literal_type() -> None:
    schema = from_elements(
        [
            SchemaElement(name="root", num_children=2),
            SchemaElement(name="g", num_children=1, repetition_type=0),
            SchemaElement(name="x", type=Type.INT32, repetition_type=0),
            SchemaElement(name="y", type=Type.DOUBLE, repetition_type=0),
        ]
    )
    assert value_type_of_node(schema.root.children[0]) is None
    assert value_type_of_node(schema.root.children[1]) == ValueType("float")


def test_values_are_parsed_as_literals() -> None:
    assert value_text(b"\xc3\xa9", ValueType("string")) == "'é'"
    assert value_text(b"\xff", ValueType("string")) == r"b'\xff'"
    assert value_text(1, ValueType("date")) == "1970-01-02"
    assert value_text(10**12, ValueType("date")) == "1000000000000"
    assert value_text(1000, ValueType("timestamp", True)) == "1970-01-01 00:00:00.000001+00:00"
    assert value_text(10**9, ValueType("time")) == "00:00:01"
    assert value_text(b"\x01", ValueType("uuid")) == "01"
    assert value_text(1.5, None) == "1.5"


@pytest.mark.parametrize(("literal", "text"), [
    (pa.scalar(568_971_820_800, pa.timestamp("s")), "20000-01-01 00:00:00"),
    (pa.scalar(-(1 << 62), pa.timestamp("ms", "UTC")), None),
    (pa.scalar(1, pa.timestamp("ns", "UTC")), "1970-01-01 00:00:00.000000001+00:00"),
    (pa.scalar(1, pa.time64("ns")), "00:00:00.000000001"),
])
def test_literals_beyond_python_types_print_and_pickle(literal: pa.Scalar, text: str | None) -> None:
    column = col("t")
    for expression in (column == literal, column.isin([literal, date(2026, 5, 31)]), column + 1 == Constant(literal)):
        travelled = pickle.loads(pickle.dumps(expression))
        assert travelled.equals(expression)
        assert hash(travelled) == hash(expression)
        assert copy.deepcopy(expression).equals(expression)
        assert text is None or text in str(expression)
        assert str(from_json(to_json(expression))) == str(expression)


def test_invalid_utf8_is_a_typed_error() -> None:
    texts = pa.array([b"\xff"]).view(pa.string())
    for make in (lambda: col("t").isin(texts), lambda: col("t") == texts[0], lambda: col("t").isin([texts[0]])):
        with pytest.raises(ValueError, match=r"string literal b'\\xff' is not UTF-8; compare a binary") as caught:
            make()
        assert not isinstance(caught.value, UnicodeDecodeError)


@pytest.mark.parametrize("name", ["integer", "float", "decimal", "string", "binary", "date"])
@pytest.mark.parametrize("literals", [(), (1, 2), (1.5, -2), (1, Decimal("2.5")), ("a", "é"), (b"a",), ("2026-05-01",)])
def test_lists_of_literals_convert_like_single_literals(name: str, literals: tuple[Any, ...]) -> None:
    kind, operand = ValueType(name), col("c")
    try:
        expected = [comparison_value(literal, kind, operand) for literal in literals]
    except TypeError as error:
        with pytest.raises(TypeError, match=re.escape(str(error))):
            comparison_values(literals, kind, operand)
        return
    result = comparison_values(literals, kind, operand)
    assert [*zip(map(type, result), result, strict=True)] == [*zip(map(type, expected), expected, strict=True)]
