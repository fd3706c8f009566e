"""However a value is laid out, it is the same value: to every kernel, under every schema, and after a round trip."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.variant import Variant
from pqext.variant.shredding.schema import ShreddingSchema
from reference import variant_shred as shredding
from reference import variant_value as reference
from reference.variant_strategies import fewer, schemas


def column(metadata: bytes, value: bytes) -> pa.StructArray:
    return pa.array([{"metadata": metadata, "value": value}], variant.variant_type())


def exactly(value: reference.Value) -> Any:
    """The value so that equal ones are of the same types and bits, fields in the order of their names."""
    kind, data = value
    if kind == "object":
        return kind, [(name, exactly(data[name])) for name in sorted(data, key=str.encode)]
    if kind == "array":
        return kind, [exactly(child) for child in data]
    return kind, struct.pack("<d", data) if kind in ("double", "float") and data == data else repr(data)


def decoded(array: pa.Array) -> Any:
    row = array[0].as_py()
    return exactly(reference.decode(row["metadata"], row["value"]))


@given(reference.VALUES, reference.LAYOUTS, schemas())
@pytest.mark.spec(
    "variant.container.wider", "variant.object.values", "variant.header.reserved", "variant.metadata.reserved",
    "variant.short-string.same", "variant.container.layout", "shredding.reconstruct.algorithm",
)  # fmt: skip
def test_value_survives_shredding_by_its_own_types_in_every_layout(
    value: reference.Value, layout: reference.Layout, schema: ShreddingSchema
) -> None:
    array = column(*reference.encode(value, layout))
    assert variant.validate(array) is None
    shredded = variant.shred(array, schema, coerce="exact")
    assert variant.validate(shredded) is None
    assert decoded(variant.unshred(shredded, strict=True)) == exactly(value)
    equal = variant.unshred(variant.shred(array, schema), strict=True)[0].as_py()
    assert Variant(equal["value"], equal["metadata"]) == Variant(*reversed(reference.encode(value)))


@fewer
@given(reference.VALUES, reference.LAYOUTS, schemas())
def test_json_and_inferred_schema_do_not_depend_on_the_layout(
    value: reference.Value, layout: reference.Layout, schema: ShreddingSchema
) -> None:
    array, usual = column(*reference.encode(value, layout)), column(*reference.encode(value))
    text = variant.to_json(usual)
    assert variant.to_json(array).equals(text)
    assert variant.to_json(variant.shred(array, schema, coerce="exact")).equals(text)
    assert str(variant.infer_schema(array)) == str(variant.infer_schema(usual))


@fewer
@given(reference.VALUES, reference.LAYOUTS, st.sampled_from(reference.NAMES), st.integers(0, 3))
def test_path_returns_the_same_value_in_every_layout(
    value: reference.Value, layout: reference.Layout, name: str, index: int
) -> None:
    metadata, data = reference.encode(value, layout)
    kind, children = value
    wanted = children.get(name) if kind == "object" else None
    step = name.replace("\\", "\\\\").replace("'", "\\'")
    found = Variant(data, metadata).get(f"$['{step}']") if "\n" not in name else None
    if "\n" not in name:
        assert (found is None) == (wanted is None)
    if found is not None and wanted is not None:
        assert exactly(reference.decode(found.metadata, found.value)) == exactly(wanted)
    found = Variant(data, metadata).get(f"$[{index}]")
    if kind == "array" and index < len(children):
        assert found is not None
        assert exactly(reference.decode(found.metadata, found.value)) == exactly(children[index])


@pytest.mark.spec("variant.container.layout")
def test_container_consists_of_count_ids_offsets_and_values() -> None:
    # {"c": 3, "b": 2, "a": 1}: the ids in the order of the names, the values as they come.
    metadata = bytes.fromhex("01 03 00 01 02 03") + b"cba"
    found = Variant(bytes.fromhex("02 03 02 01 00 04 02 00 06 0c03 0c02 0c01"), metadata)
    assert list(found.items()) == [(name, Variant.from_python(n)) for name, n in (("a", 1), ("b", 2), ("c", 3))]
    wide = Variant(bytes.fromhex("46 03000000 02 01 00 0400 0200 0000 0600 0c03 0c02 0c01"), metadata)
    assert wide == found
    array = Variant(bytes.fromhex("03 02 00 02 03 0c07 00"), metadata)
    assert array.to_python() == [7, None]


@pytest.mark.spec("variant.decimal.implied")
def test_decimal_has_the_digits_of_its_number_at_any_width() -> None:
    forms = [b"\x20\x02" + struct.pack("<i", 150), b"\x24\x02" + struct.pack("<q", 150)]
    forms.append(b"\x28\x02" + (150).to_bytes(16, "little"))
    values = pa.array([{"metadata": b"\x11\0\0", "value": form} for form in forms], variant.variant_type())
    assert variant.validate(values) is None
    assert len({Variant(form, b"\x11\0\0") for form in forms}) == 1
    for ten_digits in (2**31 - 1, -(10**9)):
        wide = [{"metadata": b"\x11\0\0", "value": b"\x20\x02" + struct.pack("<i", ten_digits)}]
        assert variant.validate(pa.array(wide, variant.variant_type())) is not None
    shredded = variant.shred(values, "DECIMAL(3,2)")
    assert shredded.field("value").null_count == 3
    assert variant.shred(values, "DECIMAL(2,2)").field("value").null_count == 0


@pytest.mark.spec("shredding.array.residual", "shredding.object.residual")
def test_value_that_does_not_fit_a_typed_column_is_stored_as_residual() -> None:
    array = variant.parse_json(pa.array(['{"tags": ["x", 1, {"y": 2}], "n": "none"}', '{"n": 5}']))
    shredded = variant.shred(array, "tags ARRAY<STRING>, n INT")
    tags = shredded.field("typed_value").field("tags").field("typed_value")
    assert tags.values.field("typed_value").to_pylist() == ["x", None, None]
    held = [value and shredding.decode(value, ["n", "tags", "y"]) for value in tags.values.field("value").to_pylist()]
    assert [residual and residual.type for residual in held] == [None, "int8", "object"]
    n = shredded.field("typed_value").field("n")
    assert n.field("typed_value").to_pylist() == [None, 5]
    assert n.field("value").to_pylist() == [shredding.primitive("string", "none"), None]
