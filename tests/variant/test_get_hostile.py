"""Broken bytes on a path are refused with the rule, the row and the byte, in bounded time and memory."""

from __future__ import annotations

import struct
import time
import tracemalloc
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import UnsupportedError, VariantError
from pqext.variant.types import variant_type
from reference import variant_shred as reference
from reference.pace import SLOWER
from reference.variant_strategies import fewer, variants

prim = reference.primitive
NAMES = reference.encode_metadata(["a", "b"])
GOOD = reference.object_of([(0, prim("int8", 1)), (1, reference.array_of([prim("int8", 2)]))])


def column(value: bytes, metadata: bytes = NAMES) -> pa.ChunkedArray:
    """The value as row 3, in a second chunk, behind good ones."""
    good = {"metadata": NAMES, "value": GOOD}
    rows = [pa.array(part, variant_type()) for part in ([good, good], [good, {"metadata": metadata, "value": value}])]
    return pa.chunked_array(rows)


def in_object(value: bytes) -> bytes:
    """The value as field ``a`` of an object; it starts at byte 5."""
    return reference.object_of([(0, value)])


@pytest.mark.parametrize(
    ("value", "metadata", "rule", "offset"),
    [
        (GOOD, b"", "variant.metadata.layout", None),
        (GOOD, b"\x02" + NAMES[1:], "variant.metadata.version", None),
        (GOOD, NAMES[:4], "variant.metadata.layout", None),
        (GOOD[:-1], NAMES, "variant.value.layout", 0),
        (GOOD + b"\0", NAMES, "variant.value.layout", 0),
        (GOOD[:2], NAMES, "variant.value.layout", 0),
        (b"\x02\x01\x09\x00\x02\x0c\x01", reference.encode_metadata(["b", "a"]), "variant.object.field-id", 0),
        (b"\x02\x01\x00\x09\x02\x0c\x01", NAMES, "variant.container.offsets", 0),
        (in_object(prim("string", "x" * 70)[:-1]), NAMES, "variant.value.layout", 5),
        (in_object(b"\x05\xff"), NAMES, "variant.utf8", 5),
        (in_object(b"\x20\x27" + bytes(4)), NAMES, "variant.decimal.scale", 5),
        (in_object(prim("time", 86_400_000_000)), NAMES, "variant.time.range", 5),
    ],
)
@pytest.mark.parametrize("type", ["string", "struct<a: string>", "map<string, string>"])
@pytest.mark.spec("casts.hostile")
def test_violated_rule_is_named_with_row_and_byte(
    value: bytes, metadata: bytes, rule: str, offset: int | None, type: str
) -> None:
    path = "$.a" if type == "string" else "$"
    with pytest.raises(VariantError, match=r"^row 3: ") as caught:
        variant.get(column(value, metadata), path, type)
    assert (caught.value.rule, caught.value.row) == (rule, 3)
    if type == "string":
        assert caught.value.offset == offset


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (b"\x03\x02\x00\x00\x02\x0c\x01", "variant.container.extent"),  # two elements in the same bytes
        (b"\x03\x01\x00\x03\x0c\x01\x00", "variant.container.extent"),  # a byte behind the last
        (b"\x03\xff" + bytes(256), "variant.container.extent"),  # 255 elements in no bytes
        (b"\x03\x01\x05\x02\x0c\x01", "variant.container.offsets"),
        (b"\x13" + struct.pack("<I", 2**32 - 1) + bytes(40), "variant.value.layout"),
    ],
)
@pytest.mark.spec("casts.hostile")
def test_array_elements_must_fill_their_array(value: bytes, rule: str) -> None:
    for function in (
        lambda array: variant.get(array, "$", "array<int>"),
        lambda array: variant.get(array, "$", pa.list_(pa.int8(), 1)),
        lambda array: variant.explode(array, "$[*]"),
    ):
        with pytest.raises(VariantError, match=r"^row 3: ") as caught:
            function(column(value))
        assert (caught.value.rule, caught.value.offset) == (rule, 0)


