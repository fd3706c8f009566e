"""DECIMAL on each of its physical types, up to 76 digits, held to its precision."""

from __future__ import annotations

import io
from decimal import Context, Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.raw_files import REQUIRED, Column, byte_arrays, int32, int64, leaf, write
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import AnnotationWarning, CorruptFileError
from pqext.core.format.metadata import ConvertedType, DecimalType, LogicalType, Type
from pqext.core.kernels.encodings.decimals import widen
from pqext.core.schema.types.logical import max_precision
from reference.decimals import stored
from reference.effort import share

FIXED = Type.FIXED_LEN_BYTE_ARRAY
WIDE = Context(prec=100)


def scaled(unscaled: int, scale: int) -> Decimal:
    return Decimal(unscaled).scaleb(-scale, WIDE)


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def file_of(kind: Type, values: bytes, count: int, precision: int, scale: int = 0, **more: Any) -> bytes:
    annotation = LogicalType(DECIMAL=DecimalType(precision=precision, scale=scale))
    return write([leaf("d", REQUIRED, kind, logicalType=annotation, **more)], [Column(values, count)], count)


@st.composite
def decimals(draw: st.DrawFn) -> tuple[int, int, str, list[int]]:
    """(precision, scale, physical type, unscaled values)."""
    precision = draw(st.integers(1, 76))
    scale = draw(st.integers(0, precision))
    fitting = ["BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"] + ["INT32"] * (precision <= 9) + ["INT64"] * (precision <= 18)
    most = 10**precision - 1
    values = st.one_of(st.integers(-most, most), st.sampled_from([0, -1, 1, most, -most]))
    return precision, scale, draw(st.sampled_from(fitting)), draw(st.lists(values, max_size=20))


@pytest.mark.spec(
    "logical.decimal.bytes", "logical.decimal.int32", "logical.decimal.int64", "logical.decimal.fixed",
    "logical.decimal.byte-array", "logical.decimal.order",
)
@given(decimals())
@settings(max_examples=share(0.8))
def test_every_decimal_round_trips_on_each_physical_type(drawn: tuple[int, int, str, list[int]]) -> None:
    precision, scale, physical, unscaled = drawn
    kind = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    values = [scaled(n, scale) for n in unscaled]
    schema = pa.schema([pa.field("d", kind, metadata={"PARQUET:physical_type": physical})])
    table = pa.table([pa.array([*values, None], kind)], schema=schema)
    data = written(table)
    with pqext.open(data) as file:
        assert file.schema.leaves[0].physical_type == Type[physical]
        assert file.read().equals(table)
        bounds = file.row_groups[0].chunk(0).bounds()
        assert (bounds.minimum, bounds.maximum) == ((min(values), max(values)) if values else (None, None))
    theirs = pq.read_table(io.BytesIO(data))["d"]
    assert theirs.cast(kind).equals(table["d"])


@pytest.mark.spec("logical.decimal.byte-array", "logical.decimal.fixed")
@given(st.integers(1, 76), st.data())
def test_decimals_use_the_fewest_bytes(precision: int, data: st.DataObject) -> None:
    most = 10**precision - 1
    unscaled = data.draw(st.lists(st.integers(-most, most), min_size=1, max_size=9))
    kind = pa.decimal256(precision, 0)
    from pqext.core.schema.types.leaf import to_physical
    from pqext.core.schema.types.physical_types import from_arrow

    values = pa.array([Decimal(n) for n in unscaled], kind)
    varying = from_arrow(kind, {b"PARQUET:physical_type": b"BYTE_ARRAY"})
    fixed = from_arrow(kind, {b"PARQUET:physical_type": b"FIXED_LEN_BYTE_ARRAY"})
    assert varying is not None
    assert fixed is not None
    assert fixed.length is not None
    assert to_physical(values, varying).to_pylist() == [stored(n) for n in unscaled]
    assert to_physical(values, fixed).to_pylist() == [stored(n, fixed.length) for n in unscaled]
    assert max_precision(fixed.length - 1) < precision if fixed.length > 1 else True


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(1, 76))
def test_kernel_matches_python_or_reports_overflow(values: list[bytes], precision: int) -> None:
    width = 32 if precision > 38 else 16
    data = np.frombuffer(b"".join(values), np.uint8)
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
    out = np.empty(len(values) * width, np.uint8)
    expected = [int.from_bytes(value, "big", signed=True) for value in values]
    if all(abs(number) < 10**precision for number in expected):
        widen(data, offsets, 0, len(values), precision, out)
        words = [out[at : at + width].tobytes() for at in range(0, len(out), width)]
        found = [int.from_bytes(word, "little", signed=True) for word in words]
        assert found == expected
    else:
        with pytest.raises(CorruptFileError, match=f"more than the {precision} digits"):
            widen(data, offsets, 0, len(values), precision, out)


