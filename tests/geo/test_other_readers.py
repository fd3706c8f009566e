"""What other libraries read of files with geometries: the table of docs/how-to/geoparquet.md is computed here."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import geopandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest
import shapely

import pqext
from pqext import geo

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "geoparquet.md"
SHAPES = [shapely.Point(10, 20), shapely.box(30, 40, 50, 60), None]
FILES: dict[str, dict[str, Any]] = {
    "GEOMETRY": {"geometry": {"g": "OGC:CRS84"}},
    "GEOMETRY, EPSG:3857": {"geometry": {"g": "EPSG:3857"}},
    "GEOGRAPHY": {"geometry": {"g": {"edges": "spherical"}}},
    "GEOGRAPHY, karney": {"geometry": {"g": {"edges": "karney"}}},
    'GEOMETRY, EPSG:3857, `geoparquet="1.1"`': {"geometry": {"g": "EPSG:3857"}, "geoparquet": "1.1"},
    'GEOGRAPHY, `geoparquet="1.1"`': {"geometry": {"g": {"edges": "spherical"}}, "geoparquet": "1.1"},
    "GEOMETRY, EPSG:3857, `geoparquet=False`": {"geometry": {"g": "EPSG:3857"}, "geoparquet": False},
}
"""The first cell of each row, and the options of its file."""


def expected_crs(options: dict[str, Any]) -> str:
    return "EPSG:3857" if options["geometry"]["g"] == "EPSG:3857" else "OGC:CRS84"


def by_geopandas(path: Path, options: dict[str, Any]) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = geopandas.read_parquet(path)
    except ValueError:
        return "error"
    assert list(frame.geometry) == SHAPES
    return "geometry, CRS" if frame.crs == pyproj.CRS(expected_crs(options)) else "geometry"


def by_pyarrow(path: Path, options: dict[str, Any]) -> str:
    assert pq.read_table(path)["g"].to_pylist() == geo.from_shapely(SHAPES).storage.to_pylist()
    return "WKB"


def by_duckdb(path: Path, options: dict[str, Any]) -> str:
    rows = duckdb.sql(f"SELECT typeof(g), g FROM '{path}'").fetchall()
    assert [None if value is None else shapely.from_wkb(value) for _, value in rows] == SHAPES
    kind = rows[0][0]
    assert kind.startswith("GEOMETRY")
    return "geometry" if kind == "GEOMETRY" else "geometry, CRS"


def by_polars(path: Path, options: dict[str, Any]) -> str:
    try:
        values = polars.read_parquet(path)["g"].to_list()
    except polars.exceptions.ComputeError:
        return "error"
    assert values == geo.from_shapely(SHAPES).storage.to_pylist()
    return "WKB"


def by_sedonadb(path: Path, options: dict[str, Any]) -> str:
    sedonadb = pytest.importorskip("sedonadb")
    values = sedonadb.connect().read_parquet(path).to_arrow_table()["g"]
    assert [None if value is None else shapely.from_wkb(value) for value in values.to_pylist()] == SHAPES
    crs = str(values.type.crs.to_json() if hasattr(values.type.crs, "to_json") else values.type.crs)
    has_crs = pyproj.CRS(crs.strip('"')) == pyproj.CRS(expected_crs(options))
    planar = "PLANAR" in str(values.type.edge_type)
    return "geometry" + (", CRS" if has_crs else "") + ("" if planar else ", edges")


READERS: dict[str, Callable[[Path, dict[str, Any]], str]] = {
    "geopandas": by_geopandas, "pyarrow": by_pyarrow, "DuckDB": by_duckdb, "polars": by_polars, "SedonaDB": by_sedonadb,
}  # fmt: skip


def table_of_page() -> dict[str, dict[str, str]]:
    rows = [line.strip("|").split("|") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")]
    header, _, *body = [[cell.strip() for cell in row] for row in rows]
    return {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in body}


@pytest.mark.spec("geoparquet.columns", "geoparquet.older")
@pytest.mark.parametrize("reader", READERS)
def test_table_of_the_page_states_what_other_libraries_read(reader: str, tmp_path: Path) -> None:
    stated = table_of_page()
    assert [*stated] == [*FILES]
    path = tmp_path / "f.parquet"
    rows = pa.table({"g": geo.from_shapely(SHAPES)})
    outcomes = {}
    for name, options in FILES.items():
        pqext.write_table(rows, path, **options)
        outcomes[name] = READERS[reader](path, options)
    assert outcomes == {name: cells[reader] for name, cells in stated.items()}
