"""Points joined with polygons in Spark, against geopandas.sjoin.

    python benchmarks/spark_join.py [--points 1000000] [--polygons 10000] [--corners 64] [--cores 2]

Both sides read the same two GeoParquet files and count the pairs for each polygon; Spark has been started, and its
workers have run once. geopandas.sjoin is also timed on its own, with the geometries in memory and without an index, as
it is after reading. Times are those of clocks, interleaved, each the least of several; ratios of above 1 are for pqext.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import shapely
from pyspark.sql import functions as F
from recording import Recording

import pqext
from pqext import geo
from pqext.spark import local_session, read, spatial_join


def make(points: int, polygons: int, corners: int, folder: Path) -> None:
    """Points anywhere in the world, and polygons of uneven borders that cover about as much of it."""
    generator = np.random.default_rng(7)
    places = generator.uniform((-180, -90), (180, 90), (points, 2))
    away = np.sqrt(360 * 180 / polygons / np.pi) * generator.uniform(0.7, 1.3, (polygons, corners, 1))
    margin = np.array([180, 90]) - away.max()
    middle = generator.uniform(-margin, margin, (polygons, 1, 2))
    turn = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    areas = geo.from_shapely(shapely.polygons(middle + away * np.stack([np.cos(turn), np.sin(turn)], axis=1)))
    left = pa.table({"id": np.arange(points), "geometry": geo.from_points(*places.T)})
    right = pa.table({"area": np.arange(polygons), "geometry": areas})
    for table, name in ((left, "points"), (right, "polygons")):
        pqext.write_table(
            table, folder / f"{name}.parquet", geometry={"geometry": "OGC:CRS84"}, geoparquet=True,
            row_group_rows=max(1, table.num_rows // 4),
        )  # fmt: skip


def in_spark(spark: Any, folder: Path, predicate: Any) -> dict[int, int]:
    """Pairs by polygon, by pqext in Spark."""
    left, right = (read(spark, str(folder / f"{name}.parquet")) for name in ("points", "polygons"))
    pairs = spatial_join(left, right, predicate, columns=["area"]).groupBy("area").agg(F.count("*").alias("n"))
    return {row["area"]: row["n"] for row in pairs.collect()}


def in_geopandas(folder: Path, predicate: Any) -> dict[int, int]:
    """Pairs by polygon, by geopandas, from the files on."""
    return joined(*in_memory(folder), predicate)


def in_memory(folder: Path) -> tuple[Any, Any]:
    """The points and the polygons as geopandas reads them."""
    left, right = (geopandas.read_parquet(folder / f"{name}.parquet") for name in ("points", "polygons"))
    return left[["geometry"]], right


def joined(left: Any, right: Any, predicate: Any) -> dict[int, int]:
    """Pairs by polygon, by geopandas."""
    pairs = geopandas.sjoin(left, right, predicate=predicate)
    found: dict[int, int] = pairs.groupby("area").size().to_dict()
    return found


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Seconds by the clock, and the result."""
    begin = time.perf_counter()
    found = function(*arguments)
    return time.perf_counter() - begin, found


def main() -> int:
    """Print the figures; status 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--polygons", type=int, default=10_000)
    parser.add_argument("--corners", type=int, default=64)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    spark = local_session("spark_join", cores=f"local[{options.cores}]")
    worst = float("inf")
    recording = Recording("Points joined with polygons")
    try:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            make(options.points, options.polygons, options.corners, folder)
            for predicate in ("intersects", "within"):
                in_spark(spark, folder, predicate)
                ours, theirs, alone = [], [], []
                for _ in range(options.repeat):
                    seconds, mine = timed(in_spark, spark, folder, predicate)
                    ours.append(seconds)
                    seconds, other = timed(in_geopandas, folder, predicate)
                    theirs.append(seconds)
                    assert mine == other, "the pairs differ"
                    left, right = in_memory(folder)
                    seconds, _ = timed(joined, left, right, predicate)
                    alone.append(seconds)
                least = [min(times) for times in (ours, theirs, alone)]
                worst = min(worst, least[1] / least[0])
                recording.add(predicate, "pqext in Spark", least[0])
                recording.add(predicate, "geopandas", least[1])
                print(
                    f"{predicate}: {sum(mine.values()):,} pairs; pqext {least[0]:.2f} s, geopandas {least[1]:.2f} s, "
                    f"its sjoin alone {least[2]:.2f} s: {least[1] / least[0]:.2f} and {least[2] / least[0]:.2f} times"
                )
        if options.record:
            recording.save()
    finally:
        spark.stop()
    return 0 if worst >= 1.5 else 1


if __name__ == "__main__":
    sys.exit(main())
