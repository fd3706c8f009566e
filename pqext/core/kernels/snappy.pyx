# cython: language_level=3
"""Snappy blocks of consecutive pages, decompressed in one call so that threads do not wait for each other."""
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pqext.core.kernels.page_run cimport PageRun

from pqext.core.errors import CorruptFileError

# Short copies are rounded up to whole words: what they write too much the next one overwrites.
cdef enum:
    SPARE_BYTES = 64

SPARE = SPARE_BYTES


cdef inline uint8_t *copy_short(uint8_t *q, size_t distance, size_t length) noexcept nogil:
    """Repeat what lies `distance` before `q`; writes fewer than `SPARE_BYTES` too much. Returns where it ends."""
    cdef uint8_t *end = q + length
    cdef const uint8_t *source = q - distance
    cdef uint8_t word[16]
    if distance >= 16:
        memcpy(word, source, 16)
        memcpy(q, word, 16)
        while length > 16:
            q += 16
            source += 16
            length -= 16
            memcpy(word, source, 16)
            memcpy(q, word, 16)
        return end
    while q - source < 8:  # what repeats grows twice as long with each copy
        memcpy(word, source, 8)
        memcpy(q, word, 8)
        q += q - source
    while q < end:
        memcpy(word, source, 8)
        memcpy(q, word, 8)
        q += 8
        source += 8
    return end


cdef bint unpack(const uint8_t *p, size_t stored, uint8_t *out, size_t size) noexcept nogil:
    """Decompress a block to exactly `size` bytes, behind which `SPARE_BYTES` may be written; false if damaged."""
    cdef const uint8_t *end = p + stored
    cdef uint8_t *q = out
    cdef uint8_t *limit = out + size
    cdef uint64_t claimed = 0
    cdef size_t length, distance, extra
    cdef uint8_t tag
    cdef int shift = 0
    if size == 0:
        return True
    while True:
        if p == end or shift > 28:
            return False
        claimed |= (<uint64_t> (p[0] & 0x7F)) << shift
        shift += 7
        p += 1
        if p[-1] < 0x80:
            break
    if claimed != size:
        return False
    while p < end:
        tag = p[0]
        p += 1
        length = (tag >> 2) + 1
        if tag & 3 == 0:
            if length <= 16 and end - p >= 16 and length <= <size_t> (limit - q):
                memcpy(q, p, 16)
                p += length
                q += length
                continue
            if length > 60:
                extra = length - 60
                if extra > <size_t> (end - p):
                    return False
                length = p[0]
                if extra > 1:
                    length |= <size_t> p[1] << 8
                if extra > 2:
                    length |= <size_t> p[2] << 16
                if extra > 3:
                    length |= <size_t> p[3] << 24
                length += 1
                p += extra
            if length > <size_t> (end - p) or length > <size_t> (limit - q):
                return False
            memcpy(q, p, length)
            p += length
            q += length
            continue
        if tag & 3 == 1:
            if p == end:
                return False
            length = ((tag >> 2) & 7) + 4
            distance = (<size_t> (tag & 0xE0) << 3) | p[0]
            p += 1
        elif tag & 3 == 2:
            if end - p < 2:
                return False
            distance = p[0] | (<size_t> p[1] << 8)
            p += 2
        else:
            if end - p < 4:
                return False
            distance = p[0] | (<size_t> p[1] << 8) | (<size_t> p[2] << 16) | (<size_t> p[3] << 24)
            p += 4
        if distance - 1 >= <size_t> (q - out) or length > <size_t> (limit - q):
            return False
        q = copy_short(q, distance, length)
    return q == limit


def decompress(PageRun run, uint8_t[::1] out):
    """Decompress pages of `run.counts` bytes one behind the other into `out`, which has `SPARE` bytes more."""
    cdef Py_ssize_t i
    cdef bint sound = True
    cdef uint8_t *q
    if out.shape[0] - SPARE_BYTES != run.total:
        raise ValueError("the output does not hold the pages and the spare bytes")
    q = &out[0]
    with nogil:
        for i in range(run.size):
            sound = unpack(run.parts[i].data, run.parts[i].size, q, <size_t> run.parts[i].count)
            if not sound:
                break
            q += run.parts[i].count
    if not sound:
        raise CorruptFileError(f"a page is not the Snappy block of {run.counts[i]} bytes that its header claims")
