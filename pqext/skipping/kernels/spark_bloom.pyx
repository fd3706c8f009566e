# cython: language_level=3
"""Spark's Bloom filters: insert values, and query many stored filters (skipping.format.spark_bloom).

A filter is queried in place: within a cell of a column, whose data Java's serialisation has split into blocks.
"""
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

ctypedef fused offset_t:
    int32_t
    int64_t

cdef enum:
    ABSENT = 0
    PERHAPS = 1
    PENDING = 2
    MOST_FUNCTIONS = 1024

UNDECIDED = PENDING

cdef extern from *:
    """
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    #define pqext_little_32(x) __builtin_bswap32(x)
    #else
    #define pqext_little_32(x) (x)
    #endif
    """
    uint32_t pqext_little_32(uint32_t x) nogil


cdef inline uint32_t rotate(uint32_t x, int bits) noexcept nogil:
    return (x << bits) | (x >> (32 - bits))


cdef inline uint32_t mix(uint32_t state, uint32_t word) noexcept nogil:
    word = rotate(word * <uint32_t> 0xCC9E2D51, 15) * <uint32_t> 0x1B873593
    return rotate(state ^ word, 13) * 5 + <uint32_t> 0xE6546B64


cdef inline uint32_t finish(uint32_t state, uint32_t size) noexcept nogil:
    state ^= size
    state = (state ^ (state >> 16)) * <uint32_t> 0x85EBCA6B
    state = (state ^ (state >> 13)) * <uint32_t> 0xC2B2AE35
    return state ^ (state >> 16)


cdef inline uint32_t hash_long(int64_t value, uint32_t seed) noexcept nogil:
    cdef uint64_t bits = <uint64_t> value
    return finish(mix(mix(seed, <uint32_t> bits), <uint32_t> (bits >> 32)), 8)


cdef inline uint32_t hash_bytes(const uint8_t *at, Py_ssize_t size, uint32_t seed) noexcept nogil:
    """Return Spark's Murmur3 hash: each byte after the last complete word is mixed in separately, with its sign."""
    cdef uint32_t word, state = seed
    cdef Py_ssize_t i, whole = size & ~<Py_ssize_t> 3
    for i in range(0, whole, 4):
        memcpy(&word, at + i, 4)
        state = mix(state, pqext_little_32(word))
    for i in range(whole, size):
        state = mix(state, <uint32_t> <int32_t> <int8_t> at[i])
    return finish(state, <uint32_t> size)


cdef inline uint64_t place(uint32_t combined, uint64_t bits) noexcept nogil:
    """Return the bit of a combined hash of filter version 1. Negative hashes are complemented."""
    return (combined if combined < <uint32_t> 0x80000000 else ~combined) % bits


cdef inline void insert(uint32_t first, uint32_t second, int functions, uint64_t *words, uint64_t bits) noexcept nogil:
    cdef int i
    cdef uint64_t at
    for i in range(functions):
        first += second
        at = place(first, bits)
        words[at >> 6] |= <uint64_t> 1 << (at & 63)


cdef int check(int functions, Py_ssize_t words) except -1:
    if functions < 1 or functions > MOST_FUNCTIONS or words < 1 or words > 0x7FFFFFFF:
        raise ValueError("a filter must have words and set 1 to 1024 bits per value")
    return 0


def insert_longs(const int64_t[::1] values, int functions, uint64_t[::1] words):
    """Set the bits of each integer in a filter of version 1."""
    cdef Py_ssize_t i
    cdef uint32_t first
    check(functions, words.shape[0])
    with nogil:
        for i in range(values.shape[0]):
            first = hash_long(values[i], 0)
            insert(first, hash_long(values[i], first), functions, &words[0], <uint64_t> words.shape[0] * 64)


