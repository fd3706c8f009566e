# cython: language_level=3
"""DELTA_BINARY_PACKED encoding: blocks of bit-packed differences, relative to the minimum of the block
(encodings.delta).
"""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from pqext.core.kernels.bitpack cimport (
    bits_of, last_value_at, load64, loadable, mask_of, pack, value_at,
)
from pqext.core.kernels.buffer cimport Bytes, bytes_free, bytes_reserve, take
from pqext.core.kernels.leb128 cimport BAD_VARINT, TRUNCATED, read_leb128

from pqext.core.base.errors import CorruptFileError

ctypedef fused value_t:
    int32_t
    int64_t

cdef enum:
    OK = 0
    BAD_BLOCK = -3
    BAD_MINIBLOCK = -4
    BAD_WIDTH = -5
    OUT_OF_MEMORY = -6

    BLOCK = 128
    MINIBLOCKS = 4
    MINIBLOCK = 32

MESSAGES = {
    TRUNCATED: "delta-encoded data ends before the last value",
    BAD_VARINT: "a number in delta-encoded data is longer than 64 bits",
    BAD_BLOCK: "the block size of delta-encoded data is not a multiple of 128",
    BAD_MINIBLOCK: "the miniblock size of delta-encoded data is not a multiple of 32",
    BAD_WIDTH: "delta-encoded data has more than 64 bits per value",
}


cdef struct Header:
    uint64_t miniblocks
    uint64_t miniblock
    uint64_t count
    uint64_t first


cdef inline uint64_t unzigzag(uint64_t value) noexcept nogil:
    return (value >> 1) ^ (0 - (value & 1))


