# Convert column chunks and key-value metadata to tables of FlatBuffers.
from libc.stdint cimport int64_t

from pqext.core.kernels.flatbuffers.builder cimport Build, Table
from pqext.core.kernels.flatbuffers.thrift_fields cimport Fields

cdef enum:
    UNUSUAL = -40      # a structure that the tables cannot represent
    ENCRYPTED = -41

# Properties of the order of a leaf that determine its bounds.
cdef enum:
    BY_BYTES = 1       # values are ordered as unsigned bytes, so that truncated bounds are valid
    TEXT = 2           # values are also UTF-8
    ORDERED = 4        # bounds have the order of the type


cdef int put_pairs(Build *b, Table *t, int slot, Fields *fields, int id) noexcept nogil
cdef int put_column(
    Build *b, int64_t reference, Fields *chunk, int64_t rows, int type, int order
) noexcept nogil
