# cython: language_level=3
"""The run-length and bit-packing hybrid: levels, dictionary indices and booleans (encodings.rle)."""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int16_t, int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve

from pqext.core.errors import CorruptFileError

ctypedef fused value_t:
    uint8_t
    int16_t
    int32_t

cdef enum:
    OK = 0
    TRUNCATED = -1
    BAD_VARINT = -2
    EMPTY_RUN = -3
    TOO_LARGE = -4
    OUT_OF_MEMORY = -5

MESSAGES = {
    TRUNCATED: "run-length data ends before all values were read",
    BAD_VARINT: "a run header is longer than 32 bits",
    EMPTY_RUN: "a run of length zero",
    TOO_LARGE: "a value lies outside the range allowed for this column",
}


cdef inline int read_varint(const uint8_t *p, size_t size, size_t *at, uint32_t *out) noexcept nogil:
    cdef uint32_t result = 0
    cdef int shift = 0
    cdef uint8_t byte
    while True:
        if at[0] >= size:
            return TRUNCATED
        byte = p[at[0]]
        at[0] += 1
        if shift == 28 and byte > 0x0F:
            return BAD_VARINT
        result |= <uint32_t> (byte & 0x7F) << shift
        if byte < 0x80:
            out[0] = result
            return OK
        shift += 7


cdef inline uint64_t load64(const uint8_t *p) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, p, 8)
    return word


