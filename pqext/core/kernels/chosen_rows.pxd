# cython: language_level=3
# Single rows of many pages of a column, decoded in one call.
from libc.stddef cimport size_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from pqext.core.kernels.buffer cimport Bytes
from pqext.core.kernels.page_header cimport PageEntry
from pqext.core.kernels.page_table cimport PageTable
from pqext.core.kernels.zstd cimport Context


cdef struct Part:
    # A page with some of the rows: those from `first` to `stop`; its first row is number `base`.
    PageEntry page
    const uint8_t *data   # what is behind levels that are not packed, NULL where it is still packed
    size_t size
    size_t clear          # bytes of those levels
    int64_t base
    Py_ssize_t first
    Py_ssize_t stop


cdef class Chosen:
    cdef Bytes held
    cdef Part *parts
    cdef readonly Py_ssize_t size    # pages that hold the rows
    cdef list owners
    cdef int width
    cdef bint boolean
    cdef int highest
    cdef int level_width
    cdef readonly int64_t scratch
    cdef int64_t expected            # bytes of the values of byte arrays, about
    cdef int64_t unpacked            # of the largest page that is packed
    cdef int64_t entries             # of the page of most entries
    cdef const int64_t *places
    cdef readonly Py_ssize_t count
    cdef object lender

    # Where rows go.
    cdef int16_t *levels
    cdef uint8_t *validity
    cdef uint8_t *values
    cdef int32_t *ends
    cdef Bytes data
    cdef size_t room
    cdef Py_ssize_t nulls

    # What they come from.
    cdef uint8_t *page_memory
    cdef Bytes flags
    cdef Bytes chosen                # of the values in a page their places, slots and indices
    cdef const uint8_t *entry_data
    cdef const int32_t *entry_ends
    cdef Py_ssize_t entry_count
    cdef size_t entry_size
    cdef int64_t page_values         # of the page at hand
    cdef size_t needed               # bytes that its byte arrays may take, where there is no room

    cdef int find(self, PageTable table) except -1
    cdef void add_up(self) noexcept nogil
    cdef int page(self, Context context, const Part *part) noexcept nogil
    cdef Py_ssize_t present(self, const Part *part, const uint8_t *data, size_t size) noexcept nogil
    cdef int fixed(
        self, const Part *part, const uint8_t *p, size_t size, const int64_t *places, const int64_t *slots,
        Py_ssize_t found,
    ) noexcept nogil
    cdef int flagged(
        self, const uint8_t *p, size_t size, const int64_t *places, const int64_t *slots, Py_ssize_t found
    ) noexcept nogil
    cdef int byte_arrays(
        self, const uint8_t *p, size_t size, const int64_t *places, const int64_t *slots, Py_ssize_t found
    ) noexcept nogil
    cdef int look_up(
        self, const Part *part, const uint8_t *p, size_t size, const int64_t *places, const int64_t *slots,
        Py_ssize_t found,
    ) noexcept nogil
