# cython: language_level=3
# What kernels that cast values share: paths, and the ways in and out of Python.
from libc.stdint cimport int64_t, uint8_t

from pqext.core.kernels.buffer cimport Bytes
from pqext.variant.kernels.cast_put cimport Wanted


cdef class PathSteps:
    cdef Bytes step_bytes       # of Step
    cdef list names
    cdef int count


cdef int describe(Wanted *wanted, object described) except -1
cdef int raise_fault(int status, int64_t row, const uint8_t *start, const uint8_t *p) except -1
cdef const uint8_t *bitmap_of(object groups, int64_t rows, int64_t *offset) except? NULL
