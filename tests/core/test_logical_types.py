"""Every logical type: what is annotated, what others see, what comes back, and what is refused."""

from __future__ import annotations

import datetime as dt
import io
import os
import struct
import uuid
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.columns import column, one, read, written
from core.raw_files import OPTIONAL, REQUIRED, Column, byte_arrays, int32, int64, leaf, write
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.format.metadata import (
    ConvertedType,
    IntType,
    LogicalType,
    NullType,
    Type,
)
from pqext.core.schema.types.logical import LeafType, from_element, max_precision
from pqext.dataset.notations.json_text import from_json, to_json

FIXED = Type.FIXED_LEN_BYTE_ARRAY


DAY = 86_400
TYPES: dict[str, tuple[pa.Table, str, str]] = {
    "STRING": (column(["", "é", None], pa.string()), "String", "UTF8"),
    "ENUM": (column(["A", None, "B"], pa.string(), logical_type="ENUM"), "Enum", "ENUM"),
    "JSON": (column(["{}", None], pa.string(), logical_type="JSON"), "JSON", "JSON"),
    "BSON": (column([b"\x05\0\0\0\0", None], pa.binary(), logical_type="BSON"), "BSON", "BSON"),
    "UUID": (column([uuid.UUID(int=7).bytes, None], pa.binary(16), logical_type="UUID"), "UUID", "NONE"),
    **{
        f"{'U' if unsigned else ''}INT_{width}": (
            column(
                [0, (1 << (width - 1 + unsigned)) - 1, None, 0 if unsigned else -(1 << (width - 1))],
                pa.type_for_alias(f"{'u' if unsigned else ''}int{width}"),
            ),
            "None" if width >= 32 and not unsigned else f"Int(bitWidth={width}, isSigned={str(not unsigned).lower()})",
            "NONE" if width >= 32 and not unsigned else f"{'U' if unsigned else ''}INT_{width}",
        )
        for unsigned in (0, 1)
        for width in (8, 16, 32, 64)
    },
    "DECIMAL": (column([Decimal("-1.50"), None], pa.decimal128(5, 2)), "Decimal(precision=5, scale=2)", "DECIMAL"),
    "FLOAT16": (column([1.5, None, -0.0, 65504.0], pa.float16()), "Float16", "NONE"),
    "DATE": (column([dt.date(1815, 6, 18), None], pa.date32()), "Date", "DATE"),
    "INTERVAL": (
        column([pa.MonthDayNano([14, 3, 5_000_000]), None], pa.month_day_nano_interval()), "Interval", "INTERVAL"
    ),
    "UNKNOWN": (column([None, None], pa.null()), "Null", "NONE"),
    **{
        f"TIME {unit}{' UTC' if utc else ''}": (
            column([1, None, DAY * per - 1], kind, **({"is_adjusted_to_utc": "true"} if utc else {})),
            f"Time(isAdjustedToUTC={str(utc).lower()}, timeUnit={name})",
            converted,
        )
        for unit, per, kind, name, converted in (
            ("ms", 1000, pa.time32("ms"), "milliseconds", "TIME_MILLIS"),
            ("us", 10**6, pa.time64("us"), "microseconds", "TIME_MICROS"),
            ("ns", 10**9, pa.time64("ns"), "nanoseconds", "NONE"),
        )
        for utc in (False, True)
    },
    **{
        f"TIMESTAMP {unit}{' UTC' if zone else ''}": (
            column([-(2**53), None, 2**53], pa.timestamp(unit, zone)),
            f"Timestamp(isAdjustedToUTC={'true' if zone else 'false'}, timeUnit={name}, "
            "is_from_converted_type=false, force_set_converted_type=false)",
            converted,
        )
        for unit, name, converted in (
            ("ms", "milliseconds", "TIMESTAMP_MILLIS"),
            ("us", "microseconds", "TIMESTAMP_MICROS"),
            ("ns", "nanoseconds", "NONE"),
        )
        for zone in (None, "UTC")
    },
}


