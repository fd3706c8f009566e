"""Bloom filters: others find what we write and we find what they write; absent means absent."""

from __future__ import annotations

import datetime as dt
import io
import math
import os
import struct
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.base.limits import Limits
from pqext.core.format.metadata import (
    BloomFilterAlgorithm,
    BloomFilterCompression,
    BloomFilterHash,
    BloomFilterHeader,
    DecimalType,
    Float16Type,
    GeometryType,
    LogicalType,
    SplitBlockAlgorithm,
    Type,
    Uncompressed,
    XxHash,
)
from pqext.core.format.predicate import Comparison, IsIn, may_match
from pqext.core.format.thrift import encode
from pqext.core.indexes import bloom
from pqext.core.indexes.bloom import SplitBlockFilter
from pqext.core.io.source import MemorySource
from pqext.core.kernels.hash import xxh64
from pqext.core.schema.types.logical import LeafType
from reference import split_block
from reference.compact import Reader

DATA = os.environ.get("PARQUET_TEST_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="PARQUET_TEST_DATA is not set")
HASHES = st.integers(0, 2**64 - 1)


def written(table: pa.Table, **options: Any) -> pqext.ParquetFile:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return pqext.open(out.getvalue())


def filter_of(array: pa.Array, **options: Any) -> SplitBlockFilter:
    found = written(pa.table({"c": array}), **{"bloom_filters": True, **options}).row_groups[0].chunk(0).bloom_filter
    assert found is not None
    return found


@pytest.mark.spec("bloom.hash")
@given(st.lists(st.binary(max_size=100), min_size=1, max_size=8))
def test_byte_arrays_are_hashed_without_length_prefix(values: list[bytes]) -> None:
    expected = [xxhash.xxh64_intdigest(value, seed=0) for value in values]
    assert bloom.hash_values(pa.array(values, pa.binary())).tolist() == expected
    padded = pa.array([b"front", *values, b"behind"], pa.binary())
    assert bloom.hash_values(padded[1:-1]).tolist() == expected


@pytest.mark.spec("bloom.hash")
@pytest.mark.parametrize("width", [1, 2, 4, 7, 8, 12, 16, 31, 32, 40])
def test_values_of_each_width_are_hashed_as_plain_bytes(width: int) -> None:
    values = [bytes((i * 7 + j) % 256 for j in range(width)) for i in range(9)]
    expected = [xxhash.xxh64_intdigest(value) for value in values]
    assert bloom.hash_values(pa.array(values, pa.binary(width))).tolist() == expected
    assert bloom.hash_values(pa.array(values, pa.binary(width))[2:]).tolist() == expected[2:]


@pytest.mark.spec("bloom.block", "bloom.insert", "bloom.check")
@given(st.integers(1, 40), st.lists(HASHES, max_size=30), st.lists(HASHES, max_size=30))
def test_filter_matches_the_example_of_the_specification(blocks: int, inserted: list[int], asked: list[int]) -> None:
    slow = split_block.Filter(blocks)
    words = np.zeros(blocks * 8, np.uint32)
    xxh64.insert_hashes(np.array(inserted, np.uint64), words)
    for hashed in inserted:
        slow.insert(hashed)
    fast = SplitBlockFilter(LeafType(Type.INT64), words)
    assert fast.bitset == slow.bitset()
    assert [fast.contains_hash(hashed) for hashed in asked] == [slow.check(hashed) for hashed in asked]
    assert all(fast.contains_hash(hashed) for hashed in inserted)


@pytest.mark.spec("bloom.check")
@pytest.mark.parametrize("hashed", [0, 1, 2**63 + 12345, 2**64 - 1])
def test_hash_with_one_of_eight_bits_missing_is_absent(hashed: int) -> None:
    words = np.zeros(8, np.uint32)
    xxh64.insert_hashes(np.array([hashed], np.uint64), words)
    assert SplitBlockFilter(LeafType(Type.INT64), words).contains_hash(hashed)
    for word in range(8):
        lacking = words.copy()
        lacking[word] = 0
        assert not SplitBlockFilter(LeafType(Type.INT64), lacking).contains_hash(hashed)


@pytest.mark.spec("bloom.false-positives")
@pytest.mark.parametrize(("inserted", "percent"), [(13_107, 0.04), (26_214, 1.26), (52_428, 18.0)])
def test_false_positive_rate_matches_the_specification(inserted: int, percent: float) -> None:
    random = np.random.default_rng(1)
    words = np.zeros(1024 * 8, np.uint32)
    xxh64.insert_hashes(random.integers(0, 2**64, inserted, np.uint64), words)
    found = np.empty(200_000, np.uint8)
    xxh64.contains_hashes(random.integers(0, 2**64, len(found), np.uint64), words, found)
    assert found.mean() * 100 == pytest.approx(percent, rel=0.25)


@pytest.mark.spec("bloom.size")
def test_filter_size_follows_distinct_values_and_false_positive_rate() -> None:
    for fpp, bits in [(0.1, 6.0), (0.01, 10.5), (0.001, 16.9), (0.0001, 26.4), (0.00001, 41)]:
        assert bloom.false_positive_rate(bits) == pytest.approx(fpp, rel=0.06), "the table of the format's text"
        size = bloom.filter_size(1_000_000, fpp, 1 << 30)
        assert size.bit_count() == 1
        assert size / 2.02 < bits * 1_000_000 / 8 <= size * 1.02
    assert bloom.filter_size(1, 0.5, 1 << 20) == 32
    assert bloom.filter_size(10**12, 0.01, (1 << 20) + 5) == 1 << 20


def expected_rate(bits: float) -> float:
    """False-positive rate of the format's text: the sum over the number of values in a block, a Poisson variable."""
    mean = 256 / bits
    count = np.arange(int(mean + 30 * math.sqrt(mean) + 60))
    logarithms = count * math.log(mean) - mean - np.concatenate([[0], np.cumsum(np.log(count[1:]))])
    return float((np.exp(logarithms) * (1 - (31 / 32) ** count) ** 8).sum())


@pytest.mark.spec("bloom.size")
@pytest.mark.parametrize("fpp", [0.3, 0.01, 0.0001])
def test_filter_has_the_smallest_sufficient_size(fpp: float) -> None:
    for ndv in np.geomspace(20, 10**8, 150).astype(int).tolist():
        size = bloom.filter_size(ndv, fpp, 1 << 34)
        assert expected_rate(8 * size / ndv) <= fpp * 1.000001
        assert size == 32 or expected_rate(4 * size / ndv) > fpp * 0.999999


@pytest.mark.spec("bloom.size")
@given(st.lists(HASHES, max_size=200), st.integers(0, 5))
def test_folded_filter_equals_a_smaller_filter(hashes: list[int], power: int) -> None:
    large, small = np.zeros(8 << (power + 1), np.uint32), np.zeros(8 << power, np.uint32)
    for words in (large, small):
        xxh64.insert_hashes(np.array(hashes, np.uint64), words)
    assert bloom.fold(large).tolist() == small.tolist()


@pytest.mark.spec("bloom.size")
@pytest.mark.parametrize("distinct", [1, 1000, 30_000])
def test_distinct_values_are_counted_if_not_specified(distinct: int) -> None:
    values = pa.array(np.random.default_rng(2).permutation(np.arange(60_000) % distinct))
    for dictionary in (True, False):
        found = filter_of(values, dictionary=dictionary, bloom_filters={"c": {"fpp": 0.01}})
        assert found.num_bytes == bloom.filter_size(distinct, 0.01, 1 << 30)
        assert all(found.might_contain(value) for value in range(distinct))


def test_filter_size_options_apply() -> None:
    values = pa.array(range(1000))
    assert filter_of(values, bloom_filters={"c": {"ndv": 100_000, "fpp": 0.1}}).num_bytes == 131_072
    repeated = pa.array([1, 2] * 500)
    for dictionary in (True, False):
        options: Any = {"bloom_filters": {"c": {"ndv": 100_000, "fpp": 0.1}}, "dictionary": dictionary}
        assert filter_of(repeated, **options).num_bytes == 131_072
    assert filter_of(values, bloom_filter_bytes=100).num_bytes == 64
    file = written(pa.table({"a": values, "b": values}), bloom_filters={"b": True})
    assert file.row_groups[0].chunk(0).bloom_filter is None
    assert file.row_groups[0].chunk(1).bloom_filter is not None


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"bloom_filters": {"c": {"fpp": 1.5}}}, "between 0 and 1"),
        ({"bloom_filters": {"c": {"ndv": 0}}}, "ndv"),
        ({"bloom_filters": {"c": {"size": 3}}}, "accepts the keys fpp and ndv"),
        ({"bloom_filters": {"c": "yes"}}, "mapping"),
        ({"bloom_filters": "yes"}, "bool or a mapping"),
        ({"bloom_filters": {"d": True}}, "'d'"),
        ({"bloom_filter_bytes": 16}, "bloom_filter_bytes"),
        ({"bloom_filter_place": "somewhere"}, "bloom_filter_place"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        pqext.write_table(pa.table({"c": [1]}), io.BytesIO(), **options)


@pytest.mark.spec("bloom.booleans")
def test_booleans_have_no_filter() -> None:
    table = pa.table({"c": [True]})
    assert written(table, bloom_filters=True).row_groups[0].chunk(0).bloom_filter is None
    with pytest.raises(ValueError, match="BOOLEAN"):
        pqext.write_table(table, io.BytesIO(), bloom_filters={"c": True})


COLUMNS = {
    "int32": pa.array(range(0, 4000, 2), pa.int32()),
    "uint64": pa.array([2**64 - 1 - i for i in range(500)], pa.uint64()),
    "float": pa.array([i / 4 for i in range(100)], pa.float32()),
    "double": pa.array([i / 3 for i in range(100)]),
    "text": pa.array([f"value {i}" * (i % 9) for i in range(1000)]),
    "decimal": pa.array([Decimal(i).scaleb(-2) for i in range(-50, 50)], pa.decimal128(25, 2)),
    "day": pa.array([dt.date(2020, 1, 1) + dt.timedelta(i) for i in range(100)]),
    "time": pa.array([dt.datetime(2020, 1, 1) + dt.timedelta(seconds=i) for i in range(100)], pa.timestamp("us")),
    "lists": pa.array([[i, None, i + 1] if i % 3 else None for i in range(300)]),
}


@pytest.mark.spec("bloom.hash", "bloom.per-chunk")
@pytest.mark.parametrize("name", ["int32", "uint64", "float", "double", "text"])
@pytest.mark.parametrize("place", ["file", "row_group"])
def test_duckdb_uses_our_filters(tmp_path: Path, name: str, place: str) -> None:
    path, values = tmp_path / "a.parquet", COLUMNS[name]
    half = len(values) // 2
    pqext.write_table(
        pa.table({"c": values}), path, bloom_filters={"c": {"fpp": 1e-6}}, bloom_filter_place=place,
        row_group_rows=half, dictionary=False,
    )
    with duckdb.connect() as connection:
        kind = connection.sql(f"select typeof(c) from '{path}' limit 1").fetchall()[0][0]

        def excluded(value: Any) -> list[bool]:
            rows = connection.execute(
                f"select bloom_filter_excludes from parquet_bloom_probe('{path}', 'c', ?::{kind})", [value]
            ).fetchall()
            return [row[0] for row in rows]

        first, second = values[3].as_py(), values[half + 5].as_py()
        assert excluded(first)[0] is False
        assert excluded(second)[1] is False
        assert [excluded(values[i].as_py())[1] for i in (1, 2)] == [True, True]


@pytest.mark.spec("bloom.hash")
@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_pyarrow_filters_contain_all_values(name: str) -> None:
    out = io.BytesIO()
    path = "c.list.element" if name == "lists" else "c"
    options = {"ndv": 4000, "fpp": 0.001}
    pq.write_table(pa.table({"c": COLUMNS[name]}), out, bloom_filter_options={path: options}, use_dictionary=False)
    _finds_all(pqext.open(out.getvalue()), COLUMNS[name])


@pytest.mark.spec("bloom.hash")
@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_our_filters_contain_all_values(name: str) -> None:
    _finds_all(written(pa.table({"c": COLUMNS[name]}), bloom_filters=True), COLUMNS[name])


def _comparison(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dt.datetime):
        return int((value - dt.datetime(1970, 1, 1)).total_seconds()) * 10**9
    if isinstance(value, dt.date):
        return (value - dt.date(1970, 1, 1)).days
    return value


def _finds_all(file: pqext.ParquetFile, values: pa.Array) -> None:
    found = file.row_groups[0].chunk(0).bloom_filter
    assert found is not None
    flat = values.flatten() if pa.types.is_list(values.type) else values
    present = [_comparison(value) for value in flat.to_pylist() if value is not None]
    assert all(found.might_contain(value) for value in present)
    if not isinstance(present[0], bytes):
        absent = [max(present) + type(present[0])(step) for step in range(1, 200)]
        assert sum(found.might_contain(value) for value in absent) < 40


@pytest.mark.spec("bloom.hash")
def test_filter_bytes_match_pyarrow() -> None:
    values = pa.array(range(1000))
    out = io.BytesIO()
    pq.write_table(pa.table({"c": values}), out, bloom_filter_options={"c": {"ndv": 1000, "fpp": 0.01}})
    theirs = pqext.open(out.getvalue()).row_groups[0].chunk(0).bloom_filter
    ours = filter_of(values, bloom_filters={"c": {"ndv": 1000, "fpp": 0.01}})
    assert theirs is not None
    assert theirs.bitset == ours.bitset


@pytest.mark.spec("bloom.hash", "bloom.header")
@needs_data
def test_filters_of_public_test_files_contain_their_values() -> None:
    assert DATA is not None
    raw = Path(DATA, "data", "bloom_filter.xxhash.bin").read_bytes()
    found = bloom.read(MemorySource(raw), 0, None, LeafType(Type.BYTE_ARRAY), Limits())
    assert found is not None
    assert all(found.might_contain(value) for value in (b"hello", b"parquet", b"bloom", b"filter"))
    assert not any(found.might_contain(value) for value in (b"hell", b"spark", b"", b"hello "))
    file = pqext.open(Path(DATA, "data", "data_index_bloom_encoding_stats.parquet"))
    filters = [(chunk.node, chunk.bloom_filter) for chunk in file.row_groups[0].chunks()]
    of_bytes = [(leaf, kept) for leaf, kept in filters if kept is not None and leaf.physical_type == Type.BYTE_ARRAY]
    assert of_bytes
    for leaf, column in of_bytes:
        stored = file.read([leaf.dotted_path])[0].cast(pa.binary())
        assert all(column.might_contain(value) for value in stored.to_pylist() if value is not None)
        assert not column.might_contain(b"not there")


@pytest.mark.spec("bloom.zeros")
def test_zeros_of_both_signs_are_one_value() -> None:
    for kind in (pa.float32(), pa.float64()):
        assert filter_of(pa.array([-0.0, 1.0], kind)).might_contain(0.0)
        assert filter_of(pa.array([0.0, 1.0], kind)).might_contain(-0.0)
        assert not filter_of(pa.array([2.0, 1.0], kind)).might_contain(0.0)


@pytest.mark.spec("bloom.zeros")
@pytest.mark.parametrize(("kind", "code"), [(pa.float16(), "<e"), (pa.float32(), "<f"), (pa.float64(), "<d")])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_filter_of_one_zero_contains_both(kind: pa.DataType, code: str, zero: float) -> None:
    found = filter_of(pa.array([zero, *range(1, 2000)], kind))
    for raw in (struct.pack(code, 0.0), struct.pack(code, -0.0)):
        assert found.contains_hash(xxhash.xxh64_intdigest(raw))


@pytest.mark.spec("bloom.zeros")
def test_zeros_of_half_floats_are_equal() -> None:
    half = LeafType(Type.FIXED_LEN_BYTE_ARRAY, 2, LogicalType(FLOAT16=Float16Type()))
    assert bloom.plain_representations(half, 0) == [struct.pack("<e", 0.0), struct.pack("<e", -0.0)]
    assert bloom.plain_representations(half, 1e9) == [struct.pack("<e", math.inf)]


@pytest.mark.spec("bloom.many-forms", "querying.bloom")
@pytest.mark.parametrize(
    ("leaf", "value"),
    [
        (LeafType(Type.BYTE_ARRAY, logical=LogicalType(DECIMAL=DecimalType(scale=0, precision=5))), Decimal(1)),
        (LeafType(Type.BYTE_ARRAY, logical=LogicalType(GEOMETRY=GeometryType())), b"x"),
        (LeafType(Type.INT96), 5),
        (LeafType(Type.INT96), bytes(12)),
        (LeafType(Type.BOOLEAN), True),
        (LeafType(Type.BOOLEAN), b"\1"),
        (LeafType(Type.INT32), True),
        (LeafType(Type.DOUBLE), False),
        (LeafType(Type.DOUBLE), math.nan),
        (LeafType(Type.INT64), 2.0**60),
        (LeafType(Type.INT64), b"text"),
        (LeafType(Type.BYTE_ARRAY), 5),
        (LeafType(Type.DOUBLE), 2**60 + 1),
    ],
)
def test_values_with_several_encodings_are_never_excluded(leaf: LeafType, value: Any) -> None:
    assert bloom.plain_representations(leaf, value) is None
    assert SplitBlockFilter(leaf, np.zeros(8, np.uint32)).might_contain(value)


@pytest.mark.spec("bloom.many-forms")
def test_value_out_of_range_of_the_column_is_excluded() -> None:
    cents = LogicalType(DECIMAL=DecimalType(scale=2, precision=9))
    for leaf, value in [
        (LeafType(Type.INT32), 1 << 31),
        (LeafType(Type.INT32), Decimal("0.5")),
        (LeafType(Type.INT32, logical=cents), Decimal("0.005")),
        (LeafType(Type.FIXED_LEN_BYTE_ARRAY, 2, cents), 1000),
    ]:
        assert bloom.plain_representations(leaf, value) == []
    assert bloom.plain_representations(LeafType(Type.INT32, logical=cents), Decimal("1.50")) == [struct.pack("<i", 150)]
    assert bloom.plain_representations(LeafType(Type.INT64), 7.0) == [struct.pack("<q", 7)]
    assert bloom.plain_representations(LeafType(Type.FIXED_LEN_BYTE_ARRAY, 3, cents), Decimal(-1)) == [b"\xff\xff\x9c"]


HEADER = BloomFilterHeader(
    numBytes=32,
    algorithm=BloomFilterAlgorithm(BLOCK=SplitBlockAlgorithm()),
    hash=BloomFilterHash(XXHASH=XxHash()),
    compression=BloomFilterCompression(UNCOMPRESSED=Uncompressed()),
)


def stored(**changes: Any) -> bytes:
    fields = {name: getattr(HEADER, name) for name in ("numBytes", "algorithm", "hash", "compression")}
    return encode(BloomFilterHeader(**{**fields, **changes}))


def read(raw: bytes, length: int | None = None, limits: Limits | None = None) -> SplitBlockFilter | None:
    return bloom.read(MemorySource(raw), 0, length, LeafType(Type.INT32), limits or Limits())


@pytest.mark.spec("bloom.header", "bloom.length", "bloom.per-chunk")
@pytest.mark.parametrize("place", ["file", "row_group"])
def test_written_filter_is_a_header_followed_by_its_bytes(place: str) -> None:
    table = pa.table({"a": [f"value {i}" for i in range(40)]})
    out = io.BytesIO()
    options: Any = {"bloom_filters": True, "bloom_filter_place": place, "row_group_rows": 20}
    pqext.write_table(table, out, **options)
    for number, group in enumerate(pqext.open(out.getvalue()).row_groups):
        about = group.chunk("a").metadata
        raw = out.getvalue()[about.bloom_filter_offset : about.bloom_filter_offset + about.bloom_filter_length]
        reader = Reader(raw, 0)
        header: dict[int, Any] = {id: value for id, _, value in reader.struct()}
        assert header[1] == len(raw) - reader.at
        assert header[1] % 32 == 0
        bits = split_block.Filter(header[1] // 32)
        for value in table["a"][number * 20 : (number + 1) * 20].to_pylist():
            bits.insert(xxhash.xxh64_intdigest(value.encode()))
        assert raw[reader.at :] == bits.bitset()


@pytest.mark.spec("bloom.header", "bloom.length")
def test_filters_are_read_with_and_without_a_stated_length() -> None:
    raw = stored() + bytes(range(32))
    for length in (None, len(raw)):
        found = read(raw + b"more" * (length is None), length)
        assert found is not None
        assert found.bitset == bytes(range(32))
    with pytest.raises(CorruptFileError, match=f"has {len(raw)} bytes, but the column metadata states {len(raw) + 4}"):
        read(raw + b"more", len(raw) + 4)


@pytest.mark.parametrize(("offset", "length"), [(0, 0), (0, -1), (0, 48), (5, 47), (47, 1), (56, 4)])
def test_filter_outside_the_file_is_rejected_before_it_is_read(offset: int, length: int) -> None:
    raw = stored() + bytes(32)
    assert len(raw) == 47
    with pytest.raises(CorruptFileError, match=f"of {length} bytes at offset {offset} extends beyond the file"):
        bloom.read(MemorySource(raw), offset, length, LeafType(Type.INT32), Limits())


@pytest.mark.spec("bloom.unknown")
def test_filters_of_unknown_types_are_ignored() -> None:
    for name, kind in (
        ("algorithm", BloomFilterAlgorithm), ("hash", BloomFilterHash), ("compression", BloomFilterCompression)
    ):
        assert read(stored(**{name: kind(unknown=((9, 12, b"\0"),))}) + bytes(32)) is None


@pytest.mark.spec("bloom.header")
@pytest.mark.parametrize("size", [0, -32, 33, 31])
def test_sizes_that_are_not_block_multiples_are_rejected(size: int) -> None:
    with pytest.raises(CorruptFileError, match="multiple of 32"):
        read(stored(numBytes=size) + bytes(64))


def test_huge_and_truncated_filters_are_rejected() -> None:
    with pytest.raises(LimitError, match="bloom_filter_bytes"):
        read(stored(numBytes=1 << 30) + bytes(64))
    with pytest.raises(CorruptFileError):
        read(stored(numBytes=64) + bytes(32))
    with pytest.raises(CorruptFileError):
        bloom.read(MemorySource(b"abc"), 9, None, LeafType(Type.INT32), Limits())
    for end in range(len(stored())):
        with pytest.raises(CorruptFileError):
            read(stored()[:end])


@pytest.mark.spec("bloom.place")
@pytest.mark.parametrize("place", ["file", "row_group"])
def test_filters_are_stored_after_all_row_groups_or_after_their_own(place: str) -> None:
    table = pa.table({"a": range(100), "b": [str(i) for i in range(100)]})
    file = written(table, bloom_filters=True, row_group_rows=50, bloom_filter_place=place)
    chunks = [chunk for group in file.row_groups for chunk in group.chunks()]
    filters = [chunk.metadata.bloom_filter_offset for chunk in chunks]
    assert filters == sorted(filters), "by row group, then in the order of the schema"
    ends = [sum(chunk.byte_range) for chunk in chunks]
    if place == "file":
        assert filters[0] >= ends[3]
    else:
        assert ends[1] <= filters[0] < filters[1] < chunks[2].byte_range[0]
    indexes = [chunk.structure.column_index_offset for chunk in chunks]
    assert min(indexes) > max(filters), "page indexes follow"
    lengths = [chunk.metadata.bloom_filter_length for chunk in chunks]
    assert filters[1] == filters[0] + lengths[0]


@pytest.mark.spec("querying.bloom")
def test_filter_prunes_where_statistics_cannot() -> None:
    chunk = written(pa.table({"c": range(0, 100_000, 2)}), bloom_filters=True).row_groups[0].chunk(0)
    bounds, found = chunk.bounds(), chunk.bloom_filter
    absent = next(value for value in range(1, 99_999, 2) if found is not None and not found.might_contain(value))
    for predicate in (Comparison("==", absent), IsIn((absent,))):
        assert may_match(predicate, bounds)
        assert not chunk.may_match(predicate)
    assert chunk.may_match(Comparison("==", 4))
    assert chunk.may_match(IsIn((absent, 4)))
    assert chunk.may_match(Comparison("<", absent))


def test_corrupt_filter_raises_on_access_and_is_ignored_in_pruning() -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"c": [1, 3]}), out, bloom_filters=True, page_index=False)
    raw = bytearray(out.getvalue())
    at = pqext.open(bytes(raw)).row_groups[0].chunk(0).metadata.bloom_filter_offset
    raw[at] = 0xFF
    chunk = pqext.open(bytes(raw)).row_groups[0].chunk(0)
    with pytest.raises(CorruptFileError) as caught:
        _ = chunk.bloom_filter
    assert caught.value.column == "c"
    with pytest.warns(pqext.core.indexes.reading.DamagedIndexWarning):
        assert chunk.may_match(Comparison("==", 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not chunk.may_match(Comparison("==", 9)), "statistics come first"
