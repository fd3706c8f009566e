# cython: language_level=3
# The columns that shredding fills: one `Builder` a node of the plan.
from libc.stdint cimport int64_t

from pqext.variant.kernels.shredding cimport Column, ShreddingPlan


cdef struct Builder:
    Column value
    Column typed


cdef void builders_free(Builder *builders, int64_t count) noexcept nogil
cdef list take_columns(Builder *builders, ShreddingPlan plan, int64_t rows)