@pytest.mark.spec(
    "logical.string", "logical.enum", "logical.json", "logical.bson", "logical.uuid", "logical.integer.signed",
    "logical.integer.unsigned", "logical.integer.implied", "logical.decimal.metadata", "logical.float16",
    "logical.date", "logical.time", "logical.time.converted", "logical.timestamp", "logical.timestamp.converted",
    "logical.interval", "logical.unknown", "logical.converted.written",
)
@pytest.mark.parametrize("name", TYPES)
def test_each_type_round_trips_with_both_annotations_and_marks(name: str) -> None:
    table, logical, converted = TYPES[name]
    data = written(table)
    seen = pq.ParquetFile(io.BytesIO(data)).schema.column(0)
    assert str(seen.logical_type) == logical
    # pyarrow hides the converted type of local times, which old readers need.
    stored = pqext.open(data).metadata.schema[1].converted_type
    assert (ConvertedType(stored).name if stored is not None else "NONE") == converted
    found = read(data)
    assert found["c"].equals(table["c"])
    # What came back is stored the same again.
    again = pq.ParquetFile(io.BytesIO(written(found))).schema.column(0)
    assert (str(again.logical_type), again.converted_type) == (logical, seen.converted_type)
    assert pqext.open(written(found)).schema.leaves[0].leaf_type == pqext.open(data).schema.leaves[0].leaf_type


@pytest.mark.parametrize("name", [name for name in TYPES if name not in ("UNKNOWN", "BSON")])
def test_each_type_is_read_by_duckdb_or_polars_with_its_meaning(name: str, tmp_path: Path) -> None:
    table, _, _ = TYPES[name]
    pqext.write_table(table, tmp_path / "t.parquet")
    if name in ("INTERVAL", "UUID", "FLOAT16"):
        found = duckdb.sql(f"SELECT c FROM '{tmp_path / 't.parquet'}'").fetchall()
        expected: list[Any] = table["c"].to_pylist()
        if name == "INTERVAL":
            expected = [dt.timedelta(days=14 * 30 + 3, milliseconds=5), None]
        if name == "UUID":
            expected = [uuid.UUID(int=7), None]
        assert [value for (value,) in found] == expected
        return
    found = pl.read_parquet(tmp_path / "t.parquet").to_arrow()
    expected = table["c"]
    if name.startswith("TIME "):
        expected = expected.cast(pa.time64("ns"))
    assert found["c"].cast(expected.type).equals(expected)


@pytest.mark.parametrize("name", [name for name in TYPES if name != "UNKNOWN"])
def test_slices_without_nulls_are_written_like_copies_of_their_values(name: str) -> None:
    values = pa.concat_tables([TYPES[name][0].drop_null()] * 5).combine_chunks()
    rows = values.num_rows - 2
    for options in ({}, {"row_group_rows": 2}, {"page_rows": 1, "dictionary": False}):
        data = written(values.slice(1, rows), **options)
        assert data == written(values.take(pa.array(range(1, 1 + rows))), **options)
        assert read(data).equals(values.slice(1, rows))


CONVERTED = [
    (ConvertedType.UTF8, Type.BYTE_ARRAY, byte_arrays(b"a"), pa.array(["a"])),
    (ConvertedType.ENUM, Type.BYTE_ARRAY, byte_arrays(b"a"), pa.array(["a"])),
    (ConvertedType.JSON, Type.BYTE_ARRAY, byte_arrays(b"{}"), pa.array(["{}"])),
    (ConvertedType.BSON, Type.BYTE_ARRAY, byte_arrays(b"a"), pa.array([b"a"])),
    (ConvertedType.DATE, Type.INT32, int32(-1), pa.array([-1], pa.int32()).cast(pa.date32())),
    (ConvertedType.TIME_MILLIS, Type.INT32, int32(5), pa.array([5], pa.time32("ms"))),
    (ConvertedType.TIME_MICROS, Type.INT64, int64(5), pa.array([5], pa.time64("us"))),
    (ConvertedType.TIMESTAMP_MILLIS, Type.INT64, int64(5), pa.array([5], pa.timestamp("ms", "UTC"))),
    (ConvertedType.TIMESTAMP_MICROS, Type.INT64, int64(5), pa.array([5], pa.timestamp("us", "UTC"))),
    *(
        (ConvertedType[f"{sign}INT_{width}"], *stored, pa.array([7], pa.type_for_alias(f"{sign.lower()}int{width}")))
        for sign in ("", "U")
        for width in (8, 16, 32, 64)
        for stored in [(Type.INT64, int64(7)) if width == 64 else (Type.INT32, int32(7))]
    ),
]


@pytest.mark.spec("logical.converted.read", "logical.integer.converted", "logical.time.converted")
@pytest.mark.parametrize(("converted", "kind", "values", "expected"), CONVERTED, ids=lambda v: getattr(v, "name", None))
def test_converted_types_alone_have_the_same_meaning(
    converted: ConvertedType, kind: Type, values: bytes, expected: pa.Array
) -> None:
    data = one(kind, values, 1, converted_type=converted)
    assert read(data)["c"].combine_chunks().equals(expected)
    theirs = pq.read_table(io.BytesIO(data), arrow_extensions_enabled=False)["c"].combine_chunks()
    assert theirs.cast(expected.type).equals(expected)  # an ENUM is binary to pyarrow


