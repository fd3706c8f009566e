"""Encodings in files: what we write in each of them others read, and the other way round."""

from __future__ import annotations

import csv
import io
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core import tables
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.format.metadata import Encoding, Type
from reference import page_headers
from reference.effort import share, some

SUITED: dict[str, tuple[str, ...]] = {
    "plain": tuple(kind.name for kind in Type),
    "rle": ("BOOLEAN",),
    "delta_binary_packed": ("INT32", "INT64"),
    "delta_length_byte_array": ("BYTE_ARRAY",),
    "delta_byte_array": ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"),
    "byte_stream_split": ("INT32", "INT64", "FLOAT", "DOUBLE", "FIXED_LEN_BYTE_ARRAY"),
    "alp": ("FLOAT", "DOUBLE"),
}
FORMAT_OPTIONS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["uncompressed", "snappy", "zstd"]),
        "page_version": st.sampled_from([1, 2]),
        "row_group_rows": st.sampled_from([7, 1000]),
        "page_rows": st.sampled_from([3, 1000]),
    }
)


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def read(data: bytes, **options: Any) -> pa.Table:
    with pqext.open(data, **options) as file:
        return file.read()


def leaves(table: pa.Table) -> dict[str, str]:
    """Dotted path -> physical type, as we store the table."""
    with pqext.open(written(table.slice(0, 0))) as file:
        return {
            leaf.dotted_path: leaf.physical_type.name for leaf in file.schema.leaves if leaf.physical_type is not None
        }


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    for name in expected.column_names:
        assert found[name].cast(expected[name].type).equals(expected[name]), name


@given(tables.tables(), FORMAT_OPTIONS, st.data())
def test_arbitrary_table_round_trips_in_any_encoding(
    table: pa.Table, options: dict[str, Any], data: st.DataObject
) -> None:
    chosen = {
        path: data.draw(st.sampled_from([name for name, kinds in SUITED.items() if kind in kinds] + ["auto"]))
        for path, kind in leaves(table).items()
    }
    encoded = written(table, encodings=chosen, **options)
    assert_same(read(encoded), table)
    if "alp" not in chosen.values():
        assert_same(pq.read_table(io.BytesIO(encoded)), table)


@given(tables.tables(), FORMAT_OPTIONS, st.booleans())
@settings(max_examples=share(0.5))
def test_pyarrow_reads_arbitrary_tables_in_automatic_encodings(
    table: pa.Table, options: dict[str, Any], dictionary: bool
) -> None:
    encoded = written(table, encodings="auto", dictionary=dictionary, **options)
    assert_same(read(encoded), table)
    assert_same(pq.read_table(io.BytesIO(encoded)), table)


@given(tables.tables(), st.sampled_from(["1.0", "2.0"]), st.sampled_from([16, 100_000]), st.data())
def test_every_encoding_written_by_pyarrow_is_read(
    table: pa.Table, version: str, page_size: int, data: st.DataObject
) -> None:
    chosen = {
        path: data.draw(st.sampled_from([n.upper() for n, kinds in SUITED.items() if kind in kinds and n != "alp"]))
        for path, kind in leaves(table).items()
    }
    # pyarrow chooses some physical types otherwise: what does not suit them stays PLAIN.
    schema = pq.ParquetFile(io.BytesIO(_by_pyarrow(table))).schema
    for column in (schema.column(i) for i in range(len(schema))):
        if column.physical_type not in SUITED[chosen.get(column.path, "PLAIN").lower()]:
            chosen[column.path] = "PLAIN"
    encoded = _by_pyarrow(
        table, use_dictionary=False, column_encoding=chosen, data_page_version=version, data_page_size=page_size
    )
    assert_same(read(encoded), table)


