"""Encodings of values and levels, and slices of the pages that contain them."""
