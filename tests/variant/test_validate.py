"""Validation: what every rule refuses, where, and that nothing else is refused."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import ParquetError
from pqext.variant import Variant, faults
from pqext.variant.kernels.binary import Fault
from reference import variant_value as reference

EMPTY = b"\x11\x00\x00"
AB = bytes.fromhex("1102000102") + b"ab"
BA = bytes.fromhex("0102000102") + b"ba"
AA = bytes.fromhex("0102000102") + b"aa"


ROOM = b"\x21readable"
"""A value behind others, so that these may be read in wider steps."""


def column(*pairs: tuple[bytes, bytes] | None) -> pa.Array:
    """A variant array of (metadata, value) pairs."""
    return pa.array([p and {"metadata": p[0], "value": p[1]} for p in pairs], variant.variant_type())


@given(st.lists(st.tuples(reference.VALUES, reference.LAYOUTS), max_size=4))
@pytest.mark.spec(
    "variant.container.wider", "variant.object.values", "variant.header.reserved", "variant.metadata.reserved"
)
def test_every_legal_layout_is_valid(drawn: list[tuple[reference.Value, reference.Layout]]) -> None:
    rows = [reference.encode(value, layout) for value, layout in drawn]
    assert variant.validate(column(None, *rows)) is None
    assert variant.validate(column(*rows, (EMPTY, ROOM))) is None


RULES = [
    ("variant.metadata.version", "metadata", 0, b"\x12\x00\x00", b"\x00"),
    ("variant.metadata.layout", "metadata", 0, b"", b"\x00"),
    ("variant.metadata.layout", "metadata", 0, b"\x11\x01\x00", b"\x00"),
    ("variant.metadata.layout", "metadata", 0, b"\x11\x01\x00\x02a", b"\x00"),
    ("variant.metadata.offsets", "metadata", 2, b"\x11\x00\x01a", b"\x00"),
    ("variant.metadata.offsets", "metadata", 4, b"\x01\x02\x00\x02\x01ab", b"\x00"),
    ("variant.metadata.offsets", "metadata", 3, b"\x11\x01\x00\x01ab", b"\x00"),
    ("variant.metadata.sorted", "metadata", 6, b"\x11\x02\x00\x01\x02ba", b"\x00"),
    ("variant.metadata.sorted", "metadata", 6, b"\x11\x02\x00\x01\x02aa", b"\x00"),
    ("variant.utf8", "metadata", 5, b"\x11\x01\x00\x02a\xff", b"\x00"),
    ("variant.utf8", "metadata", 5, b"\x01\x02\x00\x01\x02\xc3\xa9", b"\x00"),
    ("variant.value.layout", "value", 0, EMPTY, b""),
    ("variant.value.layout", "value", 0, EMPTY, b"\x0c"),
    ("variant.value.layout", "value", 0, EMPTY, b"\x40\x05\x00\x00\x00abcd"),
    ("variant.value.layout", "value", 0, EMPTY, b"\x0dab"),
    ("variant.value.layout", "value", 1, EMPTY, b"\x00\x00"),
    ("variant.value.layout", "value", 0, EMPTY, b"\x03"),
    ("variant.value.layout", "value", 0, EMPTY, b"\x03\x01\x00"),
    ("variant.value.layout", "value", 0, EMPTY, b"\x03\x01\x00\x02\x00"),
    ("variant.utf8", "value", 2, EMPTY, b"\x09a\xff"),
    ("variant.utf8", "value", 5, EMPTY, b"\x40\x01\x00\x00\x00\xc3"),
    ("variant.decimal.scale", "value", 0, EMPTY, b"\x20\x27\x00\x00\x00\x00"),
    ("variant.decimal.precision", "value", 0, EMPTY, b"\x20\x00" + struct.pack("<i", 10**9)),
    ("variant.decimal.precision", "value", 0, EMPTY, b"\x20\x00" + struct.pack("<i", -(10**9))),
    ("variant.decimal.precision", "value", 0, EMPTY, b"\x24\x00" + struct.pack("<q", 10**18)),
    ("variant.decimal.precision", "value", 0, EMPTY, b"\x28\x00" + (10**38).to_bytes(16, "little")),
    ("variant.decimal.precision", "value", 0, EMPTY, b"\x28\x00" + (-(10**38)).to_bytes(16, "little", signed=True)),
    ("variant.time.range", "value", 0, EMPTY, b"\x44" + struct.pack("<q", 86_400_000_000)),
    ("variant.time.range", "value", 0, EMPTY, b"\x44" + struct.pack("<q", -1)),
    ("variant.object.field-id", "value", 3, AB, b"\x02\x02\x00\x02\x00\x01\x02\x00\x00"),
    ("variant.object.order", "value", 3, AB, b"\x02\x02\x01\x00\x00\x01\x02\x00\x00"),
    ("variant.object.order", "value", 3, BA, b"\x02\x02\x00\x01\x00\x01\x02\x00\x00"),
    ("variant.object.unique", "value", 3, AB, b"\x02\x02\x00\x00\x00\x01\x02\x00\x00"),
    ("variant.object.unique", "value", 3, AA, b"\x02\x02\x00\x01\x00\x01\x02\x00\x00"),
    ("variant.container.offsets", "value", 2, EMPTY, b"\x03\x01\x01\x01\x00"),
    ("variant.container.extent", "value", 4, EMPTY, b"\x03\x01\x00\x02\x00\x00"),
    ("variant.container.extent", "value", 3, EMPTY, b"\x03\x00\x01\x00"),
    ("variant.container.extent", "value", 3, EMPTY, b"\x03\x02\x00\x00\x02\x00\x00"),
    ("variant.container.extent", "value", 3, EMPTY, b"\x03\x02\x01\x00\x02\x00\x00"),
    ("variant.container.extent", "value", 7, AB, b"\x02\x02\x00\x01\x01\x01\x02\x00\x00"),
    ("variant.container.extent", "value", 7, AB, b"\x02\x02\x00\x01\x00\x00\x02\x0c\x00"),
]


@pytest.mark.spec(
    "variant.metadata.version", "variant.metadata.layout", "variant.metadata.offsets", "variant.metadata.sorted",
    "variant.utf8", "variant.value.layout", "variant.decimal.scale", "variant.decimal.precision", "variant.time.range",
    "variant.object.field-id", "variant.object.order", "variant.object.unique", "variant.container.offsets",
    "variant.container.extent",
)  # fmt: skip
@pytest.mark.parametrize(("rule", "part", "offset", "metadata", "value"), RULES)
def test_violated_rule_is_reported_with_its_location(
    rule: str, part: str, offset: int, metadata: bytes, value: bytes
) -> None:
    with pytest.raises(reference.Broken):
        reference.decode(metadata, value)
    fault = variant.validate(column((EMPTY, b"\x00"), None, (metadata, value), (b"", b"")))
    assert fault is not None
    assert (fault.row, fault.rule, fault.part) == (2, rule, part)
    assert str(fault).startswith(f"row 2, {part} byte {fault.offset}: ")
    if rule not in (
        "variant.metadata.layout",
        "variant.metadata.offsets",
        "variant.object.order",
        "variant.object.unique",
    ):
        assert fault.offset == offset or rule == "variant.container.extent"


@pytest.mark.spec("variant.group.metadata", "variant.group.value")
def test_metadata_and_value_are_required() -> None:
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    for row, rule in (
        ({"metadata": None, "value": b"\0"}, "variant.group.metadata"),
        ({"metadata": EMPTY, "value": None}, "variant.group.value"),
    ):
        fault = variant.validate(pa.array([row], kind))
        assert fault is not None
        assert fault.rule == rule


@pytest.mark.spec("variant.version.new-types")
def test_types_added_later_are_valid_unless_rejected_by_option() -> None:
    later = b"\x03\x03\x00\x02\x05\x07" + b"\x0c\x01" + b"\x54xx" + b"\x0c\x02"
    given = column((EMPTY, later), (EMPTY, b"\x54anything"))
    assert variant.validate(given) is None
    fault = variant.validate(given, allow_unknown=False)
    assert fault is not None
    assert (fault.row, fault.rule) == (0, "variant.version.new-types")


def test_first_fault_counts_rows_over_chunks() -> None:
    good, bad = column((EMPTY, b"\x00")), column((EMPTY, b"\x0c"))
    fault = variant.validate(pa.chunked_array([good, good, bad]))
    assert fault is not None
    assert fault.row == 2


def test_depth_is_bounded() -> None:
    array = variant.parse_json(pa.array(["[[[[1]]]]"]))
    assert variant.validate(array, max_depth=4) is None
    fault = variant.validate(array, max_depth=3)
    assert fault is not None
    assert (fault.message, fault.offset) == ("the value is nested too deeply", 12)


@given(reference.VALUES, reference.LAYOUTS, st.data())
def test_corrupt_bytes_are_classified_like_in_the_reference(
    value: reference.Value, layout: reference.Layout, data: st.DataObject
) -> None:
    metadata, encoded = reference.encode(value, layout)
    parts = [bytearray(metadata), bytearray(encoded)]
    for _ in range(data.draw(st.integers(1, 2))):
        part = parts[data.draw(st.integers(0, 1))]
        if part:
            part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
    damaged = (bytes(parts[0]), bytes(parts[1]))
    try:
        reference.decode(*damaged)
        broken = False
    except reference.Broken:
        broken = True
    assert (variant.validate(column(damaged), allow_unknown=False) is not None) == broken
    # Values with others behind them may be read in wider steps, and are judged in another way first.
    found = variant.validate(column((EMPTY, ROOM), damaged, (EMPTY, ROOM)), allow_unknown=False)
    assert (found is not None) == broken
    assert found is None or found.row == 1


SAMPLES: dict[str, Any] = {
    "object": '{"id":1,"name":"é","tags":["a",null,{"x":2.5}],"nested":{"deep":{"deeper":[true,false]}},"big":1e300}',
    "text": '"a string of more than sixty-three bytes, so that it takes the long form with a length"',
    "numbers": "[1,300,70000,5000000000,1.5,12345678901.25,123456789012345678901234567890,-0.0,1e-7]",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_changed_or_truncated_byte_returns_a_value_or_a_typed_error(name: str) -> None:
    v = Variant.from_json(SAMPLES[name])
    damaged: list[tuple[bytes, bytes]] = []
    for which in (0, 1):
        whole = (v.metadata, v.value)[which]
        for at in range(len(whole)):
            changed = [whole[:at]]
            changed += [
                whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :] for bits in (1, 2, 4, 8, 16, 64, 128, 255)
            ]
            damaged += [(new, v.value) if which == 0 else (v.metadata, new) for new in changed]
    for metadata, value in damaged:
        array = column((metadata, value))
        fault = variant.validate(array, allow_unknown=False)
        try:
            text = variant.to_json(array)[0].as_py()
        except ParquetError:
            assert fault is not None
        else:
            assert isinstance(text, str)
        for read in (
            Variant.to_python,
            hash,
            repr,
            lambda x: x.get("$.nested.deep.deeper[1]"),
            lambda x: x.get("$[3]"),
        ):
            try:
                read(Variant(value, metadata))
            except ParquetError:
                assert fault is not None


def test_every_kernel_fault_has_a_message_and_an_error() -> None:
    for fault in Fault:
        assert isinstance(
            faults.error(fault, row=1, offset=2), MemoryError if fault == Fault.FAULT_MEMORY else ParquetError
        )


def test_threads_find_the_same_first_fault() -> None:
    good = variant.parse_json(pa.array([f'{{"a": {n}, "b": ["x", {n}]}}' for n in range(9000)]))
    broken = [(5000, b"\xff"), (8999, b"\xff")]
    values = good.field("value").to_pylist()
    for row, value in broken:
        values[row] = value
    bad = pa.StructArray.from_arrays([good.field("metadata"), pa.array(values, pa.binary())], fields=list(good.type))
    for array in (bad, pa.chunked_array([bad.slice(0, 4000), bad.slice(4000)]), bad.slice(10)):
        alone = variant.validate(array)
        assert alone is not None
        assert alone.row == 5000 - (len(array) == 8990) * 10
        assert variant.validate(array, threads=2) == alone == variant.validate(array, threads=0)
    for threads in (1, 2):
        assert variant.validate(good, threads=threads) is None
        assert variant.validate(variant.shred(good, "a BIGINT"), threads=threads) is None
        assert variant.validate(good.slice(0, 0), threads=threads) is None
    with pytest.raises(ValueError, match="threads"):
        variant.validate(good, threads=-1)
