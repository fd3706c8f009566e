# Page boundaries of a chunk to write, and the locations of the written pages.
from libc.stdint cimport int64_t

cdef class PageBoundaries:
    cdef readonly Py_ssize_t count
    cdef int64_t *rows       # count + 1 elements; the last is the end of the chunk
    cdef int64_t *entries
    cdef int64_t *values
    cdef int64_t *offsets    # of the page headers in the chunk
    cdef int64_t *sizes
    cdef int64_t *bytes      # total size of the byte arrays of each page

    cdef int check(self, Py_ssize_t index) except -1
    cdef int take(self, Py_ssize_t count) except -1
