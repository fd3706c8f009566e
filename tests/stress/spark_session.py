"""Queries of a Spark session from several threads of the driver, whose Arrow functions run in Python workers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from pyspark.sql import functions as F
from spark.sessions import QUICK_JAVA
from stress.cases import ROW_GROUP_ROWS, Case
from stress.spatial import polygon, shapes
from stress.variants import documents

import pqext
from pqext import col, geo, variant


@contextmanager
def session(cores: int) -> Iterator[Any]:
    from pqext.spark import local_session

    os.environ.update(QUICK_JAVA)
    settings = {"spark.sql.shuffle.partitions": "4", "spark.sql.execution.arrow.maxRecordsPerBatch": "500"}
    opened = local_session("pqext stress", cores=f"local[{cores}]", conf=settings)
    try:
        yield opened
    finally:
        opened.stop()


def cases(folder: Path, spark: Any) -> Iterator[Case]:
    from pqext.spark import functions as pq
    from pqext.spark import read, spatial_join

    rows = shapes(4000, 8)
    rows[np.flatnonzero(shapely.is_missing(rows))] = shapely.Point(0, 0)
    events = documents()[: len(rows)]
    path = str(folder / "spark.parquet")
    table = pa.table(
        {
            "id": np.arange(len(rows)),
            "at": geo.from_shapely(list(rows)),
            "v": variant.parse_json([json.dumps(event) for event in events]),
        }
    )
    pqext.write_table(table, path, geometry={"at": "OGC:CRS84"}, row_group_rows=ROW_GROUP_ROWS)
    query = polygon(8000)
    for operation in ("intersects", "within", "overlaps"):
        expected = np.flatnonzero(getattr(shapely, operation)(rows, query)).tolist()
        condition = getattr(col("at"), operation)(query)
        yield Case(
            f"read: {operation}", partial(ids, lambda condition=condition: read(spark, path, where=condition)), expected
        )
        function = getattr(pq, f"st_{operation}")
        yield Case(
            f"column: {operation}",
            partial(ids, lambda function=function: read(spark, path).where(function("at", query))),
            expected,
        )
    areas = np.flatnonzero(shapely.area(rows) > 50).tolist()
    yield Case("st_area", partial(ids, lambda: read(spark, path).where(pq.st_area("at") > 50)), areas)
    names = [number for number, event in enumerate(events) if event.get("user", {}).get("name") == "user 7"]
    named = col("v").variant("$.user.name", "string") == "user 7"
    yield Case("read: variant", partial(ids, lambda: read(spark, path, where=named)), names)
    kinds = [number for number, event in enumerate(events) if event["kind"] == "kind 3"]
    found = F.expr("variant_get(v, '$.kind', 'string')") == "kind 3"
    yield Case("variant_get", partial(ids, lambda: read(spark, path).where(found)), kinds)
    few = list(range(200))
    one, other = np.nonzero(shapely.intersects(rows[:, None], rows[None, few]))
    pairs = sorted(zip(one.tolist(), other.tolist(), strict=True))
    yield Case("spatial_join", partial(joined, spark, path, spatial_join), pairs)


def ids(frame: Any, _: int) -> list[int]:
    return sorted(row.id for row in frame().select("id").collect())


def joined(spark: Any, path: str, join: Any, _: int) -> list[tuple[int, int]]:
    from pqext.spark import read

    left = read(spark, path).select("id", "at")
    right = read(spark, path).where("id < 200").select(F.col("id").alias("other"), F.col("at").alias("there"))
    return sorted((row.id, row.other) for row in join(left, right, on=("at", "there")).select("id", "other").collect())
