"""Codecs: what each reads and writes, levels, several frames, and pages that claim to be larger than they are."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import resource
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.raw_files import REQUIRED, Column, int64, leaf, write
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base import buffers
from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.format import compression
from pqext.core.format.metadata import CompressionCodec, Type
from pqext.core.kernels.decode.block_sizes import lz4_size, lzo_size
from reference import lz4 as twin
from reference.effort import share
from reference.pace import SLOWER

TEXT = b"".join(b"row %d of the text; " % (n % 50) for n in range(4000))
CODECS = [codec for codec in CompressionCodec if codec.name.lower() in compression.WRITABLE]


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def unpack(codec: int, data: bytes, size: int = len(TEXT)) -> bytes:
    return compression.decompress(codec, buffers.view(data), size).tobytes()


def lz4_block(data: bytes) -> bytes:
    return bytes(pa.Codec("lz4_raw").compress(data))


@pytest.mark.spec(
    "compression.uncompressed", "compression.snappy", "compression.gzip", "compression.brotli", "compression.zstd",
    "compression.lz4-raw",
)
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_pages_of_each_codec_are_exchanged_with_other_libraries(codec: CompressionCodec, tmp_path: Path) -> None:
    name = codec.name.lower()
    table = pa.table({"a": list(range(5000)), "s": [f"text {n % 70}" if n % 9 else None for n in range(5000)]})
    ours, theirs = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    pqext.write_table(table, ours, compression=name, dictionary=False)
    with pqext.open(ours) as file:
        assert {chunk.metadata.codec for chunk in file.row_groups[0].chunks()} == {codec}
        assert file.read().equals(table)
    assert pq.read_table(ours).equals(table)
    assert duckdb.sql(f"SELECT * FROM '{ours}'").to_arrow_table().cast(table.schema).equals(table)
    assert pl.read_parquet(ours).to_arrow().cast(table.schema).equals(table)
    arrow_name = {"uncompressed": "none", "lz4_raw": "lz4"}.get(name, name)
    pq.write_table(table, theirs, compression=arrow_name, use_dictionary=False)
    assert pqext.read_table(theirs).equals(table)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
@given(pages=st.lists(st.binary(max_size=60) | st.just(b"x" * (3 << 20)), max_size=5))
@settings(max_examples=share(0.2))
def test_pages_decompressed_together_equal_single_pages(codec: CompressionCodec, pages: list[bytes]) -> None:
    """Among them pages of nothing, and more than a thread keeps scratch for."""
    packed = [compression.compress(codec, page) for page in pages]
    opened = compression.decompress_all(codec, packed, list(map(len, pages)))
    assert [page.tobytes() for page in opened] == pages


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
@pytest.mark.parametrize("wrong", range(3))
@pytest.mark.parametrize("difference", [-1, 1, -(1 << 31)])
def test_page_of_a_wrong_size_among_several_is_corrupt(codec: CompressionCodec, wrong: int, difference: int) -> None:
    packed = [compression.compress(codec, TEXT)] * 3
    sizes = [len(TEXT) + (difference if place == wrong else 0) for place in range(3)]
    with pytest.raises(CorruptFileError):
        compression.decompress_all(codec, packed, sizes)


@pytest.mark.spec("compression.no-framing", "compression.uncompressed")
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
@given(data=st.binary(max_size=300) | st.binary(max_size=3).map(lambda part: part * 999), level=st.none() | st.just(1))
@settings(max_examples=share(0.25))
def test_compression_round_trips_and_checks_the_size(
    codec: CompressionCodec, data: bytes, level: int | None
) -> None:
    level = level if compression.levels(codec.name.lower()) else None
    packed = compression.compress(codec, data, level).tobytes()
    assert unpack(codec, packed, len(data)) == data
    for size in (len(data) + 1, len(data) + 40, len(data) - 1):
        if size >= 0 and (size or codec == CompressionCodec.UNCOMPRESSED):
            with pytest.raises(CorruptFileError):
                unpack(codec, packed, size)


@pytest.mark.spec("compression.gzip.members")
def test_gzip_page_may_have_many_members_and_padding() -> None:
    parts = [TEXT[at : at + 9] for at in range(0, len(TEXT), 9)]
    data = b"".join(gzip.compress(part, mtime=0) for part in parts)
    assert unpack(CompressionCodec.GZIP, data) == TEXT
    assert unpack(CompressionCodec.GZIP, data + b"\0" * 500) == TEXT
    with pytest.raises(CorruptFileError):
        unpack(CompressionCodec.GZIP, data + b"rubbish")
    with pytest.raises(CorruptFileError, match="truncated"):
        unpack(CompressionCodec.GZIP, gzip.compress(TEXT)[:-4])


@pytest.mark.spec("compression.gzip.members")
def test_gzip_page_is_written_as_a_single_member() -> None:
    packed = compression.compress(CompressionCodec.GZIP, TEXT).tobytes()
    assert packed.count(b"\x1f\x8b\x08") == 1
    assert gzip.decompress(packed) == TEXT


@pytest.mark.spec("compression.lz4")
@pytest.mark.parametrize(("block", "chunk"), [(len(TEXT), len(TEXT)), (1000, 1000), (7000, 1000), (7001, 333)])
def test_lz4_is_read_in_hadoop_framing(block: int, chunk: int) -> None:
    assert unpack(CompressionCodec.LZ4, twin.hadoop(TEXT, lz4_block, block, chunk)) == TEXT


@pytest.mark.spec("compression.lz4")
def test_lz4_is_read_as_raw_blocks_and_arrow_frames() -> None:
    assert unpack(CompressionCodec.LZ4, lz4_block(TEXT)) == TEXT
    assert unpack(CompressionCodec.LZ4, bytes(pa.Codec("lz4").compress(TEXT))) == TEXT
    block = lz4_block(TEXT)[:-9]
    for data in (block, len(TEXT).to_bytes(4, "big") + len(block).to_bytes(4, "big") + block):
        with pytest.raises(CorruptFileError, match="an LZ4 block is corrupt"):
            unpack(CompressionCodec.LZ4, data)


@pytest.mark.spec("compression.lz4")
def test_deprecated_lz4_is_not_written() -> None:
    with pytest.raises(ValueError, match="use lz4_raw"):
        pqext.write_table(pa.table({"a": [1]}), io.BytesIO(), compression="lz4")


@pytest.mark.parametrize(("name", "meant"), [("none", "uncompressed"), ("ZSTD", "zstd"), ("NONE", "uncompressed")])
def test_codec_names_of_other_libraries_are_explained(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"; use {meant}$"):
        pqext.write_table(pa.table({"a": [1]}), io.BytesIO(), compression=name)
    with pytest.raises(ValueError, match=r"'lzo'$"):
        pqext.write_table(pa.table({"a": [1]}), io.BytesIO(), compression="lzo")


@pytest.mark.spec("compression.lz4-raw")
@given(st.binary(max_size=60) | st.binary(max_size=400).map(lz4_block))
def test_lz4_block_size_equals_its_decompressed_size(block: bytes) -> None:
    found = lz4_size(np.frombuffer(block, np.uint8))
    try:
        expected = len(twin.unpack(block))
    except (ValueError, IndexError, twin.struct.error):
        return  # offsets that lead nowhere are found when the block is unpacked
    assert found == expected


def lzo_block(data: bytes) -> bytes:
    from lzallright import LZOCompressor

    return bytes(LZOCompressor().compress(data))


@pytest.mark.spec("compression.lzo")
@given(
    st.binary(max_size=400) | st.text("ab", max_size=900).map(str.encode) | st.integers(0, 9_999).map(bytes)
    | st.builds(lambda part, gap: part + bytes(gap) + part * 3, st.binary(max_size=60), st.integers(0, 50_000)),
    st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=3),
)
def test_lzo_block_size_equals_its_decompressed_size(data: bytes, damage: list[tuple[int, int]]) -> None:
    from lzallright import LZOCompressor, LZOError

    block = bytearray(lzo_block(data))
    assert lzo_size(block) == len(data)
    for at, byte in damage:
        block[at % len(block)] = byte
    try:
        expected = len(LZOCompressor.decompress(bytes(block)))
    except LZOError:
        return  # offsets that lead nowhere are found when the block is unpacked
    assert lzo_size(block) == expected


@pytest.mark.spec("compression.lzo", "compression.bounded")
def test_lzo_block_larger_than_its_header_is_not_decompressed() -> None:
    bomb = lzo_block(bytes(64 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for claimed in (1, 1000, (64 << 20) - 1):
        framed = claimed.to_bytes(4, "big") + len(bomb).to_bytes(4, "big") + bomb
        for data in (bomb, framed):
            with pytest.raises(CorruptFileError, match=r"an LZO block (is corrupt|decompresses to \d+ bytes, but at)"):
                unpack(CompressionCodec.LZO, data, claimed)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10


@pytest.mark.parametrize("codec", [CompressionCodec.LZ4, CompressionCodec.LZO])
def test_empty_hadoop_blocks_are_not_decompressed_endlessly(codec: CompressionCodec) -> None:
    block = lz4_block if codec == CompressionCodec.LZ4 else lzo_block
    one, empty = block(b"a"), b"\0" if codec == CompressionCodec.LZ4 else lzo_block(b"")
    few, many = (
        b"\0\0\0\x02" + b"".join(len(part).to_bytes(4, "big") + part for part in [one, *[empty] * count, one])
        for count in (9, 300_000)
    )
    assert unpack(codec, few, 2) == b"aa"
    begin = time.thread_time()
    with pytest.raises(CorruptFileError):
        unpack(codec, many, 2)
    assert time.thread_time() - begin < 0.2 * SLOWER


@pytest.mark.parametrize("codec", [CompressionCodec.LZ4, CompressionCodec.LZO])
def test_empty_hadoop_frames_are_not_counted_endlessly(codec: CompressionCodec) -> None:
    begin = time.thread_time()
    with pytest.raises(CorruptFileError):
        unpack(codec, bytes(16 << 20), 32)
    assert time.thread_time() - begin < 0.1 * SLOWER


@pytest.mark.spec("compression.lzo")
def test_lzo_is_read_with_and_without_hadoop_framing() -> None:
    assert unpack(CompressionCodec.LZO, twin.hadoop(TEXT, lzo_block, 64 << 10, 64 << 10)) == TEXT
    assert unpack(CompressionCodec.LZO, twin.hadoop(TEXT, lzo_block, 3000, 1000)) == TEXT
    assert unpack(CompressionCodec.LZO, lzo_block(TEXT)) == TEXT
    with pytest.raises(CorruptFileError, match="an LZO block is corrupt"):
        unpack(CompressionCodec.LZO, lzo_block(TEXT)[:-9])


@pytest.mark.spec("compression.lzo")
def test_lzo_file_is_read_and_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    values = int64(*range(1000))
    stored = twin.hadoop(values, lzo_block, 4096, 4096)
    columns = [Column(values, 1000, codec=CompressionCodec.LZO, stored=stored), Column(values, 1000)]
    data = write([leaf("lzo", REQUIRED, Type.INT64), leaf("plain", REQUIRED, Type.INT64)], columns, 1000)
    assert pqext.open(data).read()["lzo"].to_pylist() == list(range(1000))
    monkeypatch.setitem(sys.modules, "lzallright", None)
    with pqext.open(data) as file:
        with pytest.raises(UnsupportedError, match=r"pip install 'pqext\[lzo\]'.*column lzo"):
            file.read()
        assert file.read(["plain"]).num_rows == 1000


@pytest.mark.spec("compression.unknown")
def test_unknown_codec_affects_its_column_only() -> None:
    values = int64(1, 2)
    columns = [Column(values, 2, codec=77), Column(values, 2)]
    data = write([leaf("odd", REQUIRED, Type.INT64), leaf("plain", REQUIRED, Type.INT64)], columns, 2)
    with pqext.open(data) as file:
        with pytest.raises(UnsupportedError, match=r"codec 77 .*column odd"):
            file.read()
        assert file.read(["plain"])["plain"].to_pylist() == [1, 2]


@pytest.mark.spec("compression.bounded")
@pytest.mark.parametrize("codec", [codec for codec in CompressionCodec if codec], ids=lambda codec: codec.name)
def test_small_page_that_claims_two_gigabytes_allocates_no_memory(codec: CompressionCodec) -> None:
    if codec == CompressionCodec.LZO:
        packed = lzo_block(b"x" * 64)
    elif codec == CompressionCodec.LZ4:
        packed = lz4_block(b"x" * 64)
    else:
        packed = compression.compress(codec, b"x" * 64).tobytes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    with pytest.raises(CorruptFileError):
        unpack(codec, packed, (1 << 31) - 1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB


@pytest.mark.spec("compression.bounded")
@pytest.mark.parametrize("codec", CODECS[1:], ids=lambda codec: codec.name)
def test_decompression_stops_at_the_size_of_the_header(codec: CompressionCodec) -> None:
    packed = compression.compress(codec, bytes(16 << 20)).tobytes()
    with pytest.raises(CorruptFileError):
        unpack(codec, packed, 1000)
    assert unpack(codec, packed, 16 << 20) == bytes(16 << 20)


@pytest.mark.parametrize("codec", [codec for codec in CompressionCodec if codec], ids=lambda codec: codec.name)
@given(data=st.binary(max_size=80), size=st.integers(0, 500))
@settings(max_examples=share(0.4))
def test_arbitrary_bytes_are_decompressed_or_rejected(codec: CompressionCodec, data: bytes, size: int) -> None:
    with contextlib.suppress(CorruptFileError):
        assert len(unpack(codec, data, size)) == size


@pytest.mark.parametrize("codec", ["gzip", "brotli", "zstd", "lz4_raw"])
def test_compression_level_applies_to_all_columns_or_one(codec: str) -> None:
    rng = np.random.default_rng(1)
    words = np.array(["alpha", "beta", "gamma", "delta", "epsilon"])
    column = pa.array([" ".join(rng.choice(words, 12)) for _ in range(1000)])
    table = pa.table({"a": column, "b": column})
    lowest, highest = compression.levels(codec) or (0, 0)

    def sizes(level: Any) -> list[int]:
        options = {"compression": codec, "compression_level": level, "dictionary": False}
        with pqext.open(written(table, **options)) as file:
            assert file.read().equals(table)
            return [chunk.metadata.total_compressed_size for chunk in file.row_groups[0].chunks()]

    low, high = sizes(max(lowest, 1)), sizes(min(highest, 19))
    assert high[0] < low[0]
    assert sizes({"b": min(highest, 19)}) == [sizes(None)[0], high[1]]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"compression": "gzip", "compression_level": 10}, ValueError, "levels 1 to 9"),
        ({"compression": "brotli", "compression_level": -1}, ValueError, "levels 0 to 11"),
        ({"compression": "snappy", "compression_level": 3}, ValueError, "'snappy' has no levels"),
        ({"compression": "zstd", "compression_level": "9"}, TypeError, "compression_level must not be a str"),
        ({"compression": "zstd", "compression_level": True}, TypeError, "must be an integer"),
        ({"compression": "zstd", "compression_level": {"a": 1.5}}, TypeError, "must be an integer"),
        ({"compression": "zstd", "compression_level": {"nope": 1}}, ValueError, "has column 'nope'"),
        ({"compression": {"a": "snappy"}, "compression_level": {"a": 3}}, ValueError, "'snappy' has no levels"),
        ({"compression": {"a": "gzip"}, "compression_level": 12}, ValueError, "levels 1 to 9"),
    ],
)
def test_unsupported_compression_levels_are_rejected_before_writing(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    out = io.BytesIO()
    with pytest.raises(error, match=message):
        pqext.write_table(pa.table({"a": [1]}), out, **options)
    assert not out.getvalue()


def test_compression_level_applies_to_codecs_that_have_levels() -> None:
    data = written(pa.table({"a": [1], "b": [2]}), compression={"a": "zstd", "b": "snappy"}, compression_level=5)
    assert pqext.open(data).read().to_pylist() == [{"a": 1, "b": 2}]


needs_files = pytest.mark.skipif(not os.environ.get("PARQUET_TEST_DATA"), reason="PARQUET_TEST_DATA is not set")


@needs_files
@pytest.mark.spec("compression.lz4", "compression.gzip.members")
@pytest.mark.parametrize(
    "name",
    [
        "concatenated_gzip_members", "hadoop_lz4_compressed", "hadoop_lz4_compressed_larger", "lz4_raw_compressed",
        "lz4_raw_compressed_larger", "alltypes_plain.snappy", "datapage_v1-snappy-compressed-checksum",
    ],
)
def test_compressed_files_of_other_writers_match_pyarrow_or_duckdb(name: str) -> None:
    path = Path(os.environ["PARQUET_TEST_DATA"]) / "data" / f"{name}.parquet"
    found = pqext.read_table(path)
    if name == "concatenated_gzip_members":
        assert found.column(0).to_pylist() == list(range(1, 514))
        return
    expected = pq.read_table(path)
    for column in expected.column_names:
        assert found[column].cast(expected[column].type).equals(expected[column]), column


@pytest.mark.parametrize("codec", ["snappy", "gzip", "zstd", "brotli", "lz4_raw"])
@pytest.mark.parametrize("size", [2, 100, 256, 257, 5_000, (1 << 16) - 1, 1 << 16, (1 << 16) + 1])
def test_small_page_of_another_size_is_corrupt(codec: str, size: int) -> None:
    data = bytes(range(256)) * 300
    page = pa.compress(data[:size], codec, asbytes=True)
    unpack = compression.page_unpacker(CompressionCodec[codec.upper()])
    assert bytes(unpack(page, size)) == data[:size]
    for other in (size - 1, size + 1):
        with pytest.raises(CorruptFileError):
            unpack(page, other)
