"""The short way of reading offset indexes says what the long way says, or nothing."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pqext.core.base.errors import ParquetError
from pqext.core.format.metadata import OffsetIndex, PageLocation
from pqext.core.format.thrift import decode, encode
from pqext.core.indexes.page_index import PageLocations, check_offset_index
from reference.effort import share

NUMBER = st.one_of(st.integers(-3, 40), st.integers(-(1 << 62), 1 << 62))
LOCATION = st.builds(
    PageLocation, offset=NUMBER, compressed_page_size=st.integers(-3, 40) | st.integers(-(1 << 31), (1 << 31) - 1),
    first_row_index=NUMBER,
)
INDEX = st.builds(
    OffsetIndex, page_locations=st.lists(LOCATION, max_size=4),
    unencoded_byte_array_data_bytes=st.none() | st.lists(NUMBER, max_size=4),
)


def generic_locations(raw: bytes, chunk: tuple[int, int], rows: int) -> PageLocations | None:
    try:
        index, _ = decode(OffsetIndex, raw)
        check_offset_index(index, chunk, rows)
    except ParquetError:
        return None
    return PageLocations.from_index(index)


@st.composite
def valid_index(draw: st.DrawFn) -> OffsetIndex:
    """Pages that follow one another from offset 4 on."""
    sizes = draw(st.lists(st.integers(1, 90), min_size=1, max_size=20))
    steps = draw(st.lists(st.integers(0, 70), min_size=len(sizes), max_size=len(sizes)))
    at, row, pages = 4, 0, []
    for number, (size, step) in enumerate(zip(sizes, steps, strict=True)):
        row += step if number else 0
        pages.append(PageLocation(offset=at, compressed_page_size=size, first_row_index=row))
        at += size + step
    lengths = draw(st.sampled_from([None, [7] * len(pages)]))
    return OffsetIndex(page_locations=pages, unencoded_byte_array_data_bytes=lengths)


@settings(max_examples=share(1))
@given(valid_index())
def test_valid_indexes_use_the_fast_path(index: OffsetIndex) -> None:
    raw, end = encode(index), index.page_locations[-1]
    chunk = (4, end.offset + end.compressed_page_size - 4)
    rows = end.first_row_index + 1
    found = PageLocations.read(raw, chunk, rows)
    assert found is not None
    assert found == generic_locations(raw, chunk, rows)
    assert PageLocations.read(raw, (4, chunk[1] - 1), rows) is None
    assert PageLocations.read(raw, (5, chunk[1] - 1), rows) is None
    assert PageLocations.read(raw, chunk, rows - 1) is None


@settings(max_examples=share(1.5))
@given(INDEX, st.integers(-2, 1 << 62), st.integers(-2, 1 << 63), st.integers(-2, 1 << 63), st.data())
@example(OffsetIndex(page_locations=[PageLocation(offset=0, compressed_page_size=9, first_row_index=0)]), 0, 9, 1, None)
def test_fast_path_matches_the_generic_path(
    index: OffsetIndex, start: int, length: int, rows: int, data: st.DataObject | None
) -> None:
    raw = bytearray(encode(index))
    if data is not None and raw and data.draw(st.booleans()):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        del raw[data.draw(st.integers(0, len(raw))) :]
    found = PageLocations.read(bytes(raw), (start, length), rows)
    assert found is None or found == generic_locations(bytes(raw), (start, length), rows)
