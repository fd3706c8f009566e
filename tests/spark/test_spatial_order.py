"""Geometries in order in files that Spark writes: how many row groups a question about a place reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import types as T

import pqext
from pqext import geo
from pqext.spark import explain_read, functions, read, read_metrics
from pqext.spark.writing.sink import Sink

BOX = (10.0, 10.0, 20.0, 20.0)
ROWS = 4000


def points() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(7)
    return rng.uniform(-180, 180, ROWS), rng.uniform(-90, 90, ROWS)


def rows_in_box() -> int:
    x, y = points()
    return int(((x >= BOX[0]) & (x <= BOX[2]) & (y >= BOX[1]) & (y <= BOX[3])).sum())


@pytest.mark.parametrize(("bounded", "share"), [(False, 0.1), (True, 0.4)])
def test_task_orders_its_rows_up_to_the_bytes_of_a_row_group(
    tmp_path: Path, bounded: bool, share: float
) -> None:
    x, y = points()
    wkb = geo.from_wkt(pa.array([f"POINT ({a!r} {b!r})" for a, b in zip(x.tolist(), y.tolist(), strict=True)]))
    exchanged = pa.StructArray.from_arrays(
        [pa.repeat(pa.scalar(4326, pa.int32()), ROWS), wkb.cast(pa.binary())], names=["srid", "wkb"]
    )
    batch = pa.record_batch({"g": exchanged})
    options = {"geometry": json.dumps({"g": {"order": "hilbert"}}), "row_group_rows": "50"}
    if bounded:
        options["row_group_bytes"] = str(batch.nbytes // 4)
    sink = Sink({"path": str(tmp_path), **options}, T.StructType([T.StructField("g", T.GeometryType(4326))]), False)
    sink.commit([sink.write(iter([batch.slice(at, 100) for at in range(0, ROWS, 100)]))])
    plan = explain_read(str(tmp_path), bbox=BOX)
    assert plan.row_groups_total >= ROWS / 50
    assert 0 < plan.row_groups <= share * plan.row_groups_total
    assert pqext.read_table(tmp_path, filter=pqext.col("g").intersects(BOX)).num_rows == rows_in_box()


@pytest.mark.slow
def test_rows_distributed_along_the_curve_leave_most_files_unread(spark: Any, tmp_path: Path) -> None:
    x, y = points()
    frame = spark.createDataFrame(pa.table({"x": x, "y": y})).repartition(4)
    placed = frame.select(functions.st_point("x", "y").alias("g"))
    options = {"geometry": json.dumps({"g": {"order": "hilbert"}}), "row_group_rows": 50}
    read_groups = {}
    for name, dealt in (("apart", placed), ("along", placed.repartitionByRange(4, functions.st_hilbert("g")))):
        path = str(tmp_path / name)
        dealt.write.format("pqext").options(**options).mode("append").save(path)
        metrics = str(tmp_path / f"metrics-{name}")
        assert read(spark, path, bbox=BOX, metrics_path=metrics).count() == rows_in_box()
        assert len(list(Path(path).glob("*.parquet"))) == 4
        read_groups[name] = read_metrics(metrics).row_groups
    assert read_groups["along"] < read_groups["apart"] <= 0.3 * ROWS / 50
    assert read_groups["along"] <= 0.1 * ROWS / 50
