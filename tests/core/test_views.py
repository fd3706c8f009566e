"""Views point into the memory of pages and dictionaries: every length is checked, and text is UTF-8."""

from __future__ import annotations

import gc
import io
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import CorruptFileError
from pqext.core.kernels.decode.views import view_plain, view_values
from pqext.core.kernels.encodings.page_run import PageRun
from reference.effort import share
from reference.views import plain_views, view

EDGES = [b"", b"abc", b"abcd", b"123456789012", b"1234567890123", b"\0" * 13]
values = st.one_of(st.binary(max_size=20), st.sampled_from(EDGES))
texts = st.one_of(st.binary(max_size=30), st.text(max_size=12).map(str.encode), st.text().map(lambda text: (
    text.encode("utf-8", "surrogatepass") + b"\xed\xa0\x80"[: len(text) % 4]
)))


def plain(page: list[bytes | None]) -> bytes:
    return b"".join(struct.pack("<I", len(value)) + value for value in page if value is not None)


def viewed(pages: list[bytes], flags: list[list[bool]], first: int = 0, text: bool = False) -> tuple[bytes, list[int]]:
    run = PageRun([np.frombuffer(page, np.uint8) for page in pages], [sum(flag) for flag in flags])
    present = np.array([one for flag in flags for one in flag], np.uint8)
    out = np.full(2 * len(present), 0xFF, np.uint64)
    found = view_plain(run, present, np.array([len(flag) for flag in flags], np.int64), first, text, out)
    return out.tobytes(), found


@settings(max_examples=share(1), deadline=None)
@given(st.lists(st.lists(st.one_of(st.none(), values), max_size=6), max_size=4), st.integers(0, 3))
def test_views_of_plain_pages_match_the_reference(pages: list[list[bytes | None]], first: int) -> None:
    stored, flags = [plain(page) for page in pages], [[value is not None for value in page] for page in pages]
    assert viewed(stored, flags, first) == plain_views(stored, flags, first)


@settings(max_examples=share(0.5), deadline=None)
@given(st.lists(values, max_size=6), st.integers(0, 3))
def test_views_of_values_match_the_reference(held: list[bytes], buffer: int) -> None:
    data = b"".join(held)
    offsets = np.cumsum([0, *map(len, held)]).astype(np.int32)
    out = np.zeros(2 * len(held), np.uint64)
    needed = view_values(np.frombuffer(data, np.uint8), offsets, buffer, False, out)
    starts = offsets[:-1].tolist()
    assert out.tobytes() == b"".join(view(value, buffer, at) for value, at in zip(held, starts, strict=True))
    assert needed == any(len(value) > 12 for value in held)


@settings(max_examples=share(1), deadline=None)
@given(st.lists(texts, min_size=1, max_size=3))
def test_text_is_rejected_exactly_if_python_cannot_decode_it(held: list[bytes]) -> None:
    try:
        for one in held:
            one.decode()
        is_text = True
    except UnicodeDecodeError:
        is_text = False
    offsets = np.cumsum([0, *map(len, held)]).astype(np.int32)
    checks: list[Any] = [
        lambda: viewed([plain(list(held))], [[True] * len(held)], text=True),
        lambda: view_values(
            np.frombuffer(b"".join(held), np.uint8), offsets, 0, True, np.zeros(2 * len(held), np.uint64)
        ),
    ]
    for check in checks:
        if is_text:
            check()
        else:
            with pytest.raises(CorruptFileError, match="not UTF-8"):
                check()


@settings(max_examples=share(0.5), deadline=None)
@given(st.lists(values, min_size=1, max_size=5), st.data())
def test_truncated_page_is_rejected(held: list[bytes], data: st.DataObject) -> None:
    page = plain(list(held))
    size = data.draw(st.integers(0, len(page) - 1))
    with pytest.raises(CorruptFileError, match="ends before the last value"):
        viewed([page[:size]], [[True] * len(held)])


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 14])
def test_length_beyond_the_page_is_rejected(length: int) -> None:
    with pytest.raises(CorruptFileError, match="ends before the last value"):
        viewed([struct.pack("<I", length) + b"x" * 13], [[True]])


@pytest.mark.parametrize("offsets", [[0, 5, 3], [-1, 2], [0, 99], [5, 3, 4]])
def test_offsets_beyond_the_data_are_rejected(offsets: list[int]) -> None:
    out = np.zeros(2 * len(offsets) - 2, np.uint64)
    with pytest.raises(ValueError, match="offsets"):
        view_values(np.zeros(20, np.uint8), np.array(offsets, np.int32), 0, False, out)


@pytest.mark.parametrize("slots", [[3], [-1], [1, 1]])
def test_mismatched_slots_are_rejected(slots: list[int]) -> None:
    run = PageRun([np.frombuffer(plain([b"a", b"b"]), np.uint8)], [2])
    with pytest.raises(ValueError, match="slot count"):
        view_plain(run, np.empty(0, np.uint8), np.array(slots, np.int64), 0, False, np.zeros(4, np.uint64))
    with pytest.raises(ValueError, match="output"):
        view_plain(run, np.empty(0, np.uint8), np.array([2], np.int64), 0, False, np.zeros(3, np.uint64))


def written(words: list[str], **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(pa.table({"w": words}), out, **options)
    return out.getvalue()


@pytest.mark.parametrize("encoding", ["plain", "delta_length_byte_array", "delta_byte_array"])
@pytest.mark.parametrize("compression", ["uncompressed", "snappy"])
def test_views_outlive_the_file(encoding: str, compression: str) -> None:
    words = [f"a value that is long enough: {i}" for i in range(5000)]
    source = bytearray(written(words, encodings=encoding, dictionary=False, compression=compression, page_rows=700))
    shown = pqext.read_table(bytes(source), strings="view")
    del source
    gc.collect()
    assert shown["w"].to_pylist() == words


def test_plain_values_and_dictionaries_are_not_copied() -> None:
    words = [f"a value that is long enough: {i}" for i in range(3000)]
    source = written(words, dictionary=False, compression="uncompressed", page_rows=1000)
    array = pqext.read_table(source, strings="view")["w"].chunk(0)
    views = np.frombuffer(array.buffers()[1], np.uint8)
    assert len(array.buffers()) == 2 + 3
    assert len(views) == 3000 * 16
    assert all(b"a value" in buffer.to_pybytes() for buffer in array.buffers()[2:])
    same = written(["one long word in a dictionary", "another long word"] * 20_000, page_rows=5000)
    array = pqext.read_table(same, strings="view")["w"].chunk(0)
    assert len(array.buffers()) == 3
    assert array.buffers()[2].size < 100


def test_memory_retained_by_views_is_counted() -> None:
    source = written(["x" * 50_000 + str(i) for i in range(100)], dictionary=False, compression="zstd")
    assert pqext.read_table(source, strings="view").num_rows == 100
    with pytest.raises(pqext.LimitError):
        pqext.read_table(source, strings="view", limits=pqext.Limits(memory_bytes=4_000_000))


def test_invalid_utf8_names_its_page() -> None:
    text = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff\xfe"]).buffers())
    out = io.BytesIO()
    pq.write_table(pa.table({"t": text}), out, use_dictionary=False, write_statistics=False)
    with pytest.raises(CorruptFileError, match="UTF-8") as raised:
        pqext.read_table(out.getvalue(), strings="view")
    assert raised.value.column == "t"
    assert raised.value.offset is not None
