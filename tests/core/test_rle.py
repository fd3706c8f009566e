"""The run-length and bit-packing hybrid against its bit-by-bit twin."""

from __future__ import annotations

import io

import numpy as np
import pyarrow.parquet as pq
import pytest
from core.raw_files import OPTIONAL, Column, leaf, write
from hypothesis import example, given
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.encodings.rle import decode_flags
from pqext.core.kernels.encodings import rle, rle_encode
from pqext.core.kernels.encodings.page_run import PageRun
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
@example((1, [1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1]))
@example((5, [1, 2, 3, 4, 5, 6, 7, 31] + [9] * 1000 + [8] * 70))
def test_reference_and_kernel_decode_encoded_values(case: tuple[int, list[int]]) -> None:
    width, values = case
    encoded = rle_encode.encode(np.array(values, np.int32), width)
    assert hybrid.decode(encoded, width, len(values)) == values
    assert decode(encoded, width, len(values)) == values


@pytest.mark.spec("encoding.hybrid.grammar", "encoding.hybrid.repeated")
@given(runs(), st.booleans())
def test_runs_of_other_writers_decode_to_their_values(case: tuple[int, list[int]], packed: bool) -> None:
    width, values = case
    data = hybrid.encode_packed(values, width) if packed else hybrid.encode_runs([(v, 1) for v in values], width)
    assert decode(data, width, len(values)) == values


def test_last_group_without_padding_decodes() -> None:
    data = hybrid.encode_packed([1, 2, 3], 3)
    assert decode(data[:-1], 3, 3) == [1, 2, 3]


@pytest.mark.parametrize("groups", [1, 2, 3, 40])
@pytest.mark.parametrize("held", range(10))
@pytest.mark.spec("encoding.hybrid.bit-order")
def test_missing_groups_of_a_run_are_corrupt_except_padding(groups: int, held: int) -> None:
    """Levels of an optional column: 8 values are wanted, one bit each, so that a group takes a byte."""
    levels = bytes([groups << 1 | 1]) + b"\xff" * held
    stored = len(levels).to_bytes(4, "little") + levels + bytes(32)
    data = write([leaf("n", OPTIONAL)], [Column(b"", 8, stored=stored, claimed=len(stored))], 8)
    if held >= groups:
        assert pqext.read_table(data).to_pydict() == pq.read_table(io.BytesIO(data)).to_pydict() == {"n": [0] * 8}
        return
    with pytest.raises(OSError, match="Number of decoded rep / def levels do not match"):
        pq.read_table(io.BytesIO(data))
    with pytest.raises(CorruptFileError, match="run-length data ends before the last value"):
        pqext.read_table(data)


@pytest.mark.spec("encoding.hybrid.repeated")
def test_repeated_values_are_encoded_as_runs() -> None:
    assert rle_encode.encode(np.full(1000, 5, np.int32), 3) == hybrid.encode_runs([(5, 1000)], 3)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32])
def test_each_output_width_returns_the_values(dtype: type) -> None:
    values = np.arange(100).astype(dtype)
    assert decode(rle_encode.encode(values, 7), 7, 100, dtype=dtype) == list(range(100))


@given(runs(), st.data())
def test_truncated_data_is_rejected(case: tuple[int, list[int]], data: st.DataObject) -> None:
    width, values = case
    encoded = rle_encode.encode(np.array(values, np.int32), width)
    cut = data.draw(st.integers(0, max(len(encoded) - 1, 0)))
    try:
        decoded = decode(encoded[:cut], width, len(values))
    except CorruptFileError:
        return
    assert decoded == values  # only padding was cut


@given(st.binary(max_size=60), st.integers(0, 32), st.integers(0, 300), st.integers(1, 2**32 - 1))
def test_arbitrary_bytes_decode_within_the_limit_or_fail(data: bytes, width: int, count: int, limit: int) -> None:
    out = np.zeros(count, np.int32)
    try:
        rle.decode_into(data, width, limit, out)
    except CorruptFileError:
        return
    assert (out.view(np.uint32) < limit).all()


def test_value_above_the_limit_is_rejected_in_either_run_type() -> None:
    for data in (hybrid.encode_packed([0, 3, 1], 2), hybrid.encode_runs([(3, 10)], 2)):
        with pytest.raises(CorruptFileError, match="outside the range"):
            decode(data, 2, 3, limit=3)


@pytest.mark.spec("encoding.hybrid.length")
def test_run_of_length_zero_is_rejected() -> None:
    with pytest.raises(CorruptFileError, match="length zero"):
        decode(b"\0" * 100, 1, 8)


