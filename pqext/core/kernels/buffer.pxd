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
    """Make room for `extra` more bytes; return 0, or -1 if memory is exhausted."""
    if extra > b.capacity - b.size:
        return bytes_grow(b, extra)
    return 0


cdef inline int bytes_append(Bytes *b, const void *source, size_t count) noexcept nogil:
    """Append `count` bytes; return 0, or -1 if memory is exhausted."""
    if bytes_reserve(b, count) != 0:
        return -1
    if count:
        memcpy(b.data + b.size, source, count)
        b.size += count
    return 0


cdef class Memory:
    """Owner of malloc memory, which it exposes read-only through the buffer protocol."""
    cdef uint8_t *data
    cdef size_t size


cdef Memory take(Bytes *b)
