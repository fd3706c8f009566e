"""Broken values are refused with rule, row and byte by all that rewrites, compares or reads them; in bounded time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

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
ONE = pa.array([{"metadata": NAMES, "value": GOOD}], variant_type())

USES: dict[str, Callable[[Any], Any]] = {
    "to_python": variant.to_python,
    "canonical": variant.canonical,
    "hash": variant.hash,
    "equals": lambda array: variant.equals(array, 1),
    "set": lambda array: variant.set(array, "$.z", 1),
    "set below": lambda array: variant.set(array, "$.b[0]", 1),
    "delete": lambda array: variant.delete(array, "$.b"),
    "merge": lambda array: variant.merge(array, {"z": 1}),
    "merge below": lambda array: variant.merge(array, {"b": {"z": 2}}),
    "patch": lambda array: variant.merge(pa.concat_arrays([ONE] * len(array)), array),
    "value": lambda array: variant.set(pa.concat_arrays([ONE] * len(array)), "$.c.d", array),
    "from_arrow": lambda array: variant.from_arrow(pa.table([pa.concat_arrays(array.chunks)], ["v"])),
}


def column(value: bytes, metadata: bytes = NAMES) -> pa.ChunkedArray:
    """The value as row 3, in a second chunk, behind good ones."""
    good = {"metadata": NAMES, "value": GOOD}
    rows = [pa.array(part, variant_type()) for part in ([good, good], [good, {"metadata": metadata, "value": value}])]
    return pa.chunked_array(rows)


def in_object(value: bytes) -> bytes:
    return reference.object_of([(0, value)])


BROKEN = [
    (GOOD, b"", "variant.metadata.layout"),
    (GOOD, b"\x02" + NAMES[1:], "variant.metadata.version"),
    (GOOD, NAMES[:4], "variant.metadata.layout"),
    (GOOD[:-1], NAMES, "variant.value.layout"),
    (GOOD + b"\0", NAMES, "variant.value.layout"),
    (b"", NAMES, "variant.value.layout"),
    (b"\x02\x01\x09\x00\x02\x0c\x01", NAMES, "variant.object.field-id"),
    (b"\x02\x01\x00\x09\x02\x0c\x01", NAMES, "variant.container.offsets"),
    (b"\x02\x02\x00\x00\x00\x01\x02\x00\x00", NAMES, "variant.object.unique"),
    (b"\x02\x02\x00\x01\x00\x00\x01\x00", NAMES, "variant.container.extent"),
    (b"\x03\x01\x00\x02\x00\x00", NAMES, "variant.container.extent"),
    (in_object(prim("string", "x" * 70)[:-1]), NAMES, "variant.value.layout"),
    (in_object(b"\x05\xff"), NAMES, "variant.utf8"),
    (in_object(b"\x20\x27" + bytes(4)), NAMES, "variant.decimal.scale"),
    (in_object(b"\0"), b"\x01\x01\x00\x01\xff", "variant.utf8"),
]


@pytest.mark.parametrize(
    ("value", "metadata", "rule"), BROKEN, ids=[f"{rule} {i}" for i, (_, _, rule) in enumerate(BROKEN)]
)
@pytest.mark.parametrize("use", USES)
def test_violated_rule_is_named_with_its_row(value: bytes, metadata: bytes, rule: str, use: str) -> None:
    if use.startswith("merge") and value[:1] == b"\x03":
        pytest.skip("a patch replaces an array without reading it")
    with pytest.raises(VariantError, match="row 3: ") as caught:
        USES[use](column(value, metadata))
    assert (caught.value.rule, caught.value.row) == (rule, 3)


def test_reported_byte_is_that_of_the_invalid_value() -> None:
    for use in ("to_python", "canonical", "set", "patch", "value"):
        with pytest.raises(VariantError) as caught:
            USES[use](column(in_object(b"\x05\xff")))
        assert caught.value.offset == 5, use


@pytest.mark.parametrize("use", [name for name in USES if name != "to_python"])
def test_unordered_fields_are_rejected(use: str) -> None:
    with pytest.raises(VariantError, match=r"row 3: .*order of their names"):
        USES[use](column(b"\x02\x02\x01\x00\x00\x01\x02\x00\x00"))


@pytest.mark.parametrize("use", USES)
def test_types_added_later_are_not_supported(use: str) -> None:
    with pytest.raises(UnsupportedError, match="added later"):
        USES[use](column(in_object(b"\xfc")))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", ["depth", "laughs", "names"])
def test_adversarial_values_take_bounded_time(use: str, kind: str) -> None:
    metadata = NAMES
    if use.startswith("merge") and kind != "names":
        pytest.skip("a patch replaces an array without reading it")
    if kind == "depth":
        size, parts = 1, [b"\0"]
        for _ in range(50_000):
            parts.append(b"\x0f\x01" + bytes(4) + size.to_bytes(4, "little"))
            size += 10
        value = b"".join(reversed(parts))
    elif kind == "laughs":
        value = b"\0"
        for _ in range(60):
            value = b"\x0f\x02" + bytes(8) + len(value).to_bytes(4, "little") + value
    else:
        metadata = b"\xc1\xff\xff\xff\xff" + bytes(8)
        value = b"\x42\xff\xff\xff\xff" + bytes(100)
    start = time.process_time()
    with pytest.raises(VariantError, match="row 3"):
        USES[use](column(value, metadata))
    assert time.process_time() - start < 2 * SLOWER


@given(variants(), variants(), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), min_size=1, max_size=4))
@fewer
def test_arbitrary_bytes_are_read_or_rejected(one: Any, other: Any, changes: Any) -> None:
    parts = [bytearray(part) for part in one]
    for at, byte in changes:
        part = parts[at % 2]
        part[at % len(part)] = byte
    array = pa.chunked_array([[{"metadata": bytes(parts[0]), "value": bytes(parts[1])}]], type=variant_type())
    for name, use in USES.items():
        with suppress(VariantError, UnsupportedError):
            result = use(array)
            if name not in ("to_python", "hash", "equals"):
                assert variant.validate(result) is None or variant.validate(array) is not None
    with suppress(VariantError, UnsupportedError):
        assert variant.equals(array, array).to_pylist() == [True]


def test_inconsistent_array_is_rejected() -> None:
    offsets = pa.py_buffer(b"".join(offset.to_bytes(4, "little") for offset in (0, 99, 1)))
    value = pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"\0")])
    array = pa.StructArray.from_arrays([pa.array([NAMES] * 2), value], fields=list(variant_type()))
    for use in (variant.to_python, variant.canonical, variant.hash):
        with pytest.raises(ValueError, match=r"not a valid Arrow array: .*offset"):
            use(array)
    lists = pa.Array.from_buffers(pa.list_(pa.int8()), 2, [None, offsets], children=[pa.array([1], pa.int8())])
    with pytest.raises(ValueError, match=r"not a valid Arrow array: .*offset"):
        variant.from_arrow(lists)
