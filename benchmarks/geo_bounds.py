"""Bounding boxes of WKB columns: pqext against shapely, in one run, as ratios and GB/s of WKB.

    python benchmarks/geo_bounds.py [--points 2000000] [--vertices 10000000] [--repeat 5] [--write 2000000]

Each figure is the least processor time over the repeats, so that a busy machine disturbs it little. Shapely's time is
that of ``shapely.bounds(shapely.from_wkb(values))`` on values that are Python bytes already. ``--write`` writes a file
of so many points, and one of polygons with as many vertices, with and without statistics of the geometry column: the
median of the ratios of pairs, of which every other is the other way round.
Fails when a goal is missed: 8 times shapely everywhere, 3 GB/s for the statistics of points, and a write that
statistics make no more than 5 % longer. 0 leaves a part out.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

import pqext
from pqext import geo
from pqext.geo.wkb import summaries

RATIO, POINTS_GBS, WRITE_SHARE = 8.0, 3.0, 0.05


def least(function: Callable[[], Any], repeat: int, clock: Callable[[], float] = time.thread_time) -> float:
    """Seconds of the quickest call."""
    times = []
    for _ in range(repeat):
        begin = clock()
        function()
        times.append(clock() - begin)
    return min(times)


def polygons(vertices: int, corners: int) -> pa.Array:
    """Regular polygons of so many corners around points of the globe, ``vertices`` in all."""
    count = vertices // corners
    angle = np.linspace(0, 2 * np.pi, corners + 1)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    ring[-1] = ring[0]
    layout = [("order", "u1"), ("code", "<u4"), ("rings", "<u4"), ("points", "<u4"), ("xy", "<f8", (corners + 1, 2))]
    rows = np.empty(count, dtype=layout)
    rows["order"], rows["code"], rows["rings"], rows["points"] = 1, 3, 1, corners + 1
    rows["xy"] = np.random.default_rng(corners).uniform(-80, 80, (count, 1, 2)) + ring
    offsets = np.arange(count + 1, dtype=np.int64) * rows.itemsize
    return pa.Array.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(rows)]).cast(
        pa.binary()
    )


def data(points: int, vertices: int) -> Iterator[tuple[str, pa.Array]]:
    """Points over the globe, real ones again and again, and polygons of 8, 64 and 1,000 vertices."""
    generator = np.random.default_rng(0)
    if points:
        x, y = generator.uniform(-170, 170, points), generator.uniform(-80, 80, points)
        yield "points", geo.from_points(x, y)
        yield "points Z", geo.from_points(x[: points // 2], y[: points // 2], x[: points // 2])
        quakes = geo.read_geojson((files("pqext") / "examples" / "earthquakes.json").read_bytes())["geometry"]
        real = quakes.combine_chunks()
        yield "earthquakes", pa.concat_arrays([real] * max(1, points // 4 // len(real)))
    for corners, share in ((8, 0.2), (64, 0.4), (1000, 0.4)):
        if vertices:
            yield f"polygons of {corners}", polygons(int(vertices * share), corners)


def measured(points: int, vertices: int, repeat: int) -> list[str]:
    """Print one line a case; the goals that are missed."""
    missed = []
    print(f"{'':18}{'MB':>6}{'shapely':>10}{'rows':>9}{'ratio':>8}{'whole':>9}{'ratio':>8}{'GB/s':>7}   (milliseconds)")
    for name, array in data(points, vertices):
        size = array.buffers()[2].size
        values = array.to_numpy(zero_copy_only=False)
        rows = least(lambda array=array: geo.bounds(array), repeat)
        whole = least(lambda array=array: summaries(array), repeat)
        kept: list[Any] = []
        theirs = least(
            lambda values=values, kept=kept: kept.append(shapely.bounds(shapely.from_wkb(values))), min(repeat, 2)
        )
        boxes = geo.bounds(array)
        ours = np.stack([boxes.field(name).to_numpy() for name in ("xmin", "ymin", "xmax", "ymax")], axis=1)
        assert np.array_equal(ours, kept[0])
        speed = size / whole / 1e9
        print(
            f"{name:18}{size / 1e6:6.0f}{theirs * 1e3:10.1f}{rows * 1e3:9.1f}{theirs / rows:8.1f}"
            f"{whole * 1e3:9.2f}{theirs / whole:8.1f}{speed:7.2f}",
            flush=True,
        )
        if theirs / rows < RATIO or theirs / whole < RATIO:
            missed.append(f"{name}: less than {RATIO:.0f} times shapely")
        if name == "points" and speed < POINTS_GBS:
            missed.append(f"{name}: less than {POINTS_GBS:.0f} GB/s")
    return missed


def writes(count: int, repeat: int) -> list[str]:
    """Print what statistics add to a write; the goals that are missed."""
    missed = []
    generator = np.random.default_rng(1)
    cases = {
        "points": geo.from_points(generator.uniform(-170, 170, count), generator.uniform(-80, 80, count)),
        "polygons of 64": polygons(count, 64),
    }
    print(f"{'write':18}{'MB':>6}{'without':>10}{'with':>9}{'more':>8}   (milliseconds)")
    for name, array in cases.items():
        table = pa.table([array], pa.schema([geo.geometry_field("g")]))
        seconds: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(repeat):
            for wanted in (False, True) if turn % 2 else (True, False):

                def write(wanted: bool = wanted, table: pa.Table = table) -> None:
                    pqext.write_table(table, io.BytesIO(), statistics={"g": wanted})

                seconds[wanted].append(least(write, 1, time.process_time))
        more = median(b / a for a, b in zip(seconds[False], seconds[True], strict=True)) - 1
        size = array.buffers()[2].size / 1e6
        without, with_ = median(seconds[False]) * 1e3, median(seconds[True]) * 1e3
        print(f"{name:18}{size:6.0f}{without:10.1f}{with_:9.1f}{more:8.1%}", flush=True)
        if more > WRITE_SHARE:
            missed.append(f"{name}: statistics make a write {more:.1%} longer")
    return missed


def main() -> int:
    """Measure; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=2_000_000)
    parser.add_argument("--vertices", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--write", type=int, default=2_000_000)
    options = parser.parse_args()
    missed = measured(options.points, options.vertices, options.repeat)
    missed += writes(options.write, options.repeat) if options.write else []
    for line in missed:
        print("missed:", line)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
