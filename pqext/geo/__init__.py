"""Geometries in Parquet and Arrow: WKB, types and CRS, bounding boxes, predicates, Hilbert order.

Names load when they are used: shapely and pyproj are slow to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pqext.core.lazy import attach

if TYPE_CHECKING:
    from pqext.geo import crs
    from pqext.geo.box import BoundingBox
    from pqext.geo.coordinate_range import clamp
    from pqext.geo.frames import from_geopandas, to_geopandas, write_geopandas
    from pqext.geo.geoarrow import from_geoarrow
    from pqext.geo.layout.curves import hilbert_index, sort, sort_indices, zorder_index
    from pqext.geo.layout.explain import Layout, explain_layout
    from pqext.geo.predicates.densified import densify
    from pqext.geo.predicates.predicate import (
        SpatialPredicate,
        contains,
        covered_by,
        covers,
        crosses,
        disjoint,
        dwithin,
        equals,
        intersects,
        intersects_box,
        overlaps,
        touches,
        within,
    )
    from pqext.geo.summary import bounds, merge, statistics
    from pqext.geo.text.geojson import from_geojson, read_geojson, to_geojson, write_geojson
    from pqext.geo.text.wkt import from_wkt, to_wkt
    from pqext.geo.transformation import transform
    from pqext.geo.types import GeospatialType, as_extension, geometry_field
    from pqext.geo.validation import GeometryFault, find_faults, validate
    from pqext.geo.wkb import from_points, from_shapely, to_iso_wkb, to_shapely

    read_geopandas: Any  # lies above, in pqext.dataset.frames

_MODULES = {
    "box": ("BoundingBox",),
    "coordinate_range": ("clamp",),
    "layout.curves": ("hilbert_index", "sort", "sort_indices", "zorder_index"),
    "predicates.densified": ("densify",),
    "frames": ("from_geopandas", "to_geopandas", "write_geopandas"),
    "geoarrow": ("from_geoarrow",),
    "text.geojson": ("from_geojson", "read_geojson", "to_geojson", "write_geojson"),
    "layout.explain": ("Layout", "explain_layout"),
    "predicates.predicate": (
        "SpatialPredicate",
        "contains",
        "covered_by",
        "covers",
        "crosses",
        "disjoint",
        "dwithin",
        "equals",
        "intersects",
        "intersects_box",
        "overlaps",
        "touches",
        "within",
    ),
    "summary": ("bounds", "merge", "statistics"),
    "transformation": ("transform",),
    "types": ("GeospatialType", "as_extension", "geometry_field"),
    "wkb": ("from_points", "from_shapely", "to_iso_wkb", "to_shapely"),
    "validation": ("GeometryFault", "find_faults", "validate"),
    "text.wkt": ("from_wkt", "to_wkt"),
}
_HOMES = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}
_HOMES["crs"] = "pqext.geo.crs:"
_HOMES["read_geopandas"] = "pqext.dataset.frames"  # which stands above, on scans

__all__ = [
    "BoundingBox",
    "GeometryFault",
    "GeospatialType",
    "Layout",
    "SpatialPredicate",
    "as_extension",
    "bounds",
    "clamp",
    "contains",
    "covered_by",
    "covers",
    "crosses",
    "crs",
    "densify",
    "disjoint",
    "dwithin",
    "equals",
    "explain_layout",
    "find_faults",
    "from_geoarrow",
    "from_geojson",
    "from_geopandas",
    "from_points",
    "from_shapely",
    "from_wkt",
    "geometry_field",
    "hilbert_index",
    "intersects",
    "intersects_box",
    "merge",
    "overlaps",
    "read_geojson",
    "read_geopandas",
    "sort",
    "sort_indices",
    "statistics",
    "to_geojson",
    "to_geopandas",
    "to_iso_wkb",
    "to_shapely",
    "to_wkt",
    "touches",
    "transform",
    "validate",
    "within",
    "write_geojson",
    "write_geopandas",
    "zorder_index",
]

_OF_OTHERS = {
    "read_parquet": "it is pqext.read_table, or geo.read_geopandas for a GeoDataFrame",
    "to_parquet": "it is pqext.write_table, or geo.write_geopandas of a GeoDataFrame",
}

if not TYPE_CHECKING:  # a name that is not there is an error to type checkers
    __getattr__, __dir__ = attach(__name__, _HOMES, _OF_OTHERS)
