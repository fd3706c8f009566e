"""Faults of geometries come back as those of variants do: the first one, one a row, or raised."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext import geo, variant
from pqext.core.base.errors import GeometryError
from reference import wkb as twin
from reference.effort import share

POINT = geo.from_points([1.0], [2.0])[0].as_py()
OPEN_RING = twin.encode(twin.Geometry(twin.POLYGON, 0, [[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]]))
FAULTY = {
    POINT[:7]: (5, "geo.wkb.bounded", "the geometry is truncated"),
    POINT + b"\0": (21, "geo.wkb.bounded", "bytes follow the end of the geometry"),
    b"\2" + POINT[1:]: (0, "geo.wkb.byte_order", "the byte order is neither 0 nor 1"),
    OPEN_RING: (9, "geo.wkb.rings", "a ring has fewer than four points or does not end where it begins"),
}


@settings(max_examples=share(0.5))
@given(st.lists(st.sampled_from([None, POINT, *FAULTY]), max_size=40), st.data())
@pytest.mark.spec("geo.wkb.bounded", "geo.wkb.byte_order", "geo.wkb.rings")
def test_each_invalid_row_is_reported_once(rows: list[bytes | None], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(rows)))
    padded = pa.array([POINT[:3], *rows[:cut]], pa.binary()).slice(1)
    array = pa.chunked_array([padded, pa.array(rows[cut:], pa.binary())])
    expected = [(row, *FAULTY[value]) for row, value in enumerate(rows) if value in FAULTY]
    table = geo.find_faults(array)
    assert [tuple(found.values()) for found in table.to_pylist()] == expected
    limit = data.draw(st.integers(0, 5))
    assert geo.find_faults(array, limit=limit).equals(table.slice(0, limit))
    first = geo.validate(array)
    assert (None if first is None else dataclasses.astuple(first)) == (expected[0] if expected else None)


def test_fault_is_raised_on_request_with_its_message() -> None:
    array = pa.array([POINT, None, POINT[:7]])
    fault = geo.validate(array)
    assert str(fault) == "row 2, byte 5: the geometry is truncated (geo.wkb.bounded)"
    with pytest.raises(GeometryError, match=r"^row 2: the geometry is truncated \(geo\.wkb\.bounded\)") as raised:
        geo.validate(array, on_fault="raise")
    assert (raised.value.row, raised.value.offset, raised.value.rule) == (2, 5, "geo.wkb.bounded")
    assert geo.validate(array[:2], on_fault="raise") is None


@pytest.mark.parametrize("arguments", [{"on_fault": "explode"}, {"on_fault": None}])
def test_invalid_arguments_are_rejected(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="on_fault must be 'return' or 'raise'"):
        geo.validate(pa.array([POINT]), **arguments)
    with pytest.raises(ValueError, match="limit must be 0 or more"):
        geo.find_faults(pa.array([POINT]), limit=-1)


def test_geometry_and_variant_validation_have_the_same_interface() -> None:
    ours, theirs = geo.find_faults(pa.array([], pa.binary())), variant.find_faults(variant.parse_json([]))
    assert set(ours.schema) <= set(theirs.schema)
    asked = inspect.signature(variant.validate).parameters
    assert asked["on_fault"].default == inspect.signature(geo.validate).parameters["on_fault"].default
    of_variants = {one.name for one in dataclasses.fields(variant.VariantFault)}
    assert {one.name for one in dataclasses.fields(geo.GeometryFault)} <= of_variants
