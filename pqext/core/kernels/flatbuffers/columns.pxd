# Column chunks, and key-value metadata, as tables of FlatBuffers.
from libc.stdint cimport int64_t

from pqext.core.kernels.flatbuffers.builder cimport Build, Table
from pqext.core.kernels.flatbuffers.thrift_fields cimport Fields

cdef enum:
    UNUSUAL = -40      # a structure that the tables cannot represent
    ENCRYPTED = -41

# Properties of a leaf's order that its bounds depend on.
cdef enum:
    BY_BYTES = 1       # as unsigned bytes, so that a shorter bound is one too
    TEXT = 2           # and they are UTF-8
    ORDERED = 4        # in the order of their type


cdef int put_pairs(Build *b, Table *t, int slot, Fields *fields, int id) noexcept nogil
cdef int put_column(
    Build *b, int64_t reference, Fields *chunk, int64_t rows, int type, int order
) noexcept nogil
