# cython: language_level=3
"""Encoded parts of consecutive pages. Threads share the interpreter best when each call decodes many pages."""
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from pqext.core.kernels.buffer cimport bytes_append, bytes_free

from pqext.core.errors import CorruptFileError


cdef class PageRun:
    """The same part (values, or levels of one kind) of consecutive pages: its bytes, and how many values it holds.

    `counts` has a number a page, none negative.
    """

    def __cinit__(self, pages, counts):
        cdef PagePart part
        cdef const uint8_t[::1] held
        self.pages = list(pages)
        self.counts = list(counts)
        self.size = len(self.pages)
        if self.size != len(self.counts):
            raise ValueError("as many counts as pages")
        for page, number in zip(self.pages, self.counts):
            held = page
            part.data = &held[0] if held.shape[0] else NULL
            part.size = held.shape[0]
            part.count = number
            if part.count < 0 or part.count > <Py_ssize_t> 0x7FFFFFFF:
                raise ValueError(f"a page of {number} values")
            self.total += part.count
            if bytes_append(&self.parts_bytes, &part, sizeof(PagePart)) != 0:
                raise MemoryError("pages")
        self.parts = <const PagePart *> self.parts_bytes.data

    def __dealloc__(self):
        bytes_free(&self.parts_bytes)

    def copy_into(self, Py_ssize_t width, uint8_t[::1] out):
        """Fill `out` with values that lie in the pages as they are, `width` bytes each."""
        cdef Py_ssize_t i
        cdef size_t wanted
        cdef uint8_t *target
        if width < 1 or self.total > out.shape[0] // width or self.total * width != out.shape[0]:
            raise ValueError("the output does not hold one value for each of the pages'")
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
