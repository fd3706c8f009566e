"""``st_transform`` with columns as CRS: each row as pyproj projects it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")

import shapely
from pyproj import Transformer
from pyspark.sql import functions as F

from pqext.spark import functions as P

ROWS = [
    (0, 10.0, 50.0, 4326, 3857), (1, 11.0, 51.0, 4326, 32632), (2, 500_000.0, 5_500_000.0, 32632, 4326),
    (3, 12.0, 52.0, 4326, 3857), (4, 9.0, 48.0, 4326, None),
]  # fmt: skip


def test_each_row_is_transformed_from_its_own_crs(spark: Any) -> None:
    rows = spark.createDataFrame(ROWS, "id int, x double, y double, source int, target int")
    point = P.st_geomfromwkt(F.format_string("POINT (%.6f %.6f)", "x", "y"))
    moved = P.st_transform(P.st_aswkb(point), F.col("target"), F.col("source"))
    named = P.st_transform(P.st_aswkb(point), F.concat(F.lit("EPSG:"), "target"), F.col("source"))
    texts = P.st_aswkb(moved).alias("a"), P.st_aswkb(named).alias("b")
    shown = rows.select("id", *texts, F.st_srid(moved).alias("srid"))
    found = shown.orderBy("id").collect()
    for (_, x, y, source, target), row in zip(ROWS, found, strict=True):
        if target is None:
            assert row["a"] is row["b"] is None
            continue
        expected = Transformer.from_crs(source, target, always_xy=True).transform(x, y)
        assert shapely.get_coordinates(shapely.from_wkb(bytes(row["a"])))[0] == pytest.approx(expected)
        assert row["a"] == row["b"]
        assert row["srid"] == target
