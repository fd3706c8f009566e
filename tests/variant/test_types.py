"""Variant arrays are known by their children's names, whatever their order, layout or wrapping."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pqext import variant
from pqext.variant import types

VALUES = [{"metadata": b"\x11\x00\x00", "value": b"\x0c\x05"}, None, {"metadata": b"\x11\x00\x00", "value": b"\x00"}]
TEXTS = ["5", None, "null"]
BINARY = pa.binary()


def array(kind: pa.DataType = BINARY, swapped: bool = False) -> pa.Array:
    fields = [pa.field("metadata", kind), pa.field("value", kind)]
    return pa.array(VALUES, pa.struct(fields[::-1] if swapped else fields))


class Wrapped(pa.ExtensionType):
    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "pqext.tests.wrapped")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Wrapped:
        return cls(storage)


def test_type_marks_its_metadata_child() -> None:
    metadata, value = variant.variant_type()
    assert (metadata.name, value.name) == ("metadata", "value")
    assert metadata.metadata == {b"pqext:variant": b"1"}
    assert not metadata.nullable


def test_field_has_the_canonical_extension_name() -> None:
    field = variant.variant_field("v", nullable=False)
    assert field.type == variant.variant_type()
    assert not field.nullable
    assert field.metadata[b"ARROW:extension:name"] == b"arrow.parquet.variant"
    assert types.is_marked(field)


def test_marks_are_found_on_field_child_and_extension_type() -> None:
    assert types.is_marked(pa.field("v", variant.variant_type()))
    assert types.is_marked(pa.field("v", pa.struct([types.metadata_field(), pa.field("typed_value", pa.int64())])))
    assert not types.is_marked(pa.field("v", array().type))
    assert not types.is_marked(pa.field("v", Wrapped(array().type)))


@pytest.mark.spec("variant.group.binary")
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int8(), pa.binary())]
)
def test_any_binary_layout_in_any_order_is_read_equally(kind: pa.DataType, swapped: bool) -> None:
    given = array(kind, swapped)
    assert variant.is_variant_type(given.type)
    assert variant.to_json(given).to_pylist() == TEXTS
    assert variant.validate(given) is None


def test_extension_arrays_and_chunks_are_unwrapped() -> None:
    wrapped = pa.ExtensionArray.from_storage(Wrapped(array().type), array())
    assert variant.to_json(wrapped).to_pylist() == TEXTS
    chunked = variant.to_json(pa.chunked_array([array(), array()[1:]]))
    assert isinstance(chunked, pa.ChunkedArray)
    assert chunked.to_pylist() == TEXTS + TEXTS[1:]
    assert variant.to_json(pa.chunked_array([], array().type)).to_pylist() == []


@pytest.mark.parametrize(("start", "length"), [(0, 0), (1, 2), (2, 1), (3, 0)])
def test_slices_are_read_at_their_offset(start: int, length: int) -> None:
    assert variant.to_json(array().slice(start, length)).to_pylist() == TEXTS[start : start + length]
    assert variant.validate(array().slice(start, length)) is None


def test_slices_of_children_are_read_at_their_offset() -> None:
    padded = array().field("value")
    shifted = pa.concat_arrays([pa.array([b"xx"]), pa.array([b"\x0c\x05", b"\x0c\x06"])]).slice(1)
    metadata = pa.array([b"", b"\x11\x00\x00", b"\x11\x00\x00"]).slice(1)
    joined = pa.StructArray.from_arrays([metadata, shifted], ["metadata", "value"])
    assert variant.to_json(joined).to_pylist() == ["5", "6"]
    assert len(padded) == 3


@pytest.mark.parametrize(
    "type",
    [
        pa.int64(),
        pa.struct([("metadata", pa.binary())]),
        pa.struct([("metadata", pa.binary()), ("value", pa.string())]),
        pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("more", pa.binary())]),
    ],
)
@pytest.mark.spec("variant.group.binary")
def test_other_types_are_rejected(type: pa.DataType) -> None:
    assert not variant.is_variant_type(type)
    with pytest.raises(TypeError, match="expected a variant array"):
        variant.to_json(pa.array([], type))
    with pytest.raises(TypeError):
        variant.validate(pa.array([], type))
    with pytest.raises(TypeError, match="expected a variant array"):
        variant.to_json([b""])


def test_shredded_and_unshredded_structs_are_distinguished() -> None:
    shredded = pa.struct([types.metadata_field(), pa.field("value", pa.binary()), pa.field("typed_value", pa.int64())])
    assert types.is_shredded_type(shredded)
    assert not variant.is_variant_type(shredded)
    assert not types.is_shredded_type(variant.variant_type())


def test_shredded_array_is_reconstructed_before_json_output() -> None:
    shredded = variant.shred(array(), "BIGINT")
    assert types.is_shredded_type(shredded.type)
    assert variant.to_json(shredded).to_pylist() == TEXTS


def test_missing_child_is_none() -> None:
    assert types.child(array(), "typed_value") is None
    assert types.child(array(pa.binary_view()), "metadata").type == pa.large_binary()


def test_public_names_are_listed_and_unknown_names_are_rejected() -> None:
    assert dir(variant) == variant.__all__
    assert variant.Variant is variant.Variant
    with pytest.raises(AttributeError, match="nothing_such"):
        variant.nothing_such  # noqa: B018
