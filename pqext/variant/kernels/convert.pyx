# cython: language_level=3, cdivision=True
"""Columns of variants from rows of Arrow columns and from Python objects, and to Python objects."""

include "arrow_values.pxi"
include "python_values.pxi"
