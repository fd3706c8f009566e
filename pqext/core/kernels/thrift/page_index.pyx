# cython: language_level=3
"""Read offset indexes, and write column and offset indexes from the page table of a chunk."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport INT32_MAX, int64_t, uint8_t, uint64_t

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free
from pqext.core.kernels.encode.page_boundaries cimport PageBoundaries
from pqext.core.kernels.thrift.compact cimport (
    BINARY, DONE, FALSE, I32, I64, LIST, STOP, STRUCT, TRUE, Cursor, read_header, read_list, read_varint, skip_values,
    unzigzag,
)
from pqext.core.kernels.thrift.compact_write cimport put_binary, put_byte, put_header, put_int, put_list

import numpy as np


cdef object finished(Bytes *b, int status):
    try:
        if status != 0:
            raise MemoryError("out of memory for the page index")
        return PyBytes_FromStringAndSize(<char *> b.data, <Py_ssize_t> b.size)
    finally:
        bytes_free(b)


def offset_index(PageBoundaries cuts, int64_t base, bint measured):
    cdef Bytes b
    cdef Py_ssize_t page
    cdef int last = 0, inner, status
    b.data = NULL
    b.size = b.capacity = 0
    status = put_header(&b, LIST, 1, &last) | put_list(&b, STRUCT, cuts.count)
    for page in range(cuts.count):
        inner = 0
        status |= put_header(&b, I64, 1, &inner) | put_int(&b, base + cuts.offsets[page])
        status |= put_header(&b, I32, 2, &inner) | put_int(&b, cuts.sizes[page])
        status |= put_header(&b, I64, 3, &inner) | put_int(&b, cuts.rows[page]) | put_byte(&b, 0)
    if measured:
        status |= put_header(&b, LIST, 2, &last) | put_list(&b, I64, cuts.count)
        for page in range(cuts.count):
            status |= put_int(&b, cuts.bytes[page])
    return finished(&b, status | put_byte(&b, 0))


cdef int put_bounds(Bytes *b, int id, int *last, list bounds) except 1:
    cdef bytes bound
    cdef int status = put_header(b, LIST, id, last) | put_list(b, BINARY, len(bounds))
    for bound in bounds:
        status |= put_binary(b, PyBytes_AS_STRING(bound), PyBytes_GET_SIZE(bound))
    return status


cdef int put_counts(Bytes *b, int id, int *last, const int64_t[::1] counts) except 1:
    cdef Py_ssize_t i
    cdef int status = put_header(b, LIST, id, last) | put_list(b, I64, counts.shape[0])
    for i in range(counts.shape[0]):
        status |= put_int(b, counts[i])
    return status


def column_index(
    PageBoundaries cuts, list minima, list maxima, int boundary_order, object definition, object repetition,
    object nan_counts,
):
    cdef Bytes b
    cdef Py_ssize_t page
    cdef int last = 0, status
    cdef int64_t nans
    cdef list lists
    if len(minima) != cuts.count or len(maxima) != cuts.count or (
        nan_counts is not None and len(nan_counts) != cuts.count
    ):
        raise ValueError("the lists of a column index must have the same length")
    b.data = NULL
    b.size = b.capacity = 0
    try:
        status = put_header(&b, LIST, 1, &last) | put_list(&b, TRUE, cuts.count)
        for page in range(cuts.count):
            status |= put_byte(&b, FALSE if cuts.values[page + 1] > cuts.values[page] else TRUE)
        status |= put_bounds(&b, 2, &last, minima) | put_bounds(&b, 3, &last, maxima)
        status |= put_header(&b, I32, 4, &last) | put_int(&b, boundary_order)
        status |= put_header(&b, LIST, 5, &last) | put_list(&b, I64, cuts.count)
        for page in range(cuts.count):
            status |= put_int(
                &b, (cuts.entries[page + 1] - cuts.entries[page]) - (cuts.values[page + 1] - cuts.values[page])
            )
        if repetition is not None:
            status |= put_counts(&b, 6, &last, repetition.reshape(-1))
        if definition is not None:
            status |= put_counts(&b, 7, &last, definition.reshape(-1))
        if nan_counts is not None:
            status |= put_header(&b, LIST, 8, &last) | put_list(&b, I64, cuts.count)
            for nans in nan_counts:
                status |= put_int(&b, nans)
        return finished(&b, status | put_byte(&b, 0))
    finally:
        bytes_free(&b)


def placed_columns(list columns, list column_indexes, int64_t column_start, list offset_indexes, int64_t offset_start):
    cdef Bytes b
    cdef Py_ssize_t i, count = len(columns)
    cdef int last = 0, status
    cdef bytes chunk
    if len(column_indexes) != count or len(offset_indexes) != count:
        raise ValueError("the lists of a row group must have the same length")
    b.data = NULL
    b.size = b.capacity = 0
    try:
        status = put_header(&b, LIST, 1, &last) | put_list(&b, STRUCT, count)
        for i in range(count):
            chunk = columns[i]
            last = 3
            status |= bytes_append(&b, PyBytes_AS_STRING(chunk), PyBytes_GET_SIZE(chunk))
            status |= put_place(&b, 4, &last, offset_indexes[i], &offset_start)
            status |= put_place(&b, 6, &last, column_indexes[i], &column_start)
            status |= put_byte(&b, 0)
        return finished(&b, status)
    finally:
        bytes_free(&b)


cdef int put_place(Bytes *b, int id, int *last, bytes index, int64_t *at) except 1:
    """Write the offset and length of an index, if there is one, and move `at` to its end."""
    cdef Py_ssize_t size
    cdef int status
    if index is None:
        return 0
    size = PyBytes_GET_SIZE(index)
    status = put_header(b, I64, id, last) | put_int(b, at[0]) | put_header(b, I32, id + 1, last) | put_int(b, size)
    at[0] += size
    return status


cdef int read_page_location(Cursor *c, int64_t *place) noexcept nogil:
    """Read a PageLocation that has only its three fields, in order. Return 0, or -1 if it is unusual."""
    cdef int wire = 0, id = 0, number
    cdef uint64_t value = 0
    for number in range(3):
        if read_header(c, &wire, &id) != DONE or id != number + 1 or wire != (I32 if number == 1 else I64):
            return -1
        if read_varint(c, &value) != DONE:
            return -1
        place[number] = unzigzag(value)
    return 0 if read_header(c, &wire, &id) == DONE and wire == STOP else -1


def read_page_locations(const uint8_t[::1] data not None, int64_t start, int64_t stop, int64_t rows):
    """Return lists of the offsets, sizes and first rows of pages in a serialised OffsetIndex.

    Return None if the pages do not follow each other within the chunk from `start` to `stop` and its `rows`, or if the
    index is unusual: the general decoder then reports the error.
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
            status = read_page_location(&c, place)
            if status != 0:
                break
            # These conditions keep `at` within the chunk, so nothing overflows.
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
