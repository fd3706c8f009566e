# cython: language_level=3
# Collect the slots of a BYTE_ARRAY leaf over pages. Functions return 0 or a fault.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from pqext.core.kernels.buffer cimport Bytes
from pqext.core.kernels.encodings.page_run cimport PagePart


cdef class ByteArrayBuilder:
    cdef Bytes offsets
    cdef Bytes data
    cdef size_t limit
    cdef object taking
    cdef object allocating
    cdef object lent             # memory of the data that `allocating` returned, if any
    cdef object lent_offsets
    cdef size_t expected
    cdef size_t expected_slots

    cdef int _make_room(self, size_t more, size_t slots) except -1
    cdef object _lend(self, Bytes *bytes, object owner, size_t more, size_t expected)
    cdef object _taken(self, Bytes *bytes, object owner)

    cdef int _append_plain(self, const uint8_t *p, size_t size, const uint8_t *present, Py_ssize_t slots) noexcept nogil
    cdef int _append_pages(
        self, const PagePart *parts, const uint8_t *present, const int64_t *slots, Py_ssize_t pages
    ) noexcept nogil
    cdef int _append_lookup(
        self, const uint8_t *values, size_t total, const int32_t *ends, uint32_t entries,
        const int32_t *indices, Py_ssize_t count, const uint8_t *present, Py_ssize_t slots,
    ) noexcept nogil
    cdef int _copy_entries(
        self, size_t most, const uint8_t *values, size_t total, const int32_t *ends, uint32_t entries,
        const int32_t *indices, Py_ssize_t count, const uint8_t *present, Py_ssize_t slots,
    ) noexcept nogil
    cdef int _append_run(
        self, const uint8_t *values, size_t size, const int32_t *lengths, Py_ssize_t count,
        const uint8_t *present, Py_ssize_t slots,
    ) noexcept nogil
    cdef object _check(self, int status)
