"""Measures, properties and constructions of geometries, defined in one function table."""
