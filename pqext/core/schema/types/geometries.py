"""Names of geometry types by the WKB codes in statistics, and names of CRS.

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
"""Names by code, such as ``Polygon Z`` for 1003; the format defines 28 codes."""


def geometry_type_names(codes: Iterable[int]) -> tuple[str, ...]:
    """Return the names of geometry type codes. The name of an unknown code is ``unknown``."""
    return tuple(NAMES.get(code, "unknown") for code in codes)


def crs_label(crs: str | None) -> str:
    """Return a short name of a file's CRS for users: the identifier in PROJJSON, otherwise the name."""
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
