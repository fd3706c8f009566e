# Append hybrid-encoded values to growing memory. Functions return 0, or -1 if memory is exhausted.
from libc.stdint cimport int16_t, int32_t

from pqext.core.kernels.buffer cimport Bytes

cdef int put_levels(Bytes *b, const int16_t *levels, Py_ssize_t count, int width) noexcept nogil
cdef int put_same_levels(Bytes *b, int16_t level, Py_ssize_t count, int width) noexcept nogil
cdef int put_indices(Bytes *b, const int32_t *indices, Py_ssize_t count, int width) noexcept nogil
