"""Bounds and counts for Iceberg, decoded by pyiceberg and held against the values themselves."""

from __future__ import annotations

import math
import struct
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.conversions import from_bytes
from pyiceberg.types import IcebergType, PrimitiveType
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros, time_to_micros
from table_metrics.tables import written, written_by_pyarrow

from pqext import table_metrics
from reference.effort import share

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.just("\U0010ffff" * 20)
_LONG = st.integers(-(1 << 63), (1 << 63) - 1)
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "boolean": (pa.bool_(), st.booleans()),
    "int": (pa.int32(), st.integers(-(1 << 31), (1 << 31) - 1)),
    "long": (pa.int64(), _LONG),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "date": (pa.date32(), st.dates()),
    "time": (pa.time64("us"), st.times()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
    "timestamp_ns": (pa.timestamp("ns"), _LONG),
    "string": (pa.string(), _TEXT),
    "binary": (pa.binary(), st.binary(max_size=40) | st.just(b"\xff" * 30)),
    "fixed[3]": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "decimal(9, 2)": (pa.decimal128(9, 2), st.decimals("-9999999.99", "9999999.99", places=2)),
    "decimal(38, 10)": (pa.decimal128(38, 10), st.decimals(-(10**27), 10**27, places=10)),
}
COLUMNS = st.sampled_from(sorted(VALUES)).flatmap(
    lambda name: st.tuples(st.just(name), st.lists(st.none() | VALUES[name][1], max_size=12))
)


def number(value: Any) -> Any:
    """A value as pyiceberg decodes a bound of its type."""
    if isinstance(value, datetime):
        return datetime_to_micros(value)
    if isinstance(value, date):
        return date_to_days(value)
    return time_to_micros(value) if isinstance(value, time) else value


def decoded(name: str, bound: bytes) -> Any:
    kind = IcebergType.handle_primitive_type(name, None)
    assert isinstance(kind, PrimitiveType)
    return from_bytes(kind, bound)


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


@pytest.mark.spec(
    "metrics.iceberg.bounds", "metrics.iceberg.counts", "metrics.iceberg.single-values", "metrics.exact",
)  # fmt: skip
@settings(max_examples=share(2.0))
@given(COLUMNS, st.booleans(), st.sampled_from([1, 3, 100]))
def test_bounds_and_counts_match_the_values(
    column: tuple[str, list[Any]], exact: bool, row_group_rows: int
) -> None:
    name, given_values = column
    table = pa.table({"c": pa.array(given_values, VALUES[name][0])})
    found = table_metrics.iceberg(written(table, row_group_rows=row_group_rows), exact, mode="full")
    values = table["c"].to_pylist() if name != "timestamp_ns" else pc.cast(table["c"], pa.int64()).to_pylist()
    present = [number(value) for value in values if value is not None]
    ordered = [value for value in present if not is_nan(value)]
    assert found.types == {1: name}
    assert (found.value_counts, found.null_value_counts) == ({1: len(values)}, {1: len(values) - len(present)})
    assert found.nan_value_counts == ({1: len(present) - len(ordered)} if name in ("float", "double") else {})
    assert (1 in found.lower_bounds, 1 in found.upper_bounds) == (bool(ordered), bool(ordered))
    if ordered:
        low, high = decoded(name, found.lower_bounds[1]), decoded(name, found.upper_bounds[1])
        if exact or name not in ("string", "binary"):  # the footer cuts these to 64 bytes
            assert (low, high) == (min(ordered), max(ordered))
        assert all(low <= value <= high for value in ordered)


@pytest.mark.spec("metrics.iceberg.truncation")
@settings(max_examples=share(2.0))
@given(st.lists(_TEXT, min_size=1, max_size=6), st.lists(st.binary(max_size=30), min_size=1, max_size=6))
def test_truncated_bounds_still_bound_text_and_bytes(texts: list[str], raws: list[bytes]) -> None:
    for values, name in ((texts, "string"), (raws, "binary")):
        file = written(pa.table({"c": pa.array(values, VALUES[name][0])}))
        found = table_metrics.iceberg(file, mode="truncate(5)")
        low = decoded(name, found.lower_bounds[1])
        assert len(low) <= 5
        assert all(low <= value for value in values)
        if 1 in found.upper_bounds:
            high = decoded(name, found.upper_bounds[1])
            assert len(high) <= 5
            assert all(value <= high for value in values)
        else:
            last = "\U0010ffff" if name == "string" else b"\xff"
            assert max(values)[:5] == last * 5  # nothing so short is greater


