"""Types of geometries: the WKB codes that statistics list, and their names. Spec: "Geospatial Types" (000 §5.1)."""

from __future__ import annotations

from collections.abc import Iterable

_BASES = ("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection")

NAMES = {
    1000 * number + code: base + tag
    for number, tag in enumerate(("", " Z", " M", " ZM"))
    for code, base in enumerate(_BASES, 1)
}
"""By code, such as ``Polygon Z`` for 1003: the format's 28."""


def named(codes: Iterable[int]) -> tuple[str, ...]:
    """The names of codes; ``unknown`` for one that is none."""
    return tuple(NAMES.get(code, "unknown") for code in codes)