@pytest.mark.spec("logical.converted.read", "logical.interval")
def test_interval_is_identified_by_its_converted_type() -> None:
    values = struct.pack("<6I", 1, 2, 3, 0, 0, 0xFFFFFFFF)
    data = one(FIXED, values, 2, type_length=12, converted_type=ConvertedType.INTERVAL)
    assert read(data)["c"].to_pylist() == [
        pa.MonthDayNano([1, 2, 3_000_000]), pa.MonthDayNano([0, 0, 0xFFFFFFFF * 1_000_000])
    ]
    far = one(FIXED, struct.pack("<3I", 1 << 31, 0, 0), 1, type_length=12, converted_type=ConvertedType.INTERVAL)
    with pytest.raises(UnsupportedError, match="more months or days"):
        read(far)


@pytest.mark.spec("logical.interval")
@pytest.mark.parametrize(
    ("value", "message"),
    [((-1, 0, 0), "negative"), ((0, 0, -1), "negative"), ((0, 0, 1), "fraction of a millisecond"),
     ((0, 0, 2**32 * 1_000_000), "32 bits")],
)
def test_interval_out_of_range_is_rejected(value: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        written(column([pa.MonthDayNano(value)], pa.month_day_nano_interval()))


@pytest.mark.spec("logical.interval")
def test_interval_has_no_bounds() -> None:
    table, _, _ = TYPES["INTERVAL"]
    chunk = pqext.open(written(table)).row_groups[0].chunk(0)
    assert chunk.metadata.statistics is not None
    assert (chunk.metadata.statistics.min_value, chunk.metadata.statistics.null_count) == (None, 1)


@pytest.mark.spec("logical.integer.range")
@pytest.mark.parametrize(
    ("width", "signed", "value"), [(8, True, 128), (8, True, -129), (16, False, -1), (8, False, 256)]
)
def test_stored_integer_wider_than_its_annotation_is_an_error(
    width: int, signed: bool, value: int
) -> None:
    annotation = LogicalType(INTEGER=IntType(bitWidth=width, isSigned=signed))
    with pytest.raises(CorruptFileError, match=rf"exceeds the column's {width} bits: {value}.*column c"):
        read(one(Type.INT32, int32(0, value), 2, logicalType=annotation))


@pytest.mark.spec("logical.integer.range")
def test_integer_wider_than_its_annotation_cannot_be_written() -> None:
    for width in (8, 16):
        wide = pa.array([1 << width], pa.int32())
        schema = pa.schema([pa.field("c", pa.type_for_alias(f"int{width}"))])
        with pytest.raises(ValueError, match="'c'"), pqext.ParquetWriter(io.BytesIO(), schema) as writer:
            writer.write_table(pa.table({"c": wide}))


@pytest.mark.spec("logical.time.range")
def test_time_outside_the_day_is_an_error_on_read_and_write() -> None:
    for value in (-1, DAY * 1000 + 1):
        with pytest.raises(CorruptFileError, match=rf"TIME is not between 00:00 and 24:00: {value}.*column c"):
            read(one(Type.INT32, int32(value), 1, converted_type=ConvertedType.TIME_MILLIS))
    late = pa.Array.from_buffers(pa.time64("us"), 1, [None, pa.py_buffer(int64(DAY * 10**6 + 1))])
    with pytest.raises(ValueError, match="not between 00:00 and 24:00"):
        written(pa.table({"c": late}))


@pytest.mark.spec("logical.time.range")
def test_midnight_at_the_end_of_a_day_matches_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "times.parquet"
    times = "(values (TIME '24:00:00'), (NULL), (TIME '00:00:00'), (TIME '23:59:59.999999')) v(t)"
    duckdb.sql(f"copy (select * from {times}) to '{path}'")
    table = pqext.read_table(path)
    counts = [DAY * 10**6, None, 0, DAY * 10**6 - 1]
    assert table["t"].cast(pa.int64()).to_pylist() == pq.read_table(path)["t"].cast(pa.int64()).to_pylist() == counts
    assert pqext.verify(path).ok
    pqext.write_table(table, tmp_path / "again.parquet")
    again = duckdb.sql(f"select t::varchar from '{tmp_path}/again.parquet'").fetchall()
    assert again == duckdb.sql(f"select t::varchar from {times}").fetchall()
    end = pa.scalar(DAY * 10**6, pa.time64("us"))
    for filter, rows in ((pqext.col("t") == end, 1), (pqext.col("t") < end, 2), (pqext.col("t") > dt.time(23), 2)):
        assert pqext.read_table(path, filter=filter).num_rows == rows
        assert from_json(to_json(filter)) == filter
    assert "24:00:00" in pqext.scan(path, filter=pqext.col("t") > end).explain()
    for unit, seconds in (("s", 1), ("ms", 1000), ("ns", 10**9)):
        kind = pa.time32(unit) if unit != "ns" else pa.time64(unit)
        data = int64(DAY * seconds) if unit == "ns" else int32(DAY * seconds)
        late = pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(data)])
        found = pqext.read_table(written(pa.table({"c": late})))["c"].chunk(0)
        assert int.from_bytes(found.buffers()[1].to_pybytes()[:8].ljust(8, b"\0"), "little") == DAY * max(seconds, 1000)