@pytest.mark.spec("metrics.iceberg.truncation")
def test_last_code_point_is_incremented_if_possible() -> None:
    values = ["a" * 15 + "\ud7ff" + "b", "", "a"]
    found = table_metrics.iceberg(written(pa.table({"c": values})))
    assert found.upper_bounds[1].decode() == "a" * 15 + "\ue000"  # what lies between are no characters
    values = ["a" + "\U0010ffff" * 20]
    assert table_metrics.iceberg(written(pa.table({"c": values}))).upper_bounds[1] == b"b"
    assert table_metrics.iceberg(written(pa.table({"c": [b"\x01" + b"\xff" * 20]}))).upper_bounds[1] == b"\x02"


@pytest.mark.spec("metrics.iceberg.zeros")
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("writer", [written, written_by_pyarrow])
def test_zero_bound_has_the_sign_that_widens_it(exact: bool, writer: Any) -> None:
    file = writer(pa.table({"c": [0.0, -0.0]}))
    found = table_metrics.iceberg(file, exact)
    if exact or writer is written:  # pyarrow counts no NaN
        assert found.lower_bounds[1] == struct.pack("<d", -0.0)
        assert found.upper_bounds[1] == struct.pack("<d", 0.0)


@pytest.mark.spec("metrics.iceberg.nan")
def test_floats_without_nan_counts_have_bounds_only_from_values() -> None:
    table = pa.table({"d": [1.0, math.nan], "f": pa.array([3.0, 2.0], pa.float32()), "i": [5, 6]})
    file = written_by_pyarrow(table)
    found, exact = table_metrics.iceberg(file), table_metrics.iceberg(file, exact=True)
    assert (found.nan_value_counts, list(found.lower_bounds)) == ({}, [3])
    assert exact.nan_value_counts == {1: 1, 2: 0}
    assert exact.upper_bounds[1] == exact.lower_bounds[1] == struct.pack("<d", 1.0)
    assert exact.upper_bounds[2] == struct.pack("<f", 3.0)


@pytest.mark.spec("metrics.footer")
def test_fact_missing_in_one_row_group_is_missing_for_the_file() -> None:
    table = pa.table({"a": [1, 2, 3, 4], "b": ["x", "y", "z", None]})
    quiet = written_by_pyarrow(table, write_statistics=["a"], row_group_size=2)
    found = table_metrics.iceberg(quiet)
    assert found.value_counts == {1: 4, 2: 4}
    assert (found.null_value_counts, list(found.lower_bounds), list(found.upper_bounds)) == ({1: 0}, [1], [1])
    exact = table_metrics.iceberg(quiet, exact=True)
    assert exact.null_value_counts == {1: 0, 2: 1}
    assert (exact.lower_bounds[2], exact.upper_bounds[2]) == (b"x", b"z")


@pytest.mark.spec("metrics.footer")
def test_all_null_row_group_does_not_affect_bounds() -> None:
    table = pa.table({"a": pa.array([None, None, 3, 4], pa.int64()), "f": [math.nan, math.nan, 1.0, 2.0]})
    found = table_metrics.iceberg(written(table, row_group_rows=2))
    assert (found.lower_bounds[1], found.upper_bounds[1]) == (struct.pack("<q", 3), struct.pack("<q", 4))
    assert (found.lower_bounds[2], found.upper_bounds[2]) == (struct.pack("<d", 1), struct.pack("<d", 2))


@pytest.mark.spec("metrics.iceberg.single-values")
def test_decimals_are_minimal_big_endian_bytes() -> None:
    for unscaled, expected in ((127, "7f"), (128, "0080"), (-128, "80"), (-129, "ff7f"), (0, "00"), (-1, "ff")):
        table = pa.table({"c": pa.array([Decimal(unscaled).scaleb(-2)], pa.decimal128(20, 2))})
        assert table_metrics.iceberg(written(table)).lower_bounds[1].hex() == expected


@pytest.mark.spec("metrics.iceberg.single-values")
def test_unsigned_numbers_use_the_wider_type_and_its_bounds() -> None:
    table = pa.table({"u": pa.array([3_000_000_000], pa.uint32()), "w": pa.array([1 << 63], pa.uint64())})
    found = table_metrics.iceberg(written(table))
    assert found.types == {1: "long", 2: None}
    assert found.lower_bounds == {1: struct.pack("<q", 3_000_000_000)}
    assert found.null_value_counts == {1: 0, 2: 0}


