# cython: language_level=3
"""LZ4 blocks: how many bytes one holds, which the block itself does not say."""
from libc.stdint cimport uint8_t


cdef Py_ssize_t measure(const uint8_t *p, size_t size) noexcept nogil:
    """The decompressed size, -1 when the sequences do not end with the block."""
    cdef const uint8_t *end = p + size
    cdef size_t literals, match, total = 0
    cdef uint8_t token, more
    while p < end:
        token = p[0]
        p += 1
        literals = token >> 4
        if literals == 15:
            while True:
                if p >= end:
                    return -1
                more = p[0]
                p += 1
                literals += more
                if more != 255:
                    break
        if literals > <size_t> (end - p):
            return -1
        p += literals
        total += literals
        if p == end:  # the last sequence has literals only
            return total
        if end - p < 2:
            return -1
        p += 2
        match = (token & 15) + 4
        if token & 15 == 15:
            while True:
                if p >= end:
                    return -1
                more = p[0]
                p += 1
                match += more
                if more != 255:
                    break
        total += match
    return -1


def decompressed_size(const uint8_t[::1] block):
    """Bytes that the sequences of an LZ4 block make, -1 when it is damaged. A byte makes 255 at most."""
    cdef Py_ssize_t found = -1
    if block.shape[0]:
        with nogil:
            found = measure(&block[0], block.shape[0])
    return found
