"""Orientation of polygons: counterclockwise outer rings and clockwise holes.

This is required by readers that place the interior of a GEOGRAPHY polygon to the left of its rings, such as S2. Spec:
"orientation" (GeoParquet 2.0).
"""

from __future__ import annotations

import pyarrow as pa

from pqext.geo.kernels.ordinates import with_oriented_rings
from pqext.geo.text.arrays import assemble, bit_mask
from pqext.geo.types import GeospatialType, array_type, mark_array
from pqext.geo.wkb import GeometryArray, as_columns, binary_chunks

_POLYGONAL = (3, 6, 7)
"""WKB codes of geometry types that can contain rings."""


def has_polygons(codes: tuple[int, ...] | list[int]) -> bool:
    """Return whether geometries with these WKB type codes can contain rings."""
    return any(code % 1000 in _POLYGONAL for code in codes)


def orient_rings(array: GeometryArray, type: GeospatialType | None = None) -> GeometryArray:
    """Return WKB with counterclockwise outer rings and clockwise holes.

    In a plane, the signed area determines the direction of a ring. On a globe, the interior of a ring is the smaller of
    its two sides, also across the antimeridian and around a pole. Rings without area are unchanged. The first
    coordinate of a ring remains the first.

    Args:
        array: Geometries as WKB, of n rows.
        type: Type of the geometries. By default the type of ``array``, or planar if it has none.

    Returns:
        n rows of ``binary``, or ``large_binary`` from 2 GiB, with the extension type of ``array``; ``array`` itself if
        nothing changes.

    Raises:
        GeometryError: With the row and byte, if WKB is invalid.

    Example:
        >>> from pqext.geo import from_wkt, to_wkt
        >>> to_wkt(orient_rings(from_wkt(["POLYGON ((0 0, 0 1, 1 1, 0 0))"]))).to_pylist()
        ['POLYGON ((0 0, 1 1, 0 1, 0 0))']
    """
    known = array_type(array.type)
    type = type or known or GeospatialType()
    chunks = binary_chunks(array)
    results = [with_oriented_rings(column, not type.planar) for column in as_columns(chunks)]
    if not any(is_reversed for _, _, is_reversed in results):
        return array
    made = [
        (len(chunk), bit_mask(chunk), data, offsets)
        for chunk, (data, offsets, _) in zip(chunks, results, strict=True)
    ]
    oriented = assemble(array, made, (pa.binary(), pa.large_binary()))
    return oriented if known is None else mark_array(oriented, known)


def orients(orientation: str | None, type: GeospatialType, is_described: bool) -> bool:
    """Return whether to write counterclockwise polygons.

    By default, GEOGRAPHY is oriented if GeoParquet metadata can declare the orientation. "unchanged" preserves all
    rings.

    Raises:
        ValueError: If the orientation is unknown.
    """
    if orientation not in (None, "counterclockwise", "unchanged"):
        raise ValueError(f'orientation must be "counterclockwise" or "unchanged", not {orientation!r}')
    return orientation == "counterclockwise" or (orientation is None and is_described and not type.planar)
