"""Which encoding is used: what options may ask for, what "auto" picks, and when the dictionary comes before it."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.format.metadata import Encoding, Type
from pqext.core.options.read_write import ENCODINGS, WriteOptions
from pqext.core.write import encoding_choice
from reference import packed_integers, page_headers

ROWS = 50_000
GENERATOR = np.random.default_rng(11)


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def used(values: pa.Array, **options: Any) -> list[str]:
    """The encodings of the pages of one column, each once, in order; the file is read back and compared."""
    table = pa.table({"a": values})
    data = written(table, **options)
    with pqext.open(data) as file:
        assert file.read().equals(table)
    return list(dict.fromkeys(page.encoding for page in page_headers.of_column(data, 0)))


def test_every_encoding_name_is_valid_for_some_type() -> None:
    assert set(ENCODINGS) == {*encoding_choice.NAMES, "auto", "default"}
    assert set(encoding_choice.NAMES.values()) == set(encoding_choice.SUITABLE)


@pytest.mark.parametrize("encodings", ["DELTA", "rle_dictionary", {"a": "zip"}, {"a": None}])
def test_unknown_encoding_name_is_rejected(encodings: Any) -> None:
    with pytest.raises(ValueError, match="encodings must be one of plain, rle, "):
        WriteOptions(encodings=encodings)


@pytest.mark.parametrize("encodings", [None, 5, ["plain"]])
def test_encoding_of_the_wrong_type_is_rejected(encodings: Any) -> None:
    with pytest.raises(TypeError, match="encodings must not be"):
        WriteOptions(encodings=encodings)


def test_missing_column_is_rejected() -> None:
    with pytest.raises(ValueError, match="encodings has column 'b', which the schema lacks; the columns are a"):
        written(pa.table({"a": [1]}), encodings={"b": "plain"})


@pytest.mark.spec(
    "encoding.suits", "encoding.delta.types", "encoding.delta-length.types", "encoding.delta-strings.types",
    "encoding.split.types", "encoding.alp.types", "encoding.hybrid.only-for", "encoding.bit-packed.levels-only",
)
@pytest.mark.parametrize("name", encoding_choice.NAMES)
def test_encoding_undefined_for_the_physical_type_is_rejected(name: str) -> None:
    arrays = {
        Type.BOOLEAN: pa.array([True]), Type.INT32: pa.array([1], pa.int32()), Type.INT64: pa.array([1]),
        Type.FLOAT: pa.array([1.0], pa.float32()), Type.DOUBLE: pa.array([1.0]), Type.BYTE_ARRAY: pa.array(["a"]),
        Type.FIXED_LEN_BYTE_ARRAY: pa.array([b"ab"], pa.binary(2)),
    }
    suited = {
        "plain": set(arrays), "rle": {Type.BOOLEAN}, "delta_binary_packed": {Type.INT32, Type.INT64},
        "delta_length_byte_array": {Type.BYTE_ARRAY},
        "delta_byte_array": {Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY},
        "byte_stream_split": {Type.INT32, Type.INT64, Type.FLOAT, Type.DOUBLE, Type.FIXED_LEN_BYTE_ARRAY},
        "alp": {Type.FLOAT, Type.DOUBLE},
    }[name]
    for kind, array in arrays.items():
        for encodings in (name, {"a": name}):
            if kind in suited:
                assert used(array, encodings=encodings, dictionary=False) == [name.upper()]
                continue
            with pytest.raises(ValueError, match=f"{name!r} does not support column 'a', .* {kind.name}"):
                written(pa.table({"a": array}), encodings=encodings)


def sorted_numbers() -> pa.Array:
    return pa.array(np.cumsum(GENERATOR.integers(0, 50, ROWS)))


def random_numbers() -> pa.Array:
    return pa.array(GENERATOR.integers(-(2**63), 2**63, ROWS))


def smooth_floats() -> pa.Array:
    return pa.array(np.sin(np.arange(ROWS) / 1000) * 100 + GENERATOR.normal(size=ROWS) * 1e-3)


def paths() -> pa.Array:
    return pa.array([f"/very/long/directory/name/of/files/that/are/sorted/{i:09}.parquet" for i in range(ROWS)])


def words() -> pa.Array:
    letters = GENERATOR.integers(97, 123, (ROWS, 12)).astype(np.uint8)
    return pa.array([row.tobytes()[: 1 + i % 12] for i, row in enumerate(letters)])


@pytest.mark.parametrize(
    ("values", "compression", "expected"),
    [
        (sorted_numbers, "zstd", "DELTA_BINARY_PACKED"),
        (sorted_numbers, "uncompressed", "DELTA_BINARY_PACKED"),
        (random_numbers, "zstd", "PLAIN"),
        (smooth_floats, "zstd", "BYTE_STREAM_SPLIT"),
        (smooth_floats, "uncompressed", "PLAIN"),
        (paths, "uncompressed", "DELTA_BYTE_ARRAY"),
        (words, "snappy", "DELTA_LENGTH_BYTE_ARRAY"),
        (lambda: pa.array(np.arange(ROWS) // 999 % 2 == 0), "uncompressed", "RLE"),
        (lambda: pa.array(GENERATOR.random(ROWS) < 0.5), "uncompressed", "PLAIN"),
        (lambda: pa.array([b"%09d" % i for i in range(ROWS)], pa.binary(9)), "zstd", "PLAIN"),
        (lambda: pa.array([b"x" * 200_000] * 3), "snappy", "PLAIN"),
    ],
)
def test_auto_chooses_an_encoding_that_fits_the_values(values: Any, compression: str, expected: str) -> None:
    assert used(values(), encodings="auto", dictionary=False, compression=compression) == [expected]


@pytest.mark.parametrize("rows", [1, 4 * 4096, 4 * 4096 + 1, 100_000, 1_000_003])
def test_sample_covers_a_short_chunk_and_runs_of_a_long_one(rows: int) -> None:
    runs = [range(rows)[run] for run in encoding_choice._sample(pa.nulls(rows, pa.int32()))]
    assert all(one.stop <= other.start for one, other in itertools.pairwise(runs))
    assert sum(map(len, runs)) == min(rows, 4 * 4096)
    assert (runs[0].start, runs[-1].stop) == (0, rows) or rows - runs[-1].stop < 4


@pytest.mark.spec("encoding.alp.opt-in")
def test_auto_never_chooses_alp() -> None:
    prices = pa.array(np.round(GENERATOR.random(ROWS) * 100, 2))
    sizes = {
        name: len(written(pa.table({"a": prices}), encodings=name, dictionary=False, compression="zstd"))
        for name in ("auto", "alp")
    }
    assert sizes["alp"] < sizes["auto"]
    assert used(prices, encodings="auto", dictionary=False, compression="zstd") != ["ALP"]
    assert used(prices, dictionary=False) == ["PLAIN"]


def test_spark_profile_uses_encodings_supported_by_spark() -> None:
    for name in ("alp", "byte_stream_split"):
        for encodings in (name, {"a": name}):
            with pytest.raises(ValueError, match=f"encoding '{name}' is not supported by all versions of Spark"):
                WriteOptions(encodings=encodings, profile="spark")
    options = {"encodings": "auto", "dictionary": False, "compression": "zstd", "profile": "spark"}
    assert used(smooth_floats(), **options) == ["PLAIN"]
    assert used(sorted_numbers(), **options) == ["DELTA_BINARY_PACKED"]


@pytest.mark.parametrize("values", [sorted_numbers, random_numbers, smooth_floats, paths, words])
@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "zstd"])
def test_auto_is_not_larger_than_plain(values: Any, compression: str) -> None:
    table = pa.table({"a": values()})
    sizes = [len(written(table, encodings=name, compression=compression)) for name in ("auto", "plain")]
    assert sizes[0] <= sizes[1] * 1.01


FEW = pa.array(["red", "green", "blue"] * 1000)


def test_dictionary_is_preferred_if_worthwhile() -> None:
    dictionary = ["PLAIN", "RLE_DICTIONARY"]
    assert used(FEW, encodings="delta_byte_array") == dictionary
    assert used(FEW, encodings="auto") == dictionary
    assert used(FEW, encodings={"a": "auto"}) == dictionary


def test_explicit_column_encoding_replaces_the_dictionary() -> None:
    assert used(FEW, encodings={"a": "delta_byte_array"}) == ["DELTA_BYTE_ARRAY"]
    assert used(FEW, encodings={"a": "plain"}) == ["PLAIN"]
    assert used(FEW, encodings={"a": "plain"}, dictionary={"a": True}) == ["PLAIN", "RLE_DICTIONARY"]
    assert used(FEW, encodings={"a": "plain"}, dictionary=True) == ["PLAIN"]
    assert used(FEW, encodings="delta_byte_array", dictionary={"a": False}) == ["DELTA_BYTE_ARRAY"]


def test_auto_drops_a_dictionary_much_larger_than_deltas() -> None:
    values = pa.array(np.arange(ROWS) // 4 * 1000)
    assert used(values, encodings="auto", compression="uncompressed") == ["DELTA_BINARY_PACKED"]
    assert "RLE_DICTIONARY" in used(values, encodings="plain", compression="uncompressed")


def test_auto_counts_the_indices_of_a_dictionary_and_not_just_its_entries() -> None:
    values = pa.array(np.abs(np.cumsum(GENERATOR.integers(-8, 9, ROWS)) % 1024 - 512))
    sizes = []
    for options in ({}, {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED"}):
        pq.write_table(pa.table({"a": values}), out := io.BytesIO(), compression="none", **options)
        sizes.append(len(out.getvalue()))
    assert sizes[1] * 1.5 < sizes[0]
    assert used(values, encodings="auto", compression="uncompressed") == ["DELTA_BINARY_PACKED"]


@pytest.mark.spec("encoding.dictionary.fallback", "encoding.claimed")
@pytest.mark.parametrize("name", ["plain", "delta_binary_packed"])
def test_pages_after_an_oversized_dictionary_use_the_chosen_encoding(name: str) -> None:
    values = pa.array(np.concatenate([np.arange(100_000) % 100, np.arange(300_000) // 2]) * 12345)
    data = written(pa.table({"a": values}), encodings={"a": name}, dictionary={"a": True})
    pages = page_headers.of_column(data, 0)
    assert [page.kind for page in pages] == ["DICTIONARY_PAGE"] + ["DATA_PAGE"] * (len(pages) - 1)
    indexed = [page.encoding for page in pages[1:]].count("RLE_DICTIONARY")
    assert 0 < indexed < len(pages) - 1
    assert [page.encoding for page in pages] == (
        ["PLAIN"] + ["RLE_DICTIONARY"] * indexed + [name.upper()] * (len(pages) - 1 - indexed)
    )
    with pqext.open(data) as file:
        metadata = file.row_groups[0].chunk(0).metadata
        assert sum(stats.count for stats in metadata.encoding_stats) == len(pages)
        assert {stats.encoding for stats in metadata.encoding_stats} == {
            Encoding.PLAIN, Encoding.RLE_DICTIONARY, Encoding[name.upper()]
        }
        assert set(metadata.encodings) >= {stats.encoding for stats in metadata.encoding_stats}
        assert file.read()["a"].combine_chunks().equals(values)
    assert pq.read_table(io.BytesIO(data))["a"].combine_chunks().equals(values)


def test_encodings_are_chosen_for_nested_leaves() -> None:
    table = pa.table({"s": [{"x": [1, 2, None], "y": "a"}, None, {"x": [], "y": "b"}]})
    data = written(table, encodings={"s.x.list.element": "delta_binary_packed", "s.y": "delta_length_byte_array"})
    assert {page.encoding for page in page_headers.of_column(data, 0)} == {"DELTA_BINARY_PACKED"}
    assert {page.encoding for page in page_headers.of_column(data, 1)} == {"DELTA_LENGTH_BYTE_ARRAY"}
    with pqext.open(data) as file:
        assert file.read().to_pylist() == table.to_pylist()


@pytest.mark.parametrize(("bits", "rows"), [(8, 570), (10, 3200), (12, 20_000)])
def test_dictionary_of_a_power_of_two_entries_is_used_if_its_pages_are_smaller(bits: int, rows: int) -> None:
    values = pa.array([(i % (1 << bits)).to_bytes(2, "little") for i in range(rows)], pa.binary(2))
    sizes = []
    for dictionary in (True, False):
        data = written(pa.table({"a": values}), dictionary=dictionary, compression="uncompressed", encodings="plain")
        chunk = pq.read_metadata(io.BytesIO(data)).row_group(0).column(0)
        assert ("RLE_DICTIONARY" in chunk.encodings) is dictionary
        sizes.append(chunk.total_uncompressed_size)
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize("compression", ["snappy", "zstd", "uncompressed"])
@pytest.mark.parametrize(("values", "expected"), [
    (pa.array(np.arange(ROWS)), "DELTA_BINARY_PACKED"),
    (pa.array(np.cumsum(GENERATOR.integers(0, 5000, ROWS))).cast(pa.timestamp("us")), "DELTA_BINARY_PACKED"),
    (pa.array(GENERATOR.permutation(ROWS).astype(np.int32)), "DELTA_BINARY_PACKED"),
    (pa.array(np.arange(ROWS), mask=np.arange(ROWS) % 3 == 0), "DELTA_BINARY_PACKED"),
    (pa.array(GENERATOR.integers(-(2**63), 2**63, ROWS, np.int64)), "PLAIN"),
    (pa.array(np.arange(ROWS) * 0.5), "PLAIN"),
    (pa.array([f"{n:09}" for n in range(ROWS)]), "PLAIN"),
    (pa.array(np.arange(encoding_choice.SMALL + 1)), "DELTA_BINARY_PACKED"),
    (pa.array(np.arange(encoding_choice.SMALL)), "PLAIN"),
    (pa.array(np.arange(encoding_choice.SMALL + 5), mask=np.arange(encoding_choice.SMALL + 5) < 5), "PLAIN"),
])  # fmt: skip
def test_default_packs_deltas_of_integers_if_smaller(values: pa.Array, compression: str, expected: str) -> None:
    assert used(values, dictionary=False, compression=compression) == [expected]
    assert used(values, dictionary=False, compression=compression, encodings={"a": "default"}) == [expected]
    data, plain = (
        written(pa.table({"a": values}), dictionary=False, compression=compression, encodings=name)
        for name in ("default", "plain")
    )
    assert len(data) <= len(plain)
    assert pq.read_table(io.BytesIO(data))["a"].combine_chunks().equals(values)


def test_default_keeps_a_dictionary_until_it_is_full() -> None:
    assert used(pa.array(np.repeat(np.arange(500), 100))) == ["PLAIN", "RLE_DICTIONARY"]
    first, rest = np.tile(np.arange(5000), 40), np.arange(10**6, 10**6 + 400_000)
    values = pa.array(np.concatenate([first, rest]))
    assert used(values) == ["PLAIN", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"]
    assert used(values, encodings="plain") == ["PLAIN", "RLE_DICTIONARY"]


@pytest.mark.parametrize("page_version", [1, 2])
def test_other_readers_read_packed_integers_of_every_type(page_version: int) -> None:
    table = packed_integers.table()
    data = written(table, dictionary=False, page_version=page_version)
    with pqext.open(data) as file:
        assert all(Encoding.DELTA_BINARY_PACKED in chunk.metadata.encodings for chunk in file.row_groups[0].chunks())
        assert file.read().equals(table)
    assert pq.read_table(io.BytesIO(data)).equals(table)
    assert polars.read_parquet(data).equals(polars.DataFrame(table))


def test_duckdb_reads_packed_integers_of_every_type(tmp_path: Path) -> None:
    table = packed_integers.table()
    pqext.write_table(table, tmp_path / "a.parquet", dictionary=False)
    connection = duckdb.connect()
    connection.register("expected", table)
    connection.execute(f"CREATE VIEW read AS FROM '{tmp_path / 'a.parquet'}'")
    for first, second in (("read", "expected"), ("expected", "read")):
        assert connection.execute(f"FROM {first} EXCEPT ALL FROM {second}").fetchall() == []
    assert connection.execute("SELECT count(*) FROM read").fetchall() == [(packed_integers.ROWS,)]
