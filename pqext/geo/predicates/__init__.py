"""Spatial predicates: on rows exactly, on boxes as no, yes or maybe."""
