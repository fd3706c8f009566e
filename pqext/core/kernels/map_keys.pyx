# cython: language_level=3
"""Keys that occur more than once within a map: all entries but the last of each are flagged."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memset

cdef enum:
    SMALL = 8  # maps of up to so many entries compare each key with each other one


cdef struct Keys:
    const uint8_t *data
    const int32_t *offsets  # NULL: `width` bytes each
    Py_ssize_t width


cdef inline const uint8_t *key_at(const Keys *keys, Py_ssize_t i, size_t *length) noexcept nogil:
    if keys.offsets != NULL:
        length[0] = keys.offsets[i + 1] - keys.offsets[i]
        return keys.data + keys.offsets[i]
    length[0] = keys.width
    return keys.data + i * keys.width


cdef inline bint same(const Keys *keys, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    cdef size_t left = 0, right = 0
    cdef const uint8_t *p = key_at(keys, i, &left)
    cdef const uint8_t *q = key_at(keys, j, &right)
    return left == right and (left == 0 or memcmp(p, q, left) == 0)


cdef inline uint64_t mix(const Keys *keys, Py_ssize_t i, uint64_t seed) noexcept nogil:
    cdef size_t length = 0, at
    cdef const uint8_t *p = key_at(keys, i, &length)
    cdef uint64_t h = seed ^ length
    for at in range(length):
        h = (h ^ p[at]) * <uint64_t> 0x100000001B3
    h ^= h >> 32
    h *= <uint64_t> 0x9E3779B97F4A7C15
    return h ^ (h >> 29)


cdef Py_ssize_t in_large_map(
    const Keys *keys, Py_ssize_t start, Py_ssize_t stop, uint8_t *keep, uint64_t seed
) noexcept nogil:
    """How many entries are superseded, found from the last one backwards through a table of places; -1: no memory."""
    cdef Py_ssize_t room = 16, i, found = 0
    cdef uint64_t at
    cdef int64_t *table
    while room < 2 * (stop - start):
        room *= 2
    table = <int64_t *> malloc(room * sizeof(int64_t))
    if table == NULL:
        return -1
    memset(table, 0xFF, room * sizeof(int64_t))
    for i in range(stop - 1, start - 1, -1):
        at = mix(keys, i, seed) & <uint64_t> (room - 1)
        while table[at] >= 0 and not same(keys, table[at], i):
            at = (at + 1) & <uint64_t> (room - 1)
        if table[at] >= 0:
            keep[i] = 0
            found += 1
        else:
            table[at] = i
    free(table)
    return found


cdef Py_ssize_t flag(
    const int32_t *maps, Py_ssize_t count, const Keys *keys, uint8_t *keep, uint64_t seed
) noexcept nogil:
    cdef Py_ssize_t row, i, j, start, stop, superseded = 0, more
    for row in range(count):
        start, stop = maps[row], maps[row + 1]
        if stop - start > SMALL:
            more = in_large_map(keys, start, stop, keep, seed)
            if more < 0:
                return -1
            superseded += more
            continue
        for i in range(start, stop - 1):
            for j in range(i + 1, stop):
                if same(keys, i, j):
                    keep[i] = 0
                    superseded += 1
                    break
    return superseded


def flag_superseded(
    const int32_t[::1] maps, const uint8_t[::1] data, offsets, Py_ssize_t width, Py_ssize_t count,
    uint8_t[::1] keep, uint64_t seed,
):
    """Set `keep` to 0 for each of `count` entries whose key comes again in its map; returns how many there are.

    Map `i` holds the entries between `maps[i]` and `maps[i + 1]`. Keys lie between consecutive `offsets` (int32) of
    `data`, or take `width` bytes each when `offsets` is None. `seed` keeps hostile keys from colliding.
    """
    cdef Keys keys
    cdef const int32_t[::1] ends
    cdef Py_ssize_t i, found, rows = maps.shape[0] - 1
    if rows < 0 or count < 0 or width < 0 or keep.shape[0] != count:
        raise ValueError("a flag an entry is needed")
    if maps[0] < 0 or maps[rows] > count:
        raise ValueError("maps leave their entries")
    for i in range(rows):
        if maps[i] > maps[i + 1]:
            raise ValueError("offsets must ascend")
    if not count:
        return 0
    keys.data = &data[0] if data.shape[0] else NULL
    keys.offsets = NULL
    keys.width = width
    if offsets is not None:
        ends = offsets
        if ends.shape[0] <= count or ends[0] < 0 or ends[count] > data.shape[0]:
            raise ValueError("offsets leave the data")
        for i in range(count):
            if ends[i] > ends[i + 1]:
                raise ValueError("offsets must ascend")
        keys.offsets = &ends[0]
    elif data.shape[0] // count < width:
        raise ValueError("keys leave the data")
    with nogil:
        found = flag(&maps[0], rows, &keys, &keep[0], seed)
    if found < 0:
        raise MemoryError("map keys")
    return found
