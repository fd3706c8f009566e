# cython: language_level=3
"""Compute the decompressed sizes of LZ4 and LZO1X blocks, which the blocks do not store."""
from libc.stdint cimport uint8_t


cdef Py_ssize_t measure_lz4(const uint8_t *p, size_t size) noexcept nogil:
    """Return the decompressed size of an LZ4 block in bytes; -1 if its sequences do not end at the end of the block."""
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


def lz4_size(const uint8_t[::1] block):
    """Return the decompressed size of an LZ4 block; -1 if it is corrupt. A byte expands to at most 255 bytes."""
    cdef Py_ssize_t found = -1
    if block.shape[0]:
        with nogil:
            found = measure_lz4(&block[0], block.shape[0])
    return found


cdef bint extend(const uint8_t **place, const uint8_t *end, size_t *length) noexcept nogil:
    """Add the bytes after an instruction whose length field is 0 to `length`: 255 for each zero, and the next byte.

    Return False if `end` precedes this byte.
    """
    cdef const uint8_t *p = place[0]
    while p < end and p[0] == 0:
        length[0] += 255
        p += 1
    if p >= end:
        return False
    length[0] += p[0]
    place[0] = p + 1
    return True


cdef Py_ssize_t measure_lzo(const uint8_t *p, size_t size) noexcept nogil:
    """Return the decompressed size of an LZO1X block in bytes; -1 if its instructions do not end at the end of the
    block.
    """
    cdef const uint8_t *end = p + size
    # `literals` follow the instruction; the number of preceding literals is part of the next instruction's meaning.
    cdef size_t total = 0, length = 0, literals = 0, before
    cdef uint8_t code
    cdef uint8_t low
    if p < end and p[0] > 17:  # the first byte may be a count of literals
        literals = p[0] - 17
        p += 1
        if literals > <size_t> (end - p):
            return -1
        p += literals
        total = literals
    while p < end:
        before = literals
        code = p[0]
        p += 1
        length = 0
        if code >= 64:  # a match within 2 KiB
            if p >= end:
                return -1
            p += 1
            length = (code >> 5) + 1
            literals = code & 3
        elif code >= 16:  # within 16 or 48 KiB
            low = 31 if code >= 32 else 7
            length = (code & low) + 2
            if not code & low:
                length += low
                if not extend(&p, end, &length):
                    return -1
            if end - p < 2:
                return -1
            literals = p[0] & 3
            if code < 32 and not code & 8 and p[0] < 4 and not p[1]:  # no distance: the end
                p += 2
                return total if p == end else -1
            p += 2
        elif before:  # a short match, whose length depends on the preceding literals
            if p >= end:
                return -1
            p += 1
            length = 2 if before < 4 else 3
            literals = code & 3
        else:  # only literals
            literals = code + 3
            if not code and not extend(&p, end, &literals):
                return -1
            if not code:
                literals += 15
        if literals > <size_t> (end - p):
            return -1
        p += literals
        total += length + literals
        if not length:
            literals = 4  # larger numbers of literals have the same effect
    return -1


def lzo_size(const uint8_t[::1] block):
    """Return the decompressed size of an LZO1X block; -1 if it is corrupt. A byte expands to at most 255 bytes."""
    cdef Py_ssize_t found = -1
    if block.shape[0]:
        with nogil:
            found = measure_lzo(&block[0], block.shape[0])
    return found
