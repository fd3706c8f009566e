# cython: language_level=3
"""Split-block Bloom filters: XXH64 of complete columns, insertion and lookup of hashes (core.bloom).

The hash follows the xxHash specification with seed 0; the filter follows "Parquet Bloom Filter" of the format.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef uint64_t PRIME1 = 0x9E3779B185EBCA87ULL
cdef uint64_t PRIME2 = 0xC2B2AE3D27D4EB4FULL
cdef uint64_t PRIME3 = 0x165667B19E3779F9ULL
cdef uint64_t PRIME4 = 0x85EBCA77C2B2AE63ULL
cdef uint64_t PRIME5 = 0x27D4EB2F165667C5ULL

cdef uint32_t[8] SALT
SALT[:] = [0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31]

cdef extern from *:
    """
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    #define little_64(x) __builtin_bswap64(x)
    #define little_32(x) __builtin_bswap32(x)
    #else
    #define little_64(x) (x)
    #define little_32(x) (x)
    #endif
    """
    uint64_t little_64(uint64_t x) nogil
    uint32_t little_32(uint32_t x) nogil


cdef inline uint64_t read_64(const uint8_t *at) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, at, 8)
    return little_64(word)


cdef inline uint64_t rotate(uint64_t x, int bits) noexcept nogil:
    return (x << bits) | (x >> (64 - bits))


cdef inline uint64_t mix(uint64_t lane, uint64_t word) noexcept nogil:
    return rotate(lane + word * PRIME2, 31) * PRIME1


cdef inline uint64_t merge(uint64_t state, uint64_t lane) noexcept nogil:
    return (state ^ mix(0, lane)) * PRIME1 + PRIME4


cdef inline uint64_t xxh64(const uint8_t *at, Py_ssize_t size) noexcept nogil:
    cdef uint64_t state, a, b, c, d
    cdef uint32_t half
    cdef Py_ssize_t left = size
    if size >= 32:
        a, b, c, d = PRIME1 + PRIME2, PRIME2, 0, 0 - PRIME1
        while left >= 32:
            a = mix(a, read_64(at))
            b = mix(b, read_64(at + 8))
            c = mix(c, read_64(at + 16))
            d = mix(d, read_64(at + 24))
            at += 32
            left -= 32
        state = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)
        state = merge(merge(merge(merge(state, a), b), c), d)
    else:
        state = PRIME5
    state += <uint64_t> size
    while left >= 8:
        state = rotate(state ^ mix(0, read_64(at)), 27) * PRIME1 + PRIME4
        at += 8
        left -= 8
    if left >= 4:
        memcpy(&half, at, 4)
        state = rotate(state ^ (<uint64_t> little_32(half) * PRIME1), 23) * PRIME2 + PRIME3
        at += 4
        left -= 4
    while left > 0:
        state = rotate(state ^ (<uint64_t> at[0] * PRIME5), 11) * PRIME1
        at += 1
        left -= 1
    state = (state ^ (state >> 33)) * PRIME2
    state = (state ^ (state >> 29)) * PRIME3
    return state ^ (state >> 32)


def hash_fixed(const uint8_t[::1] data, Py_ssize_t width, uint64_t[::1] out):
    """Hash values of `width` bytes each into `out`."""
    cdef Py_ssize_t i, count = out.shape[0]
    if width < 1 or data.shape[0] // width != count or data.shape[0] % width:
        raise ValueError("values and output must have the same length")
    if count == 0:
        return
    with nogil:
        if width == 8:
            for i in range(count):
                out[i] = xxh64(&data[0] + i * 8, 8)
        elif width == 4:
            for i in range(count):
                out[i] = xxh64(&data[0] + i * 4, 4)
        else:
            for i in range(count):
                out[i] = xxh64(&data[0] + i * width, width)


def hash_byte_arrays(const uint8_t[::1] data, const int32_t[::1] offsets, uint64_t[::1] out):
    """Hash the byte arrays between `offsets`, without their lengths, into `out`."""
    cdef Py_ssize_t i, at, size, count = out.shape[0], length = data.shape[0]
    cdef uint8_t nothing = 0
    cdef const uint8_t *base = &data[0] if length else &nothing
    cdef bint bad = False
    if offsets.shape[0] != count + 1:
        raise ValueError("values and output must have the same length")
    with nogil:
        for i in range(count):
            at, size = offsets[i], <Py_ssize_t> offsets[i + 1] - offsets[i]
            if at < 0 or size < 0 or at > length - size:
                bad = True
                break
            out[i] = xxh64(base + at, size)
    if bad:
        raise ValueError("a byte array lies outside its buffer")


cdef Py_ssize_t count_blocks(Py_ssize_t words) except -1:
    if words < 8 or words % 8:
        raise ValueError("the size of a filter must be a multiple of eight words")
    return words // 8


def insert_hashes(const uint64_t[::1] hashes, uint32_t[::1] words):
    """Set the bits of each hash in the filter `words`, eight to a block."""
    cdef Py_ssize_t i, block
    cdef uint64_t blocks = count_blocks(words.shape[0])
    cdef uint32_t x
    cdef int word
    cdef uint32_t *base = &words[0]
    with nogil:
        for i in range(hashes.shape[0]):
            # The upper half of the product is below `blocks`, which is below 2^31.
            block = <Py_ssize_t> (((hashes[i] >> 32) * blocks) >> 32) * 8
            x = <uint32_t> hashes[i]
            for word in range(8):
                base[block + word] |= (<uint32_t> 1) << ((x * SALT[word]) >> 27)


def contains_hashes(const uint64_t[::1] hashes, const uint32_t[::1] words, uint8_t[::1] out):
    """Write 1 to `out` for each hash whose bits are all set, otherwise 0."""
    cdef Py_ssize_t i, block
    cdef uint64_t blocks = count_blocks(words.shape[0])
    cdef uint32_t x
    cdef int word
    cdef uint8_t found
    cdef const uint32_t *base = &words[0]
    if out.shape[0] != hashes.shape[0]:
        raise ValueError("hashes and output must have the same length")
    with nogil:
        for i in range(hashes.shape[0]):
            block = <Py_ssize_t> (((hashes[i] >> 32) * blocks) >> 32) * 8
            x = <uint32_t> hashes[i]
            found = 1
            for word in range(8):
                found &= (base[block + word] >> ((x * SALT[word]) >> 27)) & 1
            out[i] = found


def count_bits(const uint32_t[::1] words):
    """Return the number of bits that are set in the filter."""
    cdef Py_ssize_t i
    cdef int64_t total = 0
    cdef uint32_t x
    with nogil:
        for i in range(words.shape[0]):
            x = words[i]
            x = x - ((x >> 1) & 0x55555555U)
            x = (x & 0x33333333U) + ((x >> 2) & 0x33333333U)
            total += (((x + (x >> 4)) & 0x0F0F0F0FU) * 0x01010101U) >> 24
    return total
