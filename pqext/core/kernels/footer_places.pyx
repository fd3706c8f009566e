# cython: language_level=3
"""Where the structures of a footer's lists lie, as arrays: found by the pass that has indexed it, no object made."""
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcmp, memcpy

from pqext.core.kernels.thrift cimport StructIndex

import numpy as np


def places(StructIndex index not None):
    made = np.empty(index.count + 1, np.int64)
    cdef int64_t[::1] view = made
    memcpy(&view[0], index.offsets, (index.count + 1) * sizeof(int64_t))
    return made


def places_within(StructIndex index not None, Py_ssize_t position, Py_ssize_t count):
    cdef const int64_t *starts = <const int64_t *> index.inner_starts.data
    cdef const int64_t *first
    index.check(position)
    if index.inner_starts.size == 0 or starts[position + 1] - starts[position] != count + 1:
        return None
    first = <const int64_t *> index.inner.data + starts[position]
    made = np.empty(count + 1, np.int64)
    cdef int64_t[::1] view = made
    memcpy(&view[0], first, (count + 1) * sizeof(int64_t))
    return made


def same_bytes(const uint8_t[::1] one not None, const uint8_t[::1] other not None):
    cdef Py_ssize_t size = one.shape[0]
    cdef bint same
    if size != other.shape[0]:
        return False
    if size == 0:
        return True
    with nogil:
        same = memcmp(&one[0], &other[0], size) == 0
    return same