@given(st.data(), st.integers(1, 18), st.integers(1, 40))
def test_kernel_matches_python_for_fixed_lengths_or_reports_overflow(
    data: st.DataObject, length: int, precision: int
) -> None:
    lowest, highest, limit = -(1 << 8 * length - 1), (1 << 8 * length - 1) - 1, 10**precision
    edges = [n for n in (0, -1, limit - 1, limit, 1 - limit, -limit, lowest, highest) if lowest <= n <= highest]
    inside = st.integers(max(lowest, 1 - limit), min(highest, limit - 1))
    numbers = data.draw(st.lists(st.one_of(inside, st.sampled_from(edges)), max_size=12))
    width = 32 if precision > 38 else 16
    values = np.frombuffer(b"".join(n.to_bytes(length, "big", signed=True) for n in numbers), np.uint8)
    out = np.empty(len(numbers) * width, np.uint8)
    if all(abs(number) < limit for number in numbers):
        widen(values, None, length, len(numbers), precision, out)
        assert out.tobytes() == b"".join(n.to_bytes(width, "little", signed=True) for n in numbers)
        if numbers:
            with pytest.raises(ValueError, match="a number exceeds the data"):
                widen(values[:-1], None, length, len(numbers), precision, out)
    else:
        with pytest.raises(CorruptFileError, match=f"more than the {precision} digits"):
            widen(values, None, length, len(numbers), precision, out)


@pytest.mark.spec("logical.decimal.range")
@pytest.mark.parametrize(
    "data",
    [
        file_of(Type.INT32, int32(0, -1000), 2, 3),
        file_of(Type.INT64, int64(10**12), 1, 12),
        file_of(FIXED, (1000).to_bytes(16, "big"), 1, 3, type_length=16),
        file_of(FIXED, (-1000).to_bytes(20, "big", signed=True), 1, 3, type_length=20),
        file_of(FIXED, (10**50).to_bytes(32, "big"), 1, 50, type_length=32),
        file_of(Type.BYTE_ARRAY, byte_arrays(b"\x7f" * 17), 1, 38),
        file_of(Type.BYTE_ARRAY, byte_arrays(b"\x7f" * 40), 1, 76),
    ],
)
def test_decimal_beyond_its_precision_is_an_error_with_column(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"more than the \d+ digits of its type.*column d"):
        pqext.open(data).read()


def test_numbers_with_excess_leading_bytes_are_read() -> None:
    assert pqext.open(file_of(FIXED, (-7).to_bytes(40, "big", signed=True), 1, 3, type_length=40)).read()[
        "d"
    ].to_pylist() == [Decimal(-7)]
    long = byte_arrays((12345).to_bytes(50, "big"), b"", (-1).to_bytes(33, "big", signed=True))
    data = file_of(Type.BYTE_ARRAY, long, 3, 5, 2)
    assert pqext.open(data).read()["d"].to_pylist() == [Decimal("123.45"), Decimal("0.00"), Decimal("-0.01")]


@pytest.mark.spec("logical.decimal.wide")
@pytest.mark.parametrize("kind", [Type.BYTE_ARRAY, FIXED])
def test_decimal_wider_than_arrow_warns_and_reads_as_binary(kind: Type) -> None:
    value = (10**90).to_bytes(40, "big")
    values = byte_arrays(value) if kind == Type.BYTE_ARRAY else value
    data = file_of(kind, values, 1, 91, **({} if kind == Type.BYTE_ARRAY else {"type_length": 40}))
    with pytest.warns(AnnotationWarning, match=r"column d: DECIMAL\(91, 0\) has more digits"):
        assert pqext.open(data).read()["d"].to_pylist() == [value]


@pytest.mark.spec("logical.decimal.metadata")
def test_precision_and_scale_are_also_stored_in_the_schema_element() -> None:
    data = written(pa.table({"d": pa.array([Decimal("1.25")], pa.decimal128(7, 2))}))
    element = pqext.open(data).metadata.schema[1]
    assert (element.converted_type, element.precision, element.scale) == (ConvertedType.DECIMAL, 7, 2)
    old = write(
        [leaf("d", REQUIRED, converted_type=ConvertedType.DECIMAL, precision=7, scale=2), leaf("i", REQUIRED)],
        [Column(int32(125), 1), Column(int32(1), 1)], 1,
    )
    assert pqext.open(old).read(["d"])["d"].to_pylist() == [Decimal("1.25")]
    scaleless = write(
        [leaf("d", REQUIRED, converted_type=ConvertedType.DECIMAL, precision=7)], [Column(int32(125), 1)], 1
    )
    assert pqext.open(scaleless).read()["d"].to_pylist() == [Decimal(125)]


def test_decimal_with_too_many_digits_is_not_written() -> None:
    wide = pa.array([Decimal(123456)], pa.decimal128(20, 0))
    lying = pa.Array.from_buffers(pa.decimal128(5, 0), 1, wide.buffers())
    with pytest.raises(ValueError, match=r"more than the \d+ digits of its type"):
        written(pa.table({"d": lying}))


def test_duckdb_reads_decimals_of_38_digits() -> None:
    values = [Decimal(10**38 - 1), Decimal(-(10**38) + 1), None]
    with duckdb.connect() as connection:
        import tempfile

        with tempfile.NamedTemporaryFile(suffix=".parquet") as out:
            out.write(written(pa.table({"d": pa.array(values, pa.decimal128(38, 0))})))
            out.flush()
            assert [row[0] for row in connection.sql(f"SELECT d FROM '{out.name}'").fetchall()] == values
