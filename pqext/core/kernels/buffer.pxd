# Growable memory for kernels that cannot know their output's size, handed to Arrow without a copy.
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t
from libc.string cimport memcpy


cdef struct Bytes:
    uint8_t *data
    size_t size
    size_t capacity


cdef int bytes_grow(Bytes *b, size_t extra) noexcept nogil
cdef void bytes_free(Bytes *b) noexcept nogil


cdef inline int bytes_reserve(Bytes *b, size_t extra) noexcept nogil:
    """Make room for `extra` more bytes; 0, or -1 when memory is out."""
    if extra > b.capacity - b.size:
        return bytes_grow(b, extra)
    return 0


cdef inline int bytes_append(Bytes *b, const void *source, size_t count) noexcept nogil:
    """Append `count` bytes; 0, or -1 when memory is out."""
    if bytes_reserve(b, count) != 0:
        return -1
    if count:
        memcpy(b.data + b.size, source, count)
        b.size += count
    return 0


cdef class Memory:
    """Owns malloc memory and lends it through the buffer protocol, read-only."""
    cdef uint8_t *data
    cdef size_t size


cdef Memory take(Bytes *b)
