# cython: language_level=3
"""Encode the hybrid of run-length encoding and bit-packing (encodings.rle)."""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int16_t, int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve
from pqext.core.kernels.thrift.compact_write cimport put_varint

ctypedef fused value_t:
    uint8_t
    int16_t
    int32_t


cdef inline void pack_group(const value_t *values, int width, uint8_t *out) noexcept nogil:
    """Pack eight values of `width` bits into `width` bytes; up to eight additional bytes are overwritten."""
    cdef uint64_t word = 0
    cdef int i, filled = 0
    for i in range(8):
        word |= <uint64_t> <uint32_t> values[i] << filled
        filled += width
        if filled >= 32:
            memcpy(out, &word, 4)
            out += 4
            word >>= 32
            filled -= 32
    memcpy(out, &word, 8)


cdef inline void pack_bits(const value_t *values, Py_ssize_t groups, uint8_t *out) noexcept nogil:
    """Pack groups of eight values of one bit each."""
    cdef Py_ssize_t i
    for i in range(groups):
        out[i] = <uint8_t> (
            values[0] | values[1] << 1 | values[2] << 2 | values[3] << 3
            | values[4] << 4 | values[5] << 5 | values[6] << 6 | values[7] << 7
        )
        values += 8


cdef int put_packed(Bytes *b, const value_t *values, Py_ssize_t count, int width) noexcept nogil:
    """Append one bit-packed run of `count` values, padded with zeros to a multiple of eight."""
    cdef Py_ssize_t groups = (count + 7) // 8, whole = count // 8, i
    cdef size_t total = <size_t> groups * width
    cdef value_t[8] last
    cdef uint8_t *out
    if put_varint(b, <uint32_t> (groups << 1 | 1)) != 0 or bytes_reserve(b, total + 16) != 0:
        return -1
    out = b.data + b.size
    if width == 1:
        pack_bits(values, whole, out)
    elif width:
        for i in range(whole):
            pack_group(values + i * 8, width, out + i * width)
    if groups > whole and width:
        for i in range(8):
            last[i] = values[whole * 8 + i] if whole * 8 + i < count else 0
        pack_group(last, width, out + whole * width)
    b.size += total
    return 0


cdef int put_run(Bytes *b, uint32_t value, Py_ssize_t count, int width) noexcept nogil:
    cdef int i
    cdef uint8_t byte
    if put_varint(b, <uint32_t> (count << 1)) != 0:
        return -1
    for i in range((width + 7) // 8):
        byte = <uint8_t> (value >> (8 * i))
        if bytes_append(b, &byte, 1) != 0:
            return -1
    return 0


cdef inline bint uniform(const value_t *values) noexcept nogil:
    """Return whether eight values are equal."""
    cdef int i
    cdef value_t differs = 0
    for i in range(1, 8):
        differs |= values[i] ^ values[0]
    return differs == 0


cdef int encode_all(Bytes *b, const value_t *values, Py_ssize_t count, int width) noexcept nogil:
    """Encode groups of eight equal values as RLE runs if that is shorter, and bit-pack the other values."""
    cdef Py_ssize_t start = 0, at = 0, end, longest = 1 << 24
    # An RLE run takes about four bytes: its header and value, and the header of the next bit-packed run.
    cdef Py_ssize_t least = 8 * (1 + 3 // width if width else 1)
    while count - at >= 8:
        if not uniform(values + at):
            at += 8
            if at - start >= longest:
                if put_packed(b, values + start, at - start, width) != 0:
                    return -1
                start = at
            continue
        end = at + 8
        while count - end >= 8 and end - at < longest and values[end] == values[at] and uniform(values + end):
            end += 8
        if end - at < least:
            at = end
            continue
        while end < count and end - at < longest and values[end] == values[at]:
            end += 1
        if at > start and put_packed(b, values + start, at - start, width) != 0:
            return -1
        if put_run(b, <uint32_t> values[at], end - at, width) != 0:
            return -1
        start = at = end
    if count > start:
        return put_packed(b, values + start, count - start, width)
    return 0


cdef int put_levels(Bytes *b, const int16_t *levels, Py_ssize_t count, int width) noexcept nogil:
    return encode_all(b, levels, count, width)


cdef int put_indices(Bytes *b, const int32_t *indices, Py_ssize_t count, int width) noexcept nogil:
    return encode_all(b, indices, count, width)


cdef int put_same_levels(Bytes *b, int16_t level, Py_ssize_t count, int width) noexcept nogil:
    """Append one level `count` times, in the same bytes as `encode_all`."""
    cdef int16_t[64] few
    cdef Py_ssize_t i, part, longest = 1 << 24
    while count >= 64:
        part = count if count < longest else longest
        if put_run(b, <uint32_t> level, part, width) != 0:
            return -1
        count -= part
    for i in range(count):
        few[i] = level
    return encode_all(b, few, count, width)


def encode(const value_t[::1] values, int width):
    """Return the hybrid encoding of values of at most `width` bits as `bytes`, without a length prefix."""
    cdef Bytes out
    cdef int status = 0
    cdef Py_ssize_t count = values.shape[0]
    out.data = NULL
    out.size = 0
    out.capacity = 0
    if not 0 <= width <= 32:
        raise ValueError(f"bit width {width} is outside 0 to 32")
    try:
        if count:
            with nogil:
                status = encode_all(&out, &values[0], count, width)
        if status != 0:
            raise MemoryError("out of memory for run-length encoding")
        return PyBytes_FromStringAndSize(<char *> out.data, <Py_ssize_t> out.size)
    finally:
        bytes_free(&out)
