"""The run-length and bit-packing hybrid against its bit-by-bit twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext.core.errors import CorruptFileError
from pqext.core.kernels import rle, rle_encode
from pqext.core.kernels.page_run import PageRun
from reference import hybrid


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, list[int]]:
    """A bit width and values in which repeats and changes both occur."""
    width = draw(st.integers(0, 31))
    highest = (1 << width) - 1
    parts = draw(st.lists(st.tuples(st.integers(0, highest), st.integers(1, 20)), max_size=30))
    return width, [value for value, length in parts for _ in range(length)]


def decode(data: bytes, width: int, count: int, limit: int | None = None, dtype: type = np.int32) -> list[int]:
    out = np.zeros(count, dtype)
    rle.decode_into(data, width, limit if limit is not None else 1 << width, out)
    return out.tolist()


@pytest.mark.spec("encoding.hybrid.grammar", "encoding.hybrid.bit-order", "encoding.hybrid.varint")
@given(runs())
def test_what_is_encoded_decodes_by_the_twin_and_by_the_kernel(case: tuple[int, list[int]]) -> None:
    width, values = case
    encoded = rle_encode.encode(np.array(values, np.int32), width)
    assert hybrid.decode(encoded, width, len(values)) == values
    assert decode(encoded, width, len(values)) == values


@pytest.mark.spec("encoding.hybrid.grammar", "encoding.hybrid.repeated")
@given(runs(), st.booleans())
def test_foreign_runs_decode_to_their_values(case: tuple[int, list[int]], packed: bool) -> None:
    width, values = case
    data = hybrid.encode_packed(values, width) if packed else hybrid.encode_runs([(v, 1) for v in values], width)
    assert decode(data, width, len(values)) == values


def test_a_last_group_without_its_padding_still_decodes() -> None:
    data = hybrid.encode_packed([1, 2, 3], 3)
    assert decode(data[:-1], 3, 3) == [1, 2, 3]


@pytest.mark.spec("encoding.hybrid.repeated")
def test_repeated_values_become_runs() -> None:
    assert rle_encode.encode(np.full(1000, 5, np.int32), 3) == hybrid.encode_runs([(5, 1000)], 3)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32])
def test_each_width_of_output_holds_the_values(dtype: type) -> None:
    values = np.arange(100).astype(dtype)
    assert decode(rle_encode.encode(values, 7), 7, 100, dtype=dtype) == list(range(100))


@given(runs(), st.data())
def test_truncated_data_is_refused(case: tuple[int, list[int]], data: st.DataObject) -> None:
    width, values = case
    encoded = rle_encode.encode(np.array(values, np.int32), width)
    cut = data.draw(st.integers(0, max(len(encoded) - 1, 0)))
    try:
        decoded = decode(encoded[:cut], width, len(values))
    except CorruptFileError:
        return
    assert decoded == values  # only padding was cut


@given(st.binary(max_size=60), st.integers(0, 32), st.integers(0, 300), st.integers(1, 2**32 - 1))
def test_any_bytes_decode_below_the_limit_or_are_refused(data: bytes, width: int, count: int, limit: int) -> None:
    out = np.zeros(count, np.int32)
    try:
        rle.decode_into(data, width, limit, out)
    except CorruptFileError:
        return
    assert (out.view(np.uint32) < limit).all()


def test_a_value_above_the_limit_is_refused_in_either_kind_of_run() -> None:
    for data in (hybrid.encode_packed([0, 3, 1], 2), hybrid.encode_runs([(3, 10)], 2)):
        with pytest.raises(CorruptFileError, match="outside the range"):
            decode(data, 2, 3, limit=3)


@pytest.mark.spec("encoding.hybrid.length")
def test_a_run_of_length_zero_is_refused_instead_of_looping() -> None:
    with pytest.raises(CorruptFileError, match="length zero"):
        decode(b"\0" * 100, 1, 8)


@pytest.mark.spec("encoding.hybrid.length", "encoding.hybrid.varint")
def test_a_run_header_beyond_32_bits_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="32 bits"):
        decode(b"\xff\xff\xff\xff\xff\x01\0", 1, 8)


def test_a_run_longer_than_the_page_fills_only_the_page() -> None:
    assert decode(hybrid.encode_runs([(1, (1 << 31) - 1)], 1), 1, 5) == [1] * 5


@given(st.lists(runs(), max_size=4), st.sampled_from([np.uint8, np.int16, np.int32]))
def test_a_run_of_pages_decodes_like_its_pages(cases: list[tuple[int, list[int]]], dtype: type) -> None:
    width = 7 if dtype == np.uint8 else 15
    pages = [[value & ((1 << width) - 1) for value in values] for _, values in cases]
    encoded = [np.frombuffer(rle_encode.encode(np.array(page, np.int32), width), np.uint8) for page in pages]
    out = np.zeros(sum(map(len, pages)), dtype)
    rle.decode_run(PageRun(encoded, map(len, pages)), width, 1 << width, out)
    assert out.tolist() == [value for page in pages for value in page]


@given(st.lists(st.lists(st.booleans(), max_size=40), max_size=4))
def test_flags_of_a_run_are_counted_by_page(pages: list[list[bool]]) -> None:
    encoded = [np.frombuffer(rle_encode.encode(np.array(page, np.uint8), 1), np.uint8) for page in pages]
    flags, ones = np.zeros(sum(map(len, pages)), np.uint8), np.full(len(pages), 9)
    rle.decode_flags(PageRun(encoded, map(len, pages)), flags, ones)
    assert flags.tolist() == [flag for page in pages for flag in page]
    assert ones.tolist() == [sum(page) for page in pages]


def test_a_fault_in_any_page_of_a_run_is_found_and_outputs_of_another_size_are_refused() -> None:
    good = np.frombuffer(rle_encode.encode(np.arange(8, dtype=np.int32), 3), np.uint8)
    for place in range(3):
        pages = [good] * 3
        pages[place] = good[:-2]
        with pytest.raises(CorruptFileError, match="ends before"):
            rle.decode_run(PageRun(pages, [8, 8, 8]), 3, 8, np.zeros(24, np.int32))
    with pytest.raises(ValueError, match="one value for each"):
        rle.decode_run(PageRun([good], [8]), 3, 8, np.zeros(9, np.int32))
    with pytest.raises(ValueError, match="as many counts"):
        PageRun([good], [8, 8])
    with pytest.raises(ValueError, match="of -1 values"):
        PageRun([good], [-1])