@pytest.mark.spec("logical.unknown")
def test_column_of_unknown_type_is_null_at_any_depth() -> None:
    table = pa.table(
        {
            "n": pa.nulls(3),
            "l": pa.array([[None], [], None], pa.list_(pa.null())),
            "s": pa.array([{"x": None}, None, {}], pa.struct([("x", pa.null())])),
        }
    )
    data = written(table)
    assert read(data).equals(table)
    assert pq.read_table(io.BytesIO(data)).equals(table)
    for kind, values in ((Type.INT32, int32(1)), (Type.BYTE_ARRAY, byte_arrays(b"x")), (Type.INT96, bytes(12))):
        with pytest.raises(CorruptFileError, match=r"UNKNOWN column.*column c"):
            read(one(kind, values, 1, logicalType=LogicalType(UNKNOWN=NullType())))
        nulls = write(
            [leaf("c", OPTIONAL, kind, logicalType=LogicalType(UNKNOWN=NullType()))], [Column(b"", 2, [0, 0])], 2
        )
        assert read(nulls)["c"].equals(pa.chunked_array([pa.nulls(2)]))


@pytest.mark.spec("logical.float16", "logical.decimal.order")
def test_statistics_of_new_types_compare_like_their_values() -> None:
    table = pa.table(
        {
            "h": pa.array([1.5, float("nan"), -2.0], pa.float16()),
            "d": pa.array([Decimal(10) ** 60, Decimal(-3), Decimal(2)], pa.decimal256(70, 0)),
        }
    )
    group = pqext.open(written(table)).row_groups[0]
    half, wide = (group.chunk(index).bounds() for index in range(2))
    assert (half.minimum, half.maximum, half.has_nan) == (-2.0, 1.5, True)
    assert (wide.minimum, wide.maximum) == (Decimal(-3), Decimal(10) ** 60)


@pytest.mark.parametrize(
    ("leaf_type", "raw", "expected"),
    [
        (LeafType(FIXED, 2, from_element(leaf("x", REQUIRED))), b"\0\0", b"\0\0"),
        (LeafType(Type.INT96), struct.pack("<qi", 5, 2_440_589), DAY * 10**9 + 5),
        (LeafType(Type.INT96), b"\0" * 8, None),
    ],
)
def test_raw_statistics_are_converted_to_comparable_values(leaf_type: LeafType, raw: bytes, expected: Any) -> None:
    assert leaf_type.comparison_value(raw) == expected


@pytest.mark.spec("logical.decimal.precision")
@given(st.integers(1, 40))
def test_decimal_digits_of_n_bytes_follow_the_formula(width: int) -> None:
    largest = 2 ** (8 * width - 1) - 1
    digits = max_precision(width)
    assert 10**digits <= largest < 10 ** (digits + 1)


needs_files = pytest.mark.skipif(not os.environ.get("PARQUET_TEST_DATA"), reason="PARQUET_TEST_DATA is not set")


@needs_files
@pytest.mark.parametrize(
    "name",
    [
        "float16_nonzeros_and_nans", "float16_zeros_and_nans", "int32_decimal", "int64_decimal", "fixed_length_decimal",
        "byte_array_decimal", "alltypes_plain", "alltypes_dictionary", "binary", "single_nan",
    ],
)
def test_typed_files_of_other_writers_match_pyarrow(name: str) -> None:
    path = Path(os.environ["PARQUET_TEST_DATA"]) / "data" / f"{name}.parquet"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pqext.read_table(path)
    found.validate(full=True)
    expected = pq.read_table(path)
    assert found.schema.types == expected.schema.types
    for name in expected.column_names:
        assert str(found[name].to_pylist()) == str(expected[name].to_pylist()), name
