# Convert tables of a FlatBuffers footer to the equivalent Thrift structures.
from libc.stdint cimport int64_t, uint8_t

from pqext.core.kernels.buffer cimport Bytes
from pqext.core.kernels.flatbuffers.leaves cimport Leaves


cdef int put_element(const uint8_t *data, int64_t table, Bytes *o) noexcept nogil
cdef int put_group(const uint8_t *data, int64_t table, Bytes *o) noexcept nogil
cdef int put_file(const uint8_t *data, int64_t root, Bytes *o) noexcept nogil
cdef int put_chunk(
    const uint8_t *data, int64_t table, int64_t rows, Leaves *leaves, int64_t column, bint own, Bytes *o
) noexcept nogil
