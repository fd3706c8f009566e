"""Tables of pages and of column chunks, against the structures that are decoded field by field."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.limits import Limits
from pqext.core.format.thrift import LazyStructs
from pqext.core.io.source import MemorySource, Span
from pqext.core.kernels.decode.page_table import PageTable
from pqext.core.kernels.thrift.column_chunks import small_chunk_ranges
from pqext.core.read.pages.page import raw_pages
from reference.effort import share

TABLE = pa.table(
    {
        "number": pa.array([None if n % 5 == 0 else n for n in range(300)], pa.int64()),
        "text": [f"value {n % 9}" for n in range(300)],
        "lists": [list(range(n % 4)) for n in range(300)],
    }
)


def written(version: int) -> bytes:
    out = io.BytesIO()
    pqext.write_table(TABLE, out, page_version=version, page_rows=17, row_group_rows=200)
    return out.getvalue()


FILES = {version: written(version) for version in (1, 2)}


def chunks(data: bytes) -> list[tuple[bytes, int]]:
    """The bytes of each column chunk and where they begin."""
    with pqext.open(data) as file:
        places = [chunk.byte_range for group in file.row_groups for chunk in group.chunks()]
    return [(data[start : start + length], start) for start, length in places]


def pages(data: bytes) -> list[tuple[int, int, int, int]]:
    """Of each page where it begins, its entries, its bytes before compression and as they are stored."""
    span = Span(MemorySource(data), 0, len(data))
    return [
        (raw.offset, raw.num_values, raw.header.uncompressed_page_size, raw.header.compressed_page_size)
        for raw in raw_pages(span, Limits())
    ]


def rows_of(table: PageTable, base: int) -> list[tuple[int, int, int, int]]:
    return [
        (table.offset(i) - base, table.count(i, i + 1), table.uncompressed_size(i, i + 1), table.stored_size(i, i + 1))
        for i in range(table.size)
    ]


@settings(max_examples=share(0.3))
@given(st.sampled_from([1, 2]), st.integers(0, 5), st.lists(st.integers(1, 400), min_size=1, max_size=6))
def test_page_table_built_by_windows_matches_the_chunk(
    version: int, column: int, windows: list[int]
) -> None:
    data, start = chunks(FILES[version])[column]
    table, at, turn, least = PageTable(Limits()), 0, 0, 0
    while at < len(data):
        window = data[at : at + max(windows[turn % len(windows)], least)]
        turn += 1
        assert table.read(window, start + at, len(data) - at)
        at += table.consumed
        least = 0 if table.consumed else table.needed or 2 * len(window)
    assert rows_of(table, start) == pages(data)


@settings(max_examples=share(1.0))
@given(st.sampled_from([1, 2]), st.integers(0, 5), st.data())
def test_corrupt_header_matches_the_structure_or_is_left_alone(version: int, column: int, draw: st.DataObject) -> None:
    data, start = chunks(FILES[version])[column]
    at = draw.draw(st.integers(0, len(data) - 1))
    damaged = data[:at] + bytes([data[at] ^ draw.draw(st.integers(1, 255))]) + data[at + 1 :]
    table = PageTable(Limits())
    if not table.read(damaged, start, len(damaged)) or table.consumed < len(damaged):
        return  # declined: what is wrong is found out page by page
    assert rows_of(table, start) == pages(damaged)


@pytest.mark.parametrize("write", [pqext.write_table, pq.write_table])
def test_small_offsets_match_the_structures(write: Any) -> None:
    out = io.BytesIO()
    write(TABLE, out)
    with pqext.open(out.getvalue()) as file:
        columns = file.row_groups[0].metadata.columns
        assert isinstance(columns, LazyStructs)
        index = columns.undecoded_index
        assert index is not None
        leaves = file.schema.leaves
        paths = [b"".join(len(name).to_bytes(4, "little") + name.encode() for name in leaf.path) for leaf in leaves]
        kinds = [int(leaf.leaf_type.physical) for leaf in leaves]
        asked = [(leaf.leaf_start, kind, path) for leaf, kind, path in zip(leaves, kinds, paths, strict=True)]
        size = len(out.getvalue())

        def spans(asked: Any = asked, values: int = len(TABLE), *limits: int) -> Any:
            ranges = small_chunk_ranges(index, asked, values, *(limits or (1 << 40, 1 << 40, size)))
            return list(zip(*ranges, strict=True))

        found = {position: (codec, *where) for position, codec, where in spans()}
        flat = {}
        for position, chunk in enumerate(columns):
            meta = chunk.meta_data
            assert meta is not None
            start = meta.dictionary_page_offset or meta.data_page_offset
            if meta.num_values == len(TABLE):
                flat[position] = (meta.codec, start, meta.total_compressed_size)
            wide, stored = meta.total_uncompressed_size, meta.total_compressed_size
            for limits, known in (
                ((wide, stored, start + stored), True), ((wide - 1, stored, start + stored), False),
                ((wide, stored - 1, start + stored), False), ((wide, stored, start + stored - 1), False),
            ):
                assert [*map(bool, spans(asked[position : position + 1], meta.num_values, *limits))] == [True] * known
        assert found == flat
        assert not spans(values=len(TABLE) + 1)
        assert not spans([(place, physical + 1, path) for place, physical, path in asked])
        assert not spans([(place, physical, path + b"\1\0\0\0x") for place, physical, path in asked])
        with pytest.raises(IndexError):
            spans([(len(leaves), 1, paths[0])])
