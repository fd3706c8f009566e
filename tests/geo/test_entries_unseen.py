"""What no row reaches, below nulls and beside slices, need not be a geometry."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
import shapely

import pqext
from pqext import geo


@pytest.mark.spec("geo.wkb.iso")
def test_values_below_null_structs_need_not_be_geometries() -> None:
    point = shapely.to_wkb(shapely.Point(1, 2))
    values = [None, {"g": point}, {"g": None}]
    table = pa.table({"s": pa.array(values), "l": pa.array([[None, {"g": point}], None, []])})
    assert table["s"].chunk(0).field(0)[0].as_py() == b""
    sink = io.BytesIO()
    pqext.write_table(table, sink, geometry={"s.g": {}, "l.list.element.g": {}})
    found = pqext.read_table(sink.getvalue())
    assert found["s"].to_pylist() == values
    assert found["l"].to_pylist() == table["l"].to_pylist()


@pytest.mark.spec("geo.wkb.iso")
def test_slice_of_lists_is_written_without_its_surroundings() -> None:
    point = shapely.to_wkb(shapely.Point(1, 2))
    lists = pa.array([[b"none"], [point, None], [], [point]])[1:]
    maps = pa.array([[("a", b"none")], [("b", point)], [], []], pa.map_(pa.string(), pa.binary()))[1:]
    sink = io.BytesIO()
    table = pa.table({"l": lists, "m": maps})
    pqext.write_table(table, sink, geometry={"l.list.element": {}, "m.key_value.value": {}}, row_group_rows=2)
    found = pqext.read_table(sink.getvalue())
    assert found["l"].to_pylist() == lists.to_pylist()
    assert found["m"].to_pylist() == maps.to_pylist()


@pytest.mark.spec("geo.wkb.iso")
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("type", [pa.binary(), pa.binary_view()], ids=str)
def test_values_below_null_lists_need_not_be_geometries(nullable: bool, type: pa.DataType) -> None:
    one, other = (shapely.to_wkb(shapely.Point(x, 2)) for x in (1, 3))
    values = pa.array([one, b"none", other], type)
    field = geo.geometry_field("g").with_type(type).with_nullable(nullable)
    null, ends = pa.array([False, True, False]), pa.array([0, 1, 2, 3], pa.int32())
    table = pa.table({
        "s": pa.StructArray.from_arrays([values], fields=[field], mask=null),
        "l": pa.ListArray.from_arrays(ends, values, pa.list_(field), mask=null),
        "f": pa.FixedSizeListArray.from_arrays(values, type=pa.list_(field, 1), mask=null),
        "m": pa.MapArray.from_arrays(ends, ends[:3], values, pa.map_(pa.int32(), field), mask=null),
    })
    sink = io.BytesIO()
    pqext.write_table(table, sink)
    found = pqext.read_table(sink.getvalue())
    assert found["s"].to_pylist() == [{"g": one}, None, {"g": other}]
    assert found["l"].to_pylist() == found["f"].to_pylist() == [[one], None, [other]]
    assert found["m"].to_pylist() == [[(0, one)], None, [(2, other)]]
    reached = pa.StructArray.from_arrays([pa.array([one, None], type)], fields=[field.with_nullable(False)])
    with pytest.raises(ValueError, match="not nullable but contains a null"):
        pqext.write_table(pa.table({"s": reached}), io.BytesIO())
