# cython: language_level=3
# Table of the pages in a byte range: one entry per page, with all fields checked.
from libc.stdint cimport int64_t, uint8_t

from pqext.core.kernels.buffer cimport Bytes
from pqext.core.kernels.decode.page_header cimport PageEntry


cdef class PageTable:
    cdef Bytes held
    cdef PageEntry *entries
    cdef list owners
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t consumed
    cdef readonly Py_ssize_t needed
    cdef int64_t most_elements
    cdef int64_t most_header
    cdef int64_t most_page
    cdef int most_depth

    cdef int read_page(self, const uint8_t *start, const uint8_t *p, const uint8_t *end, int64_t left, PageEntry *page) noexcept nogil
