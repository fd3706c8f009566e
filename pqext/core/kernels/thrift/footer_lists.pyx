# cython: language_level=3
"""Read offsets of structures, row counts and file names from the lists of a footer without building structures."""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

from pqext.core.kernels.thrift.compact cimport (
    BINARY, DONE, FALSE, I64, LIST, STOP, STRUCT, Cursor, read_header, read_list, read_size, read_varint, skip_value,
    unzigzag,
)
from pqext.core.kernels.thrift.reader cimport StructIndex

import numpy as np

cdef enum:
    UNUSUAL = 2

cdef struct Group:
    const uint8_t *name
    Py_ssize_t length
    int64_t rows
    int64_t start


cdef int read_integer(Cursor *c, int wire, int64_t *value) noexcept nogil:
    cdef uint64_t raw = 0
    if wire != I64 or read_varint(c, &raw) != DONE:
        return UNUSUAL
    value[0] = unzigzag(raw)
    return DONE


cdef int pass_over(Cursor *c, int wire) noexcept nogil:
    cdef const uint8_t *end
    if wire > FALSE:
        end = skip_value(c, c.p, wire, 3)
        if end == NULL:
            return UNUSUAL
        c.p = end
    return DONE


cdef int read_metadata(Cursor *c, Group *group) noexcept nogil:
    """Read the offset of the first data page from the metadata of a column."""
    cdef int wire = 0, id = 0, status
    while True:
        if read_header(c, &wire, &id) != DONE:
            return UNUSUAL
        if wire == STOP:
            return DONE
        status = read_integer(c, wire, &group.start) if id == 9 else pass_over(c, wire)
        if status != DONE:
            return UNUSUAL


cdef int read_chunk(Cursor *c, bint is_first, Group *group) noexcept nogil:
    """Read a column chunk, which must be in the same file as the first chunk and not encrypted. Return DONE or UNUSUAL.
    """
    cdef int wire = 0, id = 0, status
    cdef Py_ssize_t size = 0
    cdef bint named = False, described = False
    while True:
        if read_header(c, &wire, &id) != DONE:
            return UNUSUAL
        if wire == STOP:
            return DONE if named else UNUSUAL
        if id == 8 or id == 9:
            return UNUSUAL
        if id == 1:
            if named or wire != BINARY or read_size(c, &size) != DONE or not size:
                return UNUSUAL
            named = True
            if is_first:
                group.name, group.length = c.p, size
            elif size != group.length or memcmp(c.p, group.name, size) != 0:
                return UNUSUAL
            c.p += size
            continue
        if id == 3 and is_first:
            if described or wire != STRUCT:
                return UNUSUAL
            described = True
            status = read_metadata(c, group)
        else:
            status = pass_over(c, wire)
        if status != DONE:
            return UNUSUAL


cdef int read_group(Cursor *c, Group *group) noexcept nogil:
    cdef int wire = 0, id = 0, element = 0, status = DONE
    cdef Py_ssize_t count = 0, i
    cdef bint has_columns = False, has_rows = False
    while True:
        if read_header(c, &wire, &id) != DONE:
            return UNUSUAL
        if wire == STOP:
            return DONE if has_columns and has_rows else UNUSUAL
        if id == 1:
            if has_columns or wire != LIST or read_list(c, &element, &count) != DONE or element != STRUCT or not count:
                return UNUSUAL
            has_columns = True
            for i in range(count):
                if read_chunk(c, i == 0, group) != DONE:
                    return UNUSUAL
            continue
        if id == 3:
            if has_rows:
                return UNUSUAL
            has_rows = True
            status = read_integer(c, wire, &group.rows)
        else:
            status = pass_over(c, wire)
        if status != DONE:
            return UNUSUAL


def read_row_group_files(StructIndex groups not None):
    """Return three lists: the file name, the number of rows and the offset of the first data page of each row group.

    Return None if a row group has chunks without a file name, in several files or encrypted, or is unusual.
    """
    cdef Py_ssize_t position
    cdef Cursor c
    cdef Group group
    cdef const uint8_t *before = NULL
    cdef Py_ssize_t length = 0
    cdef bytes name = b""
    cdef list names = [], rows = [], starts = []
    for position in range(groups.count):
        c = groups.at(position)
        group.name, group.length, group.rows, group.start = NULL, 0, 0, INT64_MIN
        if read_group(&c, &group) != DONE:
            return None
        if before == NULL or group.length != length or memcmp(group.name, before, length) != 0:
            name = PyBytes_FromStringAndSize(<const char *> group.name, group.length)
            before, length = group.name, group.length
        names.append(name)
        rows.append(group.rows)
        starts.append(group.start)
    return names, rows, starts


cdef int pass_noted(Cursor *c) noexcept nogil:
    """Skip a list, in one step if the cursor knows the offsets of its structures. Return DONE or UNUSUAL."""
    cdef int element = 0
    cdef Py_ssize_t count = 0
    cdef const uint8_t *begin = c.p
    if c.noted != NULL:
        if read_list(c, &element, &count) != DONE:
            return UNUSUAL
        if element == STRUCT and count == c.noted_count and c.p - c.start == c.noted[0]:
            c.p = c.start + c.noted[count]
            return DONE
        c.p = begin
    return pass_over(c, LIST)


cdef int read_rows(Cursor *c, int64_t *rows) noexcept nogil:
    cdef int wire = 0, id = 0
    cdef bint has_rows = False
    while True:
        if read_header(c, &wire, &id) != DONE:
            return UNUSUAL
        if wire == STOP:
            return DONE if has_rows else UNUSUAL
        if id == 3:
            if has_rows or read_integer(c, wire, rows) != DONE:
                return UNUSUAL
            has_rows = True
        elif (pass_noted(c) if wire == LIST else pass_over(c, wire)) != DONE:
            return UNUSUAL


def count_rows(StructIndex groups not None):
    """Return the total number of rows of all row groups; None if a count is negative or the metadata is unusual."""
    cdef Py_ssize_t position
    cdef Cursor c
    cdef int64_t rows = 0, most = INT64_MAX
    cdef int64_t total = 0
    for position in range(groups.count):
        c = groups.at(position)
        if read_rows(&c, &rows) != DONE or rows < 0 or rows > most - total:
            return None
        total += rows
    return total


def struct_offsets(StructIndex index not None):
    made = np.empty(index.count + 1, np.int64)
    cdef int64_t[::1] view = made
    memcpy(&view[0], index.offsets, (index.count + 1) * sizeof(int64_t))
    return made


def nested_struct_offsets(StructIndex index not None, Py_ssize_t position, Py_ssize_t count):
    cdef const int64_t *starts = <const int64_t *> index.inner_starts.data
    cdef const int64_t *first
    index.check(position)
    if index.inner_starts.size == 0 or starts[position + 1] - starts[position] != count + 1:
        return None
    first = <const int64_t *> index.inner.data + starts[position]
    made = np.empty(count + 1, np.int64)
    cdef int64_t[::1] view = made
    memcpy(&view[0], first, (count + 1) * sizeof(int64_t))
    return made


def equal_bytes(const uint8_t[::1] left not None, const uint8_t[::1] right not None):
    cdef Py_ssize_t size = left.shape[0]
    cdef bint is_equal
    if size != right.shape[0]:
        return False
    if size == 0:
        return True
    with nogil:
        is_equal = memcmp(&left[0], &right[0], size) == 0
    return is_equal
