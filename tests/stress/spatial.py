"""Spatial filters, predicates, conversions and joins, of GEOMETRY against shapely and of GEOGRAPHY."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from stress.cases import ROW_GROUP_ROWS, Case

import pqext
from pqext import col, geo
from pqext.geo.predicates.boxes import OPERATIONS

PLANAR_ROWS, GLOBE_ROWS = 3000, 1500
RELATIONS = sorted(set(OPERATIONS) - {"dwithin"})


def shapes(count: int, seed: int) -> Any:
    """Points, lines and polygons of up to 256 vertices in longitudes and latitudes, some of them null."""
    generator = np.random.default_rng(seed)
    places = generator.uniform((-170, -80), (170, 80), (count, 2)).round(1)
    points = shapely.points(places)
    ends = places + generator.uniform(-8, 8, (count, 2))
    lines = shapely.linestrings(np.stack([places, np.clip(ends, (-180, -90), (180, 90))], axis=1))
    coarse, fine = (
        shapely.buffer(points, generator.uniform(0.1, 8, count), quad_segs=segments) for segments in (2, 64)
    )
    found = np.choose(generator.integers(0, 4, count), [points, lines, coarse, fine])
    found[:: count // 20] = None
    return found


def by_shapely(operation: str, rows: Any, query: Any, *distance: float) -> Any:
    """Shapely's answers, by a copy of the query that is prepared."""
    turned = {"within": "contains", "contains": "within", "covers": "covered_by", "covered_by": "covers"}
    own = shapely.from_wkb(shapely.to_wkb(query))
    shapely.prepare(own)
    return getattr(shapely, turned.get(operation, operation))(own, rows, *distance)


def polygon(vertices: int, radius: float = 80) -> Any:
    """A wavy polygon with holes."""
    angles = np.linspace(0, 2 * np.pi, vertices, endpoint=False)
    away = radius * (0.8 + 0.2 * np.sin(angles * 9))
    shell = np.column_stack([away * np.cos(angles), away * np.sin(angles) * 0.7])
    holes = [shapely.Point(x, 5).buffer(6, quad_segs=16).exterior.coords for x in (-30, 0, 30)]
    return shapely.Polygon(shell, holes)


def cases(folder: Path) -> Iterator[Case]:
    rows = shapes(PLANAR_ROWS, 1)
    rows[1:5] = polygon(8000), polygon(64), shapely.box(-20, -20, 20, 20), shapely.LineString([(-50, 0), (50, 1)])
    planar = folder / "planar.parquet"
    table = pa.table({"id": np.arange(len(rows)), "at": geo.from_shapely(list(rows))})
    pqext.write_table(table, planar, geometry={"at": "OGC:CRS84"}, row_group_rows=ROW_GROUP_ROWS)
    queries = {
        "polygon of 8,000 vertices": polygon(8000),
        "polygon of 16 vertices": shapely.Point(10, 10).buffer(60, quad_segs=4),
        "polygons": shapely.MultiPolygon([shapely.box(-60, -60, -25, 0), shapely.box(-20, -20, 20, 20)]),
        "line": shapely.LineString([(-50, 0), (50, 1)]),
        "box": (-20.0, -20.0, 20.0, 20.0),
    }
    for name, query in queries.items():
        for operation in RELATIONS:
            shape = shapely.box(*query) if isinstance(query, tuple) else query
            answers = by_shapely(operation, rows, shape)
            expected = np.flatnonzero(answers & ~shapely.is_missing(rows)).tolist()
            yield Case(f"filter: {operation} {name}", partial(filtered, planar, condition(operation, query)), expected)
            array = table["at"].combine_chunks()
            answered = [None if row is None else bool(answer) for row, answer in zip(rows, answers, strict=True)]
            yield Case(f"array: {operation} {name}", partial(evaluated, array, operation, query), answered)
        if not isinstance(query, tuple):
            near = np.flatnonzero(by_shapely("dwithin", rows, query, 3.0)).tolist()
            yield Case(f"filter: dwithin {name}", partial(filtered, planar, condition("dwithin", query, 3.0)), near)
    shared = geo.SpatialPredicate("intersects", queries["polygon of 8,000 vertices"])
    yield Case("array: one predicate for all threads", lambda _: shared.evaluate(table["at"]).to_pylist())
    yield from of_conversions(table["at"].combine_chunks(), rows)
    yield from of_the_globe(folder)


