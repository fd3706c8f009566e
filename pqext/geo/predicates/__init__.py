"""Spatial predicates, evaluated exactly on rows, and as no, yes or maybe on boxes."""
