# cython: language_level=3
"""Column and offset indexes serialised from the table of a chunk's pages (Page Index)."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free
from pqext.core.kernels.compact cimport BINARY, FALSE, I32, I64, LIST, STRUCT, TRUE
from pqext.core.kernels.compact_write cimport put_binary, put_byte, put_header, put_int, put_list
from pqext.core.kernels.page_cuts cimport PageCuts


cdef object finished(Bytes *b, int status):
    try:
        if status != 0:
            raise MemoryError("page index")
        return PyBytes_FromStringAndSize(<char *> b.data, <Py_ssize_t> b.size)
    finally:
        bytes_free(b)


def offset_index(PageCuts cuts, int64_t base, bint measured):
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
    PageCuts cuts, list minima, list maxima, int boundary_order, object definition, object repetition,
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
        raise ValueError("the lists of a column index differ in length")
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
        raise ValueError("the lists of a row group differ in length")
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
    """Offset and length of an index, if there is one; the next one lies behind it."""
    cdef Py_ssize_t size
    cdef int status
    if index is None:
        return 0
    size = PyBytes_GET_SIZE(index)
    status = put_header(b, I64, id, last) | put_int(b, at[0]) | put_header(b, I32, id + 1, last) | put_int(b, size)
    at[0] += size
    return status