cdef uint32_t unpack(const uint8_t *p, size_t size, int width, Py_ssize_t count, value_t *out) noexcept nogil:
    """Unpack `count` values of `width` bits from `size` bytes that hold them all; returns the OR of all values."""
    cdef uint64_t mask = (<uint64_t> 1 << width) - 1
    cdef uint64_t bit = 0
    cdef uint32_t seen = 0, value
    cdef Py_ssize_t i = 0, safe = 0
    cdef uint8_t tail[8]
    cdef size_t at, left
    if size >= 8:
        # The 8-byte load for value i starts at byte (i * width) // 8, which must be <= size - 8.
        safe = <Py_ssize_t> (((<uint64_t> (size - 8)) * 8 + 7) // <uint64_t> width) + 1
        if safe > count:
            safe = count
    for i in range(safe):
        value = <uint32_t> ((load64(p + (bit >> 3)) >> (bit & 7)) & mask)
        seen |= value
        out[i] = <value_t> value
        bit += width
    for i in range(safe, count):
        at = bit >> 3
        left = size - at
        if left > 8:
            left = 8
        memcpy(tail, p + at, left)
        value = <uint32_t> ((load64(tail) >> (bit & 7)) & mask)
        seen |= value
        out[i] = <value_t> value
        bit += width
    return seen


cdef int decode(
    const uint8_t *p, size_t size, int width, Py_ssize_t count, uint32_t limit, value_t *out, size_t *consumed
) noexcept nogil:
    """Decode `count` values that must each be < `limit` (checked exactly), reading within `size` bytes."""
    cdef size_t at = 0, bytes_
    cdef uint32_t header = 0, value
    cdef int status, byte_width = (width + 7) // 8, i
    cdef Py_ssize_t done = 0, run, j
    while done < count:
        status = read_varint(p, size, &at, &header)
        if status != OK:
            return status
        run = header >> 1
        if run == 0:
            return EMPTY_RUN
        if header & 1:
            if run > (count - done + 7) // 8:
                run = (count - done + 7) // 8
            bytes_ = <size_t> run * width
            run = run * 8
            if run > count - done:
                run = count - done
            if bytes_ > size - at:
                # Some writers cut the padding of the last group: what is needed must be there.
                bytes_ = size - at
                if <uint64_t> bytes_ * 8 < <uint64_t> run * width:
                    return TRUNCATED
            if width == 0:
                for j in range(run):
                    out[done + j] = 0
            else:
                value = unpack(p + at, bytes_, width, run, out + done)
                if value >= limit:
                    for j in range(run):
                        if <uint32_t> out[done + j] >= limit:
                            return TOO_LARGE
            at += bytes_
        else:
            if <size_t> byte_width > size - at:
                return TRUNCATED
            value = 0
            for i in range(byte_width):
                value |= <uint32_t> p[at + i] << (8 * i)
            at += byte_width
            if value >= limit:
                return TOO_LARGE
            if run > count - done:
                run = count - done
            for j in range(run):
                out[done + j] = <value_t> value
        done += run
    consumed[0] = at
    return OK


def decode_into(const uint8_t[::1] data, int width, uint32_t limit, value_t[::1] out):
    """Fill `out` with the hybrid-encoded values of `data`; returns the bytes consumed.

    `width` is 0 to 32 bits; each value must be below `limit`.
    """
    cdef size_t consumed = 0, size = data.shape[0]
    cdef int status = OK
    cdef Py_ssize_t count = out.shape[0]
    if not 0 <= width <= 32:
        raise CorruptFileError(f"a bit width of {width} for run-length data")
    if count == 0:
        return 0
    if size == 0:
        if width == 0 and limit > 0:
            out[:] = 0
            return 0
        status = TRUNCATED
    else:
        with nogil:
            status = decode(&data[0], size, width, count, limit, &out[0], &consumed)
    if status != OK:
        raise CorruptFileError(MESSAGES[status])
    return consumed


cdef inline int put_varint(Bytes *b, uint32_t value) noexcept nogil:
    cdef uint8_t byte
    while value >= 0x80:
        byte = <uint8_t> (value | 0x80)
        if bytes_append(b, &byte, 1) != 0:
            return -1
        value >>= 7
    byte = <uint8_t> value
    return bytes_append(b, &byte, 1)


cdef int put_packed(Bytes *b, const value_t *values, Py_ssize_t count, int width) noexcept nogil:
    """One bit-packed run of `count` values, padded with zeros to a multiple of eight."""
    cdef Py_ssize_t groups = (count + 7) // 8, i
    cdef size_t total = <size_t> groups * width
    cdef uint64_t word = 0
    cdef int filled = 0
    cdef uint8_t *out
    if put_varint(b, <uint32_t> (groups << 1 | 1)) != 0 or bytes_reserve(b, total + 8) != 0:
        return -1
    out = b.data + b.size
    for i in range(groups * 8):
        if i < count:
            word |= <uint64_t> <uint32_t> values[i] << filled
        filled += width
        while filled >= 8:
            out[0] = <uint8_t> word
            out += 1
            word >>= 8
            filled -= 8
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


cdef int encode_all(Bytes *b, const value_t *values, Py_ssize_t count, int width) noexcept nogil:
    """Runs of eight or more equal values become RLE runs; what lies between is bit-packed in whole groups."""
    cdef Py_ssize_t start = 0, at = 0, run, take, longest = 1 << 24
    while at < count:
        run = 1
        while at + run < count and run < longest and values[at + run] == values[at]:
            run += 1
        # A pending bit-packed stretch must end on a group of eight: let this run complete the group.
        take = (8 - (at - start) % 8) % 8
        if run - take >= 8:
            if at + take > start and put_packed(b, values + start, at + take - start, width) != 0:
                return -1
            if put_run(b, <uint32_t> values[at], run - take, width) != 0:
                return -1
            at += run
            start = at
        else:
            at += run
            while at - start >= longest:
                if put_packed(b, values + start, longest, width) != 0:
                    return -1
                start += longest
    if at > start:
        return put_packed(b, values + start, at - start, width)
    return 0


def encode(const value_t[::1] values, int width):
    """Encode values of at most `width` bits as `bytes`, without a length prefix."""
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
            raise MemoryError("run-length encoding")
        return PyBytes_FromStringAndSize(<char *> out.data, <Py_ssize_t> out.size)
    finally:
        bytes_free(&out)
