"""Joins of data frames by where their geometries lie."""
