"""WKB, WKT, GeoJSON, GeoArrow and CRS text, and the functions of ``pqext.geo``."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import pyarrow as pa
import shapely
from hostile_calls import DOUBLES, Call, change_bytes, change_text, integer, sample, word

import pqext
from pqext import geo

TEXTS = (
    "POINT (1 2)", "POINT ZM (1 2 3 -4.5e-7)", "POINT EMPTY", "LINESTRING M (0 0 1, 170.25 60 2)",
    "LINESTRING (170 0, -170 5, 180 90)", "POLYGON ((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))",
    "POLYGON ((-180 -90, 180 -90, 180 90, -180 90, -180 -90))", "MULTIPOINT (EMPTY, (1 2), (3 4))",
    "MULTILINESTRING Z ((0 0 0, 1 1 1), EMPTY)", "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)), EMPTY)",
    "GEOMETRYCOLLECTION (POINT (1 2), GEOMETRYCOLLECTION (LINESTRING EMPTY))", "POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))",
)  # fmt: skip
WKB = tuple(
    shapely.to_wkb(shapely.from_wkt(text), flavor="iso", byte_order=order) for text in TEXTS for order in (0, 1)
)
TOKENS = ("(", ")", ",", " ", "EMPTY", "POINT", "Z", "ZM", "SRID=4326;", "nan", "inf", "1e999", "-", "0x10", "(" * 3000,
          "GEOMETRYCOLLECTION (" * 300, "CURVEPOLYGON", "TIN", "é", "\0")  # fmt: skip
JSON_TOKENS = ('"', "{", "}", "[", "]", ",", ":", "null", "1e999", "NaN", '"type"', '"coordinates"', '"geometries"',
               "true",
               '"Point"', '"Feature"', '"properties"', '"id"', "[" * 2000, '{"a":' * 500, "\\ud800", "\\", "\n", "\0",
               '"bbox"', '"crs"')  # fmt: skip
UNARY = ("area", "boundary", "bounds", "centroid", "clamp", "convex_hull", "densify", "envelope", "find_faults",
         "geometry_type", "is_empty", "is_valid", "length", "m", "make_valid", "num_points", "orient", "perimeter",
         "point_on_surface", "sort_indices", "statistics", "to_geojson", "to_iso_wkb", "to_shapely", "to_wkt",
         "validate", "x", "y", "z")  # fmt: skip
WITH_EDGES = ("area", "bounds", "densify", "length", "perimeter", "statistics")
PREDICATES = ("contains", "covered_by", "covers", "crosses", "disjoint", "equals", "intersects", "intersects_box",
              "overlaps", "touches", "within")  # fmt: skip
PAIRS = ("azimuth", "distance", "intersection", "union")
EDGES = (None, "planar", "spherical", "vincenty", "andoyer", "thomas", "karney")
CRS = (None, "EPSG:4326", "EPSG:3857", "OGC:CRS84", "EPSG:25832", "EPSG:4979")
ENCODINGS = (None, "geoarrow.wkt", "geoarrow.point", "geoarrow.linestring", "geoarrow.polygon", "geoarrow.multipoint",
             "geoarrow.multilinestring", "geoarrow.multipolygon", "geoarrow.box", "geoarrow.geometry")  # fmt: skip


def draw_wkb(chance: random.Random) -> bytes | None:
    """Draw WKB: valid, with extreme coordinates, with changed bytes, nested or random."""
    choice = chance.randrange(10)
    data = chance.choice(WKB)
    if choice == 0:
        return None
    if choice < 3:
        return data
    if choice < 5:
        count = chance.randrange(1, 6)
        points = struct.pack(f"<{2 * count}d", *(chance.choice(DOUBLES) for _ in range(2 * count)))
        head = struct.pack("<BI", 1, chance.choice((2, 4))) + struct.pack("<I", count)
        if head[1] == 4:
            points = b"".join(b"\1\1\0\0\0" + points[at : at + 16] for at in range(0, len(points), 16))
        return head + points if chance.random() < 0.6 else b"\1\3\0\0\0\1\0\0\0" + head[5:] + points
    if choice == 5:
        depth = chance.choice((2, 40, 200, 20_000))
        return struct.pack("<BII", 1, 7, 1) * depth + data
    if choice == 6:
        return (
            struct.pack(
                "<BII", chance.randrange(3), chance.choice((1, 2, 3, 4, 7, 1001, 3003, 17)), integer(chance) % (1 << 32)
            )
            + data
        )
    return change_bytes(data, chance)


def _boxes(chance: random.Random) -> tuple[Any, ...]:
    return (0, 0, 1, 1), (170, -10, -170, 10), tuple(chance.choice(DOUBLES) for _ in range(4))


def _table(array: pa.Array, edges: Any) -> pa.Table:
    field = geo.geometry_field("g", edges=edges or "planar")
    return pa.Table.from_arrays(
        [array.cast(field.type) if array.type != field.type else array], schema=pa.schema([field])
    )


def geometries(chance: random.Random) -> list[Call]:
    """Arrays of drawn WKB."""
    array = pa.array([draw_wkb(chance) for _ in range(chance.choice((1, 2, 4)))], pa.binary())
    other = pa.array([draw_wkb(chance) for _ in range(len(array))], pa.binary())
    query, edges, crs = chance.choice((*_boxes(chance), chance.choice(WKB))), chance.choice(EDGES), chance.choice(CRS)
    number = chance.choice(DOUBLES)
    calls = [Call(name, lambda name=name: getattr(geo, name)(array)) for name in chance.sample(UNARY, 3)]
    name = chance.choice(WITH_EDGES)
    calls.append(Call(f"{name}, {edges}", lambda: getattr(geo, name)(array, edges, crs), True))
    predicate, pair = chance.choice(PREDICATES), chance.choice(PAIRS)
    column = pqext.col("g")
    others = [
        Call(predicate, lambda: getattr(geo, predicate)(array, query, edges, crs), True),
        Call(pair, lambda: getattr(geo, pair)(array, other), True),
        Call("dwithin", lambda: geo.dwithin(array, query, number, edges, crs), True),
        Call("buffer", lambda: geo.buffer(array, number, quad_segs=chance.choice((1, 8, 0, -1, 1 << 31))), True),
        Call("simplify", lambda: geo.simplify(array, number, preserve_topology=chance.random() < 0.5), True),
        Call("snap_to_grid", lambda: geo.snap_to_grid(array, number), True),
        Call("transform", lambda: geo.transform(array, chance.choice(CRS), chance.choice(CRS)), True),
        Call("to_wkt, precision", lambda: geo.to_wkt(array, chance.choice((0, 3, 15, 99, -1))), True),
        Call("sort", lambda: geo.sort(_table(array, None), "g")),
        Call("write_geojson", lambda: geo.write_geojson(_table(array, None), _sink())),
        Call("write_table", lambda: pqext.write_table(_table(array, edges), _sink())),
        Call("join", lambda: geo.join(_table(array, edges), _table(other, edges), chance.choice(PREDICATES[:7])), True),
        Call("join, within a distance", lambda: geo.join(_table(array, edges), _table(other, edges), "dwithin",
            distance=number), True),
        Call("nearest", lambda: geo.nearest(_table(array, edges), _table(other, edges), chance.choice((1, 3))), True),
        Call("filter", lambda: _filter(_table(array, edges), getattr(column, chance.choice(("intersects", "within",
            "touches")))(query)), True),
        Call("computed filter", lambda: _filter(_table(array, edges), column.st_distance(chance.choice(WKB)) > number),
            True),
    ]  # fmt: skip
    return calls + sample(chance, others, 2)


def _sink() -> Any:
    import io

    return io.BytesIO()


def _filter(table: pa.Table, condition: Any) -> pa.Table:
    out = _sink()
    pqext.write_table(table, out, geoparquet=False)
    return pqext.scan(out.getvalue(), filter=condition).to_table()


def draw_feature(chance: random.Random) -> dict[str, Any]:
    """Draw a GeoJSON feature whose members may have the wrong type."""
    geometry = json.loads(geo.to_geojson(geo.from_wkt([chance.choice(TEXTS[:9:2])]))[0].as_py())
    feature: dict[str, Any] = {"type": "Feature", "geometry": geometry, "properties": draw_properties(chance)}
    if chance.random() < 0.5:
        feature["id"] = chance.choice((1, "a", None, {}, 1.5, [1]))
    if chance.random() < 0.3:
        name = chance.choice(("type", "geometry", "properties", "coordinates", "bbox"))
        feature[name] = chance.choice((None, 1, "x", [], {}, {"type": "Point"}, {"type": "Point", "coordinates": [1]}))
    return feature


def draw_properties(chance: random.Random) -> Any:
    """Draw the properties of a feature: the types of a name differ between features."""
    if chance.random() < 0.15:
        return chance.choice((None, [], 1, "x", [{"a": 1}]))
    values = (1, -1.5, "text", None, True, [], [1, "x"], {}, {"a": {"b": [1]}}, 1 << 70, "2024-01-01", 1e300)
    names = ("a", "b", "", "geometry", "id", "a.b", "type", word(chance)[:50])
    return {chance.choice(names): chance.choice(values) for _ in range(chance.randrange(4))}


def texts(chance: random.Random) -> list[Call]:
    """WKT, GeoJSON features and properties, GeoArrow and CRS text."""
    wkt = [_encodable(change_text(chance.choice(TEXTS), chance, TOKENS)) for _ in range(2)]
    features = [draw_feature(chance) for _ in range(chance.choice((1, 2, 4)))]
    geojson = [_encodable(change_text(json.dumps(feature["geometry"]), chance, JSON_TOKENS)) for feature in features]
    collection: Any = {"type": "FeatureCollection", "features": features}
    text = json.dumps(collection)
    if chance.random() < 0.5:
        text = change_text(text, chance, JSON_TOKENS)
    data = text.encode("utf-8", "replace")
    if chance.random() < 0.2:
        data = change_bytes(data, chance)
    crs = chance.choice(
        (word(chance), chance.choice(CRS), {"type": word(chance)}, 4326, -1, json.dumps({"type": "GeographicCRS"}))
    )
    mark = change_text('{"crs": "EPSG:4326", "edges": "spherical"}', chance, (*JSON_TOKENS, '"crs_type"', '"projjson"'))
    encoding = chance.choice(ENCODINGS)
    nested = chance.choice(
        ([[1.0, 2.0]], [[{"x": 1.0, "y": None}]], [{"x": 1.0, "y": 2.0}], [[[[1.0, 2.0]]]], [["a"]], wkt)
    )
    every = [
        Call("from_wkt", lambda: geo.from_wkt(wkt)),
        Call("from_geojson", lambda: geo.from_geojson(geojson)),
        Call("read_geojson", lambda: geo.read_geojson(data), True),
        Call("read_geojson, properties", lambda: geo.read_geojson(data, properties=chance.choice(("p", "a"))), True),
        Call("CRS", lambda: geo.from_wkt(["POINT (1 2)"], crs=crs), True),
        Call("geometry_field", lambda: geo.geometry_field("g", crs, chance.choice((*EDGES, word(chance)))), True),
        Call("transform", lambda: geo.transform(pa.array(WKB[:1]), crs, "EPSG:4326"), True),
        Call("extension metadata", lambda: _use_mark(_encodable(mark))),
        Call("from_geoarrow", lambda: geo.from_geoarrow(pa.array(nested), encoding), True),
        Call("from_points", lambda: geo.from_points([chance.choice(DOUBLES)], [chance.choice(DOUBLES)], crs=crs), True),
    ]  # fmt: skip
    return sample(chance, every, 4)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _use_mark(mark: str) -> None:
    field = pa.field(
        "g", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": mark}
    )
    pqext.write_table(pa.Table.from_arrays([pa.array(WKB[:1])], schema=pa.schema([field])), _sink())
