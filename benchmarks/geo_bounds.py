"""Bounding boxes of WKB columns: pqext against shapely, in one run, as ratios and GB/s of WKB.

    python benchmarks/geo_bounds.py [--points 2000000] [--vertices 10000000] [--repeat 5]

Each figure is the least processor time of this thread over the repeats, so that a busy machine disturbs it
little. Shapely's time is that of ``shapely.bounds(shapely.from_wkb(values))`` on values that are Python bytes
already. Fails when a goal is missed: 8 times shapely everywhere, 3 GB/s for the statistics of points.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from pqext import geo
from pqext.geo.wkb import summaries

RATIO, POINTS_GBS = 8.0, 3.0


def least(function: Callable[[], Any], repeat: int) -> float:
    """Seconds of the quickest call."""
    times = []
    for _ in range(repeat):
        begin = time.thread_time()
        function()
        times.append(time.thread_time() - begin)
    return min(times)


def data(points: int, vertices: int) -> dict[str, pa.Array]:
    """Points over the globe, and regular polygons of 8, 64 and 1,000 vertices around such points."""
    generator = np.random.default_rng(0)
    x, y = generator.uniform(-170, 170, points), generator.uniform(-80, 80, points)
    found = {"points": geo.from_points(x, y), "points Z": geo.from_points(x, y, x)}
    for corners in (8, 64, 1000):
        count = vertices // corners
        angle = np.linspace(0, 2 * np.pi, corners + 1)
        ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        ring[-1] = ring[0]
        centres = generator.uniform(-80, 80, (count, 1, 2))
        found[f"polygons of {corners}"] = geo.from_shapely(shapely.polygons(centres + ring))
    return found


def main() -> int:
    """Print one line a case; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=2_000_000)
    parser.add_argument("--vertices", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    missed = []
    print(f"{'':18}{'MB':>6}{'shapely':>10}{'rows':>9}{'ratio':>8}{'whole':>9}{'ratio':>8}{'GB/s':>7}   (milliseconds)")
    for name, array in data(options.points, options.vertices).items():
        size = array.buffers()[2].size
        values = array.to_numpy(zero_copy_only=False)
        boxes = geo.bounds(array)
        ours = np.stack([boxes.field(name).to_numpy() for name in ("xmin", "ymin", "xmax", "ymax")], axis=1)
        assert np.array_equal(ours, shapely.bounds(shapely.from_wkb(values)))
        theirs = least(lambda values=values: shapely.bounds(shapely.from_wkb(values)), min(options.repeat, 2))
        del values
        rows = least(lambda array=array: geo.bounds(array), options.repeat)
        whole = least(lambda array=array: summaries(array), options.repeat)
        speed = size / whole / 1e9
        print(
            f"{name:18}{size / 1e6:6.0f}{theirs * 1e3:10.1f}{rows * 1e3:9.1f}{theirs / rows:8.1f}"
            f"{whole * 1e3:9.2f}{theirs / whole:8.1f}{speed:7.2f}"
        )
        if theirs / rows < RATIO or theirs / whole < RATIO:
            missed.append(f"{name}: less than {RATIO:.0f} times shapely")
        if name == "points" and speed < POINTS_GBS:
            missed.append(f"{name}: less than {POINTS_GBS:.0f} GB/s")
    for line in missed:
        print("missed:", line)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