def filtered(path: Path, condition: Any, threads: int) -> list[int]:
    found: list[int] = pqext.read_table(path, ["id"], condition, threads=threads)["id"].to_pylist()
    return found


def condition(operation: str, query: Any, *distance: float) -> Any:
    return getattr(col("at"), "geom_equals" if operation == "equals" else operation)(query, *distance)


def evaluated(array: pa.Array, operation: str, query: Any, _: int) -> list[bool | None]:
    found: list[bool | None] = getattr(geo, operation)(array, query).to_pylist()
    return found


def of_conversions(array: pa.Array, rows: Any) -> Iterator[Case]:
    wkt, geojson = geo.to_wkt(array), geo.to_geojson(array)
    yield Case("to_wkt", lambda _: geo.to_wkt(array))
    yield Case("from_wkt", lambda _: geo.from_wkt(wkt))
    yield Case("to_geojson", lambda _: geo.to_geojson(array))
    yield Case("from_geojson", lambda _: geo.from_geojson(geojson))
    yield Case("to_shapely", lambda _: shapely.to_wkb(geo.to_shapely(array)).tolist(), shapely.to_wkb(rows).tolist())
    near = geo.from_shapely([shapely.Point(x, 46).buffer(0.5, quad_segs=64) for x in np.linspace(5, 17, 60)])
    for crs in ("EPSG:3857", "EPSG:32633", "EPSG:2056"):
        yield Case(f"transform to {crs}", partial(transformed, near, crs))
    for edges in ("planar", "spherical", "karney"):
        yield Case(f"bounds of {edges} edges", partial(bounds, array, edges))
        yield Case(f"statistics of {edges} edges", partial(statistics, array, edges))
    yield Case("validate", lambda _: geo.find_faults(array))
    yield Case("order of rows", lambda _: geo.sort_indices(array))


def transformed(array: pa.Array, crs: str, _: int) -> Any:
    return geo.transform(array, "EPSG:4326", crs)


def bounds(array: pa.Array, edges: Any, _: int) -> Any:
    return geo.bounds(array, edges)


def statistics(array: pa.Array, edges: Any, _: int) -> str:
    return str(geo.statistics(array, edges))


def of_the_globe(folder: Path) -> Iterator[Case]:
    rows = shapes(GLOBE_ROWS, 2)
    ids = np.arange(len(rows))
    for edges, crs in (("spherical", "OGC:CRS84"), ("karney", "EPSG:4267")):
        path = folder / f"{edges}.parquet"
        table = pa.table({"id": ids, "at": geo.from_shapely(list(rows))})
        kind = {"at": {"edges": edges, "crs": crs}}
        pqext.write_table(table, path, geometry=kind, row_group_rows=ROW_GROUP_ROWS)
        for name, query in {
            "polygon": polygon(600, 60), "wrapping box": (150.0, -60.0, -120.0, 60.0), "wide box": (-170, -10, 170, 10),
            "point": shapely.Point(12, 41),
        }.items():  # fmt: skip
            for operation in ("intersects", "disjoint", "within", "covers", "touches", "overlaps"):
                yield Case(f"{edges} filter: {operation} {name}", partial(filtered, path, condition(operation, query)))
            yield Case(
                f"{edges} filter: dwithin {name}", partial(filtered, path, condition("dwithin", query, 400_000.0))
            )
        array = table["at"].combine_chunks().slice(0, 300)
        yield Case(f"{edges} densify", partial(densified, array, edges, crs))


def densified(array: pa.Array, edges: Any, crs: str, _: int) -> list[bytes]:
    found: list[bytes] = shapely.to_wkb(geo.densify(array, edges, crs)).tolist()
    return found
