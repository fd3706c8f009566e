"""VARIANT and geometry columns keep their types through pandas: pyarrow and pqext see them in the file again."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import geo, variant

DOCUMENTS = [{"a": 1}, None, [1, "x"]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fields = [
        pa.field("id", pa.int64()), variant.variant_field("v"), geo.geometry_field("g", "EPSG:3857"),
        geo.geometry_field("s", 4326, "spherical"),
    ]  # fmt: skip
    values = variant.parse_json([json.dumps(document) for document in DOCUMENTS])
    points = geo.from_points([1.0, None, 3.0], [4.0, None, 6.0])
    table = pa.table([pa.array(range(3)), values, points, points], pa.schema(fields))
    pqext.write_table(table, tmp_path / "f.parquet")
    return tmp_path / "f.parquet"


def types(frame: pandas.DataFrame) -> list[str]:
    """What Parquet states of the columns that pqext writes of a frame."""
    pqext.write_table(frame, sink := io.BytesIO())
    names = [node.logical_name for node in pqext.open(sink).schema.root.children]
    found = pq.ParquetFile(sink).schema
    stated = [found.column(place).logical_type.type for place in range(len(found.names))]
    assert [name for name in stated if name.startswith("GEO")] == [name for name in names if name.startswith("GEO")]
    return names


def test_types_survive_a_round_trip(path: Path) -> None:
    frame = pqext.scan(path).to_pandas()
    assert types(frame) == ["", "VARIANT", "GEOMETRY", "GEOGRAPHY"]
    pqext.write_table(frame, sink := io.BytesIO())
    before, after = pqext.read_table(path), pqext.read_table(sink)
    for name in ("g", "s"):
        assert after.schema.field(name).metadata == before.schema.field(name).metadata
        assert after[name].to_pylist() == before[name].to_pylist()
    assert variant.to_python(after["v"]) == variant.to_python(before["v"]) == DOCUMENTS


@pytest.mark.parametrize("change", [
    lambda frame: frame[frame["id"] > 0], lambda frame: frame.sort_values("id", ascending=False),
    lambda frame: frame.assign(other=1).drop(columns="other"), lambda frame: frame.copy(),
    lambda frame: frame.reset_index(drop=True),
])  # fmt: skip
def test_types_survive_pandas_operations(path: Path, change: Any) -> None:
    frame = change(pqext.scan(path).to_pandas())
    assert types(frame)[:4] == ["", "VARIANT", "GEOMETRY", "GEOGRAPHY"]  # perhaps with the index after them


def test_columns_of_other_values_have_no_extension_type(path: Path) -> None:
    frame = pqext.scan(path).to_pandas()
    assert types(frame.assign(g="text", v=1)) == ["", "", "STRING", "GEOGRAPHY"]
    assert types(frame.assign(g=None, v=None)) == ["", "VARIANT", "GEOMETRY", "GEOGRAPHY"]
    assert types(frame.rename(columns={"g": "h"})) == ["", "VARIANT", "", "GEOGRAPHY"]
    assert types(pqext.scan(path).to_pandas(variants="json", geometry="wkt")) == ["", "STRING", "STRING", "STRING"]


def test_attributes_are_json_in_the_pandas_writer(path: Path) -> None:
    frame = pqext.scan(path).to_pandas()
    frame[["id", "g"]].to_parquet(sink := io.BytesIO())
    assert pandas.read_parquet(sink).attrs == frame.attrs
    assert types(pandas.read_parquet(sink)) == ["", "GEOMETRY"]


@pytest.mark.parametrize("attributes", [None, 1, {"g": 1}, {"g": ["geoarrow.wkb"]}, {"g": [1, 2]}])
def test_attributes_of_other_libraries_are_ignored(attributes: Any) -> None:
    frame = pandas.DataFrame({"g": [b"no geometry"]})
    frame.attrs["pqext:fields"] = attributes
    assert types(frame) == [""]
