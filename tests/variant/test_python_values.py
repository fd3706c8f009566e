"""Values that Python objects become are read by the reference, and broken ones are refused by rule and place."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from invalid_arrays import TEXT

from pqext.core.base.errors import VariantError
from pqext.variant import Variant, from_python
from pqext.variant.binary_value import EMPTY_METADATA, encode_metadata
from reference import variant_value as reference

LONG = "é" * 40_000
VALUES: list[tuple[Any, reference.Value]] = [
    (LONG, ("string", LONG)),
    (b"\x00\xff" * 200, ("binary", b"\x00\xff" * 200)),
    (["x" * 63, "x" * 64, None], ("array", [("string", "x" * 63), ("string", "x" * 64), ("null", None)])),
    ({"b": LONG, "a": 1}, ("object", {"a": ("int8", 1), "b": ("string", LONG)})),
    ({f"{i:03}": i % 100 for i in range(300)}, ("object", {f"{i:03}": ("int8", i % 100) for i in range(300)})),
    ([[i % 100] for i in range(300)], ("array", [("array", [("int8", i % 100)]) for i in range(300)])),
    ([Decimal("-1.50"), 2**62], ("array", [("decimal4", (-150, 2)), ("int64", 2**62)])),
]


@pytest.mark.spec(
    "variant.primitive.bytes", "variant.object.header", "variant.array.header", "variant.container.layout",
    "variant.container.offsets", "variant.short-string.length",
)  # fmt: skip
@pytest.mark.parametrize(("given", "expected"), VALUES, ids=[str(given)[:20] for given, _ in VALUES])
def test_python_objects_match_the_reference(given: Any, expected: reference.Value) -> None:
    written = Variant.from_python(given)
    assert reference.decode(written.metadata, written.value) == expected


NAMES = encode_metadata(["a", "b"])
BROKEN = [
    ("variant.value.layout", b"\0\0", 1),
    ("variant.value.layout", b"\x0c\x01\x02", 2),
    ("variant.value.layout", b"\x03\x01\x00\x05\x0c\x01", 6),  # the last offset leads out of the value
    ("variant.container.extent", b"\x03\x01\x00\x03\x0c\x01\x00", 4),
    ("variant.container.extent", b"\x03\x02\x00\x00\x02\x0c\x01", 5),
    ("variant.object.unique", b"\x02\x02\x00\x00\x00\x02\x04\x0c\x01\x0c\x02", 0),
]


@pytest.mark.spec(
    "variant.value.layout", "variant.container.offsets", "variant.container.extent", "variant.object.unique"
)
@pytest.mark.parametrize(("rule", "value", "offset"), BROKEN)
def test_invalid_values_are_rejected_in_python(rule: str, value: bytes, offset: int) -> None:
    with pytest.raises(VariantError) as caught:
        Variant(value, NAMES).to_python()
    assert (caught.value.rule, caught.value.offset) == (rule, offset)


@pytest.mark.spec("variant.container.offsets")
def test_children_beyond_the_value_are_rejected_before_access() -> None:
    with pytest.raises(VariantError) as caught:
        Variant(b"\x03\x01\x00\x05\x0c\x01", NAMES)[0]
    assert caught.value.rule == "variant.value.layout"


@pytest.mark.parametrize("array", [TEXT["an offset far beyond the data"], pa.chunked_array([[1]]), pa.array([])])
def test_arrow_arrays_are_not_python_objects(array: Any) -> None:
    with pytest.raises(TypeError, match=r"not an Arrow \w+Array; use variant\.from_arrow"):
        from_python(array)


@pytest.mark.spec("variant.depth")
def test_python_nesting_is_limited_to_a_thousand_containers() -> None:
    value: bytes = b"\0"
    nested: Any = None
    for _ in range(1000):
        value, nested = encoded_list(value), [nested]
    assert depth_of(Variant(value, EMPTY_METADATA).to_python()) == 1000
    assert depth_of(Variant.from_python(nested).to_python()) == 1000
    with pytest.raises(VariantError) as caught:
        Variant(encoded_list(value), EMPTY_METADATA).to_python()
    assert caught.value.rule == "variant.depth"
    with pytest.raises(ValueError, match="1000"):
        Variant.from_python([nested])


def encoded_list(value: bytes) -> bytes:
    """An array of ``value`` alone, with offsets of three bytes."""
    return b"\x0b\x01" + bytes(3) + len(value).to_bytes(3, "little") + value


def depth_of(nested: Any) -> int:
    depth = 0
    while nested is not None:
        (nested,) = nested
        depth += 1
    return depth
