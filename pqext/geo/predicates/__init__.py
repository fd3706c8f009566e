"""Spatial predicates: an exact evaluation on rows, and an evaluation on boxes with the results no, yes and maybe."""
