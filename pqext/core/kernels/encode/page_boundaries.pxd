# The page boundaries of a chunk being written, and the location of each page once it is written.
from libc.stdint cimport int64_t

cdef class PageBoundaries:
    cdef readonly Py_ssize_t count
    cdef int64_t *rows       # count + 1 of each: the last is where the chunk ends
    cdef int64_t *entries
    cdef int64_t *values
    cdef int64_t *offsets    # of the pages in the chunk, headers first
    cdef int64_t *sizes
    cdef int64_t *bytes      # of the byte arrays in each page

    cdef int check(self, Py_ssize_t index) except -1
    cdef int take(self, Py_ssize_t count) except -1
