"""The validator of geoparquet-io finds no fault in files with geometries."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import shapely

import pqext
from pqext import geo

LINE = shapely.LineString([(1, 2, 3), (4, 5, 6)])
SHAPES = [shapely.box(10, 20, 30, 40, ccw=False), shapely.Point(50, 60), None, LINE]


@pytest.mark.spec("geoparquet.columns", "geoparquet.types", "geoparquet.bbox", "geoparquet.crs", "geoparquet.older")
@pytest.mark.parametrize("version", ["1.1", "2.0"])
@pytest.mark.parametrize(
    "option",
    [
        "OGC:CRS84", "EPSG:3857", {"crs": "EPSG:9000", "orientation": "counterclockwise", "epoch": 2021.5},
        {"edges": "spherical"}, {"crs": "srid:0"},
    ],
    ids=["default", "projected", "oriented", "spherical", "unknown CRS"],
)  # fmt: skip
def test_public_validator_finds_no_fault(version: str, option: Any, tmp_path: Path) -> None:
    validator = shutil.which("gpio")
    if validator is None:
        pytest.skip("geoparquet-io (gpio) is not installed")
    path = tmp_path / "f.parquet"
    table = pa.table({"id": range(4), "g": geo.from_shapely(SHAPES)})
    pqext.write_table(table, path, geometry={"g": option}, geoparquet=version)
    report = subprocess.run([validator, "check", "spec", str(path)], capture_output=True, text=True, timeout=300)
    counts = re.search(r"(\d+) passed.*?(\d+) failed", report.stdout + report.stderr, re.S)
    assert counts is not None, report.stdout
    assert int(counts[1]) > 15
    assert int(counts[2]) == 0, report.stdout
