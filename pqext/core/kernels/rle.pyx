# cython: language_level=3
"""The run-length and bit-packing hybrid: levels, dictionary indices and booleans (encodings.rle)."""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int16_t, int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pqext.core.kernels.bitpack cimport unpack
from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve
from pqext.core.kernels.leb128 cimport BAD_VARINT, TRUNCATED, read_leb128

from pqext.core.errors import CorruptFileError

ctypedef fused value_t:
    uint8_t
    int16_t
    int32_t

cdef enum:
    OK = 0
    EMPTY_RUN = -3
    TOO_LARGE = -4
    OUT_OF_MEMORY = -5
    BLOCK = 1024

MESSAGES = {
    TRUNCATED: "run-length data ends before all values were read",
    BAD_VARINT: "a run header is longer than 32 bits",
    EMPTY_RUN: "a run of length zero",
    TOO_LARGE: "a value lies outside the range allowed for this column",
}


cdef struct Runs:
    # Where the reader of hybrid data stands: `left` values of a run, repeated (`value`) or packed from `at` on.
    const uint8_t *p
    size_t size
    size_t at
    int width
    uint32_t limit
    Py_ssize_t left
    bint packed
    uint32_t value


cdef int next_run(Runs *runs, Py_ssize_t wanted) noexcept nogil:
    """Read the header of the next run, of which no more than `wanted` values are needed."""
    cdef uint64_t header = 0
    cdef int status = read_leb128(runs.p, runs.size, &runs.at, 32, &header), i
    cdef Py_ssize_t count = header >> 1
    if status != OK:
        return status
    if count == 0:
        return EMPTY_RUN
    runs.packed = header & 1 and runs.width > 0
    if header & 1:
        count *= 8
        if count > wanted:
            count = wanted
        # Some writers cut the padding of the last group: what is needed must be there.
        if (<uint64_t> count * runs.width + 7) // 8 > runs.size - runs.at:
            return TRUNCATED
        runs.value = 0
    else:
        if <size_t> ((runs.width + 7) // 8) > runs.size - runs.at:
            return TRUNCATED
        runs.value = 0
        for i in range((runs.width + 7) // 8):
            runs.value |= <uint32_t> runs.p[runs.at + i] << (8 * i)
        runs.at += (runs.width + 7) // 8
        if runs.value >= runs.limit:
            return TOO_LARGE
        if count > wanted:
            count = wanted
    runs.left = count
    return OK


cdef int next_block(Runs *runs, uint32_t *block, Py_ssize_t count) noexcept nogil:
    """Unpack `count` values, at most BLOCK and a multiple of eight but at the run's end, of a packed run."""
    cdef uint32_t seen = 0
    cdef Py_ssize_t i
    unpack(runs.p + runs.at, runs.size - runs.at, runs.width, count, block)
    for i in range(count):
        seen |= block[i]
    if seen >= runs.limit:
        for i in range(count):
            if block[i] >= runs.limit:
                return TOO_LARGE
    runs.left -= count
    # The last group of a run may lack its padding; nothing is read behind it when it was the last wanted.
    runs.at += (<size_t> (count + 7) // 8) * runs.width
    if runs.at > runs.size:
        runs.at = runs.size
    return OK


cdef int decode(Runs *runs, Py_ssize_t count, value_t *out) noexcept nogil:
    """Decode `count` values that must each be below the limit (checked exactly)."""
    cdef Py_ssize_t done = 0, run, i
    cdef uint32_t[BLOCK] block
    cdef int status
    while done < count:
        status = next_run(runs, count - done)
        if status != OK:
            return status
        if not runs.packed:
            run = runs.left
            if value_t is uint8_t:
                memset(out + done, runs.value, run)
            else:
                for i in range(run):
                    out[done + i] = <value_t> runs.value
            done += run
            continue
        while runs.left:
            run = runs.left if runs.left < BLOCK else BLOCK
            status = next_block(runs, block, run)
            if status != OK:
                return status
            for i in range(run):
                out[done + i] = <value_t> block[i]
            done += run
    return OK


cdef inline void gather(
    const uint8_t *values, int value_width, const uint32_t *block, Py_ssize_t count, uint8_t *out
) noexcept nogil:
    cdef Py_ssize_t i
    if value_width == 4:
        for i in range(count):
            memcpy(out + i * 4, values + <size_t> block[i] * 4, 4)
    elif value_width == 8:
        for i in range(count):
            memcpy(out + i * 8, values + <size_t> block[i] * 8, 8)
    elif value_width == 16:
        for i in range(count):
            memcpy(out + i * 16, values + <size_t> block[i] * 16, 16)
    else:
        for i in range(count):
            memcpy(out + i * value_width, values + <size_t> block[i] * value_width, value_width)


cdef int look_up(Runs *runs, Py_ssize_t count, const uint8_t *values, int value_width, uint8_t *out) noexcept nogil:
    cdef Py_ssize_t done = 0, run, i
    cdef uint32_t[BLOCK] block
    cdef int status
    while done < count:
        status = next_run(runs, count - done)
        if status != OK:
            return status
        while runs.left:
            run = runs.left if runs.left < BLOCK else BLOCK
            if runs.packed:
                status = next_block(runs, block, run)
                if status != OK:
                    return status
            else:
                for i in range(run):
                    block[i] = runs.value
                runs.left -= run
            gather(values, value_width, block, run, out + done * value_width)
            done += run
    return OK


cdef Runs open_runs(const uint8_t[::1] data, int width, uint32_t limit) except *:
    cdef Runs runs
    if not 0 <= width <= 32:
        raise CorruptFileError(f"a bit width of {width} for run-length data")
    runs.p = &data[0] if data.shape[0] else NULL
    runs.size = data.shape[0]
    runs.at = 0
    runs.width = width
    runs.limit = limit
    runs.left = 0
    runs.packed = False
    runs.value = 0
    return runs


cdef check(int status):
    if status != OK:
        raise CorruptFileError(MESSAGES[status])


def decode_into(const uint8_t[::1] data, int width, uint32_t limit, value_t[::1] out):
    """Fill `out` with the hybrid-encoded values of `data`; returns the bytes consumed.

    `width` is 0 to 32 bits; each value must be below `limit`. Data of width 0 may be missing altogether.
    """
    cdef int status = OK
    cdef Py_ssize_t count = out.shape[0]
    cdef Runs runs = open_runs(data, width, limit)
    if count == 0:
        return 0
    if runs.size == 0 and width == 0 and limit > 0:
        out[:] = 0
        return 0
    with nogil:
        status = decode(&runs, count, &out[0])
    check(status)
    return runs.at


def look_up_into(
    const uint8_t[::1] data, int width, const uint8_t[::1] values, int value_width, uint32_t entries, uint8_t[::1] out
):
    """Fill `out` with the dictionary values that the indices of `data` name.

    `values` holds `entries` values of `value_width` bytes; `out` takes a whole number of them.
    """
    cdef int status = OK
    cdef Runs runs = open_runs(data, width, entries)
    if value_width < 1 or <size_t> entries * value_width > <size_t> values.shape[0] or out.shape[0] % value_width:
        raise ValueError("values and output do not hold whole values")
    cdef Py_ssize_t i, count = out.shape[0] // value_width
    if count == 0:
        return
    if entries == 0:
        raise CorruptFileError("a page refers to a dictionary that is empty")
    if runs.size == 0 and width == 0:
        for i in range(count):
            memcpy(&out[i * value_width], &values[0], value_width)
        return
    with nogil:
        status = look_up(&runs, count, &values[0], value_width, &out[0])
    check(status)


def decode_flags(const uint8_t[::1] data, uint8_t[::1] out):
    """Fill `out` with levels of 0 or 1; returns how many are 1."""
    cdef Py_ssize_t i, ones = 0, count = out.shape[0]
    decode_into(data, 1, 2, out)
    with nogil:
        for i in range(count):
            ones += out[i]
    return ones


cdef inline int put_varint(Bytes *b, uint32_t value) noexcept nogil:
    cdef uint8_t byte
    while value >= 0x80:
        byte = <uint8_t> (value | 0x80)
        if bytes_append(b, &byte, 1) != 0:
            return -1
        value >>= 7
    byte = <uint8_t> value
    return bytes_append(b, &byte, 1)


cdef inline void pack_group(const value_t *values, int width, uint8_t *out) noexcept nogil:
    """Eight values of `width` bits in `width` bytes; up to eight bytes more are written."""
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
    """Groups of eight values of one bit."""
    cdef Py_ssize_t i
    for i in range(groups):
        out[i] = <uint8_t> (
            values[0] | values[1] << 1 | values[2] << 2 | values[3] << 3
            | values[4] << 4 | values[5] << 5 | values[6] << 6 | values[7] << 7
        )
        values += 8


cdef int put_packed(Bytes *b, const value_t *values, Py_ssize_t count, int width) noexcept nogil:
    """One bit-packed run of `count` values, padded with zeros to a multiple of eight."""
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
    """Are eight values the same?"""
    cdef int i
    cdef value_t differs = 0
    for i in range(1, 8):
        differs |= values[i] ^ values[0]
    return differs == 0


cdef int encode_all(Bytes *b, const value_t *values, Py_ssize_t count, int width) noexcept nogil:
    """Groups of eight equal values become RLE runs where that is shorter; what lies between is bit-packed."""
    cdef Py_ssize_t start = 0, at = 0, end, longest = 1 << 24
    # A run costs about four bytes: its header and value, and the header of the bit-packed run behind it.
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
