# cython: language_level=3
"""Holds the enumeration of leaf types for Python; the code is in the .pxd."""
