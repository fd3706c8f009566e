# cython: language_level=3
# Frames of zstd unpacked by the library's own functions, for kernels that hold no interpreter.
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from pqext.core.kernels.buffer cimport Bytes

ctypedef void *(*make_t)() noexcept nogil
ctypedef size_t (*free_t)(void *) noexcept nogil
ctypedef size_t (*unpack_t)(void *, void *, size_t, const void *, size_t) noexcept nogil
ctypedef unsigned (*is_error_t)(size_t) noexcept nogil


cdef class Context:
    cdef void *held
    cdef free_t free
    cdef unpack_t decompress
    cdef is_error_t is_error
    cdef Bytes scratch

    cdef uint8_t *room(self, size_t size) except NULL
    cdef void let_go(self) noexcept
    cdef bint unpack(self, const uint8_t *data, size_t size, uint8_t *out, size_t room) noexcept nogil
