# cython: language_level=3
# Move values of a fixed width to their slots.
from libc.stdint cimport uint8_t

cdef void spread_values(uint8_t *target, Py_ssize_t width, Py_ssize_t values, const uint8_t *present, Py_ssize_t slots) noexcept nogil
