# cython: language_level=3
"""Pages that are zstd frames unpacked, many in one call, by functions of the library whose addresses are given.

A `Context` serves one thread at a time.
"""
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uintptr_t

from pqext.core.kernels.encodings.page_run cimport PageRun

ctypedef void *(*make_t)() noexcept nogil
ctypedef size_t (*free_t)(void *) noexcept nogil
ctypedef size_t (*unpack_t)(void *, void *, size_t, const void *, size_t) noexcept nogil
ctypedef unsigned (*is_error_t)(size_t) noexcept nogil


cdef class Context:
    """What the library keeps between frames; of the addresses of the functions that make, free, unpack and tell errors."""

    cdef void *held
    cdef free_t free
    cdef unpack_t decompress
    cdef is_error_t is_error

    def __cinit__(self, uintptr_t make, uintptr_t free, uintptr_t decompress, uintptr_t is_error):
        if not (make and free and decompress and is_error):
            raise ValueError("a function has no address")
        self.free = <free_t> free
        self.decompress = <unpack_t> decompress
        self.is_error = <is_error_t> is_error
        self.held = (<make_t> make)()
        if self.held == NULL:
            raise MemoryError("zstd")

    def __dealloc__(self):
        if self.held != NULL:
            self.free(self.held)

    cdef bint unpack(self, const uint8_t *data, size_t size, uint8_t *out, size_t room) noexcept nogil:
        """Do `data` make exactly `room` bytes, which are in `out` then?"""
        cdef size_t made
        if room == 0:
            return True
        made = self.decompress(self.held, out, room, data, size)
        return not self.is_error(made) and made == room

    def unpack_all(self, pages, sizes, uint8_t[::1] out):
        """Fill `out` with what `pages` make, one behind the other, of the `sizes` that they must have.

        Gives the place of the first page that does not make as much, and -1 where all do.
        """
        cdef PageRun run = PageRun(pages, sizes)
        cdef Py_ssize_t i, found = -1
        cdef uint8_t *at
        if run.total != out.shape[0]:
            raise ValueError("the output does not hold the pages")
        if not run.total:
            return -1
        at = &out[0]
        with nogil:
            for i in range(run.size):
                if not self.unpack(run.parts[i].data, run.parts[i].size, at, run.parts[i].count):
                    found = i
                    break
                at += run.parts[i].count
        return found