def insert_bytes(const uint8_t[::1] data, const offset_t[::1] offsets, int functions, uint64_t[::1] words):
    """Set the bits of each byte string between `offsets` in a filter of version 1."""
    cdef Py_ssize_t i, length = data.shape[0]
    cdef int64_t start, stop
    cdef uint32_t first
    cdef uint8_t nothing = 0
    cdef const uint8_t *base = &data[0] if length else &nothing
    cdef bint bad = False
    check(functions, words.shape[0])
    with nogil:
        for i in range(offsets.shape[0] - 1):
            start, stop = offsets[i], offsets[i + 1]
            if start < 0 or stop < start or stop > length:
                bad = True
                break
            first = hash_bytes(base + start, stop - start, 0)
            insert(first, hash_bytes(base + start, stop - start, first), functions, &words[0],
                   <uint64_t> words.shape[0] * 64)
    if bad:
        raise ValueError("a byte string lies outside its buffer")


cdef struct Payload:
    # Records of `block` bytes, each after a header of `gap` bytes. The last record, from byte `last` on, is at `tail`.
    const uint8_t *base
    Py_ssize_t size, block, gap, last
    const uint8_t *tail


cdef inline uint8_t byte_at(const Payload *payload, Py_ssize_t at) noexcept nogil:
    # `at` is below `size`; `lay_out` has checked that every record is within the cell.
    if at >= payload.last:
        return payload.tail[at - payload.last]
    return payload.base[at // payload.block * (payload.block + payload.gap) + payload.gap + at % payload.block]


cdef inline uint32_t word_at(const Payload *payload, Py_ssize_t at) noexcept nogil:
    cdef uint32_t found = 0
    cdef int i
    for i in range(4):
        found = (found << 8) | byte_at(payload, at + i)
    return found


cdef bint lay_out(const uint8_t *at, Py_ssize_t left, Payload *payload) noexcept nogil:
    """Read the layout of the rest of a cell, and return whether it is supported.

    The rest must consist of blocks of one size, except that the last block may be shorter, and their end marker.
    """
    cdef Py_ssize_t size, head
    payload.base, payload.size, payload.block, payload.gap = at, 0, 0, 5
    while True:
        if left >= 5 and at[0] == 0x7A:
            head, size = 5, (<Py_ssize_t> at[1] << 24) | (at[2] << 16) | (at[3] << 8) | at[4]
        elif left >= 2 and at[0] == 0x77:
            head, size = 2, at[1]
        else:
            return False
        if size < 1 or size > left - head - 1:
            return False
        payload.last, payload.tail = payload.size, at + head
        payload.size += size
        if at[head + size] == 0x78:
            return (payload.block == 0 or size <= payload.block) and left == head + size + 1
        if head != 5 or (payload.block and size != payload.block):
            return False
        payload.block = size
        at += head + size
        left -= head + size


cdef struct QueryValues:
    const int64_t *longs
    Py_ssize_t count_longs
    const uint8_t *text
    const int64_t *ends
    Py_ssize_t count_texts
    const uint32_t *firsts
    const uint32_t *seconds


cdef inline void hash_one(
    const QueryValues *query, Py_ssize_t i, uint32_t seed, uint32_t *first, uint32_t *second
) noexcept nogil:
    cdef const uint8_t *text
    cdef Py_ssize_t size
    if i < query.count_longs:
        first[0] = hash_long(query.longs[i], seed)
        second[0] = hash_long(query.longs[i], first[0])
    else:
        i -= query.count_longs
        text, size = query.text + query.ends[i], query.ends[i + 1] - query.ends[i]
        first[0] = hash_bytes(text, size, seed)
        second[0] = hash_bytes(text, size, first[0])


cdef bint may_hold(const Payload *payload, const QueryValues *query) noexcept nogil:
    """Return whether a filter may contain one of the values. True for filters that are not supported."""
    cdef Py_ssize_t i, words, head = 12
    cdef uint32_t version, functions, count, first, second, seed = 0, step
    cdef uint64_t bits, at, combined
    cdef bint found
    if payload.size < 20:
        return True
    version, functions, count = word_at(payload, 0), word_at(payload, 4), word_at(payload, 8)
    if version == 2:
        seed, count, head = count, word_at(payload, 12), 16
    elif version != 1:
        return True
    if functions < 1 or functions > MOST_FUNCTIONS or count < 1 or count > 0x7FFFFFFF:
        return True
    words = (payload.size - head) >> 3
    if words != <Py_ssize_t> count or (payload.size - head) & 7:
        return True
    bits = <uint64_t> words * 64
    for i in range(query.count_longs + query.count_texts):
        if seed == 0:
            first, second = query.firsts[i], query.seconds[i]
        else:
            hash_one(query, i, seed, &first, &second)
        combined = <uint64_t> (<int64_t> <int32_t> first * <int64_t> 0x7FFFFFFF)
        found = True
        for step in range(functions):
            if version == 1:
                first += second
                at = place(first, bits)
            else:
                combined += <uint64_t> <int64_t> <int32_t> second
                at = (combined if combined < <uint64_t> 1 << 63 else ~combined) % bits
            if not byte_at(payload, head + <Py_ssize_t> (at >> 6) * 8 + 7 - ((at & 63) >> 3)) >> (at & 7) & 1:
                found = False
                break
        if found:
            return True
    return False


cdef QueryValues prepare_values(
    const int64_t[::1] longs, const uint8_t[::1] text, const int64_t[::1] ends, uint32_t[:, ::1] hashes
):
    """Return the query values, with the hashes for filters without a seed in `hashes`."""
    cdef QueryValues query
    cdef Py_ssize_t i, texts = ends.shape[0] - 1
    if texts < 0 or hashes.shape[0] != 2 or hashes.shape[1] != longs.shape[0] + texts or hashes.shape[1] < 1:
        raise ValueError("values and output must have the same length")
    for i in range(texts):
        if ends[i] < 0 or ends[i + 1] < ends[i] or ends[i + 1] > text.shape[0]:
            raise ValueError("a byte string lies outside its buffer")
    query.longs = &longs[0] if longs.shape[0] else NULL
    query.count_longs = longs.shape[0]
    query.text = &text[0] if text.shape[0] else <const uint8_t *> &hashes[0, 0]
    query.ends = &ends[0]
    query.count_texts = texts
    for i in range(hashes.shape[1]):
        hash_one(&query, i, 0, &hashes[0, i], &hashes[1, i])
    query.firsts, query.seconds = &hashes[0, 0], &hashes[1, 0]
    return query


def query_cells(
    const uint8_t[::1] data, const offset_t[::1] offsets, const uint8_t[::1] prefix, const int64_t[::1] longs,
    const uint8_t[::1] text, const int64_t[::1] ends, uint32_t[:, ::1] hashes, uint8_t[::1] out,
):
    """Query the filters in cells between `offsets` whose `out` is 2 and that begin with `prefix`.

    The values are `longs` and the byte strings of `text` between `ends`. `out` becomes 0 if a filter contains none of
    them, and 1 if it may contain one or is corrupt. It stays 2 for a cell with another prefix, or with blocks of
    several sizes. `hashes` has two rows, and a column per value.
    """
    cdef QueryValues query = prepare_values(longs, text, ends, hashes)
    cdef Py_ssize_t i, length = data.shape[0], start_size = prefix.shape[0], left
    cdef int64_t start, stop
    cdef Payload payload
    cdef bint bad = False
    if offsets.shape[0] != out.shape[0] + 1:
        raise ValueError("cells and output must have the same length")
    with nogil:
        for i in range(out.shape[0]):
            start, stop = offsets[i], offsets[i + 1]
            if start < 0 or stop < start or stop > length:
                bad = True
                break
            left = stop - start - start_size
            if out[i] != PENDING or left < 1:
                continue
            if start_size and memcmp(&data[start], &prefix[0], start_size) != 0:
                continue
            if lay_out(&data[start] + start_size, left, &payload):
                out[i] = PERHAPS if may_hold(&payload, &query) else ABSENT
    if bad:
        raise ValueError("a cell lies outside its buffer")


def query_payload(
    const uint8_t[::1] data, const int64_t[::1] longs, const uint8_t[::1] text, const int64_t[::1] ends,
    uint32_t[:, ::1] hashes,
):
    """Return whether the filter in `data` may contain any of the values, which are passed as to `query_cells`."""
    cdef QueryValues query = prepare_values(longs, text, ends, hashes)
    cdef Payload payload
    cdef bint found
    if data.shape[0] == 0:
        return True
    payload.base = payload.tail = &data[0]
    payload.size = payload.block = data.shape[0]
    payload.gap = payload.last = 0
    with nogil:
        found = may_hold(&payload, &query)
    return found
