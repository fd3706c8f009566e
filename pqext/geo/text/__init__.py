"""Geometries as text: WKT and GeoJSON."""
