"""Text becomes decimals exactly, or not at all."""

from __future__ import annotations

from decimal import Decimal, localcontext

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext.core.schema.types.arrow_compute import cast_exactly

TYPES = [pa.decimal32(9, 2), pa.decimal64(18, 3), pa.decimal128(38, 0), pa.decimal128(20, 4), pa.decimal256(76, 5)]
LAYOUTS = [pa.string(), pa.large_string(), pa.string_view()]


@given(st.integers(-(1 << 280), 1 << 280), st.integers(0, 12), st.sampled_from(TYPES), st.sampled_from(LAYOUTS))
def test_text_is_cast_to_decimal_or_rejected(
    value: int, places: int, type: pa.DataType, layout: pa.DataType
) -> None:
    with localcontext(prec=100):
        expected = Decimal(value).scaleb(-places)
        array = pa.array([None, f"{expected:f}"], layout)
        try:
            assert cast_exactly(array, type).to_pylist() == [None, expected]
        except pa.ArrowInvalid:  # too many digits for the type, or beyond it for its width
            digits = f"{expected:f}".lstrip("-").replace(".", "").lstrip("0")
            cut = expected.quantize(Decimal(1).scaleb(-type.scale))
            most = {32: 9, 64: 18, 128: 38, 256: 76}[type.bit_width]
            assert len(digits) > most or cut != expected or len(cut.as_tuple().digits) > type.precision


@pytest.mark.parametrize("type", [pa.decimal32(9), pa.decimal64(18), pa.decimal128(38)])
def test_text_with_more_digits_than_the_decimal_width_holds_is_rejected(type: pa.DataType) -> None:
    array = pa.array([str((1 << type.bit_width) + 5)])
    with pytest.raises(pa.ArrowInvalid, match=f"more than {type.precision} digits"):
        cast_exactly(array, type)


@pytest.mark.parametrize("text", [str((1 << 128) + 5), "34028236692093846346337460743176821146.1e1", str(1 << 256)])
def test_text_out_of_decimal_range_is_an_error_of_the_schema(text: str, tmp_path: object) -> None:
    path = f"{tmp_path}/a.parquet"
    pqext.write_table(pa.table({"n": ["1", text]}), path)
    assert pa.array([text]).cast(pa.decimal128(38, 0))[0].as_py() < 10  # pyarrow wraps around
    with pytest.raises(duckdb.ConversionException):
        duckdb.execute(f"SELECT n::DECIMAL(38,0) FROM '{path}'").fetchall()
    with pytest.raises(ValueError, match=r"column 'n' of string cannot be read as decimal128\(38, 0\).*more than 38"):
        pqext.read_table(path, schema=pa.schema([("n", pa.decimal128(38, 0))]))
