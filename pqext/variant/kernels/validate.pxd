# cython: language_level=3
# The checks of whole metadata and values, for kernels that walk shredded columns. A checker is opaque and not shared
# between threads; 0 or a fault comes back, the fault with the *offset of its byte.
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from pqext.variant.kernels.binary cimport Metadata


cdef void *checker_new(uint32_t max_depth, bint allow_unknown) noexcept nogil
cdef void checker_free(void *checker) noexcept nogil
cdef int checker_metadata(
    void *checker, const uint8_t *p, size_t n, Metadata *metadata, size_t *offset
) noexcept nogil
cdef int checker_value(
    void *checker, const uint8_t *p, size_t n, const Metadata *metadata, size_t *offset
) noexcept nogil
