# cython: language_level=3
# The metadata dictionaries of rows, and the sorted order of objects' fields.
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from pqext.variant.kernels.json_names cimport Names


cdef uint64_t *merge_sort(Names *names, size_t count, bint by_name) noexcept nogil
cdef int order_shape(Names *names, uint32_t shape) noexcept nogil
cdef int choose_dictionary(Names *names) noexcept nogil
