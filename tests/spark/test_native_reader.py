"""What the README says of Spark's own Parquet reader beside data source pqext."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import peer_files
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from spark.sessions import native_geometry

from pqext import col
from pqext.spark import read

BY_PATH = f"variant_get(event, '$.mag', 'double') >= {peer_files.LAST_MAG}"


@pytest.fixture(scope="module", params=["partly", "wholly"])
def shredded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events shredded in one field or in all."""
    schema = {"partly": peer_files.CHOSEN, "wholly": peer_files.WHOLE}[request.param]
    return peer_files.write(tmp_path_factory.mktemp("native") / f"{request.param}.parquet", schema)


@native_geometry
def test_spark_s_own_reader_finds_the_rows_but_skips_none_by_a_variant_path(spark: Any, shredded: Path) -> None:
    assert spark.read.parquet(str(shredded)).where(BY_PATH).count() == peer_files.GROUP
    damaged = spark.read.parquet(str(peer_files.damaged(shredded)))
    with pytest.raises((PySparkException, Py4JJavaError), match="don't know what type"):
        damaged.select("event").where(BY_PATH).count()


def test_data_source_pqext_skips_by_a_variant_path_and_by_a_box(spark: Any, shredded: Path) -> None:
    damaged = str(peer_files.damaged(shredded))
    by_path = col("event").variant("$.mag", "double") >= peer_files.LAST_MAG
    assert read(spark, damaged, where=by_path).count() == peer_files.GROUP
    assert read(spark, damaged, bbox=peer_files.LAST_BOX).count() == peer_files.GROUP
