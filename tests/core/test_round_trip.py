"""What we write, we and others read; what others write, we read: values, null-ness and statistics."""

from __future__ import annotations

import io
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core import tables
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.limits import Limits
from pqext.core.format.metadata import CompressionCodec, Encoding, PageType
from pqext.core.io.source import Span
from pqext.core.read.pages import page
from reference.effort import share

OPTIONS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["uncompressed", "snappy", "zstd"]),
        "dictionary": st.booleans(),
        "page_version": st.sampled_from([1, 2]),
        "row_group_rows": st.sampled_from([7, 1000]),
        "page_rows": st.sampled_from([3, 1000]),
    }
)


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def read(source: Any) -> pa.Table:
    with pqext.open(source) as file:
        return file.read()


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    """Equal but for the names of list elements and large types."""
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        assert found[name].cast(expected[name].type).equals(expected[name]), name


@given(tables.tables(), OPTIONS)
def test_arbitrary_table_round_trips_with_arbitrary_options(table: pa.Table, options: dict[str, Any]) -> None:
    data = written(table, **options)
    with pqext.open(data) as file:
        assert_same(file.read(), table)
        assert file.num_rows == len(table)


@given(tables.tables(), OPTIONS)
@settings(max_examples=share(0.5))
def test_pyarrow_reads_our_files(table: pa.Table, options: dict[str, Any]) -> None:
    assert_same(pq.read_table(io.BytesIO(written(table, **options))), table)


@given(
    tables.tables(),
    st.fixed_dictionaries(
        {
            "compression": st.sampled_from(["none", "snappy", "zstd"]),
            "use_dictionary": st.booleans(),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "row_group_size": st.sampled_from([7, 1000]),
            "data_page_size": st.sampled_from([16, 100_000]),
            "write_page_index": st.booleans(),
            "write_page_checksum": st.booleans(),
        }
    ),
)
def test_pyarrow_files_are_read(table: pa.Table, options: dict[str, Any]) -> None:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    assert_same(pqext.open(out.getvalue()).read(), table)


@given(tables.tables(), OPTIONS, st.integers(1, 20))
def test_batches_of_any_size_cover_the_table(table: pa.Table, options: dict[str, Any], rows: int) -> None:
    with pqext.open(written(table, **options)) as file:
        batches = list(file.iter_batches(rows))
        assert all(0 < batch.num_rows <= rows for batch in batches)
        assert pa.Table.from_batches(batches, file.arrow_schema).equals(file.read())


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "zstd"])
def test_duckdb_and_polars_read_every_type(version: int, compression: str, tmp_path: Any) -> None:
    table = tables.fixed()
    path = tmp_path / "t.parquet"
    pqext.write_table(table, path, page_version=version, compression=compression, row_group_rows=300)
    # DuckDB shows times in microseconds and zones its own way: compare through Arrow casts.
    found = duckdb.sql(f"SELECT * FROM '{path}'").to_arrow_table()
    for name in table.column_names:
        if "time" not in name:
            assert found[name].cast(table[name].type).equals(table[name]), name
    frame = pl.read_parquet(path, use_pyarrow=False).to_arrow()
    for name in table.column_names:
        if "time_ms" not in name:  # polars has times in nanoseconds only
            assert frame[name].cast(table[name].type).equals(table[name]), name


def test_duckdb_and_polars_files_are_read(tmp_path: Any) -> None:
    table = tables.fixed()
    columns = [name for name in table.column_names if "time" not in name and "uint" not in name]
    table = table.select(columns)
    for codec in ("uncompressed", "snappy", "zstd"):
        path = tmp_path / f"duckdb-{codec}.parquet"
        options = f"FORMAT parquet, CODEC '{codec}', PARQUET_VERSION 'V1'"
        duckdb.from_arrow(table).query("source", f"COPY (SELECT * FROM source) TO '{path}' ({options})")
        assert_same(read(path), pq.read_table(path))
        path = tmp_path / f"polars-{codec}.parquet"
        pl.from_arrow(table).write_parquet(path, compression=codec, row_group_size=300)
        assert_same(read(path), table)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("dictionary", [True, False])
def test_pages_use_the_requested_encoding_version_and_codec(version: int, dictionary: bool) -> None:
    table = pa.table({"a": [1, 2, 3] * 100, "s": ["x", "yy", None] * 100, "b": [True, None, False] * 100})
    data = written(table, page_version=version, dictionary=dictionary, compression="zstd", page_rows=50)
    with pqext.open(data) as file:
        for chunk in file.row_groups[0].chunks():
            start, length = chunk.byte_range
            pages = list(page.raw_pages(Span(file.source, start, length), Limits()))
            uses_dictionary = dictionary and chunk.node.name != "b"
            assert chunk.metadata.codec == CompressionCodec.ZSTD
            assert (pages[0].header.type == PageType.DICTIONARY_PAGE) == uses_dictionary
            data_pages = pages[uses_dictionary:]
            assert len(data_pages) == 6
            encoding = Encoding.RLE_DICTIONARY if uses_dictionary else Encoding.PLAIN
            for raw in data_pages:
                header = raw.header.data_page_header_v2 if version == 2 else raw.header.data_page_header
                assert header is not None
                assert header.encoding == encoding
            assert all(raw.header.crc is not None for raw in pages)
            assert set(chunk.metadata.encodings) == {e for p in data_pages for e in (encoding, Encoding.RLE)} | (
                {Encoding.PLAIN} if uses_dictionary else set()
            )


