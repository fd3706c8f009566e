"""Geometries in Parquet and Arrow: WKB, types and CRS, bounding boxes, predicates, Hilbert order.

Names load when they are used: shapely and pyproj are slow to import.
"""

from __future__ import annotations

from pqext.core.base.lazy_imports import attach

_OF_OTHERS = {
    "read_parquet": "it is pqext.read_table, or geo.read_geopandas for a GeoDataFrame",
    "to_parquet": "it is pqext.write_table, or geo.write_geopandas of a GeoDataFrame",
}

_ABOVE = {"read_geopandas": "pqext.dataset.frames"}  # which stands on scans

__getattr__, __dir__, __all__ = attach(__name__, __file__, _OF_OTHERS, _ABOVE)