def _by_pyarrow(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def sample() -> pa.Table:
    """One column of each physical type with nulls, on several pages."""
    rows = 3000
    generator = np.random.default_rng(7)

    def nullable(values: Any, kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind, mask=generator.random(rows) < 0.2)

    return pa.table(
        {
            "BOOLEAN": nullable([i % 300 < 200 for i in range(rows)], pa.bool_()),
            "INT32": nullable(generator.integers(-(2**31), 2**31, rows), pa.int32()),
            "INT64": nullable(np.cumsum(generator.integers(-5, 1000, rows)), pa.int64()),
            "FLOAT": nullable(np.round(generator.random(rows), 3).astype(np.float32), pa.float32()),
            "DOUBLE": nullable(np.round(generator.normal(size=rows), 4), pa.float64()),
            "BYTE_ARRAY": nullable([f"https://example.org/{i // 3}" for i in range(rows)], pa.string()),
            "FIXED_LEN_BYTE_ARRAY": nullable([i.to_bytes(5, "big") for i in range(rows)], pa.binary(5)),
        }
    )


PAIRS = [(name, kind) for name, kinds in SUITED.items() for kind in kinds if kind != "INT96"]


@pytest.mark.spec("encoding.claimed", "encoding.levels", "encoding.hybrid.booleans", "encoding.hybrid.prefix")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_page_headers_and_metadata_record_the_encoding(name: str, kind: str, version: int) -> None:
    table = sample().select([kind])
    data = written(table, encodings={kind: name}, page_version=version, page_rows=500)
    found = page_headers.of_column(data, 0)
    assert [page.kind for page in found] == ["DATA_PAGE" if version == 1 else "DATA_PAGE_V2"] * 6
    assert {page.encoding for page in found} == {name.upper()}
    assert {page.levels for page in found} == {("RLE", "RLE") if version == 1 else None}
    with pqext.open(data) as file:
        metadata = file.row_groups[0].chunk(0).metadata
        assert set(metadata.encodings) == {Encoding.RLE, Encoding[name.upper()]}
        assert [(s.encoding, s.count) for s in metadata.encoding_stats] == [(Encoding[name.upper()], 6)]
        assert metadata.dictionary_page_offset is None
        assert file.read().equals(table)


NOT_READ = {
    "duckdb": {("byte_stream_split", "FIXED_LEN_BYTE_ARRAY")},
    "polars": {("byte_stream_split", "FIXED_LEN_BYTE_ARRAY"), ("delta_byte_array", "FIXED_LEN_BYTE_ARRAY")},
}
"""What peers do not know; ALP is known to none of them."""


@pytest.mark.parametrize(("name", "kind"), [pair for pair in PAIRS if pair[0] != "alp"])
def test_pyarrow_duckdb_and_polars_read_each_encoding(name: str, kind: str, tmp_path: Path) -> None:
    table = sample().select([kind])
    for version in (1, 2):
        path = tmp_path / f"{version}.parquet"
        pqext.write_table(table, path, encodings={kind: name}, page_version=version, page_rows=500)
        assert pq.read_table(path).equals(table)
        if (name, kind) not in NOT_READ["duckdb"]:
            assert_same(duckdb.sql(f"SELECT * FROM '{path}'").to_arrow_table(), table)
        if (name, kind) not in NOT_READ["polars"]:
            assert_same(pl.read_parquet(path, use_pyarrow=False).to_arrow(), table)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_delta_encodings_of_duckdb_and_polars_are_read(version: str, tmp_path: Path) -> None:
    table = sample().drop_columns(["FIXED_LEN_BYTE_ARRAY"])
    path = tmp_path / "duckdb.parquet"
    duckdb.from_arrow(table).query(
        "source", f"COPY (SELECT * FROM source) TO '{path}' (FORMAT parquet, PARQUET_VERSION 'V{version[0]}')"
    )
    data = path.read_bytes()
    used = {page.encoding for column in range(len(table.column_names)) for page in page_headers.of_column(data, column)}
    if version == "2.0":
        assert {"DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "BYTE_STREAM_SPLIT"} & used
    assert_same(read(data), table)
    path = tmp_path / "polars.parquet"
    pl.from_arrow(table).write_parquet(path)
    assert_same(read(path.read_bytes()), table)


@pytest.mark.spec("encoding.delta.header", "encoding.delta-strings.layout")
@pytest.mark.parametrize("name", ["delta_binary_packed", "delta_byte_array", "delta_encoding_optional_column"])
def test_public_delta_files_have_the_documented_values(name: str, parquet_testing: Path) -> None:
    with (parquet_testing / "data" / f"{name}_expect.csv").open() as lines:
        head, *rows = csv.reader(lines)
    with pqext.open(parquet_testing / "data" / f"{name}.parquet") as file:
        table = file.read()
        used = {encoding for chunk in file.row_groups[0].chunks() for encoding in chunk.metadata.encodings}
    assert Encoding.DELTA_BINARY_PACKED in used or Encoding.DELTA_BYTE_ARRAY in used
    assert [name.strip() for name in head] == [name.split(".")[-1].strip().rstrip(":") for name in table.column_names]
    found = [["" if value is None else str(value) for value in row.values()] for row in table.to_pylist()]
    assert found == rows


@pytest.mark.parametrize(
    "name",
    ["delta_length_byte_array", "byte_stream_split.zstd", "rle_boolean_encoding", "delta_encoding_optional_column"],
)
def test_public_files_with_rare_encodings_match_pyarrow(name: str, parquet_testing: Path) -> None:
    path = parquet_testing / "data" / f"{name}.parquet"
    expected = pq.read_table(path)
    assert_same(read(path.read_bytes()), expected)


@pytest.mark.spec("encoding.split.types")
def test_byte_stream_split_column_of_the_public_file_equals_plain(parquet_testing: Path) -> None:
    table = read((parquet_testing / "data" / "byte_stream_split.zstd.parquet").read_bytes())
    generator = np.random.RandomState(0)
    assert np.allclose(table.columns[0].to_numpy(), generator.normal(size=300).astype(np.float32), atol=1e-6)


@pytest.mark.spec("encoding.delta.padding")
def test_all_null_pages_contain_no_values_in_any_encoding() -> None:
    for name, kind in PAIRS:
        column = pa.nulls(10, sample().schema.field(kind).type)
        table = pa.table({kind: column})
        for version in (1, 2):
            data = written(table, encodings={kind: name}, page_version=version)
            assert read(data).equals(table), name
            if name != "alp":
                assert pq.read_table(io.BytesIO(data)).equals(table), name


@pytest.mark.parametrize("name", ["delta_binary_packed", "delta_byte_array", "byte_stream_split", "alp"])
def test_changed_byte_in_an_encoded_file_returns_a_table_or_a_typed_error(name: str) -> None:
    kinds = SUITED[name]
    table = sample().select([kind for kind in kinds if kind != "INT96"]).slice(0, 40)
    data = written(
        table, encodings=name, dictionary=False, checksums=False, compression="uncompressed", arrow_schema=False
    )
    for at in some(range(len(data)), 4):
        damaged = bytearray(data)
        damaged[at] ^= (0xFF, 0x01, 0x80)[at % 3]
        with suppress(ParquetError):
            read(bytes(damaged)).validate(full=True)


def test_byte_arrays_beyond_the_limit_are_rejected() -> None:
    table = pa.table({"s": ["x" * 1000] * 100})
    data = written(table, encodings={"s": "delta_byte_array"})
    assert read(data, limits=Limits(memory_bytes=1 << 20)).equals(table)
    with pytest.raises(ParquetError, match="memory_bytes"):
        read(data, limits=Limits(memory_bytes=99_999, memory_expansion=0))
