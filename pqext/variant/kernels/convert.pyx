# cython: language_level=3, cdivision=True
"""Convert rows of Arrow columns and Python objects to columns of variants, and variants to Python objects."""

include "arrow_values.pxi"
include "python_values.pxi"
