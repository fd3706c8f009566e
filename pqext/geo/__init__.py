"""Geometries in Parquet and Arrow: WKB, types and CRS, bounding boxes, predicates, Hilbert order.

Names are imported on first use, because shapely and pyproj are slow to import.
"""

from __future__ import annotations

from pqext.core.base.lazy_imports import attach

_OF_OTHERS = {
    "points_from_xy": "use from_points",
    "read_parquet": "use pqext.read_table, or geo.read_geopandas for a GeoDataFrame",
    "to_parquet": "use pqext.write_table, or geo.write_geopandas for a GeoDataFrame",
}

_ABOVE = {  # these modules import scans
    "dissolve": "pqext.dataset.dissolve",
    "join": "pqext.dataset.spatial_joins",
    "nearest": "pqext.dataset.spatial_joins",
    "read_geopandas": "pqext.dataset.reading",
    "stac_collection": "pqext.dataset.stac",
    "stac_item": "pqext.dataset.stac",
    "write_dataset": "pqext.dataset.spatial_datasets",
    "write_file": "pqext.dataset.vector_files",
}

__getattr__, __dir__, __all__ = attach(__name__, __file__, _OF_OTHERS, _ABOVE)
