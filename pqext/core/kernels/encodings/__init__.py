"""Encodings of values and levels, and the slices of pages that they are decoded from."""
