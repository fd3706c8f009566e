# cython: language_level=3
"""Test which integers are in a list, with a hash table of the list and a bit for each integer."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

ctypedef fused integer_t:
    int32_t
    int64_t

cdef enum:
    MOST_BITS = 40


cdef inline uint64_t home(int64_t value, int shift) noexcept nogil:
    return (<uint64_t> value * <uint64_t> 0x9E3779B97F4A7C15) >> shift


cdef int bits_of(Py_ssize_t size) except -1:
    """Return the binary logarithm of the size of a table, which must be a power of two."""
    cdef int bits = 0
    while bits < MOST_BITS and (<Py_ssize_t> 1 << bits) < size:
        bits += 1
    if bits < 1 or (<Py_ssize_t> 1 << bits) != size:
        raise ValueError("the size of a table must be a power of two and at least 2")
    return bits


def fill(const int64_t[::1] listed, int64_t[::1] keys, uint8_t[::1] used):
    """Insert the values of a list into a table of `keys`; `used` flags occupied slots and must initially be 0.

    The size of the table is a power of two, larger than the number of values.
    """
    cdef Py_ssize_t i, size = keys.shape[0]
    cdef int shift = 64 - bits_of(size)
    cdef uint64_t at, mask = <uint64_t> size - 1
    if used.shape[0] != size or listed.shape[0] >= size:
        raise ValueError("the table is too small")
    with nogil:
        for i in range(listed.shape[0]):
            at = home(listed[i], shift)
            while used[at] and keys[at] != listed[i]:
                at = (at + 1) & mask
            keys[at] = listed[i]
            used[at] = 1


def holds(
    const int64_t[::1] keys, const uint8_t[::1] used, int64_t least, int64_t most, const integer_t[::1] values,
    uint8_t[::1] bits,
):
    """Set the bit of each value that is in a table filled by `fill`, whose values are from `least` to `most`.

    `bits` has a bit for each value, initially zero.
    """
    cdef Py_ssize_t i, size = keys.shape[0], count = values.shape[0]
    cdef int shift = 64 - bits_of(size)
    cdef uint64_t at, steps, mask = <uint64_t> size - 1
    cdef int64_t value
    if used.shape[0] != size or bits.shape[0] < (count + 7) // 8:
        raise ValueError("the table or the output is too small")
    with nogil:
        for i in range(count):
            value = values[i]
            if value < least or value > most:
                continue
            at = home(value, shift)
            steps = 0
            while used[at] and steps <= mask:
                if keys[at] == value:
                    bits[i >> 3] |= <uint8_t> (1 << (i & 7))
                    break
                at = (at + 1) & mask
                steps += 1


def look_up(const uint8_t[::1] flags, const int32_t[::1] indices, uint8_t[::1] bits):
    """Set the bit of each index whose flag is 1. Indices beyond the flags count as 0.

    `bits` has a bit for each index, and `flags` are 0 or 1.
    """
    cdef Py_ssize_t i, count = indices.shape[0], whole = count >> 3
    cdef uint32_t size = <uint32_t> min(flags.shape[0], 0x7FFFFFFF)
    if bits.shape[0] < (count + 7) // 8:
        raise ValueError("the output is too small")
    if not size:
        bits[:] = 0
        return
    with nogil:
        for i in range(whole):
            bits[i] = eight_flags(&flags[0], size, &indices[8 * i], 8)
        if count & 7:
            bits[whole] = eight_flags(&flags[0], size, &indices[8 * whole], count & 7)


cdef inline uint8_t eight_flags(const uint8_t *flags, uint32_t size, const int32_t *indices, int count) noexcept nogil:
    """Return the flags of up to eight indices as bits."""
    cdef uint32_t index, is_inside, byte = 0
    cdef int j
    for j in range(count):
        index = <uint32_t> indices[j]
        is_inside = index < size
        byte |= (flags[index * is_inside] & is_inside) << j
    return <uint8_t> byte
