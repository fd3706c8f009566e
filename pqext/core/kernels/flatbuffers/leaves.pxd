# Leaves of the schema in a FlatBuffers footer, whose properties column chunks do not repeat.
from libc.stdint cimport int8_t, int64_t, uint8_t

from pqext.core.kernels.buffer cimport Bytes

cdef enum:
    BAD_TREE = -30
    TOO_DEEP_TREE = -31
    TOO_MUCH_TREE = -32

    MOST_PATHS = 16      # times the bytes of a footer, and a megabyte, that the paths of its columns may take

cdef struct Leaves:
    int64_t count
    int8_t *types        # physical type of each leaf, -1 if it has none
    uint8_t *by_bytes    # whether values are ordered by their bytes
    int64_t *starts      # start of each serialised Thrift path, and the end of the last
    Bytes paths


cdef int find_leaves(const uint8_t *data, int64_t schema, int max_depth, int64_t most, Leaves *out) noexcept nogil
cdef void free_leaves(Leaves *leaves) noexcept nogil