@pytest.mark.parametrize(
    ("ids", "rule"),
    [((1, 0), "variant.object.order"), ((0, 0), "variant.object.unique"), ((0, 7), "variant.object.field-id")],
)
@pytest.mark.spec("casts.hostile")
def test_map_keys_must_be_unique_and_ordered(ids: tuple[int, int], rule: str) -> None:
    value = reference.object_of([(i, prim("int8", 1)) for i in ids])
    for function in (lambda array: variant.get(array, "$", "map<string, int>"), lambda array: variant.explode(array)):
        with pytest.raises(VariantError, match=r"^row 3: ") as caught:
            function(column(value))
        assert caught.value.rule == rule
    bad_name = reference.encode_metadata(["a", "b"])[:-1] + b"\xff"
    with pytest.raises(VariantError, match=r"variant\.utf8"):
        variant.explode(column(GOOD, bad_name))


@pytest.mark.spec("casts.hostile")
def test_primitive_of_a_later_type_is_preserved_but_not_cast() -> None:
    later = b"\x58\x01\x02"
    array = column(reference.array_of([prim("int8", 1), later, prim("int8", 3)])).chunk(1).slice(1)
    assert variant.get(array, "$[2]", "int").to_pylist() == [3]
    assert variant.get(array, "$[1]", "variant").field("value").to_pylist() == [later]
    assert variant.explode(array).column("value").combine_chunks().field("value").to_pylist()[1] == later
    for type in ("string", "int"):
        with pytest.raises(UnsupportedError, match="primitive type added later"):
            variant.get(array, "$[1]", type)
        with pytest.raises(UnsupportedError, match="primitive type added later"):
            variant.get(array, "$", f"array<{type}>")


@pytest.mark.spec("casts.hostile")
def test_deeply_nested_value_is_traversed_but_its_lists_are_rejected() -> None:
    value = b"\0"
    for _ in range(10_000):
        size = 1 if len(value) < 256 else 2 if len(value) < 65536 else 3
        value = bytes([3 | (size - 1) << 2, 1]) + bytes(size) + len(value).to_bytes(size, "little") + value
    array = pa.array([{"metadata": NAMES, "value": value}], variant_type())
    assert variant.get(array, [0] * 10_000, "variant").field("value").to_pylist() == [b"\0"]
    assert variant.get(array, [0] * 10_001, "int").null_count == 1
    nested = "array<" * 50 + "int" + ">" * 50
    assert variant.get(array, "$", nested).null_count == 0
    with pytest.raises(ValueError, match="is nested more than"):
        variant.get(array, "$", "array<" * 200 + "int" + ">" * 200)
    type = pa.int8()
    for _ in range(150):
        type = pa.list_(type)
    with pytest.raises(ValueError, match="is nested more than"):
        variant.get(array, "$", type)


@pytest.mark.spec("casts.hostile")
def test_offsets_that_share_a_large_element_cost_no_more_than_their_bytes() -> None:
    count = 200_000
    element = prim("string", "x" * 200_000)
    value = b"\x1f" + struct.pack("<I", count) + bytes(4 * count) + struct.pack("<I", len(element))
    array = pa.array([{"metadata": NAMES, "value": value + element}], variant_type())
    tracemalloc.start()
    before, start = pa.total_allocated_bytes(), time.process_time()
    for type in ("array<string>", "array<variant>"):
        with pytest.raises(VariantError, match=r"variant\.container\.extent"):
            variant.get(array, "$", type)
    assert tracemalloc.get_traced_memory()[1] + pa.total_allocated_bytes() - before < 50_000_000
    tracemalloc.stop()
    assert time.process_time() - start < 5 * SLOWER


@fewer
@given(
    variants(),
    st.lists(st.one_of(st.sampled_from(["a", "b", ""]), st.integers(0, 2)), max_size=2),
    st.sampled_from(
        ["array<string>", "map<string, variant>", "struct<a: array<double>, b: variant>", "decimal256(50, 5)"]
    ),
    st.data(),
)
@pytest.mark.spec("casts.hostile")
def test_corrupt_bytes_raise_a_typed_error_or_pass(
    row: tuple[bytes, bytes], path: list[str | int], type: str, data: st.DataObject
) -> None:
    parts = [bytearray(part) for part in row]
    for part in parts:
        for _ in range(data.draw(st.integers(0, 2))):
            part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
        if data.draw(st.booleans()):
            del part[data.draw(st.integers(0, len(part))) :]
    array = pa.array([{"metadata": bytes(parts[0]), "value": bytes(parts[1])}], variant_type())
    with suppress(ValueError):
        variant.get(array, path, type).validate(full=True)
    with suppress(ValueError):
        variant.explode(array, path).validate(full=True)
