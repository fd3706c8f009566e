"""Geometries in Parquet and Arrow: WKB, types and CRS, bounding boxes, predicates, Hilbert order.

Names load when they are used: shapely and pyproj are slow to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pqext.geo.box import BoundingBox
    from pqext.geo.hilbert import hilbert_index, sort_indices
    from pqext.geo.predicates import SpatialPredicate, contains, disjoint, intersects, intersects_box, within
    from pqext.geo.summary import bounds, merge, statistics
    from pqext.geo.types import GeospatialType, as_extension, geometry_field
    from pqext.geo.wkb import from_points, from_shapely, to_iso, to_shapely, validate

_MODULES = {
    "box": ("BoundingBox",),
    "hilbert": ("hilbert_index", "sort_indices"),
    "predicates": ("SpatialPredicate", "contains", "disjoint", "intersects", "intersects_box", "within"),
    "summary": ("bounds", "merge", "statistics"),
    "types": ("GeospatialType", "as_extension", "geometry_field"),
    "wkb": ("from_points", "from_shapely", "to_iso", "to_shapely", "validate"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "BoundingBox",
    "GeospatialType",
    "SpatialPredicate",
    "as_extension",
    "bounds",
    "contains",
    "disjoint",
    "from_points",
    "from_shapely",
    "geometry_field",
    "hilbert_index",
    "intersects",
    "intersects_box",
    "merge",
    "sort_indices",
    "statistics",
    "to_iso",
    "to_shapely",
    "validate",
    "within",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
