"""Spatial joins of data frames."""
