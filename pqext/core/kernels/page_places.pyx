# cython: language_level=3
"""Offset indexes as they commonly are, without an object a page."""
from libc.stdint cimport INT32_MAX, int64_t, uint8_t, uint64_t

import numpy as np

from pqext.core.kernels.compact cimport (
    DONE, I32, I64, LIST, STOP, STRUCT, Cursor, read_header, read_list, read_varint, skip_values, unzigzag,
)

cdef int read_place(Cursor *c, int64_t *place) noexcept nogil:
    """One PageLocation with nothing but its three fields, in order; 0 on success."""
    cdef int wire = 0, id = 0, number
    cdef uint64_t value = 0
    for number in range(3):
        if read_header(c, &wire, &id) != DONE or id != number + 1 or wire != (I32 if number == 1 else I64):
            return -1
        if read_varint(c, &value) != DONE:
            return -1
        place[number] = unzigzag(value)
    return 0 if read_header(c, &wire, &id) == DONE and wire == STOP else -1


def page_places(const uint8_t[::1] data not None, int64_t start, int64_t stop, int64_t rows):
    """Lists of the pages' offsets, sizes and first rows, from a serialised OffsetIndex.

    None unless pages follow one another within the chunk from `start` to `stop` and its `rows`, and also for what is
    merely uncommon: this is a short cut, and the long way tells what is wrong.
    """
    cdef Cursor c
    cdef int wire = 0, id = 0, element = 0, status = 0
    cdef Py_ssize_t count = 0, sizes = -1, i
    cdef int64_t place[3]
    cdef int64_t at = start, row = 0
    cdef const uint8_t *p
    if data.shape[0] == 0 or start < 0 or stop < start:
        return None
    c.start = c.p = &data[0]
    c.end = c.start + data.shape[0]
    c.base = 0
    c.elements = c.max_elements = c.objects = c.max_objects = 4 * data.shape[0]  # no more fit the bytes
    c.max_depth = 8
    c.status = DONE
    c.path = NULL
    if read_header(&c, &wire, &id) != DONE or wire != LIST or id != 1:
        return None
    if read_list(&c, &element, &count) != DONE or element != STRUCT or count == 0:
        return None
    out = np.empty((3, count), dtype=np.int64)
    cdef int64_t[:, ::1] found = out
    with nogil:
        for i in range(count):
            status = read_place(&c, place)
            if status != 0:
                break
            # These keep `at` within the chunk, so that nothing overflows.
            if place[0] < at or place[1] <= 0 or place[1] > INT32_MAX or place[0] > stop - place[1]:
                status = -1
            elif place[2] < row or place[2] >= rows or (i == 0 and place[2] != 0):
                status = -1
            if status != 0:
                break
            at = place[0] + place[1]
            row = place[2]
            found[0, i] = place[0]
            found[1, i] = place[1]
            found[2, i] = place[2]
        if status == 0:
            status = read_header(&c, &wire, &id)
        if status == 0 and wire == LIST and id == 2:
            status = read_list(&c, &element, &sizes)
            if status == 0:
                p = skip_values(&c, c.p, element, sizes, 1)
                if p == NULL or element != I64 or sizes != count:
                    status = -1
                else:
                    c.p = p
                    status = read_header(&c, &wire, &id)
    if status != 0 or wire != STOP:
        return None
    return out[0].tolist(), out[1].tolist(), out[2].tolist()
