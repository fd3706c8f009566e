# cython: language_level=3
"""Leaves of the schema in a FlatBuffers footer, with the paths that column chunks have in Thrift."""
from libc.stdint cimport int64_t, int8_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from pqext.core.kernels.buffer cimport Bytes, bytes_free
from pqext.core.kernels.thrift.compact cimport BINARY, DONE
from pqext.core.kernels.flatbuffers.leaves cimport BAD_TREE, TOO_DEEP_TREE, TOO_MUCH_TREE, Leaves
from pqext.core.kernels.flatbuffers.tables cimport (
    AS_ENUM, AS_JSON, AS_STRING, AS_UUID, E_CHILDREN, E_LOGICAL, E_NAME, E_TYPE, byte_in, count_of, int_in, member,
    target,
)
from pqext.core.kernels.flatbuffers.thrift_fields cimport OUT_OF_MEMORY, put_bytes, put_list, put_varint


cdef void free_leaves(Leaves *leaves) noexcept nogil:
    free(leaves.types)
    free(leaves.by_bytes)
    free(leaves.starts)
    bytes_free(&leaves.paths)
    memset(leaves, 0, sizeof(Leaves))


cdef bint is_by_bytes(int logical) noexcept nogil:
    """Return whether byte arrays of this logical type are ordered by their bytes, so that truncated values are bounds.
    """
    return logical == 0 or logical == AS_STRING or logical == AS_ENUM or AS_JSON <= logical <= AS_UUID


cdef int put_name(const uint8_t *data, int64_t element, Bytes *o) noexcept nogil:
    cdef int64_t name = target(data, element, E_NAME)
    cdef int64_t size = count_of(data, name)
    if put_varint(o, size) != DONE:
        return OUT_OF_MEMORY
    return put_bytes(o, data + name + 4, size)


cdef int find_leaves(const uint8_t *data, int64_t schema, int max_depth, int64_t most, Leaves *out) noexcept nogil:
    """Collect the leaves of the schema in order. The paths take at most `most` bytes. Return DONE or a fault."""
    cdef int64_t count = count_of(data, schema), i, at, children, left
    cdef int64_t *above      # open groups: their elements, and the number of remaining children
    cdef int64_t *expected
    cdef int depth = 0, status = DONE, level
    memset(out, 0, sizeof(Leaves))
    if count == 0:
        return BAD_TREE
    above = <int64_t *> malloc((max_depth + 2) * sizeof(int64_t))
    expected = <int64_t *> malloc((max_depth + 2) * sizeof(int64_t))
    out.types = <int8_t *> malloc(count)
    out.by_bytes = <uint8_t *> malloc(count)
    out.starts = <int64_t *> malloc((count + 1) * sizeof(int64_t))
    if above == NULL or expected == NULL or out.types == NULL or out.by_bytes == NULL or out.starts == NULL:
        status = OUT_OF_MEMORY
    else:
        out.starts[0] = 0
        for i in range(count):
            at = member(data, schema, i)
            children = int_in(data, at, E_CHILDREN)
            if children < 0 or (i and depth == 0):
                status = BAD_TREE
                break
            if i:
                expected[depth - 1] -= 1
            if children or i == 0:
                if depth >= max_depth:
                    status = TOO_DEEP_TREE
                    break
                above[depth], expected[depth] = at, children
                depth += 1
            else:
                out.types[out.count] = <int8_t> byte_in(data, at, E_TYPE, -1)
                out.by_bytes[out.count] = is_by_bytes(byte_in(data, at, E_LOGICAL, 0) & 0xFF)
                status = put_list(&out.paths, BINARY, depth)
                for level in range(1, depth):
                    if status == DONE:
                        status = put_name(data, above[level], &out.paths)
                if status == DONE:
                    status = put_name(data, at, &out.paths)
                if status == DONE and <int64_t> out.paths.size > most:
                    status = TOO_MUCH_TREE
                if status != DONE:
                    break
                out.count += 1
                out.starts[out.count] = out.paths.size
            while depth and expected[depth - 1] == 0:
                depth -= 1
        if status == DONE and depth:
            status = BAD_TREE
    free(above)
    free(expected)
    if status != DONE:
        free_leaves(out)
    return status
