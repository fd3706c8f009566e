"""Types of polars that Arrow lacks: 128-bit integers are written as decimals, Python objects are rejected."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext import variant

MOST = 10**38 - 1
TYPES = [pl.Int128, pl.UInt128]


def through_parquet(table: Any) -> pl.DataFrame:
    file = io.BytesIO()
    pqext.write_table(table, file)
    file.seek(0)
    return pl.read_parquet(file)


@pytest.mark.parametrize("dtype", TYPES)
@given(data=st.data())
def test_integers_of_128_bits_become_decimals_of_equal_value(dtype: Any, data: st.DataObject) -> None:
    least = 0 if dtype == pl.UInt128 else -MOST
    numbers = data.draw(st.lists(st.none() | st.integers(least, MOST), max_size=5))
    frame = pl.DataFrame({"n": pl.Series(numbers, dtype=dtype), "i": pl.Series(range(len(numbers)), dtype=pl.Int64)})
    found = through_parquet(frame)
    assert found.schema == {"n": pl.Decimal(38, 0), "i": pl.Int64}
    assert found["n"].to_list() == numbers
    assert found["n"].cast(dtype).to_list() == frame["n"].to_list()
    assert variant.to_python(variant.from_arrow(frame["n"])) == numbers


@pytest.mark.parametrize("dtype", TYPES)
def test_nested_integers_of_128_bits_become_decimals(dtype: Any) -> None:
    frame = pl.DataFrame(
        {
            "list": pl.Series([[1, None], None], dtype=pl.List(dtype)),
            "array": pl.Series([[2**100, 2], [3, 4]], dtype=pl.Array(dtype, 2)),
            "struct": pl.Series([{"a": [5]}, {"a": None}], dtype=pl.Struct({"a": pl.List(dtype)})),
        }
    )
    expected = {
        "list": [[Decimal(1), None], None],
        "array": [[Decimal(2**100), Decimal(2)], [Decimal(3), Decimal(4)]],
        "struct": [{"a": [Decimal(5)]}, {"a": None}],
    }
    assert through_parquet(frame).to_dict(as_series=False) == expected
    assert through_parquet(frame.to_dict()).to_dict(as_series=False) == expected


@pytest.mark.parametrize(
    ("dtype", "number"),
    [(pl.Int128, MOST + 1), (pl.Int128, -MOST - 1), (pl.UInt128, MOST + 1), (pl.UInt128, 2**128 - 1)],
)
def test_integers_of_39_digits_are_rejected_with_advice(dtype: Any, number: int, tmp_path: Path) -> None:
    frame = pl.DataFrame({"n": pl.Series([1, number], dtype=dtype)})
    expected = rf"column 'n' of polars type {dtype()} contains an integer of more than 38 digits.*String or Float64"
    with pytest.raises(ValueError, match=expected):
        pqext.write_table(frame, tmp_path / "x.parquet")
    assert not [*tmp_path.iterdir()]


OBJECTS = pl.Series("o", [object(), {1}], dtype=pl.Object)
USES: dict[str, Callable[[], Any]] = {
    "write_table": lambda: through_parquet(pl.DataFrame([OBJECTS])),
    "a mapping": lambda: through_parquet({"o": OBJECTS}),
    "from_arrow of a frame": lambda: variant.from_arrow(pl.DataFrame([OBJECTS])),
    "from_arrow of a Series": lambda: variant.from_arrow(OBJECTS),
    "parse_json": lambda: variant.parse_json(OBJECTS),
    "set": lambda: variant.set(variant.parse_json(["{}"] * 2), "$.a", OBJECTS),
}


@pytest.mark.parametrize("use", USES)
def test_python_objects_are_rejected(use: str) -> None:
    with pytest.raises(TypeError, match=re.escape("'o' holds Python objects (polars type Object)")):
        USES[use]()


def test_writer_accepts_frames_of_128_bit_integers() -> None:
    file = io.BytesIO()
    with pqext.ParquetWriter(file, pa.schema([("n", pa.decimal128(38, 0))])) as writer:
        writer.write_table(pl.DataFrame({"n": pl.Series([2**100], dtype=pl.Int128)}))
    file.seek(0)
    assert pl.read_parquet(file)["n"].to_list() == [2**100]
