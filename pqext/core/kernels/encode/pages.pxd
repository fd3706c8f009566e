# Pages with headers, for kernels that encode pages.
from libc.stdint cimport int64_t, uint8_t

from pqext.core.kernels.buffer cimport Bytes
from pqext.core.kernels.encode.page_header cimport Header

cdef int allocated(int status) except -1
cdef object lent(const uint8_t *data, Py_ssize_t size)

cdef class Held:
    cdef Py_buffer view
    cdef bint held
    cdef const uint8_t *data
    cdef Py_ssize_t size

cdef class EncodedPages:
    cdef readonly list pieces
    cdef readonly int64_t size, uncompressed, dictionary_size
    cdef readonly Py_ssize_t by_index
    cdef Bytes joined   # concatenated headers and small bodies
    cdef Bytes scratch

    cdef int add(self, Header *h, object body, const uint8_t *data, Py_ssize_t size) except -1
    cdef int flush(self) except -1

cdef int store(EncodedPages out, Header *h, object plain, const uint8_t *data, Py_ssize_t size,
               Py_ssize_t levels, object compress, object checksum) except -1
