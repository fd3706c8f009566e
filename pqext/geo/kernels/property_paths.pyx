# cython: language_level=3
"""Measure the paths within lines of JSON objects: the size of a table of them, and integers that exceed INT64.

The lines have been validated. Paths are identified by hashes of the names on them.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memset

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer

cdef enum:
    LEVELS = 1100      # more than `json_scan` accepts
    INT64_DIGITS = 19


cdef struct Path:
    uint64_t hash
    int64_t parent
    int64_t elements   # number of elements of an array; -1 for the value of a member
    const uint8_t *name
    int64_t length
    bint has_big       # an integer beyond INT64
    bint has_fraction


cdef struct Paths:
    Path *all
    int64_t count
    int64_t capacity
    int64_t *slots     # open addressing: 1 + index into `all`, 0 if empty
    int64_t size


cdef inline uint64_t mixed(uint64_t h) noexcept nogil:
    h ^= h >> 32
    h *= <uint64_t> 0xD6E8FEB86659FD93
    h ^= h >> 32
    return h


cdef int grow(Paths *t) noexcept nogil:
    cdef int64_t capacity = 2 * t.capacity if t.capacity else 256
    cdef int64_t i, at
    cdef Path *all = <Path *> realloc(t.all, capacity * sizeof(Path))
    if all == NULL:
        return -1
    t.all = all
    cdef int64_t *slots = <int64_t *> realloc(t.slots, 2 * capacity * sizeof(int64_t))
    if slots == NULL:
        return -1
    t.slots = slots
    t.capacity, t.size = capacity, 2 * capacity
    memset(t.slots, 0, t.size * sizeof(int64_t))
    for i in range(t.count):
        at = t.all[i].hash & <uint64_t> (t.size - 1)
        while t.slots[at]:
            at = (at + 1) & (t.size - 1)
        t.slots[at] = i + 1
    return 0


cdef int64_t path_at(Paths *t, uint64_t hash, int64_t parent, int64_t elements) noexcept nogil:
    """Return the index of a path, which is added if it is new; -1 if memory is exhausted."""
    cdef int64_t at
    if t.count == t.capacity and grow(t) != 0:
        return -1
    at = hash & <uint64_t> (t.size - 1)
    while t.slots[at]:
        if t.all[t.slots[at] - 1].hash == hash:
            return t.slots[at] - 1
        at = (at + 1) & (t.size - 1)
    memset(&t.all[t.count], 0, sizeof(Path))
    t.all[t.count].hash = hash
    t.all[t.count].parent = parent
    t.all[t.count].elements = elements
    t.count += 1
    t.slots[at] = t.count
    return t.count - 1


cdef inline const uint8_t *number_end(Path *path, const uint8_t *p, const uint8_t *end) noexcept nogil:
    cdef bint negative = p[0] == c'-'
    cdef const uint8_t *start
    cdef int order
    p += negative
    start = p
    while p < end and c'0' <= p[0] <= c'9':
        p += 1
    if p < end and (p[0] == c'.' or (p[0] | 0x20) == c'e'):
        while p < end and (p[0] == c'.' or (p[0] | 0x20) == c'e' or p[0] == c'+' or p[0] == c'-'
                           or c'0' <= p[0] <= c'9'):
            p += 1
        path.has_fraction = True
    elif p - start > INT64_DIGITS:
        path.has_big = True
    elif p - start == INT64_DIGITS:
        order = memcmp(start, b"9223372036854775808", INT64_DIGITS)
        if order > 0 or (order == 0 and not negative):
            path.has_big = True
    return p


cdef int walk(Paths *t, const uint8_t *p, const uint8_t *end, uint64_t seed, int64_t most) noexcept nogil:
    """Add all paths, up to `most`."""
    cdef int64_t[LEVELS] above     # the path of each open object or array
    cdef uint8_t[LEVELS] is_array
    cdef const uint8_t *text
    cdef int64_t length
    cdef uint64_t hash
    cdef int64_t path = path_at(t, seed, -1, 0)   # path of the next value
    cdef int depth = 0
    above[0] = path
    is_array[0] = True                            # the array of rows
    if path < 0:
        return -1
    while p < end and t.count < most:
        if p[0] == c'"':
            hash = mixed(t.all[above[depth]].hash + 1)
            p += 1
            text = p
            while p < end and p[0] != c'"':
                if p[0] == c'\\':
                    hash = (hash ^ p[0]) * <uint64_t> 0x100000001B3
                    p += 1
                    if p >= end:
                        break
                hash = (hash ^ p[0]) * <uint64_t> 0x100000001B3
                p += 1
            length = p - text
            p += 1
            if not is_array[depth]:
                while p < end and (p[0] == c' ' or p[0] == c'\t'):
                    p += 1
                if p < end and p[0] == c':':
                    path = path_at(t, mixed(hash), above[depth], -1)
                    if path < 0:
                        return -1
                    t.all[path].name = text
                    t.all[path].length = length
            continue
        if p[0] == c'{' or p[0] == c'[':
            if depth + 1 >= LEVELS:
                return 0
            if p[0] == c'[':
                path = path_at(t, mixed(t.all[path].hash + 2), path, 0)
                if path < 0:
                    return -1
                t.all[path].elements += 1
            depth += 1
            is_array[depth] = p[0] == c'['
            above[depth] = path
        elif p[0] == c'}' or p[0] == c']':
            depth -= depth > 0
            path = above[depth]
        elif p[0] == c',' and is_array[depth]:
            t.all[above[depth]].elements += 1
        elif p[0] == c'\n' and depth == 0:
            t.all[above[0]].elements += 1
        elif p[0] == c'-' or c'0' <= p[0] <= c'9':
            p = number_end(&t.all[path], p, end)
            continue
        p += 1
    return 0


cdef object names_of(Paths *t, int64_t path):
    """Return the raw names along a path, with None for the elements of an array."""
    names = []
    while path > 0:
        names.append(None if t.all[path].name == NULL else t.all[path].name[:t.all[path].length])
        path = t.all[path].parent
    return tuple(reversed(names))


def measure(lines not None, uint64_t seed, int64_t most):
    """Return the size of a table of the objects in `lines`, as (number of cells, number of names, large paths).

    A name has a cell for each row, or for each element of the innermost list that contains it. Large paths contain
    only integers, some of which exceed INT64. Lines are scanned until there are `most` paths. `seed` is a random
    number.
    """
    cdef Py_buffer view
    cdef Paths t
    cdef int status
    cdef int64_t i, names = 0
    cdef double cells = 0
    memset(&t, 0, sizeof(Paths))
    PyObject_GetBuffer(lines, &view, PyBUF_SIMPLE)
    try:
        with nogil:
            status = walk(&t, <const uint8_t *> view.buf, <const uint8_t *> view.buf + view.len, seed, most)
            for i in range(t.count):
                if t.all[i].elements < 0:  # parents precede their children
                    t.all[i].elements = t.all[t.all[i].parent].elements
                    names += 1
                    cells += t.all[i].elements
        if status != 0:
            raise MemoryError
        big = [names_of(&t, i) for i in range(t.count) if t.all[i].has_big and not t.all[i].has_fraction]
        return cells, names, big
    finally:
        PyBuffer_Release(&view)
        free(t.all)
        free(t.slots)
