# cython: language_level=3
"""Split a chunk into pages at row boundaries, scanning its levels once."""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int16_t, int32_t, int64_t
from libc.stdlib cimport calloc, free

import numpy


cdef class PageBoundaries:
    def __dealloc__(self):
        free(self.rows)

    cdef int take(self, Py_ssize_t count) except -1:
        cdef Py_ssize_t each = count + 1
        if not 0 <= count < 1 << 48:
            raise ValueError(f"page count {count} is out of range")
        self.rows = <int64_t *> calloc(each, 6 * sizeof(int64_t))
        if self.rows == NULL:
            raise MemoryError("out of memory for pages")
        self.entries = self.rows + each
        self.values = self.entries + each
        self.offsets = self.values + each
        self.sizes = self.offsets + each
        self.bytes = self.sizes + each
        self.count = count
        return 0

    @property
    def total_nulls(self):
        return self.entries[self.count] - self.values[self.count]

    def starts(self, str what):
        cdef int64_t *held
        if what == "rows":
            held = self.rows
        elif what == "entries":
            held = self.entries
        elif what == "values":
            held = self.values
        else:
            raise ValueError(what)
        return numpy.frombuffer(PyBytes_FromStringAndSize(<char *> held, (self.count + 1) * sizeof(int64_t)), "int64")

    cdef int check(self, Py_ssize_t index) except -1:
        if not 0 <= index < self.count:
            raise IndexError(f"page {index} is out of range for {self.count} pages")
        return 0

    def page(self, Py_ssize_t index):
        self.check(index)
        return (
            self.rows[index + 1] - self.rows[index], self.entries[index + 1] - self.entries[index],
            self.values[index + 1] - self.values[index],
        )

    def locate(self, Py_ssize_t index, int64_t offset, int64_t size):
        self.check(index)
        self.offsets[index] = offset
        self.sizes[index] = size

    def measure(self, object offsets, Py_ssize_t start):
        cdef Py_buffer view
        cdef const int32_t *held
        cdef Py_ssize_t page
        cdef int64_t low, high, total = 0
        if self.values[self.count] == 0:
            return 0
        PyObject_GetBuffer(offsets, &view, PyBUF_SIMPLE)
        try:
            held = <const int32_t *> view.buf
            if start < 0 or view.len // 4 - 1 - start < self.values[self.count]:
                raise ValueError("there are fewer offsets than values")
            for page in range(self.count):
                low, high = held[start + self.values[page]], held[start + self.values[page + 1]]
                if high < low:
                    raise ValueError("offsets must ascend")
                self.bytes[page] = high - low
                total += high - low
            return total
        finally:
            PyBuffer_Release(&view)


cdef inline Py_ssize_t count_level(const int16_t *levels, Py_ssize_t count, int16_t level) noexcept nogil:
    cdef Py_ssize_t i, found = 0
    for i in range(count):
        found += levels[i] == level
    return found


cdef Py_ssize_t find_entries(PageBoundaries cuts, const int16_t *levels, Py_ssize_t entries) noexcept nogil:
    """Find page boundaries among entries; repetition level 0 begins a row. Return the number of rows."""
    cdef Py_ssize_t i, row = 0, page = 0
    for i in range(entries):
        if levels[i] == 0:
            while page <= cuts.count and cuts.rows[page] == row:
                cuts.entries[page] = i
                page += 1
            row += 1
    while page <= cuts.count:
        cuts.entries[page] = entries
        page += 1
    return row


cdef const int16_t *levels_of(object levels, Py_buffer *view, Py_ssize_t entries) except? NULL:
    PyObject_GetBuffer(levels, view, PyBUF_SIMPLE)
    if view.len != entries * 2:
        PyBuffer_Release(view)
        raise ValueError("there must be one level per entry")
    return <const int16_t *> view.buf


def split_pages(
    Py_ssize_t rows, Py_ssize_t page_rows, object edges, Py_ssize_t entries, object repetition, object definition,
    int highest, Py_ssize_t values,
):
    cdef PageBoundaries cuts = PageBoundaries.__new__(PageBoundaries)
    cdef Py_ssize_t page, found
    cdef const int16_t *levels
    cdef Py_buffer view
    if rows < 0 or entries < rows or page_rows < 1 or values < 0:
        raise ValueError("the row count and the entry count are inconsistent")
    if edges is None:
        cuts.take(rows // page_rows + (rows % page_rows > 0))
        for page in range(cuts.count):
            cuts.rows[page] = page * page_rows
    else:
        cuts.take(len(edges))
        for page in range(cuts.count):
            cuts.rows[page] = edges[page]
            if not (cuts.rows[page - 1] < cuts.rows[page] < rows if page else cuts.rows[0] == 0):
                raise ValueError("the first rows of pages must ascend from 0")
    cuts.rows[cuts.count] = rows
    if repetition is None:
        if entries != rows:
            raise ValueError("the row count and the entry count are inconsistent")
        for page in range(cuts.count + 1):
            cuts.entries[page] = cuts.rows[page]
    else:
        levels = levels_of(repetition, &view, entries)
        if entries and levels[0] != 0:
            PyBuffer_Release(&view)
            raise ValueError("the first entry must start a row")
        with nogil:
            found = find_entries(cuts, levels, entries)
        PyBuffer_Release(&view)
        if found != rows:
            raise ValueError(f"levels start {found} rows instead of {rows}")
    if definition is None:
        if values and values != entries:
            raise ValueError("the entry count and the value count are inconsistent")
        for page in range(cuts.count + 1):
            cuts.values[page] = cuts.entries[page] if values else 0
        return cuts
    levels = levels_of(definition, &view, entries)
    with nogil:
        for page in range(cuts.count):
            cuts.values[page + 1] = cuts.values[page] + count_level(
                levels + cuts.entries[page], cuts.entries[page + 1] - cuts.entries[page], highest
            )
    PyBuffer_Release(&view)
    if cuts.values[cuts.count] != values:
        raise ValueError(f"levels declare {cuts.values[cuts.count]} values, but there are {values}")
    return cuts
