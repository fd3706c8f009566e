"""Geometry trees of :mod:`reference.wkb` as WKT and as GeoJSON, by recursion."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from reference import wkb
from reference.wkb import Geometry

NAMES = ["", "Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection"]


def number(value: float, decimals: int | None = None) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if decimals is not None:
        value = float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, Context(60)))
        value = 0.0 if value == 0 else value
    text = repr(value)
    return "0" if text == "0.0" else text if value == 0 else text.removesuffix(".0")


def coordinates(values: list[Any]) -> str:
    return "(" + ", ".join(" ".join(map(number, value)) for value in values) + ")" if values else "EMPTY"


def body(geometry: Geometry) -> str:
    if geometry.base == wkb.POINT:
        return "EMPTY" if all(map(math.isnan, geometry.content[0])) else coordinates(geometry.content)
    if geometry.base == wkb.LINE_STRING:
        return coordinates(geometry.content)
    if geometry.base == wkb.POLYGON:
        parts = [coordinates(ring) for ring in geometry.content]
    elif geometry.base == wkb.COLLECTION:
        parts = [to_wkt(child) for child in geometry.content]
    else:
        parts = [body(child) for child in geometry.content]
    return "(" + ", ".join(parts) + ")" if parts else "EMPTY"


def to_wkt(geometry: Geometry) -> str:
    return f"{NAMES[geometry.base].upper()}{['', ' Z', ' M', ' ZM'][geometry.dims]} {body(geometry)}"


class NotJson(Exception):
    """GeoJSON has no numbers for the geometry."""


def position(geometry: Geometry, value: tuple[float, ...]) -> list[float]:
    kept = list(value[: 3 if geometry.dims & 1 else 2])
    if len(kept) == 3 and math.isnan(kept[2]):
        kept.pop()
    if not all(map(math.isfinite, kept)):
        raise NotJson
    return kept


def empty(geometry: Geometry) -> bool:
    return geometry.base == wkb.POINT and all(map(math.isnan, geometry.content[0]))


def positions(geometry: Geometry) -> Any:
    if geometry.base == wkb.POINT:
        return [] if empty(geometry) else position(geometry, geometry.content[0])
    if geometry.base == wkb.LINE_STRING:
        return [position(geometry, value) for value in geometry.content]
    if geometry.base == wkb.POLYGON:
        return [[position(geometry, value) for value in ring] for ring in geometry.content]
    return [positions(child) for child in geometry.content if not empty(child)]


def to_geojson(geometry: Geometry) -> dict[str, Any]:
    if geometry.base == wkb.COLLECTION:
        return {"type": NAMES[7], "geometries": [to_geojson(child) for child in geometry.content]}
    return {"type": NAMES[geometry.base], "coordinates": positions(geometry)}


def plain(geometry: Geometry) -> Geometry:
    """The same geometry in little-endian ISO WKB, with one NaN for all."""
    if geometry.base in (wkb.POINT, wkb.LINE_STRING):
        content: list[Any] = [tuple(math.nan if math.isnan(v) else v for v in value) for value in geometry.content]
    elif geometry.base == wkb.POLYGON:
        content = [
            [tuple(math.nan if math.isnan(v) else v for v in value) for value in ring] for ring in geometry.content
        ]
    else:
        content = [plain(child) for child in geometry.content]
    return replace(geometry, content=content, little=True, extended=False, srid=None)
