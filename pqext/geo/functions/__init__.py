"""Measures, properties and constructions of geometries, from one table of functions."""
