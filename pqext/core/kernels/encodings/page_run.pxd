# cython: language_level=3
# Encoded parts of consecutive pages, so that a kernel decodes them all in one call.
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from pqext.core.kernels.buffer cimport Bytes


cdef struct PagePart:
    const uint8_t *data
    size_t size
    Py_ssize_t count


cdef class PageRun:
    """Owner of the bytes of pages: `size` parts with `total` values in total."""
    cdef Bytes parts_bytes
    cdef PagePart *parts
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t total
    cdef list owners
    cdef int add(self, const uint8_t *data, size_t size, Py_ssize_t count) except -1