def signed(identifier: bytes) -> tuple[int, int]:
    """How Java compares UUIDs."""
    high, low = struct.unpack(">qq", identifier)
    return high, low


@pytest.mark.spec("metrics.iceberg.uuid")
@settings(deadline=None)
@given(st.lists(st.uuids().map(lambda one: one.bytes), min_size=1, max_size=5), st.sampled_from([0, 0x80, None]))
def test_uuids_lie_within_their_bounds_in_both_orders(identifiers: list[bytes], first: int | None) -> None:
    if first is not None:
        identifiers = [bytes([one[0] & 0x7F | first]) + one[1:] for one in identifiers]
    field = pa.field("c", pa.binary(16), metadata={"ARROW:extension:name": "arrow.uuid"})
    file = written(pa.table([pa.array(identifiers, pa.binary(16))], schema=pa.schema([field])))
    found = table_metrics.iceberg(file)
    assert found.types == {1: "uuid"}
    assert (1 in found.lower_bounds) is (1 in found.upper_bounds)
    if 1 in found.lower_bounds:
        low, high = found.lower_bounds[1], found.upper_bounds[1]
        assert all(low <= one <= high and signed(low) <= signed(one) <= signed(high) for one in identifiers)
    else:
        heads = [one[:8] for one in identifiers]
        odd = {b"\0" * 8, b"\x80" + b"\0" * 7, b"\x7f" + b"\xff" * 7, b"\xff" * 8}
        assert len({one[0] >> 7 for one in identifiers}) == 2 or {min(heads), max(heads)} & odd


@pytest.mark.spec("metrics.iceberg.uuid")
def test_uuids_with_equal_prefixes_lie_within_their_bounds_in_both_orders() -> None:
    values = [b"\x05" * 8 + b"\x01" * 8, b"\x05" * 8 + b"\x81" * 8]
    field = pa.field("c", pa.binary(16), metadata={"ARROW:extension:name": "arrow.uuid"})
    found = table_metrics.iceberg(written(pa.table([pa.array(values, pa.binary(16))], schema=pa.schema([field]))))
    low, high = found.lower_bounds[1], found.upper_bounds[1]
    for one in values:
        assert low <= one <= high
        assert signed(low) <= signed(one) <= signed(high)


@pytest.mark.spec("metrics.iceberg.uuid")
def test_uuids_of_both_halves_have_no_bounds() -> None:
    ends = ([bytes(16)], [b"\xff" * 16], [b"\x7f" + b"\xff" * 15], [b"\x80" + bytes(15)])
    for values in (*ends, [b"\x01" * 16, b"\x81" * 16]):
        field = pa.field("c", pa.binary(16), metadata={"ARROW:extension:name": "arrow.uuid"})
        found = table_metrics.iceberg(written(pa.table([pa.array(values, pa.binary(16))], schema=pa.schema([field]))))
        assert (found.lower_bounds, found.upper_bounds) == ({}, {})


@pytest.mark.spec("metrics.iceberg.single-values")
def test_finer_unit_is_rounded_outward() -> None:
    table = pa.table({"c": pa.array([1, 2_001], pa.timestamp("ns", "UTC"))})
    schema = {"type": "struct", "fields": [{"id": 7, "name": "c", "required": False, "type": "timestamptz"}]}
    found = table_metrics.iceberg(written(table), schema=schema)
    assert (found.lower_bounds[7], found.upper_bounds[7]) == (struct.pack("<q", 0), struct.pack("<q", 3))


@pytest.mark.spec("metrics.iceberg.repeated")
@pytest.mark.parametrize("exact", [False, True])
def test_columns_in_lists_and_maps_have_counts_only(exact: bool) -> None:
    table = pa.table({
        "l": [[1, None], [], None], "m": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "s": [{"x": 1}, None, {"x": None}],
    })  # fmt: skip
    found = table_metrics.iceberg(written(table), exact)
    by_name = {name: id for id, name in found.names.items()}
    assert list(found.lower_bounds) == [by_name["s.x"]]
    assert found.null_value_counts[by_name["s.x"]] == 2
    # An empty and a null list have an entry each, which is no value.
    assert (found.value_counts[by_name["l.element"]], found.null_value_counts[by_name["l.element"]]) == (4, 3)
    assert found.value_counts[by_name["m.key"]] == 3
