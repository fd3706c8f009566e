# cython: language_level=3
"""Encoded parts of consecutive pages. Threads scale best if each call decodes many pages without the GIL."""
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

import numpy as np

from pqext.core.kernels.buffer cimport bytes_append, bytes_free

from pqext.core.base.errors import CorruptFileError


cdef class Lent:
    """Part of the bytes of `owner`, exposed through the buffer protocol."""
    cdef const uint8_t *data
    cdef Py_ssize_t size
    cdef object owner

    def __getbuffer__(self, Py_buffer *view, int flags):
        cdef uint8_t *address = <uint8_t *> self.data if self.data != NULL else <uint8_t *> &self.size
        PyBuffer_FillInfo(view, self, address, self.size, 1, flags)


cdef object lend(const uint8_t *data, size_t size, object owner):
    cdef Lent lent = Lent.__new__(Lent)
    lent.data, lent.size, lent.owner = data, <Py_ssize_t> size, owner
    return np.frombuffer(lent, np.uint8)


cdef class PageRun:
    """One part of consecutive pages, such as values or definition levels: its bytes, and the number of its values.

    `counts` has a non-negative number per page.
    """

    def __cinit__(self, pages=(), counts=()):
        cdef const uint8_t[::1] held
        self.owners = list(pages)
        numbers = list(counts)
        if len(self.owners) != len(numbers):
            raise ValueError("there must be one count per page")
        for page, number in zip(self.owners, numbers):
            held = page
            self.add(&held[0] if held.shape[0] else NULL, held.shape[0], number)

    def __dealloc__(self):
        bytes_free(&self.parts_bytes)

    cdef int add(self, const uint8_t *data, size_t size, Py_ssize_t count) except -1:
        cdef PagePart part
        if count < 0 or count > <Py_ssize_t> 0x7FFFFFFF:
            raise ValueError(f"a page declares {count} values; the maximum is 2^31 - 1")
        part.data, part.size, part.count = data, size, count
        if bytes_append(&self.parts_bytes, &part, sizeof(PagePart)) != 0:
            raise MemoryError("out of memory for pages")
        self.parts = <PagePart *> self.parts_bytes.data
        self.size += 1
        self.total += count
        return 0

    @property
    def counts(self):
        """Number of values of each page."""
        return [self.parts[i].count for i in range(self.size)]

    @property
    def pages(self):
        """Bytes of each page."""
        cdef Py_ssize_t i
        return [lend(self.parts[i].data, self.parts[i].size, self.owners) for i in range(self.size)]

    def recount(self, const int64_t[::1] counts):
        """Replace the number of values of each page."""
        cdef Py_ssize_t i
        if counts.shape[0] != self.size:
            raise ValueError("there must be one count per page")
        for i in range(self.size):
            if counts[i] < 0 or counts[i] > 0x7FFFFFFF:
                raise ValueError(f"a page has {counts[i]} values; the maximum is 2^31 - 1")
        self.total = 0
        for i in range(self.size):
            self.parts[i].count = counts[i]
            self.total += counts[i]

    def split(self):
        """Split each page after its prefix, a 4-byte length and this number of bytes. Return two runs."""
        cdef PageRun first = PageRun(), rest = PageRun()
        cdef Py_ssize_t i
        cdef uint32_t length
        cdef PagePart part
        for i in range(self.size):
            part = self.parts[i]
            if part.size < 4:
                raise CorruptFileError("levels extend beyond their page")
            length = part.data[0] | part.data[1] << 8 | part.data[2] << 16 | <uint32_t> part.data[3] << 24
            if length > part.size - 4:
                raise CorruptFileError("levels extend beyond their page")
            first.add(part.data + 4, length, part.count)
            rest.add(part.data + 4 + length, part.size - 4 - length, part.count)
        first.owners = rest.owners = self.owners
        return first, rest

    def copy_into(self, Py_ssize_t width, uint8_t[::1] out):
        """Fill `out` with the PLAIN values of the pages, `width` bytes each."""
        cdef Py_ssize_t i
        cdef size_t wanted
        cdef uint8_t *target
        if width < 1 or self.total > out.shape[0] // width or self.total * width != out.shape[0]:
            raise ValueError("the output must have one value per value of the pages")
        for i in range(self.size):
            if self.parts[i].size // <size_t> width < <size_t> self.parts[i].count:
                raise CorruptFileError(
                    f"a page of {self.parts[i].size} bytes cannot hold {self.parts[i].count} values of {width} bytes"
                )
        if not self.total:
            return
        target = &out[0]
        with nogil:
            for i in range(self.size):
                wanted = <size_t> self.parts[i].count * <size_t> width
                if wanted:
                    memcpy(target, self.parts[i].data, wanted)
                    target += wanted
