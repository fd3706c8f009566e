"""The cells of the comparison in the README for Spark's own Parquet reader and writer, and for pqext within Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import peer_files
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from spark.sessions import native_geometry

import pqext
from pqext import col, geo
from pqext.spark import read

BY_PATH = f"variant_get(event, '$.mag', 'double') >= {peer_files.LAST_MAG}"


@pytest.fixture(scope="module", params=["partly", "wholly"])
def shredded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events shredded in one field or in all."""
    schema = {"partly": peer_files.CHOSEN, "wholly": peer_files.WHOLE}[request.param]
    return peer_files.write(tmp_path_factory.mktemp("native") / f"{request.param}.parquet", schema)


@native_geometry
def test_spark_reader_matches_but_does_not_skip_by_a_variant_path(spark: Any, shredded: Path) -> None:
    assert spark.read.parquet(str(shredded)).where(BY_PATH).count() == peer_files.GROUP
    damaged = spark.read.parquet(str(peer_files.damaged(shredded)))
    with pytest.raises((PySparkException, Py4JJavaError), match="don't know what type"):
        damaged.select("event").where(BY_PATH).count()


def test_data_source_skips_by_a_variant_path_and_by_a_box(spark: Any, shredded: Path) -> None:
    damaged = str(peer_files.damaged(shredded))
    by_path = col("event").variant("$.mag", "double") >= peer_files.LAST_MAG
    assert read(spark, damaged, where=by_path).count() == peer_files.GROUP
    assert read(spark, damaged, bbox=peer_files.LAST_BOX).count() == peer_files.GROUP
    with pytest.raises(PySparkException, match="CorruptFileError"):
        read(spark, damaged).where(BY_PATH).count()  # Spark does not pass its own conditions on


@native_geometry
def test_spark_joins_skip_by_a_covering_but_write_a_globe_spanning_box(spark: Any, tmp_path: Path) -> None:
    points = geo.from_points([179.0, -179.0], [-17.0, -18.0])
    frame = spark.createDataFrame([(bytes(wkb),) for wkb in points.to_pylist()], "wkb BINARY").coalesce(1)
    frame.selectExpr("st_geomfromwkb(wkb, 4326) AS geom").write.parquet(str(tmp_path / "points"))
    (file,) = (tmp_path / "points").glob("*.parquet")
    box = pq.read_metadata(file).row_group(0).column(0).geo_statistics
    assert (box.xmin, box.xmax) == (-179.0, 179.0)

    spark.range(1, 4).createOrReplaceTempView("ids")
    joined = spark.sql("SELECT max(a.id) AS last FROM ids AS a JOIN ids AS b ON a.id = b.id + 1")
    assert [row.last for row in joined.collect()] == [3]

    table = peer_files.table().select(["geom"])
    covered = tmp_path / "covered.parquet"
    pqext.write_table(table, covered, geometry={"geom": {"covering": True}}, row_group_rows=peer_files.GROUP)
    condition = f"geom_bbox.ymax >= {peer_files.LAST_BOX[1]}"
    rows = spark.read.parquet(str(peer_files.damaged(covered))).where(condition).select("geom_bbox.ymax").collect()
    assert len(rows) == peer_files.GROUP
