"""Results with VARIANT values as JSON or Python objects, and geometries as WKT or shapely's, at any depth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext import geo, variant
from pqext.dataset.presentation.columns import Formats
from pqext.dataset.presentation.frames import objects, to_pandas

DOCUMENTS = [{"n": 1.5, "tags": ["a"]}, 'te"xt', None, [1, 2]]
POINTS = [shapely.Point(n, -n) for n in range(4)]
LISTS = [[0, 1], None, [], [2, 3]]
"""Places of the elements of lists."""


def nested_table() -> pa.Table:
    """Variants and geometries as columns, and within a struct, lists, maps and both layouts of lists."""
    values = variant.parse_json([json.dumps(document) for document in DOCUMENTS])
    points = geo.from_shapely(POINTS).storage
    v, g = variant.variant_field, geo.geometry_field
    offsets, mask = pa.array([0, 2, 2, 2, 4], pa.int32()), pa.array([False, True, False, False])
    struct = pa.StructArray.from_arrays([values, points], fields=[v("v"), g("g")], mask=mask)
    lists = pa.ListArray.from_arrays(offsets, struct, type=pa.list_(pa.field("element", struct.type)), mask=mask)
    large = pa.LargeListArray.from_arrays(offsets.cast(pa.int64()), points, type=pa.large_list(g("element")))
    keys, kind = pa.array(["a", "b", "c", "d"]), pa.map_(pa.string(), v("value"))
    maps = pa.MapArray.from_arrays(offsets, keys, values, type=kind)
    columns = {"id": pa.array(range(4)), "s": struct, "l": lists, "big": large, "m": maps}
    fields = [pa.field(name, column.type) for name, column in columns.items()]
    return pa.table([values, points, *columns.values()], schema=pa.schema([v("v"), g("g"), *fields]))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("presentation") / "nested.parquet"
    pqext.write_table(nested_table(), place)
    return place


def expected_rows(documents: list[Any], points: list[Any]) -> list[dict[str, Any]]:
    structs = [{"v": documents[0], "g": points[0]}, None, *({"v": documents[n], "g": points[n]} for n in (2, 3))]
    return [
        {
            "v": documents[row], "g": points[row], "id": row, "s": structs[row],
            "l": None if row == 1 else [structs[at] for at in LISTS[row] or []],
            "big": [points[at] for at in LISTS[row] or []],
            "m": [("abcd"[at], documents[at]) for at in LISTS[row] or []],
        }
        for row in range(4)
    ]


WKT = [shapely.to_wkt(point, trim=True) for point in POINTS]
JSON = ['{"n":1.5,"tags":["a"]}', '"te\\"xt"', "null", "[1,2]"]


def test_table_contains_json_and_wkt_at_any_depth(path: Path) -> None:
    scan = pqext.scan(path)
    found = scan.to_table(variants="json", geometry="wkt")
    assert found.to_pylist() == expected_rows(JSON, WKT)
    assert found.schema.field("v").type == found.schema.field("s").type.field("g").type == pa.string()
    assert all(field.metadata is None or b"ARROW:extension:name" not in field.metadata for field in found.schema)
    assert scan.head().equals(found)
    assert scan.head(2).num_rows == 2
    assert scan.head(variants="binary", geometry="wkb").equals(scan.to_table())
    assert scan.limit(3).to_table(variants="json").to_pylist()[2]["g"] == shapely.to_wkb(POINTS[2])


def test_pandas_contains_python_and_shapely_objects_at_any_depth(path: Path) -> None:
    frame = pqext.scan(path).to_pandas(variants="python", geometry="shapely")
    assert frame.to_dict("records") == expected_rows(DOCUMENTS, POINTS)
    assert frame["id"].dtype == "int64"
    text = pqext.scan(path).to_pandas(variants="json", geometry="wkt")
    assert text["v"].tolist() == JSON
    assert text["g"].tolist() == WKT
    mixed = pqext.scan(path).select("v", "s").to_pandas(variants="python")
    assert mixed["s"].tolist()[0] == {"v": DOCUMENTS[0], "g": shapely.to_wkb(POINTS[0])}
    assert isinstance(pqext.scan(path).to_pandas()["v"][0], dict)  # of the bytes of metadata and value


def test_polars_contains_text_and_objects(path: Path) -> None:
    scan = pqext.scan(path)
    frame = scan.to_polars(variants="json", geometry="wkt")
    assert frame["v"].to_list() == JSON
    assert frame["s"].to_list()[0] == {"v": JSON[0], "g": WKT[0]}
    made = scan.to_polars(variants="python", geometry="shapely")
    assert made["g"].dtype == pl.Object
    assert made["v"].to_list() == DOCUMENTS
    assert made["g"].to_list() == POINTS
    assert made["id"].to_list() == [0, 1, 2, 3]


def test_lazy_frame_filters_by_the_displayed_text(path: Path) -> None:
    lazy = pqext.scan(path).to_polars(lazy=True, variants="json", geometry="wkt")
    assert lazy.filter(pl.col("v") == "[1,2]").select("id").collect()["id"].to_list() == [3]
    assert lazy.filter((pl.col("g") == "POINT (1 -1)") & (pl.col("id") > 0)).collect()["v"].to_list() == [JSON[1]]
    with pytest.raises(ValueError, match="lazy=False"):
        pqext.scan(path).to_polars(lazy=True, variants="python")


def test_shredded_columns_have_the_same_text(path: Path, tmp_path: Path) -> None:
    place = tmp_path / "shredded.parquet"
    pqext.write_table(nested_table(), place, shredding={"v": "n DOUBLE"})
    scan = pqext.scan(place, shredded=True)
    assert scan.head().to_pylist() == pqext.scan(path).head().to_pylist()
    assert scan.to_pandas(variants="python", geometry="shapely").to_dict("records") == expected_rows(DOCUMENTS, POINTS)


def test_duplicate_columns_preserve_their_positions() -> None:
    values = variant.parse_json(["1", "2"])
    schema = pa.schema([variant.variant_field("a"), pa.field("a", pa.int64()), variant.variant_field("a")])
    table = pa.table([values, pa.array([3, 4]), values.slice(0)], schema=schema)
    frame = to_pandas(table, Formats("python"), {})
    assert frame.values.tolist() == [[1, 3, 1], [2, 4, 2]]
    assert isinstance(frame, pd.DataFrame)


@pytest.mark.parametrize(
    ("formats", "message"),
    [
        ({"variants": "text"}, "variants must be 'binary', 'json' or 'python', not 'text'"),
        ({"geometry": "geojson"}, "geometry must be 'wkb', 'wkt' or 'shapely', not 'geojson'"),
        ({"variants": "python"}, "variants='python' creates Python objects, which Arrow cannot represent"),
        ({"geometry": "shapely"}, "geometry='shapely' creates Python objects, which Arrow cannot represent"),
    ],
)
def test_unsupported_table_formats_are_errors(path: Path, formats: Any, message: str) -> None:
    for method in (pqext.scan(path).to_table, pqext.scan(path).head):
        with pytest.raises(ValueError, match=message):
            method(**formats)


def test_wkt_removes_the_geoparquet_metadata(tmp_path: Path) -> None:
    table = pa.table({"g": geo.from_shapely(POINTS)})
    pqext.write_table(table, tmp_path / "g.parquet", geometry={"g": "OGC:CRS84"}, geoparquet=True)
    found = pqext.scan(tmp_path / "g.parquet").to_table(geometry="wkt")
    assert b"geo" not in (found.schema.metadata or {})
    assert found["g"].to_pylist() == WKT


LISTS_OF_NUMBERS = st.lists(st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3), min_size=3, max_size=8)


@given(LISTS_OF_NUMBERS, st.integers(0, 2))
def test_slices_are_converted_by_their_rows(values: list[Any], start: int) -> None:
    flat = [n for value in values for n in value or []]
    elements = variant.parse_json([None if n is None else json.dumps({"n": n}) for n in flat])
    ends = [0]
    for value in values:
        ends.append(ends[-1] + len(value or []))
    mask = pa.array([value is None for value in values])
    field = variant.variant_field("element")
    array = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), elements, type=pa.list_(field), mask=mask)
    part = array.slice(start)
    column = pa.field("a", part.type)
    table = pa.table([part], schema=pa.schema([column]))
    expected = [None if row is None else [None if n is None else {"n": n} for n in row] for row in values[start:]]
    assert objects(part, column, Formats("python")) == expected
    text = Formats("json").convert_table(table)["a"].to_pylist()
    assert [None if row is None else [cell and json.loads(cell) for cell in row] for row in text] == expected


def test_notebook_shows_json_and_wkt(path: Path) -> None:
    html = pqext.scan(path).select("v", "g")._repr_html_()
    assert "{&quot;n&quot;:1.5,&quot;tags&quot;:[&quot;a&quot;]}" in html
    assert "POINT (1 -1)" in html
    assert "POINT (1 -1)" not in pqext.scan(path, ["g"], "id = 0")._repr_html_()
    assert "POINT (3 -3)" not in pqext.scan(path, ["g"]).limit(2)._repr_html_()
    assert "POINT" not in pqext.scan(path, ["g"]).limit(0)._repr_html_().partition("<details>")[0]
