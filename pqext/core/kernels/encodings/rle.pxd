# cython: language_level=3
# Decode hybrid data of one page, for kernels that decode complete chunks. Functions return 0 or a fault.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

cdef int page_flags(const uint8_t *p, size_t size, Py_ssize_t count, uint8_t *out, int64_t *ones) noexcept nogil
cdef int page_indices(const uint8_t *p, size_t size, Py_ssize_t count, uint32_t limit, int32_t *out) noexcept nogil
cdef int page_values(
    const uint8_t *p, size_t size, Py_ssize_t count, uint32_t entries, const uint8_t *values, int width, uint8_t *out
) noexcept nogil
