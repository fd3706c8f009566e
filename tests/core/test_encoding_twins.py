"""Encodings of values against their slow twins: what one writes, the other reads."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pqext.core.base.buffers import EMPTY, view
from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError
from pqext.core.format.encodings import (
    bit_packed,
    byte_stream_split,
    delta_byte_array,
    delta_length_byte_array,
    plain,
    rle,
)
from pqext.core.format.metadata import Type
from pqext.core.kernels.encodings import alp as alp_kernel
from pqext.core.kernels.encodings import delta as delta_kernel
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder
from pqext.core.kernels.encodings.page_run import PageRun
from reference import alp, delta, fixed_layouts, hybrid

DTYPES = {32: np.int32, 64: np.int64}
BLOCKS = st.sampled_from([(128, 4), (128, 1), (256, 8), (256, 1), (512, 16), (1024, 2)])


@st.composite
def integers(draw: st.DrawFn) -> tuple[int, list[int]]:
    """A width in bits and numbers: close together, anywhere, or both in turns."""
    bits = draw(st.sampled_from([32, 64]))
    lowest = -(1 << (bits - 1))
    anywhere = st.integers(lowest, -lowest - 1)
    base, spread = draw(anywhere), draw(st.sampled_from([0, 1, 100, 1 << 20]))
    near = st.integers(max(base - spread, lowest), min(base + spread, -lowest - 1))
    parts = draw(st.lists(st.tuples(st.sampled_from([near, anywhere]).flatmap(lambda s: s), st.integers(1, 70))))
    return bits, [value for value, times in parts for _ in range(times)]


def decoded(data: bytes, bits: int, count: int) -> tuple[list[int], int]:
    out = np.empty(count, DTYPES[bits])
    used = delta_kernel.decode_into(view(data), out)
    return out.tolist(), used


def strings(page: bytes, count: int, module: Any, present: Any = EMPTY, slots: int | None = None) -> list[bytes]:
    builder = ByteArrayBuilder()
    run = PageRun([view(page)], [count])
    module.decode_byte_arrays(run, builder, present, np.array([count if slots is None else slots]), None)
    offsets, data, held = builder.finish()
    array = pa.Array.from_buffers(pa.binary(), held, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return array.to_pylist()  # type: ignore[no-any-return]


@pytest.mark.spec(
    "encoding.delta.header", "encoding.delta.block", "encoding.delta.reference", "encoding.delta.overflow",
    "encoding.delta.padding", "encoding.delta.width", "encoding.delta.unneeded",
)
@given(integers())
@example((32, [0, (1 << 31) - 1, -(1 << 31), 5, -(1 << 31), (1 << 31) - 1] * 9))
@example((64, [0, (1 << 63) - 1, -(1 << 63), 5, -(1 << 63), (1 << 63) - 1] * 9))
def test_delta_kernel_matches_the_reference_encoder(case: tuple[int, list[int]]) -> None:
    bits, values = case
    encoded = bytes(delta_kernel.encode(np.array(values, DTYPES[bits])))
    assert delta.decode(encoded, bits) == (values, len(encoded))
    assert encoded == delta.encode(values, bits)
    assert decoded(encoded, bits, len(values)) == (values, len(encoded))


@pytest.mark.spec(
    "encoding.delta.header", "encoding.delta.padding", "encoding.delta.unneeded", "encoding.delta.overflow"
)
@given(integers(), BLOCKS, st.sampled_from([0, 1, 9]), st.sampled_from([0, 0xFF, 0x5A]), st.binary(max_size=9))
def test_delta_blocks_of_any_size_and_padding_are_read(
    case: tuple[int, list[int]], block: tuple[int, int], wider: int, junk: int, behind: bytes
) -> None:
    bits, values = case
    encoded = delta.encode(values, bits, *block, extra_width=wider, junk=junk)
    assert decoded(encoded + behind, bits, len(values)) == (values, len(encoded))


@pytest.mark.spec("encoding.delta.count")
def test_too_few_delta_values_are_rejected_and_extra_values_ignored() -> None:
    encoded = delta.encode(list(range(100)), 32)
    with pytest.raises(CorruptFileError, match="contains 100 values instead of 101"):
        decoded(encoded, 32, 101)
    assert decoded(encoded, 32, 40)[0] == list(range(40))
    with pytest.raises(CorruptFileError, match="instead of 40"):
        delta_kernel.decode_into(view(encoded), np.empty(40, np.int32), exact=True)


@pytest.mark.spec("encoding.delta.header")
@pytest.mark.parametrize(
    ("block", "miniblocks", "message"),
    [
        (0, 1, "128"), (64, 1, "128"), (127, 1, "128"), (1 << 40, 1, "128"), (128, 0, "32"), (128, 8, "32"),
        (384, 5, "32"),
    ],
)
def test_delta_header_with_invalid_blocks_is_rejected(block: int, miniblocks: int, message: str) -> None:
    header = delta.varint(block) + delta.varint(miniblocks) + delta.varint(3) + delta.zigzag(1)
    with pytest.raises(CorruptFileError, match=message):
        decoded(header + bytes(50), 32, 3)


@pytest.mark.spec("encoding.delta.width")
def test_bit_widths_beyond_the_type_are_read_up_to_64() -> None:
    start = delta.varint(128) + delta.varint(4) + delta.varint(40) + delta.zigzag(1) + delta.zigzag(0)
    for bits in (32, 64):
        for width in (33, 63, 64):
            relative = [(1 << 32) - 3 - i for i in range(32)]
            packed = sum(value << (i * width) for i, value in enumerate(relative))
            body = bytes([width, 0, 0, 0]) + packed.to_bytes(4 * width, "little")
            expected = [1]
            for value in relative:
                expected.append(delta.wrapped(expected[-1] + value, bits))
            assert decoded(start + body, bits, 33)[0] == expected
        with pytest.raises(CorruptFileError, match="more than 64 bits"):
            decoded(start + bytes([65, 0, 0, 0]) + bytes(65 * 4), bits, 40)


@pytest.mark.spec("encoding.delta.padding")
def test_last_miniblock_without_padding_is_read() -> None:
    encoded = delta.encode([1, 5, 2], 32, junk=0xFF)
    assert decoded(encoded[:-11], 32, 3)[0] == [1, 5, 2]


@given(st.binary(max_size=80), st.integers(0, 200), st.sampled_from([32, 64]))
def test_arbitrary_delta_bytes_return_values_or_a_typed_error(data: bytes, count: int, bits: int) -> None:
    with suppress(CorruptFileError):
        decoded(data, bits, count)


WORDS = st.lists(st.one_of(st.text("ab", max_size=12).map(str.encode), st.binary(max_size=40)), max_size=60)


@pytest.mark.spec("encoding.delta-length.layout")
@given(WORDS)
def test_delta_length_byte_arrays_match_the_reference(words: list[bytes]) -> None:
    encoded = delta_length_byte_array.encode(pa.array([b"skipped", *words], pa.binary())[1:]).tobytes()
    assert encoded == delta.encode_lengths(words)
    assert delta.decode_lengths(encoded) == words
    assert strings(encoded, len(words), delta_length_byte_array) == words


@pytest.mark.spec("encoding.delta-strings.layout")
@given(WORDS)
def test_byte_arrays_with_shared_prefixes_match_the_reference(words: list[bytes]) -> None:
    encoded = delta_byte_array.encode(pa.array([b"skipped", *words], pa.binary())[1:]).tobytes()
    assert encoded == delta.encode_strings(words)
    assert delta.decode_strings(encoded) == words
    assert strings(encoded, len(words), delta_byte_array) == words


@pytest.mark.spec("encoding.delta-strings.fixed")
@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.binary(min_size=n, max_size=n)))))
def test_fixed_length_values_with_shared_prefixes_match_the_reference(case: tuple[int, list[bytes]]) -> None:
    width, values = case
    encoded = delta_byte_array.encode(pa.array(values, pa.binary(width))).tobytes()
    assert encoded == delta.encode_strings(values)
    out = np.empty(len(values) * width, np.uint8)
    delta_byte_array.decode_fixed_width(
        PageRun([view(encoded)], [len(values)]), Type.FIXED_LEN_BYTE_ARRAY, width, None, out
    )
    assert out.tobytes() == b"".join(values)


@pytest.mark.spec("encoding.delta-strings.fixed")
def test_fixed_length_value_of_a_wrong_length_is_rejected() -> None:
    encoded = delta.encode_strings([b"abc", b"ab"])
    with pytest.raises(CorruptFileError, match="differs from its type"):
        delta_byte_array.decode_fixed_width(
            PageRun([view(encoded)], [2]), Type.FIXED_LEN_BYTE_ARRAY, 3, None, np.empty(6, np.uint8)
        )


@given(WORDS, st.data())
def test_null_slots_between_encoded_byte_arrays_are_empty(words: list[bytes], data: st.DataObject) -> None:
    flags = data.draw(st.permutations([1] * len(words) + [0] * data.draw(st.integers(1, 5))))
    expected = iter(words)
    slots = [next(expected) if flag else b"" for flag in flags]
    present = np.array(flags, np.uint8)
    for module, encode in ((delta_length_byte_array, delta.encode_lengths), (delta_byte_array, delta.encode_strings)):
        assert strings(encode(words), len(words), module, present, len(flags)) == slots


@pytest.mark.spec("encoding.delta-strings.layout")
@pytest.mark.parametrize(
    ("prefixes", "suffixes", "data", "message"),
    [
        ([1], [1], b"a", "longer than the previous value"),
        ([0, 3], [2, 1], b"abc", "longer than the previous value"),
        ([0, -1], [2, 1], b"abc", "negative"),
        ([0, 1], [2, -1], b"abc", "negative"),
        ([0, 1], [2, 2], b"abc", "ends? before"),
    ],
)
def test_invalid_prefixes_and_suffixes_are_rejected(
    prefixes: list[int], suffixes: list[int], data: bytes, message: str
) -> None:
    page = delta.encode(prefixes, 32) + delta.encode(suffixes, 32) + data
    with pytest.raises(CorruptFileError, match=message):
        strings(page, len(prefixes), delta_byte_array)


@pytest.mark.parametrize("lengths", [[3, -1], [3, 1 << 30], [4, 0]])
def test_lengths_beyond_the_page_are_rejected(lengths: list[int]) -> None:
    with pytest.raises(CorruptFileError):
        strings(delta.encode(lengths, 32) + b"abc", 2, delta_length_byte_array)


def test_repeated_prefix_beyond_the_limit_is_rejected_before_allocation() -> None:
    count = 1 << 20
    page = delta.encode([0] + [5000] * (count - 1), 32, 1 << 20, 1) + delta.encode([5000] + [0] * (count - 1), 32)
    with pytest.raises(LimitError, match="shared prefixes expand to more"):
        strings(page + b"x" * 5000, count, delta_byte_array)
    builder = ByteArrayBuilder(limit=1 << 16)
    run = PageRun([view(page + b"x" * 5000)], [count])
    with pytest.raises(LimitError, match="65536 bytes"):
        delta_byte_array.decode_byte_arrays(run, builder, EMPTY, np.array([count]), None)


@pytest.mark.spec("encoding.split.layout", "encoding.split.types")
@given(st.integers(1, 20).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.binary(min_size=n, max_size=n)))))
@example((2, [bytes(range(i, i + 2)) for i in range(0, 40, 2)]))
@example((4, [bytes(range(i, i + 4)) for i in range(0, 80, 4)]))
@example((8, [bytes(range(i, i + 8)) for i in range(0, 160, 8)]))
@example((16, [bytes(range(i, i + 16)) for i in range(0, 160, 16)]))
def test_split_bytes_match_the_reference(case: tuple[int, list[bytes]]) -> None:
    width, values = case
    encoded = byte_stream_split.encode(pa.array(values, pa.binary(width))).tobytes()
    assert encoded == fixed_layouts.split(values)
    out = np.empty(len(values) * width, np.uint8)
    byte_stream_split.decode_fixed_width(
        PageRun([view(encoded)], [len(values)]), Type.FIXED_LEN_BYTE_ARRAY, width, None, out
    )
    assert out.tobytes() == b"".join(values)


@pytest.mark.spec("encoding.split.end")
@pytest.mark.parametrize("size", [15, 17, 0])
def test_split_streams_end_with_the_page(size: int) -> None:
    with pytest.raises(CorruptFileError, match="does not contain 2 values"):
        byte_stream_split.decode_fixed_width(
            PageRun([np.zeros(size, np.uint8)], [2]), Type.DOUBLE, 8, None, np.empty(16, np.uint8)
        )


@pytest.mark.spec("encoding.bit-packed.order")
@given(st.integers(1, 300).flatmap(lambda top: st.tuples(st.just(top), st.lists(st.integers(0, top), max_size=99))))
def test_bit_packed_levels_match_the_reference(case: tuple[int, list[int]]) -> None:
    highest, levels = case
    data = fixed_layouts.bit_packed(levels, highest.bit_length())
    assert len(data) == bit_packed.size(len(levels), highest)
    assert bit_packed.decode_levels(view(data + b"\xff"), len(levels), highest).tolist() == levels


@pytest.mark.spec("encoding.bit-packed.order", "encoding.hybrid.bit-order")
def test_both_bit_packings_match_the_examples_of_the_specification() -> None:
    numbers = list(range(8))
    old = bytes([0b00000101, 0b00111001, 0b01110111])
    new = bytes([0b10001000, 0b11000110, 0b11111010])
    assert bit_packed.decode_levels(view(old), 8, 7).tolist() == numbers
    assert hybrid.encode_packed(numbers, 3)[1:] == new
    out = np.empty(8, np.int16)
    rle.decode_levels(PageRun([view(b"\x03" + new)], [8]), 7, out)
    assert out.tolist() == numbers


def test_bit_packed_levels_beyond_the_page_or_maximum_are_rejected() -> None:
    with pytest.raises(CorruptFileError, match="exceed their page"):
        bit_packed.decode_levels(view(b"\0"), 5, 3)
    with pytest.raises(CorruptFileError, match="a level exceeds 2"):
        bit_packed.decode_levels(view(b"\xff"), 4, 2)


@given(st.lists(st.booleans()), st.integers(0, 3))
@pytest.mark.spec("encoding.hybrid.booleans")
def test_run_length_booleans_round_trip(values: list[bool], skipped: int) -> None:
    encoded = rle.encode(pa.array([True] * skipped + values, pa.bool_())[skipped:]).tobytes()
    assert int.from_bytes(encoded[:4], "little") == len(encoded) - 4
    assert hybrid.decode(encoded[4:], 1, len(values)) == [int(value) for value in values]
    out = np.empty(len(values), np.uint8)
    rle.decode_fixed_width(PageRun([view(encoded)], [len(values)]), Type.BOOLEAN, 1, None, out)
    assert out.tolist() == [int(value) for value in values]


@pytest.mark.spec(
    "encoding.plain.boolean", "encoding.plain.numbers", "encoding.plain.byte-array", "encoding.plain.fixed"
)
def test_plain_values_follow_the_layout_of_the_specification() -> None:
    assert plain.encode(pa.array([True, False, True] + [False] * 6 + [True])).tolist() == [0b101, 0b10]
    assert plain.encode(pa.array([1, -2], pa.int32())).tobytes() == b"\1\0\0\0\xfe\xff\xff\xff"
    assert plain.encode(pa.array([-2], pa.int64())).tobytes() == b"\xfe" + b"\xff" * 7
    assert plain.encode(pa.array([1.5], pa.float32())).tobytes() == b"\0\0\xc0\x3f"
    assert plain.encode(pa.array([-2.0])).tobytes() == b"\0\0\0\0\0\0\0\xc0"
    assert plain.encode(pa.array([b"ab", b"", b"c"])).tobytes() == b"\2\0\0\0ab\0\0\0\0\1\0\0\0c"
    assert plain.encode(pa.array([b"abc", b"def"], pa.binary(3))).tobytes() == b"abcdef"


@pytest.mark.spec("encoding.plain.boolean")
def test_plain_booleans_are_read_from_the_least_significant_bit() -> None:
    out = np.empty(10, np.uint8)
    plain.decode_fixed_width(PageRun([np.array([0b101, 0b10], np.uint8)], [10]), Type.BOOLEAN, 1, None, out)
    assert out.tolist() == [1, 0, 1, 0, 0, 0, 0, 0, 0, 1]


FLOATS = {np.float32: st.floats(width=32), np.float64: st.floats()}


@st.composite
def numbers(draw: st.DrawFn) -> tuple[Any, Any]:
    """A float type and numbers: decimals of few digits, any at all, and every bit pattern, NaN included."""
    kind: Any = draw(st.sampled_from([np.float32, np.float64]))
    places = draw(st.integers(0, 6))
    few = st.integers(-(10**7), 10**7).map(lambda n: float(kind(f"{n}e-{places}")))
    pool = draw(st.lists(st.one_of(few, few, FLOATS[kind]), min_size=1, max_size=30))
    values = np.array(draw(st.lists(st.sampled_from(pool), max_size=200)), kind)
    bits = values.view(np.uint32 if kind == np.float32 else np.uint64)
    for at in draw(st.lists(st.integers(0, max(len(values) - 1, 0)), max_size=3)) if len(values) else []:
        bits[at] = draw(st.integers(0, np.iinfo(bits.dtype).max))
    return kind, values


@pytest.mark.spec(
    "encoding.alp.header", "encoding.alp.offsets", "encoding.alp.vector", "encoding.alp.decode",
    "encoding.alp.exceptions", "encoding.alp.integers",
)
@given(numbers())
@example((np.float64, np.array([1.5, -0.0, 0.0, np.nan, np.inf, -1.5, 2.25] * 5)))
@example((np.float32, np.array([1.5, -0.0, 0.0, np.nan, np.inf, -1.5, 2.25] * 5, np.float32)))
def test_alp_numbers_round_trip_bit_for_bit(case: tuple[Any, Any]) -> None:
    kind, values = case
    encoded = bytes(alp_kernel.encode(values))
    with np.errstate(all="ignore"):
        assert b"".join(alp.decode(kind, encoded)) == values.tobytes()
    out = np.empty_like(values)
    alp_kernel.decode_into(view(encoded), out)
    assert out.tobytes() == values.tobytes()


@pytest.mark.spec("encoding.alp.header", "encoding.alp.vector", "encoding.alp.integers")
@given(numbers(), st.integers(0, 10), st.integers(0, 10), st.integers(3, 15), st.sampled_from([0, 3, 40]))
def test_alp_vectors_of_any_size_and_scale_are_read(
    case: tuple[Any, Any], exponent: int, less: int, log_vector: int, wider: int
) -> None:
    kind, values = case
    factor = max(exponent - less, 0)
    with np.errstate(all="ignore"):
        encoded = alp.encode(kind, values, exponent, factor, log_vector, extra_width=wider)
    out = np.empty_like(values)
    alp_kernel.decode_into(view(encoded), out)
    assert out.tobytes() == values.tobytes()


@pytest.mark.spec("encoding.alp.decode")
@pytest.mark.parametrize(("kind", "most", "highest"), [(np.float64, 18, 1 << 50), (np.float32, 10, 1 << 22)])
def test_alp_decoding_uses_the_precision_of_the_values(kind: Any, most: int, highest: int) -> None:
    numbers = np.random.default_rng(7).integers(-highest, highest, 64)
    differ = 0
    for exponent in range(most + 1):
        for factor in range(exponent + 1):
            power, inverse = kind(f"1e{factor}"), kind(f"1e-{exponent}")
            values = numbers.astype(kind) * power * inverse
            differ += int((values != numbers.astype(kind) * (power * inverse)).sum())
            out = np.empty_like(values)
            alp_kernel.decode_into(view(alp.encode(kind, values, exponent, factor, 6)), out)
            assert out.tobytes() == values.tobytes()
    assert differ > 100


@pytest.mark.spec("encoding.alp.constants")
def test_alp_powers_of_ten_are_correctly_rounded() -> None:
    power, inverse, power_float, inverse_float = alp_kernel.powers()
    for found, sign, kind in (
        (power, 1, np.float64), (inverse, -1, np.float64), (power_float, 1, np.float32), (inverse_float, -1, np.float32)
    ):
        for exponent, value in enumerate(found):
            exact = Fraction(10) ** (sign * exponent)
            for other in (np.nextafter(kind(value), kind(0)), np.nextafter(kind(value), kind(np.inf))):
                assert abs(Fraction(value) - exact) < abs(Fraction(float(other)) - exact)


@pytest.mark.spec("encoding.alp.vector")
def test_worked_example_of_the_alp_specification_is_read() -> None:
    values = np.array([1500.0, np.nan, 2500.0, 333.5])
    vector = alp.encode_vector(np.float64, values, 4, 3)
    assert len(vector) == 31
    assert vector[:13] == b"\4\3\1\0" + (3335).to_bytes(8, "little") + bytes([15])
    out = np.empty(4)
    alp_kernel.decode_into(view(alp.page(np.float64, [vector], 4, 10)), out)
    assert out.tobytes() == values.tobytes()


def test_incompressible_numbers_cost_alp_only_their_exceptions() -> None:
    values = np.random.default_rng(5).random(5000)
    assert len(alp_kernel.encode(values)) < 5000 * 10 + 200
    assert len(alp_kernel.encode(np.round(values, 2))) < 5000 * 1.5


ALP_PAGE = alp.encode(np.float64, np.array([1.5, np.nan, 2.25] * 5), 4, 2, 3)


@pytest.mark.spec("encoding.alp.header", "encoding.alp.offsets", "encoding.alp.vector", "encoding.alp.exceptions")
@pytest.mark.parametrize(
    ("at", "value", "error", "message"),
    [
        (0, 1, UnsupportedError, "compression mode 1"),
        (1, 1, UnsupportedError, "integer encoding 1"),
        (2, 2, CorruptFileError, r"2\*\*2 values"),
        (2, 16, CorruptFileError, r"2\*\*16 values"),
        (3, 14, CorruptFileError, "14 values instead of 15"),
        (6, 0x80, CorruptFileError, "-2147483633 values"),
        (7, 9, CorruptFileError, "offset"),
        (11, 9, CorruptFileError, "offset"),
        (15, 19, CorruptFileError, "exponent"),
        (16, 5, CorruptFileError, "exponent"),
        (17, 9, CorruptFileError, "exception"),
        (27, 65, CorruptFileError, "more bits"),
        (27, 64, CorruptFileError, "extend beyond"),
    ],
)
def test_inconsistent_alp_page_is_rejected(at: int, value: int, error: type, message: str) -> None:
    page = bytearray(ALP_PAGE)
    page[at] = value
    with pytest.raises(error, match=message):
        alp_kernel.decode_into(view(page), np.empty(15))


PADDING = 41 // 8
"""Bytes behind the last value of the first of these pages: 160 values leave one place of a miniblock empty."""
PAGES: dict[str, tuple[bytes, Any]] = {
    "delta": (
        delta.encode([5, 9, 1 << 40, -3] * 40, 64),
        lambda page: delta_kernel.decode_into(page, np.empty(160, np.int64)),
    ),
    "alp": (ALP_PAGE, lambda page: alp_kernel.decode_into(page, np.empty(15))),
    "lengths": (
        delta.encode_lengths([b"abc", b"", b"de"] * 20), lambda page: strings(page, 60, delta_length_byte_array)
    ),
    "strings": (delta.encode_strings([b"abc", b"abd", b"ab"] * 20), lambda page: strings(page, 60, delta_byte_array)),
}


@pytest.mark.parametrize("name", PAGES)
def test_truncated_pages_are_rejected_unless_only_padding_is_missing(name: str) -> None:
    page, decode = PAGES[name]
    decode(view(page))
    for cut in range(len(page)):
        if name == "delta" and len(page) - cut <= PADDING:
            decode(view(page[:cut]))
            continue
        with pytest.raises(CorruptFileError):
            decode(view(page[:cut]))


@pytest.mark.parametrize("name", PAGES)
def test_pages_with_a_changed_byte_return_values_or_a_typed_error(name: str) -> None:
    page, decode = PAGES[name]
    for at in range(len(page)):
        for flip in (0xFF, 0x80, 0x01):
            changed = bytearray(page)
            changed[at] ^= flip
            with suppress(ParquetError):
                decode(view(changed))


@given(st.binary(max_size=120), st.integers(0, 40))
def test_arbitrary_pages_return_values_or_a_typed_error(data: bytes, count: int) -> None:
    for decode in (
        lambda: strings(data, count, delta_byte_array),
        lambda: strings(data, count, delta_length_byte_array),
        lambda: alp_kernel.decode_into(view(data), np.empty(count, np.float32)),
        lambda: alp_kernel.decode_into(view(b"\0\0\x03" + count.to_bytes(4, "little") + data), np.empty(count)),
    ):
        with suppress(ParquetError):
            decode()
