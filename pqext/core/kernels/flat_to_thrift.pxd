# Tables of a FlatBuffers footer as the Thrift structures that they stand for.
from libc.stdint cimport int8_t, int64_t, uint8_t

from pqext.core.kernels.buffer cimport Bytes

cdef struct Leaves:
    int64_t count
    int8_t *types        # physical type of each, -1 for none
    int64_t *starts      # of the paths, in Thrift's form, and where the last one ends
    Bytes paths


cdef int find_leaves(const uint8_t *data, int64_t schema, int max_depth, int64_t most, Leaves *out) noexcept nogil
cdef void free_leaves(Leaves *leaves) noexcept nogil
cdef int put_element(const uint8_t *data, int64_t table, Bytes *o) noexcept nogil
cdef int put_group(const uint8_t *data, int64_t table, Bytes *o) noexcept nogil
cdef int put_file(const uint8_t *data, int64_t root, Bytes *o) noexcept nogil
cdef int put_chunk(
    const uint8_t *data, int64_t table, int64_t rows, Leaves *leaves, int64_t column, bint own, Bytes *o
) noexcept nogil
