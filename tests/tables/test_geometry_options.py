"""CRS and edges that ``geometry=`` chooses for tables: the metadata of a table states what its files contain."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import geo, tables
from pqext.core.base.errors import SchemaMismatchError

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
from deltalake import DeltaTable

from tests.tables.iceberg_tables import new_catalog

POINT = bytes.fromhex("0101000000000000000000f03f0000000000000040")
UNMARKED = pa.field("at", pa.binary())
CHOICES: list[tuple[Any, str, str]] = [
    ({"edges": "spherical"}, "OGC:CRS84", "spherical"), ("EPSG:3857", "EPSG:3857", "planar"),
    ({"crs": "EPSG:4326", "edges": "karney"}, "EPSG:4326", "karney"), ({"page_boxes": False}, "OGC:CRS84", "planar"),
]  # fmt: skip


def rows_of(field: pa.Field) -> pa.Table:
    return pa.table([pa.array([POINT])], schema=pa.schema([field]))


def nested(field: pa.Field) -> pa.Table:
    return pa.table([pa.array([{"at": POINT}])], schema=pa.schema([pa.field("s", pa.struct([field]))]))


def crs_and_edges(metadata: str | bytes) -> tuple[str, str]:
    marks = json.loads(metadata)
    return marks["crs"], marks.get("edges", "planar")


def files_of(folder: Path) -> set[str]:
    return {os.path.join(root, name) for root, _, names in os.walk(folder) for name in names}


@pytest.mark.parametrize(
    ("choice", "crs", "edges", "geoparquet"),
    [
        (*choice, version)
        for choice in CHOICES
        for version in (None, True, "1.1")
        if version != "1.1" or choice[2] != "karney"  # GeoParquet 1.1 has planar and spherical edges
    ],
)
@pytest.mark.parametrize("field", [UNMARKED, geo.geometry_field("at")])
@pytest.mark.parametrize("write", [tables.append, tables.overwrite])
def test_table_has_the_crs_and_edges_of_its_files(
    tmp_path: Path, choice: Any, crs: str, edges: str, field: pa.Field, geoparquet: Any, write: Any
) -> None:
    name = f"delta:{tmp_path / 't'}"
    write(name, rows_of(field), geometry={"at": choice}, geoparquet=geoparquet)
    table = DeltaTable(tmp_path / "t")
    (stated,) = (member.metadata["geoarrow.wkb"] for member in table.schema().fields if member.name == "at")
    assert crs_and_edges(stated) == (crs, edges)
    scan = pqext.scan(name)
    assert crs_and_edges(scan.schema.field("at").metadata[b"ARROW:extension:metadata"]) == (crs, edges)
    assert scan.to_table()["at"].to_pylist() == pa.table(table.scan())["at"].to_pylist() == [POINT]
    for rows in (rows_of(UNMARKED), rows_of(geo.geometry_field("at", crs, edges))):
        tables.append(name, rows)
        tables.append(name, rows, geometry={"at": choice})
    assert pqext.scan(name).filter(pqext.col("at").intersects((0, 0, 3, 3))).count() == 5


@pytest.mark.parametrize("choice", [{"edges": "spherical"}, "EPSG:3857", {"crs": "EPSG:4267", "edges": "thomas"}])
@pytest.mark.parametrize("field", [UNMARKED, geo.geometry_field("at", 4326)])
@pytest.mark.parametrize("write", [tables.append, tables.overwrite])
def test_other_crs_or_edges_than_those_of_the_table_are_an_error(
    tmp_path: Path, choice: Any, field: pa.Field, write: Any
) -> None:
    name = f"delta:{tmp_path / 't'}"
    tables.append(name, rows_of(geo.geometry_field("at", 4326)))
    before = files_of(tmp_path)
    with pytest.raises(SchemaMismatchError, match=r"CRS EPSG:4326 and planar edges in the table \[.*\]; transform it"):
        write(name, rows_of(field), geometry={"at": choice})
    assert files_of(tmp_path) == before
    assert pqext.scan(name).to_table()["at"].to_pylist() == [POINT]


def test_nested_geometries_are_compared_with_the_table(tmp_path: Path) -> None:
    name = f"delta:{tmp_path / 't'}"
    tables.append(name, nested(geo.geometry_field("at")), geometry={"s.at": "EPSG:3857"})
    (member,) = json.loads(DeltaTable(tmp_path / "t").schema().to_json())["fields"]
    assert crs_and_edges(member["type"]["fields"][0]["metadata"]["geoarrow.wkb"]) == ("EPSG:3857", "planar")
    tables.append(name, nested(UNMARKED))
    for rows, options in (
        (nested(geo.geometry_field("at", 4326)), {}), (nested(UNMARKED), {"geometry": {"s.at": {"crs": "EPSG:4326"}}}),
    ):
        with pytest.raises(SchemaMismatchError, match=r"s\.at has CRS EPSG:4326 .* but CRS EPSG:3857 and planar"):
            tables.append(name, rows, **options)
    assert pqext.scan(name).to_table()["s"].to_pylist() == [{"at": POINT}] * 2


def test_covering_columns_are_an_error_in_iceberg_tables(tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", pa.schema([UNMARKED]))
    tables.append(table, rows_of(UNMARKED), geometry={"at": "EPSG:3857"})
    before = files_of(tmp_path)
    for options in ({"geoparquet": "1.1", "geometry": {"at": 4326}}, {"geometry": {"at": {"covering": True}}}):
        with pytest.raises(pqext.UnsupportedError, match="covering column 'at_bbox' is not a column of the Iceberg"):
            tables.append(table, rows_of(UNMARKED), **options)
    assert files_of(tmp_path) == before
    assert table.scan().to_arrow()["at"].to_pylist() == [POINT]
    (file,) = (path for path in before if path.endswith(".parquet"))
    assert pq.read_schema(file).names == ["at"]
