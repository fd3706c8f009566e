# Distinct values and their indexes, for kernels that hold the values.
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from pqext.core.kernels.buffer cimport Bytes

cdef struct Slot:
    uint32_t hash
    int32_t entry  # counted from 1; 0 is an empty slot


cdef struct Table:
    Slot *slots
    uint64_t mask
    Bytes values  # the concatenated entries
    Bytes starts  # int32 offset of each entry in `values`, and the end of the last
    int32_t entries


cdef Table open_table() except *
cdef void close_table(Table *table) noexcept nogil

# Number `count` values of `width` bytes, or between `ends` in `values` where `width` is 0: how many were indexed before
# the entries would take more than `limit` bytes, -1 when memory is out. The values have been checked.
cdef Py_ssize_t index_values(
    Table *table, const uint8_t *values, const int32_t *ends, Py_ssize_t width, Py_ssize_t count, Py_ssize_t limit,
    int32_t *indices
) noexcept nogil
