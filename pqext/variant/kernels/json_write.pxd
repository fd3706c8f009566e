# cython: language_level=3
# Values of the Variant encoding as JSON text, for kernels that find some of a row's values in that form.
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from pqext.core.kernels.buffer cimport Bytes
from pqext.variant.kernels.binary cimport Container, Metadata


cdef struct Frame:
    Container container
    uint32_t next           # child
    size_t used             # bytes of the children before it


cdef struct Stack:
    Frame *frames
    size_t depth
    size_t capacity


cdef int write_value(
    Bytes *out, Stack *stack, const Metadata *metadata, const uint8_t *p, size_t n, const uint8_t *readable,
    const uint8_t *names_end, const uint8_t **where
) noexcept nogil
