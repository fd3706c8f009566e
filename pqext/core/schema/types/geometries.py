"""Types of geometries: the WKB codes that statistics list, and their names; names of CRS.

Spec: "Geospatial Types" (Geospatial.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterable

_BASES = ("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection")

NAMES = {
    1000 * number + code: base + tag
    for number, tag in enumerate(("", " Z", " M", " ZM"))
    for code, base in enumerate(_BASES, 1)
}
"""By code, such as ``Polygon Z`` for 1003: the format's 28."""


def geometry_type_names(codes: Iterable[int]) -> tuple[str, ...]:
    """Return the names of codes; ``unknown`` for an unknown code."""
    return tuple(NAMES.get(code, "unknown") for code in codes)


def crs_label(crs: str | None) -> str:
    """Return a short name of a file's CRS for people: of PROJJSON its identifier, else its name."""
    if crs is None or not crs.lstrip().startswith("{"):
        return crs or "OGC:CRS84"
    try:
        definition = json.loads(crs)
    except (ValueError, RecursionError):
        return crs
    identifier = definition.get("id")
    if isinstance(identifier, dict) and "authority" in identifier and "code" in identifier:
        return f"{identifier['authority']}:{identifier['code']}"
    return str(definition.get("name") or crs)