cdef int read_header(const uint8_t *p, size_t size, size_t *at, Header *header) noexcept nogil:
    cdef uint64_t block = 0
    cdef int status = read_leb128(p, size, at, 64, &block)
    if status == OK:
        status = read_leb128(p, size, at, 64, &header.miniblocks)
    if status == OK:
        status = read_leb128(p, size, at, 64, &header.count)
    if status == OK:
        status = read_leb128(p, size, at, 64, &header.first)
    if status != OK:
        return status
    header.first = unzigzag(header.first)
    # The upper bound keeps all products below 2**63.
    if block == 0 or block % 128 or block > 0x7FFFFFFF:
        return BAD_BLOCK
    if header.miniblocks == 0 or block % header.miniblocks or (block // header.miniblocks) % 32:
        return BAD_MINIBLOCK
    header.miniblock = block // header.miniblocks
    return OK


cdef uint64_t unpack_deltas(
    const uint8_t *p, size_t size, int width, Py_ssize_t count, uint64_t least, uint64_t last, value_t *out
) noexcept nogil:
    """Add `count` packed differences, each plus `least`, to `last`, and return the last sum. They take `size` bytes.

    Sums wrap around in the width of the output, because only their low bits are stored.
    """
    cdef uint64_t mask = mask_of(width), bit = 0
    cdef Py_ssize_t i, safe = loadable(size, width, count)
    if width == 0:
        for i in range(count):
            last += least
            out[i] = <value_t> last
        return last
    if width <= 57:
        for i in range(safe):
            last += least + ((load64(p + (bit >> 3)) >> (bit & 7)) & mask)
            out[i] = <value_t> last
            bit += <uint64_t> width
    else:
        for i in range(safe):
            last += least + value_at(p, bit, width, mask)
            out[i] = <value_t> last
            bit += <uint64_t> width
    for i in range(safe, count):
        last += least + last_value_at(p, size, bit, width, mask)
        out[i] = <value_t> last
        bit += <uint64_t> width
    return last


cdef int decode(
    const uint8_t *p, size_t size, Py_ssize_t count, value_t *out, Header *header, size_t *consumed
) noexcept nogil:
    """Decode `count` values after the header, 1 <= count <= header.count. Return OK or a fault."""
    cdef size_t at = consumed[0], widths, stored, needed
    cdef uint64_t last = header.first, least = 0, miniblock
    cdef Py_ssize_t done = 1, run
    cdef int status, width
    out[0] = <value_t> last
    while done < count:
        status = read_leb128(p, size, &at, 64, &least)
        if status != OK:
            return status
        least = unzigzag(least)
        if header.miniblocks > size - at:
            return TRUNCATED
        widths = at
        at += header.miniblocks
        for miniblock in range(header.miniblocks):
            # Widths of unused miniblocks can have any value.
            if done >= count:
                break
            width = p[widths + miniblock]
            # DuckDB uses 33 bits for some differences of INT32; the sums wrap around to the correct values.
            if width > 64:
                return BAD_WIDTH
            run = count - done
            if <uint64_t> run > header.miniblock:
                run = <Py_ssize_t> header.miniblock
            stored = header.miniblock * <size_t> width // 8
            if stored > size - at:
                # Some writers omit the padding of the last miniblock, but needed bytes must be present.
                needed = (<size_t> run * <size_t> width + 7) // 8
                if needed > size - at:
                    return TRUNCATED
                stored = size - at
            last = unpack_deltas(p + at, size - at, width, run, least, last, out + done)
            at += stored
            done += run
    consumed[0] = at
    return OK


cdef _raise(int status):
    if status == OUT_OF_MEMORY:
        raise MemoryError("out of memory for delta encoding")
    raise CorruptFileError(MESSAGES[status])


def decode_into(const uint8_t[::1] data, value_t[::1] out, bint exact=False):
    """Fill `out` with the first values of `data`; return the number of bytes consumed.

    Raises ``CorruptFileError`` if `data` has fewer values than `out`, or more values if `exact`.
    """
    cdef Header header
    cdef size_t consumed = 0, size = data.shape[0]
    cdef Py_ssize_t count = out.shape[0]
    cdef int status
    if size == 0:
        if count == 0:
            return 0
        _raise(TRUNCATED)
    status = read_header(&data[0], size, &consumed, &header)
    if status != OK:
        _raise(status)
    if header.count < <uint64_t> count or (exact and header.count != <uint64_t> count):
        raise CorruptFileError(f"delta-encoded data contains {header.count} values instead of {count}")
    if count == 0:
        return consumed
    with nogil:
        status = decode(&data[0], size, count, &out[0], &header, &consumed)
    if status != OK:
        _raise(status)
    return consumed


cdef uint8_t *put_varint(uint8_t *out, uint64_t value) noexcept nogil:
    while value >= 0x80:
        out[0] = <uint8_t> (value | 0x80)
        out += 1
        value >>= 7
    out[0] = <uint8_t> value
    return out + 1


cdef inline uint64_t zigzag(int64_t value) noexcept nogil:
    return (<uint64_t> value << 1) ^ (0 - (<uint64_t> value >> 63))


cdef int encode_all(Bytes *b, const value_t *values, Py_ssize_t count) noexcept nogil:
    cdef value_t deltas[BLOCK]
    cdef uint64_t packed[MINIBLOCK]
    cdef uint64_t seen
    cdef value_t least
    cdef Py_ssize_t done, run, i, start, part
    cdef int miniblock, width
    cdef uint8_t *out
    cdef uint8_t *widths
    if bytes_reserve(b, 40) != 0:
        return OUT_OF_MEMORY
    out = b.data
    out = put_varint(out, BLOCK)
    out = put_varint(out, MINIBLOCKS)
    out = put_varint(out, <uint64_t> count)
    out = put_varint(out, zigzag(values[0]) if count else 0)
    b.size = out - b.data
    done = 1
    while done < count:
        run = count - done
        if run > BLOCK:
            run = BLOCK
        # Differences wrap around: they are computed unsigned and compared signed.
        least = <value_t> (<uint64_t> values[done] - <uint64_t> values[done - 1])
        for i in range(run):
            deltas[i] = <value_t> (<uint64_t> values[done + i] - <uint64_t> values[done + i - 1])
            if deltas[i] < least:
                least = deltas[i]
        # Minimum, widths, 128 values of 8 bytes, and the 8 bytes that pack() may overwrite after its end.
        if bytes_reserve(b, 10 + MINIBLOCKS + BLOCK * 8 + 8) != 0:
            return OUT_OF_MEMORY
        out = put_varint(b.data + b.size, zigzag(least))
        widths = out
        out += MINIBLOCKS
        for miniblock in range(MINIBLOCKS):
            start = miniblock * MINIBLOCK
            part = run - start
            if part > MINIBLOCK:
                part = MINIBLOCK
            widths[miniblock] = 0
            if part <= 0:
                continue
            seen = 0
            for i in range(part):
                packed[i] = <uint64_t> deltas[start + i] - <uint64_t> least
                seen |= packed[i]
            for i in range(part, MINIBLOCK):
                packed[i] = 0
            width = bits_of(seen)
            widths[miniblock] = <uint8_t> width
            out = pack(packed, MINIBLOCK, width, out)
        b.size = out - b.data
        done += run
    return OK


def encode(const value_t[::1] values):
    """Return the DELTA_BINARY_PACKED encoding of `values`, in blocks of 128 values and miniblocks of 32."""
    cdef Bytes out
    cdef int status
    cdef Py_ssize_t count = values.shape[0]
    cdef value_t none = 0
    cdef const value_t *first = &none
    out.data = NULL
    out.size = out.capacity = 0
    if count:
        first = &values[0]
    with nogil:
        status = encode_all(&out, first, count)
    if status != OK:
        bytes_free(&out)
        _raise(status)
    return take(&out)
