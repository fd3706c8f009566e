"""Regressions of faults that fuzzing detected (``fuzz/``)."""

from __future__ import annotations

import io
import struct
import tracemalloc
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.raw_files import REQUIRED, Column, leaf, write

import pqext
from pqext import geo, skipping
from pqext.core.base.errors import CorruptDataWarning
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.metadata import ColumnOrder, FileMetaData, TypeDefinedOrder


@pytest.mark.parametrize("rows", [1 << 37, 1 << 45, (1 << 63) - 1])
@pytest.mark.parametrize("column", ["flat", "list"])
def test_row_group_with_a_huge_row_count_allocates_no_memory_on_skip(rows: int, column: str) -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"flat": [1, None, 3], "list": [[1.5], [], None]}), out, compression="uncompressed")
    with pqext.open(out.getvalue()) as file:
        metadata, end = file.metadata, file.footer.offset
        metadata.row_groups[0].num_rows = rows
    data = out.getvalue()[:end] + serialise_footer(metadata)
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    try:
        with pytest.warns(CorruptDataWarning, match="rows"):
            table = pqext.read_table(data, [column], on_corrupt="skip")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert len(table) == 0
    assert pa.total_allocated_bytes() - before < 1 << 20
    with pytest.raises(pqext.ParquetError, match="rows"):
        pqext.read_table(data, [column])


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
def test_text_that_cannot_be_a_path_is_rejected(path: str) -> None:
    calls: tuple[Callable[[], object], ...] = (
        lambda: pqext.open(path), lambda: pqext.verify(path), lambda: pqext.scan(path).count(),
        lambda: pqext.write_table(pa.table({"a": [1]}), path), lambda: geo.read_geojson(path),
        lambda: skipping.is_indexed(path),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(ValueError, match="is not a valid path"):
            call()


@pytest.mark.parametrize("url", ["http://[::1", "https://host:99999/a", "https://host:x/a"])
def test_malformed_url_is_rejected(url: str) -> None:
    with pytest.raises(ValueError, match="is not a valid URL"):
        pqext.open(url)


def test_pattern_with_lone_surrogates_is_rejected() -> None:
    with pytest.raises(ValueError, match="is not valid Unicode"):
        pqext.col("a").like("\ud800")


def test_name_of_included_column_must_be_text() -> None:
    data = write([leaf("a", REQUIRED)], [Column(struct.pack("<i", 7), 1)], 1)
    for option in ("include_file_paths", "include_row_numbers"):
        with pytest.raises(TypeError, match="name of an included column must be text, not Schema"):
            pqext.scan(data, **{option: pa.schema([])}).to_table()


def test_concatenation_ignores_orders_of_missing_columns() -> None:
    data = write([leaf("a", REQUIRED)], [Column(struct.pack("<i", 7), 1)], 1)
    out, changed = io.BytesIO(), io.BytesIO()

    def add_orders(metadata: FileMetaData) -> None:
        metadata.column_orders = [ColumnOrder(TYPE_ORDER=TypeDefinedOrder())] * 3

    pqext.rewrite_footer(data, add_orders, changed)
    assert pqext.concatenate([data, changed.getvalue()], out) == 2
    assert pq.read_table(out)["a"].to_pylist() == [7, 7]


def test_geojson_of_invalid_utf8_names_the_column() -> None:
    text = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    table = pa.Table.from_arrays([geo.from_points([1], [2]), text], names=["g", "name"])
    with pytest.raises(ValueError, match="column 'name' contains an invalid string value"):
        geo.write_geojson(table, io.BytesIO())


def test_geojson_text_with_lone_surrogates_is_rejected() -> None:
    with pytest.raises(pqext.GeometryError, match="is not valid Unicode"):
        geo.read_geojson('{"\ud800": 1}')


@pytest.mark.parametrize("type", [pa.time64("ns"), pa.date32()])
def test_values_that_pandas_cannot_hold_name_the_column(type: pa.DataType) -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"a": [1], "t": pa.array([16_712_345], type)}), out)
    with pytest.raises(pqext.UnsupportedError, match=r"column 't' of type .* is not supported in pandas"):
        pqext.scan(out.getvalue()).to_pandas()
    with pytest.raises(ValueError, match="Invalid value for 'maps_as_pydicts'") as raised:
        pqext.scan(out.getvalue(), ["a"]).to_pandas(maps_as_pydicts="x")
    assert not isinstance(raised.value, pqext.ParquetError)
