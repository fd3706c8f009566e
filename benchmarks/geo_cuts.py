"""What cutting pages where their boxes stay small gains over equal pages, as expected rows read by queries.

    python benchmarks/geo_cuts.py [--points 500000] [--csv airports.csv]

Points lie in Hilbert order on both sides, and equal pages are as many as the others. Queries are squares that cover a
share of the extent, anywhere in it (exactly) or around points of the data (a sample); figures are rows read, as ratios.
``--csv`` adds points of a file with columns ``longitude`` and ``latitude``.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pqext.geo import BoundingBox, hilbert_index
from pqext.geo.layout.explain import hit_probabilities
from pqext.geo.layout.order import split_rows

SHARES = (0.0001, 0.001, 0.01)
Doubles = NDArray[np.float64]


def ordered(x: Doubles, y: Doubles) -> Doubles:
    """Lines x, x, y, y in the unit square along the curve."""
    x, y = ((line - line.min()) / (line.max() - line.min()) for line in (x, y))
    order = np.argsort(hilbert_index(x, y, BoundingBox(0, 1, 0, 1)))
    return np.stack([x[order], x[order], y[order], y[order]])


def boxes_of(points: Doubles, starts: NDArray[np.int64]) -> tuple[Doubles, Doubles]:
    """The boxes of pages, and their rows."""
    reduced = [(np.minimum if line % 2 == 0 else np.maximum).reduceat(points[line], starts) for line in range(4)]
    return np.stack(reduced), np.diff(np.append(starts, points.shape[1])).astype(np.float64)


def rows_read(points: Doubles, starts: NDArray[np.int64], share: float) -> tuple[float, float]:
    """Rows that a query reads, anywhere in the extent and around a point of the data."""
    boxes, rows = boxes_of(points, starts)
    side = share**0.5
    anywhere = float(hit_probabilities(boxes, side, side) @ rows)
    x, y = points[::2, np.random.default_rng(1).integers(0, points.shape[1], 500)][:, :, None]
    near = (boxes[0] <= x + side / 2) & (boxes[1] >= x - side / 2)
    near &= (boxes[2] <= y + side / 2) & (boxes[3] >= y - side / 2)
    return anywhere, float((near @ rows).mean())


def main() -> int:
    """Print a line for each set of points and size of pages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=500_000)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    generator, count = np.random.default_rng(0), options.points
    home, spread = generator.integers(0, 300, count), generator.exponential(0.02, 300)
    centres = generator.uniform(0, 1, (2, 300))
    sets = {
        "uniform": (generator.uniform(0, 1, count), generator.uniform(0, 1, count)),
        "clusters": tuple(centre[home] + generator.normal(0, 1, count) * spread[home] for centre in centres),
    }
    if options.csv is not None:
        with options.csv.open(newline="") as file:
            places = [(float(row["longitude"]), float(row["latitude"])) for row in csv.DictReader(file)]
        x, y = np.array(places).T
        sets[options.csv.stem] = (x, y)
    print(f"{'queries that cover':24}" + "".join(f"{share:>16.2%}" for share in SHARES) + "   (anywhere, in the data)")
    for name, (x, y) in sets.items():
        points = ordered(x, y)
        for most in (1_000, 2_048, 4_096) if points.shape[1] > 100_000 else (64, 128):
            starts = split_rows(points, most)
            equal = np.linspace(0, points.shape[1], len(starts) + 1)[:-1].astype(np.int64)
            found = []
            for share in SHARES:
                ours, theirs = rows_read(points, starts, share), rows_read(points, equal, share)
                found.append(f"{ours[0] / theirs[0]:10.2f}{ours[1] / theirs[1]:6.2f}")
            print(f"{name:10} {most:6} rows    {''.join(found)}   {points.shape[1] / len(starts):.0f} rows a page")
    return 0


if __name__ == "__main__":
    sys.exit(main())