@pytest.mark.parametrize("physical", ["INT32", "INT64", "FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY"])
def test_decimal_round_trips_on_each_of_four_physical_types(physical: str) -> None:
    from decimal import Decimal

    values = [Decimal(n).scaleb(-2) for n in (0, 1, -1, 127, 128, -128, -129, 32767, -32769, 10**9 - 1, 1 - 10**9)]
    field = pa.field("d", pa.decimal128(9, 2), metadata={"PARQUET:physical_type": physical})
    table = pa.table([pa.array([*values, None], field.type)], schema=pa.schema([field]))
    data = written(table)
    assert pqext.open(data).schema.leaves[0].physical_type.name == physical
    assert pqext.open(data).read()["d"].to_pylist() == [*values, None]
    assert pq.read_table(io.BytesIO(data))["d"].to_pylist() == [*values, None]
    bounds = pqext.open(data).row_groups[0].chunk(0).bounds()
    assert (bounds.minimum, bounds.maximum) == (min(values), max(values))


def test_uuid_preserves_its_annotation() -> None:
    import uuid

    ids = [uuid.UUID(int=n).bytes for n in (0, 2**127, 5)]
    field = pa.field("id", pa.binary(16), metadata={"ARROW:extension:name": "arrow.uuid"})
    data = written(pa.table([pa.array(ids, pa.binary(16))], schema=pa.schema([field])))
    with pqext.open(data) as file:
        assert file.schema.leaves[0].logical_name == "UUID"
        assert file.read()["id"].to_pylist() == ids
    assert str(pq.read_schema(io.BytesIO(data)).field("id").type) == "extension<arrow.uuid>"


def test_dictionary_and_view_arrays_are_written_by_value() -> None:
    table = pa.table(
        {
            "d": pa.array(["a", None, "b", "a"]).dictionary_encode(),
            "v": pa.array(["a", None, "b" * 50, "a"], pa.string_view()),
            "f": pa.array([[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.int32(), 2)),
            "l": pa.array([[1], None, [], [5, 6]], pa.large_list(pa.int32())),
        }
    )
    found = pqext.open(written(table)).read()
    for name in table.column_names:
        assert found[name].to_pylist() == table[name].to_pylist()


def test_columns_are_selected_by_name_and_dotted_path() -> None:
    data = written(pa.table({"a": [1], "s": [{"x": 1, "y": {"z": [2]}}]}))
    with pqext.open(data) as file:
        assert file.read(["s.y"]).to_pylist() == [{"s": {"y": {"z": [2]}}}]
        assert file.read(["s.y.z", "a"]).to_pylist() == [{"a": 1, "s": {"y": {"z": [2]}}}]
        with pytest.raises(KeyError, match="no column 'nope'"):
            file.read(["nope"])
        with pytest.raises(IndexError, match="row group 3"):
            file.read(row_groups=[3])
        assert file.read([]).num_rows == 1


def test_only_selected_columns_are_fetched() -> None:
    data = written(pa.table({"a": list(range(100_000)), "b": list(range(100_000))}), dictionary=False)
    with pqext.open(data) as file:
        before = file.source.bytes_read
        file.read(["a"])
        assert file.source.bytes_read - before == file.row_groups[0].chunk(0).byte_range[1]


def test_schema_as_deep_as_pyarrow_supports_round_trips() -> None:
    kind, value = pa.int32(), 7
    for _ in range(49):  # two levels each, beside the root and the leaf
        kind, value = pa.list_(kind), [value]
    table = pa.table({"deep": pa.array([value, None], kind)})
    assert pqext.open(written(table)).read()["deep"].to_pylist() == [value, None]
    assert pq.read_table(io.BytesIO(written(table))).num_rows == 2
    deeper = pa.table({"deep": pa.array([{"a": value}, None], pa.struct([("a", kind)]))})
    with pytest.raises(pqext.LimitError, match="101 levels deep"):
        written(deeper)
    out = io.BytesIO()
    pq.write_table(deeper, out)
    with pytest.raises(OSError, match="current limit is 100"):
        pq.read_table(io.BytesIO(out.getvalue()))
    with pytest.raises(pqext.LimitError, match="schema_depth=100"):
        pqext.open(out.getvalue())


def test_empty_table_preserves_its_schema() -> None:
    table = pa.table({"a": pa.array([], pa.int32()), "l": pa.array([], pa.list_(pa.string()))})
    data = written(table)
    assert pqext.open(data).read().schema.names == ["a", "l"]
    assert pq.read_table(io.BytesIO(data)).num_rows == 0


@pytest.mark.parametrize("nulls", [0, 3])
def test_values_below_null_structs_are_not_written(nulls: int) -> None:
    strings = pa.array(["a", "b", "c", "d", "e", "f"][: 6 - nulls] + [None] * nulls)
    null_structs = pa.array([False, False, True, False, False, False])
    table = pa.table({"s": pa.StructArray.from_arrays([strings], ["text"], mask=null_structs)})
    out = io.BytesIO()
    pqext.write_table(table, out)
    assert pq.read_table(out)["s"].to_pylist() == table["s"].to_pylist()