@pytest.mark.spec("encoding.hybrid.length", "encoding.hybrid.varint")
def test_run_header_beyond_32_bits_is_rejected() -> None:
    with pytest.raises(CorruptFileError, match="32 bits"):
        decode(b"\xff\xff\xff\xff\xff\x01\0", 1, 8)


def test_run_longer_than_the_page_is_truncated() -> None:
    assert decode(hybrid.encode_runs([(1, (1 << 31) - 1)], 1), 1, 5) == [1] * 5


@given(st.lists(runs(), max_size=4), st.sampled_from([np.uint8, np.int16, np.int32]))
def test_sequence_of_pages_decodes_like_single_pages(cases: list[tuple[int, list[int]]], dtype: type) -> None:
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


@given(st.lists(st.lists(st.booleans(), max_size=40), max_size=4))
def test_runs_of_ones_are_detected_without_decoding(pages: list[list[bool]]) -> None:
    encoded = [np.frombuffer(rle_encode.encode(np.array(page, np.uint8), 1), np.uint8) for page in pages]
    run = PageRun(encoded, map(len, pages))
    known = rle.holds_ones_only(run)
    if known:
        assert all(all(page) for page in pages)
    # So many are written as one run.
    if all(all(page) and (len(page) >= 16 or not page) for page in pages):
        assert known
    flags, ones = decode_flags(run)
    assert ones.tolist() == [sum(page) for page in pages]
    assert flags.tolist() == ([] if known else [flag for page in pages for flag in page])


@pytest.mark.parametrize("page", [b"", b"\x10", b"\x10\x02", b"\x0e\x01", b"\x10\0", b"\x03\xff", b"\0\x01"])
def test_other_levels_are_not_mistaken_for_ones(page: bytes) -> None:
    """No data, no value, a level of 2, seven of eight levels, zeros, packed levels, a run of none."""
    assert not rle.holds_ones_only(PageRun([np.frombuffer(page, np.uint8)], [8]))


def test_error_in_any_page_and_wrong_output_size_are_reported() -> None:
    good = np.frombuffer(rle_encode.encode(np.arange(8, dtype=np.int32), 3), np.uint8)
    for place in range(3):
        pages = [good] * 3
        pages[place] = good[:-2]
        with pytest.raises(CorruptFileError, match="ends before"):
            rle.decode_run(PageRun(pages, [8, 8, 8]), 3, 8, np.zeros(24, np.int32))
    with pytest.raises(ValueError, match="must have one value per value of the pages"):
        rle.decode_run(PageRun([good], [8]), 3, 8, np.zeros(9, np.int32))
    with pytest.raises(ValueError, match="one count per page"):
        PageRun([good], [8, 8])
    with pytest.raises(ValueError, match="declares -1 values"):
        PageRun([good], [-1])


def test_levels_are_split_from_the_following_bytes() -> None:
    pages = [b"\x02\0\0\0ab+xyz", b"\0\0\0\0", b"\x01\0\0\0c"]
    run = PageRun([np.frombuffer(b"--" + page, np.uint8)[2:] for page in pages], [3, 0, 1])
    levels, rest = run.split()
    assert [page.tobytes() for page in levels.pages] == [b"ab", b"", b"c"]
    assert [page.tobytes() for page in rest.pages] == [b"+xyz", b"", b""]
    assert levels.counts == rest.counts == [3, 0, 1]
    rest.recount(np.array([2, 0, 0]))
    assert (rest.counts, rest.total) == ([2, 0, 0], 2)
    out = np.empty(4, np.uint8)
    rest.copy_into(2, out)
    assert out.tobytes() == b"+xyz"
    assert run.counts == [3, 0, 1]


@pytest.mark.parametrize("page", [b"", b"\0\0\0", b"\x01\0\0\0", b"\xff\xff\xff\xff" + bytes(100)])
def test_levels_beyond_their_page_are_corrupt(page: bytes) -> None:
    whole = np.frombuffer(b"\0\0\0\0", np.uint8)
    with pytest.raises(CorruptFileError, match="levels extend beyond their page"):
        PageRun([whole, np.frombuffer(page, np.uint8)], [1, 1]).split()


def test_impossible_counts_are_rejected_without_side_effects() -> None:
    run = PageRun([np.zeros(8, np.uint8)] * 2, [1, 2])
    for counts in ([1], [1, -1], [5, 1 << 31]):
        with pytest.raises(ValueError, match=r"one count per page|a page has"):
            run.recount(np.array(counts))
    assert (run.counts, run.total) == ([1, 2], 3)
