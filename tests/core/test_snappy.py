"""Snappy pages, decompressed many at once: as the format says, byte by byte, and never beyond a page."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext.core.buffers import view
from pqext.core.errors import CorruptFileError
from pqext.core.kernels import snappy
from pqext.core.kernels.page_run import PageRun
from reference import snappy as twin


def unpack(pages: list[bytes], sizes: list[int]) -> bytes:
    out = np.full(sum(sizes) + snappy.SPARE, 0xEE, np.uint8)
    snappy.decompress(PageRun([view(page) for page in pages], sizes), out)
    return out[: sum(sizes)].tobytes()


@st.composite
def blocks(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A sound block and what it holds: copies of all kinds, near and far."""
    parts, made = [], bytearray()
    for _ in range(draw(st.integers(1, 12))):
        if made and draw(st.booleans()):
            kind = draw(st.integers(1, 3))
            distance = draw(st.integers(1, min(len(made), 2047)))
            length = draw(st.integers(4, 11) if kind == 1 else st.integers(1, 64))
            parts.append(twin.copy(length, distance, kind))
            for _ in range(length):
                made.append(made[-distance])
        else:
            data = draw(st.binary(min_size=1, max_size=90))
            parts.append(twin.literal(data, draw(st.integers(len(data) > 60, 4))))
            made += data
    return twin.block(len(made), parts), bytes(made)


@pytest.mark.spec("compression.snappy")
@given(st.lists(blocks(), min_size=1, max_size=4))
@settings(max_examples=150)
def test_pages_hold_what_their_literals_and_copies_say(pages: list[tuple[bytes, bytes]]) -> None:
    assert all(twin.decompressed(block) == held for block, held in pages)
    assert unpack([block for block, _ in pages], [len(held) for _, held in pages]) == b"".join(h for _, h in pages)


@pytest.mark.spec("compression.snappy")
@given(st.lists(st.sampled_from([b"a", b"row ", b"\0\0\1\0", bytes(range(40)), b"x" * 90]), max_size=60))
@settings(max_examples=60)
def test_what_another_library_compressed_comes_back(parts: list[bytes]) -> None:
    data = b"".join(parts)
    packed = bytes(pa.Codec("snappy").compress(data))
    assert unpack([packed, packed], [len(data)] * 2) == data * 2


@pytest.mark.spec("compression.snappy")
@given(blocks(), st.data())
@settings(max_examples=200)
def test_a_damaged_page_is_an_error_or_what_it_says_by_chance(made: tuple[bytes, bytes], data: st.DataObject) -> None:
    block, held = bytearray(made[0]), made[1]
    block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(block[: data.draw(st.integers(0, len(block)))]) if data.draw(st.booleans()) else bytes(block)
    expected = twin.decompressed(damaged)
    out = np.full(len(held) + snappy.SPARE, 0xEE, np.uint8)
    run = PageRun([view(damaged)], [len(held)])
    if expected is not None and len(expected) == len(held):
        snappy.decompress(run, out)
        assert out[: len(held)].tobytes() == expected
    else:
        with pytest.raises(CorruptFileError, match="Snappy"):
            snappy.decompress(run, out)


@pytest.mark.spec("compression.snappy")
@pytest.mark.parametrize("length", [1, 7, 8, 15, 16, 17, 33, 64])
@pytest.mark.parametrize("distance", [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 64, 70])
def test_copies_that_overlap_themselves_repeat(length: int, distance: int) -> None:
    start = bytes(range(100, 170))
    block = twin.block(70 + length, [twin.literal(start, 1), twin.copy(length, distance, 2)])
    assert unpack([block], [70 + length]) == twin.decompressed(block)


@pytest.mark.spec("compression.snappy")
def test_a_page_of_no_bytes_needs_no_block() -> None:
    packed = bytes(pa.Codec("snappy").compress(b"abc"))
    assert unpack([b"", packed, b"\0"], [0, 3, 0]) == b"abc"


def test_memory_of_another_size_is_refused() -> None:
    run = PageRun([view(b"\1\0a")], [1])
    for size in (0, 1, snappy.SPARE, snappy.SPARE + 2):
        with pytest.raises(ValueError, match="spare"):
            snappy.decompress(run, np.zeros(size, np.uint8))
