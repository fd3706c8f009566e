"""What spatial expressions are asked about: a box or a geometry, in canonical form."""

from __future__ import annotations

from math import isnan
from typing import Any, Literal, TypeAlias, get_args

Operation = Literal["intersects", "disjoint", "within", "contains"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)

Box: TypeAlias = tuple[float, float, float, float]
Geometry: TypeAlias = Box | bytes
"""A box ``(xmin, ymin, xmax, ymax)``, crossing the antimeridian when ``xmin > xmax``, or ISO WKB."""


def canonical_geometry(operation: str, geometry: Any) -> Geometry:
    """The canonical form of four numbers, WKB bytes, a shapely geometry or anything with ``xmin`` to ``ymax``.

    Raises ``ValueError`` for boxes that hold NaN or are upside down, for WKB that shapely does not read and
    for unknown operations, ``TypeError`` for anything else.
    """
    if operation not in OPERATIONS:
        raise ValueError(f"{operation!r} is not one of {', '.join(OPERATIONS)}")
    if isinstance(geometry, bytes | bytearray | memoryview):
        return _checked_wkb(bytes(geometry))
    if all(hasattr(geometry, side) for side in ("xmin", "ymin", "xmax", "ymax")):
        return _box((geometry.xmin, geometry.ymin, geometry.xmax, geometry.ymax))
    if hasattr(geometry, "geom_type"):
        import shapely

        return bytes(shapely.to_wkb(geometry, flavor="iso", byte_order=1))
    return _box(geometry)


def _box(sides: Any) -> Box:
    try:
        xmin, ymin, xmax, ymax = (float(side) for side in sides)
    except (TypeError, ValueError) as error:
        raise TypeError("expected a box (xmin, ymin, xmax, ymax), WKB or a shapely geometry") from error
    if any(map(isnan, (xmin, ymin, xmax, ymax))) or ymin > ymax:
        raise ValueError(f"box ({xmin}, {ymin}, {xmax}, {ymax}) holds NaN or has ymin above ymax")
    return (xmin, ymin, xmax, ymax)


def _checked_wkb(wkb: bytes) -> bytes:
    import shapely

    try:
        shapely.from_wkb(wkb)
    except shapely.errors.ShapelyError as error:
        raise ValueError(f"not a WKB geometry: {error}") from error
    return wkb
