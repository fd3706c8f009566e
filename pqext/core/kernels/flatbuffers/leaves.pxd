# The leaves of the schema in a FlatBuffers footer: what column chunks do not repeat there.
from libc.stdint cimport int8_t, int64_t, uint8_t

from pqext.core.kernels.buffer cimport Bytes

cdef enum:
    BAD_TREE = -30
    TOO_DEEP_TREE = -31
    TOO_MUCH_TREE = -32

    MOST_PATHS = 16      # times the bytes of a footer, and a megabyte, that the paths of its columns may take

cdef struct Leaves:
    int64_t count
    int8_t *types        # physical type of each, -1 for none
    uint8_t *by_bytes    # whether its values are in the order of their bytes
    int64_t *starts      # of the paths, in Thrift's form, and where the last one ends
    Bytes paths


cdef int find_leaves(const uint8_t *data, int64_t schema, int max_depth, int64_t most, Leaves *out) noexcept nogil
cdef void free_leaves(Leaves *leaves) noexcept nogil
