"""GeoParquet metadata that comes with a table tells of no column that the table has lost."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import geo

POINTS = geo.from_points([1.0, 2.0], [3.0, 4.0])
SCHEMA = pa.schema([pa.field("id", pa.int64()), geo.geometry_field("g"), geo.geometry_field("h")])


def whole() -> pa.Table:
    sink = io.BytesIO()
    table = pa.table([pa.array([0, 1]), POINTS, POINTS], SCHEMA)
    pqext.write_table(table, sink, geoparquet=True, geometry={"g": {"covering": True}})
    return pqext.read_table(sink.getvalue())


def told(table: pa.Table, **options: Any) -> Any:
    sink = io.BytesIO()
    pqext.write_table(table, sink, **options)
    pairs = {pair.key: pair.value for pair in pqext.open(sink.getvalue()).metadata.key_value_metadata or ()}
    return json.loads(pairs["geo"]) if "geo" in pairs else None


@pytest.mark.spec("geoparquet.other_rows")
def test_columns_that_are_gone_are_not_told_of() -> None:
    table = whole()
    assert told(table)["primary_column"] == "g"
    assert told(table)["columns"]["g"]["covering"]["bbox"]["xmin"] == ["g_bbox", "xmin"]
    without = told(table.drop_columns(["g"]))
    assert (without["primary_column"], list(without["columns"])) == ("h", ["h"])
    assert told(table.select(["id"])) is None
    renamed = table.rename_columns(["id", "a", "b", "c"])
    assert told(renamed, geoparquet=False) is None
    assert told(renamed)["columns"].keys() == {"a", "c"}
    assert "covering" not in told(renamed)["columns"]["a"]


@pytest.mark.spec("geoparquet.other_rows")
def test_coverings_that_are_gone_are_not_told_of() -> None:
    table = whole()
    without = told(table.drop_columns(["g_bbox"]))
    assert list(without["columns"]) == ["g", "h"]
    assert "covering" not in without["columns"]["g"]
    boxes = table["g_bbox"].combine_chunks()
    less = pa.StructArray.from_arrays([boxes.field("xmin")], ["xmin"])
    at = table.schema.get_field_index("g_bbox")
    assert "covering" not in told(table.set_column(at, "g_bbox", less))["columns"]["g"]
