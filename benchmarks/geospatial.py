"""Box queries, exact predicates, joins, neighbours and writing of geometries, compared with other libraries.

    python benchmarks/geospatial.py [--rows 400000] [--repeat 5] [--only box,exact] [--folder F] [--record]

The buildings are small polygons clustered in towns, in Hilbert order, 20,000 rows per row group. Countries are Natural
Earth's, from the test files of pyogrio, which reads FlatGeobuf; shapely searches an STRtree in memory. Every engine
returns an Arrow table of all columns. Times are the processor time of the fastest of several runs, with as many threads
as the engine uses by default.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import geopandas
import numpy as np
import pyarrow as pa
import pyogrio
import sedonadb
import shapely
import spherely
from recording import Recording

import pqext
from pqext import geo

Run = Callable[[], Any]
Box = tuple[float, float, float, float]
COUNTRIES = Path(pyogrio.__file__).parent / "tests/fixtures/naturalearth_lowres/naturalearth_lowres.shp"
BOXES: dict[str, Box] = {
    "a city": (9.9, 49.9, 10.1, 50.1),
    "a region": (9.6, 49.6, 10.6, 50.4),
    "Europe": (-10.0, 36.0, 30.0, 70.0),
    "all rows": (-180.0, -90.0, 180.0, 90.0),
}


def buildings(rows: int) -> pa.Table:
    """Create small rotated rectangles in 400 towns, one of which is at (10, 50)."""
    generator = np.random.default_rng(1)
    towns = generator.uniform((-170, -55), (170, 70), (400, 2))
    towns[:80] = generator.uniform((-9, 37), (29, 69), (80, 2))
    towns[0] = 10, 50
    centres = towns[generator.integers(0, len(towns), rows)] + generator.normal(0, 0.08, (rows, 2))
    angle, half = generator.uniform(0, np.pi, rows), generator.uniform(3e-5, 2e-4, (rows, 2))
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]) * half[:, None, :]
    turned = np.stack(
        [
            corners[..., 0] * np.cos(angle)[:, None] - corners[..., 1] * np.sin(angle)[:, None],
            corners[..., 0] * np.sin(angle)[:, None] + corners[..., 1] * np.cos(angle)[:, None],
        ],
        axis=-1,
    )
    shapes = shapely.polygons(centres[:, None, :] + turned)
    table = pa.table({"id": np.arange(rows), "height": generator.gamma(3, 3, rows), "geom": geo.from_shapely(shapes)})
    order = geopandas.GeoSeries(shapes).hilbert_distance(total_bounds=(-180, -90, 180, 90)).to_numpy()
    return table.take(np.argsort(order, kind="stable"))


@dataclass
class Benchmark:
    """The files, the engines and the results."""

    folder: Path
    rows: int
    repeat: int
    recording: Recording = field(default_factory=lambda: Recording("Geometries"))

    def __post_init__(self) -> None:
        self.ours, self.theirs = self.folder / "pqext.parquet", self.folder / "duckdb.parquet"
        self.flatgeobuf = self.folder / "buildings.fgb"
        self.table = buildings(self.rows)
        self.duckdb, self.sedona = duckdb.connect(), sedonadb.connect()
        self.countries = pyogrio.read_dataframe(COUNTRIES)

    def prepare(self) -> None:
        """Write the same rows for each engine."""
        pqext.write_table(self.table, self.ours, geometry={"geom": "OGC:CRS84"}, row_group_rows=20_000)
        self.copy_by_duckdb()
        pyogrio.write_arrow(
            self.table, self.flatgeobuf, driver="FlatGeobuf", geometry_name="geom", geometry_type="Polygon",
            crs="OGC:CRS84",
        )
        self.sedona.read_parquet(str(self.ours)).to_view("buildings", overwrite=True)

    def copy_by_duckdb(self) -> None:
        """Write the buildings by DuckDB."""
        self.duckdb.execute(
            f"COPY (SELECT * FROM read_parquet('{self.ours}')) TO '{self.theirs}' "
            "(FORMAT parquet, geoparquet_version 'V2', row_group_size 20000)"
        )

    def compare(self, case: str, engines: dict[str, Run], count: Callable[[Any], int] | None = len) -> None:
        """Measure the engines of a case, and check that all return the same number of rows."""
        results = {name: run() for name, run in engines.items()}
        if count is not None:
            rows = {name: count(result) for name, result in results.items()}
            assert len(set(rows.values())) == 1, (case, rows)
            case = f"{case}, {next(iter(rows.values())):,} rows"
        times = {name: self.best(run) for name, run in engines.items()}
        for name, seconds in times.items():
            self.recording.add(case, name, seconds)
        ratios = ", ".join(f"{name} {times[name] / times['pqext']:.2f}" for name in times if name != "pqext")
        print(f"{case}: pqext {times['pqext'] * 1e3:.1f} ms; ratios: {ratios or 'none'}", flush=True)

    def best(self, run: Run) -> float:
        """Return the processor time of the fastest run."""
        times = []
        for _ in range(self.repeat):
            begin = time.process_time()
            run()
            times.append(time.process_time() - begin)
        return min(times)

    def box(self) -> None:
        """Select all columns of the buildings in a box."""
        for name, sides in BOXES.items():
            ring = shapely.box(*sides).wkt
            self.compare(f"box of {name}", {
                "pqext": lambda sides=sides: pqext.read_table(self.ours, filter=pqext.col("geom").intersects(sides)),
                "pyogrio": lambda sides=sides: pyogrio.read_arrow(self.flatgeobuf, bbox=sides)[1],
                "DuckDB": lambda ring=ring: self.duckdb.sql(
                    f"SELECT * FROM read_parquet('{self.theirs}') WHERE geom && '{ring}'::GEOMETRY"
                ).to_arrow_table(),
                "SedonaDB": lambda ring=ring: self.sedona.sql(
                    f"SELECT * FROM buildings WHERE ST_Intersects("
                    f"geom, ST_SetCRS(ST_GeomFromText('{ring}'), 'OGC:CRS84'))"
                ).to_arrow_table(),
            })  # fmt: skip

    def exact(self) -> None:
        """Select the buildings that intersect a country of many vertices."""
        shapes = geo.to_shapely(self.table["geom"])
        tree = shapely.STRtree(shapes)
        for name, vertices in (("Russia", 37_000), ("Canada", 20_000), ("Switzerland", 1_000)):
            shape = self.countries.set_index("name").geometry[name]
            shape = shape.segmentize(shape.length / vertices)
            self.compare(f"intersects {name}", {
                "pqext": lambda shape=shape: pqext.read_table(
                    self.ours, ["id"], filter=pqext.col("geom").intersects(shape)
                ),
                "shapely": lambda shape=shape: tree.query(shape, predicate="intersects"),
            })  # fmt: skip

    def globe(self) -> None:
        """Evaluate predicates on GEOGRAPHY."""
        generator = np.random.default_rng(2)
        centres = generator.uniform((-140, -50), (140, 50), (1_500, 2))
        long_edges = shapely.polygons(centres[:, None, :] + np.array([(0, 0), (25, 3), (12, 20), (0, 0)]))
        small = shapely.buffer(shapely.points(generator.uniform((-170, -60), (170, 75), (60_000, 2))), 0.05)
        for case, shapes, query in (
            ("1,500 shapes with long edges", long_edges, shapely.Polygon([(-20, -10), (50, 0), (30, 40)])),
            ("60,000 small polygons", small, self.countries.set_index("name").geometry["Brazil"]),
        ):
            column = geo.from_shapely(list(shapes))
            others, other = spherely.from_wkb(shapely.to_wkb(shapes)), spherely.from_wkb(shapely.to_wkb(query))
            self.compare(f"GEOGRAPHY, {case}", {
                "pqext": lambda column=column, query=query: geo.intersects(column, query, "spherical"),
                "spherely": lambda others=others, other=other: spherely.intersects(others, other),
            }, lambda result: int(np.sum(np.asarray(result))))  # fmt: skip

    def joins(self) -> None:
        """Join 250,000 points with countries."""
        generator = np.random.default_rng(3)
        xy = generator.uniform((-179, -60), (179, 80), (250_000, 2))
        points = pa.table({"id": np.arange(len(xy)), "at": geo.from_points(xy[:, 0], xy[:, 1])})
        zones = pa.table({
            "name": list(self.countries["name"]), "area": geo.from_shapely(list(self.countries.geometry))
        })  # fmt: skip
        paths = self.folder / "points.parquet", self.folder / "zones.parquet"
        pqext.write_table(points, paths[0], geometry={"at": {"order": "hilbert"}}, row_group_rows=20_000)
        pqext.write_table(zones, paths[1], geometry={"area": "OGC:CRS84"})
        frame = geopandas.GeoDataFrame({"id": points["id"]}, geometry=shapely.points(xy), crs="OGC:CRS84")
        areas = self.countries[["name", "geometry"]].set_crs("OGC:CRS84", allow_override=True)
        for view, path in zip(("points", "zones"), paths, strict=True):
            self.sedona.read_parquet(str(path)).to_view(view, overwrite=True)
        self.compare("join of 250,000 points with countries, in memory", {
            "pqext": lambda: geo.join(points, zones),
            "geopandas": lambda: geopandas.sjoin(frame, areas),
        })  # fmt: skip
        self.compare("join of 250,000 points with countries, from files", {
            "pqext": lambda: geo.join(pqext.scan(paths[0]), pqext.scan(paths[1])),
            "geopandas": lambda: geopandas.sjoin(geopandas.read_parquet(paths[0]), geopandas.read_parquet(paths[1])),
            "SedonaDB": lambda: self.sedona.sql(
                "SELECT * FROM points JOIN zones ON ST_Intersects(points.at, zones.area)"
            ).to_arrow_table(),
        })  # fmt: skip

    def nearest(self) -> None:
        """Find the 10 nearest of 235,000 points in a file."""
        xy = np.random.default_rng(4).normal((0, 40), (30, 12), (235_000, 2)).clip((-180, -90), (180, 90))
        path = self.folder / "nearest.parquet"
        table = pa.table({"id": np.arange(len(xy)), "at": geo.from_points(xy[:, 0], xy[:, 1])})
        pqext.write_table(table, path, geometry={"at": {"order": "hilbert"}}, row_group_rows=20_000)
        point = shapely.Point(10, 45)
        self.compare("10 nearest of 235,000 points", {
            "pqext": lambda: pqext.scan(path).nearest(point, 10).to_table(),
            "geopandas": lambda: geopandas.read_parquet(path).assign(
                distance=lambda frame: shapely.distance(frame.geometry.to_numpy(), point)
            ).nsmallest(10, "distance"),
        })  # fmt: skip

    def writing(self) -> None:
        """Write all buildings."""
        frame = geopandas.GeoDataFrame(
            {"id": self.table["id"], "height": self.table["height"]}, geometry=geo.to_shapely(self.table["geom"]),
            crs="OGC:CRS84",
        )
        self.compare("writing the buildings", {
            "pqext": lambda: pqext.write_table(self.table, self.folder / "a.parquet", geometry={"geom": "OGC:CRS84"}),
            "DuckDB": self.copy_by_duckdb,
            "geopandas": lambda: frame.to_parquet(self.folder / "b.parquet"),
        }, None)  # fmt: skip

    def parts(self) -> Iterator[str]:
        """Yield the names of all parts."""
        yield from ("box", "exact", "globe", "joins", "nearest", "writing")


def main() -> None:
    """Print the processor time of pqext for each case, and the ratio of every other engine to it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", help="names of parts, separated by commas")
    parser.add_argument("--folder", type=Path, help="keep the files here")
    parser.add_argument("--record", action="store_true", help="write the results to benchmarks/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        benchmark = Benchmark(options.folder or Path(scratch), options.rows, options.repeat)
        benchmark.prepare()
        for part in options.only.split(",") if options.only else benchmark.parts():
            getattr(benchmark, part)()
        if options.record:
            benchmark.recording.save()


if __name__ == "__main__":
    sys.exit(main())
