"""The compiled writer of pages and indexes agrees with its slow twins: page by page, and structure by structure."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.strategies import tables
from hypothesis import given, settings
from hypothesis import strategies as st
from isal import isal_zlib
from numpy.typing import NDArray

import pqext
from pqext.core.format.compression import page_compressor
from pqext.core.format.encodings import rle
from pqext.core.format.metadata import (
    BoundaryOrder,
    ColumnChunk,
    ColumnIndex,
    ColumnMetaData,
    CompressionCodec,
    DecimalType,
    Encoding,
    IntType,
    LogicalType,
    OffsetIndex,
    PageLocation,
    RowGroup,
    Type,
)
from pqext.core.format.thrift import decode, encode
from pqext.core.kernels.encode.page_boundaries import PageBoundaries, split_pages
from pqext.core.kernels.encode.pages import Levels, PageValues, encode_pages
from pqext.core.kernels.encodings import levels as levels_kernel
from pqext.core.kernels.encodings import rle_encode
from pqext.core.kernels.thrift import page_index as page_index_kernel
from pqext.core.schema import statistics
from pqext.core.schema.orders import written_order
from pqext.core.schema.types.logical import LeafType
from pqext.core.write import chunk_writer
from pqext.core.write.chunk_writer import PageWriter
from reference.effort import share


@dataclass
class Chunk:
    """Levels drawn row by row, and what they say of pages, found by counting."""

    rows: int
    page_rows: int
    repetition: list[int] = field(default_factory=list)
    definition: list[int] = field(default_factory=list)

    @property
    def values(self) -> int:
        return self.definition.count(2)

    def pages(self) -> list[tuple[int, int, int]]:
        """Rows, entries and values of each page."""
        starts = [at for at, level in enumerate(self.repetition) if level == 0] + [len(self.repetition)]
        found = []
        for row in range(0, self.rows, self.page_rows):
            last = min(row + self.page_rows, self.rows)
            part = self.definition[starts[row] : starts[last]]
            found.append((last - row, len(part), part.count(2)))
        return found

    def cut(self) -> PageBoundaries:
        return split_pages(
            self.rows, self.page_rows, None, len(self.repetition), np.array(self.repetition, np.int16),
            np.array(self.definition, np.int16), 2, self.values,
        )


@st.composite
def chunks(draw: st.DrawFn) -> Chunk:
    rows = draw(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), max_size=60))
    chunk = Chunk(len(rows), draw(st.integers(1, 70)))
    for row in rows:
        chunk.repetition += [0] + [1] * (len(row) - 1)
        chunk.definition += row
    return chunk


@given(chunks())
def test_pages_split_at_the_same_rows_as_row_by_row_counting(chunk: Chunk) -> None:
    cuts = chunk.cut()
    assert [cuts.page(page) for page in range(cuts.count)] == chunk.pages()
    assert cuts.total_nulls == len(chunk.definition) - chunk.values


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": 3}, "the row count and"),
        ({"repetition": np.array([1, 0], np.int16)}, "first entry must start a row"),
        ({"repetition": np.array([0], np.int16)}, "one level per entry"),
        ({"definition": np.array([1, 0], np.int16)}, "declare 0 values"),
        ({"definition": None, "values": 1}, "inconsistent"),
        ({"edges": np.array([0, 5], np.int64)}, "ascend"),
        ({"edges": np.array([1], np.int64)}, "ascend"),
    ],
)
def test_levels_that_contradict_their_rows_are_rejected(changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "rows": 2, "page_rows": 1, "edges": None, "entries": 2, "repetition": np.array([0, 0], np.int16),
        "definition": np.array([2, 2], np.int16), "highest": 2, "values": 2,
    }
    split_pages(**given)
    with pytest.raises(ValueError, match=message):
        split_pages(**(given | changes))


@given(st.integers(0, 7), st.integers(0, 300), st.integers(7, 4095))
def test_constant_level_is_encoded_like_an_array_of_it(level: int, count: int, highest: int) -> None:
    _, found = Levels(None, 0, level, highest, count).encode(0, count)
    assert found == rle_encode.encode(np.full(count, level, np.int16), highest.bit_length())


def values_of(kind: str, count: int, start: int) -> PageValues:
    first: NDArray[Any]
    if kind == "bytes":
        words = pa.array([b"ab" * (i % 4) for i in range(start + count)], pa.binary())
        return PageValues("bytes", Encoding.PLAIN, count, start, 0, words.buffers()[1], words.buffers()[2], None)
    if kind == "bits":
        first = np.packbits(np.arange(start + count) % 3 == 0, bitorder="little")
        return PageValues("bits", Encoding.PLAIN, count, start, 0, first, None, None)
    first = np.arange(start + count, dtype=np.int32) * 7
    if kind == "fixed":
        return PageValues("fixed", Encoding.PLAIN, count, start, 4, first, None, None)
    if kind == "other":
        held = first[start:]
        return PageValues(
            "other", Encoding.BYTE_STREAM_SPLIT, count, 0, 0, None, None, lambda i, j: held[i:j].tobytes()
        )
    values = PageValues("fixed", Encoding.PLAIN, count, start, 4, first, None, None)
    values.index((np.arange(count // 2) % 5).astype(np.int32), 5)
    return values


CODECS = [CompressionCodec.UNCOMPRESSED, CompressionCodec.SNAPPY]


@settings(max_examples=share(0.5))
@given(
    chunks(), st.sampled_from(["fixed", "bits", "bytes", "other", "dictionary"]), st.sampled_from([0, 3]),
    st.sampled_from([1, 2]), st.sampled_from(CODECS), st.booleans(), st.booleans(),
)
def test_pages_written_together_equal_pages_written_singly(
    chunk: Chunk, kind: str, start: int, version: int, codec: CompressionCodec, checksums: bool, flat: bool
) -> None:
    if flat:
        chunk = Chunk(chunk.rows, chunk.page_rows, [0] * chunk.rows, [2] * chunk.rows)
        cuts = [split_pages(chunk.rows, chunk.page_rows, None, chunk.rows, None, None, 0, chunk.rows) for _ in range(2)]
        levels = Levels(0, 0, 0, 0, chunk.rows)
    else:
        cuts = [chunk.cut(), chunk.cut()]
        entries = len(chunk.repetition)
        levels = Levels(np.array(chunk.repetition, np.int16), 1, np.array(chunk.definition, np.int16), 2, entries)
    values = values_of(kind, chunk.values, start)
    dictionary = (b"\1\2\3\4" * 5, 5) if kind == "dictionary" else None
    compress = None if codec == CompressionCodec.UNCOMPRESSED else page_compressor(codec)
    found = encode_pages(
        cuts[0], levels, values, dictionary, version, compress, isal_zlib.crc32 if checksums else None
    )
    expected = PageWriter(codec, checksums, version).write_pages(cuts[1], levels, values, dictionary)
    assert b"".join(map(bytes, found.pieces)) == b"".join(map(bytes, expected.pieces))
    for name in ("size", "uncompressed", "dictionary_size", "by_index"):
        assert getattr(found, name) == getattr(expected, name), name
    assert page_index_kernel.offset_index(cuts[0], 4, False) == page_index_kernel.offset_index(cuts[1], 4, False)


@given(chunks())
def test_levels_are_encoded_like_the_encoding(chunk: Chunk) -> None:
    repetition, definition = np.array(chunk.repetition, np.int16), np.array(chunk.definition, np.int16)
    entries = len(repetition)
    levels = Levels(repetition, 1, definition, 2, entries)
    assert levels.encode(0, entries) == (rle.encode_levels(repetition, 1), rle.encode_levels(definition, 2))
    same = Levels(0, 1, 1, 2, entries).encode(0, entries)
    ones = np.ones(entries, np.int16)
    assert same == (rle.encode_levels(ones * 0, 1), rle.encode_levels(ones, 2))


@pytest.mark.parametrize(
    ("kind", "count", "first", "second"),
    [
        ("fixed", 3, b"\0" * 11, None),
        ("bits", 9, b"\0", None),
        ("bytes", 2, np.array([0, 1], np.int32), b"ab"),
    ],
)
def test_buffers_shorter_than_their_values_are_rejected(
    kind: str, count: int, first: Any, second: Any
) -> None:
    with pytest.raises(ValueError, match="shorter"):
        PageValues(kind, Encoding.PLAIN, count, 0, 4, first, second, None)


@pytest.mark.parametrize("offsets", [[0, 3, 2, 4], [0, 1, 2, 9], [-1, 1, 2, 3], [4, 3, 2, 1]])
def test_byte_arrays_outside_their_buffer_are_rejected(offsets: list[int]) -> None:
    values = PageValues("bytes", Encoding.PLAIN, 3, 0, 0, np.array(offsets, np.int32), b"abcd", None)
    with pytest.raises(ValueError, match="outside"):
        values.page(0, 3)


COUNTS = st.integers(0, 1 << 40)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.booleans(), COUNTS, st.binary(max_size=9), st.binary(max_size=9), COUNTS)),
    st.sampled_from(list(BoundaryOrder)), st.integers(0, 1 << 40), st.booleans(), st.booleans(),
)
def test_indexes_of_page_tables_match_serialised_structures(
    pages: list[tuple[int, bool, int, bytes, bytes, int]], order: BoundaryOrder, base: int, counted: bool, nans: bool
) -> None:
    sizes = [rows for rows, *_ in pages]
    starts = [sum(sizes[:page]) for page in range(len(pages))]
    definition = np.repeat([present for _, present, *_ in pages], sizes).astype(np.int16)
    cuts = split_pages(
        sum(sizes), 1, np.array(starts, np.int64) if pages else None, sum(sizes), None, definition, 1,
        int(definition.sum()),
    )
    for page, (_, _, place, *_) in enumerate(pages):
        cuts.locate(page, place, page + 1)
    expected = OffsetIndex(
        page_locations=[
            PageLocation(offset=base + place, compressed_page_size=page + 1, first_row_index=starts[page])
            for page, (_, _, place, *_) in enumerate(pages)
        ]
    )
    assert page_index_kernel.offset_index(cuts, base, False) == encode(expected)
    histogram = np.array([[count, 1] for *_, count in pages], np.int64).reshape(-1, 2) if counted else None
    found = page_index_kernel.column_index(
        cuts, [low for *_, low, _, _ in pages], [high for *_, high, _ in pages], order, histogram, histogram,
        [count for *_, count in pages] if nans else None,
    )
    flat = None if histogram is None else histogram.ravel().tolist()
    assert found == encode(
        ColumnIndex(
            null_pages=[not present for _, present, *_ in pages],
            min_values=[low for *_, low, _, _ in pages],
            max_values=[high for *_, high, _ in pages],
            boundary_order=order,
            null_counts=[0 if present else rows for rows, present, *_ in pages],
            definition_level_histograms=flat,
            repetition_level_histograms=flat,
            nan_counts=[count for *_, count in pages] if nans else None,
        )
    )


@given(st.lists(st.tuples(st.none() | st.binary(max_size=300), st.none() | st.binary(max_size=300)), max_size=20))
def test_chunks_record_the_offsets_of_their_indexes(indexes: list[tuple[bytes | None, bytes | None]]) -> None:
    about = ColumnMetaData(
        type=Type.INT32, encodings=[], path_in_schema=["a"], codec=CompressionCodec.SNAPPY, num_values=1,
        total_uncompressed_size=1, total_compressed_size=1, data_page_offset=4,
    )
    chunks = [ColumnChunk(file_offset=0, meta_data=about) for _ in indexes]
    closed = [encode(chunk)[:-1] for chunk in chunks]
    columns, offsets = [one for one, _ in indexes], [one for _, one in indexes]
    raw = page_index_kernel.placed_columns(closed, columns, 1000, offsets, 5000)
    at = [1000, 5000]
    for chunk, (column, offset) in zip(chunks, indexes, strict=True):
        if column is not None:
            chunk.column_index_offset, chunk.column_index_length = at[0], len(column)
        if offset is not None:
            chunk.offset_index_offset, chunk.offset_index_length = at[1], len(offset)
        at = [at[0] + len(column or b""), at[1] + len(offset or b"")]
    group = RowGroup(columns=chunks, total_byte_size=0, num_rows=0)
    whole = encode(group)
    assert whole.startswith(raw)
    assert list(decode(RowGroup, whole)[0].columns) == chunks


@settings(max_examples=share(0.3))
@given(tables())
def test_file_written_page_by_page_is_equal(table: pa.Table) -> None:
    def write_singly(cuts: Any, levels: Any, values: Any, dictionary: Any, version: int, *_: Any) -> Any:
        return PageWriter(CompressionCodec.SNAPPY, True, version).write_pages(cuts, levels, values, dictionary)

    files = []
    for way in (encode_pages, write_singly):
        out = io.BytesIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chunk_writer, "encode_pages", way)
            pqext.write_table(table, out, page_rows=3)
        files.append(out.getvalue())
    assert files[0] == files[1]
    assert pq.ParquetFile(io.BytesIO(files[0])).metadata.num_rows == len(table)


ORDERED = {
    "int32": (LeafType(Type.INT32), pa.int32(), st.integers(-(1 << 31), (1 << 31) - 1)),
    "uint64": (
        LeafType(Type.INT64, None, LogicalType(INTEGER=IntType(bitWidth=64, isSigned=False))), pa.int64(),
        st.integers(-(1 << 63), (1 << 63) - 1),
    ),
    "float": (LeafType(Type.FLOAT), pa.float32(), st.sampled_from([-0.0, 0.0, math.nan, 1.5, -2.5, math.inf])),
    "double": (LeafType(Type.DOUBLE), pa.float64(), st.floats()),
    "bytes": (LeafType(Type.BYTE_ARRAY), pa.binary(), st.binary(max_size=12)),
    "decimal": (
        LeafType(Type.BYTE_ARRAY, None, LogicalType(DECIMAL=DecimalType(scale=0, precision=9))), pa.binary(),
        st.binary(min_size=1, max_size=5),
    ),
}


@given(st.sampled_from(sorted(ORDERED)), st.integers(1, 9), st.integers(0, 3), st.data())
def test_bounds_of_page_tables_match_those_of_pages(kind: str, page: int, start: int, data: st.DataObject) -> None:
    leaf, arrow, value = ORDERED[kind]
    values = data.draw(st.lists(st.none() | value, max_size=40))
    flags = np.array([one is not None for one in values], np.int16)
    dense = pa.array([one for one in values if one is not None], arrow)
    physical = pa.concat_arrays([pa.array([dense[0].as_py()] * start, arrow), dense])[start:] if len(dense) else dense
    order = written_order(leaf)
    cuts = split_pages(len(values), page, None, len(values), None, flags, 1, len(dense))
    found = statistics.boundary_extremes(order, statistics.bounds_kernel(order), physical, cuts)
    expected = statistics.page_extremes(order, physical, cuts.starts("values"))
    assert statistics.bounds_kernel(order) is not None
    assert list(found.minima) == list(expected.minima)
    assert list(found.maxima) == list(expected.maxima)
    assert found.nan_counts == expected.nan_counts


@given(st.lists(st.integers(0, 4), max_size=30), st.data())
def test_slots_and_lists_are_counted_like_single_entries(lengths: list[int], data: st.DataObject) -> None:
    offsets = np.cumsum([3, *lengths]).astype(np.int32)
    kept = data.draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    slots = np.array([at if keep else -1 for at, keep in enumerate(kept)], np.int64)
    alive = [at for at in slots.tolist() if at >= 0]
    assert levels_kernel.occupied(slots) == (len(alive), alive[0] if alive else -1, alive[-1] if alive else -1)
    assert levels_kernel.entries_below(slots, offsets) == sum(
        max(length, 1) if keep else 1 for length, keep in zip(lengths, kept, strict=True)
    )
    with pytest.raises(ValueError, match="beyond"):
        levels_kernel.entries_below(np.array([len(lengths)], np.int64), offsets)


@pytest.mark.parametrize("page_version", [1, 2])
@pytest.mark.parametrize(("type", "row", "row_bytes"), [
    (pa.field("v", pa.int32(), nullable=False), 1, 4),
    (pa.field("v", pa.int32()), 1, 4 + 1),
    (pa.field("v", pa.struct([pa.field("a", pa.int32())])), {"a": 1}, 4 + 1),
    (pa.field("v", pa.list_(pa.int32())), [1, 2, 3], 3 * (4 + 2)),
    (pa.field("v", pa.list_(pa.list_(pa.int32()))), [[1], [2, 3], []], 3 * 4 + 4 * 2),
    (pa.field("v", pa.binary()), b"abc", 4 + 3 + 1),
], ids=str)
def test_page_size_counts_values_and_a_byte_for_each_kind_of_level(
    type: pa.Field, row: Any, row_bytes: int, page_version: int
) -> None:
    table = pa.table([pa.array([row] * 600, type.type)], schema=pa.schema([type]))
    for page_bytes, pages in [(row_bytes * 600, 1), (row_bytes * 600 - 1, 2), (row_bytes * 100, 6), (row_bytes, 600)]:
        sink = io.BytesIO()
        pqext.write_table(table, sink, page_bytes=page_bytes, dictionary=False, page_version=page_version)
        index = pqext.open(sink).row_groups[0].chunk(0).offset_index
        assert index is not None
        assert len(index.page_locations) == pages
